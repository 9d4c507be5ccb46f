"""When N agents agree, and on which word: the law of their consensus times without a simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield._finite_size.consensus_courses import Family, chosen, family
from meanfield._finite_size.consensus_windows import consensus_by
from meanfield._finite_size.course_noise import WINDOW
from meanfield._finite_size.forced_course import MAX_ROUNDS
from meanfield._finite_size.moments import validate_sizes
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import labels_of, name_of, single_policy, words_of
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SIZES = (100, 1000)
SMALLEST = 10
SHOWN = 1e-6  # chance after the last time
RARE = 1e-9  # chance of a word that has no times


class _Law(NamedTuple):
    """Density of one word's times, and what follows from it."""

    chance: float
    density: np.ndarray
    mode: float
    mean: float
    quantiles: np.ndarray


def consensus_times(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int] | np.ndarray = SIZES,
    quantiles: Sequence[float] = QUANTILES,
    success_rate: float = 0.98,
    first_test: int = 4,
    progress: bool = False,
) -> xr.Dataset:
    """The law of the time in which N agents who start with empty memories agree, for each word that may win.

    Noise makes some groups hesitate before the saddle between two conventions, for a time that grows as the logarithm
    of N. The law is a mixture of courses: of each, the mean failures in a round to order 1/N and their spread give the
    chance that three rounds in a row have few enough. Times count as in [004]: the first round is round 0, and a group
    has agreed when the mean success rate of its last three rounds reaches `success_rate`. With 1,365 states this takes
    about ten seconds.

    It holds for policies of two words with one attractor, or with two and one saddle between them. For the eleven pairs
    of GPT-4o, 100,000 simulated runs each, its distribution function is wrong by at most 0.026 at N = 24, by 0.010 at N
    = 100 and by 0.008 at N = 1,000. Where κ is about 1 it was wrong by up to 0.18 at N = 24 and by 0.042 at N = 100.
    With one attractor it is coarser: for three pairs of Llama 3.1 wrong by 0.07 at N = 100 and by 0.034 at N = 1,000.

    Parameters
    ----------
    policy
        One policy, of two words.
    n_agents
        Distinct population sizes N ≥ 10. `validation.naming_game.exact_population` has smaller ones.
    quantiles
        Rising numbers between 0 and 1.
    success_rate
        Smallest mean success rate of three rounds that counts as consensus, in (0, 1].
    first_test
        Rounds played before the first test, from 3 to 300.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `n_agents` and the winning `word`, with

    - `probability` (n_agents, word), the chance that the word wins;
    - `density` (n_agents, word, consensus_time), of the times in which it does, per round, with sum 1;
    - `mode` and `mean` (n_agents, word), and `quantiles` (n_agents, word, quantile), the smallest time by which so many
      groups that end at the word have agreed;
    - `no_consensus` (n_agents), the chance that a group does not agree within 300 rounds, or at all.

    Numbers of a word that never wins are NaN. attrs["applies"] is 1 if there is such a law. Otherwise it is 0, all
    numbers are NaN and attrs["reason"] says why; it also tells at which of two attractors agents agree too rarely.

    Raises
    ------
    InputError
        If the policy has more than two words, or an argument is out of range.
    ConvergenceError
        If noise leads all courses out of bounds.

    See Also
    --------
    validation.naming_game.consensus_times : the same from simulated runs
    group_size_law : the chance of the strong word

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> law = meanfield.consensus_times(policy, n_agents=[10, 100], quantiles=[0.5])
    >>> law["probability"].values.round(2)
    array([[0.58, 0.42],
           [0.75, 0.25]])
    >>> law["quantiles"].squeeze().values  # the median round
    array([[ 7.,  8.],
           [11., 14.]])
    """
    policy = single_policy(policy)
    sizes = validate_sizes(n_agents)
    if sizes.min() < SMALLEST:
        raise InputError(f"n_agents = {n_agents}: expected at least {SMALLEST} agents")
    q = np.array(quantiles, dtype=float)
    if q.ndim != 1 or not q.size or not ((q > 0) & (q < 1)).all() or (np.diff(q) <= 0).any():
        raise InputError(f"quantiles = {quantiles}: expected rising numbers between 0 and 1")
    real_number("success_rate", success_rate, above=0, most=1)
    first_test = whole_number("first_test", first_test, WINDOW, MAX_ROUNDS)
    if policy.sizes["word"] != 2:
        raise InputError(f"policy has {policy.sizes['word']} words: expected 2 for consensus times")
    courses = family(policy, int(sizes.min()), int(sizes.max()), progress)
    found, reason = [None] * len(sizes), courses
    if isinstance(courses, Family):
        never, reason = _restless(courses, words_of(policy), success_rate)
        if len(never) < len(courses.branches):
            found = [_chances(courses, int(n), never, success_rate, first_test) for n in sizes]
    options = {"success_rate": success_rate, "first_test": first_test}
    return _label(policy, sizes, q, found, reason, options)


