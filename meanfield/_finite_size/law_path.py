"""The path that decides between two attractors, from empty memories to the saddle; or why a policy has none."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield._finite_size.least_action_path import LeastActionPath, least_action_path
from meanfield._finite_size.path_equations import PathEquations
from meanfield._fixed_points.fixed_points import fixed_points
from meanfield._fixed_points.spectrum import FLOOR, spectrum
from meanfield._numerics.course import Vector
from meanfield._population.compositions import consensus
from meanfield._population.observables import MIXED
from meanfield._population.single_policy import single_policy, space_of, words_of

DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi
NEARBY = 1e-9  # shift from an eigenvalue in inverse iteration
MAX_NUMBERS = 2**24  # steps times states: 0.13 GB for each of fifteen courses
# A solution of the rate equation is steady where max|dx/dt| is below; it then is at a fixed point that is this near.
STEADY_RESIDUAL = 1e-8
NEAR = 1e-2
MAX_TIME = 2000.0
# As in the stability table: agents leave the true consensus states of published policies with chance 4e-5 at most.
CONSENSUS_RESIDUAL = 1e-3


class LawPath(NamedTuple):
    """The ingredients of a group-size law."""

    points: xr.Dataset  # the three fixed points
    strong: int  # number of the attractor that the rate equation reaches from empty memories, 0 or 2
    path: LeastActionPath


class NoPath(NamedTuple):
    """Why there is no path; κ and the word where κ is infinite."""

    reason: str
    kappa: float = np.nan
    word: str = ""


def law_path(policy: xr.Dataset) -> LawPath | NoPath:
    """The path of least action of a policy of two words, or the reason why there is none."""
    points = fixed_points(policy)
    reason = _objection(policy, points)
    if reason:
        return NoPath(reason)
    said = _ever_said(policy)
    if len(said) == 1:
        reason = (
            f"agents who start with empty memories never say any other word than {said[0]!r}, answers of probability "
            f"below {FLOOR:g} aside"
        )
        return NoPath(reason, np.inf, said[0])
    strong = reached(policy, points)
    if strong is None:
        return NoPath("the rate equation leads from empty memories to neither of the two attractors")
    return _path_to_saddle(policy, points, strong)


def _ever_said(policy: xr.Dataset) -> list[str]:
    """The words that a population of agents with empty memories may ever come to say."""
    space, possible = space_of(policy), policy["q"].values > FLOOR
    reached, successors = np.arange(space.n_states) == 0, space.successors()
    while True:
        said = possible[reached].any(0)
        after = reached.copy()
        for own, partner in itertools.product(np.flatnonzero(said), repeat=2):
            after[successors[reached & possible[:, own]] + space.n_words * own + partner] = True
        if (after == reached).all():
            return [word for word, one in zip(words_of(policy), said, strict=True) if one]
        reached = after


def _objection(policy: xr.Dataset, points: xr.Dataset) -> str:
    """Why this landscape has no group-size law; '' if it has two attractors with one saddle between them."""
    status = points["stability"].values.tolist()
    if status == ["stable", "unstable", "stable"]:
        return ""
    if "marginal" in status:
        point = points.isel(fixed_point=status.index("marginal"))
        where, eigenvalue = place(policy, point), f"leading eigenvalue {point['eigenvalue'].item():.1g}"
        return f"the fixed point {where} is marginal ({eigenvalue}): linear theory does not tell whether it attracts"
    if status.count("stable") == 1:
        attractor = points.isel(fixed_point=status.index("stable"))
        others = [word for word in words_of(policy) if word != attractor["convention"].item()]
        why = " and ".join(_why_no_attractor(policy, word) for word in others)
        return f"{why}, so that the fixed point {place(policy, attractor)} is the only attractor for every group size"
    return (
        f"there are {status.count('stable')} stable and {status.count('unstable')} unstable fixed points: "
        "expected two stable ones with a single saddle between them"
    )


def place(policy: xr.Dataset, point: xr.Dataset) -> str:
    share = point["word_share"].values
    word = int(np.argmax(share))
    if point["convention"].item() == MIXED:
        return f"at a share {share[word]:.3f} of {words_of(policy)[word]!r}"
    return f"at the consensus on {words_of(policy)[word]!r}"


def _why_no_attractor(policy: xr.Dataset, word: str) -> str:
    """Why the consensus on `word` does not attract."""
    state = consensus(policy, word)
    leaves = 1 - policy["q"].values[np.argmax(state.values), words_of(policy).index(word)]
    if leaves > CONSENSUS_RESIDUAL:
        return f"the consensus on {word!r} is no fixed point (its agents say something else with chance {leaves:.2g})"
    eigenvalue = spectrum(policy, state, k=1)["eigenvalue"].item()
    if eigenvalue < 0:
        return f"the consensus on {word!r} is only near an attractor (its agents err with chance {leaves:.2g})"
    return f"the consensus on {word!r} is unstable (leading eigenvalue {eigenvalue:.2g})"


def reached(policy: xr.Dataset, points: xr.Dataset) -> int | None:
    """The attractor that the rate equation reaches from empty memories, or None."""
    equations = PathEquations(policy["q"].values, space_of(policy))

    def rate(time: float, x: np.ndarray) -> np.ndarray:
        return equations.drift(x)

    def moves(time: float, x: np.ndarray) -> float:
        return np.abs(equations.drift(x)).max() - STEADY_RESIDUAL

    moves.terminal = True  # type: ignore[attr-defined]
    start = np.zeros(space_of(policy).n_states)
    start[0] = 1.0
    tolerances = {"rtol": 1e-8, "atol": 1e-11}
    end = solve_ivp(rate, (0.0, MAX_TIME), start, "DOP853", t_eval=[MAX_TIME], events=moves, **tolerances)
    x = end.y_events[0][-1] if end.status == 1 else end.y[:, -1]
    away = x - points["composition"].values
    nearest = int(np.argmin(np.abs(away).sum(1)))
    if not points["stable"].values[nearest] or np.abs(away[nearest]).sum() > NEAR:
        return None
    # A slow attractor is not reached in this time, but it has to be approached.
    return nearest if end.status == 1 or equations.drift(x) @ away[nearest] < 0 else None


def signed_law_path(policy: xr.Dataset, strong: int, scale: float) -> LawPath | NoPath:
    """The path to the saddle, with κ < 0 where empty memories lead to the other attractor than number `strong`.

    Errors of κ are relative to `scale` where κ is smaller.
    """
    points = fixed_points(policy)
    reason = _objection(policy, points)
    return NoPath(reason) if reason else _path_to_saddle(policy, points, strong, scale)


def signed_kappa(policy: xr.Dataset) -> tuple[float, str]:
    """κ of a policy of two words, positive if the first word is strong; NaN and the reason if there is none."""
    policy = single_policy(policy)
    found = law_path(policy)
    if isinstance(found, LawPath):
        return (found.path.kappa if found.strong == 0 else -found.path.kappa), ""
    return (found.kappa if found.word == words_of(policy)[0] else -found.kappa), found.reason


def _path_to_saddle(policy: xr.Dataset, points: xr.Dataset, strong: int, scale: float = 0.0) -> LawPath | NoPath:
    equations, x = PathEquations(policy["q"].values, space_of(policy)), points["composition"].values
    growth, left = unstable_direction(equations, x[1])
    if growth[1] > 1e-7:
        return NoPath(f"the saddle has two unstable directions (eigenvalues {growth[0]:.2g}, {growth[1]:.2g})")
    left = left * np.sign(left @ (x[2 - strong] - x[1]))
    path = least_action_path(equations, x[1], left, float(growth[0]), MAX_NUMBERS, scale)
    return NoPath(path) if isinstance(path, str) else LawPath(points, strong, path)


def unstable_direction(equations: PathEquations, saddle: Vector) -> tuple[Float[np.ndarray, " two"], Vector]:
    """The two leading eigenvalues (real parts, per unit of time) and the left eigenvector of the first.

    A second eigenvalue that is not positive may be 0, from the constant vector, a left eigenvector of every J.
    """

    def shifted(w: Vector) -> Vector:
        # J + I has the unstable eigenvalue as its largest, also in modulus, which Arnoldi iteration likes
        return equations.transposed(saddle, w.ravel()) + w.ravel()

    n = len(saddle)
    start = np.random.default_rng(0).standard_normal(n)
    if n <= DENSE_STATES:
        matrix = np.stack([shifted(w) for w in np.eye(n)], axis=1)
        values = np.sort(np.linalg.eigvals(matrix).real)[::-1]
        # Inverse iteration: LAPACK scales rows of states that hardly occur, and so loses eigenvectors
        closer = matrix - (values[0] + NEARBY) * np.eye(n)
        for _ in range(3):
            start = np.linalg.solve(closer, start)
            start /= np.linalg.norm(start)
        return values[:2] - 1, start
    operator = LinearOperator((n, n), matvec=shifted, dtype=float)
    found: Any = eigs(operator, k=3, which="LR", ncv=40, v0=start)
    values, vectors = found
    order = np.argsort(-values.real)
    return values.real[order[:2]] - 1, vectors[:, order[0]].real
