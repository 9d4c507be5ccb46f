"""Gradients of collective quantities by the choice probabilities, as programs for labelled functions."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from meanfield.core._game import Array, ReactionGame, WordGame, word_share
from meanfield.core._response import composition
from meanfield.core._roots import committed_at, implicit_fixed_point
from meanfield.core._spectrum import eigenvalue

Policy = Float[Array, "species states words"]


def word_share_gradient(
    q: Policy, share: Float[Array, " species"], committed: Float[Array, " words"], x: Float[Array, "species states"]
) -> Policy:
    """The derivative of the first word's share at the fixed point x."""

    def said(q: Policy) -> Float[Array, ""]:
        game = WordGame(q, share, committed)
        return word_share(game, implicit_fixed_point(game, x))[0]

    return jax.grad(said)(q)


def eigenvalue_gradient(
    q: Policy,
    share: Float[Array, " species"],
    committed: Float[Array, " words"],
    x: Float[Array, "species states"],
    left: Float[Array, "two species states"],
    right: Float[Array, "two species states"],
) -> tuple[Policy, Policy]:
    """The derivative of Re λ at the fixed point x, from real and imaginary parts of its eigenvectors with l·r = 1.

    At the fixed point that moves, and at one that is held where it is.
    """

    def real(q: Policy, x: Float[Array, "species states"]) -> Float[Array, ""]:
        game = WordGame(q, share, committed)
        return eigenvalue(game, x, left[0], right[0]) - eigenvalue(game, x, left[1], right[1])

    def moving(q: Policy) -> Float[Array, ""]:
        return real(q, implicit_fixed_point(WordGame(q, share, committed), x))

    return jax.grad(moving)(q), jax.grad(real)(q, x)


def critical_mass_gradient(
    q: Policy,
    share: Float[Array, " species"],
    committed: Float[Array, " words"],
    logit: Float[Array, ""],
    word: Int[Array, ""],
) -> tuple[Policy, Float[Array, "species states"]]:
    """The derivative of the critical mass of `word`, a fold at this log-odds, and the composition of the others there.

    c is stationary at a fold, so that its derivative is the partial one.
    """
    game = WordGame(q, share, committed)
    gradient = jax.grad(lambda q: committed_at(WordGame(q, share, committed), logit, word))(q)
    return gradient, composition(game, jnp.stack([jax.nn.sigmoid(logit), jax.nn.sigmoid(-logit)]))


def reaction_gradients(
    arrays: tuple[Array, ...],
    x: Float[Array, " states"],
    left: Float[Array, "two states"],
    right: Float[Array, "two states"],
) -> tuple[Float[Array, "states moves"], Float[Array, " moves"]]:
    """The derivatives of the fixed point x, and of Re λ there, in the logarithm of the rate of each move.

    `arrays` are the fields of a `ReactionGame`.
    """
    game = ReactionGame(*arrays)

    def at(rate: Float[Array, " moves"]) -> tuple[Array, Array]:
        changed = eqx.tree_at(lambda game: game.rate, game, rate)
        moved = implicit_fixed_point(changed, x)
        real = eigenvalue(changed, moved, left[0], right[0]) - eigenvalue(changed, moved, left[1], right[1])
        return moved, real

    by_state, by_eigenvalue = jax.jacrev(at)(game.rate)
    return by_state * game.rate, by_eigenvalue * game.rate
