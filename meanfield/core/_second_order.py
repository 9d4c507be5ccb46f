"""Cumulants of the fractions among N agents of any game, to order 1/N², in games of few states.

The fractions are a process with the generator L = N H_N(x, ∂/N), all derivatives to the right of all x. Two agents who
meet are different ones, so that H_N = H + H₁/N + H₁/N² + …, while rates that are functions count all agents:

    H₁ = H - ½ Σ_i x_i ∂²H/∂x_i²  over encounters, 0 over moves of one agent alone.

Where exactly N/τ encounters happen in a unit of time, log(1 + τL/N) N/τ takes the place of L. It is L - τL²/2N +
τ²L³/3N² + …, and has the first three moments of its jumps, with f₀ the drift F(x), D = ∂²H/∂p², M = ∂³H/∂p³ and
f₁ = ∂H₁/∂p at p = 0, and 𝒟_C[g] = ½ Σ_lm C_lm ∂_l ∂_m g for any function g of x,

    a = F + a₁/N + a₂/N²,   a₁ = f₁ - (τ/2) F·∂F,
    a₂ = f₁ - (τ/2)(f₁·∂F + F·∂f₁ + 𝒟_D[F]) + (τ²/3)(F·∂)²F,
    b = b₁/N + b₂/N²,   b₁ = D - τFFᵀ,
    b₂ = ∂²H₁/∂p² - (τ/2) F·∂D - sym[τ f₁Fᵀ + (τ/2) D·∂F - τ² (F·∂F) Fᵀ],
    c = c₂/N²,   c₂ = M - τ sym[F ⊗ D] + 2τ² F ⊗ F ⊗ F,

where sym adds a tensor's different orders of axes. Let the mean be x + V/N + A/N², the covariance W/N + B/N² and the
third cumulant K/N² (Gast, Bortolussi and Tribastone, Performance Evaluation 129, 60 (2019), with moments in place of
cumulants). Then, with J = ∂F/∂x,

    dV/dt = JV + 𝒟_W[F] + a₁,   dW/dt = sym[JW] + b₁,
    dA/dt = JA + 𝒟_B[F] + ½F''(V, V) + (1/6) F'''[K] + 𝒟_W[V·∂F + ½𝒟_W[F] + a₁] + V·∂a₁ + a₂,
    dB/dt = sym[JB + ½F''[K] + (W·∂)(𝒟_W[F] + a₁ + V·∂F)] + V·∂b₁ + 𝒟_W[b₁] + b₂,
    dK/dt = sym[JK + F''(W, W) + (W·∂)b₁] + c₂.

All start from 0. K has S³ entries, and F''(W, W) takes of the order of S⁴ operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Float

from meanfield.core._game import Array, Game, PairGame, RateGame, game_of

TOLERANCE = 1e-7  # of a step, far below what an order of 1/N leaves out
FIRST_STEP = 1e-2  # to have it found would compile the equations two times more
Function = Callable[[Array], Array]


class Cumulants(NamedTuple):
    """The numbers of this module's equations; states in a row."""

    x: Float[Array, " states"]
    V: Float[Array, " states"]
    W: Float[Array, "states states"]
    A: Float[Array, " states"]
    B: Float[Array, "states states"]
    K: Float[Array, "states states states"]


def meeting(game: PairGame, x: Array, p: Array, constants: Array | float) -> Array:
    """The part of H that is quadratic in the agents, those without a state among them."""
    x, p = x.reshape(game.classes.shape), p.reshape(game.classes.shape)
    g = game.fields(x * jnp.exp(-p), jnp.exp(p)) + constants
    return _along(_along(game.energy, g), g)(jnp.zeros_like(g)) / 2


def _alone(game: PairGame) -> tuple[Array, Array]:
    """First and second derivatives in p of ½ ∂²H/∂x_i², an agent in i who meets itself, for each i."""

    def itself(unit: Array) -> tuple[Array, Array]:
        def met(p: Array) -> Array:
            return meeting(game, unit, p, 0.0)

        return jax.grad(met)(jnp.zeros_like(unit)), jax.hessian(met)(jnp.zeros_like(unit))

    return jax.lax.map(itself, jnp.eye(game.classes.size))


def _along(g: Function, direction: Function | Array) -> Function:
    """v·∂g for v = `direction`, which may be a function of x."""
    return lambda x: jax.jvp(g, (x,), (direction(x) if callable(direction) else direction,))[1]


def _smoothed(g: Function, C: Function | Array) -> Function:
    """𝒟_C[g]; C may be a function of x."""

    def twice(x: Array) -> Array:
        rows = C(x) if callable(C) else C
        return jax.vmap(lambda row, unit: _along(_along(g, row), unit)(x))(rows, jnp.eye(x.size)).sum(0) / 2

    return twice


