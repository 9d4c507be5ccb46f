"""How far off a posterior is: Student's t in place of the Gaussian, with the width that predictions turned out to need.

Where a policy saturates the Gaussian is sure of a memory that may be an exception, so its tails decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2
from scipy.stats import t as student

FREEDOMS = np.array([2.5, 3, 4, 6, 10, 30, 1000.0])
SCALES = np.geomspace(0.4, 6, 28)
BEFORE = 10  # errors as expected that the estimate starts with
NODES = 20


class Tails(NamedTuple):
    """Errors in standard deviations are `scale` times Student's t with `freedom` degrees of freedom."""

    scale: float = 1.0
    freedom: float = 1000.0

    def quantile(self, level: float) -> float:
        """Half the width of the interval at this level, in standard deviations."""
        return float(self.scale * student.ppf((1 + level) / 2, self.freedom))

    def factors(self) -> np.ndarray:
        """Factors of a standard deviation by which Gaussians have this law on average, shape (NODES,)."""
        return self.scale * np.sqrt(self.freedom / chi2.ppf((np.arange(NODES) + 0.5) / NODES, self.freedom))

    def draw(self, number: int, random: np.random.Generator) -> np.ndarray:
        """Random factors, shape (number,)."""
        return self.scale * np.sqrt(self.freedom / random.chisquare(self.freedom, number))


def fitted_tails(errors: np.ndarray) -> Tails:
    """The most likely tails of these errors (n,) and a few that are normal."""
    every = np.concatenate([errors, ndtri((np.arange(BEFORE) + 0.5) / BEFORE)])
    scale, freedom = SCALES[:, None, None], FREEDOMS[:, None]
    likelihood = (student.logpdf(every / scale, freedom) - np.log(scale)).sum(-1)
    best = np.unravel_index(np.argmax(likelihood), likelihood.shape)
    return Tails(float(SCALES[best[0]]), float(FREEDOMS[best[1]]))
