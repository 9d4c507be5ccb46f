"""Solutions of the rate equation."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from meanfield._compositions import empty_memories, validate_composition
from meanfield._errors import InputError
from meanfield._memory import MemorySpace
from meanfield._observables import convention, success_rate
from meanfield._policy import STACKED_DIMS, space_of, validate_policy
from meanfield._provenance import stamp
from meanfield._rate_equation import TIME_PER_ROUND, drift
from meanfield._reaction import word_share

# An explicit method at its stability limit leaves a residual of about the tolerance, however long it runs.
STEADY_RESIDUAL = 1e-8
MAX_STEPS = 1_000_000


def solve(
    policies: xr.Dataset,
    *,
    initial: xr.DataArray | np.ndarray | None = None,
    times: np.ndarray | None = None,
    max_time: float = 2000.0,
    rtol: float = 1e-8,
    atol: float = 1e-11,
) -> xr.Dataset:
    """Integrate the rate equation dx/dt = A(Q)ᵀx - x and report the word share over time and where it ends.

    Adaptive Tsit5. A time of 2 is one population round ([004] Eq. 24 has the factor 2 that Eq. 27 absorbs). After the
    last of `times` the integration goes on until max|dx/dt| < 1e-8 or `max_time`, so that `attractor` and
    `composition` tell where the trajectory ends, and `steady` whether it does end there.

    Parameters
    ----------
    policies
        One policy, or a stack over model and pair, which is solved as one batch.
    initial
        Composition to start from, shape (S,), fractions that sum to 1. Default: empty memories.
    times
        Times at which to save, shape (T,), increasing, from 0. Default: 0 to 200 (100 rounds) in steps of 0.5.
    max_time
        Where to stop looking for a steady state. Default 2000, the 1,000 rounds of the papers' simulations.
    rtol, atol
        Tolerances of the step size control.

    Returns
    -------
    Dataset over model and pair (as in `policies`) with `word_share` (time, word), `success_rate` (time), `composition`
    (state) at the end, `residual` = max|dx/dt| there, `end_time`, `steady`, `attractor` (a word, or 'mixed' where the
    success rate stays below 0.98).

    Raises
    ------
    InputError
        If an argument is not as described.
    """
    policies = validate_policy(policies, "policies").transpose(*STACKED_DIMS, ..., missing_dims="ignore")
    space = space_of(policies)
    saved = _validate_times(times, max_time)
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not 0 < tolerance < 1:
            raise InputError(f"{name} = {tolerance}: expected a number between 0 and 1")
    x0 = validate_composition(empty_memories(policies) if initial is None else initial, space)
    q = policies["q"].values.reshape(-1, space.n_states, space.n_words)
    measured = ~np.isnan(q).all((1, 2))
    if not measured.any():
        raise InputError("policies holds no policy: every combination of model and pair is NaN")
    results = _integrate_batch(
        jnp.asarray(q[measured]), jnp.asarray(x0), jnp.asarray(saved), max_time, rtol, atol, space
    )
    shares, x, end_time, residual = (_scatter(np.asarray(values), measured) for values in results)
    solution = _label(policies, saved, shares, x, end_time, residual)
    options = {
        "initial": "empty memories" if initial is None else "given",
        "max_time": max_time,
        "rtol": rtol,
        "atol": atol,
    }
    return stamp(solution, "solution", policies, **options)


def _scatter(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """One row for each combination of model and pair, NaN where there is no policy."""
    scattered = np.full((len(measured), *values.shape[1:]), np.nan)
    scattered[measured] = values
    return scattered


def _validate_times(times: np.ndarray | None, max_time: float) -> np.ndarray:
    saved = np.linspace(0.0, 200.0, 401) if times is None else np.asarray(times, dtype=np.float64)
    if saved.ndim != 1 or len(saved) < 2 or saved[0] < 0 or not (np.diff(saved) > 0).all():
        raise InputError(f"times = {times}: expected at least two increasing times from 0 on")
    if max_time < saved[-1]:
        raise InputError(f"max_time = {max_time}: expected at least the last of times, {saved[-1]}")
    return saved


@eqx.filter_jit
def _integrate_batch(
    q: Float[Array, "policies states words"],
    x0: Float[Array, " states"],
    times: Float[Array, " times"],
    max_time: float,
    rtol: float,
    atol: float,
    space: MemorySpace,
) -> tuple[Array, Array, Array, Array]:
    term = diffrax.ODETerm(lambda t, x, q: drift(x, q, space))
    options = {
        "terms": term,
        "solver": diffrax.Tsit5(),
        "dt0": 0.1,
        "stepsize_controller": diffrax.PIDController(rtol=rtol, atol=atol),
        "max_steps": MAX_STEPS,
    }

    def residual(x: Array, q: Array) -> Array:
        return jnp.abs(drift(x, q, space)).max()

    def one(q: Array) -> tuple[Array, Array, Array, Array]:
        observed = diffrax.SubSaveAt(ts=times, fn=lambda t, x, q: word_share(x, q) / x.sum())
        course: Any = diffrax.diffeqsolve(
            t0=0.0,
            t1=times[-1],
            y0=x0,
            args=q,
            saveat=diffrax.SaveAt(subs=[observed, diffrax.SubSaveAt(t1=True)]),
            **options,
        )
        shares, (x,) = course.ys
        rest: Any = diffrax.diffeqsolve(
            t0=times[-1],
            t1=max_time,
            y0=x,
            args=q,
            event=diffrax.Event(lambda t, y, args, **_: residual(y, args) < STEADY_RESIDUAL),
            **options,
        )
        x = rest.ys[0]
        return shares, x, rest.ts[0], residual(x, q)

    return jax.vmap(one)(q)


def _label(
    policies: xr.Dataset,
    times: np.ndarray,
    shares: np.ndarray,
    x: np.ndarray,
    end_time: np.ndarray,
    residual: np.ndarray,
) -> xr.Dataset:
    dims = policies["q"].dims[:-2]
    shape = tuple(policies.sizes[dim] for dim in dims)
    final = np.einsum("is,isw->iw", x, policies["q"].values.reshape(len(x), *policies["q"].shape[-2:]))
    words = np.broadcast_to(policies["word_label"].values, (*shape, policies.sizes["word"])).reshape(len(x), -1)
    attractor = [
        None if np.isnan(share).any() else convention(share, labels)
        for share, labels in zip(final, words.tolist(), strict=True)
    ]
    columns = {
        "word_share": (("time", "word"), shares, "word share", "1"),
        "success_rate": (("time",), success_rate(shares), "success rate", "1"),
        "composition": (("state",), x, "fraction of agents in each state at the end", "1"),
        "residual": ((), residual, "max |dx/dt| at the end", "1/time"),
        "end_time": ((), end_time, "time at the end", "half rounds"),
        "steady": ((), residual < STEADY_RESIDUAL, "whether the trajectory ends there", "1"),
        "attractor": ((), np.array(attractor, dtype=object), "convention at the end", "1"),
    }
    data = {
        name: (
            (*dims, *own),
            np.asarray(values).reshape((*shape, *np.shape(values)[1:])),
            {"long_name": label, "units": units},
        )
        for name, (own, values, label, units) in columns.items()
    }
    coords = {
        "time": ("time", times, {"long_name": "time", "units": "half rounds"}),
        "round": ("time", times / TIME_PER_ROUND, {"long_name": "population round"}),
    }
    solution = xr.Dataset(data, coords={**policies.coords, **coords})
    solution["attractor"].attrs["missing"] = ""
    return solution
