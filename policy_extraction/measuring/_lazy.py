"""Policies of language models that are measured only in the memory states that occur."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, MemorySpace
from meanfield.toolbox import instance, one_or_several, shown
from policy_extraction._toolbox.bars import hidden
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._answers import Answers, decided
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._record import record_of
from policy_extraction.measuring._sampling import Sampling
from policy_extraction.prompts._games import Game, Memory, checked_game
from policy_extraction.prompts._orders import orders as presentation_orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template


def lazy_policy(
    backend: Backend,
    words: Sequence[str],
    memory_length: int,
    *,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    orders: int | Sequence[Sequence[str]] | None = None,
    seed: int = 0,
    temperature: float = 0.5,
    top_k: int | None = None,
    top_p: float | None = None,
    over: str = "words",
    floor: float = 0.0,
    undecided: str = "raise",
    cache: bool | str | os.PathLike[str] = True,
    progress: bool | None = None,
) -> LazyExtraction:
    """The policy of a language model as a function of memories; the model is asked when a memory first occurs.

    W = 10 words and H = 5 interactions have 10^10 memory states; a population visits a tiny part of them.
    ``validation.naming_game.LazyPolicy(f, f.words, f.memory_length, name=f.name)`` makes the function `f` a policy for
    `validation.simulate`. Probabilities are averaged over presentation orders, like an agent who sees a random order in
    each interaction ([001] Methods).

    Parameters
    ----------
    backend
        The model.
    words
        The W words, 2 to 255.
    memory_length
        H, in interactions.
    template, payoffs
        The prompt, and the points of a round in it.
    orders
        The presentation orders, or their number for a balanced sample; see `orders`. None for all orders if W ≤ 3,
        else for a sample of at least 24.
    seed
        Seed of the sample of orders.
    temperature, top_k, top_p, over, floor, undecided
        As in `policy_from_record`.
    cache
        True to keep answers in `cache_folder` and reuse them, False to keep them as long as the function lives, or a
        folder. Answers do not depend on the sampling. They are never kept for a back end without an identity.
    progress
        Show a progress bar for each batch. Default: on a terminal.

    Returns
    -------
    A function of n memories, each a tuple of pairs (own word, partner's word), oldest first, as numbers of words. It
    returns choice probabilities (n, W).

    Raises
    ------
    InputError
        If an argument is wrong, or the back end can't measure these words and memories. The function raises it if the
        answers do not determine the probabilities.
    ModelError
        Raised by the function if the model returns NaN or leaves prompts without an answer.
    StorageError
        If the cache can't be read and written.

    See Also
    --------
    extract : the whole policy

    Examples
    --------
    Two memories are asked about, in both orders of the words.

    >>> from policy_extraction import lazy_policy
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     return {"his": 0.3, "her": 0.1} if ("his", "his") in memory else {"his": 0.4, "her": 0.4}
    >>> f = lazy_policy(TableBackend(law, ("his", "her"), 3), ("his", "her"), 3, temperature=1.0)
    >>> f([(), ((0, 0), (1, 1)), ()]).round(2).tolist(), f.prompts_asked
    ([[0.5, 0.5], [0.75, 0.25], [0.5, 0.5]], 4)
    """
    instance("backend", backend, Backend)
    words = checked_game(words, memory_length, template, payoffs)
    if MemorySpace(len(words), memory_length).n_states >= 2**63:
        raise InputError(f"memory_length = {memory_length} with {len(words)} words: expected fewer than 2^63 states")
    if orders is None or isinstance(orders, (int, np.integer)):
        presented = presentation_orders(words, orders, seed)
    else:
        presented = [tuple(one_or_several(order)) for order in one_or_several(orders)]
        wrong = any(sorted(map(str, order)) != sorted(words) for order in presented)
        if wrong or not presented or len(set(presented)) < len(presented):
            raise InputError(
                f"orders = {shown(orders)}: expected a number, or different orders of the words {shown(words)}"
            )
    sampling = Sampling(temperature, top_k, top_p, over, floor, None, undecided)
    game = Game(words, presented, memory_length, template, payoffs)
    return LazyExtraction(backend, game, sampling, progress, answers_of(backend, game, cache))


@dataclass(repr=False, eq=False)
class LazyExtraction:
    """The result of `lazy_policy`.

    Attributes
    ----------
    words, memory_length, name
        The W words, H, and the name of the model, as `validation.naming_game.LazyPolicy` takes them.
    presented
        The presentation orders of the average.
    prompts_asked
        The number of prompts that this object sent to the model.
    """

    _backend: Backend
    _game: Game
    _sampling: Sampling
    _progress: bool | None
    _answers: Answers

    def __post_init__(self) -> None:
        self.words, self.memory_length = self._game.words, self._game.memory_length
        self.presented, self.name = self._game.presented, self._backend.name
        self._checked = False
        if not len(self._answers):  # else the model, which may load slowly, may not be needed at all
            self._check()

    @property
    def prompts_asked(self) -> int:
        return self._answers.n_asked

    def __call__(self, memories: Sequence[Memory]) -> np.ndarray:
        """Choice probabilities (n, W) in these memories; the model is asked for unknown ones in one batch."""
        memories = [tuple((int(own), int(partner)) for own, partner in memory) for memory in memories]
        space = MemorySpace(len(self.words), self.memory_length)
        for memory in memories:
            space.state(memory)  # InputError if it is not a memory
        unique = list(dict.fromkeys(memories))
        q = decided(*self._measured(unique), self._sampling, self.name).q.mean(0)
        where = {memory: i for i, memory in enumerate(unique)}
        return q[[where[memory] for memory in memories]]

    def record(self) -> xr.Dataset:
        """The record of all memories asked about; `state` are their numbers in `MemorySpace`.

        Memories of an interrupted measurement are left out. `check_policy` takes the record.
        """
        n_orders = len(self.presented)
        known = Counter(memory for memory, _ in self._answers.known())
        # The file may also hold longer memories, of measurements with another H.
        memories = [memory for memory, n in known.items() if n == n_orders and len(memory) <= self.memory_length]
        if not memories:
            raise InputError(f"{self.name}: nothing was asked yet, so there is no record")
        self._check()  # a back end may know how it spells the words only after a check
        log_p, censored = self._measured(memories)
        space = MemorySpace(len(self.words), self.memory_length)
        record = record_of(self._game, self._backend, log_p, censored)
        return record.assign_coords(state=[space.state(memory) for memory in memories])

    def _measured(self, memories: Sequence[Memory]) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities and censoring, shape (order, memory, word), after asking for unknown ones."""
        asked = [(memory, place) for place in range(len(self.presented)) for memory in memories]
        log_p, censored = self._answers.get(asked, len(self.words))
        missing = np.flatnonzero(np.isnan(log_p).any(axis=1))
        if len(missing):
            self._check()
            wanted = [asked[number] for number in missing]
            with tqdm(total=len(wanted), desc=self.name, unit="prompt", disable=hidden(self._progress)) as bar:
                log_p[missing], censored[missing] = self._answers.ask(
                    self._backend, self.words, wanted, self._game.prompt, bar, self._sampling
                )
        shape = (len(self.presented), len(memories), len(self.words))
        return log_p.reshape(shape), censored.reshape(shape)

    def _check(self) -> None:
        if not self._checked:
            self._game.check(self._backend)
            self._checked = True


def answers_of(backend: Backend, game: Game, cache: bool | str | os.PathLike[str]) -> Answers:
    """The kept answers of a model in a game; without an identity they are kept in working memory."""
    key = {"format": 1, "identity": backend.identity, **asdict(game)}
    del key["memory_length"]  # longer memories are asked about in the same way
    return RecordCache(cache if backend.identity else False, "asked").answers(key)
