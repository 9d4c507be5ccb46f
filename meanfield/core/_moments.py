"""Mean and covariance of the fractions among N agents of any game, to order 1/N.

The composition of N agents has mean x + V/N and covariance C/N, up to 1/N² (Gast and Van Houdt, Proc. ACM Meas. Anal.
Comput. Syst. 1, 33 (2017); van Kampen, ch. X). With G = C - diag(x) + xxᵀ, the correlation of two different agents,

    dx/dt = F(x),   dG/dt = JG + GJᵀ + S(x),   dV/dt = JV + ½F''[G] - (τ/2) JF,
    S = D - τFFᵀ + JK + KJᵀ - dK/dt,   K = diag(x) - xxᵀ.

τ = 0 where encounters happen at the times of a Poisson process. Where exactly N/τ of them happen in a unit of time, as
in simulations, F has no share in the noise; τ = 2 for the naming game. That agents never meet themselves is in ½F''[G]:
for C it would be ½F''[C - K]. Rates that are functions of the composition depend on all agents, so for them it is
½F''[C] = ½F''[G + K]. In K and G committed agents are states of their own.

S has a low rank, since only encounters correlate agents: at most 4 for each channel of a reaction model with constant
rates, and for words

    S = Σ_ab k_ab k_baᵀ - τFFᵀ,   k_ab = Σ_i x_i q_a(i) (e_Γ(i,a,b) - x).

Its source is forgotten. So G is kept in factors, which move like perturbations of x and are compressed each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from meanfield.core._game import Array, Game, RateGame, WordGame, game_of
from meanfield.core._rates import drift, jacobian_product, noise_product

# Tsitouras' method of order 5: the last row gives the result, and is a stage only for an estimate of the error
STAGES = len(diffrax.Tsit5.tableau.a_lower)
*EARLIER, LAST = (np.pad(row, (0, STAGES - len(row))) for row in diffrax.Tsit5.tableau.a_lower)
WEIGHTS = np.array([np.zeros(STAGES), *EARLIER])
# Lobatto's rule of four points for the source during a step: the weight of its ends, and the points within
FEW = 4
END, INNER = 1 / 12, np.array([(1 - 5**-0.5) / 2, (1 + 5**-0.5) / 2])


def stepped(game: Game, x: Float[Array, ...], step: Float[Array, ""]) -> Float[Array, ...]:
    """x after one step of Tsitouras' method of order 5."""

    def stage(slopes: Array, numbered: tuple[Array, Array]) -> tuple[Array, None]:
        number, weights = numbered
        slope = drift(game, x + step * jnp.tensordot(weights, slopes, 1))
        return slopes.at[number].set(slope), None

    rows = (jnp.arange(STAGES), jnp.asarray(WEIGHTS, x.dtype))
    slopes, _ = jax.lax.scan(stage, jnp.zeros((STAGES, *x.shape), x.dtype), rows)
    return x + step * jnp.tensordot(jnp.asarray(LAST, x.dtype), slopes, 1)


