"""Equilibria of a population along a parameter: the parameter as an explicit function of the word share.

Shares of kinds and of committed agents are linear in the parameter c, and so is the word share of agents whose partners
have the word share Q: F(Q; c) = F(Q; 0) + c B(Q). At an equilibrium F(Q; c) = Q, hence

    c(Q) = (Q - F(Q; 0)) / B(Q),

one curve for all equilibria, whose folds are the extrema of c.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev

from meanfield._fixed_points.points import LOGITS, word_shares
from meanfield._fixed_points.response import Response
from meanfield._numerics.piecewise import interpolate, real_roots
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population
from meanfield._population.single_policy import word_index
from meanfield.toolbox._errors import InputError

PARAMETERS = ("committed", "fraction")
TOLERANCE = 1e-10
ROUNDING = 1e-13
SAME_STOP = 1e-9  # of logit Q
ALIKE = 1e-12  # what policies that respond alike differ by, from rounding
SMALLEST_FOLD = 1e-8  # between two folds the parameter changes by more than its interpolant may err


class Line(NamedTuple):
    """Populations along a parameter c from 0 to `end`: share + c · share_slope, and the same for committed agents."""

    q: Float[np.ndarray, "kinds states words"]  # choice probabilities of each kind
    share: Float[np.ndarray, " kinds"]  # share of each kind among all agents
    share_slope: Float[np.ndarray, " kinds"]
    committed: Float[np.ndarray, " words"]  # share of agents who always say a word
    committed_slope: Float[np.ndarray, " words"]
    end: float  # largest value of the parameter

    def at(self, c: float) -> Mixture:
        """The population at c."""
        return Mixture(self.q, self.share + c * self.share_slope, self.committed + c * self.committed_slope)


def parameter_line(population: Population, parameter: str, word: str | None) -> tuple[str | None, Line]:
    """The word of the committed agents, and the populations along the parameter c.

    c is the fraction of all agents committed to the word, or of the last policy among the uncommitted agents.
    """
    if population.space.n_words != 2:
        raise InputError(f"population has {population.space.n_words} words: expected 2 to follow equilibria")
    if parameter not in PARAMETERS:
        raise InputError(f"parameter = {parameter!r}: expected one of {', '.join(PARAMETERS)}")
    if parameter == "fraction":
        if word is not None:
            raise InputError(f"word = {word!r}: only committed agents have one; expected none for parameter 'fraction'")
        base = population.with_fraction(0.0)
        last = np.eye(len(base.policies))[-1]
        slope = base.mixture.share.sum() * (last - np.array(base.fractions))
        return None, Line(*base.mixture[:2], slope, base.mixture.committed, np.zeros(len(base.words)), 1.0)
    if word is None:
        bound = [w for w, share in population.committed.items() if share > 0] or list(population.committed)
        if len(bound) != 1:
            raise InputError(
                f"word = None with agents committed to {bound or 'no word'}: expected one of "
                f"{', '.join(population.words)}"
            )
        (word,) = bound
    word_index(population.policies[0], word)
    base = population.with_committed(word, 0.0)
    slope = np.array([float(word == other) for other in base.words])
    end = 1 - float(base.mixture.committed.sum())
    return word, Line(*base.mixture[:2], -np.array(base.fractions), base.mixture.committed, slope, end)


class Stop(NamedTuple):
    """A point of the curve: logit of the first word's share, the parameter there, and whether it is a fold."""

    logit: float
    parameter: float
    fold: bool


