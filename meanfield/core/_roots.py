"""Fixed points and critical masses as differentiable functions of a game, by roots in the word share.

A composition x is a fixed point exactly where x = p(Q) and Q = F(Q) (see `response`): W - 1 unknowns,
here the log-odds u_w = log(Q_w / Q_W) of all words but the last. Derivatives follow from the implicit function theorem.
"""

from __future__ import annotations

from operator import index
from typing import Any, NamedTuple, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Bool, Float

from meanfield.core._game import Array, Game, WordGame, one_program
from meanfield.core._rates import drift
from meanfield.core._response import composition, response
from meanfield.core._space import MemorySpace

# Log-odds at which functions of two words are looked at; equal shares, where a root often lies, are between two of them
GRID = np.sinh(np.linspace(-np.arcsinh(46.0), np.arcsinh(46.0), 128))
TOGETHER = 16  # responses computed at once: each takes the memory of its chain
HALVINGS = 54  # of an interval of the grid, to the last digit
NOTHING = 1e-9  # of a critical mass, which is known to 1e-16


class FixedPoint(NamedTuple):
    """A fixed point: word shares (words), composition in the shape of x, and whether the iteration converged."""

    word_share: Float[Array, ...]
    composition: Float[Array, ...]
    successful: Bool[Array, ...]


@eqx.filter_jit
def fixed_point(game: WordGame, word_share: Float[Array, "*apart words"], *, max_steps: int = 32) -> FixedPoint:
    """The fixed point to which Newton's method leads from a guess of the word share, with implicit derivatives.

    The guess lies inside the simplex, and near the fixed point: from further off another one may be found. In a game
    with `meets` it is what the partners of each species say, shape (M, W), and so is `word_share` of the result.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> with jax.enable_x64(True):
    ...     game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    ...     print(core.fixed_point(game, np.array([0.8, 0.2])).word_share.round(6))
    [0.5 0.5]
    """
    guess = jnp.log(word_share[..., :-1] / word_share[..., -1:])
    return _polished(game, guess, max_steps, None)


@eqx.filter_jit
def fixed_points(game: WordGame, *, size: int = 7) -> FixedPoint:
    """Fixed points of two words, by decreasing share of the first: one for each sign change on a grid of 128 log-odds.

    The result has ``size + 2`` points, so that the function can be jitted and batched; entries that are not fixed
    points are NaN and not `successful`. The first and the last entry are the exact consensus states, in which nobody
    ever says the other word. `meanfield.fixed_points` finds all fixed points; this function may miss pairs closer than
    a step of the grid, and takes a chain with several closed classes for one.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.5, 1.0, 0.6, 0.6, 0.0])  # those who agreed stay with their word
    >>> with jax.enable_x64(True):
    ...     found = core.fixed_points(core.WordGame(np.stack([q, 1 - q], axis=-1)))
    ...     print(found.word_share[found.successful].round(3))
    [[1. 0.]
     [0. 1.]]
    """
    logits = jnp.asarray(GRID, game.q.dtype)[::-1]
    values = lax.map(lambda u: _mismatch(game, u), logits, batch_size=TOGETHER)
    told = jnp.abs(values) > 100 * jnp.finfo(values.dtype).eps * jnp.abs(logits)  # less is rounding
    change = (values[:-1] * values[1:] < 0) & told[:-1] & told[1:] & jnp.isfinite(values[:-1] * values[1:])
    (place,) = jnp.nonzero(change, size=size, fill_value=-1)
    above, below = logits[place], logits[place + 1]
    start = below + (above - below) * values[place + 1] / (values[place + 1] - values[place])

    def polished(u: Array, low: Array, high: Array, used: Array) -> FixedPoint:
        # Where there is no root, agents who say all words alike stand in: NaN would spoil the derivatives of the others
        q = jnp.where(used, game.q, 1 / game.q.shape[-1])
        safe = WordGame(q, game.share, jnp.where(used, game.committed, 0), groups=game.groups)
        return _polished(safe, jnp.where(used, u, 0), 64, (low, high))

    inner = jax.vmap(polished)(start, below, above, place >= 0)
    found = inner.successful & (place >= 0)
    corners = [_corner(game, word) for word in (0, 1)]

    def stacked(one: Array, many: Array, other: Array) -> Array:
        where = found.reshape(-1, *(1 for _ in many.shape[1:]))
        return jnp.concatenate([one[None], jnp.where(where, many, jnp.nan), other[None]])

    share, x = (stacked(corners[0][i], inner[i], corners[1][i]) for i in (0, 1))
    return FixedPoint(share, x, jnp.concatenate([corners[0][2][None], found, corners[1][2][None]]))


