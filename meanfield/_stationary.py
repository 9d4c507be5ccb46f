"""The stationary law of an agent whose partners say words with fixed probabilities Q."""

from __future__ import annotations

import itertools

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array

from meanfield._memory import MemorySpace

SWEEPS_PER_LENGTH = 4
# Published policies need 3 to 8; what takes longer than this does not converge.
MAX_CYCLES = 40
ELIMINATED_FLOWS = 32  # below, elimination on all flows is faster than iteration
LAST_RESORT_FLOWS = 2048  # above, elimination takes minutes for each Q
# Relative change of the word shares in a cycle at which it ends; sums of positive terms lose no more than this.
TOLERANCE = 1e-13
CHUNK = 64  # laws iterated together: their work space then stays in the cache of a core


class NoStationaryLawError(RuntimeError):
    """The iteration for a stationary law did not converge."""


class StationaryLaw:
    """p(Q), the stationary law of the kernel A(Q) on one closed class of memories, for one policy and many Q at once.

    The law of the full memories is p[flow, heard] = f[flow] Q[heard], with f the stationary law of the chain of flows
    (see `flow_successors`), W^{2H-1} unknowns. Power iteration would need up to 1e16 steps on policies in which an
    agent hardly ever changes its habit, so steps of it alternate with an exact solution of the chain between habits,
    an agent's habit being how often it remembers saying each word (iterative aggregation and disaggregation; Stewart,
    Introduction to the Numerical Solution of Markov Chains, 1994, ch. 6). All operations are sums of positive terms, so
    that entries have full relative accuracy however small they are. Memory O(S) for each Q.

    Parameters
    ----------
    q
        Choice probabilities, shape (S, W).
    closed_class
        The flows of the class.
    """

    def __init__(
        self, q: Float[np.ndarray, "states words"], space: MemorySpace, closed_class: Int[np.ndarray, " class"]
    ) -> None:
        self.space = space
        self._n_kept = space.n_digits ** (space.memory_length - 1)
        self._said = q[space.offset(space.memory_length) :].reshape(space.n_digits, self._n_kept, space.n_words, 1)
        self._start = np.zeros(self._n_kept * space.n_words)
        self._start[closed_class] = 1 / len(closed_class)
        self._habit, self._n_habits = _habits(space)
        flows = np.arange(len(self._start))
        self._has_habit = csr_array((np.ones(len(flows)), (self._habit, flows)), shape=(self._n_habits, len(flows)))
        self._between_habits = self._collect_transitions()

    def flow_law(self, Q: Float[np.ndarray, "laws words"]) -> Float[np.ndarray, "laws flows"]:
        """f(Q) for each row of Q; rows sum to 1.

        Raises
        ------
        NoStationaryLawError
            If the iteration does not converge.
        """
        return np.concatenate([self._solve(Q[i : i + CHUNK]) for i in range(0, len(Q), CHUNK)])

    def word_share(self, Q: Float[np.ndarray, "laws words"]) -> Float[np.ndarray, "laws words"]:
        """f_w(Q) = Σ_i p_i(Q) q_w(i): what an agent with such partners says."""
        return self._said_share(self.flow_law(Q).T).T

    def composition(self, Q: Float[np.ndarray, " words"]) -> Float[np.ndarray, " states"]:
        """p(Q) over all states."""
        full = self.flow_law(Q[None])[0][:, None] * Q
        return np.concatenate([np.zeros(self.space.offset(self.space.memory_length)), full.ravel()])

    def _solve(self, Q: np.ndarray) -> np.ndarray:
        if len(self._start) <= ELIMINATED_FLOWS:
            return self._eliminate(Q)
        # Laws stand side by side on the last axis, along which every step is contiguous.
        heard = np.ascontiguousarray(Q.T)
        law = np.repeat(self._start[:, None], len(Q), axis=1)
        share = np.full_like(heard, np.inf)
        settled = np.zeros(len(Q), bool)
        for _ in range(MAX_CYCLES):
            law = self._balance_habits(law, heard)
            for _ in range(SWEEPS_PER_LENGTH * self.space.memory_length):
                law = self._move(law, heard).sum(0).reshape(law.shape)
            law /= law.sum(0)
            previous, share = share, self._said_share(law)
            settled = (np.abs(share - previous) <= TOLERANCE * share).all(0)
            if settled.all():
                return law.T
        if len(self._start) > LAST_RESORT_FLOWS:
            raise NoStationaryLawError(f"no stationary law at Q = {Q[~settled][0]} after {MAX_CYCLES} cycles")
        law[:, ~settled] = np.concatenate([self._eliminate(row[None]) for row in Q[~settled]]).T
        return law.T

    def _eliminate(self, Q: np.ndarray) -> np.ndarray:
        """The laws by elimination on all flows, O(M³) for each Q."""
        n_flows, words = len(self._start), range(self.space.n_words)
        flows = np.arange(n_flows)
        said = self._said.reshape(n_flows, self.space.n_words, self.space.n_words)
        chain = np.zeros((len(Q), n_flows, n_flows))
        for heard in words:
            for word in words:
                successors = self.space.n_words * ((self.space.n_words * flows + heard) % self._n_kept) + word
                chain[:, flows, successors] += Q[:, None, heard] * said[:, heard, word]
        return stationary_law(chain, np.broadcast_to(self._start > 0, (len(Q), n_flows)))

    def _said_share(self, law: np.ndarray) -> np.ndarray:
        """Shape (W, laws), from laws of shape (flows, laws)."""
        return law.reshape(-1, self.space.n_words, law.shape[1]).sum(0)

    def _move(self, law: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """Weight of (oldest interaction, the rest of a full memory, word said), shape (W², n_kept, W, laws)."""
        full = (law[:, None, :] * heard).reshape(self.space.n_digits, self._n_kept, 1, -1)
        return full * self._said

    def _balance_habits(self, law: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """Rescale the weight of each habit to the stationary law of the chain between habits that `law` implies."""
        n = self._n_habits
        weight = (self._has_habit @ law).T
        moved = (self._between_habits @ self._move(law, heard).reshape(-1, law.shape[1])).T.reshape(-1, n, n)
        occupied = weight > 0
        chain = moved / np.where(occupied, weight, 1)[:, :, None]
        factor = np.divide(stationary_law(chain, occupied), weight, out=np.zeros_like(weight), where=occupied)
        return law * factor.T[self._habit]

    def _collect_transitions(self) -> csr_array:
        """Sums the weights of `_move` by (habit before, habit after), shape (n_habits², n_full·W)."""
        W = self.space.n_words
        full = np.arange(self.space.n_full)
        before = self._habit[full // W]
        after = self._habit[W * (full % self._n_kept)[:, None] + np.arange(W)]
        pair = (before[:, None] * self._n_habits + after).ravel()
        shape = (self._n_habits**2, len(pair))
        return csr_array((np.ones(len(pair)), (pair, np.arange(len(pair)))), shape=shape)


def stationary_law(
    chain: Float[np.ndarray, "laws n n"], occupied: Bool[np.ndarray, "laws n"]
) -> Float[np.ndarray, "laws n"]:
    """Stationary laws of small chains, by elimination without subtraction (Grassmann, Taksar and Heyman 1985).

    Diagonals are not read: what leaves a state is the sum of the other entries of its row. States that are not
    `occupied` get weight 0.
    """
    eliminated = np.where(occupied[:, :, None] & occupied[:, None, :], chain, 0.0)
    n = eliminated.shape[1]
    # A state from which none of the remaining ones is reached directly holds all the weight: a leak of 1e-290 says so
    # without a division by zero.
    for k in range(n - 1, 0, -1):
        leaves = eliminated[:, k, :k].sum(1) + 1e-290
        eliminated[:, :k, k] /= leaves[:, None]
        eliminated[:, :k, :k] += eliminated[:, :k, k, None] * eliminated[:, k, None, :k]
    first = occupied.argmax(1)
    law = np.zeros(eliminated.shape[:2])
    for k in range(n):
        law[:, k] = np.where(first == k, 1.0, np.einsum("gi,gi->g", law[:, :k], eliminated[:, :k, k]))
        law /= np.maximum(law.sum(1, keepdims=True), 1e-290)
    return law


def _habits(space: MemorySpace) -> tuple[np.ndarray, int]:
    """For each flow the number of its habit (how often each word was said in the H remembered times), and how many."""
    W, H = space.n_words, space.memory_length
    flow = np.arange(space.n_digits ** (H - 1) * W)
    said = [flow % W, *(flow // W // space.n_digits**k % space.n_digits // W for k in range(H - 1))]
    counts = np.stack([sum(word == w for word in said) for w in range(W)], axis=1)
    habits = {counts: i for i, counts in enumerate(c for c in itertools.product(range(H + 1), repeat=W) if sum(c) == H)}
    return np.array([habits[tuple(row)] for row in counts.tolist()]), len(habits)
