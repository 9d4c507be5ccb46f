"""Derivatives of the action of a path with respect to the game."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from meanfield.core._game import Array, Game, WordGame, game_of
from meanfield.core._path_search import filled


def action(game: Game, path: Any) -> Float[Array, ""]:
    """The action S of a path that `meanfield.escape_path` found for this game, with exact derivatives in the game.

    A path of least action is stationary, so dS/dθ = -∫ ∂H/∂θ dt along it: the path counts as fixed, and the search for
    it is not differentiated. Second derivatives of the result are not those of the least action.

    Parameters
    ----------
    game
        The game of the path: a `WordGame`, whose species are the components of a population, or a `ReactionGame`.
    path
        As `meanfield.escape_path` returns it. κ = √(2S) of a path from empty memories; the logarithm of a mean lifetime
        of N agents is N·S, apart from its prefactor, which is in `log_lifetime`.

    Examples
    --------
    Agents say the word that they remember most, but for errors: at 2 % of them one more in a hundred lowers the barrier
    by 0.15.

    >>> import jax
    >>> from meanfield import core
    >>> space = meanfield.MemorySpace(2, 2)
    >>> leads = np.sign([sum(1 - a - b for a, b in space.memory(i)) for i in range(space.n_states)])
    >>> def game(errors):
    ...     first = (1 + leads) / 2 - errors * leads
    ...     return core.WordGame(jax.numpy.stack([first, 1 - first], axis=-1))
    >>> with jax.enable_x64(True):
    ...     path = meanfield.escape_path(meanfield.make_policy(game(0.02).q[:, 0], ["A", "B"]), fixed_point=0)
    ...     barrier, slope = jax.value_and_grad(lambda errors: core.action(game(errors), path))(0.02)
    >>> round(float(barrier), 4), round(float(slope), 2)
    (0.5483, -15.12)
    """
    shape = (-1, *game.classes.shape)
    x, p = (filled(np.nan_to_num(path[name].values.reshape(shape)), "edge") for name in ("composition", "momentum"))
    if isinstance(game, WordGame):  # fractions of each species stay, and their momenta: share · p
        share = jnp.maximum(game.share, jnp.finfo(game.share.dtype).tiny)[..., None]
        x, p = share * x, jax.lax.stop_gradient(share) / share * p
    done = tilt(game, x, p, filled(path["weight"].values))
    return path.attrs["barrier"] - done + jax.lax.stop_gradient(done)


@eqx.filter_jit
def tilt(
    game: Game, x: Float[Array, "nodes ..."], p: Float[Array, "nodes ..."], weights: Float[Array, " nodes"]
) -> Float[Array, ""]:
    """∫ H dt along a path, from the weights of its nodes."""

    @jax.checkpoint
    def add(total: Array, node: tuple[Array, Array, Array]) -> tuple[Array, None]:
        x, p, weight = node
        return total + weight * game.hamiltonian(x, p), None

    return jax.lax.scan(add, jnp.zeros((), x.dtype), (x, p, weights))[0]


def path_slopes(
    arrays: tuple[Array, ...],
    x: Float[Array, "nodes ..."],
    p: Float[Array, "nodes ..."],
    weights: Float[Array, " nodes"],
) -> tuple[Array, ...]:
    """-∫ ∂H/∂(arrays) dt, None for arrays of whole numbers."""
    return eqx.filter_grad(lambda arrays: -tilt(game_of(arrays), x, p, weights))(arrays)
