"""Mean and covariance of the words that N agents say in each round, to order 1/N, from empty memories.

As in `meanfield.finite_size`, z = (x, m) has mean z + V/N and covariance C/N, with m the number of first words said,
over N. Weights exp(p_m) of the first word make the Hamiltonian count them. With G = C - diag(x) + xxᵀ,

    dz/dt = F,   dC/dt = JC + CJᵀ + D - τFFᵀ,   dV/dt = JV + ½F''[G] - (τ/2) JF.

τ = 2, since N/2 interactions happen in a unit of time. Shares of earlier rounds have the covariance B/N with z, and
dB/dt = JB.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from meanfield import TIME_PER_ROUND, core

Array = jax.Array | np.ndarray
STEPS = 4  # of Runge and Kutta's method a round: four times as many change the moments by 1e-5 of themselves
AHEAD, SHARE = np.array([0.5, 0.5, 1.0, 0.0]), np.array([1, 2, 2, 1]) / 6  # how far the next stage is, and weights


class Counted(core.Game):
    """The naming game of a policy of two words, with the first words said as its last coordinate."""

    q: Float[Array, "states words"]

    def hamiltonian(self, x: Float[Array, " n"], p: Float[Array, " n"]) -> Float[Array, ""]:
        weight = jnp.exp(jnp.stack([p[-1], jnp.zeros_like(p[-1])]))
        return core.WordGame(self.q * weight).hamiltonian(x[:-1], p[:-1])

    @property  # equinox takes a property for an abstract field
    def classes(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        return jnp.arange(len(self.q) + 1) // len(self.q)


def run_moments(
    q: Float[Array, "states words"], rounds: int
) -> tuple[Float[Array, " rounds"], Float[Array, " rounds"], Float[Array, "rounds rounds"]]:
    """Q, V and C of the share of the first word among those said in each of the first rounds.

    The mean is Q + V/N and the covariance C/N. All have derivatives with respect to the policy.
    """
    game, n = Counted(q), len(q) + 1
    unit, step, start = jnp.eye(n), TIME_PER_ROUND / STEPS, jnp.zeros(n).at[0].set(1.0)

    def jacobian(z: Array) -> Array:
        return jax.vmap(lambda e: core.jacobian_product(game, z, e), out_axes=1)(unit)

    at_start, second = jacobian(start), jax.jacfwd(jacobian)(start)  # agents meet in pairs, so this is constant

    def slope(state: tuple[Array, ...]) -> tuple[Array, ...]:
        z, v, C, B = state
        F, J = core.drift(game, z), at_start + second @ (z - start)
        x = z.at[-1].set(0.0)
        noise = jax.vmap(lambda e: core.noise_product(game, z, e))(unit) - TIME_PER_ROUND * jnp.outer(F, F)
        push = jnp.tensordot(second, C - jnp.diag(x) + jnp.outer(x, x), 2) / 2 - TIME_PER_ROUND / 2 * J @ F
        return F, J @ v + push, J @ C + C @ J.T + noise, J @ B

    def stage(state: tuple[tuple, ...], weights: tuple[Array, Array]) -> tuple[tuple[tuple, ...], None]:
        (start, point, total), (ahead, share) = state, weights
        slopes = slope(point)
        point, total = (
            jax.tree.map(lambda value, slope, part=part: value + part * slope, base, slopes)
            for base, part in ((start, ahead), (total, share))
        )
        return (start, point, total), None

    def stepped(_: int, state: tuple[Array, ...]) -> tuple[Array, ...]:
        return jax.lax.scan(stage, (state, state, state), (step * AHEAD, step * SHARE))[0][2]

    def one_round(state: tuple[Array, ...], number: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        z, v, C, B = jax.lax.fori_loop(0, STEPS, stepped, state)
        row = (B[-1] / TIME_PER_ROUND).at[number].set(C[-1, -1] / TIME_PER_ROUND**2)
        B = B.at[:, number].set(C[:, -1] / TIME_PER_ROUND)
        kept = jnp.ones(n).at[-1].set(0.0)  # counting starts again
        after = z * kept, v * kept, C * jnp.outer(kept, kept), B * kept[:, None]
        return after, (z[-1] / TIME_PER_ROUND, v[-1] / TIME_PER_ROUND, row)

    state = (start, jnp.zeros(n), jnp.zeros((n, n)), jnp.zeros((n, rounds)))
    mean, correction, rows = jax.lax.scan(one_round, state, jnp.arange(rounds))[1]
    return mean, correction, rows + jnp.tril(rows, -1).T
