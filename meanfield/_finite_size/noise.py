"""The noise of a finite population: the covariance D(x) of one interaction.

In a unit of time N/2 interactions happen, each between two of N agents, who both move. An agent in state i that says a
and hears b moves the composition by (e_Γ(i,a,b) - e_i)/N, its partner in j by (e_Γ(j,b,a) - e_j)/N. The mean of both
moves, N/2 times a unit of time, is the drift F; their second moment, N/2 times a unit of time, is D/N with

    wᵀD(x)w = Σ_ab Q_b Σ_i x_i q_a(i) (w_Γ(i,a,b) - w_i)² + Σ_ab (w·u_ab) (w·u_ba),
    u_ab = Σ_i x_i q_a(i) (e_Γ(i,a,b) - e_i).

The first sum describes the moves of single agents, the second the correlation of the two who meet. D holds for
interactions at the times of a Poisson process; if exactly N/2 happen in a unit of time it is D - 2FFᵀ (van Kampen,
Stochastic Processes in Physics and Chemistry, ch. X).

No function forms a matrix: O(S·W²).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield.core._space import MemorySpace


def outcome_values(w: Float[np.ndarray, " states"], space: MemorySpace) -> Float[np.ndarray, "states words words"]:
    """w_Γ(i,a,b), the value of the state that follows i after saying a and hearing b, shape (S, W, W)."""
    rows = w[1:].reshape(-1, space.n_words, space.n_words)  # one row for each memory of at most H - 1 interactions
    longest = rows[space.offset(space.memory_length - 1) :]
    return np.concat([rows, np.tile(longest, (space.n_digits, 1, 1))])


def outcomes(
    x: Float[np.ndarray, " states"], q: Float[np.ndarray, "states words"], space: MemorySpace
) -> Float[np.ndarray, "states words words"]:
    """Σ_i x_i q_a(i) e_Γ(i,a,b), the composition of agents after saying a and hearing b, shape (S, W, W)."""
    said, full = x[:, None] * q, space.offset(space.memory_length)
    # Agents with a full memory forget its oldest interaction
    shortened = said[full:].reshape(space.n_digits, -1, space.n_words).sum(0)
    longest = space.offset(space.memory_length - 1)
    said = np.concat([said[:longest], said[longest:full] + shortened])
    words = np.eye(space.n_words, dtype=x.dtype)
    # An agent's newest interaction is the last digit of its state.
    spread = said[:, :, None, None, None] * words[None, :, None, :, None] * words[None, None, :, None, :]
    start = np.zeros((1, space.n_words, space.n_words), dtype=x.dtype)
    return np.concat([start, spread.reshape(-1, space.n_words, space.n_words)])
