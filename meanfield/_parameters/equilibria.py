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

from meanfield._fixed_points.points import LOGITS, exact_corners, interior_roots, word_shares
from meanfield._fixed_points.response import Response, responses
from meanfield._numerics.piecewise import interpolate, real_roots, wronskian
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.single_policy import word_number
from meanfield._population.stacks import Games
from meanfield.toolbox._errors import InputError

PARAMETERS = ("committed", "fraction")
TOLERANCE = 1e-10  # of interpolants, relative
ROUNDING = 1e-13  # of both sides of an equation, relative to the rarer word
SAME_STOP = 1e-9  # of logit Q
ALIKE = 1e-12  # what policies that respond alike differ by, from rounding
SMALLEST_FOLD = 1e-8  # between two folds the parameter changes by more than its interpolant may err


class Line(NamedTuple):
    """Populations along a parameter c from 0 to `end`: share + c · share_slope, and the same for committed agents."""

    start: Mixture | Groups  # the population at c = 0
    share_slope: Float[np.ndarray, " kinds"]
    committed_slope: Float[np.ndarray, " words"]
    end: float  # largest value of the parameter

    def at(self, c: float) -> Mixture | Groups:
        """The population at c."""
        share = self.start.share + c * self.share_slope
        return self.start._replace(share=share, committed=self.start.committed + c * self.committed_slope)

    def corners(self) -> list[Float[np.ndarray, "kinds states"]]:
        """Exact consensus states that are fixed points at every c."""
        return [root.composition for root in exact_corners(self.at(self.end / 2))]


def parameter_lines(games: Games, parameter: str, word: str | None) -> tuple[str | None, list[Line]]:
    """The word of the committed agents, and each population along the parameter c.

    c is the fraction of all agents committed to the word, or of the last policy among the uncommitted agents.
    """
    n_words = games.mixtures[0].space.n_words
    if n_words != 2:
        raise InputError(f"population has {n_words} words: expected 2 to follow equilibria")
    if parameter not in PARAMETERS:
        raise InputError(f"parameter = {parameter!r}: expected one of {', '.join(PARAMETERS)}")
    if parameter == "fraction":
        if word is not None:
            raise InputError(f"word = {word!r}: only committed agents have one; expected none for parameter 'fraction'")
        if games.population is None:
            raise InputError("parameter = 'fraction': expected a Population of several policies")
        base = games.population.with_fraction(0.0).all_mix
        slope = base.share.sum() * (np.eye(len(base.share))[-1] - base.fractions)
        return None, [Line(base, slope, np.zeros(n_words), 1.0)]
    if word is None:
        committed = {} if games.population is None else games.population.committed
        bound = [w for w, share in committed.items() if share > 0] or list(committed)
        if len(bound) != 1:
            words = dict.fromkeys(word for words in games.words for word in words)
            raise InputError(f"word = None: expected the word to which agents are committed, one of {', '.join(words)}")
        (word,) = bound
    lines = []
    for mixture, words in zip(games.mixtures, games.words, strict=True):
        slope = np.eye(n_words)[word_number(words, word)]
        others = np.where(slope, 0.0, mixture.committed)
        free = 1 - others.sum()
        start = mixture._replace(share=free * mixture.fractions, committed=others)
        lines.append(Line(start, -mixture.fractions, slope, float(free)))
    return word, lines


class Stop(NamedTuple):
    """A point of the curve: logit of the first word's share, the parameter there, and whether it is a fold."""

    logit: float
    parameter: float
    fold: bool


