"""The memories whose measurement is expected to tell most about a goal.

Let g be the derivatives of the goal in the first word's probability q = Φ(z). To first order in the Gaussian errors δ
of the probits z, of mean m and variance v, memory i adds d_i δ_i to the goal, with d = g Cov(q, δ)/v, so measuring it
is expected to take (Σd)_i²/Σ_ii off the variance of the goal, besides what of q is not linear. Memories are taken one
after the other, each given the choice of the ones before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from meanfield import MemorySpace
from policy_extraction.measuring._doubt import Tails

ABOUT = 0.1  # share of the criterion that goes to memories that are visited, whatever the derivatives
XI, WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
SHARES = (0.02, 0.25, 0.5, 0.75, 0.98)  # of the first word among partners
LENGTHS = 4  # interactions that are followed, in lengths of the memory


def visits(q: np.ndarray, space: MemorySpace) -> np.ndarray:
    """Share of agents in each memory (S,), over time from empty memories and over word shares; q has shape (S, 2)."""
    own, total = np.repeat(q, 2, axis=1), np.zeros(space.n_states)
    after = (space.successors()[:, None] + np.arange(4)).ravel()
    for share in SHARES:
        x = np.eye(1, space.n_states)[0]
        for _ in range(LENGTHS * space.memory_length):
            total += x
            x = np.bincount(after, (x[:, None] * own * [share, 1 - share, share, 1 - share]).ravel(), space.n_states)
    return total / total.sum()


def moments(mean: np.ndarray, variance: np.ndarray, tails: Tails) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (n,) of the regression of q on the probit, and the variances besides it, by quadrature.

    Probits have these means and variances (n,) and these tails.
    """
    deviation = np.sqrt(variance)
    q = ndtr(mean[:, None] + deviation[:, None] * tails.of(XI))
    slope = q @ (WEIGHTS * XI) / deviation
    spread = (q - (q @ WEIGHTS)[:, None]) ** 2 @ WEIGHTS
    return slope, np.maximum(spread - slope**2 * variance, 0)


class Candidates(NamedTuple):
    """Memories that matter for a goal: what they add to it to first order, and nonlinearly."""

    states: np.ndarray  # (C,)
    covariance: np.ndarray  # of their probits, (C, C)
    linear: np.ndarray  # derivatives d of the goal by their probits, (C,)
    rest: np.ndarray  # variances of what they add besides, (C,)
    about: np.ndarray  # variances of the further quantities beside the goal, (C,)

    @property
    def variance(self) -> float:
        """The variance of the goal."""
        return float(self.linear @ self.covariance @ self.linear + self.rest.sum())

    def told(self, batch: np.ndarray, noise: np.ndarray) -> float:
        """Part of the variance that measuring a batch, numbers among these, takes off, with errors of `next`."""
        batch, times = np.unique(batch, return_counts=True)
        errors, own = noise[batch] / times, np.diag(self.covariance)[batch]
        pull = (self.covariance @ self.linear)[batch]
        known = self.covariance[np.ix_(batch, batch)] + np.diag(errors)
        return float(pull @ np.linalg.solve(known, pull) + (self.rest[batch] * own / (own + errors)).sum())

    def next(self, number: int, noise: np.ndarray, given: int = 0, once: bool = True) -> np.ndarray:
        """Numbers among these of the next memories, so many given ones first, each of them `once`.

        Measurements have errors of variances `noise`, shape (C,).
        """
        left, before, goal = self.covariance.copy(), np.diag(self.covariance), self.variance
        free, chosen = np.ones(len(before), dtype=bool), []
        weight = 1 / goal if goal > 0 else 0.0
        alone = weight * self.rest + ABOUT * self.about / max(self.about.sum(), np.finfo(float).tiny)
        for n in range(number):
            own = np.maximum(np.diag(left), 0)
            gain = (weight * (left @ self.linear) ** 2 + alone * own**2 / before) / (own + noise)
            i = n if n < given else int(np.argmax(np.where(free, gain, -1.0)))
            chosen.append(i)
            free[i] = not once
            left -= np.outer(left[i], left[i] / (own[i] + noise[i]))
        return np.array(chosen, dtype=int)
