"""Which of several attractors N agents reach from empty memories, for any number of words (docs/theory/noise.md).

Noise carries N agents over the saddle k with the probability Φ(-z_k), z_k = κ_k√N - c_k/√N. Saddles connect the
attractors as a tree: one is reached if the saddle before it is crossed and none after it. Where they connect them in a
circle, as for three words, crossings are not independent: see `sectors`, whose radii are in proportion to those with
the exact κ_k. Where the likeliest way leads past the point at which basins meet, κ_k is the least radius of linear
noise, times the usual proportion.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.sparse.csgraph import breadth_first_order
from scipy.special import log_ndtr

from meanfield._finite_size.law_path import (
    TWO_WAYS,
    Compositions,
    Kinds,
    compositions,
    ends,
    ever_said,
    place,
    reached,
    unstable_direction,
)
from meanfield._finite_size.least_action_path import BALANCED, LeastActionPath, least_action_path, linearised
from meanfield._finite_size.next_order import NextOrder, next_order
from meanfield._finite_size.sectors import Sectors, sectors
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population

SILENT = 1e-9  # noise at a saddle, as where a word that would spread is never said: it leads nowhere
BESIDE = 0.1  # a saddle: relative change of its fractions, from which the rate equation leads away
WEAK = 1e-4  # κ, below which rounding may hide the momentum
NEVER = 1e-9  # share of words

Sizes = Float[np.ndarray, " sizes"]


class Crossing(NamedTuple):
    """A border that noise may cross, from the attractor `near` to the attractor `far`."""

    near: int
    far: int
    kappa: float  # infinite where no agent ever says the word
    path: LeastActionPath | None = None
    correction: float = 0.0
    error: float = 0.0

    def deviations(self, sizes: Sizes) -> Sizes:
        """z at these numbers of agents."""
        return self.kappa * np.sqrt(sizes) - np.nan_to_num(self.correction) / np.sqrt(sizes)


class Several(NamedTuple):
    """The strong attractor, and the saddles that lead away from it."""

    strong: int
    crossings: list[Crossing]
    sectors: Sectors | None  # where basins meet
    missing: str = ""  # why some c are left out

    @property
    def nearest(self) -> Crossing:
        """The way of least action out of the strong attractor's basin."""
        return min((one for one in self.crossings if one.near == self.strong), key=lambda one: one.kappa)

    def kappas(self) -> dict[int, float]:
        """κ of each attractor: the largest on the way."""
        found = {self.strong: 0.0}
        for one in self.crossings:
            found[one.far] = max(found[one.near], one.kappa)
        return found

    def chances(self, sizes: Sizes) -> tuple[dict[int, Sizes], Sizes]:
        """The probability of each attractor, and the logarithm of the probability that it is not the strong one."""
        alone = {one.far: log_ndtr(-one.deviations(sizes)) for one in self.crossings}
        if self.sectors is not None:
            alone = {far: self.sectors.log_chance(far, sizes, log) for far, log in alone.items()}
        beyond, found, log_weak = {self.strong: np.zeros(len(sizes))}, {}, np.zeros(len(sizes))
        for near in self.kappas():
            further = {one.far: alone[one.far] for one in self.crossings if one.near == near}
            total = np.logaddexp.reduce([*further.values()], axis=0, initial=-np.inf)
            # Of few agents more than all may cross one of several manifolds, or more the next than the first
            excess = np.subtract(total, beyond[near], out=np.zeros(len(sizes)), where=total > beyond[near])
            beyond |= {far: log - excess for far, log in further.items()}
            found[near] = np.maximum(np.exp(beyond[near]) - np.exp(total - excess), 0.0)
            log_weak = total - excess if near == self.strong else log_weak
        return found, log_weak


class _Saddle(NamedTuple):
    """A saddle, and the attractors to which the rate equation leads from it along its left eigenvector and against."""

    x: Kinds
    left: Kinds
    growth: float
    sides: tuple[int, int]