class EquilibriumCurve:
    """The curve c(Q) of two words on one closed class of memories of each kind.

    `arcs` are its stretches with 0 ≤ c ≤ end, none where c has no effect on agents of this class; `crossings` are the
    logit(Q) at which it crosses an equilibrium for every c.
    """

    def __init__(self, line: Line, response: Response) -> None:
        self.line, self.response = line, response
        self.crossings: list[float] = []
        self.arcs: list[list[Stop]] = []

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
        if self.line.committed_slope.any():  # they take the places of all kinds alike, up to c = 1: nobody is left
            c = np.zeros_like(c)
        share = self.line.start.share + c * self.line.share_slope
        said = np.einsum("lm,mlw->lw", share, self.response.of_kinds(word_shares(logits)))
        return said / said.sum(1, keepdims=True)

    def _limit(self, crossing: float) -> float:
        """c at a crossing, from both sides, by extrapolation in the square of the distance."""
        with np.errstate(invalid="ignore"):  # where c has no effect it is nan
            near, far = (self.parameter(crossing + h * np.array([-1.0, 1.0])).mean() for h in (0.01, 0.02))
        return float((4 * near - far) / 3)

    def composition(self, logit: float) -> Float[np.ndarray, "kinds states"]:
        """The composition at a point of the curve."""
        return self.response.composition(word_shares(np.array(logit)))

    def _sides(self, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Q - F(Q; 0) and B(Q) for the rarer word, where both have full relative accuracy."""
        Q = word_shares(logits)
        said = self.response.of_kinds(Q)
        rest = np.einsum("m,mlw->lw", self.line.start.share, said) + self.line.start.committed
        slope = np.einsum("m,mlw->lw", self.line.share_slope, said) + self.line.committed_slope
        rarer = (logits > 0).astype(int)[:, None]
        return np.take_along_axis(Q - rest, rarer, 1)[:, 0], np.take_along_axis(slope, rarer, 1)[:, 0]

    def normalised(self, logits: np.ndarray) -> np.ndarray:
        """Both sides as a unit vector: bounded, and smooth where c has a pole."""
        top, bottom = self._sides(logits)
        sign = np.where(logits > 0, -1.0, 1.0)  # the rarer word changes at 0, and with it the sign of both sides
        return sign * np.stack([top, bottom]) / np.hypot(top, bottom)

    def changes_something(self) -> bool:
        """Whether c affects the word share; if not, there is no curve c(Q)."""
        top, bottom = self._sides(LOGITS)
        return bool((np.abs(bottom) > ALIKE * np.hypot(top, bottom)).any())

    def find_arcs(self, special: Float[np.ndarray, " logits"]) -> None:
        """Find crossings and arcs, from all logit(Q) at which c may turn, be 0 or the largest, or have a pole."""
        stops = _distinct(special)
        top, bottom = self._sides(stops)
        self.crossings = stops[np.hypot(top, bottom) < ROUNDING * word_shares(stops).min(1)].tolist()
        inside = self.parameter((stops[1:] + stops[:-1]) / 2)
        within = (inside >= 0) & (inside <= self.line.end)
        values = np.clip(self.parameter(stops), 0.0, self.line.end)
        arcs: list[list[Stop]] = []
        for i in np.flatnonzero(within):
            if not arcs or arcs[-1][-1].logit != stops[i]:
                arcs.append([Stop(stops[i], values[i], False)])
            arcs[-1].append(Stop(stops[i + 1], values[i + 1], False))
        self.arcs = [_without_ripples(arc) for arc in arcs]


def curves_of_each(lines: list[Line]) -> list[list[EquilibriumCurve]]:
    """The curves of each population, one for each choice of closed classes; all are interpolated together."""
    each = [[EquilibriumCurve(line, response) for response in responses(line.at(line.end / 2))] for line in lines]
    moving = [curve for curves in each for curve in curves if curve.changes_something()]
    if not lines[0].committed_slope.any():
        if any(not set(curves) & set(moving) for curves in each):
            raise InputError("parameter = 'fraction': expected a last policy that responds differently from the others")
        # Where both say the same whatever they hear, an equilibrium is one at every c
        still = [curve for curves in each for curve in curves if curve not in moving]
        for curve, (found, _) in zip(still, interior_roots([curve.response for curve in still]), strict=True):
            curve.crossings = found.roots.tolist()
    ends, special = [np.empty((0, 2))], []
    each_fitted = interpolate([curve.normalised for curve in moving], LOGITS, TOLERANCE) if moving else []
    for curve, pieces in zip(moving, each_fitted, strict=True):
        top, bottom = np.moveaxis(pieces.coefficients, 1, 0)
        zeros = (wronskian(top, bottom), top, top - curve.line.end * bottom, bottom)
        special += [coefficients for some in zeros for coefficients in some]
        ends.append(np.tile(pieces.ends, (len(zeros), 1)))
    roots = iter(real_roots(special, np.concatenate(ends)))
    for curve, its_own in zip(moving, ends[1:], strict=True):
        curve.find_arcs(np.concatenate([its_own.ravel(), *(next(roots) for _ in its_own)]))
    return each


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
