"""The group-size law: the chance that N agents end at the convention that an infinite population reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import log_ndtr, ndtr, ndtri

from meanfield._finite_size.law_path import LawPath, NoPath, law_path, place
from meanfield._finite_size.moments import validate_sizes
from meanfield._finite_size.next_order import NextOrder, next_order
from meanfield._population.observables import MIXED, success_rate
from meanfield._population.population import Population
from meanfield._population.single_policy import each_policy
from meanfield._population.stacks import as_games
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import Columns
from meanfield.toolbox._errors import InputError

DEFAULT_SIZES = tuple(int(n) for n in np.unique(np.geomspace(2, 1e5, 48).round()))
KNOWN = 1e-3  # error of κ, relative, above which it is told


class _Numbers(NamedTuple):
    """NaN where there is no law, and as `correction` where c is not found."""

    kappa: float
    distance: float
    sigma: float
    correction: float = 0.0
    error: float = 0.0
    success_rate: float = np.nan


def group_size_law(
    policy: xr.Dataset | Population,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    level: float = 0.99,
    order: int = 1,
) -> xr.Dataset:
    """The chance Φ(κ√N - c/√N) that N agents who start with empty memories end at the strong convention.

    Φ is the normal distribution function. κ measures how strongly a population prefers its strong convention: κ²/2 is
    the least action of a fluctuation that takes it from empty memories over the saddle to the other attractor. It is
    the exact rate at which the chance of the weak word falls with N. For weak noise κ√N is the number of standard
    deviations by which noise must push N agents. The law holds for policies with two attractors and one saddle between
    them.

    Order 1 leaves c out. For the eleven pairs of GPT-4o it differs from simulated chances by at most 0.025 at N = 24
    and 0.010 at N = 100. Answers of probability 0 count as 1e-14. κ is infinite if agents with empty memories only ever
    say one word, apart from answers of probability below 1e-14.

    Order 2 has the same κ, and c from all fluctuations about the path of least action: skewness, the shift of the mean,
    and that agents do not meet themselves. The remaining error is of order N^-3/2, and in the tail the chance of the
    weak word has a relative error of order 1/N. The same pairs: at most 0.0006 at N = 24 and 0.0005 at N = 100, where
    2,000,000 simulated runs have a standard error of 0.0004. Where c is of the order of 1, as for policies with strict
    answers, small groups need higher orders: such a law was off by 0.03 at N = 10. For memories of five interactions
    order 1 takes about half a second and order 2 two seconds, and more where the saddle is slow.

    Parameters
    ----------
    policy
        One policy, of two words, a stack over model and pair (a result for each), or a population, whose committed
        agents count among the N.
    n_agents
        Distinct population sizes N ≥ 2. Default: 48 of them from 2 to 100,000.
    level
        Chance that defines the critical size, between 1/2 and 1.
    order
        1 or 2.

    Returns
    -------
    Dataset with

    - `kappa`, `correction` = c and `correction_error`, the numerical error of c, not that of the law; both are 0 for
      order 1 and for infinite κ;
    - `probability` over `n_agents`, and `log_weak_probability`, the natural logarithm of 1 - `probability`;
    - `n_critical`, the size from which on the chance is at least `level`: κ√N - c/√N = Φ⁻¹(level);
    - `strong_word`, the word that leads at the attractor which the rate equation reaches from empty memories; '' if
      there is no law, or agents treat both words alike, so that κ = 0;
    - `success_rate`, how often two agents say the same at the attractors, the smaller of both: 1 less what noise keeps
      off the conventions;
    - `distance` and `sigma`, with κ = distance/σ. For weak noise, the distance is the share of agents who would turn an
      infinite population if they started with memories of the weak word only, and σ/√N is the standard deviation of the
      noise in the same unit. Both are NaN if κ is infinite or 0.

    attrs["applies"] is 1 if there is such a law. Otherwise it is 0, the numbers are NaN and attrs["reason"] says why.
    If c is not found, `correction` is NaN and counts as 0, and attrs["reason"] says so. In a stack both are variables.

    Raises
    ------
    InputError
        If the policy has more than two words, an argument is out of range, or the sizes would take more than 16 GiB of
        memory (or the GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    validation.collective_bias : the law beside simulated runs
    finite_size : mean and variance over time
    sensitivity : which memories κ hangs on

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> law = meanfield.group_size_law(policy, n_agents=[10, 100, 1000])
    >>> law["strong_word"].item(), law["kappa"].round(3).item()
    ('A', 0.069)
    >>> law["probability"].values.round(3)
    array([0.587, 0.755, 0.986])
    >>> law["n_critical"].round().item()
    1132.0
    >>> law = meanfield.group_size_law(policy, n_agents=[10, 100, 1000], order=2)
    >>> law["probability"].values.round(3)
    array([0.585, 0.755, 0.986])
    """
    sizes = validate_sizes(n_agents)
    level = real_number("level", level)
    if not 0.5 < level < 1:
        raise InputError(f"level = {level}: expected a chance between 1/2 and 1, as in 0.99")
    order = whole_number("order", order, 1, 2)
    games = as_games(policy)
    if (n_words := len(games.words[0])) != 2:
        raise InputError(f"policy has {n_words} words: expected 2 for the group-size law")
    models = [policy] if isinstance(policy, Population) else each_policy(policy)
    laws = [_law_of(model, order) for model in models]
    columns = [_columns(numbers, word, sizes, level) for numbers, word, _ in laws]
    applies = [int(not np.isnan(numbers.kappa)) for numbers, *_ in laws]
    result = games.labelled(columns, applies=applies, reason=[reason for *_, reason in laws])
    result = result.assign_coords(n_agents=("n_agents", sizes, {"long_name": "number of agents"}))
    return games.stamped(result, "group_size_law", level=level, order=order)


def _law_of(model: xr.Dataset | Population, order: int) -> tuple[_Numbers, str, str]:
    """The numbers, the strong word, and why there is a law or none."""
    found = law_path(model)
    if isinstance(found, NoPath):
        unknown = np.nan if np.isnan(found.kappa) else 0.0
        agreed = np.nan if found.points is None else _agreed(found.points)
        return _Numbers(found.kappa, np.nan, np.nan, unknown, unknown, agreed), found.word, found.reason
    kappa, unit, missing = found.path.kappa, _unit(found), ""
    numbers = _Numbers(kappa, kappa**2 / unit, kappa / unit, success_rate=_agreed(found.points))
    if order == 2:
        second = next_order(found.path)
        if isinstance(second, str):
            missing, second = f"; the next order is left out: {second}", NextOrder(np.nan, np.nan)
        numbers = numbers._replace(correction=second.correction, error=second.error)
    return numbers, found.words[0], _law(found) + missing


def _agreed(points: xr.Dataset) -> float:
    """How often two agents say the same at the attractors, the smaller of both."""
    return float(success_rate(points["word_share"].values[[0, 2]]).min())


def _law(found: LawPath) -> str:
    """Why this landscape has a group-size law, and its reservations."""
    kinds = found.points["kind"].values.tolist()
    words = tuple(str(word) for word in found.points["word"].values)
    mixed = [place(words, found.points.isel(fixed_point=i)) for i in (0, 2) if kinds[i] == MIXED]
    reserve = f"; noise keeps a part of the agents off the convention {' and '.join(mixed)}" if mixed else ""
    if found.words[0] == found.words[1]:
        reserve += f"; {found.words[0]!r} leads at both attractors"
    if found.path.error > KNOWN:
        reserve += f"; κ is known to {found.path.error:.1%}"
    return f"two attractors with one saddle between them{reserve}"


def _unit(found: LawPath) -> float:
    """The momentum of an agent who starts with memories of the weak word only, relative to an empty memory."""
    effect, mixture = found.path.p[0], found.path.mixture
    weak_word = 1 if found.strong == 0 else 0  # fixed points come by falling share of the first word
    return abs(mixture.fractions @ (effect[:, mixture.space.consensus_state(weak_word)] - effect[:, 0]))


def _columns(numbers: _Numbers, word: str, sizes: np.ndarray, level: float) -> Columns:
    kappa, correction = numbers.kappa, np.nan_to_num(numbers.correction)
    deviations = kappa * np.sqrt(sizes) - correction / np.sqrt(sizes)
    return {
        "kappa": ((), kappa, "kappa"),
        "correction": ((), numbers.correction, "c, which moves the law by c/√N"),
        "correction_error": ((), numbers.error, "numerical error of c"),
        "probability": (("n_agents",), ndtr(deviations), "predicted chance to end at the strong word"),
        "log_weak_probability": (("n_agents",), log_ndtr(-deviations), "logarithm of the chance to end elsewhere"),
        "n_critical": ((), _critical_size(kappa, correction, level), f"group size with a chance of {level:g}"),
        "distance": ((), numbers.distance, "distance to the saddle's stable manifold"),
        "sigma": ((), numbers.sigma, "noise across the saddle's stable manifold, for one agent"),
        "success_rate": ((), numbers.success_rate, "success rate at the attractors, the smaller"),
        "strong_word": ((), word, "word that leads where the rate equation goes from empty memories", ""),
    }


def _critical_size(kappa: float, correction: float, level: float) -> float:
    """The larger N with κ√N - c/√N = Φ⁻¹(level); 0 if the chance is larger for all N, infinite if it never is."""
    needed = ndtri(level)
    if np.isinf(kappa) or kappa == 0:
        return 0.0 if kappa else np.inf
    square = needed**2 + 4 * kappa * correction
    return ((needed + np.sqrt(square)) / (2 * kappa)) ** 2 if not square < 0 else 0.0