def _restless(courses: Family, words: tuple[str, ...], success_rate: float) -> tuple[list[int], str]:
    """The words at whose attractors agents agree too rarely, and what is to be known of them."""
    ends = {one.word: one.failures[:, -1].min() for one in courses.branches}
    never = [word for word, failing in ends.items() if failing > 1 - success_rate]
    told = [
        f"agents at the attractor near {words[word]!r} disagree in {ends[word]:.1%} of interactions" for word in never
    ]
    return never, "; ".join(told)


def _chances(courses: Family, n_agents: int, never: list[int], success_rate: float, first_test: int) -> np.ndarray:
    """The chance of consensus on each word by the end of each round, shape (2, rounds)."""
    # The decimal that was written, so that 98 % of 150 is 147 and not a rounding error more
    needed = math.ceil(Fraction(str(success_rate)) * WINDOW * n_agents)
    found = np.zeros((2, MAX_ROUNDS))
    for one in chosen(courses, n_agents):
        if one.word not in never:
            after = ((0, 0), (0, MAX_ROUNDS - one.failures.shape[1]))
            tables = (np.pad(table, after, mode="edge") for table in (one.failures, one.excess))
            by = consensus_by(*tables, n_agents, WINDOW * n_agents - needed, first_test - 1)
            found[one.word] = one.weights @ by
    return found


def _law(by: np.ndarray, n_times: int, q: np.ndarray) -> _Law:
    chance = float(by[-1])
    if not chance >= RARE:  # or NaN
        return _Law(chance, np.full(n_times, np.nan), np.nan, np.nan, np.full(len(q), np.nan))
    density = np.diff(by, prepend=0.0)[:n_times] / chance
    density = np.append(density, np.zeros(n_times - len(density)))
    return _Law(
        chance,
        density,
        float(density.argmax()),
        float(density @ np.arange(n_times)),
        np.searchsorted(by / chance, q - SHOWN).astype(float),
    )


def _label(
    policy: xr.Dataset,
    sizes: np.ndarray,
    q: np.ndarray,
    found: list[np.ndarray | None],
    reason: str,
    options: dict[str, float],
) -> xr.Dataset:
    """The result; NaN where nothing is found."""
    unknown = np.full((2, 1), np.nan)
    tables = [unknown if one is None else one for one in found]
    ends = [0 if one is None else int(np.searchsorted(one.sum(0), one.sum(0)[-1] - SHOWN)) for one in found]
    n_times = max(ends) + 1
    laws = [[_law(by, n_times, q) for by in table] for table in tables]
    over = ("n_agents", "word")

    def stacked(name: str) -> np.ndarray:
        return np.array([[getattr(law, name) for law in row] for row in laws])

    columns = {
        "density": ((*over, "consensus_time"), stacked("density"), "density of the word's times", "1/round"),
        "mode": (over, stacked("mode"), "most frequent consensus time", "round"),
        "quantiles": ((*over, "quantile"), stacked("quantiles"), "quantiles of the consensus time", "round"),
        "mean": (over, stacked("mean"), "mean consensus time", "round"),
        "probability": (over, stacked("chance"), "chance that the word wins"),
        "no_consensus": ("n_agents", np.clip(1 - stacked("chance").sum(1), 0, 1), "chance of no consensus"),
    }
    label = "consensus time, the first round being 0"
    coords = {
        "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
        **labels_of(policy),
        "consensus_time": ("consensus_time", np.arange(n_times), {"long_name": label, "units": "round"}),
        "quantile": q,
    }
    result = labelled(columns, coords=coords)
    attrs = {"policy": name_of(policy), "applies": int(any(one is not None for one in found)), "reason": reason}
    return stamp(result.assign_attrs(attrs), "consensus_time_law", policy, **options)
