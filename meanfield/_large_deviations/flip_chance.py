"""The chance that a committed minority flips N agents in time."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
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
from meanfield._large_deviations.pace import Courses
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
FINER = 10  # times as many points, and evenly spaced ones in Q
POINTS = 2000
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
    drift is the exact eigenvalue at every equilibrium, and to leading order it has the exact noise. Where the share
    moves fast, memories are not adapted. There drift and noise are then multiplied so that the passage takes the time
    of the rate equation.

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

    All are NaN where agents have no single slow mode at most of the word shares; attrs["reason"] says why. It also
    tells if there is none at some word shares, where numbers are interpolated.

    Notes
    -----
    The error of `flipped` is of order 1/N where the share moves slowly. Near the critical mass it is at most 0.03 for
    the policy below and N = 30 to 1,000, and 0.11 for N = 12. Beyond the critical mass, where deadlines of 10 or 30
    rounds are short, the chance is too small by up to 0.21: the largest error of strong followers with H = 2 to 5, and
    N = 24 and 100. Where the new consensus hardly meets the success rate, which then takes chance,
    flips come too late, and the chance is too small by up to 0.8. `committed_minority` tells.

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
    (array([5.]), array([5.2]))
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
            if not line.mostly_known(size):
                continue
            group = _Group(line, size, rounds, success_rate)
            for column, number in enumerate(tried):
                if number < size:
                    flipped[row, column], mean_round[row, column] = group.both(number)
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

    points: Float[np.ndarray, " points"]  # logit Q
    said: Float[np.ndarray, " points"]  # f(Q)
    nodes: Float[np.ndarray, " nodes"]  # logit Q
    modes: Float[np.ndarray, "nodes functions"]  # mobility, itself, others, log(noise), as in SlowMode
    courses: Courses
    gaps: str

    def mostly_known(self, size: int) -> bool:
        """Whether N agents have a slow mode at most of the nodes that they pass."""
        own = _lattice(size)
        return 2 * int(((self.nodes >= own[0]) & (self.nodes <= own[-1])).sum()) > len(own)


def _line(policy: xr.Dataset, word: int, largest: int) -> _Line | str:
    """For groups of up to this size, or why there is none."""
    q, space = policy["q"].values, space_of(policy)
    check_memory(16 * MOST_STEPS * space.n_states, f"memories of {space.memory_length}", "shorter ones")
    classes = closed_classes(q, space, heard=(0, 1))
    if len(classes) > 1:
        return f"agents keep to one of {len(classes)} sets of memories for ever"
    law = StationaryLaw(q, space, classes[0])
    encounters, nodes = Encounters(law, q, word), _lattice(largest)
    found = [encounters.slow_mode(Q) for Q in expit(nodes)]
    # Groups of all sizes pass these, so that none depends on others
    common = [one for node, one in zip(nodes, found, strict=True) if _lattice(2)[0] <= node <= _lattice(2)[-1]]
    missing = [one for one in common if isinstance(one, str)]
    if len(common) <= 2 * len(missing):
        return max(missing, key=missing.count)
    rates = [one.rate for one in common if isinstance(one, SlowMode) and 0 <= one.committed < 0.5]
    if max(rates, default=-np.inf) < FASTEST:
        return "beside no minority do agents keep a word share for 2.5 rounds"
    known = np.array([isinstance(one, SlowMode) for one in found])
    modes = np.array([(*one[:3], np.log(one.noise)) for one in found if isinstance(one, SlowMode)])
    points = np.append(_lattice(largest, FINER), logit(np.linspace(0, 1, POINTS + 1)[1:-1]))
    points = np.sort(points[(points >= nodes[0]) & (points <= nodes[-1])])
    points = points[np.diff(points, prepend=-np.inf) > APART]
    said = encounters.said(expit(points))
    return _Line(points, said, nodes[known], modes, Courses(law, q, word), _gaps(nodes, found))


def _lattice(size: int, finer: int = 1) -> Float[np.ndarray, " nodes"]:
    """Values of logit Q between the ends of the line of N agents, some of those of all larger groups."""
    low, high = floor(logit(LEAST / size) / SPACING), ceil(-logit(MOST / size) / SPACING)
    return SPACING / finer * np.arange(finer * low, finer * high + 1)


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
        self._size, self._rounds, self._courses = size, rounds, line.courses
        self._rule = AgreementRule(size, success_rate)
        low, high = _lattice(size)[[0, -1]]
        near, mine = ((some >= low) & (some <= high) for some in (line.nodes, line.points))
        nodes, points = line.nodes[near], line.points[mine]
        modes = PchipInterpolator(nodes, line.modes[near])(np.clip(points, nodes[0], nodes[-1])).T
        self._Q, self._said = expit(points), line.said[mine]
        self._mobility, self._itself, self._others, self._noise = *modes[:3], np.exp(modes[3])

    def both(self, number: int) -> tuple[float, float]:
        """The chance of a flip and its mean round."""
        lifetime = self._lifetime(number)
        return self._in_time(lifetime), lifetime.mean() / TIME_PER_ROUND + WINDOW / 2

    def _in_time(self, lifetime: Lifetime) -> float:
        """The chance; the rule looks back, on average by half its window."""
        return float(lifetime.over(np.array([TIME_PER_ROUND * (self._rounds - WINDOW / 2)]))[0])

    def smallest(self, chance: float) -> float:
        """The smallest number with this chance, by bisection."""
        low, high = 0, self._size - 1
        if self._in_time(self._lifetime(high)) < chance:
            return np.nan
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._in_time(self._lifetime(middle)) >= chance else (middle, high)
        return float(high)

    def _lifetime(self, number: int) -> Lifetime:
        """Of the old state."""
        Q, said, size, free = self._Q, self._said, self._size, self._size - number
        heard = (number + free * said) / (size - 1)
        drift = self._mobility * (heard - Q) - self._itself / (size - 1) + self._others / free
        share = (number + free * said) / size
        fails = 2 * free * (1 - said) * (number + (free - 1) * said) / (size * (size - 1))
        rate = np.where(share > 0.5, self._rule.per_interaction(fails), 0.0) * size / TIME_PER_ROUND
        committed = number / (size - 1)  # of those whom the others meet
        velocity = self._mobility * (committed + (1 - committed) * said - Q)
        pace = self._courses.pace(Q, said, velocity, committed)
        return lifetime_on(Q, pace * drift, pace * self._noise / free, rate)
