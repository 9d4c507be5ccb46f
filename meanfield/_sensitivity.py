"""Which memories make the collective bias: derivatives of collective quantities with respect to the policy.

All are adjoint derivatives: one problem, solved once, gives those with respect to all S entries of the policy.

κ² is the integral of pᵀD(x)p along the least-noise path, with p = κw/σ (see `_least_noise_path`),

    dx/dt = F(x) + D(x)p,   dp/dt = -J(x)ᵀp,   x from empty memories to the saddle, p ending in its left eigenvector.

With α - p and b the multipliers of these equations, κ dκ = ∫ ∂_qL dq dt at fixed courses, where

    L = ½ αᵀDα - ½ (α-p)ᵀD(α-p) + (α-p)·F - p·Jb,
    db/dt = Jb - Dα,  b(0) = 0,    dα/dt = -Jᵀp - ∂L/∂x,  α ending in the left eigenvector,

which is scaled such that b ends in the saddle's stable manifold. α and b are there because dp/dt leaves out the
gradient of D, and are small with κ. Each follows from the other in turn: for the pairs of GPT-4o a turn leaves 1/20 to
1/10 of the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from meanfield._critical_mass import critical_mass
from meanfield._errors import InputError
from meanfield._fixed_points import fixed_points
from meanfield._group_size_law import law_path
from meanfield._least_noise_path import BATCH, STEP, Course, LeastNoisePath
from meanfield._memory import MemorySpace
from meanfield._noise import noise, noise_intensity
from meanfield._poisson import PoissonEquation, eigenvalue_response, polished_fold, share_response
from meanfield._policy import name_of, single_policy, space_of, word_index, words_of
from meanfield._provenance import stamp
from meanfield._rate_equation import drift

NEEDS = {"kappa": None, "eigenvalue": "fixed_point", "word_share": "fixed_point", "critical_mass": "word"}
TOLERANCE = 1e-8  # change of α against p at which the turns end
MAX_TURNS = 60

Columns = dict[str, np.ndarray]


def sensitivity(policy: xr.Dataset, *, of: str, fixed_point: int | None = None, word: str | None = None) -> xr.Dataset:
    """How a collective quantity of a two-word policy changes with what agents say in each memory.

    dq(i) raises the chance of the first word in memory i by dq and lowers that of the second by as much. Memories with
    an exact 0 or 1 have a derivative on one side.

    Parameters
    ----------
    policy
        One policy, of two words.
    of
        - 'kappa': κ of the group-size law, κ ≥ 0 whichever word is strong (derivatives to about 1e-4);
        - 'eigenvalue': leading eigenvalue of a fixed point (its real part), which moves with the policy;
        - 'word_share': share of the first word at a fixed point;
        - 'critical_mass': fraction of agents committed to `word` at which the old state vanishes in a fold.
    fixed_point
        Number of the fixed point, as in `fixed_points(policy)`; for 'eigenvalue' and 'word_share'.
    word
        To which agents are committed; for 'critical_mass'.

    Returns
    -------
    Dataset over `state` with

    - `derivative` with respect to q(i), and `memory`, a label as 'a/b b/b': own/partner's word, oldest first;
    - `weight`, the fraction of agents in the memory: at the fixed point; at the fold, of those not committed; for κ, on
      the least-noise path, times weighted by what they contribute to κ²;
    - for 'eigenvalue' `direct`, the derivative if the fixed point did not move;
    - for 'kappa' `bias`, half of q(first | i) - q(second | i with the words exchanged), and `contribution` = derivative
      · bias. A policy that treats both words alike has κ = 0, so that contributions sum to κ, up to bias³. For the
      eleven pairs of GPT-4o, with strong biases, the sum is within 13 % of κ.

    attrs["value"] is the quantity itself.

    Raises
    ------
    InputError
        If the policy has more than two words, an argument is missing or out of place, there is no group-size law or no
        fold, the fixed point is marginal or its leading eigenvalue not simple, or agents hardly ever leave some habit.
    """
    policy = single_policy(policy)
    space = space_of(policy)
    if space.n_words != 2:
        raise InputError(f"policy has {space.n_words} words: sensitivities are known for two")
    _validate_options(of, fixed_point, word)
    if of == "kappa":
        value, columns = _kappa(policy, space)
    elif of == "critical_mass":
        value, columns = _critical_mass(policy, space, word or "")
    else:
        value, columns = _at_fixed_point(policy, space, of, fixed_point or 0)
    result = _label(policy, space, of, columns).assign_attrs(policy=name_of(policy), of=of, value=float(value))
    return stamp(result, "sensitivity", policy, fixed_point=fixed_point, word=word)


def _validate_options(of: str, fixed_point: int | None, word: str | None) -> None:
    if of not in NEEDS:
        raise InputError(f"of = {of!r}: expected one of {', '.join(NEEDS)}")
    for name, value in (("fixed_point", fixed_point), ("word", word)):
        needed = NEEDS[of] == name
        if needed != (value is not None):
            raise InputError(f"{name} = {value!r}: expected {'a value' if needed else 'None'} for of = {of!r}")


def _label(policy: xr.Dataset, space: MemorySpace, of: str, columns: Columns) -> xr.Dataset:
    units = "1/time" if of == "eigenvalue" else "1"
    labels = {
        "derivative": (f"derivative of {of} with respect to q(first word)", units),
        "weight": ("fraction of agents with this memory", "1"),
        "direct": ("derivative at an unmoved fixed point", units),
        "bias": ("half of what q(first) differs by from q(second) with the words exchanged", "1"),
        "contribution": ("derivative times bias", units),
        "memory": ("own word/partner's word, oldest first", ""),
    }
    words = words_of(policy)
    memory = [" ".join(f"{words[a]}/{words[b]}" for a, b in space.memory(i)) or "empty" for i in range(space.n_states)]
    data = {
        name: ("state", values, dict(zip(("long_name", "units"), labels[name], strict=True)))
        for name, values in {**columns, "memory": np.array(memory, dtype=str)}.items()
    }
    coords = {name: policy[name] for name in ("model", "pair", "word_label") if name in policy.coords}
    return xr.Dataset(data, coords={**coords, "state": np.arange(space.n_states)})


def _at_fixed_point(policy: xr.Dataset, space: MemorySpace, of: str, number: int) -> tuple[float, Columns]:
    points = fixed_points(policy)
    if not isinstance(number, (int, np.integer)) or not 0 <= number < points.sizes["fixed_point"]:
        raise InputError(f"fixed_point = {number}: expected 0 to {points.sizes['fixed_point'] - 1}")
    point = points.isel(fixed_point=number)
    if point["stability"].item() == "marginal":
        raise InputError(f"fixed_point = {number} is marginal: expected one that is not about to vanish")
    q, x = policy["q"].values, point["composition"].values
    equation = PoissonEquation(q, x, x @ q, space)
    if of == "word_share":
        response = share_response(equation, q, x, x @ q, space)
        return response.share, {"derivative": response.gradient / (1 - response.slope), "weight": x}
    eigenvalue = eigenvalue_response(equation, q, x, space)
    total = eigenvalue.direct + eigenvalue.indirect
    return eigenvalue.value.real, {"derivative": total, "weight": x, "direct": eigenvalue.direct}


def _critical_mass(policy: xr.Dataset, space: MemorySpace, word: str) -> tuple[float, Columns]:
    index = word_index(policy, word)
    found = critical_mass(policy, word=word)
    if found.attrs["transition"] != "fold":
        raise InputError(f"word = {word!r}: expected one with a fold, but {found.attrs['reason']}")
    first, second = np.log(found["word_share"].values)
    fold = polished_fold(policy["q"].values, space, index, float(first - second))
    return fold.committed, {"derivative": fold.gradient, "weight": fold.composition}


class _Adjoint(NamedTuple):
    """The courses x, p, α and b."""

    x: Course
    p: Course
    alpha: Course
    b: Course


def _kappa(policy: xr.Dataset, space: MemorySpace) -> tuple[float, Columns]:
    law = law_path(policy)
    if isinstance(law, str):
        raise InputError(f"policy has no group-size law: {law}")
    q, saddle, path = jnp.asarray(policy["q"].values), jnp.asarray(law.points["composition"].values[1]), law.path
    kappa = path.distance / path.sigma
    courses = _solve_adjoint(path, kappa, q, space)
    gradient, passed = _integrate(courses, jnp.asarray(path.end), q, space)
    # What follows decays with the growth rate of the saddle, at which x then is.
    last = (courses.alpha.node - courses.p.node)[path.end]
    gradient = gradient + jax.grad(lambda q: last @ drift(saddle, q, space))(q) / law.growth
    derivative = np.asarray(gradient[:, 0] - gradient[:, 1]) / kappa
    exchanged = [space.state([(1 - a, 1 - b) for a, b in space.memory(i)]) for i in range(space.n_states)]
    bias = np.asarray(q[:, 0] - q[np.array(exchanged), 1]) / 2
    columns = {"derivative": derivative, "weight": np.asarray(passed / passed.sum())}
    return kappa, {**columns, "bias": bias, "contribution": derivative * bias}


def _solve_adjoint(path: LeastNoisePath, kappa: float, q: Array, space: MemorySpace) -> _Adjoint:
    """α and b, each from the other in turn."""
    end, left = jnp.asarray(path.end), path.w.node[path.end]
    nothing = Course(jnp.zeros_like(path.x.node), jnp.zeros_like(path.x.middle))
    p = _plus(nothing, kappa / path.sigma, path.w)
    unsteered = _alpha(path.x, p, nothing, jnp.zeros_like(left), end, q, space)
    # α is affine in its end: the difference that one left eigenvector makes, and what that makes of b
    steer = _plus(_alpha(path.x, p, nothing, p.node[path.end], end, q, space), -1.0, unsteered)
    steered = _b(path.x, steer, end, q, space)
    previous, alpha = nothing, unsteered
    for _ in range(MAX_TURNS):
        b = _b(path.x, alpha, end, q, space)
        much = -(left @ b.node[path.end]) / (left @ steered.node[path.end])
        alpha, b = _plus(alpha, much, steer), _plus(b, much, steered)
        change = jnp.abs(alpha.node - previous.node).max()
        if change < TOLERANCE * jnp.abs(p.node).max():
            return _Adjoint(path.x, p, alpha, b)
        previous, alpha = alpha, _alpha(path.x, p, b, jnp.zeros_like(left), end, q, space)
    raise RuntimeError(f"the adjoint of kappa = {kappa:.3g} was not found in {MAX_TURNS} turns")


def _plus(a: Course, factor: float | Array, b: Course) -> Course:
    return Course(a.node + factor * b.node, a.middle + factor * b.middle)


def _integrand(x: Array, q: Array, p: Array, alpha: Array, b: Array, space: MemorySpace) -> Array:
    """L of the module."""
    _, moved = jax.jvp(lambda x: drift(x, q, space), (x,), (b,))
    spread = noise_intensity(alpha, x, q, space) - noise_intensity(alpha - p, x, q, space)
    return spread / 2 + (alpha - p) @ drift(x, q, space) - p @ moved


@eqx.filter_jit
def _alpha(x: Course, p: Course, b: Course, last: Array, end: Array, q: Array, space: MemorySpace) -> Course:
    """α backwards in time from `last` at the node `end`."""

    def rate(alpha: Array, x: Array, p: Array, b: Array) -> Array:
        return -jax.grad(lambda x: _integrand(x, q, p, alpha, b, space) + p @ drift(x, q, space))(x)

    return _course(rate, last, (x, p, b), end, backwards=True)


@eqx.filter_jit
def _b(x: Course, alpha: Course, end: Array, q: Array, space: MemorySpace) -> Course:
    """b forwards in time from 0."""

    def rate(b: Array, x: Array, alpha: Array) -> Array:
        # The derivative of the normalised drift: with the other one, Σb would grow from rounding.
        return jax.jvp(lambda x: drift(x, q, space), (x,), (b,))[1] - noise(alpha, x, q, space)

    return _course(rate, jnp.zeros(len(q)), (x, alpha), end, backwards=False)


def _course(
    rate: Callable[..., Array], start: Array, given: tuple[Course, ...], end: Array, *, backwards: bool
) -> Course:
    """The solution of dy/dt = rate(y, *given) on the grid of the path, by its Runge-Kutta steps; held from `end` on."""
    step = -STEP if backwards else STEP

    def advance(y: Array, now: tuple[Any, ...]) -> tuple[Array, Array]:
        number, before, between, after = now
        if backwards:
            before, after = after, before
        first = rate(y, *before)
        second = rate(y + step / 2 * first, *between)
        third = rate(y + step / 2 * second, *between)
        fourth = rate(y + step * third, *after)
        y = jnp.where(number < end, y + step / 6 * (first + 2 * second + 2 * third + fourth), y)
        return y, y

    nodes, middles = tuple(course.node for course in given), tuple(course.middle for course in given)
    grid: Any = (jnp.arange(len(middles[0])), tuple(n[:-1] for n in nodes), middles, tuple(n[1:] for n in nodes))
    _, rest = jax.lax.scan(advance, start, grid, reverse=backwards)
    node = jnp.concatenate([rest, start[None]] if backwards else [start[None], rest])
    slope = jax.lax.map(lambda now: rate(*now), (node, *nodes), batch_size=BATCH)
    return Course(node, (node[1:] + node[:-1]) / 2 + STEP / 8 * (slope[:-1] - slope[1:]))


@eqx.filter_jit
def _integrate(
    courses: _Adjoint, end: Array, q: Array, space: MemorySpace
) -> tuple[Float[Array, "states two"], Float[Array, " states"]]:
    """∫ ∂L/∂q dt, and ∫ x pᵀDp dt, up to the node `end` by Simpson's rule."""

    def add(sums: tuple[Array, Array], now: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        weight, x, p, alpha, b = now
        slope = jax.grad(_integrand, argnums=1)(x, q, p, alpha, b, space)
        return (sums[0] + weight * slope, sums[1] + weight * noise_intensity(p, x, q, space) * x), None

    number = jnp.arange(len(courses.x.node))
    nodes = STEP / 6 * ((number < end) + 1.0 * ((number > 0) & (number <= end)))
    middles = jnp.where(number[:-1] < end, 4 * STEP / 6, 0.0)
    sums = (jnp.zeros_like(q), jnp.zeros(len(q)))
    sums, _ = jax.lax.scan(add, sums, (nodes, *(course.node for course in courses)))
    sums, _ = jax.lax.scan(add, sums, (middles, *(course.middle for course in courses)))
    return sums
