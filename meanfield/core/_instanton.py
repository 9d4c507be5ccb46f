"""Instantons: the likeliest paths of many agents to where they rarely go.

N agents follow a path x(t) with a probability exp(-N S) to leading order, S = ∫ p·dx/dt - H(x, p) dt with Hamilton's
equations for x and p (Freidlin and Wentzell, ch. 5). For agents who meet in pairs u = x exp(-p) and v = exp(p) obey
linear equations once the fields g(t) of the game are given (`PairGame`). With w = ∂E/∂g and K = w·G(u, v),

    du/dt = ∂K/∂v - r u,   -dv/dt = ∂K/∂u - r v,   r = [w·(g - constants) - E(g)] / M,

of bounded rates, where M is the mass of all agents and r a choice of gauge with which d(p·x)/dt = p·dx/dt - H. u goes
forward from independent agents with a given composition x₀, v backward from the end, and both give new fields. The
instanton is the fixed point, where

    S(g, s) = -Σ_i x₀_i log (mean of v at time 0 over the class of i) + s l·x* - A(s)

is stationary: S is known better than the fields. A path out of an attractor leaves exactly the composition x₀, with
log v_i in place of the logarithm of the mean (`departure`).

The momentum at the end T is s l, or where agents die out log v* + s l. At a saddle x* l is the left eigenvector of the
unstable direction with eigenvalue λ; beyond T the linearised equations give A(s) = s² lᵀDl/4λ and the condition
l·(x(T) - x*) = -s lᵀDl/2λ. With lᵀDl = 0 the path ends on the level set l·x = l·x*, for any l and x*.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float

from meanfield.core._game import Array, PairGame, ReactionGame, game_of
from meanfield.core._rates import drift, jacobian_product, noise_product

Rate = Callable[[Array, Array, Array], Array]  # of u or v, w and r
End = tuple[Array, Array, Array, Array, tuple[Array, Array, Array]]  # base, left, level, width and bend

WEAK = 0.1  # differences of momenta
GAUSS = (0.112701665379258, 0.5, 0.887298334620742), (5 / 18, 8 / 18, 5 / 18)  # nodes and weights on [0, 1]
STRONGEST = 1e9  # strength of momenta
LEAST = 1e-300  # of fields, which have logarithms
DIGITS, MOST_ITERATIONS = 1e-15, 200  # of strengths
FEW = 16  # second derivatives at once


def sweep(
    arrays: tuple[Array, ...],
    logarithms: Float[Array, "halves fields"],
    pace: Float[Array, "steps 3"],
    n_steps: Array,
    start: Float[Array, ...],
    ending: End,
    strength: Float[Array, ""],
) -> tuple[Array, ...]:
    """Logarithms of the new fields at the nodes, the strength s, S, and u and v at the nodes.

    Logarithms of fields are given at nodes and middles alternately, with a node at every whole τ, and `pace` is dt/dτ
    at the beginning, middle and end of each step; the first `n_steps` count. The momentum at the end is base + s·left,
    `level` is l·x* and `width` is lᵀDl/2λ. A `strength` of NaN is found from the condition at the end, without a base.
    `bend` has the terms of higher order in s, of exp(momentum) and of S, and the largest s for which they hold. Where
    fields leave all bounds some numbers are not finite.
    """
    game: Any = game_of(arrays)
    base, left, level, width, bend = ending
    points = _response(game, logarithms, pace, start.sum())
    onwards, backwards = _rates(game)
    u = _trajectory(onwards, start, points, n_steps)
    found = _strength(game, u[n_steps], start, left, level, width, bend)
    strength = jnp.where(jnp.isnan(strength), found, strength)
    v = _trajectory_back(backwards, jnp.exp(base + _momentum(left, bend, strength)), points, n_steps)
    means = game.masses(start * v[0]) / _positive(game.masses(start))
    action = -jnp.vdot(start, jnp.log(_positive(means))) + _at_end(strength, level, width, bend)
    u = u / _positive(means)
    return _new_fields(game, n_steps, u, v), strength, action, u, v


def departure(
    arrays: tuple[Array, ...],
    logarithms: Float[Array, "halves fields"],
    pace: Float[Array, "steps 3"],
    n_steps: Array,
    start: Float[Array, ...],
    ending: End,
    strength: Float[Array, ""],
) -> tuple[Array, ...]:
    """The same for a path that leaves the composition `start` exactly, without fluctuations among agents at time 0.

    Its strength is given; in its place is that with which the linearised path passes the end. S = -Σ x₀ log v + ...
    """
    game: Any = game_of(arrays)
    base, left, level, width, bend = ending
    points = _response(game, logarithms, pace, start.sum())
    onwards, backwards = _rates(game)
    v = _trajectory_back(backwards, jnp.exp(base + _momentum(left, bend, strength)), points, n_steps)
    u = _trajectory(onwards, start / v[0], points, n_steps)
    passed = (level - jnp.vdot(left, u[n_steps] * v[n_steps])) / width
    action = -jnp.vdot(start, jnp.log(v[0])) + _at_end(strength, level, width, bend)
    return _new_fields(game, n_steps, u, v), passed, action, u, v


def _momentum(left: Array, bend: tuple[Array, Array, Array], strength: Array) -> Array:
    """The momentum at the end without base; terms are those at the largest s for which they hold where it is larger."""
    terms, _, farthest = bend
    near = jnp.clip(strength, -farthest, farthest)
    return strength * left + jnp.log(jnp.maximum(1 + _higher(terms, near), LEAST))


def _higher(terms: Array, strength: Array) -> Array:
    """Terms of order s², s³, …"""
    return jnp.tensordot(strength ** jnp.arange(2, len(terms) + 2), terms, 1)


def _at_end(strength: Array, level: Array, width: Array, bend: tuple[Array, Array, Array]) -> Array:
    """The part of S that depends on the end."""
    return strength * level - strength**2 * width / 2 + _higher(bend[1], strength)


def _new_fields(game: Any, n_steps: Array, u: Array, v: Array) -> Array:
    """Their logarithms at the nodes."""
    again = _at_nodes(lambda u, v: game.fields(u, v) + game.constants, n_steps, u, v)
    return jnp.log(jnp.maximum(again, LEAST))


def _response(game: Any, logarithms: Array, pace: Array, mass: Array) -> tuple[Array, Array, Array]:
    """w, r and the pace at the beginning, middle and end of each step, of agents of this mass."""
    fields = jnp.exp(logarithms)
    response = jax.vmap(jax.grad(game.energy))(fields)
    energy = jax.vmap(game.energy)(fields)
    loss = ((response * (fields - game.constants)).sum(-1) - energy) / mass
    response, loss = (jnp.stack([values[:-2:2], values[1::2], values[2::2]], axis=1) for values in (response, loss))
    return response, loss, pace


def _rates(game: Any) -> tuple[Rate, Rate]:
    """du/dt and -dv/dt."""

    def onwards(u: Array, response: Array, loss: Array) -> Array:
        return jax.grad(lambda v: jnp.vdot(response, game.fields(u, v)))(u) - loss * u

    def backwards(v: Array, response: Array, loss: Array) -> Array:
        return jax.grad(lambda u: jnp.vdot(response, game.fields(u, v)))(v) - loss * v

    return onwards, backwards


def _step(rate: Rate, y: Array, response: Array, loss: Array, pace: Array) -> Array:
    """A step of Runge-Kutta of order four; the first axis of the rest is beginning, middle and end."""
    one = pace[0] * rate(y, response[0], loss[0])
    two = pace[1] * rate(y + one / 2, response[1], loss[1])
    three = pace[1] * rate(y + two / 2, response[1], loss[1])
    four = pace[2] * rate(y + three, response[2], loss[2])
    return y + (one + 2 * (two + three) + four) / 6


def _trajectory(rate: Rate, y: Array, points: tuple[Array, ...], n_steps: Array) -> Array:
    """y at the nodes."""

    def step(n: Array, trajectory: Array) -> Array:
        return trajectory.at[n + 1].set(_step(rate, trajectory[n], *(values[n] for values in points)))

    return jax.lax.fori_loop(0, n_steps, step, _rows(y, points).at[0].set(y))


def _trajectory_back(rate: Rate, y: Array, points: tuple[Array, ...], n_steps: Array) -> Array:
    """y at the nodes from the last one back, by the transposed steps, so that Σuv is conserved."""

    def step(k: Array, trajectory: Array) -> Array:
        n = n_steps - k
        return trajectory.at[n - 1].set(_step(rate, trajectory[n], *(values[n - 1, ::-1] for values in points)))

    return jax.lax.fori_loop(0, n_steps, step, _rows(y, points).at[n_steps].set(y))


def _rows(y: Array, points: tuple[Array, ...]) -> Array:
    return jnp.zeros((len(points[0]) + 1, *y.shape), y.dtype)


def _at_nodes(function: Callable[..., Any], n_steps: Array, *trajectories: Array) -> Any:
    """Its values at the first n_steps + 1 nodes, and 0 after them."""
    shapes = jax.eval_shape(function, *(trajectory[0] for trajectory in trajectories))
    rows = jax.tree.map(lambda one: jnp.zeros((len(trajectories[0]), *one.shape), one.dtype), shapes)

    def fill(n: Array, rows: Any) -> Any:
        values = function(*(trajectory[n] for trajectory in trajectories))
        return jax.tree.map(lambda rows, value: rows.at[n].set(value), rows, values)

    return jax.lax.fori_loop(0, n_steps + 1, fill, rows)


def _strength(
    game: PairGame, u: Array, start: Array, left: Array, level: Array, width: Array, bend: tuple[Array, ...]
) -> Array:
    """s with l·x = l·x* - s·width for x ~ u exp(s l) (1 + …), NaN if it is larger than any that occurs."""
    masses, classes, logarithm = game.masses(start), game.classes.ravel(), jnp.log(u)

    def excess(s: Array) -> tuple[Array, Array]:
        """And its derivative, which is positive next to the saddle."""
        momentum, slope = jax.jvp(lambda s: _momentum(left, bend, s), (s,), (jnp.ones_like(s),))
        exponent = logarithm + momentum
        largest = jax.ops.segment_max(exponent.ravel(), classes, exponent.size)[classes].reshape(exponent.shape)
        weight = jnp.exp(exponent - jnp.where(jnp.isfinite(largest), largest, 0))
        x = masses * weight / _positive(game.masses(weight))
        mean = game.masses(x * left) / _positive(masses)
        return jnp.vdot(x, left) - level + s * width, jnp.vdot(x, (left - mean) * slope) + width

    def outside(farthest: Array) -> Array:
        return (farthest <= STRONGEST) & ~((excess(-farthest)[0] < 0) & (excess(farthest)[0] > 0))

    def unfinished(state: tuple[Array, ...]) -> Array:
        *_, before, s, number = state
        return ~(jnp.abs(s - before) <= DIGITS * jnp.abs(s)) & (number < MOST_ITERATIONS)

    def closer(state: tuple[Array, ...]) -> tuple[Array, ...]:
        low, high, before, s, number = state
        value, slope = excess(s)
        low, high = jnp.where(value <= 0, s, low), jnp.where(value >= 0, s, high)
        newton = s - value / slope
        inside = (newton >= low) & (newton <= high) & (jnp.abs(newton - s) < jnp.abs(s - before) / 2)
        return low, high, s, jnp.where(inside, newton, (low + high) / 2), number + 1

    farthest = jax.lax.while_loop(outside, lambda farthest: 2 * farthest, jnp.ones_like(level))
    first = -farthest, farthest, jnp.full_like(level, jnp.inf), jnp.zeros_like(level), jnp.zeros_like(level)
    s = jax.lax.while_loop(unfinished, closer, first)[3]
    return jnp.where(farthest > STRONGEST, jnp.nan, s)


def _positive(values: Array) -> Array:
    """1 for classes without agents."""
    return jnp.where(values == 0, 1, values)


def path_rates(
    arrays: tuple[Array, ...], x: Float[Array, "nodes ..."], p: Float[Array, "nodes ..."], n_steps: Array
) -> tuple[Float[Array, " nodes"], Float[Array, " nodes"]]:
    """p·dx/dt - H and H at the nodes of a path.

    In weak noise the terms of first order in p cancel; there the first is computed as ∫ s pᵀ H_pp(x, s p) p ds.
    """
    game = game_of(arrays)

    def one(x: Array, p: Array) -> tuple[Array, Array]:
        def slope(p: Array) -> Array:
            return jax.grad(game.hamiltonian, argnums=1)(x, p)

        def spread(part: Array) -> Array:
            return part * jnp.vdot(p, jax.jvp(slope, (part * p,), (p,))[1])

        energy = game.hamiltonian(x, p)
        weak = jnp.dot(jax.vmap(spread)(jnp.asarray(GAUSS[0])), jnp.asarray(GAUSS[1]))
        return jnp.where(jnp.ptp(p) < WEAK, weak, jnp.vdot(p, slope(p)) - energy), energy

    return _at_nodes(one, n_steps, x, p)


def path_fields(
    arrays: tuple[Array, ...], x: Float[Array, "nodes ..."], p: Float[Array, "nodes ..."], n_steps: Array
) -> Float[Array, "nodes fields"]:
    """Logarithms of the fields at the nodes of a path."""
    game: Any = game_of(arrays)
    fields = _at_nodes(lambda x, p: game.fields(x * jnp.exp(-p), jnp.exp(p)) + game.constants, n_steps, x, p)
    return jnp.log(jnp.maximum(fields, LEAST))


def linearised(
    arrays: tuple[Array, ...], x: Float[Array, ...], w: Float[Array, ...]
) -> tuple[Float[Array, ...], Float[Array, ...], Float[Array, ...]]:
    """F(x), J(x)ᵀw and D(x)w."""
    game = game_of(arrays)
    return drift(game, x), jacobian_product(game, x, w, transpose=True), noise_product(game, x, w)


def linearised_drift(arrays: tuple[Array, ...], x: Float[Array, ...], v: Float[Array, ...]) -> Float[Array, ...]:
    """J(x)v."""
    return jacobian_product(game_of(arrays), x, v)


def influences(
    arrays: tuple[Array, ...],
    logarithms: Float[Array, "halves fields"],
    pace: Float[Array, "steps 3"],
    u: Float[Array, "steps ..."],
    v: Float[Array, "steps ..."],
    basis: Float[Array, "fields parts"],
    mass: Float[Array, ""],
    y: Float[Array, "rows ..."],
    made_here: Bool[Array, ""],
) -> tuple[Float[Array, "rows ..."], Float[Array, "steps rows parts"]]:
    """Changes y of u after some steps, and the fields that each made at the nodes where the steps begin.

    Where they are `made_here`, each is what a field at one of these nodes makes of one agent, times the mass of all,
    before its fields at the same node are read. Fields are combinations, the columns of `basis`.
    """
    game: Any = game_of(arrays)
    points = _response(game, logarithms, pace, mass)
    rate = jax.vmap(_rates(game)[0], (0, None, None))
    size = basis.shape[1]

    def made(u: Array, v: Array) -> Array:
        """Change of u by each field, minus its mean over each class."""
        after = jax.jacrev(lambda v: game.fields(u, v) @ basis)(v)
        present = _positive(game.masses(u * v))
        return after - jax.vmap(lambda one: game.masses(one * v) / present * u)(after)

    def onwards(state: tuple[Array, Array], now: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        (y, row), (u, v, *points) = state, now
        y = jnp.where(made_here, jax.lax.dynamic_update_slice_in_dim(y, made(u, v), row, 0), y)
        seen = jax.vmap(lambda one: game.fields(one, v) @ basis)(y)
        return (_step(rate, y, *points), row + size), seen

    (y, _), seen = jax.lax.scan(onwards, (y, jnp.zeros((), int)), (u, v, *points))
    return y, seen


def final_correlations(
    arrays: tuple[Array, ...],
    logarithms: Float[Array, "halves fields"],
    pace: Float[Array, "steps 3"],
    n_steps: Array,
    u: Float[Array, "nodes ..."],
    v: Float[Array, "nodes ..."],
    left: Float[Array, ...],
) -> tuple[Float[Array, "nodes fields"], Float[Array, ""]]:
    """Covariance of the fields of one agent at each node with l of the state where it ends, and the variance of l."""
    game: Any = game_of(arrays)
    points = _response(game, logarithms, pace, (u[0] * v[0]).sum())
    y = _trajectory_back(_rates(game)[1], left * v[n_steps], points, n_steps)

    def read(u: Array, v: Array, y: Array) -> Array:
        return game.fields(u, y - game.masses(u * y) / _positive(game.masses(u * v)) * v)

    x = u[n_steps] * v[n_steps]
    mean = game.masses(x * left) / _positive(game.masses(x))
    return _at_nodes(read, n_steps, u, v, y), jnp.vdot(x, (left - mean) ** 2)


def branching(
    arrays: tuple[Array, ...], x: Float[Array, ...], v: Float[Array, ...]
) -> tuple[Float[Array, ...], Float[Array, ...]]:
    """v ∂H/∂x at p = log v, and its Jacobian: how the probabilities v that single agents among x die out would change.

    They are the probabilities themselves where this vanishes.
    """
    game = game_of(arrays)

    def change(v: Array) -> Array:
        return v * jax.grad(game.hamiltonian)(x, jnp.log(v))

    return change(v), jax.jacfwd(change)(v)


def curvature(
    arrays: tuple[Array, ...], x: Float[Array, ...], p: Float[Array, ...]
) -> tuple[Float[Array, "states states"], ...]:
    """Second derivatives of H: in x and x, in x and p, in p and p."""
    found = curvatures(arrays, jnp.eye(x.size), x[None], p[None])
    return tuple(one[0] for one in found)


def curvatures(
    arrays: tuple[Array, ...],
    basis: Float[Array, "states d"],
    x: Float[Array, "nodes ..."],
    p: Float[Array, "nodes ..."],
) -> tuple[Float[Array, "nodes d d"], ...]:
    """The same along the columns of a basis, at many points."""
    game = game_of(arrays)

    def slopes(x: Array, p: Array) -> tuple[Array, Array]:
        by_x, by_p = jax.grad(game.hamiltonian, argnums=(0, 1))(x, p)
        return basis.T @ by_x.ravel(), basis.T @ by_p.ravel()

    def one(point: tuple[Array, Array]) -> tuple[Array, ...]:
        rows = basis.T.reshape(-1, *x.shape[1:])
        still = jnp.zeros_like(rows)
        turned = jax.linearize(slopes, *point)[1]
        (xx, _), (px, pp) = jax.vmap(turned)(rows, still), jax.vmap(turned)(still, rows)
        return xx, px.T, pp

    return jax.lax.map(one, (x, p), batch_size=FEW)


def flow(
    arrays: tuple[Array, ...], x: Float[Array, "nodes ..."], p: Float[Array, "nodes ..."]
) -> tuple[Float[Array, " nodes"], Float[Array, "nodes ..."], Float[Array, "nodes ..."]]:
    """H, ∂H/∂p and ∂H/∂x at points."""
    energy, (by_x, by_p) = jax.vmap(jax.value_and_grad(game_of(arrays).hamiltonian, argnums=(0, 1)))(x, p)
    return energy, by_p, by_x


def met_others_of_rates(
    arrays: tuple[Array, ...], x: Float[Array, "nodes ..."], p: Float[Array, "nodes ..."]
) -> tuple[Float[Array, " nodes"]]:
    """Gain of H of order 1/N at points, since the pairs of a reaction model are of two different agents.

    Rates that are functions of the composition depend on all agents, and gain nothing.
    """
    pairs = ReactionGame(*arrays[:7])

    def gained(x: Array, p: Array) -> Array:
        def met(x: Array) -> Array:  # the quadratic terms in x
            return pairs.hamiltonian(2 * x, p) / 2 - pairs.hamiltonian(x, p)

        return met(x) - x @ jax.vmap(met)(jnp.eye(len(x), dtype=x.dtype))

    return (jax.vmap(gained)(x, p),)


def pairing(arrays: tuple[Array, ...]) -> Float[Array, "fields fields"]:
    """Second derivatives of the energy: which fields are partners of each other, and how strongly."""
    game: Any = game_of(arrays)
    return jax.hessian(game.energy)(game.constants)


def field_coefficients(arrays: tuple[Array, ...]) -> Float[Array, "fields states states"]:
    """∂²g/∂u∂v of a reaction model."""
    game: Any = game_of(arrays)
    zeros = jnp.zeros(game.classes.shape, game.constants.dtype)
    return jax.jacfwd(jax.jacrev(game.fields), argnums=1)(zeros, zeros)


def met_others(
    arrays: tuple[Array, ...],
    members: Float[Array, "classes ..."],
    u: Float[Array, "nodes ..."],
    v: Float[Array, "nodes ..."],
    n_steps: Array,
) -> Float[Array, " nodes"]:
    """Gain of agents per unit of time, of order 1, from not meeting themselves, at the nodes of a path.

    With B the pairing it is g·Bg minus the mean of the same of a single agent; 0 for agents of one class. `members` is
    1 for the states of each class and 0 elsewhere. Each agent without a state has one field that is its own partner.
    """
    game: Any = game_of(arrays)
    partners = pairing(arrays)

    def gained(u: Array, v: Array) -> Array:
        own = jax.vmap(lambda member: game.fields(member * u, v))(members)
        mass = _positive(jax.vmap(lambda member: jnp.vdot(member * u, v))(members))
        alone = ((own @ partners) * own).sum(1) / mass
        g = own.sum(0) + game.constants
        return g @ partners @ g - alone.sum() - jnp.vdot(game.constants, jnp.diagonal(partners))

    return _at_nodes(gained, n_steps, u, v)


def adjoint(
    arrays: tuple[Array, ...], x: Float[Array, ...], w: Float[Array, ...], step: Array, *, n_steps: int
) -> tuple[Array, Array, Array]:
    """w and D w before each step of dw/dt = Jᵀw at a fixed point x, and w after the last."""
    game = game_of(arrays)

    def rate(w: Array, *_: Array) -> Array:
        return jacobian_product(game, x, w, transpose=True)

    def one(w: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        return _step(rate, w, *[jnp.zeros(3)] * 2, jnp.full(3, step)), (w, noise_product(game, x, w))

    w, (trajectory, pushed) = jax.lax.scan(one, w, None, length=n_steps)
    return trajectory, pushed, w
