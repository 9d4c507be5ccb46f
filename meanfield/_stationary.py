"""The stationary law of an agent whose partners say words with fixed probabilities Q."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from meanfield._closed_classes import classes_of, flow_successors, said_next
from meanfield._memory import MemorySpace
from meanfield._stationary_kernel import eliminated, iterate
from meanfield._threads import in_threads

ELIMINATED_FLOWS = 64  # below, elimination on all flows is faster than iteration
LAST_RESORT_FLOWS = 8192  # above, elimination would take minutes and gigabytes for each Q
FEWEST_CYCLES = 8
TOLERANCE = 1e-13  # relative error of the word shares; sums of positive terms lose no more than this
LEAKS = (1e-3, 1e-6, 1e-9, 1e-12)


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
    agents hardly ever leave. What has not converged when it has cost as much is solved by elimination on all flows
    without subtraction, so that the cost is bounded for any policy: with 512 flows (W = 2, H = 5) elimination takes a
    millisecond, since it leaves most of the chain sparse. Memory O(S) for each Q, O(S²) where flows are eliminated.

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
        self._said = np.array(said_next(q, space), order="C")  # one type of array, for which loops are compiled once
        self._successors = flow_successors(space)
        self._class = closed_class
        self._q = q

    @cached_property
    def _own_words(self) -> Int[np.ndarray, " flows"]:
        return own_words(self._q, self.space)

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
        Q, laws = np.array(Q, order="C"), np.empty((len(Q), len(self._said)))
        if len(self._class) <= ELIMINATED_FLOWS or self.space.memory_length == 1:
            self._eliminate(Q, laws)
            return laws
        start = np.zeros(len(self._said))
        start[self._class] = 1 / len(self._class)
        max_cycles = FEWEST_CYCLES + len(start) // 32  # then they have cost as much as elimination would
        converged = np.zeros(len(Q), bool)

        def solve(rows: slice) -> None:
            fixed = (start, self._said, self._successors, self._own_words)
            converged[rows] = iterate(Q[rows], *fixed, tolerance, max_cycles, laws[rows])

        in_threads(solve, len(Q), len(start))
        if not converged.all():
            if len(self._class) > LAST_RESORT_FLOWS:
                raise NoStationaryLawError(f"no stationary law at Q = {Q[~converged][0]} after {max_cycles} cycles")
            slow = laws[~converged]
            self._eliminate(Q[~converged], slow)
            laws[~converged] = slow
        return laws

    def _eliminate(self, Q: np.ndarray, laws: np.ndarray) -> None:
        """Write the laws by elimination on all flows of the class, O(M³) for each Q."""
        n = len(self._class)

        def solve(rows: slice) -> None:
            eliminated(Q[rows], self._said, self._successors, self._class, laws[rows])

        in_threads(solve, len(Q), n**2)

    def word_share(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws words"]:
        """f_w(Q) = Σ_i p_i(Q) q_w(i): what an agent with such partners says."""
        return self.flow_law(Q, tolerance).reshape(len(Q), -1, self.space.n_words).sum(1)

    def composition(self, Q: Float[np.ndarray, " words"]) -> Float[np.ndarray, " states"]:
        """p(Q) over all states."""
        full = self.flow_law(Q[None])[0][:, None] * Q
        return np.concatenate([np.zeros(self.space.offset(self.space.memory_length)), full.ravel()])


def own_words(q: Float[np.ndarray, "states words"], space: MemorySpace) -> Int[np.ndarray, " flows"]:
    """A label for each flow: the own words that it remembers, and the sets that agents leave only by rare answers.

    A set is closed but for answers of probability below 1e-3, 1e-6, 1e-9 or 1e-12.
    """
    W, H = space.n_words, space.memory_length
    flow = np.arange(space.n_digits ** (H - 1) * W)
    label = flow % W
    for k in range(H - 1):
        label = label * W + flow // W // space.n_digits**k % space.n_digits // W
    for leak in LEAKS:
        classes = classes_of(q, space, tuple(range(W)), leak)
        if sum(len(np.unique(label[flows])) for flows in classes) == len(np.unique(label[np.concatenate(classes)])):
            continue  # own words tell these sets apart
        label = label * (len(flow) + 1)
        for number, flows in enumerate(classes, start=1):
            label[flows] += number
        label = np.unique(label, return_inverse=True)[1]
    return label
