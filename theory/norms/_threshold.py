"""How many entrepreneurs it takes for a norm to emerge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield import InputError, solve
from meanfield.toolbox import check_memory, real_number, real_numbers, stamp, whole_number
from theory.norms._emergence import DAYS
from theory.norms._model import reaction_model
from theory.norms._observables import observables
from theory.norms._operations import default_operations, operations_sha256
from theory.norms._rates import NormRates
from theory.norms._society import AGENTS, STANDARDS, Behaviour, NormAgent, agents_of, behaviour_of
from theory.norms._start import initial_composition, starting_fractions

EVENTUALLY = 100.0  # days
EMERGED = 0.5  # of the agents
NARROW = 1e-6


def entrepreneur_threshold(
    behaviour: str | Behaviour,
    *,
    opposing: float = 0.0,
    operations: xr.Dataset | None = None,
    agents: Sequence[NormAgent] = AGENTS,
    rates: NormRates | None = None,
    times: Sequence[float] = (DAYS, EVENTUALLY),
    points: int = 51,
) -> xr.Dataset:
    """The fraction of entrepreneurs for the standard 'for' above which it emerges, by the rate equation.

    A fraction e of all agents are entrepreneurs for the standard and `opposing` are entrepreneurs against it. The rest
    are ordinary and like the standard in the proportion of the ordinary ones among `agents`. The standard has emerged
    at a time if more than half of all agents accepted it (`reached`). With the default operations one standard finally
    displaces the other, so at late times the share flips from none to all at the threshold; at early times the
    threshold tells which fraction is fast enough.

    The fractions from 0 to 1 - opposing are scanned in equal steps, and an interval with a change is divided until it
    is narrower than 10^-6. Two changes within one step of the scan are missed.

    Parameters
    ----------
    behaviour
        A name of `BEHAVIOURS`, or a `Behaviour`.
    opposing
        Fraction of all agents that are entrepreneurs against the standard, from 0, below 1.
    operations, rates
        As for `emergence`.
    agents
        Agents whose ordinary members give the preferences.
    times
        Times at which the standard may have emerged, in days, increasing, positive.
    points
        Number of scanned fractions, ≥ 3.

    Returns
    -------
    Dataset with

    - `reached` (fraction, time), the share that accepted the standard, and `complying` (fraction, time);
    - `threshold` (time), the fraction above which it has emerged: 0 if it emerges without entrepreneurs, NaN if it does
      not emerge even with the largest fraction. If both standards are on a par without entrepreneurs, rounding errors
      lead from this undecided start to either, and the threshold for late times is 0;
    - `reached_below`, `reached_above` (time), the share less than 10^-6 below and above the threshold, NaN without one;
    - `changes` (time), how often the scan passes between emerged and not: if above 1, the standard also emerges
      somewhere below the threshold.

    Raises
    ------
    InputError
        If an argument is not as described, or no agent is ordinary.

    See Also
    --------
    fixed_points : the states on both sides of it

    Examples
    --------
    One agent in five is an entrepreneur against it. About as many for it make the standard win within two days.

    >>> from theory.norms import entrepreneur_threshold
    >>> found = entrepreneur_threshold("smoking", opposing=0.2, times=[2.0], points=11)
    >>> found["threshold"].values.round(3)
    array([0.193])
    """
    one = behaviour_of(behaviour)
    real_number("opposing", opposing, least=0, below=1)
    points = whole_number("points", points, 3)
    check_memory(1000 * points, f"points = {points}", "fewer points")
    ends = real_numbers(times, "times")
    if ends.ndim != 1 or not ends.size or not ends[0] > 0:
        raise InputError(f"times = {times!r}: expected increasing times above 0")
    operations = default_operations() if operations is None else operations
    society = _Society(one, opposing, operations, agents, rates, ends)
    scan = society.ends(np.linspace(0, 1 - opposing, points))
    found = [_refined(society, scan, k) for k in range(len(ends))]
    names = {
        "threshold": "fraction of entrepreneurs above which the standard emerges",
        "reached_below": "fraction that accepted it with just fewer entrepreneurs",
        "reached_above": "fraction that accepted it with just more entrepreneurs",
    }
    result = scan.assign(
        {
            name: ("time", values, {"long_name": names[name], "units": "1"})
            for name, values in zip(names, np.transpose(found), strict=True)
        }
    )
    changes = np.abs(np.diff((scan["reached"] > EMERGED).astype(int), axis=scan["reached"].get_axis_num("fraction")))
    text = {"long_name": "changes between emerged and not along the scan", "units": "1"}
    result["changes"] = ("time", changes.sum(0), text)
    return stamp(
        result.assign_coords(behaviour=one.name, kind=one.kind),
        "entrepreneur_threshold",
        opposing=float(opposing),
        points=points,
        operations_sha256=operations_sha256(operations),
        **vars(rates or NormRates()),
    )


class _Society:
    """The rate equation's outcome, over the fraction of entrepreneurs for the standard."""

    def __init__(
        self,
        behaviour: Behaviour,
        opposing: float,
        operations: xr.Dataset,
        agents: Sequence[NormAgent],
        rates: NormRates | None,
        times: np.ndarray,
    ) -> None:
        ordinary = [agent for agent in agents_of(agents) if agent.type == "ordinary"]
        if not ordinary:
            raise InputError("agents has no ordinary agent: expected at least one, for the preferences")
        self._preferring = starting_fractions(behaviour, ordinary)
        self._model = reaction_model(operations, behaviour, rates)
        self._opposing, self._times = opposing, times

    def ends(self, fractions: np.ndarray) -> xr.Dataset:
        """`reached` and `complying` (fraction, time) of the standard 'for'."""
        starts = xr.concat([self._start(float(e)) for e in fractions], dim="fraction")
        starts = starts.assign_coords(
            fraction=("fraction", fractions, {"long_name": "fraction of entrepreneurs for the standard", "units": "1"})
        )
        composition = solve(self._model, initial=starts, times=self._times)["composition"].drop_vars("conserved_class")
        seen = observables(self._model, composition).sel(standard="for", drop=True)
        return seen[["reached", "complying"]].transpose("fraction", "time")

    def _start(self, leading: float) -> xr.DataArray:
        rest = max(1 - self._opposing - leading, 0.0)
        mixture = {("entrepreneur", "for"): leading, ("entrepreneur", "against"): self._opposing}
        return initial_composition(
            mixture | {("ordinary", s): rest * self._preferring["ordinary", s] for s in STANDARDS}
        )


def _refined(society: _Society, scan: xr.Dataset, time: int) -> tuple[float, float, float]:
    """(threshold, reached below, reached above) at the time with this number."""
    while True:
        fraction, reached = scan["fraction"].values, scan["reached"].values[:, time]
        emerged = reached > EMERGED
        if not emerged[-1]:
            return np.nan, np.nan, np.nan
        if emerged.all():
            return 0.0, np.nan, np.nan
        above = int(np.flatnonzero(~emerged)[-1]) + 1
        low, high = fraction[above - 1], fraction[above]
        if high - low < NARROW:
            return (low + high) / 2, reached[above - 1], reached[above]
        scan = society.ends(np.linspace(low, high, len(fraction)))
