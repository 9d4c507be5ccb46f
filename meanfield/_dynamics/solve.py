"""Solutions of the rate equation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield._dynamics.recurrence import STEADY, follow
from meanfield._population.compositions import validate_fractions
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.mixture import Edges, Mixture
from meanfield._population.observables import convention, entropy, label_of, leading_word, success_rate
from meanfield._population.policy_schema import validate_policy
from meanfield._population.population import Population
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import space_of
from meanfield._population.trajectories import MAX_TIME, Tolerances, Trajectories
from meanfield._reactions.solve import solve_reactions
from meanfield.toolbox._arguments import increasing_times, real_number
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import in_order, real_numbers
from meanfield.toolbox._memory_budget import check_memory

COMPOSITION_DIMS = ("component", "state")
RESULT_DIMS = ("time", "round", "word")
# As measured, of each solution
BYTES_A_SHARE = 40  # for each word and time
BYTES_A_FRACTION = 90  # for each state
NAMES = {
    "attractor": (convention, "convention at the end"),
    "label": (label_of, "name of the end"),
    "leading_word": (leading_word, "word of the majority at the end"),
}


def solve(
    policies: xr.Dataset | Population | ReactionModel,
    *,
    initial: xr.DataArray | np.ndarray | None = None,
    times: Sequence[float] | np.ndarray | None = None,
    max_time: float | None = None,
    rtol: float = 1e-8,
    atol: float = 1e-11,
) -> xr.Dataset:
    """Integrate the rate equation from time 0 and return the word share, or the composition, over time.

    For policies and populations the equation is dx/dt = A(Q)ᵀx - x, and two units of time are one population round
    ([004] Eq. 24 has the factor 2 that Eq. 27 absorbs). For a reaction model the fraction of agents in each conserved
    class stays constant up to rounding errors. A population with a `degree` is solved in the pair approximation, which
    starts with independent neighbours; attrs["method"] is 'mean field' or 'pair approximation'. The integrator is
    Tsitouras' method of order 5 with adaptive steps; for stiff reaction models it is Kvaerno's of order 5 (diffrax).

    A trajectory of policies stops where max|dx/dt| < 1e-8, which may be a saddle, or at `max_time`; the result repeats
    its end at later times. A trajectory that still moves at `max_time` is followed for another 200 units of time, or
    for 2000 if it has turned back at least once, so that `outcome` can tell a 'limit cycle' from a 'slow transient'.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, a population, or a reaction model. A stack is solved as one batch.
    initial
        Initial composition: fractions that sum to 1, with dims (state). For a population the dims are (component,
        state), or (state) if all components start alike. A DataArray is aligned by its coordinates; its further dims
        are a batch of starts and appear in the result. Default: empty memories; required for a reaction model.
    times
        Times at which to save, shape (T,), increasing, ≥ 0, in the model's unit of time for a reaction model. Default:
        0 to 200 (100 rounds) in steps of 0.5; required for a reaction model.
    max_time
        Longest time to wait for a steady state. Default 2000, the 1,000 rounds of the papers' simulations. Not for a
        reaction model, which is solved up to the last of `times`.
    rtol, atol
        Tolerances of the step size control.

    Returns
    -------
    Dataset over model and pair (as in `policies`) and the further dims of `initial`, with

    - `word_share` (time, word), `success_rate` = Σ_w Q_w² (time) and `entropy` = -Σ_w Q_w ln Q_w (time);
    - `composition` (state; component, state for a population), `residual` = max|dx/dt| and `end_time` at the end;
    - `outcome` ('steady', 'limit cycle' or 'slow transient'), `steady`, and `period` of a limit cycle;
    - `attractor`: the word on which the uncommitted agents agree at the end, or 'mixed' if their success rate is below
      0.98; `label`, which names their majority in any case ('mostly A (0.97)'), and `leading_word`, the word of the
      majority, '' without one.

    For a reaction model: Dataset over the further dims of `initial` with `composition` (time, state) and `residual` =
    max|dx/dt| (time). The coordinate `conserved_class` (state) holds `model.classes`.

    Raises
    ------
    InputError
        If an argument is not as described, the last time takes more than a million steps, or the batch would take more
        than 16 GiB of memory (or the GiB in the environment variable MEANFIELD_MEMORY).

    See Also
    --------
    fixed_points : where solutions can end
    finite_size : corrections for N agents
    validation.simulate : exact runs
    validation.compare : theory and exact runs, side by side

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> solution = meanfield.solve(policy, times=[0, 2, 60])  # at the start, after 1 and after 30 rounds
    >>> solution["word_share"].sel(word="his").values.round(3)
    array([0.523, 0.539, 0.526])
    >>> solution["outcome"].item(), solution["label"].item()
    ('steady', 'mostly his (0.53)')

    Other starts are a dim of the result:

    >>> starts = xr.concat([meanfield.consensus(policy, word) for word in ("his", "her")], "start")
    >>> meanfield.solve(policy, initial=starts, times=[0, 60])["word_share"].sel(word="his").values.round(3)
    array([[0.825, 0.526],
           [0.158, 0.526]])
    """
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        real_number(name, tolerance, above=0, below=1)
    tolerances = Tolerances(rtol, atol)
    if isinstance(policies, ReactionModel):
        if max_time is not None:
            raise InputError(f"max_time = {max_time}: a ReactionModel is solved up to the last of times")
        for name, argument in (("initial", initial), ("times", times)):
            if argument is None:
                raise InputError(f"{name} = None: a ReactionModel has no default")
        return solve_reactions(policies, initial, increasing_times(times), tolerances)
    max_time = MAX_TIME if max_time is None else real_number("max_time", max_time, least=0)
    saved = increasing_times(np.linspace(0.0, 200.0, 401) if times is None else times)
    if not saved[-1] <= max_time:
        raise InputError(f"max_time = {max_time}: expected at least the last of times, {saved[-1]}")
    stack = _Stack(policies)
    empty = np.eye(1, stack.space.n_states)[0]  # every agent in state 0
    starts = _starts(stack, empty if initial is None else initial)
    measured = stack.measured
    if not measured.any():
        raise InputError("policies holds no policy: every combination of model and pair is NaN")
    _check_memory(int(measured.sum()), starts.size // stack.mixtures.q[..., 0].size, len(saved), stack)
    mixtures = type(stack.mixtures)(*(values[measured] for values in stack.mixtures))
    x0 = starts.values.reshape(len(measured), -1, *stack.shape)[measured]
    on_graph = isinstance(mixtures, Edges)
    x0 = mixtures.independent(x0) if on_graph else x0
    trajectories, outcome, period = follow(mixtures, x0, saved, max_time, tolerances)
    if on_graph:
        ends = trajectories.composition.sum(-1)[:, :, None]
        trajectories = trajectories._replace(composition=ends / ends.sum(-1, keepdims=True))
    solution = _label(stack, starts, saved, trajectories, outcome, period)
    start, method = "empty memories" if initial is None else "given", "pair approximation" if on_graph else "mean field"
    options = {"max_time": max_time, "rtol": rtol, "atol": atol}
    return stamp(solution, "solution", policies, initial=start, **options).assign_attrs(method=method)


class _Stack:
    """Populations that are solved in one batch, along a first axis; some of them may be absent."""

    def __init__(self, policies: xr.Dataset | Population) -> None:
        if isinstance(policies, Population):
            self.space = policies.space
            self.dims: dict[str, int] = {}
            arrays = policies.arrays
            self.mixtures = type(arrays)(*(values[None] for values in arrays))
            self.coords: dict = policies.coords
            self.words = np.array([policies.words])
            self.component = True
        else:
            policies = validate_policy(policies, "policies")
            self.space = space_of(policies)
            self.dims = {str(dim): policies.sizes[dim] for dim in policies["q"].dims[:-2]}
            q = policies["q"].values.reshape(-1, 1, self.space.n_states, self.space.n_words)
            self.mixtures = Mixture(q, np.ones((len(q), 1)), np.zeros((len(q), self.space.n_words)))
            self.coords = dict(policies.coords)
            shape = (*self.dims.values(), self.space.n_words)
            self.words = np.broadcast_to(policies["word_label"].values, shape).reshape(-1, self.space.n_words)
            self.component = False
        self.shape = self.mixtures.q.shape[1:3]
        self.measured = ~np.isnan(self.mixtures.q).all((1, 2, 3))


def _starts(stack: _Stack, initial: xr.DataArray | np.ndarray) -> xr.DataArray:
    """Initial compositions, dims (dims of the stack, further ones, component, state)."""
    if isinstance(initial, str):
        raise InputError(f"initial = {initial!r}: expected a composition, as consensus(policy, {initial!r})")
    if not isinstance(initial, xr.DataArray):
        values = real_numbers(initial, "initial")
        dims = COMPOSITION_DIMS if stack.component and values.ndim == 2 else ("state",)
        if values.ndim != len(dims):
            raise InputError(f"initial has shape {values.shape}: expected ({stack.shape[1]},), or a DataArray for more")
        initial = xr.DataArray(values, dims=dims)
    sizes = {**stack.dims, **dict(zip(COMPOSITION_DIMS, stack.shape, strict=True))}
    _validate_start_dims(initial, stack)
    labels = {dim: stack.coords[dim].values.tolist() for dim in stack.dims}
    initial = in_order(initial, labels | {dim: range(sizes[dim]) for dim in COMPOSITION_DIMS}, "initial")
    initial = initial.transpose(..., "state")
    plain = xr.DataArray(real_numbers(initial.values, "initial"), dims=initial.dims)
    validate_fractions(plain.values, "initial")
    further = {str(dim): initial.sizes[dim] for dim in initial.dims if dim not in sizes}
    kept = {name: values for name, values in initial.coords.items() if values.dims and set(values.dims) <= set(further)}
    whole = plain.expand_dims({dim: n for dim, n in sizes.items() if dim not in plain.dims})
    return whole.transpose(*stack.dims, *further, *COMPOSITION_DIMS).assign_coords(kept)


def _validate_start_dims(initial: xr.DataArray, stack: _Stack) -> None:
    if not stack.component and "component" in initial.dims:
        raise InputError(f"initial has dims {initial.dims}: expected no component for a single policy")
    if "state" not in initial.dims:
        raise InputError(f"initial has dims {initial.dims}: expected state among them")
    if not initial.size:
        raise InputError(f"initial has shape {initial.shape}: expected at least one start")
    taken = [str(dim) for dim in initial.dims if dim in RESULT_DIMS]
    if taken:
        raise InputError(f"initial has a dim {taken[0]}: expected another name for a batch of starts")


def _check_memory(n_policies: int, n_starts: int, n_times: int, stack: _Stack) -> None:
    fractions = int(np.prod(stack.shape))
    if isinstance(stack.mixtures, Edges):
        fractions *= fractions + stack.space.n_words
    a_solution = BYTES_A_SHARE * stack.space.n_words * n_times + BYTES_A_FRACTION * fractions
    asked = f"policies = {n_policies}, starts = {n_starts}, times = {n_times}"
    check_memory(n_policies * n_starts * a_solution, asked, "fewer at a time")


def _label(
    stack: _Stack,
    starts: xr.DataArray,
    times: np.ndarray,
    trajectories: Trajectories,
    outcome: np.ndarray,
    period: np.ndarray,
) -> xr.Dataset:
    x, committed = trajectories.composition, stack.mixtures.committed[stack.measured]
    committed = committed.reshape(len(committed), -1, committed.shape[-1]).sum(1)  # of all kinds
    said = np.einsum("pims,pmsw->pimw", x, stack.mixtures.q[stack.measured])
    final = np.einsum("pm,pimw->piw", stack.mixtures.share[stack.measured], said)
    final /= (1 - committed.sum(-1))[:, None, None]  # what agents say who are not committed
    names = {name: np.empty(final.shape[:2], dtype=object) for name in NAMES}
    for p, words in enumerate(stack.words[stack.measured].tolist()):
        beside = {"label": {"committed": bool(committed[p].any())}}
        for name, (of, _) in NAMES.items():
            names[name][p] = [of(share, words, **beside.get(name, {})) for share in final[p]]
    shares = trajectories.word_share
    columns = {
        "word_share": (("time", "word"), shares, "word share", "1"),
        "success_rate": (("time",), success_rate(shares), "success rate", "1"),
        "entropy": (("time",), entropy(shares), "entropy of the word share", "nat"),
        "composition": (COMPOSITION_DIMS, x, "fraction of agents in each state at the end", "1"),
        "residual": ((), trajectories.residual, "max |dx/dt| at the end", "1/time"),
        "end_time": ((), trajectories.time, "time at the end", "half rounds"),
        "outcome": ((), outcome, "how the trajectory ends", "1"),
        "steady": ((), (outcome == STEADY).astype(float), "whether the trajectory ends there", "1"),
        "period": ((), period, "period of the limit cycle", "half rounds"),
        **{name: ((), names[name], what, "1") for name, (_, what) in NAMES.items()},
    }
    outer = {str(dim): size for dim, size in starts.sizes.items() if dim not in COMPOSITION_DIMS}
    data = {}
    for name, (own, values, label, units) in columns.items():
        whole = _scatter(values, stack.measured).reshape((*outer.values(), *values.shape[2:]))
        data[name] = ((*outer, *own), whole, {"long_name": label, "units": units})
    coords = {
        **stack.coords,
        **starts.coords,
        "time": ("time", times, {"long_name": "time", "units": "half rounds"}),
        "round": ("time", times / TIME_PER_ROUND, {"long_name": "population round"}),
    }
    solution = xr.Dataset(data, coords=coords)
    solution["steady"] = (solution["steady"] == 1).assign_attrs(solution["steady"].attrs)
    for name in (*NAMES, "outcome"):
        solution[name].attrs["missing"] = ""
    return solution if stack.component else solution.isel(component=0)


def _scatter(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """One row for each combination of model and pair; NaN, or None for words, where there is no policy."""
    missing = None if values.dtype == object else np.nan
    scattered = np.full((len(measured), *values.shape[1:]), missing, dtype=values.dtype)
    scattered[measured] = values
    return scattered
