"""Whether the model of the policy holds: each measured memory was predicted before it was asked."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import binom

from policy_extraction.measuring._active.marginal_likelihood import NOISE

LEVEL = 0.95  # of the intervals that are counted
RARE = 0.001  # chance at which so many memories outside their intervals count as a proof
RECENT = 60  # predictions; earlier ones were made from fewer measurements
LEAST = 24  # predictions that make a test
PRIOR = 10.0  # predictions of spread 1 that the inflation starts with
NORMAL = 1.959963984540054


@dataclass
class HeldOut:
    """Errors of predictions in their standard deviations, independent if the model holds, in the order of asking."""

    errors: list[float] = field(default_factory=list)

    def add(self, errors: np.ndarray, covariance: np.ndarray) -> None:
        """Keep the errors (n,) of predictions with this covariance, each given the ones before it."""
        lower = np.linalg.cholesky(covariance + NOISE * np.eye(len(errors)))
        self.errors += solve_triangular(lower, errors, lower=True).tolist()

    @property
    def recent(self) -> int:
        """Number of predictions that count."""
        return min(len(self.errors), RECENT)

    @property
    def inflation(self) -> float:
        """Factor ≥ 1 of standard deviations, from the recent errors."""
        recent = np.array(self.errors[-RECENT:])
        return float(np.sqrt(max(1.0, (PRIOR + (recent**2).sum()) / (PRIOR + len(recent)))))

    def outside(self, inflation: float = 1.0) -> int:
        """Number of recent predictions that were outside their intervals."""
        return int((np.abs(self.errors[-RECENT:]) > NORMAL * inflation).sum())

    @property
    def holds(self) -> bool:
        """Whether so many outside their inflated intervals are no proof against the model."""
        return bool(binom.sf(self.outside(self.inflation) - 1, self.recent, 1 - LEVEL) >= RARE)

    @property
    def passed(self) -> bool:
        """Whether the model was tested, and holds."""
        return self.recent >= LEAST and self.holds
