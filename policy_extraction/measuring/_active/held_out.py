"""Whether the model of the policy holds: memories drawn at random were predicted before they were asked.

The chosen memories are no test. They are those in which the model expects to be uncertain, not those of which it is
sure and may be wrong. κ and other differences of the two words hang on the even part of a policy, which is the smaller
one, so errors of the two parts are kept apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import binom

from policy_extraction.measuring._active.marginal_likelihood import NOISE
from policy_extraction.measuring._active.tails import Tails, fitted_tails

LEVEL = 0.95  # of the intervals that are counted
RARE = 0.001  # chance at which so many memories outside their intervals count as a proof
RECENT = 60  # predictions of a part; earlier ones were made from fewer measurements
LEAST = 16  # predictions that make a test


@dataclass
class Errors:
    """Errors of predictions of one part in their standard deviations, in the order of asking.

    They are independent if the model holds.
    """

    every: list[float] = field(default_factory=list)

    def add(self, errors: np.ndarray, covariance: np.ndarray) -> None:
        """Keep the errors (n,) of predictions with this covariance, each given the ones before it."""
        lower = np.linalg.cholesky(covariance + NOISE * np.eye(len(errors)))
        self.every += solve_triangular(lower, errors, lower=True).tolist()

    @property
    def recent(self) -> np.ndarray:
        """The errors that count."""
        return np.array(self.every[-RECENT:])

    @property
    def tails(self) -> Tails:
        """The tails of the recent errors."""
        return fitted_tails(self.recent)

    @property
    def outside(self) -> int:
        """Number of recent predictions that were outside their intervals."""
        return int((np.abs(self.recent) > self.tails.quantile(LEVEL)).sum())


@dataclass
class HeldOut:
    """Errors of predictions of the odd and of the even part."""

    odd: Errors = field(default_factory=Errors)
    even: Errors = field(default_factory=Errors)

    @property
    def parts(self) -> tuple[Errors, Errors]:
        return self.odd, self.even

    @property
    def tails(self) -> tuple[Tails, Tails]:
        """The tails of both parts."""
        return self.odd.tails, self.even.tails

    @property
    def recent(self) -> int:
        """Number of predictions that count."""
        return len(self.odd.recent) + len(self.even.recent)

    @property
    def outside(self) -> int:
        """Number of recent predictions that were outside their intervals."""
        return self.odd.outside + self.even.outside

    @property
    def levels(self) -> np.ndarray:
        """The levels of the smallest intervals that hold recent predictions, odd parts first."""
        return np.concatenate([part.tails.level(part.recent) for part in self.parts])

    @property
    def holds(self) -> bool:
        """Whether so many outside their intervals are no proof against the model."""
        return bool(binom.sf(self.outside - 1, self.recent, 1 - LEVEL) >= RARE)

    @property
    def tested(self) -> bool:
        """Whether there are enough predictions for a test."""
        return self.recent >= LEAST

    @property
    def passed(self) -> bool:
        """Whether the model was tested, and holds."""
        return self.tested and self.holds
