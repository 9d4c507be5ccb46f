"""Roots of f(Q) = Q on the simplex of word shares: Newton iteration in log-ratios from a grid of starts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import helmert
from scipy.special import logsumexp

# Policies have floors of 2e-16 ≈ e^-36; hardly any has one below e^-100.
DEPTHS = np.array([0.0, -1.0, -3.0, -6.0, -12.0, -23.0, -46.0, -100.0])
LATTICE, DAMPED_STEPS = 12, 16
STARTS = 400  # the largest number of grid points, drawn at random if the grid has more
MAX_GRID = 300_000  # combinations of depths that are listed
EXTRA_ROUNDS, EXTRA_STARTS = 2, 100  # of starts between known roots
ZERO = 1e-200  # a stationary distribution has leaks of 1e-290 where memories become transient on a face
MAX_ITERATIONS, MAX_STEP, MIN_DAMPING, FAR = 100, 16.0, 1e-3, 300.0  # of damped Newton steps; lengths in log-ratios
SETTLED, MAX_RESIDUAL, SAME_ROOT = 1e-12, 1e-10, 1e-8
# Differences of fourth order are off by 3e-12 of the fifth derivative, so that a pair of roots 1e-5 apart has its
# slopes; rounding in f counts 500-fold.
SHIFT, FLAT, SINGULAR, ROUNDING = 3e-3, 1e-9, 2e-8, 1e-13
ALONG = 0.1

Response = Callable[[np.ndarray], np.ndarray]


class SimplexRoots(NamedTuple):
    """The result of `simplex_roots`."""

    roots: Float[np.ndarray, "roots words"]  # by decreasing shares, to full relative accuracy
    indices: Int[np.ndarray, " roots"]  # sign of det(1 - f') along the face of the root; 0 if it is too close to zero
    continuum: Float[np.ndarray, "points words"]  # points on curves or areas of roots, not among `roots`
    closest: float  # smallest misfit of a log-ratio where another start came to rest, a near miss; inf if none did
    report: str  # the search, and the evidence for completeness


def simplex_roots(response: Response, n_words: int, support: tuple[int, ...]) -> SimplexRoots:
    """Roots of f(Q) = Q on the simplex of word shares, or on one of its faces.

    Newton iteration on log f(Q) - log Q runs in an orthonormal basis of the log-ratios (Egozcue et al. 2003, Math.
    Geol. 35, 279), where all words are alike and a root at a share of 1e-16 is as well conditioned as one in the
    middle. It starts from a lattice of shares, from points at distances e^-1 to e^-100 of faces and corners, and from
    where damped steps of the map lead. Where f points inwards on the whole boundary, the indices of the interior roots,
    sign det(1 - f'), add up to 1 (Poincaré and Hopf). If they do not, further starts between the roots follow; if they
    still do not, the report says that roots are missing. Pairs of roots that Newton iteration misses go unnoticed.

    Parameters
    ----------
    response
        f: takes shares (n, n_words) and returns shares, to full relative accuracy however small. On a face, where
        shares are exactly 0, an agent's chain may have other and more closed classes than inside.
    support
        The words that occur; the others have share 0, and there are roots only if f is exactly 0 for them.
    """
    face, rng = _Face(response, n_words, support), np.random.default_rng(0)
    size, reason = len(support), _no_root(face)
    if reason or size == 1:
        u = np.zeros((0 if reason else 1, size - 1))
        report = f"{face.name}: {reason or 'one fixed point'}."
        return SimplexRoots(face.shares(u), np.ones(len(u), int), face.shares(u[:0]), np.inf, report)
    grid = _grid(size, rng)
    grid = rng.permutation(grid)[:STARTS] if len(grid) > STARTS else grid
    first = grid @ face.basis
    inward = _points_inward(grid, face.mismatch(first) @ face.basis.T)
    ends, misfit = _newton(face, np.concatenate([first, _attractors(face, first[::4])]))
    u, index, continuum = _distinct(face, ends[misfit < MAX_RESIDUAL])
    for _ in range(EXTRA_ROUNDS):
        if not inward or len(continuum) or index.sum() == 1 or not len(u):
            break
        more, more_misfit = _newton(face, _between(u, rng))
        ends, misfit = np.concatenate([ends, more]), np.concatenate([misfit, more_misfit])
        u, index, continuum = _distinct(face, ends[misfit < MAX_RESIDUAL])
    converged = int((misfit < MAX_RESIDUAL).sum())
    closest = float(misfit[misfit >= MAX_RESIDUAL].min(initial=np.inf))
    others = f"; the others came to rest at a misfit of {closest:.1g} or more" if closest < np.inf else ""
    report = (
        f"{face.name}: {len(u)} fixed point{'s' * (len(u) != 1)}, reached by {converged} of {len(ends)} starts of "
        f"Newton iteration{others}."
        f" {_plausibility(index, inward, len(continuum))}."
    )
    roots = face.shares(u)
    # Rounding must not decide the order of roots that share a coordinate, unless nothing else does
    order = np.lexsort(-np.concatenate([roots[:, ::-1], roots[:, ::-1].round(9)], axis=1).T)
    return SimplexRoots(roots[order], index[order], face.shares(continuum), closest, report)


class _Face:
    """The equation log f(Q) = log Q for one support, in log-ratios u."""

    def __init__(self, response: Response, n_words: int, support: tuple[int, ...]) -> None:
        self.response, self.n_words, self.support = response, n_words, list(support)
        numbers = ", ".join(map(str, support))
        self.name = "all words in use" if len(support) == n_words else f"only the words number {numbers} in use"
        # Columns are orthonormal and sum to zero, so that u = log Q · basis whatever Q is divided by.
        self.basis = helmert(len(support)).T if len(support) > 1 else np.empty((1, 0))

    def shares(self, u: np.ndarray) -> np.ndarray:
        logs = u @ self.basis.T
        Q = np.zeros((len(u), self.n_words))
        Q[:, self.support] = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        return Q

    def mismatch(self, u: np.ndarray) -> np.ndarray:
        """log(f/Q) in log-ratios; nan where some f is 0."""
        if not len(u):
            return u
        said = self.response(self.shares(u))[:, self.support]
        positive = (said > 0).all(1, keepdims=True)
        return np.where(positive, np.log(np.where(positive, said, 1)) @ self.basis - u, np.nan)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """The Jacobian of `mismatch`. At a root it is f' - 1 in other coordinates."""
        n = u.shape[1]
        shifts = SHIFT * np.array([1, -1, 2, -2])[:, None, None] * np.eye(n)
        values = self.mismatch((u[:, None, None] + shifts).reshape(-1, n)).reshape(len(u), 4, n, n)
        near, far = values[:, 0] - values[:, 1], values[:, 2] - values[:, 3]
        return ((8 * near - far) / (12 * SHIFT)).swapaxes(1, 2)


def _no_root(face: _Face) -> str:
    """Why there is none, where that can be told: which words are said at all is the same everywhere inside a face."""
    said = face.response(face.shares(np.zeros((1, len(face.support) - 1))))[0] > ZERO
    if np.delete(said, face.support).any():
        return "no fixed point, as other words are said"
    return "" if said[face.support].all() else "no fixed point, as not all words are said"


def _plausibility(index: np.ndarray, inward: bool, n_continuum: int) -> str:
    if n_continuum:
        return f"{n_continuum} starts ended on a continuum of fixed points"
    if not inward or (index == 0).any():
        reason = "the Jacobian at a root is singular" if inward else "F does not point inwards on the whole boundary"
        return f"Their indices can't tell whether some are missing, as {reason}"
    if index.sum() == 1:
        return "Their indices add up to 1 as they must, if none is missing"
    return f"Their indices add up to {index.sum()} instead of 1, so some are missing"


def _grid(size: int, rng: np.random.Generator) -> np.ndarray:
    """Logarithms of word shares, up to a constant a row: `DEPTHS` below the largest, combined, and a lattice of shares.

    With few words all, of which the search draws some at random; with many words, random ones.
    """
    if len(DEPTHS) ** size <= MAX_GRID:
        depths = np.array([row for row in itertools.product(DEPTHS, repeat=size) if max(row) == 0])
        counts = np.array([c for c in itertools.product(range(LATTICE + 1), repeat=size) if sum(c) == LATTICE])
    else:
        depths = rng.choice(DEPTHS, size=(STARTS, size))
        depths[np.arange(STARTS), rng.integers(size, size=STARTS)] = 0.0
        counts = rng.multinomial(LATTICE, rng.dirichlet(np.ones(size), size=STARTS))
    lattice = np.log(counts + 1 / 3)
    return np.concatenate([depths, lattice - lattice.max(1, keepdims=True)])


def _points_inward(grid: np.ndarray, log_ratio: np.ndarray) -> bool:
    """Whether f raises the rarest words against the commonest wherever these are e^-100 of them."""
    rarest, commonest = grid == DEPTHS[-1], grid == 0
    outer = rarest.any(1)
    raised = np.where(rarest, log_ratio, np.inf).min(1) > np.where(commonest, log_ratio, -np.inf).max(1)
    return bool(outer.any() and raised[outer].all())


def _attractors(face: _Face, u: np.ndarray) -> np.ndarray:
    """Where damped steps of the map lead, each such place once."""
    for _ in range(DAMPED_STEPS):
        u = u + 0.5 * np.nan_to_num(face.mismatch(u))
    return u[_merged(u, 1e-3)]


def _between(u: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Starts around and between roots: saddles stand between attractors."""
    first, second = u[rng.integers(len(u), size=(2, EXTRA_STARTS))]
    return first + rng.uniform(size=(EXTRA_STARTS, 1)) * (second - first) + rng.normal(size=first.shape)


def _newton(face: _Face, u: np.ndarray, settled: float = SETTLED) -> tuple[np.ndarray, np.ndarray]:
    """Where damped iteration leads, and the misfit left there (inf if it ran off to zero shares).

    Jacobians are corrected after each step (Broyden), and computed anew where a step fails.
    """
    u, value = u.copy(), face.mismatch(u)
    slope, fresh, damping = face.slope(u), np.ones(len(u), bool), np.ones(len(u))
    active = np.arange(len(u))
    for _ in range(MAX_ITERATIONS):
        usable = np.isfinite(slope[active]).all((1, 2)) & (np.linalg.norm(u[active], axis=1) < FAR)
        unsettled = np.linalg.norm(value[active], axis=1) > settled
        active = active[unsettled & usable & (damping[active] > MIN_DAMPING)]
        if not len(active):
            break
        step = damping[active, None] * _step(slope[active], value[active])
        trial = face.mismatch(u[active] + step)
        allowed = (1 - 0.1 * damping[active]) * np.linalg.norm(value[active], axis=1)
        better = np.linalg.norm(trial, axis=1) < allowed
        moved, step, trial = active[better], step[better], trial[better]
        surprise = trial - value[moved] - np.einsum("kij,kj->ki", slope[moved], step)
        slope[moved] += surprise[:, :, None] * (step / np.maximum((step**2).sum(1, keepdims=True), 1e-300))[:, None]
        u[moved], value[moved] = u[moved] + step, trial
        fresh[moved], damping[moved] = False, np.minimum(2 * damping[moved], 1)
        failed = active[~better]
        stale = failed[~fresh[failed]]
        damping[failed] = np.where(fresh[failed], damping[failed] / 4, 1)
        slope[stale], fresh[stale] = face.slope(u[stale]), True
    misfit = np.abs(value).max(1)
    lost = ~np.isfinite(misfit) | (np.linalg.norm(u, axis=1) >= FAR)
    return u, np.where(lost, np.inf, misfit)


def _step(slope: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Newton's step, of bounded length, and none in directions in which the equation is flat."""
    left, size, right = np.linalg.svd(slope)
    along = np.einsum("kji,kj->ki", left, value) / np.where(size > FLAT, size, np.inf)
    step = -np.einsum("kji,kj->ki", right, along)
    length = np.linalg.norm(step, axis=1, keepdims=True)
    return step * np.minimum(1, MAX_STEP / np.maximum(length, 1e-300))


def _distinct(face: _Face, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Isolated roots, polished, and their indices; and points of a continuum of roots."""
    u, _ = _newton(face, ends[_merged(ends, SAME_ROOT)], settled=0.0)
    slope = np.nan_to_num(face.slope(u))
    _, size, right = np.linalg.svd(slope)
    smallest = size.min(1)
    kept = _merged(u, SAME_ROOT + ROUNDING / np.maximum(smallest, FLAT))
    u, index, null = u[kept], np.sign(np.linalg.det(-slope[kept])).astype(int), right[kept, -1]
    index[smallest[kept] < SINGULAR] = 0
    # Beside a root on a curve of roots there is another; to one that is only degenerate the iteration returns.
    singular = np.flatnonzero(index == 0)
    beside, misfit = _newton(face, u[singular] + ALONG * null[singular])
    moved = np.linalg.norm(beside - u[singular], axis=1)
    curve = singular[(misfit < MAX_RESIDUAL) & (moved > ALONG / 2) & (moved < 2 * ALONG)]
    return np.delete(u, curve, axis=0), np.delete(index, curve), u[curve]


def _merged(u: np.ndarray, tolerance: np.ndarray | float) -> np.ndarray:
    """Numbers of the points that are not within `tolerance` of an earlier one."""
    close = np.linalg.norm(u[:, None] - u, axis=2) <= np.broadcast_to(tolerance, len(u))[:, None]
    kept: list[int] = []
    for i in range(len(u)):
        if not close[i, kept].any():
            kept.append(i)
    return np.array(kept, dtype=int)
