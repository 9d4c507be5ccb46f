"""The noise of a finite population: the covariance D(x) of one interaction.

In a unit of time N/2 interactions happen, each between two of N agents, who both move. An agent in state i that says a
and hears b moves the composition by (e_Γ(i,a,b) - e_i)/N, its partner in j by (e_Γ(j,b,a) - e_j)/N. The mean of both
moves, N/2 times a unit of time, is the drift F; their second moment, N/2 times a unit of time, is D/N with

    wᵀD(x)w = Σ_ab Q_b Σ_i x_i q_a(i) (w_Γ(i,a,b) - w_i)² + Σ_ab (w·u_ab) (w·u_ba),
    u_ab = Σ_i x_i q_a(i) (e_Γ(i,a,b) - e_i).

The first sum describes the moves of single agents, the second the correlation of the two who meet. D holds for
interactions at the times of a Poisson process; if exactly N/2 happen in a unit of time it is D - 2FFᵀ (van Kampen,
Stochastic Processes in Physics and Chemistry, ch. X).

Functions take NumPy and JAX arrays alike and never form a matrix: O(S·W²).
"""

from __future__ import annotations

from jaxtyping import Float

from meanfield._population.memory import MemorySpace
from meanfield._population.reaction_tensor import Array, spoken


def outcome_values(w: Float[Array, " states"], space: MemorySpace) -> Float[Array, "states words words"]:
    """w_Γ(i,a,b), the value of the state that follows i after saying a and hearing b, shape (S, W, W)."""
    xp = w.__array_namespace__()
    rows = w[1:].reshape(-1, space.n_words, space.n_words)  # one row for each memory of at most H - 1 interactions
    longest = rows[space.offset(space.memory_length - 1) :]
    return xp.concat([rows, xp.tile(longest, (space.n_digits, 1, 1))])


def outcomes(
    x: Float[Array, " states"], q: Float[Array, "states words"], space: MemorySpace
) -> Float[Array, "states words words"]:
    """Σ_i x_i q_a(i) e_Γ(i,a,b), the composition of agents after saying a and hearing b, shape (S, W, W)."""
    xp = x.__array_namespace__()
    said = spoken(x, q, space)
    words = xp.eye(space.n_words, dtype=x.dtype)
    # An agent's newest interaction is the last digit of its state.
    spread = said[:, :, None, None, None] * words[None, :, None, :, None] * words[None, None, :, None, :]
    start = xp.zeros((1, space.n_words, space.n_words), dtype=x.dtype)
    return xp.concat([start, spread.reshape(-1, space.n_words, space.n_words)])
