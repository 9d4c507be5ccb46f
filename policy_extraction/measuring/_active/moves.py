"""Whether the goal moves from batch to batch as the model expects.

The posterior mean of a goal is nearly a martingale: it moves by what a batch tells, and the variance of a move is what
the batch takes off the variance of the goal. Errors that memories share, which make a goal wrong, show in its moves but
not in predictions of single memories.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RECENT = 10  # moves that count; earlier ones were made from fewer measurements


@dataclass
class Moves:
    """Moves of a goal in the standard deviations expected of them, in order."""

    every: list[float] = field(default_factory=list)

    def add(self, move: float, expected: float) -> None:
        """Keep a move of this expected standard deviation."""
        self.every.append(move / expected)

    @property
    def freedom(self) -> int:
        """Number of moves that count."""
        return len(self.every[-RECENT:])

    @property
    def widening(self) -> float:
        """How much wider than expected the goal's distribution is; moves widen it but never narrow it."""
        return float(np.sqrt(max(1.0, np.mean(np.square(self.every[-RECENT:]))))) if self.every else 1.0
