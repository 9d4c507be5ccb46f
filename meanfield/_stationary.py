"""The stationary law of an agent whose partners say words with fixed probabilities Q."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from meanfield._aggregates import Aggregates, own_words, strong_couplings
from meanfield._closed_classes import flow_successors, said_next
from meanfield._elimination import stationary_law
from meanfield._memory import MemorySpace

ELIMINATED_FLOWS = 200  # below, elimination on all flows is faster than iteration
LAST_RESORT_FLOWS = 8192  # above, elimination would take more than 4 GB for each Q
RENEWED = 3  # cycles after which they are chosen again
PATIENCE = 8  # cycles after which the chain's own couplings choose the aggregates
MAX_CYCLES = 24  # then what has not converged is eliminated
TOLERANCE = 1e-13  # relative error of the word shares; sums of positive terms lose no more than this
SLOWEST = 0.95  # a factor between changes from cycle to cycle that is nearer to 1 may hide a slower one
CHUNK = 64  # laws iterated together: their work space then stays in the cache of a core
MAX_ELIMINATED = 2**18  # entries of chains that are eliminated together, which then stay in the cache


class NoStationaryLawError(RuntimeError):
    """The iteration for a stationary law did not converge."""


class StationaryLaw:
    """p(Q), the stationary law of the kernel A(Q) on one closed class of memories, for one policy and many Q at once.

    The law of the full memories is p[flow, heard] = f[flow] Q[heard], with f the stationary law of the chain of flows
    (see `flow_successors`), W^{2H-1} unknowns. Power iteration would need up to 1e16 steps on policies in which an
    agent hardly ever changes its habit, so steps of it alternate with an exact solution of the chain between
    aggregates of flows (iterative aggregation and disaggregation; Stewart, Introduction to the Numerical Solution of
    Markov Chains, 1994, ch. 6). What is heard is independent from interaction to interaction, so that what is
    remembered for long is remembered by own words: these are the aggregates, together with the sets of flows that
    agents hardly ever leave. Where that converges slowly, flows that are strongly coupled are aggregated, and what
    does not converge in 24 cycles is solved by elimination on all flows, O(M³). So the cost is bounded for any policy.
    All operations are sums of positive terms, so that entries have full relative accuracy however small they are.
    Memory O(S) for each Q, O(S²) where flows are eliminated.

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
        self._said = said_next(q, space)
        self._successors = flow_successors(space)
        self._class = closed_class
        self._q = q

    @cached_property
    def _own_words(self) -> Aggregates:
        return Aggregates(own_words(self._q, self.space), self._said, self._successors)

    @cached_property
    def _moves(self) -> np.ndarray:
        """For flows that differ in their oldest interaction only, and so go on alike, the matrix of where they go."""
        W, D = self.space.n_words, self.space.n_digits
        groups = self._said.reshape(D, len(self._said) // D, W, W)
        return np.ascontiguousarray(groups.transpose(1, 2, 3, 0).reshape(-1, D, D))

    def flow_law(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws flows"]:
        """f(Q) for each row of Q; rows sum to 1.

        `tolerance` bounds the estimated relative error of what is said, and the estimated error of f, Σ|δf|.

        Raises
        ------
        NoStationaryLawError
            If the iteration does not converge, and there are more than 8,192 flows.
        """
        return np.concatenate([self._solve(Q[i : i + CHUNK], tolerance) for i in range(0, len(Q), CHUNK)])

    def word_share(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws words"]:
        """f_w(Q) = Σ_i p_i(Q) q_w(i): what an agent with such partners says."""
        return self._said_share(self.flow_law(Q, tolerance).T).T

    def composition(self, Q: Float[np.ndarray, " words"]) -> Float[np.ndarray, " states"]:
        """p(Q) over all states."""
        full = self.flow_law(Q[None])[0][:, None] * Q
        return np.concatenate([np.zeros(self.space.offset(self.space.memory_length)), full.ravel()])

    def _solve(self, Q: np.ndarray, tolerance: float) -> np.ndarray:
        if len(self._class) <= ELIMINATED_FLOWS or self.space.memory_length == 1:
            return self._eliminate(Q)
        laws = np.empty((len(Q), len(self._said)))
        # Laws stand side by side on the last axis, along which every step is contiguous.
        heard, law = np.ascontiguousarray(Q.T), np.zeros((len(self._said), len(Q)))
        law[self._class] = 1 / len(self._class)
        share, change = np.full_like(heard, np.inf), np.full(len(Q), np.inf)
        waiting, coupled = np.arange(len(Q)), None
        for cycle in range(MAX_CYCLES):
            start = law
            law = self._sweep(self._own_words.balance(law, heard), heard)
            if cycle >= PATIENCE:
                if coupled is None or cycle % RENEWED == 0:
                    coupled = strong_couplings(law, heard, self._said, self._successors)
                law = self._sweep(coupled.balance(law, heard), heard)
            previous, share = share, self._said_share(law)
            before = change
            change = (np.abs(share - previous) / np.where(share > 0, share, 1)).max(0)
            change = np.maximum(change, np.abs(law - start).sum(0))
            with np.errstate(invalid="ignore", divide="ignore"):
                slowness = np.clip(np.nan_to_num(change / before, nan=0.0), 0.0, SLOWEST)
            settled = change * np.maximum(1, slowness / (1 - slowness)) <= tolerance
            if settled.any():
                laws[waiting[settled]] = law[:, settled].T
                if settled.all():
                    return laws
                left = ~settled
                waiting, change = waiting[left], change[left]
                law, heard, share = law[:, left], heard[:, left], share[:, left]
                coupled = None if coupled is None else coupled.select(left)
        laws[waiting] = self._eliminate(Q[waiting])
        return laws

    def _eliminate(self, Q: np.ndarray) -> np.ndarray:
        """The laws by elimination on all flows of the class, O(M³) for each Q."""
        n = len(self._class)
        if n > LAST_RESORT_FLOWS:
            raise NoStationaryLawError(f"no stationary law at Q = {Q[0]} after {MAX_CYCLES} cycles")
        place = np.full(len(self._said), n)  # what lies outside the class is never reached
        place[self._class] = np.arange(n)
        said, successors = self._said[self._class], place[self._successors[self._class]]
        laws = np.zeros((len(Q), len(self._said)))
        together = max(1, MAX_ELIMINATED // n**2)
        for first in range(0, len(Q), together):
            rows = Q[first : first + together]
            chain = np.zeros((len(rows), n, n + 1))
            for heard, word in np.ndindex(said.shape[1:]):
                chain[:, np.arange(n), successors[:, heard, word]] += rows[:, heard, None] * said[:, heard, word]
            every = np.ones((len(rows), n), bool)
            laws[first : first + together, self._class] = stationary_law(chain[:, :, :n], every)
        return laws

    def _said_share(self, law: np.ndarray) -> np.ndarray:
        """Shape (W, laws), from laws of shape (flows, laws)."""
        return law.reshape(-1, self.space.n_words, law.shape[1]).sum(0)

    def _sweep(self, law: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """The laws after H interactions, in which everything that was heard is forgotten."""
        chance = np.repeat(heard, self.space.n_words, axis=0)
        for _ in range(self.space.memory_length):
            by_oldest = law.reshape(self.space.n_digits, -1, law.shape[1]).transpose(1, 0, 2)
            law = (np.matmul(self._moves, by_oldest) * chance).reshape(law.shape)
        return law / law.sum(0)
