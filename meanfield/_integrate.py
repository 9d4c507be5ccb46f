"""Batches of solutions of the rate equation, as arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from meanfield._memory import MemorySpace
from meanfield._mixture import Mixture, mixture_drift, mixture_word_share

# An explicit method at its stability limit leaves a residual of about the tolerance, however long it runs.
STEADY_RESIDUAL = 1e-8
MAX_STEPS = 1_000_000


class Tolerances(NamedTuple):
    """Tolerances of the step size control, relative and absolute."""

    rtol: float
    atol: float


class Courses(NamedTuple):
    """Solutions of P populations from I compositions each.

    Attributes
    ----------
    word_share
        At the times asked for, shape (P, I, T, W).
    composition
        Where the solution ends, shape (P, I, M, S).
    time
        When, shape (P, I).
    residual
        max|dx/dt| there, shape (P, I).
    """

    word_share: Float[Array, "populations starts times words"]
    composition: Float[Array, "populations starts kinds states"]
    time: Float[Array, "populations starts"]
    residual: Float[Array, "populations starts"]


@eqx.filter_jit
def integrate(
    mixtures: Mixture,
    starts: Float[Array, "populations starts kinds states"],
    times: Float[Array, " times"],
    max_time: Float[Array, ""],
    tolerances: Tolerances,
    space: MemorySpace,
) -> Courses:
    """Solve for each population and each of its starts, up to a steady state, where it stays.

    Parameters
    ----------
    mixtures
        P of them, stacked along a first axis.
    starts
        Compositions at time 0.
    times
        When to save the word share.
    max_time
        When to give up waiting for a steady state; not before the last of `times`.
    """
    options: Any = {
        "terms": diffrax.ODETerm(lambda t, x, mixture: mixture_drift(x, mixture, space)),
        "solver": diffrax.Tsit5(),
        "dt0": 0.1,
        "stepsize_controller": diffrax.PIDController(rtol=tolerances.rtol, atol=tolerances.atol),
        "max_steps": MAX_STEPS,
    }

    def residual(x: Array, mixture: Mixture) -> Array:
        return jnp.abs(mixture_drift(x, mixture, space)).max()

    def one(x0: Array, mixture: Mixture) -> Courses:
        observed = diffrax.SubSaveAt(ts=times, fn=lambda t, x, mixture: mixture_word_share(x, mixture))
        saveat = diffrax.SaveAt(subs=[observed, diffrax.SubSaveAt(t1=True)])
        still = diffrax.Event(lambda t, y, args, **_: residual(y, args) < STEADY_RESIDUAL)
        course: Any = diffrax.diffeqsolve(
            t0=0.0, t1=max_time, y0=x0, args=mixture, saveat=saveat, event=still, **options
        )
        shares, (x,) = course.ys
        end = course.ts[1][0]
        # Times after the steady state hold nothing, nor does time 0 where the start is one.
        shares = jnp.where((times <= end)[:, None], shares, mixture_word_share(x, mixture))
        shares = jnp.where((times == 0)[:, None], mixture_word_share(x0, mixture), shares)
        return Courses(shares, x, end, residual(x, mixture))

    each_start = jax.vmap(one, in_axes=(0, None))
    return jax.vmap(each_start)(starts, mixtures)
