"""Equilibria among neighbours on a graph: the fraction of committed agents as a function of what the others say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from meanfield._parameters.equilibria import Line
from meanfield._population.mixture import Edges, Mixture
from meanfield._population.trajectories import MAX_TIME, Tolerances, integrate
from meanfield.core._export import exported
from meanfield.toolbox._errors import InputError

held_edges = exported("meanfield.core._pairs", "held_edges")
STEP = 0.02  # of a share; two folds that are closer are not told apart
RESOLUTION = 1e-6  # of the share at a fold, where the fraction is known to the square of it
HELD = 1e-10  # max|dX/dt|
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
    agreed = mixture.consensus(1 - new)[None, None]
    x = _end(edges, edges.independent(agreed)) / mixture.share
    begin, end = x.sum(1) @ q[:, new], (_end(Mixture.stacked([taken]), agreed) @ q)[0, new]

    def at(said: float, guess: np.ndarray) -> Held:
        x, fraction, misfit = held_edges(q, edges.degree[0], mixture.committed, np.int64(new), said, guess)
        if not misfit < HELD:
            raise InputError(f"degree = {degree:g}: the old state was lost where others say the new word by {said:.3f}")
        return Held(said, float(fraction), x)

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
