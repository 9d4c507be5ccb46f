"""Which of several attractors N agents reach from empty memories, for any number of words.

From empty memories the rate equation leads to the strong attractor, and from a saddle of one unstable direction to two
attractors. Noise carries N agents over the saddle k with the action κ_k²/2, that is beyond its stable manifold with the
chance Φ(-z_k), z_k = κ_k√N - c_k/√N. Attractors of two words stand in a line: one is reached if the saddle before it is
crossed and none after it.

Of three attractors of three words or more, crossings are not independent. Weak noise along the way to saddle k is a
normal variable ξ_k; two have the correlation

    ρ_kl = ∫ p_k·D p_l dt / √(∫ p_k·D p_k dt ∫ p_l·D p_l dt)

with the momenta of both paths. A share b of agents who start with memories of an attractor's word instead of none acts
like the noise ξ_k = √N b p_k(0)·(x - x₀)/κ_k. So the rate equation, started with such shares, tells where each ξ/√N
leads. On a ray from ξ = 0 an attractor is reached between radii r; with a fraction of 1/R for each of R rays

    P = 1/R Σ [exp(-N r²/2) - exp(-N r'²/2)].

For one manifold this is Craig's integral for Φ(-κ√N). Radii are in proportion to radii with the exact κ_k where a basin
borders on the strong attractor's. What is left out is of order 1/√N, as in all laws of order 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from scipy.integrate import solve_ivp
from scipy.optimize import nnls
from scipy.special import log_ndtr, logsumexp

from meanfield._finite_size.law_path import (
    BALANCED,
    MAX_NUMBERS,
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
from meanfield._finite_size.least_action_path import NO_PATH, LeastActionPath, least_action_path, linearised
from meanfield._finite_size.next_order import NextOrder, next_order
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population

BESIDE = 0.1  # a saddle: relative change of its fractions, from which the rate equation leads away
WEAK = 1e-4  # κ, below which rounding may hide the momentum
RAYS, STEPS, HALVINGS = 256, 12, 8  # steps of a ray before those that change the attractor are halved
SPANNED = 1e-6  # what rounding and the paths' errors leave of a direction of noise that there is not
ONE_DIRECTION = "memories of the words do not act in all directions of the noise"
RARE = -21.0  # logarithm of a probability, below which rays are too few
MOST_BORDERS = 4  # within a step
NEVER = 1e-9  # share of words

Sizes = Float[np.ndarray, " sizes"]
Trajectory = Float[np.ndarray, "nodes kinds states"]


class Crossing(NamedTuple):
    """A saddle that noise may cross, from the attractor `near` to the attractor `far`; no path where κ is infinite."""

    near: int
    far: int
    kappa: float
    path: LeastActionPath | None = None
    p: Trajectory | None = None  # momentum, up to a factor
    correction: float = 0.0
    error: float = 0.0

    def deviations(self, sizes: Sizes) -> Sizes:
        """z at these numbers of agents."""
        return self.kappa * np.sqrt(sizes) - np.nan_to_num(self.correction) / np.sqrt(sizes)


class Sectors(NamedTuple):
    """Pieces of rays in the plane of weak noise: to which attractor they lead."""

    number: Int[np.ndarray, " pieces"]
    inner: Float[np.ndarray, " pieces"]  # radii
    outer: Float[np.ndarray, " pieces"]

    def log_chance(self, number: int, sizes: Sizes, alone: Sizes) -> Sizes:
        """Log-probability of an attractor; where it is tiny, the one of crossing its manifold `alone`."""
        of = self.number == number
        half = -sizes[:, None] / 2
        pieces = np.exp(half * self.inner[of] ** 2) - np.exp(half * self.outer[of] ** 2)
        return np.where(alone < RARE, alone, np.log(np.maximum(pieces.sum(1) / RAYS, np.finfo(float).tiny)))


class Several(NamedTuple):
    """The strong attractor, and the saddles that lead away from it."""

    strong: int
    crossings: list[Crossing]
    sectors: Sectors | None  # of three attractors of three words or more
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
        beyond = {one.far: log_ndtr(-one.deviations(sizes)) for one in self.crossings}
        if self.sectors is not None:
            beyond = {far: self.sectors.log_chance(far, sizes, alone) for far, alone in beyond.items()}
        left = [beyond[one.far] for one in self.crossings if one.near == self.strong]
        log_weak = np.minimum(logsumexp(left, axis=0), 0.0)
        found = {self.strong: -np.expm1(log_weak)} | {far: np.exp(log) for far, log in beyond.items()}
        for one in self.crossings:
            if one.near != self.strong:
                found[one.near] = np.maximum(found[one.near] - np.exp(beyond[one.far]), 0.0)
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
    if len(population.words) > 2 and (~unsaid[[far for _, far in edges]]).sum() > 2:
        return f"there are {status.count('stable')} attractors: the law of more than two words takes at most three"
    crossings = []
    for near, far in edges:
        found = _crossing(population.mixture, x, pairs[frozenset((near, far))], near, far, reachable=not unsaid[far])
        if isinstance(found, str):
            where = place(population.words, points.isel(fixed_point=far))
            return f"to the attractor {where} {found}"
        crossings.append(found)
    finite = [one for one in crossings if one.path is not None]
    if len(population.words) == 2 or len(finite) < 2:
        law = Several(strong, crossings, None)
        return _next_orders(law) if order == 2 else law
    sectors = _sectors(population.mixture, x, strong, finite)
    if isinstance(sectors, str):
        return sectors
    missing = "of three attractors only order 1 is known" if order == 2 else ""
    left_out = np.nan if order == 2 else 0.0
    crossings = [one._replace(near=strong, correction=left_out, error=left_out) for one in crossings]
    return Several(strong, crossings, sectors, missing)


def tree_of(strong: int, edges: list[tuple[int, int]], n_attractors: int) -> list[tuple[int, int]] | str:
    """The edges that lead away from the strong attractor, nearer end first, or why not all attractors are reached."""
    before, order = {strong: strong}, [strong]
    for one in order:
        following = sorted({a + b - one for a, b in edges if one in (a, b)} - set(before))
        before |= dict.fromkeys(following, one)
        order += following
    if len(order) < n_attractors:
        return "not all attractors are connected by saddles"
    return [(before[k], k) for k in order[1:]]


def _saddles(mixture: Mixture, x: Compositions, status: list[str]) -> dict[int, _Saddle] | str:
    """The saddles between two attractors, by their numbers, or why they are not known."""
    found = {}
    for k in (k for k, one in enumerate(status) if one == "unstable"):
        growth, left = unstable_direction(mixture, x[k])
        if growth[1] > TWO_WAYS:
            continue
        pushed = linearised(tuple(mixture), x[k], left)[2]
        relative = np.divide(pushed, x[k], out=np.zeros_like(pushed), where=x[k] > 0)
        step = BESIDE * pushed / np.abs(relative).max()
        one, other = ends(mixture, x, np.array([x[k] + step, x[k] - step]))
        if one is None or other is None or status[one] != "stable" or status[other] != "stable":
            return f"the rate equation does not lead from the saddle {k} to two attractors in time"
        if one != other:
            found[k] = _Saddle(x[k], left, float(growth[0]), (one, other))
    return found


def _path(mixture: Mixture, saddle: _Saddle, far: int, scale: float = 0.0) -> LeastActionPath | str:
    left = saddle.left if far == saddle.sides[0] else -saddle.left
    return least_action_path(mixture, saddle.x, left, saddle.growth, MAX_NUMBERS, scale)


def _crossing(
    mixture: Mixture, x: Compositions, saddle: _Saddle, near: int, far: int, *, reachable: bool
) -> Crossing | str:
    """The way over a saddle, or why none is found."""
    if not reachable:
        return Crossing(near, far, np.inf)
    path = _path(mixture, saddle, far)
    if path == NO_PATH:  # κ may be next to nothing
        nearly = _path(mixture, saddle, far, BALANCED)
        path = nearly if not isinstance(nearly, str) and abs(nearly.kappa) < BALANCED else path
    if isinstance(path, str):
        return path
    p = path.p if abs(path.kappa) > WEAK else _adjoint(path)
    return Crossing(near, far, path.kappa, path, p)


def _adjoint(path: LeastActionPath) -> Trajectory:
    """The momentum of vanishing noise, up to a factor: dp/dt = -Jᵀp, back from the left eigenvector."""
    game, left = tuple(path.mixture), path.ends.left

    def rate(time: float, p: np.ndarray) -> np.ndarray:
        x = _at(path.time, path.x, np.array([time]))[0]
        return -linearised(game, x, p.reshape(left.shape))[1].ravel()

    back = solve_ivp(rate, (path.time[-1], 0.0), left.ravel(), t_eval=path.time[::-1], rtol=1e-6, atol=1e-9)
    return back.y.T[::-1].reshape(path.x.shape)


def _next_orders(law: Several) -> Several:
    """The same with c of each saddle."""
    crossings, missing = [], set()
    for one in law.crossings:
        second = NextOrder(0.0, 0.0) if one.path is None else next_order(one.path)
        if isinstance(second, str):
            missing.add(second)
            second = NextOrder(np.nan, np.nan)
        crossings.append(one._replace(correction=second.correction, error=second.error))
    return law._replace(crossings=crossings, missing="; ".join(sorted(missing)))


def _sectors(mixture: Mixture, x: Compositions, strong: int, members: list[Crossing]) -> Sectors | str:
    """Where weak noise leads in the plane of two crossings, or why it is not known."""
    start = np.zeros_like(x[0])
    start[:, 0] = mixture.share
    corners = x[[strong, *(one.far for one in members)]] - start
    rho = correlation_of(*members)
    if 1 - rho**2 < SPANNED:
        return ONE_DIRECTION
    noise = np.linalg.cholesky([[1.0, rho], [rho, 1.0]])
    effect = np.linalg.solve(noise, [np.tensordot(corners, _unit_momentum(one), 2) for one in members])
    angle = 2 * np.pi * (np.arange(RAYS) + 0.5) / RAYS
    shares = np.array([nnls(effect, ray)[0] for ray in np.transpose([np.cos(angle), np.sin(angle)])])
    if np.abs(effect @ shares.T - [np.cos(angle), np.sin(angle)]).max() > SPANNED:
        return ONE_DIRECTION
    ways, longest = np.tensordot(shares, corners, 1), 1 / shares.sum(1)
    known = [one.far for one in members]

    def led(rays: np.ndarray, radii: np.ndarray) -> np.ndarray:
        found = ends(mixture, x, start + radii[:, None, None] * ways[rays])
        return np.array([one if one in known else strong for one in found])

    grid = longest[:, None] * (np.arange(1, STEPS + 1) / STEPS) ** 2
    there = led(np.repeat(np.arange(RAYS), STEPS), grid.ravel()).reshape(RAYS, STEPS)
    grid, there = np.pad(grid, ((0, 0), (1, 0))), np.pad(there, ((0, 0), (1, 0)), constant_values=strong)
    rays, steps = np.nonzero(there[:, 1:] != there[:, :-1])
    borders = _borders(led, rays, grid[rays, steps], grid[rays, steps + 1], there[rays, steps], there[rays, steps + 1])
    return _pieces(*borders, members)


def _borders(
    led: Callable[[np.ndarray, np.ndarray], np.ndarray],
    rays: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rays, radii and attractors beyond, of all borders between `low` and `high`, in order."""
    found = []
    for _ in range(MOST_BORDERS):
        inner, outer, beyond = low, high, after
        for _ in range(HALVINGS):
            middle = (inner + outer) / 2
            there = led(rays, middle)
            same = there == before
            inner, outer = np.where(same, middle, inner), np.where(same, outer, middle)
            beyond = np.where(same, beyond, there)
        found.append((rays, (inner + outer) / 2, beyond))
        more = beyond != after  # another attractor lies between
        rays, low, high, before, after = rays[more], outer[more], high[more], beyond[more], after[more]
        if not len(rays):
            break
    rays, radii, beyond = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((radii, rays))
    return rays[order], radii[order], beyond[order]


