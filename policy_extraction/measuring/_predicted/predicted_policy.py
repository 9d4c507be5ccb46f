"""A policy of more than two words, from a small part of its prompts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace
from meanfield.toolbox import LARGEST_SEED, check_memory, real_number, whole_number
from policy_extraction.backends._backend import Backend
from policy_extraction.backends._open import open_backend
from policy_extraction.backends.local._source import SMOLLM2
from policy_extraction.measuring._lazy import lazy_policy
from policy_extraction.measuring._memories import codes_of, memory_of, states_of
from policy_extraction.measuring._predicted.explore import (
    DRAWS,
    FIRST,
    Function,
    Game,
    ShareExploration,
    games_of,
)
from policy_extraction.prompts._games import Memory, checked_game
from policy_extraction.prompts._orders import balanced_number
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template

LONGEST = 5  # interactions; there are 4^H patterns of a word
MOST_CONTRASTS = 6000  # that the posterior takes; more would take minutes for each batch
MOST_WORDS = 50  # so that enough memories are tests
FINEST, COARSEST = 0.02, 0.5  # tolerance
MOST_INTERACTIONS = 2e8  # of all games for a batch; they take minutes


def predicted_policy(
    model: str | os.PathLike[str] | tuple[Any, Any] | Backend = SMOLLM2,
    *,
    words: Sequence[str],
    memory_length: int = 3,
    n_agents: int = 24,
    rounds: int = 15,
    tolerance: float = 0.05,
    budget: int | None = None,
    orders: int | None = None,
    temperature: float = 0.5,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    seed: int = 0,
    progress: bool | None = None,
    cache: bool | str | os.PathLike[str] = True,
) -> PredictedPolicy:
    """The policy of a language model with 2 to 50 words, from a small part of its prompts.

    A Gaussian process predicts the logits of all memories. The largest part of a word's logit depends on the places in
    the memory where the word was said and heard, and this part is the same for all words. Each word also has a lean and
    a response of its own, and memories that share interactions have similar logits. The parameters of the kernel have
    the largest posterior density. Answers below a probability of 1e-6 count as 1e-6 in predictions.

    Memories are asked in batches until the word shares of a population are known: of `n_agents` agents who begin with
    empty memories and play `rounds` rounds of as many interactions, the probability that a random agent says each word
    at the end. Simulated games, with the present prediction and with random policies that agree with the answers, show
    from which memories agents speak. Three quarters of a batch are drawn from these memories in proportion to their
    visits. Their answers test the model, which predicted them before they were asked. The rest is drawn in proportion
    to visits and variance.

    The interval of a share comes from 16 random policies, whose spread is as large as the latest 59 tests turned out to
    need. The interval is wider where the shares moved more from batch to batch than expected. There are at least 59
    tests: if memories that make up a twentieth of the visits follow a rule of their own, the tests meet one of them
    with probability 95 %. A rarer rule can stay unseen.

    Parameters
    ----------
    model
        As in `extract`.
    words
        The words, 2 to 50; with `memory_length`, fewer than 2^63 memories.
    memory_length
        H, in interactions, at most 5.
    n_agents, rounds
        The population, of at least 2 agents. Games are simulated for each batch, so they may be at most some thousand
        interactions long: 9,259 with the default tolerance.
    tolerance
        Half the width of the 95 % interval of each share at the end, 0.02 to 0.5.
    budget
        Largest number of prompts, including those with kept answers. None for as many as the posterior takes,
        6000/(W - 1) memories. Intervals take about 90 memories, and a measurement that ends by its tolerance 106.
    orders
        Number of presentation orders in which each memory is asked, a multiple of W. None for the smallest number
        balanced in positions and neighbours: W, or 2W for odd W.
    temperature, template, payoffs, progress, cache
        As in `lazy_policy`, which shares the kept answers for the same orders.
    seed
        Seed of memories, draws, games and orders.

    Returns
    -------
    A function of memories, as `validation.naming_game.LazyPolicy` takes it.

    Raises
    ------
    InputError
        If an argument is wrong, or the model can't be measured.
    ModelError
        If the model returns NaN or leaves prompts without an answer.
    StorageError
        If the cache can't be read and written.

    See Also
    --------
    measure : two words, for κ and other goals
    lazy_policy : every memory that occurs

    Examples
    --------
    A table stands in for a model that says more often what it heard more often, and prefers A. There are 820 memories.

    >>> from policy_extraction import predicted_policy
    >>> from policy_extraction.backends import TableBackend
    >>> words = ("A", "B", "C")
    >>> def law(memory, order):
    ...     heard = [partner for own, partner in memory]
    ...     weights = np.exp([0.8 * heard.count(word) + 0.3 * (word == "A") for word in words])
    ...     return dict(zip(words, weights / weights.sum()))
    >>> table = TableBackend(law, words, memory_length=3)
    >>> policy = predicted_policy(table, words=words, n_agents=8, rounds=4, temperature=1.0, budget=120, orders=3)
    >>> policy
    PredictedPolicy(table {A, B, C}, 40 of 820 memories asked)
    >>> policy([((0, 1), (1, 1))]).round(1).tolist()  # said A and B, heard B twice
    [[0.2, 0.7, 0.1]]
    >>> policy.result["word_share"].dims, policy.result.attrs["prompts_used"]
    (('word',), 120)
    """
    words = checked_game(words, memory_length, template, payoffs)
    if memory_length > LONGEST:
        raise InputError(f"memory_length = {memory_length}: expected at most {LONGEST}; see lazy_policy")
    n_agents, rounds = whole_number("n_agents", n_agents, 2), whole_number("rounds", rounds, 1)
    tolerance = real_number("tolerance", tolerance, least=FINEST, most=COARSEST)
    whole_number("seed", seed, 0, LARGEST_SEED)
    if len(words) > MOST_WORDS:
        raise InputError(f"words: there are {len(words)}, expected at most {MOST_WORDS}; see lazy_policy")
    game = Game(n_agents, rounds, memory_length, len(words))
    most_interactions = int(MOST_INTERACTIONS / (DRAWS + 2) / games_of(tolerance))
    if n_agents * rounds > most_interactions:
        raise InputError(
            f"n_agents = {n_agents}, rounds = {rounds}: expected at most {most_interactions:,} interactions in a game "
            f"with tolerance = {tolerance}"
        )
    ask = lazy_policy(
        open_backend(model),
        words,
        memory_length,
        template=template,
        payoffs=payoffs,
        orders=balanced_number(len(words)) if orders is None else orders,
        seed=seed,
        temperature=temperature,
        cache=cache,
    )
    each, space = len(ask.presented), MemorySpace(len(words), memory_length)
    most = min(space.n_states, max(FIRST, MOST_CONTRASTS // (len(words) - 1)))
    if budget is not None:
        most = min(most, whole_number("budget", budget, min(FIRST, space.n_states) * each) // each)
    contrasts = most * (len(words) - 1)
    check_memory(48 * contrasts**2, f"budget = {budget}", "a smaller budget")

    def asked(codes: np.ndarray) -> np.ndarray:
        return ask([memory_of(row, len(words)) for row in codes])

    exploration = ShareExploration(asked, tolerance, seed, game)
    known = exploration.to_end(most, each, ask.name, progress, lambda known: f"shares ± {known.half.max():.2g}")
    bounds = np.where(np.isfinite(known.half), [known.value - known.half, known.value + known.half], np.nan)
    low, high = np.clip(bounds, 0.0, 1.0)
    result = xr.Dataset(
        {
            "word_share": ("word", known.value, {"long_name": "share of the word in what is said at the end"}),
            "word_share_low": ("word", low, {"long_name": "lower end of the 95 % interval of word_share"}),
            "word_share_high": ("word", high, {"long_name": "upper end of the 95 % interval of word_share"}),
            "q": (("state", "word"), exploration.q, {"long_name": "probability to say the word in the memories asked"}),
        },
        coords={"word": list(words), "state": states_of(exploration.codes, len(words)), "model": ask.name},
        attrs={
            "goal": "word_share",
            "n_agents": n_agents,
            "rounds": rounds,
            "memory_length": memory_length,
            "tolerance": tolerance,
            "seed": seed,
            "memories_asked": exploration.n_measured,
            "posterior_scale": exploration.doubt.scale,
            **exploration.outcome(known, each, "every memory seen in games was asked", "the shares are known"),
        },
    )
    return PredictedPolicy(exploration.mean, words, memory_length, ask.name, result, exploration)


@dataclass(frozen=True, repr=False, eq=False)
class PredictedPolicy:
    """The result of `predicted_policy`, a function of memories.

    Attributes
    ----------
    words, memory_length, name
        The W words, H, and the name of the model, as `validation.naming_game.LazyPolicy` takes them.
    result
        Dataset with `word_share` (word), `word_share_low` and `word_share_high`, its 95 % interval, which is NaN with
        fewer than 59 tests if not every memory was asked, and `q` (state, word) of the memories asked, with their
        numbers in `MemorySpace`. Its attrs hold

        - `reached`, 1 if the shares are known as asked for, and `reason`, why the measurement ended;
        - `memories_asked` and `prompts_used`;
        - `held_out`, the number of the latest tests, at most 60, `held_out_outside`, how many of their contrasts were
          outside of their predicted intervals of 95 %, and `model_holds`, 0 if these are too many;
        - `posterior_scale`, how much wider than the Gaussian process the random policies are.
    """

    _function: Function
    words: tuple[str, ...]
    memory_length: int
    name: str
    result: xr.Dataset
    _exploration: ShareExploration = field(repr=False)

    def __repr__(self) -> str:
        n_states = MemorySpace(len(self.words), self.memory_length).n_states
        asked = f"{self._exploration.n_measured} of {n_states} memories asked"
        return f"{type(self).__name__}({self.name} {{{', '.join(self.words)}}}, {asked})"

    def __call__(self, memories: Sequence[Memory]) -> np.ndarray:
        """Choice probabilities (n, W) in memories, each a tuple of pairs (own word, partner's word), oldest first.

        They come from the answers where a memory was asked, and are predictions elsewhere.
        """
        space = MemorySpace(len(self.words), self.memory_length)
        for memory in memories:
            space.state(memory)  # InputError if it is not a memory
        return self._function(codes_of(memories, len(self.words), self.memory_length))

    def draw(self, n: int, seed: int) -> list[PredictedPolicy]:
        """`n` random policies that agree with the answers; the first 10 of 100 are the 10.

        They give intervals of any quantity. Their spread is as large as the predictions of visited memories turned
        out to need.
        """
        n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
        drawn = (self._exploration.draw(np.random.default_rng((seed, k))) for k in range(n))
        return [replace(self, _function=function) for function in drawn]
