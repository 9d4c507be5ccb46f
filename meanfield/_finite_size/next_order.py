"""The next order of the group-size law, from the fluctuations about the path of least action (docs/theory/noise.md).

    P(strong) = Φ(√N κ - c/√N) + O(N^-3/2),   c = -log(ω/κ)/κ,   ω² = θ² Λ'' det₂(1 - K) e^(-2μ),

with K the covariance of the fields of one agent, the mean over all, Λ(θ) = lim log E exp(N θ l·x)/N at Λ' = 0, and l
the left eigenvector of the saddle's unstable direction. μ = 0 for agents of one kind. For kinds c, committed ones too,
it is ½ ∫ [Σ_ab g_ab g_ba - Σ_c n_c Σ_ab g^c_ab g^c_ba] dt with the fields g^c of an agent of kind c, since agents do
not meet themselves. Λ'' det(1 - K) is one determinant, bordered by the covariances of fields and l (`fluctuations`).
The error of the end T falls like exp(-λT), and is extrapolated from two T.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meanfield._finite_size.fluctuations import Border, log_determinants, without_step
from meanfield._finite_size.least_action_path import IMPOSSIBLE, LeastActionPath
from meanfield._numerics.trajectory import quadrature
from meanfield._population.mixture import Mixture
from meanfield.core._path_search import FIRST, LONG, Instanton, Mesh, PathProblem, interaction_of, mesh_until, moved

ENDS = (2.5, 4.0)  # T, in units of the time in which a momentum fades
FIRST_TIMES = (1.0, 1e-4, FIRST)  # of meshes: noise that is strong needs early times
LONGEST, MOST_NODES = (LONG, 2 * LONG), 1400  # steps of meshes: the second for slow saddles
PARTS = 4  # of a step, so that half and a quarter of the nodes are meshes too
SAME = 2e-3  # relative difference of κ, above which a mesh has too few early times
SMALL, BESIDE = 0.01, 0.02  # κ: below the first, c is the mean of its values at κ plus and minus the second
UNKNOWN = 0.1  # error of c above which it is not given
STRONG = 0.5  # κ
TOLERANCE = 1e-9  # of logarithms of fields
SEARCH = 500  # evaluations
NEGLIGIBLE = 1e-8  # correlations


class NextOrder(NamedTuple):
    """c and its numerical error."""

    correction: float
    error: float


def next_order(path: LeastActionPath) -> NextOrder | str:
    """c of the path, or the reason why there is none."""
    strong = path.kappa > STRONG
    if strong and path.mixture.q.min() <= 2 * IMPOSSIBLE:
        return "noise is strong, and answers of probability 0 leave c unknown"
    ends = [end / path.ends.growth for end in ENDS]
    steps = [step for step in LONGEST if mesh_until(ends[-1], PARTS, FIRST_TIMES[0], step).n_nodes <= MOST_NODES]
    if not steps:
        return f"the saddle is slow (eigenvalue {path.ends.growth:.2g}), and the next order takes too many times"
    before, reason = None, ""
    for first_time in FIRST_TIMES:
        found, nearest = [], None
        for end in ends:
            nearest, one = _correction(path, mesh_until(end, PARTS, first_time, steps[0]), nearest)
            found.append(one)
        known = [one for one in found if not isinstance(one, str)]
        if len(known) < len(ENDS):
            reason = next(one for one in found if isinstance(one, str))
            continue
        (early, early_error), (late, late_error) = known
        left = np.exp(ENDS[0] - ENDS[1])
        value = (late - left * early) / (1 - left)  # at T = ∞
        result = NextOrder(value, (late_error + left * early_error) / (1 - left) + left * abs(value - late))
        if before is not None:
            result = result._replace(error=result.error + abs(result.correction - before.correction))
        # Strong noise acts at early times, whose mesh is checked by another one
        if result.error < UNKNOWN and (before is not None or not strong):
            return result
        before, reason = result, f"its error is {result.error:.2g}"
    return reason


def _correction(path: LeastActionPath, mesh: Mesh, nearest: PathProblem | None) -> tuple[PathProblem, NextOrder | str]:
    """c for one T, or the reason why there is none on this mesh, and the problem of the path."""
    problem, found = _solved(path, path.mixture, mesh, nearest)
    off = np.inf if found is None else abs(found.kappa - path.kappa)
    if found is None or not off < (SAME + path.error) * max(path.kappa, SMALL):
        return problem, "no path was found with the accuracy that the next order needs"
    if path.kappa > SMALL:
        return problem, correction_of(problem, found)
    both = [_solved(path, mixture, mesh, problem) for mixture in _beside(path)]
    return problem, mean_order([one and correction_of(beside, one) for beside, one in both])


def mean_order(both: Sequence[NextOrder | str | None]) -> NextOrder | str:
    """c where κ is next to nothing, from both sides of where it is 0."""
    known = [one for one in both if isinstance(one, NextOrder)]
    if len(known) < 2:
        return "κ is next to nothing"
    (one, one_error), (two, two_error) = known
    return NextOrder((one + two) / 2, (one_error + two_error) / 2 + BESIDE * abs(one - two))


def _solved(
    path: LeastActionPath, mixture: Mixture, mesh: Mesh, nearest: PathProblem | None
) -> tuple[PathProblem, Instanton | None]:
    problem = PathProblem(tuple(mixture), path.ends, mesh, mixture.empty)
    return problem, problem.solve(moved(path.logarithms, path.mesh, mesh, 1.0), TOLERANCE, SEARCH, nearest)


def _beside(path: LeastActionPath) -> list[Mixture]:
    """Agents who with empty memories lean a little more to either of two words, so that κ is not small."""
    q = path.mixture.q
    one, other = np.sort(np.argsort(q[:, 0].min(0))[-2:]).tolist()  # which are said most
    slope, found = path.slope(one, other)[0][:, 0].sum(), []
    for lean in np.array([-BESIDE, BESIDE]) / slope:
        leaning = q.copy()
        leaning[:, 0, one] += lean
        leaning[:, 0, other] -= lean
        if leaning[:, 0].min() > 0:
            found.append(path.mixture._replace(q=leaning))
    return found


def correction_of(problem: PathProblem, found: Instanton) -> NextOrder | str:
    """c, and the error of its extrapolation in the step, or the reason why there is none."""
    if not found.kappa:
        return "the path has no momentum"
    final, variance = problem.final_correlations(found)
    border = Border(final, variance + problem.ending.width)
    interaction = interaction_of(problem.arrays)
    covariance = problem.correlations(found, interaction, NEGLIGIBLE)
    found_with = log_determinants(covariance, interaction.pairing, problem.mesh.pace[::2], border)
    signs, logarithms = zip(*found_with, strict=True)
    if not min(signs) > 0:
        return "fluctuations about the path of least action grow: it is no minimum, or its mesh too coarse"
    logarithm, error = without_step(logarithms)
    met = quadrature(problem.mesh.pace[::2]) @ problem.met_others(found) / 2
    ratio = np.log(found.strength / found.kappa) + logarithm / 2 - met
    return NextOrder(-ratio / found.kappa, abs(error / 2 / found.kappa))
