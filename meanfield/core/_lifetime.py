"""The logarithm of a mean lifetime, with its derivatives with respect to the game.

Perturbations of a path z(t) = (x, p) obey the linearised Hamilton equations. With V the momenta of a basis of all that
leave the attractor, and H₁ since agents do not meet themselves, a lifetime's prefactor (`meanfield.lifetime`) becomes

    log C = E + ½ log |det V(∞)/det V(-∞)| + ∫ (½ tr H_xp - H₁) dt,

with E = log 2π/λ over a saddle. In an extinction, whose path ends as x* + sξ and p* + sl, it is the limit s → 0 with
E = ½ log 2π/(l·ξ - l·Σl) - log λs. One of the basis is dz/dt; the others are kept orthogonal to it and to ∇H, so that
no error grows. The trace is integrated as the determinant of δp' = -H_xp δp, by the same steps as V: both err alike
where agents rest.

The path solves equations of collocation between its linearised ends, and follows the game by a step of Newton's method.
Nodes are eliminated one by one by orthogonal matrices (Wright, SIAM J. Sci. Stat. Comput. 13, 742 (1992)).
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
from meanfield.core._game import Array, RateGame, ReactionGame, WordGame
from meanfield.core._path_search import filled
from meanfield.core._second_order import meeting

CLOSER, PATH_CLOSER = 7, 4  # steps of Newton's method, for ends and for a path, which is known to 1e-3 or better
BEGINS = 1e-7  # momentum at the start, against the largest
PRESENT = 0.1  # momentum at the end of an extinction, at least, against the largest
CUTS = np.array([1.0, 2.0, 4.0])  # strengths s, over the least one, from which log C is extrapolated to s = 0
LEAST = 2e-3  # the least one, over the largest: the path itself errs as its inverse square
MOST_BENT = 0.02  # of the last part of a path
UNSETTLED = 1e-6  # the last step of Newton's method, of fractions and momenta
NEAR_ATTRACTOR = 0.1  # momentum at the start of a path, against the largest, from which it is continued


def log_lifetime(
    game: WordGame | ReactionGame | RateGame, path: Any, n_agents: Float[Array, ""] | float
) -> Float[Array, ""]:
    """The logarithm of the mean time after which N agents leave an attractor by a path, with its derivatives.

    It is N · barrier + log(prefactor · N^power), as in `meanfield.lifetime`, for one escape path. First derivatives by
    the game are exact: the path, its ends and the fluctuations about it follow the game. Second derivatives are wrong.

    Parameters
    ----------
    game
        The game of the path, in 64 bits. Under `jax.jit` its classes may not be traced. A first derivative compiles
        for 20 seconds.
    path
        As `meanfield.escape_path` returns it for an attractor.
    n_agents
        N.

    Returns
    -------
    The logarithm of a time in rounds, for a reaction model in its unit of time. NaN where the path reaches its saddle
    sideways, or is not the game's; without meaning in other cases in which `meanfield.lifetime` knows no prefactor.
    Rates exp(-value) of several paths add up. For agents in two states who change one at a time
    `meanfield.lifetime` takes the exact chain, from which the value differs by the order of 1/N.

    Raises
    ------
    ValueError
        If JAX has 32 bits, agents meet in groups, or the path is one of other states, starts from empty memories, or
        does not begin next to its attractor, as where agents hardly ever err.

    Examples
    --------
    An epidemic lasts √(2π/N) R/(R - 1)² exp(N (log R + 1/R - 1)). At R = 2 the logarithm has the derivative N/4 - 3/2:

    >>> import jax
    >>> from meanfield import core
    >>> nobody = core.ReactionGame(np.empty((0, 2)), *np.empty((3, 0), int), np.empty(0), np.zeros(2, int), 1.0)
    >>> def game(R):  # infection and recovery
    ...     return core.RateGame(nobody, np.array([0, 1]), np.array([1, 0]), lambda x: jax.numpy.array([R * x[1], 1.0]))
    >>> model = meanfield.ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: 2.0 * x["I"], 1.0])
    >>> path = meanfield.escape_path(model, fixed_point=1)
    >>> with jax.enable_x64(True):
    ...     slope = jax.grad(lambda R: core.log_lifetime(game(R), path, 100))(2.0)
    >>> round(float(slope), 3)
    23.5
    """
    if "option_fixed_point" not in path.attrs:
        raise ValueError("path starts from empty memories: expected one from an attractor, by its number fixed_point")
    if jnp.result_type(float) != jnp.float64:
        raise ValueError("JAX has 32 bits: expected 64, as with jax.enable_x64(True)")
    if isinstance(game, WordGame) and game.groups is not None:
        raise ValueError("game has groups: expected pairs, whose prefactor is known")
    with jax.ensure_compile_time_eval():
        classes = np.asarray(game.classes).ravel()
    if (states := path["momentum"][0].size) != classes.size:
        raise ValueError(f"path is one of {states} states: expected the {classes.size} of the game")
    x, p = (path[name].values.reshape(-1, classes.size) for name in ("composition", "momentum"))
    reached, p = np.isfinite(p[0]), np.nan_to_num(p)
    basis = null_space(np.vstack([np.eye(classes.size)[~reached], np.eye(classes.max() + 1)[classes].T]))
    size = np.linalg.norm(p @ basis, axis=1)
    dies_out, first = bool(size[-1] > PRESENT * size.max()), size[0] / size.max()
    if not first < NEAR_ATTRACTOR:
        begins = f"path begins with {first:.2g} of its largest momentum"
        raise ValueError(f"{begins}: expected at most {NEAR_ATTRACTOR}, as next to the attractor")
    x, p, time = (filled(one, "edge") for one in _longer(x, p, path["time"].values, size))
    if isinstance(game, WordGame):
        x = jnp.repeat(game.share.ravel(), classes.size // game.share.size) * x
    rest = _log_prefactor(game, x, p, time, basis, dies_out) - isinstance(game, WordGame) * np.log(2)
    return n_agents * action(game, path) + rest - (jnp.log(n_agents) / 2 if dies_out else 0)


def _longer(x: np.ndarray, p: np.ndarray, time: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, ...]:
    """A path that starts nearer to the attractor, where equations are linear and any guess leads to it."""
    later = int(np.argmax(size > 2 * size[0]))
    step, rise = (time[later] - time[0]) / later, np.log(size[later] / size[0]) / later
    earlier = np.arange(np.log(size[0] / (BEGINS * size.max())) // rise, 0, -1)
    fading = np.exp(-rise * earlier)[:, None]
    return np.vstack([0 * fading + x[0], x]), np.vstack([fading * p[0], p]), np.append(time[0] - step * earlier, time)


@eqx.filter_jit
def _log_prefactor(
    game: Any, x: Array, p: Array, time: Array, basis: Float[np.ndarray, "states d"], dies_out: bool
) -> Array:
    """log C in the game's unit of time, for N = 1.

    Matrices are factorised one by one: on two cores XLA came to a standstill over two batches of them.
    """
    d, shape, steps = basis.shape[1], game.classes.shape, jnp.diff(time, append=time[-1])
    level, one = x[0] - basis @ (basis.T @ x[0]), jnp.eye(d)
    z = stop_gradient(jnp.hstack([x @ basis, p @ basis]))

    def point(z: Array) -> tuple[Array, Array]:
        return (level + basis @ z[:d]).reshape(shape), (basis @ z[d:]).reshape(shape)

    def rate(z: Array) -> Array:
        by_x, by_p = jnp.split(jax.grad(lambda z: game.hamiltonian(*point(z)))(z), 2)
        return jnp.append(by_p, -by_x)

    def followed(z: Array) -> tuple[Array, Array, Array]:
        """Points, first the nodes and then those between them, with dz/dt and its slopes; the last one is a node."""

        def seen(points: Array, _: None) -> tuple[Array, tuple[Array, Array, Array]]:
            rates, slopes = jax.vmap(rate)(points), jax.vmap(jax.jacfwd(rate))(points)
            onwards, change = (jnp.concatenate([values[1:], values[-1:]]) for values in (z, rates))
            return (z + onwards) / 2 - steps[:, None] / 8 * (change - rates), (points, rates, slopes)

        return jax.lax.scan(seen, z, None, length=2)[1]

    start, end = ends = jax.lax.map(lambda z: _root(rate, z), z[jnp.array([0, -1])])
    off, (at_start, at_end) = stop_gradient(z[-1] - end), jax.vmap(jax.jacfwd(rate))(ends)

    def fading(state: Array) -> Array:
        """0 for λ and (ξ, l) of the size of `off`."""
        return jnp.append(at_end @ state[:-1] + state[-1] * state[:-1], off @ state[:-1] / (off @ off) - 1)

    last_mode = _root(fading, jnp.append(off, -off @ at_end @ off / (off @ off)))
    along, growth = last_mode[:-1], last_mode[-1]
    bent = jnp.linalg.norm(along - off) > MOST_BENT * jnp.linalg.norm(off)
    covariance = _stationary(at_start)
    conditions = jnp.hstack([one, -covariance]), jnp.hstack([0 * one, one])

    def nearer(_: Array, found: tuple[Array, Array]) -> tuple[Array, Array]:
        z = stop_gradient(found[0])
        _, (f, f_inner), slopes = followed(z)
        missed = jnp.diff(z, axis=0) - steps[:-1, None] / 6 * (f[:-1] + 4 * f_inner[:-1] + f[1:])
        ends = conditions[0] @ (z[0] - start), conditions[1] @ (z[-1] - end - along)
        step = _solved(*stop_gradient((*_collocated(slopes, steps), *conditions)), missed, *ends)
        return z - step, stop_gradient(jnp.abs(step).max())

    z, last_step = jax.lax.fori_loop(0, PATH_CLOSER, nearer, (z, jnp.inf))
    points, (velocity, _), slopes = followed(z)
    pairs = game.pairs if isinstance(game, RateGame) else game
    of_committed = jnp.diagonal(jax.hessian(pairs.energy)(pairs.constants)) @ pairs.constants / 2

    def gained(z: Array) -> Array:
        """H₁."""
        x, p = point(z)
        alone = jax.vmap(lambda unit: meeting(pairs, unit, p, 0.0))(jnp.eye(x.size))
        return meeting(pairs, x, p, pairs.constants) - x.ravel() @ alone - of_committed

    def across(velocity: Array, others: Array) -> Array:
        plane = jnp.stack([velocity, jnp.append(-velocity[d:], velocity[:d])], axis=1) / jnp.linalg.norm(velocity)
        return others - plane @ (plane.T @ others)

    def size(velocity: Array, others: Array) -> Array:
        """log |det V|."""
        return jnp.linalg.slogdet(jnp.hstack([velocity[d:, None], others[d:]]))[1]

    def onwards(others: Array, now: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        here, there, velocity, free_here, free_there = now
        others = across(velocity, -jnp.linalg.solve(there, here @ others))
        grown = jnp.linalg.slogdet(free_there)[1] - jnp.linalg.slogdet(free_here)[1]
        if d > 1:
            others, triangle = jnp.linalg.qr(others)
            grown += jnp.log(jnp.abs(jnp.diagonal(triangle))).sum()
        return others, (grown, size(velocity, others))

    beside = jnp.linalg.qr(stop_gradient(velocity[0, d:, None]), mode="complete")[0][:, 1:]
    others = across(velocity[0], jnp.vstack([covariance @ beside, beside]))
    matrices = *_collocated(slopes, steps), velocity[1:], *_collocated(slopes[..., d:, d:], steps)
    grown, sizes = jax.lax.scan(onwards, others, matrices)[1]
    lost, lost_inner = jax.lax.map(gained, points.reshape(-1, 2 * d)).reshape(2, -1)
    fed = steps[:-1] / 6 * (lost[:-1] + 4 * lost_inner[:-1] + lost[1:])
    total = jnp.cumsum(grown / 2 - fed) + (sizes - size(velocity[0], others)) / 2
    strength = (points[0, 1:] - end) @ off / (off @ off)
    if dies_out:
        weight = along[d:] @ along[:d] - along[d:] @ _stationary(at_end) @ along[d:]
        total -= jnp.log(growth * strength) + jnp.log(weight / (2 * jnp.pi)) / 2
    else:
        total -= jnp.log(growth / (2 * jnp.pi))
    cuts = CUTS[:, None] * jnp.maximum(strength[-1], LEAST * strength.max())
    nodes = len(fed) - 1 - jnp.argmax(strength[::-1] >= cuts, axis=1)
    powers = strength[nodes][:, None] ** jnp.arange(len(CUTS))
    return jnp.linalg.solve(powers, total[nodes])[0] * jnp.where(bent | ~(last_step < UNSETTLED), jnp.nan, 1.0)


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


def _collocated(slopes: Array, steps: Array) -> tuple[Array, Array]:
    """A and B with A z + B (z one step later) = 0 for dz/dt = Mz, from M at nodes and between them."""
    one, step = jnp.eye(slopes.shape[-1]), steps[:-1, None, None]
    here, inner, there = slopes[0, :-1], slopes[1, :-1], slopes[0, 1:]
    first = -one - step / 6 * (here + 4 * inner @ (one / 2 + step / 8 * here))
    return first, one - step / 6 * (there + 4 * inner @ (one / 2 - step / 8 * there))


def _solved(A: Array, B: Array, start: Array, stop: Array, right: Array, at_start: Array, at_stop: Array) -> Array:
    """z with A z + B (z one step later) = right, start z = at_start at first, and stop z = at_stop in the end."""
    size = 2 * len(start)

    def eliminated(rows: tuple[Array, Array], now: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, ...]]:
        turn, triangle = jnp.linalg.qr(jnp.vstack([rows[0], now[0]]), mode="complete")
        later, values = turn.T[:, len(rows[0]) :] @ now[1], turn.T @ jnp.append(rows[1], now[2])
        return (later[size:], values[size:]), (triangle[:size], later[:size], values[:size])

    def back(z: Array, now: tuple[Array, ...]) -> tuple[Array, Array]:
        found = jax.scipy.linalg.solve_triangular(now[0], now[2] - now[1] @ z)
        return found, found

    (rows, values), kept = jax.lax.scan(eliminated, (start, at_start), (A, B, right))
    last = jnp.linalg.solve(jnp.vstack([rows, stop]), jnp.append(values, at_stop))
    return jnp.vstack([jax.lax.scan(back, last, kept, reverse=True)[1], last])