def several(population: Population, points: xr.Dataset, order: int) -> Several | str:
    """The law of a population without marginal fixed points, or why there is none."""
    x = compositions(population.mixture, points)
    saddles = _saddles(population.mixture, x, points["stability"].values.tolist())
    if isinstance(saddles, str):
        return saddles
    strong, status = reached(population, points), points["stability"].values.tolist()
    if strong in saddles:  # it is so near to the stable manifold that the rate equation does not tell
        between = saddles[strong]
        path = _path(population.mixture, between, between.sides[0], BALANCED)
        if isinstance(path, str):
            return path
        strong = between.sides[1 if path.kappa >= 0 else 0]
    if strong is None or status[strong] != "stable":
        return "the rate equation leads from empty memories to none of the attractors"
    pairs = {frozenset(one.sides): one for one in saddles.values()}
    if len(pairs) < len(saddles):
        return "two saddles lie between the same two attractors"
    edges = tree_of(strong, [one.sides for one in saddles.values()], status.count("stable"))
    if isinstance(edges, str):
        return edges
    said = [population.words.index(word) for word in ever_said(population)]
    unsaid = np.delete(points["word_share"].values, said, axis=1).sum(1) > NEVER
    reachable = [far for _, far in edges if not unsaid[far]]
    tree = len(saddles) < status.count("stable") or len(reachable) < 2
    crossings = []
    for near, far in edges:
        way = pairs[frozenset((near, far))]
        path = None if unsaid[far] else _path(population.mixture, way, far)
        if isinstance(path, str) and tree:
            return f"to the attractor {place(population.words, points.isel(fixed_point=far))} {path}"
        path = None if isinstance(path, str) else path
        crossings.append(Crossing(near, far, np.inf if path is None else path.kappa, path))
    if tree:
        law = Several(strong, crossings, None)
        return next_orders(law) if order == 2 else law
    found = sectors(population.mixture, x, status, strong, reachable)
    return found if isinstance(found, str) else _meeting(strong, crossings, found, order)


def _meeting(strong: int, crossings: list[Crossing], found: Sectors, order: int) -> Several:
    """The law where basins meet: radii are in proportion to κ of the paths that there are."""
    scales = {}
    for one in crossings:
        radius = found.nearest(one.far, first=True)
        if one.path is not None and min(one.kappa, radius) > WEAK and np.isfinite(radius):
            scales[one.far] = one.kappa / radius
    usual = float(np.exp(np.mean(np.log([*scales.values()])))) if scales else 1.0
    found = found.scaled(scales, usual)
    left_out = np.nan if order == 2 else 0.0
    crossings = [
        Crossing(strong, far, found.nearest(far) if path is None else kappa, path, left_out, left_out)
        for _, far, kappa, path, *_ in crossings
    ]
    return Several(strong, crossings, found, "where basins meet only order 1 is known" if order == 2 else "")


def tree_of(strong: int, edges: list[tuple[int, int]], n_attractors: int) -> list[tuple[int, int]] | str:
    """The edges that lead away from the strong attractor, nearer end first, or why not all attractors are reached."""
    ends, size = np.array(edges, int).reshape(-1, 2), 1 + max([strong, *map(max, edges)])
    linked = np.zeros((size, size))
    linked[*ends.T] = linked[*ends.T[::-1]] = 1
    order, before = breadth_first_order(linked, strong)
    if len(order) < n_attractors:
        return "not all attractors are connected by saddles"
    return [(int(before[k]), int(k)) for k in order[1:]]


def _saddles(mixture: Mixture, x: Compositions, status: list[str]) -> dict[int, _Saddle] | str:
    """The saddles between two attractors, by their numbers, or why they are not known."""
    found = {}
    for k in (k for k, one in enumerate(status) if one == "unstable"):
        growth, left = unstable_direction(mixture, x[k])
        if growth[1] > TWO_WAYS:
            continue
        pushed = linearised(tuple(mixture), x[k], left)[2]
        relative = np.abs(np.divide(pushed, x[k], out=np.zeros_like(pushed), where=x[k] > 0)).max()
        if relative < SILENT * np.abs(left).max():
            continue
        step = BESIDE * pushed / relative
        one, other = ends(mixture, x, np.array([x[k] + step, x[k] - step]))
        if one is None or other is None or status[one] != "stable" or status[other] != "stable":
            return f"the rate equation does not lead from the saddle {k} to two attractors in time"
        if one != other:
            found[k] = _Saddle(x[k], left, float(growth[0]), (one, other))
    return found


def _path(mixture: Mixture, saddle: _Saddle, far: int, scale: float = 0.0) -> LeastActionPath | str:
    """The path over a saddle, or why none is found."""
    left = saddle.left if far == saddle.sides[0] else -saddle.left
    return least_action_path(mixture, saddle.x, left, saddle.growth, scale)


def next_orders(law: Several) -> Several:
    """The same with c of each saddle."""
    crossings, missing = [], set()
    for one in law.crossings:
        second = NextOrder(0.0, 0.0) if one.path is None else next_order(one.path)
        if isinstance(second, str):
            missing.add(second)
            second = NextOrder(np.nan, np.nan)
        crossings.append(one._replace(correction=second.correction, error=second.error))
    return law._replace(crossings=crossings, missing="; ".join(sorted(missing)))
