"""The smallest change of what agents say that lets a convention live longer, or shorter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._finite_size.changed_policy import changed_policy
from meanfield._finite_size.least_change import STATIONARY, Changed, LeastChange, Slope, SlopeOf, weights_of
from meanfield._large_deviations.barrier import Barrier, barrier_of, barrier_slope
from meanfield._large_deviations.escape import Landscape, landscape
from meanfield._large_deviations.exits import NoExit
from meanfield._population.population import as_population
from meanfield._population.provenance import stamp
from meanfield._population.single_policy import name_of, single_policy
from meanfield.toolbox._arguments import real_number, whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import ConvergenceError, InputError

RESOLVED = 10.0  # what the barrier changes by, against its error


def prolong(
    policy: xr.Dataset, *, fixed_point: int, n_agents: int, factor: float = 2.0, progress: bool = False
) -> xr.Dataset:
    """The smallest change of a two-word policy that makes a convention live `factor` times as long.

    Among N agents a convention lives for prefactor · exp(N · barrier) rounds (see `lifetime`). The changed policy has
    the barrier Δ + log(factor)/N. The prefactor changes as well, by a factor that does not grow with N; it is left as
    it comes, and the result says what the lifetimes are with it. The other convention is free to live shorter, and
    mostly does.

    The cost is that of `intervention`, Σ_i m_i KL(q'(i) || q(i)). Here the weight m_i is the fraction of agents with
    memory i, averaged over the likeliest path out of the convention of the changed policy (see `escape_path`), with
    times weighted by their contribution p·dx/dt to its action. Memories that are never found there do not change, and
    answers of probability 0 stay at 0. The change is stationary: to first order no policy nearby with the same barrier
    costs less with these weights. Whether a quite different one does is not checked.

    Parameters
    ----------
    policy
        One policy, of two words.
    fixed_point
        Number of the attractor, as in `fixed_points`.
    n_agents
        Number of agents N ≥ 2.
    factor
        How many times as long the convention is to live; below 1 it lives shorter.
    progress
        Show a progress bar. A path takes seconds for memories of five interactions, and a search up to twenty or more.

    Returns
    -------
    Dataset over `state`, the memories with the largest costs first, and `word`. It is a policy that every function
    takes, with

    - `q`, `memory`, `change`, `divergence`, `weight`, `cost` and `total_cost` as for `intervention`;
    - `barrier_before` and `barrier_after`;
    - `lifetime_before` and `lifetime_after` in rounds, with their prefactors; NaN where one is not found;
    - `lifetime_error_before` and `lifetime_error_after`, relative, beside the error of order 1/N of `lifetime`;
    - `derivative` and `derivative_after`, of the barrier with respect to the probability of the first word.

    attrs["residual"] is what a further iteration would change, relative to the whole change.

    Raises
    ------
    InputError
        If the policy has more than two words, there is no such attractor or no single way out of it (`lifetime` lists
        the reasons), `factor` takes the whole barrier, or changes it by less than ten times its error.
    ConvergenceError
        If there is no such change, or none is found, in a number of iterations that is bounded; its `best` is the
        barrier of the policy.

    See Also
    --------
    lifetime : how long conventions live
    intervention : the smallest change that makes the other word strong

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if lead == 0 else 0.98 if lead > 0 else 0.02
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> changed = meanfield.prolong(policy, fixed_point=0, n_agents=20)
    >>> round((changed["lifetime_after"] / changed["lifetime_before"]).item(), 2)
    2.02
    >>> changed["memory"].values[:3].tolist(), changed["change"].values[:3].round(4)
    (['B/A B/A', 'A/A A/A', 'A/B A/B'], array([0.0075, 0.0006, 0.0084]))
    """
    policy = single_policy(policy)
    if policy.sizes["word"] != 2:
        raise InputError(f"policy has {policy.sizes['word']} words: expected 2 for interventions")
    n_agents = whole_number("n_agents", n_agents, 2)
    factor = real_number("factor", factor, above=0)
    ground = landscape(policy, None)
    number = ground.numbered(fixed_point)
    before = barrier_of(ground, number, with_prefactor=True)
    if isinstance(before, NoExit):
        raise InputError(f"fixed_point = {number}: {before.reason}")
    wanted = before.path.barrier + _gain(before, n_agents, factor)
    with tqdm(desc="prolong", unit="policy", disable=not progress, leave=False) as bar:
        known = _Convention(ground, number, before)
        slopes = _slopes(known, abs(wanted - before.path.barrier) / RESOLVED)
        search = LeastChange(policy, slopes, _slope(policy, before), wanted, bar)
        changed = search.found()
    if changed is None or changed.residual > 10 * STATIONARY:
        reason = search.reason if changed is None else f"residual {changed.residual:.1g}"
        raise ConvergenceError(
            f"no smallest change from the barrier {before.path.barrier:.3g} to {wanted:.3g} was found ({reason}): "
            f"a factor nearer to 1 asks for less",
            best=before.path.barrier,
        )
    result = _label(policy, known, search.before, changed, n_agents)
    result = result.assign_attrs(policy=name_of(policy))
    return stamp(result, "prolong", policy, fixed_point=number, n_agents=n_agents, factor=factor)


def _gain(before: Barrier, n_agents: int, factor: float) -> float:
    """What the barrier gains."""
    barrier, error, gain = before.path.barrier, before.path.error, float(np.log(factor)) / n_agents
    if barrier + gain <= 0:
        least = f"above {np.exp(-n_agents * barrier):.2g}"
        raise InputError(f"factor = {factor:g}: expected a number {least}, the chance exp(-NΔ) that the barrier makes")
    if abs(gain) < RESOLVED * error:
        raise InputError(
            f"factor = {factor:g} asks {n_agents} agents for a change of {gain:.1g} of the barrier {barrier:.3g}, "
            f"which is known to {error:.1g}: expected a factor farther from 1 or fewer agents"
        )
    return gain


class _Convention(NamedTuple):
    """An attractor of a policy."""

    ground: Landscape
    number: int
    barrier: Barrier


def _again(known: _Convention, policy: xr.Dataset, *, with_prefactor: bool) -> _Convention | str:
    """The same attractor of another policy, or the reason why it is not there or has no barrier."""
    ground = landscape(policy, None)
    stable, before = ground.attractors, len(known.ground.attractors)
    if len(stable) != before:
        return f"the changed policy has {len(stable)} attractors instead of {before}"
    apart = np.abs(ground.compositions[stable] - known.ground.compositions[known.number]).sum(1)
    number = stable[apart.argmin()]
    barrier = barrier_of(ground, number, with_prefactor=with_prefactor)
    return barrier.reason if isinstance(barrier, NoExit) else _Convention(ground, number, barrier)


def _slope(policy: xr.Dataset, barrier: Barrier) -> Slope:
    (derivative,), (passed,) = barrier_slope(as_population(policy).mixture, barrier)
    return Slope(barrier.path.barrier, derivative, weights_of(passed))


def _slopes(known: _Convention, tolerance: float) -> SlopeOf:
    """Those of its barrier, where its error is small enough."""

    def slope_of(policy: xr.Dataset) -> Slope | str:
        found = _again(known, policy, with_prefactor=False)
        if isinstance(found, str):
            return found
        path = found.barrier.path
        if path.error > tolerance:
            return f"the barrier {path.barrier:.3g} of a changed policy is known to {path.error:.1g} only"
        return _slope(policy, found.barrier)

    return slope_of


def _label(policy: xr.Dataset, known: _Convention, before: Slope, changed: Changed, n_agents: int) -> xr.Dataset:
    result = changed_policy(policy, before, changed, value="the barrier", path="the path out of the attractor")
    after = _again(known, single_policy(result), with_prefactor=True)
    found = None if isinstance(after, str) else after.barrier
    lives, error = (found.lifetime(n_agents), found.lifetime_error(n_agents)) if found else (np.nan, np.nan)
    columns = {
        "barrier_before": ((), before.value, "barrier before"),
        "barrier_after": ((), changed.slope.value, "barrier after"),
        "lifetime_before": ((), known.barrier.lifetime(n_agents), "mean lifetime before", "rounds"),
        "lifetime_after": ((), lives, "mean lifetime after", "rounds"),
        "lifetime_error_before": ((), known.barrier.lifetime_error(n_agents), "relative error of the lifetime before"),
        "lifetime_error_after": ((), error, "relative error of the lifetime after"),
    }
    return result.merge(labelled(columns))
