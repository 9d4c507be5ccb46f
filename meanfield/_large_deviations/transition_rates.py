"""Rates at which N agents go from one attractor to another, and where they are in the long run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int

from meanfield._finite_size.group_size_law import DEFAULT_SIZES
from meanfield._finite_size.moments import validate_sizes
from meanfield._large_deviations.balance import balanced, closed_classes
from meanfield._large_deviations.birth_death import METHODS, exact_rates
from meanfield._large_deviations.escape import (
    Escape,
    Game,
    added,
    escapes,
    labels_of,
    landscape,
    lowest,
    rate_of_leaving,
    time_unit,
)
from meanfield._large_deviations.exits import ONLY, Extinction, NoExit
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield.toolbox._columns import labelled

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
    n_agents
        Distinct population sizes N ≥ 2. Fractions of committed agents are taken as they are, for every N. Default: 48
        sizes from 2 to 100,000.
    masses
        As for `lifetime`.
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
    sizes = validate_sizes(n_agents)
    ground = landscape(policy, masses)
    found = escapes(ground, progress=progress)
    per_unit, unit = time_unit(policy)
    pairs = _pairs(found, ground.attractors, sizes, per_unit)
    stationary, potential, reason = _law(found, ground.attractors, pairs)
    leaving = np.array([rate_of_leaving(one, sizes, per_unit) for one in found]).reshape(-1, len(sizes))
    exact = exact_rates(ground, sizes)
    if exact:
        pairs.rate[..., exact.few], leaving[:, exact.few] = exact.between, exact.leaving
        few = exact.too_few(sizes)
        pairs.reason[(pairs.reason == "") & ~np.eye(len(found), dtype=bool)] = few
        if exact.stationary is not None:
            stationary[:, exact.few] = exact.stationary
            reason = reason or few
    with np.errstate(over="ignore"):
        lifetimes = np.exp(-leaving)
    over = ("fixed_point", "next_fixed_point")
    columns = {
        "rate": ((*over, "n_agents"), np.exp(pairs.rate), "rate from one attractor to another", f"1/{unit}"),
        "log_rate": ((*over, "n_agents"), pairs.rate, "logarithm of the rate", f"log 1/{unit}"),
        "barrier": (over, pairs.barrier, "barrier: least action to get there"),
        "barrier_error": (over, pairs.error, "error of the barrier"),
        "saddle": (over, pairs.saddle, "number of the saddle"),
        "lifetime": ((over[0], "n_agents"), lifetimes, "mean lifetime", unit),
        "stationary": ((over[0], "n_agents"), stationary, "fraction of time in the long run"),
        "potential": (over[:1], potential, "fall of the stationary distribution with N"),
        "reason": (over, pairs.reason.astype(str), "why numbers are missing or rates are 0"),
    }
    numbers = np.array(ground.attractors, int)
    coords = {
        "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
        "next_fixed_point": ("next_fixed_point", numbers, {"long_name": "attractor that is reached"}),
    }
    labels = labels_of(ground)
    result = labelled(columns, coords).merge(labels).assign_attrs(labels.attrs)
    told = {"reason": reason, "method": METHODS[bool(exact)], "completeness": ground.points.attrs["completeness"]}
    result = result.assign_attrs(told)
    return stamp(result, "transition_rates", None if isinstance(policy, ReactionModel) else policy)


class _Pairs(NamedTuple):
    """Columns of each ordered pair of attractors."""

    rate: Float[np.ndarray, "places places sizes"]  # logarithms
    barrier: Float[np.ndarray, "places places"]
    error: Float[np.ndarray, "places places"]
    saddle: Int[np.ndarray, "places places"]
    reason: np.ndarray


def _pairs(found: list[list[Escape] | NoExit], attractors: list[int], sizes: np.ndarray, per_unit: float) -> _Pairs:
    shape = (len(found), len(found))
    pairs = _Pairs(
        np.full((*shape, len(sizes)), -np.inf),
        np.full(shape, np.inf),
        np.full(shape, np.nan),
        np.full(shape, -1),
        np.full(shape, NOT_DIRECT, dtype=object),
    )
    for i, ways in enumerate(found):
        if isinstance(ways, NoExit):
            pairs.reason[i] = ways.reason
            if not ways.forever:
                pairs.rate[i] = pairs.barrier[i] = np.nan
            continue
        for j, number in enumerate(attractors):
            over = [one for one in ways if one.way.beyond == number]
            if not over:
                continue
            pairs.reason[i, j] = next((one.reason for one in over if one.reason), "")
            pairs.rate[i, j] = added([one.logarithmic_rate(sizes, per_unit) for one in over])
            if any(one.path is None for one in over):
                pairs.barrier[i, j] = np.nan
                continue
            low = lowest(over)
            pairs.barrier[i, j], pairs.saddle[i, j] = low.barrier, low.way.saddle_number
            pairs.error[i, j] = low.path.error if low.path else np.nan
    for i in range(len(found)):
        pairs.rate[i, i], pairs.barrier[i, i], pairs.reason[i, i] = -np.inf, np.nan, ""
    return pairs


def _law(
    found: list[list[Escape] | NoExit], attractors: list[int], pairs: _Pairs
) -> tuple[Float[np.ndarray, "places sizes"], Float[np.ndarray, " places"], str]:
    """The stationary distribution, its exponents, and why they are missing."""
    law = np.full(pairs.rate.shape[1:], np.nan)
    potential = np.full(len(found), np.nan)
    if found == [ONLY]:
        return np.ones_like(law), np.zeros(1), ""
    for number, ways in zip(attractors, found, strict=True):
        if isinstance(ways, NoExit):
            if not ways.forever:
                return law, potential, f"attractor {number}: {ways.reason}"
            continue
        for one in ways:
            if isinstance(one.way, Extinction):
                return law, potential, f"attractor {number} dies out at the fixed point {one.way.beyond}, for good"
            if one.path is None:
                return law, potential, f"attractor {number}: {one.reason}"
            if one.way.beyond < 0:
                lost = f"beyond the saddle {one.way.saddle_number} the rate equation leads to no known attractor"
                return law, potential, lost
    heights = np.where(np.eye(len(found), dtype=bool), np.inf, pairs.barrier)
    closed = closed_classes(heights < np.inf)
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
    law[places] = np.exp(balanced(pairs.rate[among]))
    return law, potential, ""
