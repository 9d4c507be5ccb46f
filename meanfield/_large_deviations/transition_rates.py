"""Rates at which N agents go from one attractor to another, and where they are in the long run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.sparse import csr_array

from meanfield._finite_size.group_size_law import DEFAULT_SIZES
from meanfield._fixed_points.closed_classes import never_left
from meanfield._large_deviations.birth_death import balanced
from meanfield._large_deviations.escape import Escapes, added, escapes, lowest
from meanfield._large_deviations.exits import ONLY, Game, NoExit

NOT_DIRECT = "no saddle leads directly from one to the other"


def transition_rates(
    policy: Game,
    *,
    n_agents: int | Sequence[int] | np.ndarray = DEFAULT_SIZES,
    masses: Sequence[float] | np.ndarray | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Rates at which noise takes N agents from each attractor to each other one, and their stationary distribution.

    From one side of a saddle with one unstable direction the rate equation leads to one attractor, from the other side
    to another. N agents go from the first to the second at the rate

        k = Σ exp(-NΔ)/T,

    a sum over the saddles between them, with barrier Δ and prefactor T as for `lifetime`. Over long times the
    population is a Markov chain of attractors with these rates, whose stationary distribution π obeys Σ_i π_i k_ij =
    π_j Σ_i k_ji. Rates and probabilities are right up to factors 1 + O(1/N) and mean little where NΔ is below about 2.
    Where agents have two states and change one at a time, the rates come from the exact chain, as for `lifetime`.

    Parameters
    ----------
    policy
        One policy, a population, or a reaction model.
    n_agents, masses
        As for `lifetime`; default: 48 sizes from 2 to 100,000.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `fixed_point`, the attractors by their numbers in `fixed_points`, and `next_fixed_point`, the same
    attractors as places to go to, with

    - `rate` (fixed_point, next_fixed_point, n_agents) per round, for a reaction model per unit of its time; 0 on the
      diagonal, between attractors without a common saddle, and below 1e-308;
    - `log_rate`, its natural logarithm, for any N;
    - `barrier` (fixed_point, next_fixed_point) of the lowest saddle between them, and `barrier_error`; infinite where
      there is none;
    - `saddle` (fixed_point, next_fixed_point), its number among the fixed points, or -1;
    - `lifetime` (fixed_point, n_agents), the inverse of the rate over all saddles and of all extinctions;
    - `stationary` (fixed_point, n_agents), the fraction of time that N agents spend at each attractor in the long run;
    - `potential` (fixed_point): `stationary` falls as exp(-N · potential); 0 at the commonest attractor;
    - `reason` (fixed_point, next_fixed_point), why numbers are missing or rates 0, or '';
    - `word_share`, `convention` and `label`, or `composition`, of the attractor.

    Where there is no prefactor (see `lifetime`), `rate`, `lifetime` and `stationary` are NaN, but
    `barrier` and `potential` are known. attrs["reason"] says why `stationary` or `potential` is missing, for
    example because agents die out for good, or is ''.
    attrs["method"] tells which theory applied; attrs["completeness"] is from `fixed_points`: an attractor that its
    search misses is missing here.

    Raises
    ------
    InputError
        If `n_agents` or `masses` is not as described, or `fixed_points` refuses the policy.
    ConvergenceError
        As `fixed_points`.

    See Also
    --------
    lifetime : of each attractor
    escape_path : the fluctuation that leads over a saddle

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most, A if in doubt, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.95 if lead > 0 else 0.05
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> found = meanfield.transition_rates(policy, n_agents=[10, 50, 100])
    >>> found["barrier"].values.round(4)  # A first
    array([[   nan, 0.2902],
           [0.199 ,    nan]])
    >>> found["stationary"].sel(fixed_point=0).values.round(3)
    array([0.707, 0.989, 1.   ])
    """
    known = escapes(policy, n_agents, masses, progress)
    rate, barrier, error, saddle, reasons = _pairs(known)
    stationary, potential, reason = _law(known, rate, barrier)
    exact = known.exact
    if exact:
        rate[..., exact.few] = exact.between
        reasons[(reasons == "") & ~np.eye(len(known.found), dtype=bool)] = known.too_few
        if exact.stationary is not None:
            stationary[:, exact.few] = exact.stationary
            reason = reason or known.too_few
    over = ("fixed_point", "next_fixed_point")
    columns = {
        "rate": ((*over, "n_agents"), np.exp(rate), "rate from one attractor to another", f"1/{known.unit}"),
        "log_rate": ((*over, "n_agents"), rate, "logarithm of the rate", f"log 1/{known.unit}"),
        "barrier": (over, barrier, "barrier: least action to get there"),
        "barrier_error": (over, error, "error of the barrier"),
        "saddle": (over, saddle, "number of the saddle"),
        "lifetime": known.lifetime,
        "stationary": ((over[0], "n_agents"), stationary, "fraction of time in the long run"),
        "potential": (over[:1], potential, "fall of the stationary distribution with N"),
        "reason": (over, reasons.astype(str), "why numbers are missing or rates are 0"),
    }
    numbers = np.array(known.ground.attractors, int)
    further = {"next_fixed_point": ("next_fixed_point", numbers, {"long_name": "attractor that is reached"})}
    told = {"reason": reason, "completeness": known.ground.points.attrs["completeness"]}
    return known.labelled("transition_rates", columns, further, **told)


