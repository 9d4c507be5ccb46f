"""The attractor to which weak noise leads, where the basins of several meet at one point x* (docs/theory/noise.md).

With the left eigenvectors L a population on the way to x* ends on the side that y = L·(x - x*) tells, whose covariance
in linear noise is Σ/N. A share b of agents who start with the memories of the attractor x_k moves y by
Λ(0)·(x_k - x₀) b, as far as the noise ξ/√N = Σ^-1/2 Λ(0)·(x_k - x₀) b with ξ of unit variance; the rate equation,
started with it, tells where it leads. On a ray from ξ = 0 an attractor is reached between radii r and r'. With d
directions and R rays it has the probability

    P = 1/R Σ [Q(d/2, N r²/2) - Q(d/2, N r'²/2)],

with the regularised incomplete gamma function Q. The error is of order 1/√N.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.integrate import solve_ivp
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import nnls
from scipy.special import gammaincc
from scipy.stats import norm, qmc

from meanfield._finite_size.law_path import NEAR, TWO_WAYS, Compositions, Kinds, eigenvalues_at, ends
from meanfield._finite_size.saddle_curve import class_means, linearised
from meanfield._numerics.trajectory import quadrature
from meanfield._population.mixture import Mixture

RAYS = {2: 256, 3: 512}  # by the number of directions
STEPS, HALVINGS = 8, 8  # steps of a ray before those that change the attractor are halved
MOST_BORDERS = 4  # within a step
SPANNED = 1e-6  # directions of noise that memories of the words do not reach
RARE = -21.0  # logarithm of a probability, below which rays are too few
WAITS = (1.0, 2.0, 3.0, 4.0)  # T, in units of the time in which y grows
NODES = 81
ITERATIONS, CLOSE, FARTHEST = 20, 1e-3, 0.3  # of Newton's method for b: residual and longest step

Sizes = Float[np.ndarray, " sizes"]
Directions = Float[np.ndarray, "_ kinds states"]


# A fixed point with several unstable directions, L, its growth, and the covariance W of the noise to come
Summit = tuple[Kinds, Directions, float, np.ndarray]


class Sectors(NamedTuple):
    """Pieces of rays in the space of weak noise: to which attractor they lead."""

    rays: int
    directions: int
    number: Int[np.ndarray, " pieces"]
    inner: Float[np.ndarray, " pieces"]  # radii
    outer: Float[np.ndarray, " pieces"]
    first: Bool[np.ndarray, " pieces"]  # whether the piece borders on the strong attractor's
    ray: Int[np.ndarray, " pieces"]

    def log_chance(self, number: int, sizes: Sizes, alone: Sizes) -> Sizes:
        """Log-probability of an attractor; where it is tiny, that its border is crossed `alone`."""
        of = self.number == number
        half = sizes[:, None] / 2
        inner, outer = (gammaincc(self.directions / 2, half * radii[of] ** 2) for radii in (self.inner, self.outer))
        total = np.maximum((inner - outer).sum(1) / self.rays, np.finfo(float).tiny)
        return np.where(alone < RARE, alone, np.log(total))

    def nearest(self, number: int, *, first: bool = False) -> float:
        """The radius at which an attractor's basin begins, on rays that reach it from the strong one's where asked."""
        return float(self.inner[(self.number == number) & (self.first | (not first))].min(initial=np.inf))

    def scaled(self, scales: dict[int, float], usual: float) -> Sectors:
        """The same with the radii of each ray in proportion, by the attractor that it reaches first."""
        scale = np.full(self.rays, usual)
        for number, one in scales.items():
            scale[self.ray[self.first & (self.number == number)]] = one
        return self._replace(inner=self.inner * scale[self.ray], outer=self.outer * scale[self.ray])


def sectors(mixture: Mixture, x: Compositions, status: list[str], strong: int, others: list[int]) -> Sectors | str:
    """The basins of the strong attractor and the others around x₀, or why they are not known."""
    found = _summit(mixture, x[[k for k, one in enumerate(status) if one == "unstable"]], len(others))
    if isinstance(found, str):
        return found
    start = mixture.empty
    corners = x[[strong, *others]] - start
    noise = _noise(mixture, found, start, corners)
    if isinstance(noise, str):
        return noise
    rays = _directions(len(others))
    shares = np.array([nnls(noise, ray)[0] for ray in rays])
    if np.abs(shares @ noise.T - rays).max() > SPANNED:
        return "memories of the words do not act in all directions of the noise"
    ways, longest = np.tensordot(shares, corners, 1), 1 / shares.sum(1)

    def led(rays: np.ndarray, radii: np.ndarray) -> np.ndarray:
        found = ends(mixture, x, start + radii[:, None, None] * ways[rays])
        return np.array([one if one in others else strong for one in found])

    n_rays, steps = len(rays), np.arange(1, STEPS + 1) / STEPS
    grid = longest[:, None] * steps**2
    there = led(np.repeat(np.arange(n_rays), STEPS), grid.ravel()).reshape(n_rays, STEPS)
    grid, there = np.pad(grid, ((0, 0), (1, 0))), np.pad(there, ((0, 0), (1, 0)), constant_values=strong)
    ray, step = np.nonzero(there[:, 1:] != there[:, :-1])
    ray, radii, number = _borders(
        led, ray, grid[ray, step], grid[ray, step + 1], there[ray, step], there[ray, step + 1]
    )
    outer = np.where(np.diff(ray, append=-1) == 0, np.append(radii[1:], np.inf), np.inf)
    return Sectors(n_rays, len(others), number, radii, outer, np.diff(ray, prepend=-1) != 0, ray)


def _summit(mixture: Mixture, unstable: Compositions, directions: int) -> Summit | str:
    """The one fixed point with so many unstable directions."""
    if directions not in RAYS:
        return f"there are {directions + 1} attractors around one fixed point: the law takes at most {max(RAYS) + 1}"
    candidates = []
    for x in unstable:
        found = eigenvalues_at(mixture, x, directions + 1)
        growth = found.values.real
        if growth[directions - 1] > TWO_WAYS > growth[directions]:
            candidates.append((x, found))
    if len(candidates) != 1:
        return f"{len(candidates)} fixed points have {directions} unstable directions: basins meet at none or several"
    x, found = candidates[0]
    real, imaginary = (found.values.imag >= 0)[:directions], (found.values.imag > 0)[:directions]
    left, right = (
        np.concatenate([one[:directions][real].real, one[:directions][imaginary].imag])
        for one in (found.left, found.right)
    )
    left = left - class_means(x, left)
    left /= np.abs(left).max((1, 2), keepdims=True)
    right = np.tensordot(np.linalg.inv(_products(left, right)), right, ((0,), (0,)))
    _, adjoint, noise = _along(mixture, x, left)
    width = solve_continuous_lyapunov(_products(adjoint, right), _products(noise, left))
    return x, left, float(found.values[0].real), width


def _noise(mixture: Mixture, summit: Summit, start: Kinds, corners: Compositions) -> np.ndarray | str:
    """Σ^-1/2 Λ(0)·corners along a solution of the rate equation to the summit, or why none is found."""
    top, left, growth, width = summit
    shares, many = np.zeros(len(corners)), left.shape

    def rate(time: float, x: np.ndarray) -> np.ndarray:
        return linearised(tuple(mixture), x.reshape(start.shape), left[0])[0].ravel()

    for wait in WAITS:
        time = np.linspace(0, wait / growth, NODES)
        for _ in range(ITERATIONS):
            x0 = start + np.tensordot(shares, corners, 1)
            solved: Any = solve_ivp(rate, time[[0, -1]], x0.ravel(), rtol=1e-7, atol=1e-10, dense_output=True).sol

            def slope(time: float, p: np.ndarray, solved: Any = solved) -> np.ndarray:
                """dΛ/dt."""
                return -_along(mixture, solved(time).reshape(start.shape), p.reshape(many))[1].ravel()

            back = solve_ivp(slope, time[[-1, 0]], left.ravel(), t_eval=time[::-1], rtol=1e-6, atol=1e-9)
            momenta = back.y.T[::-1].reshape(NODES, *many)
            effect, off = _products(momenta[0], corners), solved(time[-1]).reshape(start.shape) - top
            y = _products(left, off[None])[:, 0]
            if np.abs(y).max() < CLOSE:
                break
            change = nnls(effect, effect @ shares - y)[0] - shares
            shares = shares + min(1, FARTHEST / max(np.abs(change).max(), FARTHEST)) * change
        else:
            break
        if np.abs(off).sum() < NEAR:
            weights = quadrature(np.full(NODES, time[1]))
            trajectories = zip(solved(time).T.reshape(NODES, *start.shape), momenta, strict=True)
            along = [_products(_along(mixture, x, p)[2], p) for x, p in trajectories]
            covariance = width + np.tensordot(weights, along, 1)
            if np.linalg.eigvalsh(covariance)[0] <= 0:
                return "noise does not act in all directions in which basins differ"
            return np.linalg.solve(np.linalg.cholesky(covariance), effect)
    return "no start with memories of the words leads to the fixed point at which all basins meet"


def _along(mixture: Mixture, x: Kinds, momenta: Directions) -> tuple[np.ndarray, ...]:
    """F, Jᵀp and Dp for each momentum."""
    return tuple(np.stack(one) for one in zip(*(linearised(tuple(mixture), x, p) for p in momenta), strict=True))


def _products(one: Directions, other: Directions) -> Float[np.ndarray, "directions others"]:
    return np.tensordot(one, other, ((1, 2), (1, 2)))


def _directions(n: int) -> Float[np.ndarray, "rays directions"]:
    """Directions that cover a sphere evenly."""
    if n == 2:
        angle = 2 * np.pi * (np.arange(RAYS[n]) + 0.5) / RAYS[n]
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    points = norm.ppf(qmc.Sobol(n, rng=0).random(RAYS[n]))
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def _borders(led: Callable[[np.ndarray, np.ndarray], np.ndarray], *steps: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rays, radii and attractors beyond, of all borders in these steps of rays, in order.

    `steps` are rays, radii of both ends, and the attractors there.
    """
    rays, low, high, before, after = steps
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
