"""How much faster agents give way than those whose memories are adapted to what they hear.

A line of adapted agents is slow where the word share moves fast, since memories far from equilibrium do not relax along
the slowest mode. The rate equation knows when agents first say the committed word as often as at each point of the
line. Where it takes a time t from one point to another and the line takes t', drift and noise of the line are
multiplied by t'/t. That moves its clock only: the chance to go to either side remains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from meanfield._fixed_points.stationary_law import StationaryLaw
from meanfield._numerics.course import Vector, integrate
from meanfield._population.reaction_tensor import gain

Points = Float[np.ndarray, " points"]
Times = Float[np.ndarray, " times"]

STEP, CHUNK = 0.25, 40  # of time; steps
LONGEST = 400.0  # course
LATE = 100.0  # before the line's end, where a second course starts
PIECE = 1.0  # the least time between two points, on both clocks
NEAR = 1e-3  # of the way: a course ends so near to the equilibrium
SETTLED = 1e-6  # of the way, in CHUNK steps
SLOWEST = 1e-100  # velocity
LEAST = 1e-9  # share of the word, which is told from rounding


class Courses:
    """Courses of the rate equation for agents of one policy of two words, beside agents committed to one of them."""

    def __init__(self, law: StationaryLaw, q: Float[np.ndarray, "states words"], word: int) -> None:
        self._law, self._q, self._word = law, q, word

    def pace(self, Q: Points, said: Points, velocity: Points, committed: float) -> Points:
        """Of the line with this velocity of infinitely many agents; 1 where no course passes.

        One course leaves consensus on the other word. If it does not arrive, another one follows the last part of the
        line, from adapted memories: there is an equilibrium before it, or a passage so slow that memories adapt.
        """
        pace, rises = np.ones_like(Q), [_Rise.on(Q, said, velocity, part) for part in _parts(velocity > 0)]
        if not rises:
            return pace
        arrived = False
        if rises[0].first == 0:
            start = np.zeros(len(self._q))
            start[self._law.space.consensus_state(1 - self._word)] = 1.0
            arrived = self._follow(start, committed, rises[0], pace) and len(rises) == 1
        if not arrived:
            late = rises[-1].late()
            self._follow(self._law.composition(self._heard(Q[late.first])), committed, late, pace)
        return pace

    def _follow(self, start: Vector, committed: float, rise: _Rise, pace: Points) -> bool:
        """Write the pace of a rise; whether the course arrives at its end."""
        times, said = self._course(start, committed, rise.said)
        passed = np.flatnonzero((rise.said > said[0] + LEAST) & (rise.said < said[-1]))
        points = np.append(0, passed)
        here, there = rise.times[points], np.append(0.0, np.interp(rise.said[passed], said, times))
        last = 0
        for point in range(1, len(points)):
            if min(here[point] - here[last], there[point] - there[last]) >= PIECE:
                piece = slice(rise.first + points[last], rise.first + points[point])
                pace[piece] = (here[point] - here[last]) / (there[point] - there[last])
                last = point
        return bool(said[-1] >= rise.said[-1])

    def _course(self, start: Vector, committed: float, levels: Points) -> tuple[Times, Points]:
        """Times at which agents have first said the word more often than ever before, and how often."""
        x, said, way = start, [float(start @ self._q[:, self._word])], float(levels[-1] - levels[0])
        for _ in range(int(LONGEST / STEP / CHUNK)):
            course = integrate(lambda _, y: self._drift(y, committed), x, CHUNK, STEP)
            x = course[-1]
            said += (course[1:] @ self._q[:, self._word]).tolist()
            if said[-1] >= levels[-1] or said[-1] - said[-1 - CHUNK] < SETTLED * way:
                break
        reached = np.maximum.accumulate(said)
        new = np.diff(reached, prepend=-np.inf) > 0
        return STEP * np.flatnonzero(new), reached[new]

    def _drift(self, x: Vector, committed: float) -> Vector:
        said = float(x @ self._q[:, self._word])
        return gain(x, self._heard(committed + (1 - committed) * said), self._q, self._law.space) - x

    def _heard(self, Q: float) -> Float[np.ndarray, " words"]:
        return np.array([Q, 1 - Q] if self._word == 0 else [1 - Q, Q])


class _Rise(NamedTuple):
    """A part of the line that is followed upwards, up to next to its end."""

    first: int
    said: Points
    waits: Times  # from each point to the next

    @classmethod
    def on(cls, Q: Points, said: Points, velocity: Points, part: slice) -> _Rise:
        reached, slowness = np.maximum.accumulate(said[part]), 1 / np.maximum(velocity[part], SLOWEST)
        waits = np.diff(Q[part]) * (slowness[1:] + slowness[:-1]) / 2
        n = int(np.searchsorted(reached, reached[-1] - NEAR * (reached[-1] - reached[0]), side="right"))
        return cls(part.start, reached[:n], waits[: n - 1])

    @property
    def times(self) -> Times:
        return np.append(0.0, np.cumsum(self.waits))

    def late(self) -> _Rise:
        skipped = int((np.cumsum(self.waits[::-1]) > LATE).sum())
        return _Rise(self.first + skipped, self.said[skipped:], self.waits[skipped:])


def _parts(chosen: np.ndarray) -> list[slice]:
    """The stretches of two points or more that are chosen."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(int))).reshape(-1, 2)
    return [slice(first, last) for first, last in ends.tolist() if last - first > 1]
