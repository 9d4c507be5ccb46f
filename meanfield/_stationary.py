"""The stationary law of an agent whose partners say words with fixed probabilities Q."""

from __future__ import annotations

import numpy as np

from meanfield._closed_classes import flow_successors, said_next
from meanfield._memory import MemorySpace


class StationaryLaw:
    """p(Q), the stationary law of the kernel A(Q) on one closed class, for one policy and any Q.

    The law of the full memories is p[flow, heard] = f[flow] Q[heard], with f the stationary law of the chain of flows
    (see `flow_successors`), W^{2H-1} unknowns. It is found by a direct solve, since slow chains need up to 1e16 steps
    of power iteration; a few such steps afterwards restore the relative accuracy of the small entries, sums of
    positive terms having no cancellation.

    Parameters
    ----------
    q
        Choice probabilities, shape (S, W).
    closed_class
        The flows of the class.
    """

    def __init__(self, q: np.ndarray, space: MemorySpace, closed_class: np.ndarray) -> None:
        self.space, self.flows = space, closed_class
        n_flows = space.n_words ** (2 * space.memory_length - 1)
        place = np.zeros(n_flows, int)
        place[closed_class] = np.arange(len(closed_class))
        # Successors outside the class have probability zero, wherever they are placed.
        columns = place[flow_successors(space)[closed_class]]
        said = said_next(q, space)[closed_class]
        n, words = len(closed_class), range(space.n_words)
        # The kernel is linear in Q: one matrix for each word heard.
        self._kernels = np.zeros((space.n_words, n, n))
        for heard in words:
            for word in words:
                self._kernels[heard, np.arange(n), columns[:, heard, word]] += said[:, heard, word]

    def flow_law(self, Q: np.ndarray) -> np.ndarray:
        """f(Q), shape (size of the class,), sums to 1."""
        kernel = np.tensordot(Q, self._kernels, 1)
        system = kernel.T - np.eye(len(kernel))
        system[0] = 1.0
        law = np.abs(np.linalg.solve(system, np.eye(1, len(kernel))[0]))
        for _ in range(2 * self.space.memory_length):
            law = law @ kernel
            law /= law.sum()
        return law

    def word_share(self, Q: np.ndarray) -> np.ndarray:
        """f_w(Q) = Σ_i p_i(Q) q_w(i), shape (W,): what an agent with such partners says."""
        said = self.flows % self.space.n_words
        return np.bincount(said, weights=self.flow_law(Q), minlength=self.space.n_words)

    def composition(self, Q: np.ndarray) -> np.ndarray:
        """p(Q) over all states, shape (S,)."""
        full = np.zeros((self.space.n_words ** (2 * self.space.memory_length - 1), self.space.n_words))
        full[self.flows] = self.flow_law(Q)[:, None] * Q
        return np.concatenate([np.zeros(self.space.offset(self.space.memory_length)), full.ravel()])
