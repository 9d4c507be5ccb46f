"""The logarithm of a mean lifetime, with its derivatives by the game.

Perturbations of a path z(t) = (x, p) obey the linearised Hamilton equations. With V the momenta of a basis of all that
leave the attractor, and H₁ from agents who do not meet themselves, the equations of the prefactor C are (Maier and
Stein, SIAM J. Appl. Math. 57, 752 (1997))

    log C = E + ½ log |det V(∞)/det V(-∞)| + ∫ (½ tr H_xp - H₁) dt,

E = log 2π/λ over a saddle, and ½ log 2π/(l·ξ - l·Σl) - log λs in an extinction, which ends as x* + sξ, p* + sl. One of
the basis is dz/dt. The others are kept orthogonal to it and to ∇H: no error of theirs grows.

The path is a root of collocation of order four between its linearised ends, and one step of Newton's method changes it
with the game. Orthogonal matrices eliminate nodes one by one, which is stable (Wright, SIAM J. Sci. Stat. Comput. 13,
742 (1992)).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jaxtyping import Float
from scipy.linalg import null_space

from meanfield.core._action import action
from meanfield.core._game import Array, Game, RateGame, WordGame
from meanfield.core._path_search import filled
from meanfield.core._second_order import meeting

CLOSER, PATH_CLOSER = 7, 4  # steps of Newton's method, for ends and for a path, which is known to 1e-3 or better
BEGINS = 1e-7  # momentum at the start, against the largest
CUTS = np.array([1.0, 2.0, 4.0])  # strengths at which paths end, from which log C is extrapolated to 0, over the last
PRESENT = 0.1  # momentum at the end of an extinction, at least, against the largest


def log_lifetime(game: Game, path: Any, n_agents: Any) -> Float[Array, ""]:
    """TODO"""
    if "option_fixed_point" not in path.attrs:
        raise ValueError("path is one from empty memories: expected one from the attractor of this lifetime")
    with jax.ensure_compile_time_eval():
        classes = np.asarray(game.classes).ravel()
    x, p = (path[name].values.reshape(-1, classes.size) for name in ("composition", "momentum"))
    face = np.isfinite(p[0])
    basis = null_space(np.vstack([np.eye(classes.size)[~face], np.eye(classes.max() + 1)[classes].T]))
    momentum = np.linalg.norm(np.nan_to_num(p) @ basis, axis=1)
    dies_out = bool(momentum[-1] > PRESENT * momentum.max())
    x, p, time = (filled(one, "edge") for one in _longer(x, np.nan_to_num(p), path["time"].values, momentum))
    shares = jnp.ones(1)
    if isinstance(game, WordGame):  # fractions of each species, and rounds
        shares = jnp.repeat(game.share.ravel(), classes.size // game.share.size)
    logarithm = _log_prefactor(game, shares * x, p, time, basis, dies_out)
    if dies_out:
        logarithm -= jnp.log(n_agents) / 2
    return n_agents * action(game, path) + logarithm - isinstance(game, WordGame) * np.log(2)


def _longer(x: np.ndarray, p: np.ndarray, time: np.ndarray, momentum: np.ndarray) -> tuple[np.ndarray, ...]:
    """A path that starts nearer to the attractor, where equations are linear and any guess leads to it."""
    later = int(np.argmax(momentum > 2 * momentum[0]))
    step, rise = (time[later] - time[0]) / later, np.log(momentum[later] / momentum[0]) / later
    earlier = np.arange(np.log(momentum[0] / (BEGINS * momentum.max())) // rise, 0, -1)
    fading = np.exp(-rise * earlier)[:, None]
    return np.vstack([0 * fading + x[0], x]), np.vstack([fading * p[0], p]), np.append(time[0] - step * earlier, time)


@eqx.filter_jit
def _log_prefactor(
    game: Any, x: Array, p: Array, time: Array, basis: Float[np.ndarray, "states d"], dies_out: bool
) -> Array:
    """Of a path, in units of the game's time, for N = 1; a node may be repeated."""
    d, shape, steps = basis.shape[1], game.classes.shape, jnp.diff(time, append=time[-1])
    level, one = x[0] - basis @ (basis.T @ x[0]), jnp.eye(d)
    z = stop_gradient(jnp.hstack([x @ basis, p @ basis]))

    def point(z: Array) -> tuple[Array, Array]:
        return (level + basis @ z[:d]).reshape(shape), (basis @ z[d:]).reshape(shape)

    def rate(z: Array) -> Array:
        by_x, by_p = jnp.split(jax.grad(lambda z: game.hamiltonian(*point(z)))(z), 2)
        return jnp.append(by_p, -by_x)

    def along_path(z: Array) -> tuple[Array, Array, Array]:
        """Points, first at nodes and then between them, with dz/dt and its slopes; the last point is a node."""

        def seen(points: Array, _: None) -> tuple[Array, tuple[Array, Array, Array]]:
            rates, slopes = jax.vmap(rate)(points), jax.vmap(jax.jacfwd(rate))(points)
            onwards, change = (jnp.concatenate([values[1:], values[-1:]]) for values in (z, rates))
            return (z + onwards) / 2 - steps[:, None] / 8 * (change - rates), (points, rates, slopes)

        return jax.lax.scan(seen, z, None, length=2)[1]

    # Ends
    start, end = ends = jax.lax.map(lambda z: _root(rate, z), z[jnp.array([0, -1])])
    off, (at_start, at_end) = stop_gradient(z[-1] - end), jax.vmap(jax.jacfwd(rate))(ends)
    covariance = _stationary(at_start)

    def fading(state: Array) -> Array:
        """0 for (ξ, l) of the size of `off`, and λ."""
        return jnp.append(at_end @ state[:-1] + state[-1] * state[:-1], off @ state[:-1] / (off @ off) - 1)

    *along, growth = _root(fading, jnp.append(off, -off @ at_end @ off / (off @ off)))
    along = jnp.stack(along)

    # Path
    conditions = jnp.hstack([one, -covariance]), jnp.hstack([0 * one, one])

    def nearer(_: Array, z: Array) -> Array:
        z = stop_gradient(z)
        _, (f, f_inner), (slopes, inner) = along_path(z)
        missed = jnp.diff(z, axis=0) - (steps[:, None] / 6 * (f + 4 * f_inner))[:-1] - steps[:-1, None] / 6 * f[1:]
        ends = conditions[0] @ (z[0] - start), conditions[1] @ (z[-1] - end - along)
        return z - _solved(*stop_gradient((*_step(slopes, inner, steps), *conditions)), missed, *ends)

    z = jax.lax.fori_loop(0, PATH_CLOSER, nearer, z)

    # Transport
    pairs = game.pairs if isinstance(game, RateGame) else game
    of_committed = jnp.diagonal(jax.hessian(pairs.energy)(pairs.constants)) @ pairs.constants / 2

    def gained(z: Array) -> Array:
        """H₁."""
        x, p = point(z)
        alone = jax.vmap(lambda unit: meeting(pairs, unit, p, 0.0))(jnp.eye(x.size))
        return meeting(pairs, x, p, pairs.constants) - x.ravel() @ alone - of_committed

    points, (velocity, _), (slopes, inner) = along_path(z)
    lost = jax.lax.map(gained, points.reshape(-1, 2 * d)).reshape(2, -1)
    moves, unbound = (_step(slopes[:, k:, k:], inner[:, k:, k:], steps) for k in (0, d))
    fed = -steps[:-1] * (lost[0, :-1] + 4 * lost[1, :-1] + lost[0, 1:]) / 6

    def across(velocity: Array, others: Array) -> Array:
        plane = jnp.stack([velocity, jnp.append(-velocity[d:], velocity[:d])], axis=1) / jnp.linalg.norm(velocity)
        return others - plane @ (plane.T @ others)

    def momenta(velocity: Array, others: Array) -> Array:
        return jnp.linalg.slogdet(jnp.hstack([velocity[d:, None], others[d:]]))[1]

    beside = jnp.linalg.qr(stop_gradient(velocity[0, d:, None]), mode="complete")[0][:, 1:]
    others = across(velocity[0], jnp.vstack([covariance @ beside, beside]))

    def onwards(others: Array, now: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        here, there, velocity, unbound_here, unbound_there = now
        others = across(velocity, -jnp.linalg.solve(there, here @ others))
        grown = jnp.linalg.slogdet(unbound_there)[1] - jnp.linalg.slogdet(unbound_here)[1]
        if d > 1:
            others, triangle = jnp.linalg.qr(others)
            grown += jnp.log(jnp.abs(jnp.diagonal(triangle))).sum()
        return others, (grown / 2, momenta(velocity, others) / 2)

    _, (grown, ends) = jax.lax.scan(onwards, others, (*moves, velocity[1:], *unbound))
    total = jnp.cumsum(fed + grown) + ends - momenta(velocity[0], others) / 2
    strength = (z[1:] - end) @ off / (off @ off)
    if dies_out:
        weight = along[d:] @ along[:d] - along[d:] @ _stationary(at_end) @ along[d:]
        total -= jnp.log(growth * strength) + jnp.log(weight / (2 * jnp.pi)) / 2
    else:
        total -= jnp.log(growth / (2 * jnp.pi))
    last = len(fed) - 1 - jnp.argmax(strength[::-1] >= CUTS[:, None], axis=1)
    powers = strength[last][:, None] ** jnp.arange(len(CUTS))
    return jnp.linalg.solve(powers, total[last])[0]


def _root(function: Callable[[Array], Array], guess: Array) -> Array:
    """The root next to a guess, with its first derivatives."""

    def nearer(_: Array, guess: Array) -> Array:
        guess = stop_gradient(guess)
        return guess - jnp.linalg.solve(stop_gradient(jax.jacfwd(function)(guess)), function(guess))

    return jax.lax.fori_loop(0, CLOSER, nearer, guess)


def _stationary(slopes: Array) -> Array:
    """C with JC + CJᵀ + D = 0."""
    (J, D), one = jnp.split(slopes[: len(slopes) // 2], 2, axis=1), jnp.eye(len(slopes) // 2)
    return jnp.linalg.solve(jnp.kron(J, one) + jnp.kron(one, J), -D.ravel()).reshape(D.shape)


def _step(slopes: Array, inner: Array, steps: Array) -> tuple[Array, Array]:
    """Matrices A and B of each step of dz/dt = Mz, with Az + B(z after it) = 0; M at nodes and between."""
    one, step = jnp.eye(slopes.shape[1]), steps[:-1, None, None]
    here, inner, there = slopes[:-1], inner[:-1], slopes[1:]
    first = -one - step / 6 * (here + 4 * inner @ (one / 2 + step / 8 * here))
    return first, one - step / 6 * (there + 4 * inner @ (one / 2 - step / 8 * there))


def _solved(
    first: Array, second: Array, start: Array, stop: Array, between: Array, at_start: Array, at_stop: Array
) -> Array:
    """z with first z_k + second z_(k+1) = between at each step, start z_0 = at_start and stop z_n = at_stop."""
    size = 2 * len(start)

    def eliminated(rows: tuple[Array, Array], now: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        (known, values), (here, there, right) = rows, now
        turn, triangle = jnp.linalg.qr(jnp.vstack([known, here]), mode="complete")
        next_ones, right = turn.T[:, len(known) :] @ there, turn.T @ jnp.append(values, right)
        return (next_ones[size:], right[size:]), (triangle[:size], next_ones[:size], right[:size])

    (known, values), kept = jax.lax.scan(eliminated, (start, at_start), (first, second, between))
    last = jnp.linalg.solve(jnp.vstack([known, stop]), jnp.append(values, at_stop))

    def back(later: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        triangle, next_ones, right = now
        found = jax.scipy.linalg.solve_triangular(triangle, right - next_ones @ later)
        return found, found

    return jnp.vstack([jax.lax.scan(back, last, kept, reverse=True)[1], last])
