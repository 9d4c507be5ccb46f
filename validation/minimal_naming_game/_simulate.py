"""The minimal naming game of finite populations: agent by agent on inventories, or in batches on a table of meetings.

The table holds the interactions from which `theory` derives its rate equation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from string import ascii_uppercase

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import one_or_several, shown, stamp, whole_number, word_coords
from theory import minimal_naming_game
from theory.toolbox import check_rule, checked_answers
from validation._engine.arguments import LARGEST_POPULATION
from validation.minimal_naming_game._inventories import MOST_WORDS, play_inventories
from validation.reactions._kernel import Runs
from validation.reactions._protocol import METHODS, Plan, absorption, marked_share, play_protocol, takes_batches
from validation.reactions._transitions import LARGEST_IN_BATCHES, Transition, outcomes_of_rows

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
    _check_bias("p", p, n_words)
    _check_bias("p_invented", p_invented, n_words)
    pi, phi = map(float, checked_answers(accepts))
    if not isinstance(stores_invented, bool):
        raise InputError(f"stores_invented = {stores_invented!r}: expected True or False")
    zealots = _committed(committed, n_words, n_agents)
    singles = _singles(initial, n_words, n_agents - sum(zealots))
    plan = Plan(n_agents, runs, seed, max_rounds, record_rounds, progress)
    counts = _start(n_agents, singles, zealots) if n_words <= MOST_WORDS_IN_BATCHES else {}
    if _takes_batches(method, n_agents, n_words, len(counts)):
        played = _play_in_batches(counts, n_words, (p, p_invented), rule, stores_invented, (pi, phi), plan)
    else:
        played = play_inventories(singles, zealots, (p, p_invented), rule, stores_invented, (pi, phi), plan)
    labels = word_labels(n_words)
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
    options |= {
        "stores_invented": stores_invented,
        "p_invented": p_invented,
        "accepts": f"{pi} {phi}",
        "runs": runs,
        "seed": seed,
        "max_rounds": max_rounds,
        "record_rounds": record_rounds,
        "method": method,
    }
    return stamp(result, "minimal_naming_game_simulation", None, **options)


def word_labels(n_words: int) -> list[str]:
    """A to Z, and from the 27th word on AA, AB, …"""
    letters = [*ascii_uppercase]
    return [*letters, *(first + second for first in letters for second in letters)][:n_words]


def _takes_batches(method: str, n_agents: int, n_words: int, n_kinds: int) -> bool:
    """Whether batches are asked for, or faster."""
    if n_words <= MOST_WORDS_IN_BATCHES:
        return takes_batches(method, n_agents, n_kinds)
    if method not in METHODS or method == "batches":
        raise InputError(
            f"method = {method!r}: expected 'auto' or 'agents' for more than {MOST_WORDS_IN_BATCHES} words"
        )
    if n_agents > LARGEST_POPULATION:
        raise InputError(f"n_agents = {n_agents}: expected at most {LARGEST_POPULATION} for n_words = {n_words}")
    return False


def _play_in_batches(
    counts: Mapping[minimal_naming_game.Agent, int],
    n_words: int,
    biases: tuple[float, float],
    rule: str,
    stores: bool,
    accepts: tuple[float, float],
    plan: Plan,
) -> Runs:
    """The runs; `final` and `recorded` are numbers of agents who hold each word only."""
    agents = list(counts)
    uttered = _words_uttered(n_words, *biases).__getitem__
    events = minimal_naming_game.interactions(agents, uttered, rule, stores_invented=stores, accepts=accepts)
    rows = [Transition(*event) for event in events]
    single = np.array([[agent.lexicon == {word} for agent in agents] for word in range(n_words)]).astype(np.int64)
    outcomes = outcomes_of_rows(rows, {k: k for k in range(len(agents))}, groups=single, watched=single)
    start = np.array(list(counts.values()), dtype=np.int64)
    played = play_protocol(outcomes, start, plan, "batches")
    return played._replace(final=played.final @ single.T)


def _start(n_agents: int, singles: list[int], zealots: list[int]) -> dict[minimal_naming_game.Agent, int]:
    """The kinds of agents that can arise, with their numbers at the start."""
    words = range(len(singles))
    empty = n_agents - sum(singles) - sum(zealots)
    lexicons = [frozenset(held) for size in range(1, len(words) + 1) for held in combinations(words, size)]
    kinds = {minimal_naming_game.Agent(lexicon): 0 for lexicon in lexicons}
    kinds |= {minimal_naming_game.Agent(frozenset({word})): singles[word] for word in words}
    # No lexicon becomes empty, and fewer kinds make shorter batches.
    kinds |= {minimal_naming_game.Agent(frozenset()): empty} if empty else {}
    return kinds | {
        minimal_naming_game.Agent(frozenset({word}), True): zealots[word] for word in words if zealots[word]
    }


def _check_bias(name: str, p: float, n_words: int) -> None:
    if not isinstance(p, (int, float)) or not 0 <= p <= 1 or (n_words != 2 and p != 0.5):
        raise InputError(f"{name} = {p!r}: expected a probability, and 0.5 for n_words = {n_words} other than 2")


def _words_uttered(n_words: int, p: float, p_invented: float) -> dict[frozenset[int], dict[int, float]]:
    """{lexicon: {word: probability}}."""
    words = range(n_words)
    sizes = range(1, n_words + 1)
    uttered = {frozenset(held): dict.fromkeys(held, 1 / len(held)) for k in sizes for held in combinations(words, k)}
    uttered[frozenset()] = dict.fromkeys(words, 1 / n_words)
    if n_words == 2:
        uttered[frozenset(words)] = {0: p, 1: 1 - p}
        uttered[frozenset()] = {0: p_invented, 1: 1 - p_invented}
    return uttered


def _committed(committed: Sequence[int] | Mapping[int, int] | None, n_words: int, n_agents: int) -> list[int]:
    if isinstance(committed, Mapping):
        unknown = [word for word in committed if word not in range(n_words)]
        if unknown:
            raise InputError(f"committed = {committed!r}: expected words from 0 to {n_words - 1}")
        committed = [committed.get(word, 0) for word in range(n_words)]
    zealots = _numbers("committed", [0] * n_words if committed is None else committed, n_words)
    if sum(zealots) > n_agents:
        raise InputError(f"committed = {committed!r}: expected at most n_agents = {n_agents} in all")
    return zealots


def _singles(initial: str | Sequence[int], n_words: int, n_free: int) -> list[int]:
    """Number of uncommitted agents who start with each single word."""
    if isinstance(initial, str):
        if initial not in INITIAL:
            raise InputError(f"initial = {initial!r}: expected {' or '.join(map(repr, INITIAL))}, or numbers of agents")
        if initial == "even" and n_free % n_words:
            raise InputError(f"initial = 'even': expected {n_free} agents to be a multiple of {n_words} words")
        return [n_free // n_words if initial == "even" else 0] * n_words
    singles = _numbers("initial", initial, n_words)
    if sum(singles) > n_free:
        raise InputError(f"initial = {initial!r}: expected at most the {n_free} agents who are not committed")
    return singles


def _numbers(name: str, values: Sequence[int], n_words: int) -> list[int]:
    given = one_or_several(values)
    if len(given) != n_words:
        raise InputError(f"{name} = {shown(values)}: expected {n_words} numbers of agents, one for each word")
    return [whole_number(f"{name}[{word}]", value, 0) for word, value in enumerate(given)]