def moved_rows(
    game: Game, xs: Float[Array, "points ..."], steps: Float[Array, " points"], rows: Sequence[Array]
) -> Array:
    """Perturbations of each x, its rows, after the same step; a few at once stay in the cache of a processor.

    One loop over all of them, whose body is compiled once.
    """
    few = min(FEW, max(map(len, rows)))
    filled = [jnp.pad(some, [(0, -len(some) % few)] + [(0, 0)] * (some.ndim - 1)) for some in rows]
    of = np.repeat(np.arange(len(rows)), [len(some) // few for some in filled])
    used = np.concatenate([np.arange(len(one)) < len(some) for one, some in zip(filled, rows, strict=True)])

    def moved(some: tuple[Array, Array, Array]) -> Array:
        x, step, rows = some
        return jax.vmap(lambda row: jax.jvp(lambda x: stepped(game, x, step), (x,), (row,))[1])(rows)

    found = jax.lax.map(moved, (xs[of], steps[of], jnp.concatenate(filled).reshape(-1, few, *xs.shape[1:])))
    return found.reshape(-1, *xs.shape[1:])[np.flatnonzero(used)]


def source_product(game: Game, x: Array, v: Array, pause: Float[Array, ""]) -> Array:
    """S(x)v, for τ = `pause`."""
    F = drift(game, x)

    def covariance(v: Array) -> Array:
        return x * v - x * jnp.vdot(x, v)

    passed = jacobian_product(game, x, covariance(v)) + covariance(jacobian_product(game, x, v, transpose=True))
    changed = F * v - F * jnp.vdot(x, v) - x * jnp.vdot(F, v)
    return noise_product(game, x, v) - pause * F * jnp.vdot(F, v) + passed - changed


def _fed(game: Game, x: Array, tests: Float[Array, "tests ..."], pause: Array) -> tuple[Array, Array]:
    """S as rows and a symmetric matrix between them, exact if its rank is at most the number of tests."""

    def applied(rows: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        image = jax.vmap(lambda v: source_product(game, x, v, pause))(rows).reshape(len(rows), -1)
        return jnp.linalg.qr(image.T)[0].T.reshape(rows.shape), (rows, image)

    _, ((_, basis), (_, image)) = jax.lax.scan(applied, tests, None, length=2)  # the product is compiled once
    middle = image @ basis.reshape(len(basis), -1).T
    return basis, (middle + middle.T) / 2


def _compressed(rows: Array, middle: Array, rank: int) -> tuple[Array, Array, Array]:
    """Orthonormal rows and their weights, the largest ones, and the largest that is left out relative to those."""
    basis, triangle = jnp.linalg.qr(rows.reshape(len(rows), -1).T)
    weights, rotation = jnp.linalg.eigh(triangle @ middle @ triangle.T)
    order = jnp.argsort(-jnp.abs(weights))
    kept = (basis @ rotation[:, order[:rank]]).T.reshape(rank, *rows.shape[1:])
    size = jnp.abs(weights[order])
    lost = size[rank:].max(initial=0.0) / jnp.where(size[0] > 0, size[0], 1)
    return kept, weights[order[:rank]], lost


def observed(
    game: Game, x: Array, rows: Array, weights: Array, observables: Float[Array, "observables ..."], pause: Array
) -> tuple[Array, Array]:
    """The variance of each observable, linear in the fractions, and what drives V."""

    def covariance(one: Array) -> Array:
        along = jax.vmap(lambda row: jnp.vdot(row, one))(rows)
        return jnp.tensordot(weights * along, rows, 1) + x * one - x * jnp.vdot(x, one)

    def second(row: Array) -> Array:
        return jax.jvp(lambda x: jacobian_product(game, x, row), (x,), (row,))[1]

    variance = jax.vmap(lambda one: jnp.vdot(one, covariance(one)))(observables)
    push = jnp.tensordot(weights, jax.vmap(second)(rows), 1) / 2
    if isinstance(game, WordGame):
        push = push + _of_committed(game, x)
    if isinstance(game, RateGame):
        push = push + _of_all(game, x)
    return variance, push - pause / 2 * jacobian_product(game, x, drift(game, x))


def _of_committed(game: WordGame, x: Array) -> Array:
    """The part of ½F''[G] from G between agents and committed ones, xcᵀ, and among these, ccᵀ - diag(c)."""
    c = game.committed

    def slope(c: Array, x: Array) -> Array:
        return drift(eqx.tree_at(lambda game: game.committed, game, c), x)

    def twice(v: Array) -> Array:
        return jax.jvp(lambda c: jax.jvp(lambda c: slope(c, x), (c,), (v,))[1], (c,), (v,))[1]

    with_agents = jax.jvp(lambda c: jax.jvp(lambda x: slope(c, x), (x,), (x,))[1], (c,), (c,))[1]
    each = jax.vmap(twice)(jnp.eye(c.size, dtype=c.dtype).reshape(-1, *c.shape))
    return with_agents + (twice(c) - jnp.tensordot(c.ravel(), each, 1)) / 2


def _of_all(game: RateGame, x: Array) -> Array:
    """½F''[K] of the rates that are functions of the fractions of all agents, the one that moves among them."""

    def twice(v: Array) -> Array:
        return jax.jvp(lambda x: jax.jvp(game.driven, (x,), (v,))[1], (x,), (v,))[1]

    return (x @ jax.vmap(twice)(jnp.eye(len(x), dtype=x.dtype)) - twice(x)) / 2


def _nodes(game: Game, x: Array, step: Array) -> tuple[Array, Array, Array]:
    """Lobatto's points in a step: x there, the rest of the step from there, and their weights."""
    parts = jnp.asarray([0.0, *INNER, 1.0], x.dtype) * step
    shares = jnp.asarray([END, 0.5 - END, 0.5 - END, END], x.dtype) * step
    return jax.vmap(lambda part: stepped(game, x, part))(parts), step - parts, shares


def correlation_program(
    arrays: tuple[Any, ...],
    x: Float[Array, ...],
    rows: Float[Array, "rank ..."],
    weights: Float[Array, " rank"],
    observables: Float[Array, "observables ..."],
    tests: Float[Array, "tests ..."],
    step: Float[Array, ""],
    pause: Float[Array, ""],
    *,
    n_steps: int,
) -> tuple[Array, ...]:
    """x and the factors of G after some steps; before each step x, variances and what drives V; weights left out.

    `arrays` are as in `game_of`.
    """
    game, rank = game_of(arrays), len(rows)

    def one(state: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
        x, rows, weights = state
        seen = (x, *observed(game, x, rows, weights, observables, pause))
        nodes, rest, shares = _nodes(game, x, step)
        fed, middles = jax.vmap(lambda node: _fed(game, node, tests, pause))(nodes)
        *earlier, last = fed
        earlier[0] = jnp.concatenate([rows, earlier[0]])
        factors = jnp.concatenate([moved_rows(game, nodes[:3], rest[:3], earlier), last])
        middle = jax.scipy.linalg.block_diag(jnp.diag(weights), *(shares[:, None, None] * middles))
        rows, weights, lost = _compressed(factors, middle, rank)
        return (nodes[3], rows, weights), (*seen, lost)

    state, seen = jax.lax.scan(one, (x, rows, weights), None, length=n_steps)
    return *state, *seen


def driven_program(
    arrays: tuple[Any, ...],
    x: Float[Array, ...],
    v: Float[Array, ...],
    pushes: Float[Array, "steps 4 ..."],
    observables: Float[Array, "observables ..."],
    step: Float[Array, ""],
) -> tuple[Array, Array, Array]:
    """x and V at the end, and the observables of V after each step, from what drives it at the points of Lobatto."""
    game = game_of(arrays)

    def one(state: tuple[Array, Array], push: Array) -> tuple[tuple[Array, Array], Array]:
        x, v = state
        nodes, rest, shares = _nodes(game, x, step)
        starts = jax.vmap(jnp.multiply)(shares, push).at[0].add(v)
        v = moved_rows(game, nodes, rest, list(starts[:, None])).sum(0)
        return (nodes[3], v), jax.vmap(lambda one: jnp.vdot(one, v))(observables)

    (x, v), seen = jax.lax.scan(one, (x, v), pushes)
    return x, v, seen