def _symmetric(tensor: Array) -> Array:
    """The sum over the choices of the first axis; tensors of three axes are symmetric in the other two."""
    return sum((jnp.moveaxis(tensor, 0, axis) for axis in range(1, tensor.ndim)), tensor)


def cumulant_rates(game: Game, pause: Float[Array, ""]) -> Callable[[Cumulants], Cumulants]:
    """The right-hand sides, for τ = `pause`."""
    pairs = game.pairs if isinstance(game, RateGame) else game
    assert isinstance(pairs, PairGame)
    shape = game.classes.shape
    first_alone, second_alone = _alone(pairs)

    def energy(x: Array, p: Array) -> Array:
        return game.hamiltonian(x.reshape(shape), p.reshape(shape))

    def all_meeting(x: Array, p: Array) -> Array:
        return meeting(pairs, x, p, pairs.constants)

    def jumps(energy: Callable[[Array, Array], Array], order: int) -> Function:
        """The derivatives of this order in p at p = 0."""
        derivative = jax.grad(energy, argnums=1)
        for _ in range(order - 1):
            derivative = jax.jacfwd(derivative, argnums=1)
        return lambda x: derivative(x, jnp.zeros_like(x))

    # Each function that others differentiate is traced once
    F, D, M = (jax.jit(jumps(energy, order)) for order in (1, 2, 3))
    FF = jax.jit(_along(F, F))

    @jax.jit
    def f1(x: Array) -> Array:
        return jumps(all_meeting, 1)(x) - x @ first_alone

    @jax.jit
    def a1(x: Array) -> Array:
        return f1(x) - pause / 2 * FF(x)

    def a2(x: Array) -> Array:
        passed = _along(F, f1)(x) + _along(f1, F)(x) + _smoothed(F, D)(x)
        return f1(x) - pause / 2 * passed + pause**2 / 3 * _along(FF, F)(x)

    @jax.jit
    def b1(x: Array) -> Array:
        return D(x) - pause * jnp.outer(F(x), F(x))

    def b2(x: Array) -> Array:
        met = jumps(all_meeting, 2)(x) - jnp.tensordot(x, second_alone, 1)
        along = pause * jnp.outer(f1(x), F(x)) + pause / 2 * D(x) @ jax.jacfwd(F)(x).T
        return met - pause / 2 * _along(D, F)(x) - _symmetric(along - pause**2 * jnp.outer(FF(x), F(x)))

    def c2(x: Array) -> Array:
        f, outer = F(x), jnp.multiply.outer
        return M(x) - pause * _symmetric(outer(f, D(x))) + 2 * pause**2 * outer(f, outer(f, f))

    def rates(now: Cumulants) -> Cumulants:
        x, V, W, A, B, K = now
        J, second = jax.jacfwd(F)(x), jax.jacfwd(jax.jacfwd(F))
        curved = second(x)

        def shifted(x: Array) -> Array:
            return _along(F, V)(x) + a1(x)

        dA = J @ A + jnp.tensordot(curved, (B + jnp.outer(V, V)) / 2, 2) + _along(a1, V)(x) + a2(x)
        dA += _smoothed(shifted, W)(x)
        fed = jax.jacfwd(shifted)(x)
        if not isinstance(game, PairGame):  # the drift of pairs is quadratic
            spread = _smoothed(F, W)
            dA += jnp.trace(jax.jacfwd(lambda x: jnp.tensordot(second(x), K, 2))(x), axis1=1, axis2=2) / 6
            dA += _smoothed(spread, W)(x) / 2
            fed += jax.jacfwd(spread)(x)
        dB = _symmetric(J @ B + jnp.tensordot(curved, K, 2) / 2 + fed @ W)
        dK = jnp.tensordot(J, K, 1) + jnp.einsum("klm,li,mj->kij", curved, W, W, optimize="optimal")
        return Cumulants(
            x=F(x),
            V=J @ V + jnp.tensordot(curved, W / 2, 2) + a1(x),
            W=_symmetric(J @ W) + b1(x),
            A=dA,
            B=dB + _along(b1, V)(x) + _smoothed(b1, W)(x) + b2(x),
            K=_symmetric(dK + jnp.moveaxis(jax.jacfwd(b1)(x) @ W, -1, 0)) + c2(x),
        )

    return rates


def cumulants_later(
    arrays: tuple[Any, ...], now: tuple[Array, ...], time: Float[Array, ""], pause: Float[Array, ""]
) -> tuple[Array, ...]:
    """The cumulants after this time, by Tsitouras' method of order 5; arrays as in `game_of`."""
    rates = cumulant_rates(game_of(arrays), pause)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, state, _: rates(state)),
        diffrax.Tsit5(),
        0.0,
        time,
        jnp.minimum(time, FIRST_STEP),
        Cumulants(*now),
        stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
        max_steps=None,
    )
    return tuple(part[-1] for part in jax.tree.leaves(solution.ys))
