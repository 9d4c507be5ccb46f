"""The stationary distribution of an agent whose partners say words with fixed probabilities Q."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from meanfield._fixed_points.closed_classes import closed_classes, flow_successors, said_next
from meanfield._fixed_points.stationary_kernel import eliminated, iterate
from meanfield._numerics.compiled import in_threads
from meanfield._population.mixture import Mixture
from meanfield.core._space import MemorySpace
from meanfield.toolbox._errors import ConvergenceError

ELIMINATED_FLOWS = 64  # below, elimination on all flows is faster than iteration
CHEAP_FLOWS = 512  # elimination takes a millisecond
LAST_RESORT_FLOWS = 8192  # above, elimination would take minutes and gigabytes for each Q
FEWEST_CYCLES = 8  # after which iteration may give way to elimination
CYCLES = 16  # passes over a distribution until it has converged, about
TOLERANCE = 1e-13  # relative error of the word shares; sums of positive terms lose no more than this
LEAKS = (1e-3, 1e-6, 1e-9, 1e-12)
RARE = 1e-4  # a word that is heard less
RAREST = 1e-270  # many voices for rare words underflow in large groups, far from where they could matter
ONE_AT_A_TIME = 4096  # flows; a chain of them takes 0.13 GB, and for more, threads don't eliminate together


class StationaryDistribution:
    """Stationary distribution p(Q) of the kernel A(Q) on a closed class of memories, for one policy and many Q at once.

    The distribution of full memories is p[flow, heard] = f[flow] Q[heard], with P(heard | said) for Q in groups. f is
    the stationary distribution of the chain of flows (see `flow_successors`), W^{2H-1} unknowns. Power iteration would
    need up to 1e16 steps on policies in which an agent hardly ever changes its habit, so its steps alternate with an
    exact solution of the chain between aggregates of flows (iterative aggregation and disaggregation; Stewart,
    Introduction to the Numerical Solution of Markov Chains, 1994, ch. 6). Heard words are independent from interaction
    to interaction, so long memory resides in own words: the aggregates are the own words, together with the sets of
    flows that agents hardly ever leave.

    Distributions that have not converged after about the cost of elimination on all flows are solved by elimination
    without subtraction. That bounds the cost for any policy: with 512 flows (W = 2, H = 5) elimination takes a
    millisecond, since it leaves most of the chain sparse. For more than two words, and where some words are never said,
    elimination also solves those for which a word is hardly ever heard, since sets may be left by that alone. Memory
    O(S) for each Q, and O(S²) for each thread that eliminates.

    Parameters
    ----------
    q
        Choice probabilities, shape (S, W).
    closed_class
        The flows of the class.
    heard_from
        P(b | a) as a function of Q, in a population that meets in groups.
    """

    def __init__(
        self,
        q: Float[np.ndarray, "states words"],
        space: MemorySpace,
        closed_class: Int[np.ndarray, " class"],
        heard_from: Callable[[np.ndarray], np.ndarray] = Mixture.heard_from,
    ) -> None:
        self._heard_from = heard_from
        self.space = space
        self._said = np.array(said_next(q, space), order="C")  # one type of array, for which loops are compiled once
        self._successors = flow_successors(space)
        self._class = closed_class
        self._q = q

    @cached_property
    def _aggregates(self) -> Int[np.ndarray, " flows"]:
        words = range(self.space.n_words)
        heard = [tuple(words)]
        if len(self._class) > LAST_RESORT_FLOWS:
            heard += [some for k in words[2:] for some in itertools.combinations(words, k)]
        return own_words(self._q, self.space, heard)

    def flow_law(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws flows"]:
        """f(Q) for each row of Q; rows sum to 1.

        `tolerance` bounds the estimated relative error of the word share, and the estimated error of f, Σ|δf|.
        ConvergenceError if the iteration does not converge, and there are more than 8,192 flows.
        """
        laws = np.empty((len(Q), len(self._said)))
        if len(self._class) <= ELIMINATED_FLOWS or self.space.memory_length == 1:
            self._eliminate(Q, laws)
            return laws
        heard, start = self._heard(Q), np.zeros(len(self._said))
        start[self._class] = 1 / len(self._class)
        max_cycles = FEWEST_CYCLES + len(self._class) // 16  # then they have cost about what elimination does
        fixed = (start, self._said, self._successors, self._aggregates)
        converged = np.zeros(len(Q), bool)

        def solve(rows: slice) -> None:
            converged[rows] = iterate(heard[rows], *fixed, tolerance, max_cycles, laws[rows])

        in_threads(solve, len(Q), CYCLES * len(start))
        few = CHEAP_FLOWS if self.space.n_words == 2 else LAST_RESORT_FLOWS
        if len(self._class) <= few and (self.space.n_words > 2 or (self._q == 0).any()):
            converged &= ~((heard > 0) & (heard < RARE)).any((1, 2))
        if not converged.all():
            if len(self._class) > LAST_RESORT_FLOWS:
                raise ConvergenceError(
                    f"no stationary distribution at Q = {Q[~converged][0]} after {max_cycles} cycles; "
                    "a shorter memory may help",
                    best=laws,
                )
            slow = laws[~converged]
            self._eliminate(Q[~converged], slow)
            laws[~converged] = slow
        return laws

    def _heard(self, Q: Float[np.ndarray, "laws words"]) -> Float[np.ndarray, "laws words words"]:
        """P(b | a); in groups where all words are said, large enough that products of H of them do not underflow."""
        if self._heard_from is Mixture.heard_from:
            return np.ascontiguousarray(self._heard_from(Q))
        said = (Q.min(1) > 0)[:, None, None]
        return np.maximum(self._heard_from(Q), said * RAREST ** (1 / self.space.memory_length))

    def _eliminate(self, Q: np.ndarray, laws: np.ndarray) -> None:
        """Write the distributions by elimination on all flows of the class, O(M³) for each Q."""
        heard, n = self._heard(Q), len(self._class)

        def solve(rows: slice) -> None:
            eliminated(heard[rows], self._said, self._successors, self._class, laws[rows])

        in_threads(solve, len(Q), n**2, 1 if n > ONE_AT_A_TIME else None)

    def word_share(
        self, Q: Float[np.ndarray, "laws words"], tolerance: float = TOLERANCE
    ) -> Float[np.ndarray, "laws words"]:
        """f_w(Q) = Σ_i p_i(Q) q_w(i): what an agent with such partners says."""
        law, W = self.flow_law(Q, tolerance), self.space.n_words
        # Sums along rows are made in pairs, with fewer rounding errors than term after term
        said = np.stack([law[:, w::W].sum(1) for w in range(W)], axis=1)
        return said / said.sum(1, keepdims=True)

    def composition(self, Q: Float[np.ndarray, "*laws words"]) -> Float[np.ndarray, "*laws states"]:
        """p(Q) over all states."""
        rows, W = Q.reshape(-1, Q.shape[-1]), Q.shape[-1]
        x = np.zeros((len(rows), self.space.n_states))
        said = self.flow_law(rows).reshape(len(rows), len(self._said) // W, W, 1)
        x[:, -self.space.n_full :] = (said * self._heard_from(rows)[:, None]).reshape(-1, self.space.n_full)
        return x.reshape(*Q.shape[:-1], self.space.n_states)


def own_words(
    q: Float[np.ndarray, "states words"], space: MemorySpace, heard: list[tuple[int, ...]]
) -> Int[np.ndarray, " flows"]:
    """A label for each flow: the own words it remembers, and the sets that agents leave only by rare answers.

    A set is closed except for answers of probability below 1e-3, 1e-6, 1e-9 or 1e-12, to partners who only say the
    words of one of the tuples `heard`.
    """
    W, H = space.n_words, space.memory_length
    flow = np.arange(space.n_digits ** (H - 1) * W)
    label = flow % W
    for k in range(H - 1):
        label = label * W + flow // W // space.n_digits**k % space.n_digits // W
    for words, leak in itertools.product(heard, (0.0, *LEAKS) if len(heard) > 1 else LEAKS):
        classes = closed_classes(q, space, words, leak)
        if sum(len(np.unique(label[flows])) for flows in classes) == len(np.unique(label[np.concatenate(classes)])):
            continue  # own words tell these sets apart
        label = label * (len(flow) + 1)
        for number, flows in enumerate(classes, start=1):
            label[flows] += number
        label = np.unique(label, return_inverse=True)[1]
    return label
