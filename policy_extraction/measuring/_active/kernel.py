"""The prior covariance of what agents say in two memories.

Probits z of memories are a sum of an odd part, (z(s) - z(-s))/2 with the mirror image -s of the memory s, and of an
even part, (z(s) + z(-s))/2. An agent that treats both words alike has no even part. The two parts are independent, and
each has a kernel of its own. A memory is described by its signs s (see `Features`) and its length h. The covariance of
two memories is

    trend + smooth + rough + alone·[the same memory].

In the odd part `trend` is linear in the signs. In the even part it is a constant and, independent of it, a multiple of
exp(-o²/2), with o the odd part: a model may lean one way where it is sure and the other way where it is in doubt.
`smooth` is a Gaussian in the sums of own and of partner's signs, weighted by recency, and in h: what agents say hangs
on how often they remember each word. `rough` is exp(-Σ_j θ_j |s_j - s'_j| / 2): memories that differ in an old word
only are alike, whatever the rule. With a covariance k(s, s') of unit variance the parity ±1 makes each of the two
[k(s, s') ± k(s, -s')] / 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policy_extraction.measuring._active.features import Features

BLOCK = 2**15  # covariances at once; they stay in the processor's cache
FREQUENCIES = 256  # of a random function; its covariance is exact on average over functions
ODD, EVEN = -1, 1


class Amplitudes(NamedTuple):
    """Variances of the parts, in squares of probits."""

    trend: float
    smooth: float
    rough: float
    alone: float


class Shape(NamedTuple):
    """Features on which the parts depend; weights of words fall as exp(-recency · age)."""

    recency: float
    angle: float  # of own and partner's sums in the plane in which `smooth` varies most along one axis
    width: float  # of `smooth` along that axis
    stretch: float  # width along the other axis, relative to it
    lengths: float  # width in the length of the memory
    theta: float  # of the newest own word
    partner: float  # θ of the partner's words relative to own ones
    forgetting: float  # as recency, of θ


class Kernel(NamedTuple):
    """A prior covariance of the odd or the even part."""

    amplitudes: Amplitudes
    shape: Shape
    parity: int

    def parts(self, one: Features, other: Features) -> list[np.ndarray]:
        """The parts at unit amplitude but for `alone`, each (n, m)."""
        return self._parts(self._points(one), self._points(other))

    def between(self, one: Features, other: Features) -> np.ndarray:
        """Covariances (n, m) of different memories: without the part `alone`."""
        points, others = self._points(one), self._points(other)
        covariance = np.empty((len(one.length), len(other.length)))
        rows = max(1, BLOCK // covariance.shape[1])
        for first in range(0, len(covariance), rows):
            some = slice(first, first + rows)
            parts = self._parts([each[some] for each in points], others)
            for amplitude, part in zip(self.amplitudes, parts, strict=False):
                part *= amplitude
            covariance[some] = sum(parts)
        return covariance

    def variance(self, at: Features) -> np.ndarray:
        """Variances (n,), with the part `alone`."""
        a = self.amplitudes
        sums, _ = self._leads(at)
        smooth = (1 + self.parity * np.exp(-2 * (sums**2).sum(1))) / 2
        rough = (1 + self.parity * np.exp(-2 * np.abs(self._differences(at)).sum(1))) / 2
        return a.trend * (self._trend(at) ** 2).sum(1) + a.smooth * smooth + a.rough * rough + self.alone(at)

    def alone(self, at: Features) -> np.ndarray:
        """Variances (n,) of the part `alone`; the empty memory, its own mirror image, has no odd part."""
        return np.where((self.parity == EVEN) | (at.length > 0), self.amplitudes.alone, 0.0)

    def draw(self, at: Features, random: np.random.Generator) -> np.ndarray:
        """A random function with this covariance, by random Fourier features, shape (n,).

        Source: Rahimi and Recht 2007, Random features for large-scale kernel machines.
        """
        a = self.amplitudes
        trend = self._trend(at)
        f = np.sqrt(a.trend) * trend @ random.standard_normal(trend.shape[1])
        sums, length = self._leads(at)
        turns = 2 * np.pi * random.random(FREQUENCIES)
        along = np.sqrt(2) * np.cos(length[:, None] * random.standard_normal(FREQUENCIES) + turns)
        f += (along * self._waves(sums @ random.standard_normal((2, FREQUENCIES)))) @ _weights(a.smooth, random)
        rough = self._differences(at)
        f += self._waves(rough @ random.standard_cauchy((rough.shape[1], FREQUENCIES))) @ _weights(a.rough, random)
        return f + np.sqrt(self.alone(at)) * random.standard_normal(len(f))

    def _points(self, at: Features) -> list[np.ndarray]:
        """Factors of `trend` (n, k), coordinates of `smooth` (n, 2) and (n,), and roots of those of `rough` (n, 2H)."""
        rough = self._differences(at)
        return [self._trend(at), *self._leads(at), np.sign(rough) * np.sqrt(np.abs(rough))]

    def _parts(self, one: list[np.ndarray], other: list[np.ndarray]) -> list[np.ndarray]:
        """The parts between points.

        With a and b the points, half of |a ∓ b|² is (|a|² + |b|²)/2 ∓ a·b, and Σ_j θ_j |s_j ∓ s'_j| / 2 is the sum of
        θ_j/2 over the words of the longer memory ∓ Σ_j θ_j s_j s'_j / 2.
        """
        (trend, sums, length, rough), (trends, others, lengths, roughs) = one, other
        half, halves = (((x**2).sum(1) + h**2) / 2 for x, h in ((sums, length), (others, lengths)))
        apart = np.outer(-length, lengths)
        apart += half[:, None]
        apart += halves
        longer = np.maximum((rough**2).sum(1)[:, None], (roughs**2).sum(1))
        return [
            trend @ trends.T,
            self._with_mirror(apart, sums @ others.T),
            self._with_mirror(longer, rough @ roughs.T),
        ]

    def _with_mirror(self, apart: np.ndarray, common: np.ndarray) -> np.ndarray:
        """[exp(common - apart) ± exp(-common - apart)] / 2, in the place of both arrays."""
        near = np.subtract(common, apart)
        apart += common
        np.exp(near, out=near)
        np.exp(np.negative(apart, out=apart), out=apart)
        apart *= self.parity
        near += apart
        near /= 2
        return near

    def _trend(self, at: Features) -> np.ndarray:
        """Factors (n, k) of `trend`."""
        if self.parity == ODD:
            return _flat(self._weighted(at))
        return np.stack([np.ones(len(at.doubt)), at.doubt], axis=1)

    def _weighted(self, at: Features) -> np.ndarray:
        return at.signs * np.exp(-self.shape.recency * np.arange(at.signs.shape[1]))[:, None]

    def _leads(self, at: Features) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates in which `smooth` is a Gaussian of width 1: (n, 2), which is odd, and (n,) of the length."""
        s = self.shape
        own, partner = self._weighted(at).sum(1).T
        main = (np.cos(s.angle) * own + np.sin(s.angle) * partner) / s.width
        other = (np.cos(s.angle) * partner - np.sin(s.angle) * own) / (s.width * s.stretch)
        return np.stack([main, other], axis=1), at.length / s.lengths

    def _differences(self, at: Features) -> np.ndarray:
        """Coordinates in which `rough` is exp(-distance along the axes)."""
        theta = self.shape.theta * np.exp(-self.shape.forgetting * np.arange(at.signs.shape[1]))
        return _flat(at.signs * np.stack([theta, self.shape.partner * theta], axis=1) / 2)

    def _waves(self, phase: np.ndarray) -> np.ndarray:
        return np.cos(phase) if self.parity == EVEN else np.sin(phase)


def _flat(signs: np.ndarray) -> np.ndarray:
    return signs.reshape(len(signs), -1)


def _weights(variance: float, random: np.random.Generator) -> np.ndarray:
    """Random weights of waves, which have a mean square of ½ in random directions, shape (FREQUENCIES,)."""
    return np.sqrt(variance / FREQUENCIES) * random.standard_normal(FREQUENCIES)