class EquilibriumCurve:
    """The curve c(Q) of two words on one closed class of memories of each kind.

    `arcs` are its stretches with 0 ≤ c ≤ end; `crossings` are the logit(Q) at which it crosses an equilibrium for every
    c.
    """

    def __init__(self, line: Line, response: Response) -> None:
        self._line, self._response = line, response
        self.crossings: list[float] = []
        self.arcs = [_without_ripples(arc) for arc in self._find_arcs()]

    def parameter(self, logits: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        """c at each logit(Q); at a crossing its limit."""
        top, bottom = self._sides(logits)
        with np.errstate(divide="ignore", invalid="ignore"):
            c = top / bottom
        for crossing in self.crossings:
            here = np.abs(logits - crossing) < 1e-6
            if here.any():
                c[here] = self._limit(crossing)
        return c

    def said_by_others(self, logits: Float[np.ndarray, " points"]) -> Float[np.ndarray, "points words"]:
        """The word share of the uncommitted agents at points of the curve."""
        c = self.parameter(logits)[:, None]
        if self._line.committed_slope.any():
            c = np.zeros_like(
                c
            )  # committed agents take the places of all kinds alike, up to c = 1, where nobody is left
        share = self._line.share + c * self._line.share_slope
        said = np.einsum("lm,mlw->lw", share, self._response.of_kinds(word_shares(logits)))
        return said / said.sum(1, keepdims=True)

    def _limit(self, crossing: float) -> float:
        """c at a crossing, from both sides, by extrapolation in the square of the distance."""
        near, far = (self.parameter(crossing + h * np.array([-1.0, 1.0])).mean() for h in (0.01, 0.02))
        return float((4 * near - far) / 3)

    def composition(self, logit: float) -> Float[np.ndarray, "kinds states"]:
        """The composition at a point of the curve."""
        return self._response.composition(word_shares(np.array(logit)))

    def _sides(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Q - F(Q; 0) and B(Q) for the rarer word, where both have full relative accuracy."""
        Q = word_shares(logits)
        said = self._response.of_kinds(Q)
        rest = np.einsum("m,mlw->lw", self._line.share, said) + self._line.committed
        slope = np.einsum("m,mlw->lw", self._line.share_slope, said) + self._line.committed_slope
        rarer = (logits > 0).astype(int)[:, None]
        return np.take_along_axis(Q - rest, rarer, 1)[:, 0], np.take_along_axis(slope, rarer, 1)[:, 0]

    def _normalised(self, logits: np.ndarray) -> np.ndarray:
        """Both sides as a unit vector: bounded, and smooth where c has a pole."""
        top, bottom = self._sides(logits)
        sign = np.where(logits > 0, -1.0, 1.0)  # the rarer word changes at 0, and with it the sign of both sides
        return sign * np.stack([top, bottom]) / np.hypot(top, bottom)

    def _find_crossings(self, stops: np.ndarray) -> list[float]:
        """Where Q = F(Q; c) for every c, as at equal shares if neither kind of agent prefers a word."""
        top, bottom = self._sides(stops)
        return stops[np.hypot(top, bottom) < ROUNDING * word_shares(stops).min(1)].tolist()

    def _changes_something(self) -> bool:
        """Whether c affects the word share; if not, there is no curve c(Q)."""
        top, bottom = self._sides(LOGITS)
        return bool((np.abs(bottom) > ALIKE * np.hypot(top, bottom)).any())

    def _find_arcs(self) -> list[list[Stop]]:
        """Stretches of the curve on which 0 ≤ c ≤ end, each as its ends and the extrema of c between them."""
        if not self._changes_something():
            if self._line.committed_slope.any():
                return []  # agents of this class say the word anyway
            raise InputError("parameter = 'fraction': expected a last policy that responds differently from the others")
        pieces = interpolate(self._normalised, LOGITS, TOLERANCE)
        special = [polynomial for piece in pieces for polynomial in self._special(*piece)]
        ends = np.array([polynomial.domain for polynomial in special])
        stops = _distinct(np.concatenate([ends.ravel(), *real_roots([one.coef for one in special], ends)]))
        self.crossings = self._find_crossings(stops)
        middles = (stops[1:] + stops[:-1]) / 2
        inside = self.parameter(middles)
        within = (inside >= 0) & (inside <= self._line.end)
        values = np.clip(self.parameter(stops), 0.0, self._line.end)
        arcs: list[list[Stop]] = []
        for i in np.flatnonzero(within):
            if not arcs or arcs[-1][-1].logit != stops[i]:
                arcs.append([Stop(stops[i], values[i], False)])
            arcs[-1].append(Stop(stops[i + 1], values[i + 1], False))
        return arcs

    def _special(self, top: Chebyshev, bottom: Chebyshev) -> list[Chebyshev]:
        """Zero where c on this piece turns, is 0 or the largest, or has a pole."""
        return [top.deriv() * bottom - top * bottom.deriv(), top, top - self._line.end * bottom, bottom]


def _distinct(stops: np.ndarray) -> np.ndarray:
    """`stops` in rising order, close ones merged, with a break of the grid preferred."""
    apart = np.abs(stops[:, None] - LOGITS).min(1) > SAME_STOP
    rest = np.sort(stops[apart])
    rest = rest[np.diff(rest, prepend=-np.inf) > SAME_STOP]
    return np.sort(np.concatenate([LOGITS, rest]))


def _without_ripples(arc: list[Stop]) -> list[Stop]:
    """The ends of an arc and its folds: extrema of c that differ by more than the error of the interpolant."""
    turns = list(arc)
    while True:
        turns = [
            stop
            for before, stop, after in zip([None, *turns[:-1]], turns, [*turns[1:], None], strict=True)
            if before is None
            or after is None
            or (stop.parameter - before.parameter) * (after.parameter - stop.parameter) < 0
        ]
        steps = [abs(b.parameter - a.parameter) for a, b in itertools.pairwise(turns)]
        smallest = int(np.argmin(steps))
        if len(turns) == 2 or steps[smallest] > SMALLEST_FOLD:
            return [turns[0], *(stop._replace(fold=True) for stop in turns[1:-1]), turns[-1]]
        # Ends stay; of two extrema that hardly differ both go.
        doomed = {i for i in (smallest, smallest + 1) if 0 < i < len(turns) - 1}
        turns = [stop for i, stop in enumerate(turns) if i not in doomed]
