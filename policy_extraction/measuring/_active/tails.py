"""How far off a posterior is: Student's t in place of the Gaussian, with the width that predictions turned out to need.

Where a policy saturates the Gaussian is sure of a memory that may be an exception, so its tails decide. Memories stay
as dependent on each other as the Gaussian says: only the size of an error is replaced, by the same quantile of t.
Errors may widen the posterior but not narrow it: they are few, and most come from memories where the policy saturates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit
from scipy.stats import t as student

FREEDOMS = np.array([2.5, 3, 4, 6, 10, 30, 1000.0])
SCALES = np.geomspace(1, 6, 19)
BEFORE = 10  # errors as expected that the estimate starts with


class Tails(NamedTuple):
    """Errors in standard deviations are `scale` times Student's t with `freedom` degrees of freedom."""

    scale: float = 1.0
    freedom: float = 1000.0

    def quantile(self, level: float) -> float:
        """Half the width of the interval at this level, in standard deviations."""
        return float(self.scale * student.ppf((1 + level) / 2, self.freedom))

    def level(self, errors: np.ndarray) -> np.ndarray:
        """The levels of the smallest intervals that hold these errors, in standard deviations."""
        return 1 - 2 * student.sf(np.abs(errors) / self.scale, self.freedom)

    def of(self, errors: np.ndarray) -> np.ndarray:
        """Errors with these tails in place of Gaussian ones, in standard deviations."""
        return -self.scale * np.sign(errors) * stdtrit(self.freedom, ndtr(-np.abs(errors)))


NORMAL = Tails()


def fitted_tails(errors: np.ndarray) -> Tails:
    """The most likely tails of these errors (n,) and a few that are normal."""
    every = np.concatenate([errors, ndtri((np.arange(BEFORE) + 0.5) / BEFORE)])
    scale, freedom = SCALES[:, None, None], FREEDOMS[:, None]
    likelihood = (student.logpdf(every / scale, freedom) - np.log(scale)).sum(-1)
    best = np.unravel_index(np.argmax(likelihood), likelihood.shape)
    return Tails(float(SCALES[best[0]]), float(FREEDOMS[best[1]]))
