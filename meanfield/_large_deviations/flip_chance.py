"""The chance that a committed minority flips N agents in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator
from scipy.special import expit, logit

from meanfield._finite_size.moments import validate_sizes
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_law import StationaryLaw
from meanfield._large_deviations.agreement_rule import WINDOW, AgreementRule
from meanfield._large_deviations.first_passage import Lifetime, lifetime_on
from meanfield._large_deviations.slow_mode import MOST_STEPS, Encounters, SlowMode
from meanfield._parameters.critical_mass import critical_mass
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import names_of, single_policy, space_of, word_index, words_of
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._memory_budget import check_memory

MOST_AGENTS = 100_000
LEAST, MOST = 1e-6, 1e-2  # agents who say the one word or the other at the ends of the line
SPACING = 0.3  # of logit Q between slow modes, which are interpolated
POINTS = 1000  # evenly spaced in logit Q, and twice as many in Q
APART = 1e-6  # points of it
FASTEST = -0.2  # eigenvalue of a mode that may count as slow, beside a minority


def flip_chance(
    policy: xr.Dataset,
    *,
    n_agents: int | Sequence[int] | np.ndarray,
    committed_word: str,
    numbers: Sequence[int] | np.ndarray = (),
    rounds: int = 30,
    success_rate: float = 0.95,
    chance: float = 0.5,
) -> xr.Dataset:
    """The chance that n committed agents among N flip the others in time, without a simulation.

    At the start all agents remember interactions on the old word only; then n of them always say the other. A
    population flips if, after some interaction within the given rounds, `success_rate` of the last 3N interactions have
    succeeded, most of them on the committed word ([001] Fig. 3 and Methods, Committed minorities).

    Near the critical mass agents relax slowly in one direction. The word share Q to which their memories are adapted
    then moves like a particle on a line with the drift and the noise

        dQ = m(Q) [(n + (N - n) f(Q))/(N - 1) - Q] dt + … + √(σ²(Q)/(N - n)) dW,

    with f(Q) what an agent says whose partners say the word with the share Q, and … further terms of order 1/N. The law
    of the time until this diffusion agrees is computed to 1e-6, above and below the critical mass. The slope of its
    drift is the exact eigenvalue at every equilibrium, and to leading order it has the exact noise. Memories lag behind
    a share that moves fast, which the diffusion leaves out.

    Parameters
    ----------
    policy
        One policy, of two words.
    n_agents
        Distinct population sizes N from 2 to 100,000, the committed agents among them.
    committed_word
        The word of the committed agents.
    numbers
        Different numbers n of committed agents, 1 to N - 1, whose chances are wanted; `lifetime` is for none.
    rounds
        Rounds that the minority has, ≥ 3.
    success_rate
        Share of the last 3N interactions, in (0, 1].
    chance
        The chance of a flip that is asked of `smallest`, in (0, 1).

    Returns
    -------
    Dataset over `n_agents` with

    - `flipped` (n_agents, n_committed), the chance of a flip, NaN for n ≥ N;
    - `mean_round` (n_agents, n_committed), the mean round of the flip if it is waited for, infinite beyond 1e308;
    - `smallest`, the smallest number n ≥ 1 of committed agents with at least this chance, NaN if there is none;
    - `mean_field` = N · `critical_mass`, beyond which an infinite population leaves the old state in whatever time; NaN
      if there is none.

    All are NaN where agents have no single slow mode; attrs["reason"] says why. It also tells if there is none at some
    word shares, where numbers are interpolated.

    Notes
    -----
    The error of `flipped` is of order 1/N where the share moves slowly. Near the critical mass it is at most 0.03 for
    the policy below and N = 30 to 1,000, and 0.11 for N = 12. It reaches 0.1 where the new consensus hardly meets the
    success rate. Beyond the critical mass, where deadlines are short, flips come too late, the more so the longer
    memories are: for followers of the majority with H = 3 the chance was too small by up to 0.2, with H = 4 by up to
    0.5. `committed_minority` tells.

    Well below the critical mass `mean_round` is too short, since the likeliest way out leaves the line. Its logarithm
    grows with N by 2 % too little at 0.86 of the critical mass, 6 % at 0.58 and 20 % without committed agents, for the
    policy below. There `lifetime` holds.

    Raises
    ------
    InputError
        If an argument is out of range, or the policy has more than two words.

    See Also
    --------
    validation.naming_game.committed_minority : the same by simulation
    critical_mass : the limit of many agents and rounds
    lifetime : far below the critical mass

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> flips = meanfield.flip_chance(policy, n_agents=30, committed_word="B", numbers=[2, 4, 6], rounds=60)
    >>> flips["flipped"].values.round(2)
    array([[0.  , 0.06, 0.95]])
    >>> flips["smallest"].values, flips["mean_field"].values.round(1)
    (array([6.]), array([5.2]))
    """
    policy = single_policy(policy)
    words = words_of(policy)
    word = word_index(policy, committed_word)
    if len(words) != 2:
        raise InputError(f"policy has {len(words)} words: expected 2 to follow the share of one")
    sizes = validate_sizes(n_agents)
    whole_number("the largest of n_agents", int(sizes.max()), 2, MOST_AGENTS)
    tried = sorted(whole_number("numbers", number, 1, int(sizes.max()) - 1) for number in numbers)
    if len(set(tried)) < len(tried):
        raise InputError(f"numbers = {tried}: expected different numbers of committed agents")
    whole_number("rounds", rounds, WINDOW)
    real_number("success_rate", success_rate, above=0, most=1)
    real_number("chance", chance, above=0, below=1)
    line = _line(policy, word, int(sizes.max()))
    flipped, mean_round = np.full((2, len(sizes), len(tried)), np.nan)
    smallest = np.full(len(sizes), np.nan)
    if not isinstance(line, str):
        for row, size in enumerate(sizes.tolist()):
            group = _Group(line, size, rounds, success_rate)
            for column, number in enumerate(tried):
                if number < size:
                    flipped[row, column], mean_round[row, column] = group.flipped(number), group.mean_round(number)
            smallest[row] = group.smallest(chance)
    limit = critical_mass(policy, word=committed_word, old=words[1 - word])
    over = ("n_agents", "n_committed")
    columns = {
        "flipped": (over, flipped, "chance of a flip"),
        "mean_round": (over, mean_round, "mean round of the flip", "rounds of N interactions"),
        "smallest": (("n_agents",), smallest, f"smallest number with a chance of at least {chance:g}", "agents"),
        "mean_field": (
            ("n_agents",),
            sizes * float(limit["critical_mass"]),
            "critical number of an infinite population",
            "agents",
        ),
    }
    coords = {
        "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
        "n_committed": ("n_committed", tried, {"long_name": "number of committed agents", "units": "agents"}),
        **names_of(policy),
    }
    result = labelled(columns, coords).assign_attrs(
        old_word=words[1 - word],
        committed_word=committed_word,
        reason=line if isinstance(line, str) else line.gaps,
        mean_field_reason=limit.attrs["reason"],
    )
    return stamp(result, "flip_chance", policy, rounds=rounds, success_rate=success_rate, chance=chance)


class _Line(NamedTuple):
    """The line on which Q moves."""

    Q: Float[np.ndarray, " points"]
    said: Float[np.ndarray, " points"]  # f(Q)
    modes: tuple[Float[np.ndarray, " points"], ...]  # as in SlowMode
    gaps: str


def _line(policy: xr.Dataset, word: int, largest: int) -> _Line | str:
    """For groups of up to this size, or why there is none."""
    q, space = policy["q"].values, space_of(policy)
    check_memory(16 * MOST_STEPS * space.n_states, f"memories of {space.memory_length}", "shorter ones")
    classes = closed_classes(q, space, heard=(0, 1))
    if len(classes) > 1:
        return f"agents keep to one of {len(classes)} sets of memories for ever"
    encounters = Encounters(StationaryLaw(q, space, classes[0]), q, word)
    ends = logit(LEAST / largest), -logit(MOST / largest)
    nodes = np.linspace(*ends, int((ends[1] - ends[0]) / SPACING) + 2)
    found = [encounters.slow_mode(Q) for Q in expit(nodes)]
    known = np.array([isinstance(one, SlowMode) for one in found])
    missing = [one for one in found if isinstance(one, str)]
    if known.sum() <= len(missing):
        return max(missing, key=missing.count)
    slow = [one for one in found if isinstance(one, SlowMode)]
    if max((one.rate for one in slow if 0 <= one.committed < 0.5), default=-np.inf) < FASTEST:
        return "beside no minority do agents keep a word share for 2.5 rounds"
    modes = np.array([(*one[:3], np.log(one.noise)) for one in slow])
    points = np.append(np.linspace(*ends, POINTS), logit(np.linspace(0, 1, 2 * POINTS + 1)[1:-1]))
    points = np.sort(points[(points >= ends[0]) & (points <= ends[1])])
    points = points[np.diff(points, prepend=-np.inf) > APART]
    inside = np.clip(points, nodes[known][0], nodes[known][-1])
    mobility, itself, others, log_noise = PchipInterpolator(nodes[known], modes)(inside).T
    Q = expit(points)
    return _Line(Q, encounters.said(Q), (mobility, itself, others, np.exp(log_noise)), _gaps(nodes, found))


def _gaps(nodes: np.ndarray, found: list[SlowMode | str]) -> str:
    """At which word shares there is no slow mode, and why."""
    where = [(expit(node), one) for node, one in zip(nodes, found, strict=True) if isinstance(one, str)]
    if not where:
        return ""
    shares = [share for share, _ in where]
    why = ", ".join(dict.fromkeys(reason for _, reason in where))
    return f"at {len(where)} of {len(nodes)} word shares between {min(shares):.2g} and {max(shares):.2g}: {why}"


class _Group:
    """N agents on this line."""

    def __init__(self, line: _Line, size: int, rounds: int, success_rate: float) -> None:
        self._line, self._size, self._rounds = line, size, rounds
        self._rule = AgreementRule(size, success_rate)

    def flipped(self, number: int) -> float:
        """The chance of a flip; the rule looks back, on average by half its window."""
        times = np.array([TIME_PER_ROUND * (self._rounds - WINDOW / 2)])
        return float(self._lifetime(number).over(times)[0])

    def mean_round(self, number: int) -> float:
        """The mean round of the flip."""
        return self._lifetime(number).mean() / TIME_PER_ROUND + WINDOW / 2

    def smallest(self, chance: float) -> float:
        """The smallest number with this chance, by bisection."""
        low, high = 0, self._size - 1
        if self.flipped(high) < chance:
            return np.nan
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.flipped(middle) >= chance else (middle, high)
        return float(high)

    def _lifetime(self, number: int) -> Lifetime:
        """Of the old state."""
        Q, said, (mobility, itself, others, noise), _ = self._line
        size, free = self._size, self._size - number
        heard = (number + free * said) / (size - 1)
        drift = mobility * (heard - Q) - itself / (size - 1) + others / free
        share = (number + free * said) / size
        fails = 2 * free * (1 - said) * (number + (free - 1) * said) / (size * (size - 1))
        rate = np.where(share > 0.5, self._rule.per_interaction(fails), 0.0) * size / TIME_PER_ROUND
        return lifetime_on(Q, drift, noise / free, rate)
