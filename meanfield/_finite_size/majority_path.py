"""The path of least action from an attractor to a word share of 1/2, and the next order about it.

Agents who are in states of the attractor's composition, independently of each other, forget this start. After a long
time T the word share of a population exceeds a bound with the probability that `next_order` gives for l = bound - q,
without the linearised end: the momentum at T is s·l, of the strength s with which l·x(T) = 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield._finite_size.least_action_path import SMALLEST
from meanfield._finite_size.next_order import (
    BESIDE,
    SEARCH,
    SMALL,
    TOLERANCE,
    UNKNOWN,
    NextOrder,
    correction_of,
    mean_order,
)
from meanfield._fixed_points.spectrum import FLOOR
from meanfield._population.mixture import Mixture
from meanfield.core._path_search import ROUGH, Ending, Instanton, Mesh, PathProblem, even_mesh, moved, resting

FORGOTTEN = 10.0  # T, in units of the time in which the slowest mode fades
SHORTER = 3  # T of the first search
FINEST, COARSEST, PARTS = 0.4, 1.2, 4  # step of time; the number of steps is a multiple of the third
COARSE, MOST_STEPS = 0.8, 700  # step beyond which c is not computed
LARGE = 1.0  # c
ROUNDING = 1e-12  # of word shares
ALIKE = "agents treat both words alike, so that either is ahead with the same probability"
SMALLEST_STRETCH, GROWTH = 1 / 64, 1.5  # of the way of the bound from the attractor's word share to 1/2


class MajorityPath(NamedTuple):
    """κ, c and its numerical error, and reservations; c is NaN if it is not found."""

    kappa: float
    correction: float
    error: float
    reason: str


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


def majority_path(
    mixture: Mixture, attractor: np.ndarray, word: int, decay: float, variance: float, *, with_correction: bool
) -> MajorityPath | str:
    """κ and c for the probability that a word is ahead at random times, or the reason why there are none.

    The slowest mode of the attractor fades like exp(-decay·t); `variance` is N times the word share's. Without the
    correction c is 0.
    """
    said, uncommitted = mixture.q[..., word], float(attractor.sum())
    share = float((attractor * said).sum()) / uncommitted
    half = (0.5 - float(mixture.committed[word])) / uncommitted  # at which both words are said alike
    if variance <= 0 and abs(share - half) < ROUNDING:
        return MajorityPath(0.0, 0.0, 0.0, ", where every agent says either word with probability 1/2")
    if share > 1 - FLOOR:
        return MajorityPath(np.inf, 0.0, 0.0, ", where agents never say any other word")
    if half <= 0:
        return MajorityPath(np.inf, 0.0, 0.0, ", with half of the agents or more committed to its word")
    least = float((mixture.share * said[:, -mixture.space.n_full :].min(1)).sum()) / uncommitted
    if least > half:
        reason = f", and agents say the majority word with probability {least:.3g} or more in every memory"
        return MajorityPath(np.inf, 0.0, 0.0, reason)
    mesh = _mesh(FORGOTTEN / decay)
    if mesh is None:
        return f"the attractor is slow (eigenvalue {-decay:.2g})"
    bounds = _Bounds(mixture, attractor, word, mesh)
    with np.errstate(all="ignore"):  # iterates far from the path may leave all bounds: None
        found = bounds.solved(half)
        if found is None:
            return f"no path was found from a share {share:.4g} of the majority word to {half:.4g}"
        kappa = found[1].kappa
        if abs(kappa) < SMALLEST:
            return MajorityPath(0.0, 0.0, 0.0, f"; {ALIKE}")
        if not with_correction:
            return MajorityPath(kappa, 0.0, 0.0, "")
        second = _next_order(bounds, found, half, BESIDE * float(np.sqrt(variance)))
    if not isinstance(second, str) and second.error < UNKNOWN:
        reserve = "; c is large, and small groups need higher orders" if abs(second.correction) > LARGE else ""
        return MajorityPath(kappa, *second, reserve)
    why = second if isinstance(second, str) else f"its error is {second.error:.2g}"
    return MajorityPath(kappa, np.nan, np.nan, f"; the next order is left out: {why}")


def _mesh(end: float) -> Mesh | None:
    """Equal steps. They may not be longer before the path has momentum: the determinant needs all of them short."""
    n_steps = PARTS * int(np.ceil(min(MOST_STEPS, end / FINEST) / PARTS - 1e-9))
    if end / n_steps > COARSEST:
        return None
    return even_mesh(end, n_steps)


def _next_order(bounds: _Bounds, found: tuple[PathProblem, Instanton], half: float, away: float) -> NextOrder | str:
    """c; where κ is next to nothing, the mean of those at two bounds that are `away` from the `half`."""
    if bounds.mesh.pace[0] > COARSE:
        return "the attractor is slow, and c takes too many times"
    if found[1].kappa > SMALL:
        return correction_of(*found)
    return mean_order([one and correction_of(*one) for one in map(bounds.solved, (half - away, half + away))])