def critical_mass(game: WordGame, word: SupportsIndex) -> Float[Array, ""]:
    """The fraction of agents committed to `word` at which the state where it is rarest vanishes; NaN if it never does.

    With a fraction c of committed agents, all to `word` (0 or 1), and v the other word, c(Q) = 1 - Q_v / F_v(Q) at a
    fixed point. (Agents of the game who are committed already count, too.) The critical mass is the first maximum of c
    as the word becomes commoner. Since c is stationary there, its derivative in the policy is the partial derivative.
    Two words. It is resolved on a grid of 128 log-odds; `meanfield.critical_mass` also tells continuous transitions
    from folds.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> space = meanfield.MemorySpace(2, 2)
    >>> lead = [sum(1 - own - partner for own, partner in space.memory(i)) for i in range(space.n_states)]
    >>> q = 0.5 + 0.495 * np.sign(lead)  # says the word that it remembers most
    >>> with jax.enable_x64(True):
    ...     mass = core.critical_mass(core.WordGame(np.stack([q, 1 - q], axis=-1)), 1)
    >>> print(f"{mass:.4f}")
    0.1634
    """
    if word not in (0, 1):
        raise ValueError(f"word = {word}: expected 0 or 1")
    return _critical_mass(game, index(word))


@eqx.filter_jit
def _critical_mass(game: WordGame, word: int) -> Float[Array, ""]:
    side = 1.0 if word == 0 else -1.0

    def committed(u: Float[Array, ""]) -> Float[Array, ""]:
        return committed_at(game, side * u, word)

    logits = jnp.asarray(GRID, game.q.dtype)
    values = lax.map(committed, logits, batch_size=TOGETHER)
    turns = (values[1:-1] > values[:-2]) & (values[1:-1] >= values[2:]) & (values[1:-1] > NOTHING)
    falls = values[1:-1] - lax.cummin(values, reverse=True)[2:] > NOTHING  # towards c = 1 only rounding falls
    turns &= falls & jnp.isfinite(values[:-2] + values[2:])
    place = 1 + jnp.argmax(turns)
    lower, upper = logits[place - 1], logits[place + 1]
    fold = lax.stop_gradient(_bisected(jax.grad(committed), lower, upper))
    return jnp.where(turns.any(), committed(fold) + game.committed[word], jnp.nan)


def committed_at(game: WordGame, logit: Float[Array, ""], word: int) -> Float[Array, ""]:
    """The fraction c of further agents committed to `word` with which this log-odds of the first word is a fixed point.

    The uncommitted agents of a share n of all keep their proportions, so that with v the other word and c_v the agents
    committed to it Q_v = F_v(Q) - c (F_v(Q) - c_v) / n.
    """
    Q = _shares(jnp.atleast_1d(logit))
    said, firm = response(game, Q)[1 - word], game.committed
    return (said - Q[1 - word]) * (1 - firm.sum()) / (said - firm[1 - word])


