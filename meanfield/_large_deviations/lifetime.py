"""Mean time that N agents stay at each attractor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._finite_size.group_size_law import DEFAULT_SIZES
from meanfield._large_deviations.escape import Escape, escapes, lowest
from meanfield._large_deviations.exits import Game, NoExit
from meanfield._large_deviations.prefactor import Prefactor


def lifetime(
    policy: Game,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    masses: Sequence[float] | np.ndarray | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """The mean time for which N agents stay at each attractor before noise takes them away.

    It grows as prefactor · exp(N · barrier). The barrier is the least action of a fluctuation that takes the population
    from the attractor to the saddle (see `escape_path`). The prefactor counts the paths next to it: it follows from the
    fluctuations about the path. In an extinction agents leave states for good, though the rate equation leads back to
    them, as at the end of an epidemic: it takes prefactor · exp(N · barrier)/√N. The rates of several escape paths add
    up. All this holds for pairs of distinct agents that meet at random; the error of a lifetime is of relative order
    1/N, so it means little below N · barrier of about 2. Where agents have two states and change one at a time, the
    exact chain of N agents gives the lifetime: the mean time from the number nearest to the attractor to the number
    nearest to another attractor, or to the end.

    Parameters
    ----------
    policy
        One policy, a population, or a reaction model.
    n_agents
        Distinct population sizes N ≥ 2. Fractions of committed agents are taken as they are, for every N. Default: 48
        sizes from 2 to 100,000.
    masses
        For a reaction model of several conserved classes the fraction of agents in each, as for `fixed_points`.
    progress
        Show a progress bar. A path takes ten seconds or more for memories of five interactions.

    Returns
    -------
    Dataset over `fixed_point`, the attractors by their numbers in `fixed_points`, with

    - `lifetime` (n_agents) = 1/Σ exp(-NΔ)/(prefactor · N^power), over all escape paths, or from the exact chain, in
      rounds (for a reaction model in its unit of time); infinite beyond 1e308, NaN where N agents of an exact chain do
      not tell the attractor from where they go;
    - `barrier` Δ of the lowest escape path and `barrier_error`, an estimate of its error; infinite at an attractor that
      is never left;
    - `prefactor` of this path, in the same unit of time, `prefactor_error`, relative, and `power`: it is multiplied
      by N to this power, 0 over a saddle and -1/2 in an extinction;
    - `saddle`, the number of its saddle among the fixed points, or of the one where agents have died out; -1 if there
      is none; `transition_rates` has them all;
    - `reason`, why numbers are missing, or '';
    - `word_share`, `convention` and `label`, or `composition`, of the attractor.

    attrs["method"] tells which theory applied. An attractor has no barrier if it is the only one and no state dies out,
    if the rate equation leads to it from no saddle, if a fixed point is marginal, if no path is found, if agents of a
    reaction model have more than 64 states there (700 in an extinction; with rates that are functions more than 20
    directions), or if the last agents die out faster than the others relax, as in one of two independent epidemics. One
    unknown escape path makes the lifetime NaN. The prefactor is found for memories of any length; in an
    extinction the others have to relax 1.5 times as fast as the last agents die out. There is none where the path may
    reach the saddle sideways, along a direction in which fluctuations fade more slowly than the unstable one grows: the
    action has no second derivatives there.

    Raises
    ------
    InputError
        If `n_agents` or `masses` is not as described, or `fixed_points` refuses the policy.
    ConvergenceError
        As `fixed_points`.

    See Also
    --------
    escape_path : the fluctuation itself
    transition_rates : where it leads, if there are more than two attractors
    critical_mass : committed agents at which an attractor vanishes for every N
    group_size_law : at which attractor N agents end first

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if lead == 0 else 0.98 if lead > 0 else 0.02
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> found = meanfield.lifetime(policy, n_agents=[10, 50]).sel(fixed_point=0)
    >>> found["barrier"].round(4).item()
    0.5483
    >>> [f"{rounds:.1e}" for rounds in found["lifetime"].values]
    ['2.4e+04', '7.9e+13']
    """
    known = escapes(policy, n_agents, masses, progress)
    numbers = np.array([_numbers(one) for one in known.found]).reshape(-1, 6)
    barrier, error, logarithm, relative, power, saddle = numbers.T
    over = ("fixed_point",)
    columns = {
        "lifetime": known.lifetime,
        "barrier": (over, barrier, "barrier: least action to leave"),
        "barrier_error": (over, error, "error of the barrier"),
        "prefactor": (over, np.exp(logarithm) / known.per_unit, "prefactor of the lifetime", known.unit),
        "prefactor_error": (over, relative, "relative error of the prefactor"),
        "power": (over, power, "power of N by which the prefactor is multiplied"),
        "saddle": (over, saddle.astype(int), "number of the saddle"),
    }
    result = known.labelled("lifetime", columns, {})
    reasons = np.array([_reason(one) or known.too_few for one in known.found], dtype=str)
    result["reason"] = (over, reasons, {"long_name": "why numbers are missing"})
    return result


def _numbers(found: list[Escape] | NoExit) -> tuple[float | int, ...]:
    """Barrier, its error, logarithm of the prefactor, its error and its power of N, and the number of the saddle."""
    if isinstance(found, NoExit):
        return (np.inf if found.forever else np.nan), *[np.nan] * 4, -1
    low = lowest(found)
    if low is None:
        return *[np.nan] * 5, -1
    factor = low.prefactor or Prefactor(np.nan, np.nan, np.nan, np.nan)
    return low.barrier, low.error, factor.logarithm, factor.error, factor.power, low.way.saddle_number


def _reason(found: list[Escape] | NoExit) -> str:
    """The reason of a missing path first."""
    if isinstance(found, NoExit):
        return found.reason
    return next((one.reason for one in sorted(found, key=lambda one: one.path is not None) if one.reason), "")
