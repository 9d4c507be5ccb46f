"""Equilibria among neighbours on a graph: the fraction of committed agents as a function of what the others say."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, gmres

from meanfield._parameters.equilibria import Line
from meanfield._population.mixture import Edges, Mixture
from meanfield._population.trajectories import MAX_TIME, Tolerances, integrate
from meanfield.core._export import exported
from meanfield.toolbox._errors import InputError

held_misfit = exported("meanfield.core._pairs", "held_misfit")
held_slope = exported("meanfield.core._pairs", "held_slope")
STEP = 0.02  # of a share; two folds that are closer are not told apart
RESOLUTION = 1e-6  # of the share at a fold, where the fraction is known to the square of it
# Newton's method: max|dX/dt| at the end, steps, and the relative error and the vectors of the linear solver
HELD, MOST_STEPS, ROUGH, VECTORS = 1e-11, 20, 1e-2, 150
NOBODY = 1e-9  # share of agents who are not committed


class Held(NamedTuple):
    """A fixed point at which agents who are not committed say the new word with the probability `said`."""

    said: float
    fraction: float  # of all agents, who are committed to the new word
    edges: Float[np.ndarray, "states ends"]  # that of `core.EdgeGame`, as fractions of agents who are not committed


def old_state(line: Line, degree: float, new: int) -> tuple[list[Held], Held | None]:
    """The old state as the new word is said more and more, and the fold where the fraction is largest, None if nowhere.

    It begins without newcomers, where agreement on the other word leads, and would end where everybody is committed.
    """
    mixture, taken = line.at(0.0), line.at(line.end * (1 - NOBODY))
    q, edges = mixture.q[0], Edges(*(values[None] for values in (*mixture, np.array(degree))))
    arrays = q, mixture.committed, np.array(degree)
    agreed = mixture.consensus(1 - new)[None, None]
    x = _end(edges, edges.independent(agreed)) / mixture.share
    begin, end = x.sum(1) @ q[:, new], (_end(Mixture.stacked([taken]), agreed) @ q)[0, new]

    def at(said: float, x: np.ndarray) -> Held:
        held = arrays, np.int64(new), said, x.sum(1)
        for _ in range(MOST_STEPS):
            misfit = held_misfit(*held, x)
            if np.abs(misfit).max() < HELD:
                return Held(said, x[:, len(x) + new].sum(), x)

            def slope(v: np.ndarray, x: np.ndarray = x) -> np.ndarray:
                return held_slope(*held, x, v.reshape(x.shape)).ravel()

            matrix: Any = LinearOperator((x.size, x.size), slope, dtype=float)
            x = x - gmres(matrix, misfit.ravel(), rtol=ROUGH, restart=VECTORS, maxiter=1)[0].reshape(x.shape)
        raise InputError(f"degree = {degree:g}: the old state was lost where others say the new word by {said:.3f}")

    path = [Held(float(begin), 0.0, x)]
    for said in np.linspace(begin, end, 2 + int(max(end - begin, 0) / STEP))[1:-1]:
        before, last = path[-2:] if len(path) > 1 else 2 * path
        path.append(at(said, 2 * last.edges - before.edges))
        if path[-1].fraction < last.fraction:
            ends = before.said, path[-1].said
            fold = minimize_scalar(
                lambda said, near: -at(said, near).fraction, args=last.edges, bounds=ends, options={"xatol": RESOLUTION}
            )
            return path, at(fold.x, last.edges)
    return path, None


def _end(arrays: Mixture | Edges, start: Float[np.ndarray, "one one ..."]) -> Float[np.ndarray, ...]:
    return integrate(arrays, start, np.zeros(1), MAX_TIME, Tolerances()).composition[0, 0]