def _pieces(rays: np.ndarray, radii: np.ndarray, number: np.ndarray, members: list[Crossing]) -> Sectors:
    """Those beyond the strong attractor's basin, with radii in proportion to those with the exact κ."""
    first = np.flatnonzero(np.diff(rays, prepend=-1))
    scale = np.ones(RAYS)
    for one in members:
        own = first[number[first] == one.far]
        if len(own) and one.kappa > WEAK:
            scale[rays[own]] = one.kappa / radii[own].min()
    outer = np.where(np.diff(rays, append=-1) == 0, np.append(radii[1:], np.inf), np.inf)
    return Sectors(number, radii * scale[rays], outer * scale[rays])


def _unit_momentum(one: Crossing) -> Kinds:
    """p at time 0, for noise of unit variance."""
    assert one.path is not None and one.p is not None
    return one.p[0] / np.sqrt(_overlap(one.path, one.p, one.p))


def correlation_of(one: Crossing, other: Crossing) -> float:
    """ρ, the mean of those along both paths."""
    assert one.path is not None and other.path is not None and one.p is not None and other.p is not None
    found = []
    for path in (one.path, other.path):
        p, q = _at(one.path.time, one.p, path.time), _at(other.path.time, other.p, path.time)
        found.append(_overlap(path, p, q) / np.sqrt(_overlap(path, p, p) * _overlap(path, q, q)))
    return float(np.clip(np.mean(found), -1.0, 1.0))


def _overlap(path: LeastActionPath, p: Trajectory, q: Trajectory) -> float:
    """∫ p·D q dt along the path."""
    game, nodes = tuple(path.mixture), zip(path.x, p, q, strict=True)
    return float(path.weights @ [(one * linearised(game, x, two)[2]).sum() for x, one, two in nodes])


def _at(
    time: Float[np.ndarray, " nodes"], path: Trajectory, times: Float[np.ndarray, " instants"]
) -> Float[np.ndarray, "instants kinds states"]:
    """A trajectory between its nodes, and its last value later."""
    flat = [np.interp(times, time, values) for values in path.reshape(len(path), -1).T]
    return np.reshape(np.transpose(flat), (len(times), *path.shape[1:]))
