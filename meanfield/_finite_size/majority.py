"""Which word is ahead at a random moment, and for how long, where a population of two words has one attractor.

Agents in independent states of the attractor's composition forget this start. After a long time T the word share
exceeds a bound with the probability that `next_order` gives for l = bound - q, without the linearised end. To leading
order the share has the covariance C(t)/N at two times t apart (docs/theory/noise.md).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, owens_t

from meanfield._finite_size.least_action_path import SMALLEST
from meanfield._finite_size.next_order import BESIDE, SEARCH, SMALL, TOLERANCE, UNKNOWN, correction_of, mean_order
from meanfield._fixed_points.spectrum import FLOOR
from meanfield._numerics.trajectory import GREGORY, Vector
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population
from meanfield.core._export import exported
from meanfield.core._path_search import ROUGH, Ending, Instanton, Mesh, PathProblem, even_mesh, moved, resting

adjoint = exported("meanfield.core._instanton", "adjoint")

NODES = 2000  # of the integral over time
RAREST = 1e-300  # probability
SHORT_STEP, LONG_STEP, MOST_TIMES = 0.1, 0.5, 4000  # steps of correlations, and their number
BLOCK = 500  # steps of one call of a program
FADED = 8.0  # times in which the slowest mode fades e-fold
FORGOTTEN = 10.0  # T, in the same times
SHORTER = 3  # T of the first search
FINEST, COARSEST, PARTS = 0.4, 1.2, 4  # step of time; the number of steps is a multiple of the third
COARSE, MOST_STEPS = 0.8, 700  # step beyond which c is not computed
LARGE = 1.0  # c
ROUNDING = 1e-12  # of word shares
ALIKE = "agents treat both words alike, so that either is ahead with the same probability"
SMALLEST_STRETCH, GROWTH = 1 / 64, 1.5  # of the way of the bound from the attractor's word share to 1/2


class Correlation(NamedTuple):
    """The variance C(0), and C(t)/C(0) at equal steps of time."""

    variance: float
    times: Vector
    values: Vector

    def at(self, times: Vector) -> Vector:
        """C(t)/C(0), 0 where it has faded."""
        return np.where(times <= self.times[-1], CubicSpline(self.times, self.values)(times), 0.0)


class Majority(NamedTuple):
    """The majority word, κ, c and its numerical error, reservations, and how long fluctuations last; c may be NaN."""

    word: int
    kappa: float
    correction: float
    error: float
    reason: str
    correlation: Correlation


def majority(population: Population, point: xr.Dataset, *, with_correction: bool) -> Majority | str:
    """The law of the only attractor, `point`, or why there is none."""
    mixture, decay, share = population.mixture, -point["eigenvalue"].item(), point["word_share"].values
    x = point["composition"].values.reshape(mixture.q.shape[:2]) * mixture.share[:, None]
    word = int(share.argmax())
    correlation = word_share_correlation(mixture, x, word, decay)
    if isinstance(correlation, str):
        return correlation
    found = _law(mixture, x, word, decay, correlation.variance, with_correction)
    if isinstance(found, str):
        return found
    space, (q, present, committed) = population.space, mixture
    states = [space.consensus_state(a) for a in range(len(share))]
    stays = (q[present > 0][:, states, range(len(share))] == 1).all(0) & (committed == committed.sum())
    kept = [word for word, one, part in zip(population.words, stays, share, strict=True) if one and part < 1]
    reserve = "".join(f"; it holds until all agree on {word!r}, which they never leave" for word in kept)
    return Majority(word, *found[:3], found[3] + reserve, correlation)


def memory_rounds(z: np.ndarray, correlation: Correlation) -> np.ndarray:
    """Rounds in which the side is forgotten, for each z = κ√N - c/√N; NaN where the minority is never ahead."""
    found = np.full(len(z), np.nan)
    root = np.linspace(0.0, np.sqrt(correlation.times[-1]), NODES)  # s falls like a root of time at first
    rho = correlation.at(root**2)
    for k in np.flatnonzero(ndtr(-z) > RAREST):
        excess = (still_ahead(z[[k]], rho)[0] - ndtr(-z[k])) / ndtr(z[k])
        found[k] = np.trapezoid(2 * root * excess, root) / TIME_PER_ROUND
    return found


def still_ahead(z: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """The probability that a minority which is ahead is ahead later, for each z and correlation."""
    rho, behind = np.clip(correlation, -1.0, 1.0), ndtr(-z)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        still = 1 - 2 * owens_t(z[:, None], np.sqrt((1 - rho) / (1 + rho))) / behind
    return np.where(behind > RAREST, np.clip(still, 0.0, 1.0), np.nan)


def word_share_correlation(mixture: Mixture, attractor: np.ndarray, word: int, decay: float) -> Correlation | str:
    """C for the share of one word at an attractor whose slowest mode fades like exp(-decay·t).

    A string says why there is none.
    """
    n_steps = min(MOST_TIMES, int(np.ceil(FADED / decay / SHORT_STEP)))
    step = FADED / decay / n_steps
    if step > LONG_STEP:
        return f"the attractor is slow (eigenvalue {-decay:.2g})"
    said = mixture.q[..., word]
    w, followed, pushed = said - (attractor * said).sum() / attractor.sum(), [], []  # a constant part would not fade
    for _ in range(0, n_steps + 1, BLOCK):
        rows, noise, w = adjoint(tuple(mixture), attractor, w, np.float64(step), n_steps=BLOCK)
        followed.append(rows.reshape(BLOCK, -1))
        pushed.append(noise.reshape(BLOCK, -1))
    products = np.concatenate(followed)[: n_steps + 1] @ np.concatenate(pushed)[: n_steps + 1].T

    def integral(values: Vector) -> float:
        """From 0 to where they have faded, in steps."""
        weights = np.ones(len(values))
        weights[: len(GREGORY)] = GREGORY[: len(values)]
        return float(weights @ values)

    found = step * np.array([integral(np.diagonal(products, -lag)) for lag in range(n_steps + 1)])
    relative = found / found[0] if found[0] > 0 else np.zeros(len(found))
    return Correlation(float(found[0]), step * np.arange(n_steps + 1), relative)


class _Bounds(NamedTuple):
    """Problems that differ in the bound of a word share among agents who are not committed."""

    mixture: Mixture
    attractor: np.ndarray
    word: int
    mesh: Mesh

    @property
    def first(self) -> float:
        """The word share at the attractor."""
        return float((self.attractor * self.mixture.q[..., self.word]).sum() / self.attractor.sum())

    def problem(self, bound: float, mesh: Mesh) -> PathProblem:
        """A path to this bound."""
        ends = Ending(bound - self.mixture.q[..., self.word], 0.0)
        return PathProblem(tuple(self.mixture), ends, mesh, self.attractor)

    def solved(self, bound: float) -> tuple[PathProblem, Instanton] | None:
        """The path, from its last part."""
        n_steps = (self.mesh.n_nodes - 1) // SHORTER
        short = even_mesh(n_steps * float(self.mesh.pace[0]), n_steps)
        if (nearly := self.followed(bound, short, ROUGH)) is not None:
            problem, fields = self.problem(bound, self.mesh), nearly[1].logarithms
            found = problem.solve(moved(fields, short, self.mesh, 0.0), TOLERANCE, SEARCH, nearly[0], 0.0)
            if found is not None:
                return problem, found
        return self.followed(bound, self.mesh, TOLERANCE)

    def followed(self, bound: float, mesh: Mesh, tolerance: float) -> tuple[PathProblem, Instanton] | None:
        """The path, followed as the bound moves away from the attractor."""
        at, stretch = 0.0, 1.0
        fields = np.tile(resting(tuple(self.mixture), self.attractor[None]), (mesh.n_nodes, 1))
        before: PathProblem | None = None
        while stretch >= SMALLEST_STRETCH:
            to = min(1.0, at + stretch)
            problem = self.problem(self.first + to * (bound - self.first), mesh)
            found = problem.solve(fields, tolerance, SEARCH, before)
            before = problem
            if found is None:
                stretch /= 2
            elif to == 1:
                return problem, found
            else:
                at, stretch, fields = to, stretch * GROWTH, found.logarithms
        return None


def _law(
    mixture: Mixture, attractor: np.ndarray, word: int, decay: float, variance: float, with_correction: bool
) -> tuple[float, float, float, str] | str:
    """κ, c and its error for the probability that a word is ahead at random times, and reservations; or why not.

    The slowest mode of the attractor fades like exp(-decay·t); `variance` is N times the word share's. Without the
    correction c is 0.
    """
    said, uncommitted = mixture.q[..., word], float(attractor.sum())
    share = float((attractor * said).sum()) / uncommitted
    half = (0.5 - float(mixture.committed[word])) / uncommitted  # at which both words are said alike
    if variance <= 0 and abs(share - half) < ROUNDING:
        return 0.0, 0.0, 0.0, ", where every agent says either word with probability 1/2"
    if share > 1 - FLOOR:
        return np.inf, 0.0, 0.0, ", where agents never say any other word"
    if half <= 0:
        return np.inf, 0.0, 0.0, ", with half of the agents or more committed to its word"
    least = float((mixture.share * said[:, -mixture.space.n_full :].min(1)).sum()) / uncommitted
    if least > half:
        reason = f", and agents say the majority word with probability {least:.3g} or more in every memory"
        return np.inf, 0.0, 0.0, reason
    # Steps are equal, and not longer before the path has momentum: the determinant needs all of them short
    end = FORGOTTEN / decay
    n_steps = PARTS * int(np.ceil(min(MOST_STEPS, end / FINEST) / PARTS - 1e-9))
    if end / n_steps > COARSEST:
        return f"the attractor is slow (eigenvalue {-decay:.2g})"
    bounds = _Bounds(mixture, attractor, word, mesh := even_mesh(end, n_steps))
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        found = bounds.solved(half)
        if found is None:
            return f"no path was found from a share {share:.4g} of the majority word to {half:.4g}"
        kappa = found[1].kappa
        if abs(kappa) < SMALLEST:
            return 0.0, 0.0, 0.0, f"; {ALIKE}"
        if not with_correction:
            return kappa, 0.0, 0.0, ""
        second = "the attractor is slow, and c takes too many times"
        if mesh.pace[0] <= COARSE and kappa > SMALL:
            second = correction_of(*found)
        elif mesh.pace[0] <= COARSE:  # κ is next to nothing: the mean of c at two bounds
            away = BESIDE * float(np.sqrt(variance))
            second = mean_order([one and correction_of(*one) for one in map(bounds.solved, (half - away, half + away))])
    if not isinstance(second, str) and second.error < UNKNOWN:
        reserve = "; c is large, and small groups need higher orders" if abs(second.correction) > LARGE else ""
        return kappa, second.correction, second.error, reserve
    why = second if isinstance(second, str) else f"its error is {second.error:.2g}"
    return kappa, np.nan, np.nan, f"; the next order is left out: {why}"
