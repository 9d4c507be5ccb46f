"""Errors of predictions and quantities: the one rule by which intervals of measurements are doubted.

Answers that were drawn at random were predicted before. Their errors set the width and the tails of the posterior;
they may widen it but not narrow it. A quantity moves from batch to batch by what a batch tells,
and the variance of a move is what the batch takes off its variance. Errors that memories share, which make a quantity
wrong, show in its moves and not in predictions of single memories; larger moves than expected widen its interval.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr, stdtrit
from scipy.stats import binom
from scipy.stats import t as student

LEVEL = 0.95  # of intervals
RARE = 0.001  # probability at which so many answers outside their intervals count as a proof
TESTS = 60  # latest predictions that count; earlier ones were made from fewer answers
MOVES = 6  # latest moves that count
FREEDOM = 3.0  # of predictions: 2.1 to 4.1 for twelve tables of two models, with scales of 0.6 to 0.8
SCALES = np.geomspace(0.7, 6, 22)
BEFORE = 10  # errors as expected that the estimate starts with


class Tails(NamedTuple):
    """Errors in standard deviations are `scale` times Student's t with `FREEDOM` degrees of freedom.

    Where a policy saturates a Gaussian is sure of a memory that may be an exception, so the tails decide. Exceptions
    are too rare for the tests of one measurement to tell how heavy they are.
    """

    scale: float = SCALES[0]

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return float(self.scale * stdtrit(FREEDOM, (1 + LEVEL) / 2))

    def of(self, errors: np.ndarray) -> np.ndarray:
        """Errors with these tails in place of Gaussian ones, in standard deviations."""
        return -self.scale * np.sign(errors) * stdtrit(FREEDOM, ndtr(-np.abs(errors)))


@dataclass
class Doubt:
    """Errors of predictions (W-1,) and moves of a quantity, in their standard deviations, in order."""

    errors: list[np.ndarray] = field(default_factory=list)
    moves: list[float] = field(default_factory=list)  # squares

    def test(self, errors: np.ndarray, covariance: np.ndarray) -> None:
        """Add errors (n, W-1) of predictions with this covariance (n(W-1), n(W-1)), each given the ones before."""
        independent = solve_triangular(np.linalg.cholesky(covariance), errors.ravel(), lower=True)
        self.errors += list(independent.reshape(errors.shape))

    @property
    def recent(self) -> np.ndarray:
        """The errors that count, (n, W-1)."""
        return np.array(self.errors[-TESTS:])

    @property
    def tails(self) -> Tails:
        """The most likely tails of these errors and a few as expected."""
        before = SCALES[0] * stdtrit(FREEDOM, (np.arange(BEFORE) + 0.5) / BEFORE)
        every = np.concatenate([self.recent.ravel(), before])[:, None]
        likelihood = (student.logpdf(every / SCALES, FREEDOM) - np.log(SCALES)).sum(0)
        return Tails(float(SCALES[np.argmax(likelihood)]))

    @property
    def scale(self) -> float:
        """The factor by which the posterior has to be wider, for the tests to be inside its intervals."""
        return max(1.0, self.tails.half / Tails().half)

    @property
    def levels(self) -> np.ndarray:
        """The levels of the smallest intervals that hold recent predictions."""
        return 1 - 2 * student.sf(np.abs(self.recent.ravel()) / self.tails.scale, FREEDOM)

    @property
    def outside(self) -> int:
        """Number of recent predictions that were outside their intervals."""
        return int((self.levels > LEVEL).sum())

    @property
    def holds(self) -> bool:
        """Whether so many outside their intervals are no proof against the model."""
        return bool(binom.sf(self.outside - 1, len(self.levels), 1 - LEVEL) >= RARE)

    @property
    def widening(self) -> float:
        """The factor by which the interval of a quantity is wider than the draws say, by its moves."""
        return float(np.sqrt(max(1.0, np.mean(self.moves[-MOVES:])))) if self.moves else 1.0

    def half(self, spread: float | np.ndarray, draws: float) -> float | np.ndarray:
        """Half the interval of a quantity whose posterior has this standard deviation by so many draws."""
        return stdtrit(draws, (1 + LEVEL) / 2) * self.widening * spread
