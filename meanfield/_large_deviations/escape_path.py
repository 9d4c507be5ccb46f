"""The likeliest fluctuation that takes a population out of an attractor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._finite_size.law_path import NoPath, law_path
from meanfield._large_deviations.escape import escape, lowest
from meanfield._large_deviations.exits import Game, NoExit, Path, landscape
from meanfield._numerics.trajectory import halves, remaining
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import as_population, without_component
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import names_of
from meanfield._reactions.solve import state_coords
from meanfield.core._path_search import action_rates
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import InputError


def escape_path(
    policy: Game,
    *,
    fixed_point: int | None = None,
    saddle: int | None = None,
    masses: Sequence[float] | np.ndarray | None = None,
) -> xr.Dataset:
    """The likeliest path by which noise takes many agents to a saddle, from the attractor beside it or empty memories.

    N agents follow a trajectory x(t) with a probability of exp(-N S) to leading order. The path of least action S obeys
    Hamilton's equations

        dx/dt = ∂h/∂p,  dp/dt = -∂h/∂x,   h(x, p) = ½ [Σ_ab g_ab g_ba - 1],
        g_ab = Σ_i x_i q_a(i) exp(p_Γ(i,a,b) - p_i),

    from x = attractor to x = saddle with p = 0 at both ends, so h = 0. From empty memories it starts with p ≠ 0. In it
    an agent's move from i to k is exp(p_k - p_i) times as frequent as usual. Beyond the saddle the population needs no
    more luck. Where agents die out, the path ends with the momentum log v, with v the probability that a single one of
    them dies out with all its offspring.

    Parameters
    ----------
    policy
        One policy, a population, or a reaction model.
    fixed_point
        Number of the attractor, as in `fixed_points`. Default: the path from empty memories, whose action is κ²/2 of
        `group_size_law`, for two words and two attractors.
    saddle
        Number of the saddle over which the path leads, or of the fixed point where agents have died out. Default: that
        of the lowest barrier.
    masses
        As for `lifetime`.

    Returns
    -------
    Dataset over `time`, which starts next to the attractor and ends next to the saddle, with

    - `composition` and `momentum` p (state), for a population (component, state); p is known up to a number for each
      conserved class and NaN in states that agents at this attractor never reach;
    - `word_share` (word) of all agents, for policies and populations;
    - `action` so far, ∫ p·dx;
    - `hamiltonian` h, which is 0 on the exact path, from empty memories where p has faded;
    - `weight` of each time in integrals over all times, with those before and after the path.

    attrs["barrier"] is the action up to the saddle, attrs["barrier_error"] an estimate of its error, attrs["saddle"]
    the saddle's number.

    Raises
    ------
    InputError
        If there is no such attractor or saddle, or no escape path (`lifetime` lists the reasons).

    See Also
    --------
    meanfield.core.action : derivatives of the action with respect to parameters of your own
    meanfield.core.log_lifetime : derivatives of the lifetime, with its prefactor
    lifetime : how long it takes until this happens
    transition_rates : how often it happens over each saddle
    group_size_law : the law for fluctuations from empty memories

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most, and errs
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if lead == 0 else 0.98 if lead > 0 else 0.02
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> path = meanfield.escape_path(policy, fixed_point=0)
    >>> path["word_share"].sel(word="A").values[[0, -1]].round(2)
    array([0.98, 0.5 ])
    >>> round(path.attrs["barrier"], 4)
    0.5483
    """
    if fixed_point is None:
        return _from_empty_memories(policy, saddle, masses)
    ground = landscape(policy, masses)
    number = ground.numbered(fixed_point)
    ways = ground.ways_out(number)
    if isinstance(ways, NoExit):
        raise InputError(f"fixed_point = {number}: {ways.reason}")
    known = [way.saddle_number for way in ways]
    if saddle is not None:
        saddle = whole_number("saddle", saddle, 0, ground.points.sizes["fixed_point"] - 1)
        if saddle not in known:
            raise InputError(f"saddle = {saddle}: expected one next to the attractor {number}: {known}")
        ways = [ways[known.index(saddle)]]
    escapes = [escape(ground, way, with_prefactor=False) for way in ways]
    found = lowest(escapes)
    if found is None or found.path is None:
        reason = next(one.reason for one in escapes if one.path is None)
        raise InputError(f"fixed_point = {number}: {reason}")
    x, p = found.way.everywhere(found.path.x, 0.0), found.way.everywhere(found.path.p, np.nan)
    return _labelled(policy, found.path, x, p, found.way.saddle_number, fixed_point=number)


def _from_empty_memories(policy: Game, saddle: int | None, masses: object) -> xr.Dataset:
    if isinstance(policy, ReactionModel):
        raise InputError("fixed_point = None: expected the number of an attractor of a ReactionModel")
    complaints = [
        f"{name} = {value}: expected None without a fixed_point"
        for name, value in (("saddle", saddle), ("masses", masses))
        if value is not None
    ]
    if complaints:
        raise InputError("; ".join(complaints))
    population = as_population(policy)
    if len(population.words) != 2:
        raise InputError(f"policy has {len(population.words)} words: expected 2 without a fixed_point")
    law = law_path(policy)
    if isinstance(law, NoPath):
        raise InputError(law.without_slope(population.name))
    found = law.path
    x, p = (values.reshape(len(values), -1) for values in (found.x, found.p))
    work, energy = action_rates(tuple(found.mixture), found.x, found.p)
    # From empty memories on; p decays after the last node
    barrier, rest = found.kappa**2 / 2, work[-1] / (2 * found.ends.growth)
    action = barrier - rest - remaining(halves(work[:, None])[:, 0] * found.mesh.pace, 1.0)
    path = Path(found.time, x, p, action, energy, barrier, 2 * found.error * barrier, found.weights)
    return _labelled(policy, path, x, p, 1)


def _labelled(policy: Game, path: Path, x: np.ndarray, p: np.ndarray, saddle: int, **options: int) -> xr.Dataset:
    """A path whose x and p are those of all states."""
    time, attrs = path.time, {"barrier": path.barrier, "barrier_error": path.error, "saddle": saddle}
    rest = {
        "weight": (("time",), path.weight, "weight in integrals over all times"),
        "action": (("time",), path.action, "action from the attractor"),
        "hamiltonian": (("time",), path.h, "Hamiltonian"),
    }
    if isinstance(policy, ReactionModel):
        over = ("time", "state")
        columns = {"composition": (over, x, "fraction of agents"), "momentum": (over, p, "momentum")}
        coords = {**state_coords(policy), "time": ("time", time, {"long_name": "time", "units": policy.time_unit})}
        return stamp(labelled({**columns, **rest}, coords).assign_attrs(attrs), "escape_path", **options)
    population = as_population(policy)
    mixture, shape = population.mixture, population.mixture.q.shape[:2]
    x, p = (values[:, : shape[0] * shape[1]].reshape(-1, *shape) for values in (x, p))
    share = np.einsum("nmi,mia->na", x, mixture.q) + mixture.committed
    over, agents = ("time", "component", "state"), np.where(mixture.share == 0, 1.0, mixture.share)
    columns = {
        "word_share": (("time", "word"), share, "word share"),
        "composition": (over, x / agents[:, None], "fraction of agents of each kind"),
        "momentum": (over, p, "momentum"),
    }
    coords = {
        "time": ("time", time, {"long_name": "time", "units": "half rounds"}),
        "round": ("time", time / TIME_PER_ROUND, {"long_name": "population round"}),
        **population.coords,
    }
    result = without_component(labelled({**columns, **rest}, coords), policy)
    attrs["policy"] = population.name
    return stamp(result.assign_coords(names_of(policy)).assign_attrs(attrs), "escape_path", policy, **options)
