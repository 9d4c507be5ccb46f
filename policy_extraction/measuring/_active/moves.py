"""Whether the goal moves from batch to batch as the model expects.

The posterior mean of a goal is nearly a martingale: it moves by what a batch tells, and the variance of a move is what
the batch takes off the variance of the goal. Errors that memories share, which make a goal wrong, show in its moves but
not in predictions of single memories. Small moves suggest small errors, but tell nothing of what no batch has met, so
they count beside others as expected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RECENT = 10  # moves that count; earlier ones were made from fewer measurements
BEFORE = 10  # moves as expected that count besides


@dataclass
class Moves:
    """Moves of a goal in the standard deviations expected of them, in order."""

    every: list[float] = field(default_factory=list)

    def add(self, move: float, expected: float) -> None:
        """Keep a move of this expected standard deviation."""
        self.every.append(move / expected)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the goal's distribution; 0 before the first move."""
        return self._spread[0] if self.every else 0

    @property
    def widening(self) -> float:
        """How much wider than expected the goal's distribution is; below 1 it is narrower.

        Large moves widen it by their root mean square, small ones narrow it only beside `BEFORE` as expected.
        """
        number, squares = self._spread
        return float(np.sqrt(squares / number))

    @property
    def _spread(self) -> tuple[int, float]:
        """The number of moves that count, and the sum of their squares."""
        recent = self.every[-RECENT:]
        number, squares = len(recent), float(np.square(recent).sum())
        return (number, squares) if squares > number else (BEFORE + number, BEFORE + squares)
