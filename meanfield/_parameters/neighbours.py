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
ROUNDING = NOTHING = 1e-9  # of a fraction
SMALLEST_STEP = STEP / 100
FEW = (1e-2, 1e-3, 1e-4)  # newcomers among all agents who may be
NOBODY = 1e-9  # share of agents who are not committed


class Held(NamedTuple):
    """A fixed point at which agents who are not committed say the new word with the probability `said`."""

    said: float
    fraction: float  # of all agents, who are committed to the new word
    edges: Float[np.ndarray, "states ends"]  # as in `core.EdgeGame`, in fractions of agents who are not committed


def old_state(line: Line, degree: float, new: int) -> tuple[list[Held], Held | None]:
    """The old state as the new word is said more and more, and the fold where the fraction is largest, None if nowhere.

    It begins without newcomers, where agreement on the other word leads, and would end where everybody is committed.
    """
    mixture = line.at(0.0)
    q, arrays = mixture.q[0], (mixture.q[0], mixture.committed, np.array(degree))
    agreed = mixture.consensus(1 - new)[None, None]

    def reached(part: float) -> Held:
        """The state to which agreement leads beside this part of all agents who can be committed to the new word."""
        there = line.at(part * line.end)
        edges = Edges(*(values[None] for values in (*there, np.array(degree))))
        x = _end(edges, edges.independent(agreed)) / there.share
        return Held(float(x.sum(1) @ q[:, new]), part * line.end, x)

    def at(said: float, x: np.ndarray) -> Held | None:
        held = arrays, np.int64(new), said, x.sum(1)
        for _ in range(MOST_STEPS):
            misfit = held_misfit(*held, x)
            if np.abs(misfit).max() < HELD:
                return Held(said, x[:, len(x) + new].sum(), x) if x[:, : len(x)].min() > -ROUNDING else None

            def slope(v: np.ndarray, x: np.ndarray = x) -> np.ndarray:
                return held_slope(*held, x, v.reshape(x.shape)).ravel()

            matrix: Any = LinearOperator((x.size, x.size), slope, dtype=float)
            x = x - gmres(matrix, misfit.ravel(), rtol=ROUGH, restart=VECTORS, maxiter=1)[0].reshape(x.shape)
        return None

    # Beside some newcomers all memories occur, in which agents hear something
    first, some = reached(0.0), next((one for one in map(reached, FEW) if one.said < 0.5), None)
    if first.said > 0.5 or some is None:
        return [first], None
    path, step = [first, some], STEP
    end = (_end(Mixture.stacked([line.at(line.end * (1 - NOBODY))]), agreed) @ q)[0, new]
    while (said := path[-1].said + step) < end:
        before, last = path[-2:]
        ahead = min(step / (last.said - before.said), 1)
        if (point := at(said, last.edges + ahead * (last.edges - before.edges))) is None:
            step /= 2
            if step < SMALLEST_STEP:
                raise InputError(
                    f"degree = {degree:g}: the old state is lost where others say a new word by {said:.3f}"
                )
            continue
        path.append(point)
        if point.fraction < NOTHING:  # all shares are at rest, as among agents who copy
            return [first], None
        if point.fraction < last.fraction:

            def back(said: float, near: np.ndarray) -> float:
                return 1.0 if (found := at(said, near)) is None else -found.fraction

            options = {"xatol": RESOLUTION}
            fold = minimize_scalar(back, args=last.edges, bounds=(before.said, said), method="bounded", options=options)
            return path, at(fold.x, last.edges)
    return path, None


def _end(arrays: Mixture | Edges, start: Float[np.ndarray, "one one ..."]) -> Float[np.ndarray, ...]:
    """The composition reached."""
    return integrate(arrays, start, np.zeros(1), MAX_TIME, Tolerances()).composition[0, 0]
