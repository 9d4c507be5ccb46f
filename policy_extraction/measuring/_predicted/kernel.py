"""The prior covariance of how much a memory speaks for a word.

A policy is the softmax of logits f(s, w) of the W words w in a memory s. Where in the memory a word was said, its
pattern u, decides most, for all words alike. The covariance of f(s, w) and f(s', w') is

    trend + smooth + rough + [w = w']·(bias + own + near + alone·[s = s']).

`trend`, `smooth` and `rough` are functions of the two patterns: linear, a Gaussian in how often the word was said and
heard, weighted by recency, and exp(-Σ_j θ_j |u_j - u'_j|). `bias` is a word's lean, and `own`, with the shape of
`smooth`, what it does differently from other words. `near` is exp(-Σ_j ν_j [interaction j differs]): memories alike in
all words. Exchanging words in all memories changes nothing but their names, so the prior treats them alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policy_extraction.measuring._predicted.memories import Patterns


class Amplitudes(NamedTuple):
    """Variances of the parts, in squares of logits."""

    trend: float
    smooth: float
    rough: float
    bias: float
    own: float
    near: float
    alone: float


class Shape(NamedTuple):
    """Features on which the parts depend; weights of interactions fall as exp(-rate · age)."""

    recency: float  # rate of `trend` and `smooth`
    angle: float  # of sums of said and heard words in the plane in which `smooth` varies most along one axis
    width: float  # of `smooth` along that axis
    stretch: float  # width along the other axis, relative to it
    lengths: float  # width in the length of the memory
    theta: float  # of the newest own word
    partner: float  # θ of the partner's words relative to own ones
    forgetting: float  # rate of θ
    nu: float  # of the newest interaction
    fading: float  # rate of ν


# Logits of choice are 0 to 10, sums of mentions 0 to H. Standard deviations are those of logarithms, but of the angle.
SIZES = Amplitudes(1.0, 4.0, 0.5, 1.0, 0.5, 0.5, 0.05)
SHAPE = Shape(*np.log([0.15, 1.0, 1.2, 2.0, 3.0, 0.3, 1.0, 0.2, 0.5, 0.3]))._replace(angle=np.pi / 4)
CENTRE = np.array([*np.log(SIZES), *SHAPE])
SPREAD = np.array([*Amplitudes(1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 2.0), *Shape(1, 0.5, 0.7, 0.7, 0.7, 1, 1, 1, 1, 1)])
N_SIZES, ANGLE = len(SIZES), len(SIZES) + Shape._fields.index("angle")


class Kernel(NamedTuple):
    """A prior covariance."""

    sizes: Amplitudes
    shape: Shape

    @classmethod
    def of(cls, parameters: np.ndarray) -> Kernel:
        """The kernel of these numbers: logarithms, but of the angle."""
        numbers = np.exp(parameters)
        numbers[ANGLE] = parameters[ANGLE]
        return cls(Amplitudes(*numbers[:N_SIZES]), Shape(*numbers[N_SIZES:]))

    def parts(self, one: Patterns, other: Patterns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`trend`, `smooth` and `rough` of unit amplitude between patterns, each (U, V)."""
        (lead, trend, rough), (leads, trends, roughs) = self._points(one), self._points(other)
        squares = (lead**2).sum(1)[:, None] + (leads**2).sum(1) - 2 * lead @ leads.T
        # |u - u'| = u + u' - 2uu' of numbers that are 0 or θ, with √θ√θ = θ in their product.
        apart = (rough**2).sum(1)[:, None] + (roughs**2).sum(1) - 2 * rough @ roughs.T
        return trend @ trends.T, np.exp(-squares / 2), np.exp(-apart)

    def near(self, codes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """`near` of unit amplitude between memories, shape (n, m)."""
        rates = self.rates(codes.shape[1])
        apart = np.zeros((len(codes), len(others)))
        for age, rate in enumerate(rates):
            apart += rate * (codes[:, age, None] != others[:, age])
        return np.exp(-apart)

    def rates(self, memory_length: int) -> np.ndarray:
        """ν of the interactions, newest first."""
        return self.shape.nu * np.exp(-self.shape.fading * np.arange(memory_length))

    def _points(self, at: Patterns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, age = self.shape, np.arange(at.own.shape[1])
        weights, theta = np.exp(-s.recency * age), s.theta * np.exp(-s.forgetting * age)
        own, partner = at.own @ weights, at.partner @ weights
        main = (np.cos(s.angle) * own + np.sin(s.angle) * partner) / s.width
        other = (np.cos(s.angle) * partner - np.sin(s.angle) * own) / (s.width * s.stretch)
        lead = np.stack([main, other, at.length / s.lengths], axis=1)
        trend = np.concatenate([at.own * weights, at.partner * weights], axis=1)
        rough = np.concatenate([at.own * np.sqrt(theta), at.partner * np.sqrt(s.partner * theta)], axis=1)
        return lead, trend, rough
