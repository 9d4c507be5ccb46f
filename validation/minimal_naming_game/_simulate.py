"""The minimal naming game of finite populations: agent by agent on inventories, or in batches of meetings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from string import ascii_uppercase
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import one_or_several, shown, stamp, whole_number, word_coords
from theory import minimal_naming_game
from theory.toolbox import check_rule, checked_answers, lexicons, uttered
from validation._engine.arguments import LARGEST_POPULATION
from validation._engine.thresholds import word_thresholds
from validation.minimal_naming_game._inventories_kernel import advance
from validation.reactions._kernel import Runs
from validation.reactions._protocol import (
    METHODS,
    Plan,
    absorption,
    marked_share,
    play_protocol,
    play_runs,
    takes_batches,
)
from validation.reactions._transitions import LARGEST_IN_BATCHES, Transition, outcomes_of_rows

MOST_WORDS = 64  # bits of an inventory
INVENTORY_TYPES = (np.uint16, np.uint64)  # few, since the loops are compiled for each
MOST_WORDS_IN_BATCHES = 6  # as in theory: 64 lexicons, and four times as many pairs with each further word
INITIAL = ("empty", "even")


def simulate(
    n_agents: int,
    *,
    n_words: int = 2,
    p: float = 0.5,
    committed: Sequence[int] | Mapping[int, int] | None = None,
    rule: str = "both",
    initial: str | Sequence[int] = "empty",
    stores_invented: bool = True,
    p_invented: float = 0.5,
    accepts: tuple[float, float] = (1.0, 0.0),
    runs: int,
    seed: int,
    max_rounds: int,
    record_rounds: int | None = None,
    method: str = "auto",
    progress: bool = False,
) -> xr.Dataset:
    """Simulate the minimal naming game with W words exactly; lexicons have any size.

    In an interaction of two distinct agents, a uniformly random ordered pair, the speaker utters a word of its lexicon;
    with an empty lexicon it first invents one of the W words, uniformly at random. A hearer who says yes, as usually if
    it holds the word, keeps only that word (success), and under the rule 'both' so does the speaker; otherwise a hearer
    who does not hold the word adds it.
    Committed agents never change. A round is N interactions. A run ends when all agents, the committed included, hold
    one and the same word and nothing else. Source: [004] SI, Minimal Naming Game Model.

    Parameters
    ----------
    n_agents
        N ≥ 2, committed agents included; at most 2^32 - 1 agent by agent and 10^12 in batches.
    n_words
        W, 1 to 64; in batches at most 6, since they need a table of all pairs of lexicons.
    p
        For W = 2 the probability that an agent with both words utters the first; more words are equally likely.
    committed
        Numbers (not fractions) of agents who always utter this word: one for each word, or {word: number}.
    rule
        Who updates on success: 'both' or 'listener'.
    initial
        Lexicons of the others at the start: 'empty'; 'even', an equal number of agents with each single word; or
        numbers of agents with each single word, shape (W,), the rest being empty.
    stores_invented
        Whether a speaker keeps the word that it invents, as in the standard game; if not, its lexicon stays empty
        unless it collapses to this word on success.
    p_invented
        For W = 2 the probability that an agent with an empty lexicon invents the first word.
    accepts
        (π, φ), the probabilities that a hearer says yes to a word that it holds, and to one that it does not.
    runs, seed, max_rounds, record_rounds, method, progress
        As for `validation.reactions.simulate`.

    Returns
    -------
    Dataset over `run` with

    - `consensus_word`, its label (A to Z, then AA, AB, …), None without consensus; `consensus_interaction`, the number
      of interactions by then, and `consensus_round`, that number over N, both NaN without consensus;
    - `final_single_share` (run, word), the share of agents who hold this word only, at consensus or after `max_rounds`;
    - with `record_rounds`, `single_share` (run, round, word) at the end of each round, round 0 being the start, and
      `success_rate` (run, round) of the round's interactions, NaN in round 0.

    Raises
    ------
    InputError
        If an argument is out of range or contradicts another.

    See Also
    --------
    theory.minimal_naming_game.fixed_points : the limit of many agents

    Examples
    --------
    >>> from validation.minimal_naming_game import simulate
    >>> runs = simulate(1000, runs=20, seed=1, max_rounds=100)
    >>> runs["consensus_word"].to_series().value_counts().to_dict(), runs["consensus_round"].mean().round(1).item()
    ({'A': 12, 'B': 8}, 24.7)

    Committed agents against a consensus on B; in an infinite population it takes 9.8 %:

    >>> for number in (80, 120):
    ...     runs = simulate(1000, committed={0: number}, initial=[0, 1000 - number], runs=20, seed=1, max_rounds=300)
    ...     print((runs["consensus_word"] == "A").mean().item())
    0.0
    1.0
    """
    n_agents = whole_number("n_agents", n_agents, 2, LARGEST_IN_BATCHES)
    n_words = whole_number("n_words", n_words, 1, MOST_WORDS)
    check_rule(rule)
    for name, chance in (("p", p), ("p_invented", p_invented)):
        if not isinstance(chance, (int, float)) or not 0 <= chance <= 1 or (n_words != 2 and chance != 0.5):
            expected = f"expected a probability, and 0.5 for n_words = {n_words} other than 2"
            raise InputError(f"{name} = {chance!r}: {expected}")
    pi, phi = map(float, checked_answers(accepts))
    if not isinstance(stores_invented, bool):
        raise InputError(f"stores_invented = {stores_invented!r}: expected True or False")
    if isinstance(committed, Mapping):
        if not set(committed) <= set(range(n_words)):
            raise InputError(f"committed = {committed!r}: expected words from 0 to {n_words - 1}")
        committed = [committed.get(word, 0) for word in range(n_words)]
    committed = [0] * n_words if committed is None else committed
    zealots = _numbers("committed", committed, n_words, n_agents, f"n_agents = {n_agents} in all")
    n_free = n_agents - sum(zealots)
    if not isinstance(initial, str):
        singles = _numbers("initial", initial, n_words, n_free, f"the {n_free} agents who are not committed")
    elif initial not in INITIAL:
        raise InputError(f"initial = {initial!r}: expected {' or '.join(map(repr, INITIAL))}, or numbers of agents")
    elif initial == "even" and n_free % n_words:
        raise InputError(f"initial = 'even': expected {n_free} agents to be a multiple of {n_words} words")
    else:
        singles = [n_free // n_words if initial == "even" else 0] * n_words
    plan = Plan(n_agents, runs, seed, max_rounds, record_rounds, progress)
    if n_words > MOST_WORDS_IN_BATCHES:
        if method not in METHODS or method == "batches":
            expected = f"expected 'auto' or 'agents' for more than {MOST_WORDS_IN_BATCHES} words"
            raise InputError(f"method = {method!r}: {expected}")
        if n_agents > LARGEST_POPULATION:
            raise InputError(f"n_agents = {n_agents}: expected at most {LARGEST_POPULATION} for n_words = {n_words}")
        kinds, in_batches = {}, False
    else:
        kinds = _kinds(n_agents, singles, zealots)
        in_batches = takes_batches(method, n_agents, len(kinds))
    answers = {"stores_invented": stores_invented, "accepts": (pi, phi)}
    if in_batches:
        played = _play_in_batches(kinds, lambda held: uttered(held, n_words, p, p_invented), rule, answers, plan)
    else:
        played = _play_inventories(singles, zealots, [p, p_invented, pi, phi], rule, stores_invented, plan)
    labels = [*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2))][:n_words]
    named = absorption(played, labels, n_agents)
    share = {"long_name": "share of agents who hold this word only", "units": "1"}
    result = xr.Dataset(
        {
            "consensus_word": named["absorbed_group"],
            "consensus_interaction": named["absorbed_interaction"],
            "consensus_round": named["absorbed_round"],
            "final_single_share": (("run", "word"), played.final / n_agents, share),
        },
        coords={"run": np.arange(len(played.final)), **word_coords(labels), "n_agents": n_agents},
    )
    if record_rounds is not None:
        result["single_share"] = (("run", "round", "word"), played.recorded / n_agents, share)
        result["success_rate"] = marked_share(played, n_agents, "share of interactions that succeed")
        result = result.assign_coords(round=np.arange(played.recorded.shape[1]))
    options = {"n_agents": n_agents, "n_words": n_words, "p": p, "committed": " ".join(map(str, zealots)), "rule": rule}
    options["initial"] = initial if isinstance(initial, str) else " ".join(map(str, singles))
    options |= {"stores_invented": stores_invented, "p_invented": p_invented, "accepts": f"{pi} {phi}"}
    options |= {"runs": runs, "seed": seed, "max_rounds": max_rounds, "record_rounds": record_rounds, "method": method}
    return stamp(result, "minimal_naming_game_simulation", None, **options)


def _numbers(name: str, values: Sequence[int], n_words: int, most: int, told: str) -> list[int]:
    """Numbers of agents, one for each word, of at most `most` in all."""
    given = one_or_several(values)
    if len(given) != n_words:
        raise InputError(f"{name} = {shown(values)}: expected {n_words} numbers of agents, one for each word")
    numbers = [whole_number(f"{name}[{word}]", value, 0) for word, value in enumerate(given)]
    if sum(numbers) > most:
        raise InputError(f"{name} = {values!r}: expected at most {told}")
    return numbers


def _kinds(n_agents: int, singles: list[int], zealots: list[int]) -> dict[minimal_naming_game.Agent, int]:
    """The kinds of agents that can arise, with their numbers at the start."""
    Agent, words = minimal_naming_game.Agent, range(len(singles))
    kinds = {Agent(lexicon): 0 for lexicon in lexicons(len(singles))}
    kinds |= {Agent(frozenset({word})): singles[word] for word in words}
    # No lexicon becomes empty, and fewer kinds make shorter batches.
    empty = n_agents - sum(singles) - sum(zealots)
    kinds |= {Agent(frozenset()): empty} if empty else {}
    return kinds | {Agent(frozenset({word}), True): zealots[word] for word in words if zealots[word]}


def _play_in_batches(
    kinds: Mapping[minimal_naming_game.Agent, int],
    utter: Callable[[frozenset[int]], Mapping[int, float]],
    rule: str,
    answers: Mapping[str, Any],
    plan: Plan,
) -> Runs:
    """The runs; `final` and `recorded` are numbers of agents who hold each word only."""
    agents = list(kinds)
    rows = [Transition(*event) for event in minimal_naming_game.interactions(agents, utter, rule, **answers)]
    words = sorted(frozenset().union(*(agent.lexicon for agent in agents)))
    single = np.array([[agent.lexicon == {word} for agent in agents] for word in words]).astype(np.int64)
    outcomes = outcomes_of_rows(rows, {k: k for k in range(len(agents))}, groups=single, watched=single)
    played = play_protocol(outcomes, np.array(list(kinds.values()), dtype=np.int64), plan, "batches")
    return played._replace(final=played.final @ single.T)


def _play_inventories(
    singles: Sequence[int],
    zealots: Sequence[int],
    probabilities: Sequence[float],
    rule: str,
    stores_invented: bool,
    plan: Plan,
) -> Runs:
    """The runs agent by agent, with `probabilities` of the first of two words, held or invented, and of both answers.

    `singles` and `zealots` are the numbers of free and of committed agents who hold each single word at the start; the
    others hold none. `final` and `recorded` are the numbers of agents who hold each word only; in `counts` the number
    of all others follows. Successes are the marked interactions, words the groups.
    """
    n_words, n_free = len(singles), plan.n_agents - sum(zealots)
    plan = plan.checked(n_words, n_words)
    # Inventories of the free agents, then of the committed ones, in a type that holds W bits: large populations
    # are as fast as they fit into caches.
    kind = next(kind for kind in INVENTORY_TYPES if n_words <= np.iinfo(kind).bits)
    words = np.uint64(1) << np.arange(n_words, dtype=np.uint64)
    held = np.concatenate([words, np.zeros(1, np.uint64), words]).astype(kind)
    agents = np.repeat(held, [*singles, n_free - sum(singles), *zealots])
    first_word, first_invented, *yes = word_thresholds(np.array([[p, 1 - p] for p in probabilities]))[:, 0]
    start = np.add(singles, zealots, dtype=np.int64)
    counts = np.append(start, plan.n_agents - start.sum())
    game = n_free, np.uint64(2**n_words - 1), first_word, first_invented, rule == "listener", stores_invented, *yes

    def more(active: np.ndarray, part: Runs, agents: np.ndarray, n_rounds: int, min_rounds: int) -> None:
        advance(active, part, agents, game, n_rounds, min_rounds)

    return play_runs(plan, counts, start, n_words, agents, plan.n_agents, more)