def _pairs(known: Escapes) -> tuple[np.ndarray, ...]:
    """Logarithms of rates, barriers, their errors, saddles and reasons of each ordered pair of attractors."""
    shape = (len(known.found), len(known.found))
    rate, barrier = np.full((*shape, len(known.sizes)), -np.inf), np.full(shape, np.inf)
    error, saddle, reason = np.full(shape, np.nan), np.full(shape, -1), np.full(shape, NOT_DIRECT, dtype=object)
    for i, ways in enumerate(known.found):
        if isinstance(ways, NoExit):
            reason[i] = ways.reason
            if not ways.forever:
                rate[i] = barrier[i] = np.nan
            continue
        for j, number in enumerate(known.ground.attractors):
            over = [one for one in ways if one.way.beyond == number]
            if not over:
                continue
            reason[i, j] = next((one.reason for one in over if one.reason), "")
            rate[i, j] = added([one.logarithmic_rate(known.sizes, known.per_unit) for one in over])
            low = lowest(over)
            barrier[i, j] = np.nan if low is None else low.barrier
            if low is not None:
                error[i, j], saddle[i, j] = low.error, low.way.saddle_number
    same = np.arange(len(known.found))
    rate[same, same], barrier[same, same], reason[same, same] = -np.inf, np.nan, ""
    return rate, barrier, error, saddle, reason


def _law(known: Escapes, rate: np.ndarray, barrier: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """The stationary distribution, its exponents, and why they are missing."""
    found, law = known.found, np.full(rate.shape[1:], np.nan)
    potential = np.full(len(found), np.nan)
    if found == [ONLY]:
        return np.ones_like(law), np.zeros(1), ""
    for number, ways in zip(known.ground.attractors, found, strict=True):
        if isinstance(ways, NoExit):
            if not ways.forever:
                return law, potential, f"attractor {number}: {ways.reason}"
            continue
        for one in ways:
            if one.way.dies_out:
                return law, potential, f"attractor {number} dies out at the fixed point {one.way.beyond}, for good"
            if one.path is None:
                return law, potential, f"attractor {number}: {one.reason}"
            if one.way.beyond < 0:
                lost = f"beyond the saddle {one.way.saddle_number} the rate equation leads to no known attractor"
                return law, potential, lost
    heights = np.where(np.eye(len(found), dtype=bool), np.inf, barrier)
    closed = never_left(csr_array(heights < np.inf))
    if len(closed) != 1:
        return law, potential, f"{len(closed)} sets of attractors are never left: the start decides"
    (places,) = closed
    among = np.ix_(places, places)
    law[:], potential[:] = 0.0, np.inf
    exponents = balanced(-heights[among], np.maximum)
    potential[places] = exponents.max() - exponents
    missing = [one for ways in found if not isinstance(ways, NoExit) for one in ways if one.prefactor is None]
    if missing:
        law[places] = np.nan
        return law, potential, missing[0].reason
    law[places] = np.exp(balanced(rate[among]))
    return law, potential, ""
