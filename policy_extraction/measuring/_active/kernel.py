"""The prior covariance of what agents say in two memories.

A memory is described by its signs s (see `Features`) and its length h. The covariance of two memories is

    level + slope·(weighted signs · weighted signs') + smooth + rough + alone·[the same memory].

`smooth` is a Gaussian in the sums of own and of partner's signs, weighted by recency, and in h: what agents say hangs
on how often they remember each word. `rough` is exp(-Σ_j θ_j |s_j - s'_j| / 2): memories that differ in an old word
only are alike, whatever the rule. Each of the two has an odd part, which changes its sign if the words are exchanged,
and an even part: with k(s, s') the covariance of unit variance,

    odd·[k(s, s') - k(s, -s')] / 2 + even·[k(s, s') + k(s, -s')] / 2.

An agent that treats both words alike has no even part, and then each measured memory tells about its mirror image too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from policy_extraction.measuring._active.features import Features

FREQUENCIES = 256  # of a random function; its covariance is exact on average over functions


class Amplitudes(NamedTuple):
    """Variances of the parts, in squares of probits."""

    level: float
    slope: float
    smooth_odd: float
    smooth_even: float
    rough_odd: float
    rough_even: float
    alone: float


class Shape(NamedTuple):
    """What the parts depend on; weights of words fall as exp(-recency · age)."""

    recency: float
    angle: float  # of own and partner's sums in the plane in which `smooth` varies most along one axis
    width: float  # of `smooth` along that axis
    stretch: float  # width along the other axis, relative to it
    lengths: float  # width in the length of the memory
    theta: float  # of the newest own word
    partner: float  # θ of the partner's words relative to own ones
    forgetting: float  # as recency, of θ


class Kernel(NamedTuple):
    """A prior covariance."""

    amplitudes: Amplitudes
    shape: Shape

    def parts(self, one: Features, other: Features) -> list[np.ndarray]:
        """The parts at unit amplitude but for `alone`, each (n, m)."""
        weighted = [_flat(self._weighted(each)) for each in (one, other)]
        smooth, mirrored_smooth = (np.exp(-d / 2) for d in self._both(one, other, "sqeuclidean"))
        rough, mirrored_rough = (np.exp(-d) for d in self._both(one, other, "cityblock"))
        return [
            np.ones((len(one.length), len(other.length))),
            weighted[0] @ weighted[1].T,
            (smooth - mirrored_smooth) / 2,
            (smooth + mirrored_smooth) / 2,
            (rough - mirrored_rough) / 2,
            (rough + mirrored_rough) / 2,
        ]

    def between(self, one: Features, other: Features) -> np.ndarray:
        """Covariances (n, m) of different memories: without the part `alone`."""
        return np.tensordot(self.amplitudes[:6], self.parts(one, other), 1)

    def variance(self, at: Features) -> np.ndarray:
        """Variances (n,), with the part `alone`."""
        a = self.amplitudes
        sums, _ = self._leads(at)
        odd_smooth = -np.expm1(-2 * (sums**2).sum(1)) / 2
        odd_rough = -np.expm1(-2 * np.abs(self._differences(at)).sum(1)) / 2
        linear = (_flat(self._weighted(at)) ** 2).sum(1)
        even = a.smooth_even * (1 - odd_smooth) + a.rough_even * (1 - odd_rough)
        return a.level + a.slope * linear + a.smooth_odd * odd_smooth + a.rough_odd * odd_rough + even + a.alone

    def draw(self, at: Features, random: np.random.Generator) -> np.ndarray:
        """A random function with this covariance, by random Fourier features, shape (n,).

        Cosines are even and sines odd, so they take the parts apart. Source: Rahimi and Recht 2007, Random features for
        large-scale kernel machines.
        """
        a = self.amplitudes
        linear = _flat(self._weighted(at))
        f = np.sqrt(a.level) * random.standard_normal() + np.sqrt(a.slope) * linear @ random.standard_normal(
            linear.shape[1]
        )
        sums, length = self._leads(at)
        turns = 2 * np.pi * random.random(FREQUENCIES)
        along = np.sqrt(2) * np.cos(length[:, None] * random.standard_normal(FREQUENCIES) + turns)
        f += _waves(sums @ random.standard_normal((2, FREQUENCIES)), along, a.smooth_odd, a.smooth_even, random)
        rough = self._differences(at)
        f += _waves(rough @ random.standard_cauchy((rough.shape[1], FREQUENCIES)), 1, a.rough_odd, a.rough_even, random)
        return f + np.sqrt(a.alone) * random.standard_normal(len(f))

    def _both(self, one: Features, other: Features, metric: str) -> list[np.ndarray]:
        """Distances (n, m) from one to the other, and to its mirror image."""
        if metric == "cityblock":
            first, second = self._differences(one), self._differences(other)
            return [cdist(first, sign * second, metric) for sign in (1, -1)]
        (first, own), (second, others) = self._leads(one), self._leads(other)
        apart = (own[:, None] - others) ** 2
        return [cdist(first, sign * second, metric) + apart for sign in (1, -1)]

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


def _flat(signs: np.ndarray) -> np.ndarray:
    return signs.reshape(len(signs), -1)


def _waves(
    phase: np.ndarray, along: np.ndarray | int, odd: float, even: float, random: np.random.Generator
) -> np.ndarray:
    """Σ of random sines of variance `odd` and cosines of variance `even`, shape (n,); phases (n, frequencies)."""
    sines, cosines = random.standard_normal((2, phase.shape[1])) / np.sqrt(phase.shape[1])
    return (along * np.sin(phase)) @ sines * np.sqrt(odd) + (along * np.cos(phase)) @ cosines * np.sqrt(even)