@one_program
def implicit_fixed_point(game: Game, x: Float[Array, ...]) -> Float[Array, ...]:
    """The fixed point x of any game, with its derivatives with respect to the parameters of the game.

    x must be a fixed point, from `fixed_points` or `meanfield.fixed_points`; it is returned as it is. The derivative
    solves J dx = -∂F on perturbations that keep each class's mass, by LU of a matrix with a row for each state. It is
    meaningless where J is singular. Class masses stay what they are in x: for derivatives with respect to `share` or
    `committed` use `fixed_point`.

    The derivatives of the word share at a fixed point with respect to two probabilities of the first word: in the empty
    memory, which nobody has any more, and after both said it:

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from meanfield import core
    >>> def share(q, x):
    ...     game = core.WordGame(jnp.stack([q, 1 - q], axis=-1))
    ...     return core.word_share(game, core.implicit_fixed_point(game, x))[0]
    >>> with jax.enable_x64(True):
    ...     q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    ...     x = np.array([0.0, 0.25, 0.25, 0.25, 0.25])
    ...     print(jax.grad(share)(jnp.asarray(q), x)[:2].round(4))
    [0.   1.25]
    """
    mass = game.masses(x)
    part = lax.stop_gradient(x / jnp.where(mass > 0, mass, 1))

    def slope(linear: Any, value: Array) -> Array:
        def regular(v: Array) -> Array:
            return linear(v) - jnp.where(mass > 0, part * game.masses(v), v)

        matrix = jax.jacfwd(regular)(jnp.zeros_like(value)).reshape(value.size, value.size)
        return jnp.linalg.solve(matrix, value.ravel()).reshape(value.shape)

    return lax.custom_root(lambda x: drift(game, x), lax.stop_gradient(x), lambda _, x: x, slope)


def _shares(u: Float[Array, "*apart ratios"]) -> Float[Array, "*apart words"]:
    return jax.nn.softmax(jnp.concatenate([u, jnp.zeros((*u.shape[:-1], 1), u.dtype)], -1))


def _mismatch(game: WordGame, u: Float[Array, ...]) -> Float[Array, ...]:
    logs = jnp.log(response(game, _shares(jnp.atleast_1d(u))))
    return (logs[..., :-1] - logs[..., -1:]).reshape(u.shape) - u


def _bisected(function: Any, lower: Float[Array, ""], upper: Float[Array, ""]) -> Float[Array, ""]:
    """A sign change between two arguments, or one of the two where there is none."""  # where a library would raise
    rising = function(upper) > 0

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        middle = (ends[0] + ends[1]) / 2
        beyond = (function(middle) > 0) == rising
        return jnp.where(beyond, ends[0], middle), jnp.where(beyond, middle, ends[1])

    lower, upper = lax.fori_loop(0, HALVINGS, halve, (lower, upper))
    return (lower + upper) / 2


def _polished(
    game: WordGame, guess: Float[Array, ...], max_steps: int, bounds: tuple[Array, Array] | None
) -> FixedPoint:
    tolerance = 50 * float(jnp.finfo(guess.dtype).eps)

    def found(mismatch: Any, guess: Array) -> Array:
        if bounds is not None:
            return _bisected(mismatch, *bounds)
        solver = optx.Newton(rtol=tolerance, atol=tolerance)
        return optx.root_find(lambda u, _: mismatch(u), solver, guess, max_steps=max_steps, throw=False).value

    def slope(linear: Any, value: Array) -> Array:
        if value.ndim == 0:
            return value / linear(jnp.ones_like(value))
        matrix = jax.jacobian(linear)(value).reshape(value.size, -1)
        return jnp.linalg.solve(matrix, value.ravel()).reshape(value.shape)

    u = lax.custom_root(lambda u: _mismatch(game, u), lax.stop_gradient(guess), found, slope)
    misfit = jnp.abs(_mismatch(game, lax.stop_gradient(u))).max()
    Q = _shares(jnp.atleast_1d(u))
    return FixedPoint(Q, composition(game, Q), misfit < jnp.sqrt(jnp.finfo(guess.dtype).eps))


def _corner(game: WordGame, word: int) -> FixedPoint:
    """The consensus on a word, NaN if it is not a fixed point."""
    n_states, n_words = game.q.shape[-2:]
    state = MemorySpace.from_sizes(n_states, n_words).consensus_state(word)
    said = game.q[..., state, :].at[..., word].set(0)
    holds = ~((said.max(-1) > 0) & (game.share > 0)).any() & (game.committed.at[word].set(0).max() == 0)
    x = jnp.zeros(game.q.shape[:-1], game.q.dtype).at[..., state].set(game.share)
    Q = jnp.zeros(n_words, game.q.dtype).at[word].set(1.0)
    return FixedPoint(jnp.where(holds, Q, jnp.nan), jnp.where(holds, x, jnp.nan), holds)
