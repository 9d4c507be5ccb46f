"""The ways down from a saddle: solutions of the rate equation that leave it along its unstable direction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.integrate import OdeSolution, solve_ivp
from scipy.sparse.linalg import LinearOperator, eigs

from meanfield._population.reaction_model import ReactionModel

Vector = Float[np.ndarray, " states"]

# Distances from both fixed points, against that between them, from which the way down starts and at which it ends
AT_SADDLE, AT_ATTRACTOR = 1e-2, 1e-3
LEAST = 0.5  # of a fraction at the saddle that is left where the way starts, since fractions are positive
LONGEST = 1e5  # relaxation, in units of the fastest rate
DENSE_SIZE = 100  # below, LAPACK is faster than Arnoldi


class Descent(NamedTuple):
    """One side of a saddle."""

    attractor: int  # number of the fixed point where the way ends, -1 if it reaches no attractor in time
    solution: OdeSolution
    duration: float


def descents(model: ReactionModel, saddle: Vector, attractors: dict[int, Vector]) -> tuple[Descent, Descent]:
    """The ways down on both sides."""
    direction = unstable_direction(model, saddle)
    ahead, behind = (_descent(model, saddle, side * direction, attractors) for side in (1.0, -1.0))
    return ahead, behind


def unstable_direction(model: ReactionModel, saddle: Vector) -> Vector:
    """The right eigenvector of the leading eigenvalue, its largest entry 1 in modulus."""
    if model.n_states <= DENSE_SIZE:
        values, vectors = np.linalg.eig(model.jacobian(saddle))
    else:
        shift, size = model.fastest, model.n_states

        def shifted(v: np.ndarray) -> np.ndarray:
            # The drift is quadratic, so that the difference is exact
            v = v.ravel()
            return (model.drift(saddle + v) - model.drift(saddle - v)) / 2 + shift * v

        start = np.random.default_rng(0).standard_normal(size)
        found: Any = eigs(LinearOperator((size, size), matvec=shifted, dtype=float), k=3, which="LR", ncv=40, v0=start)
        values, vectors = found
    leading = vectors[:, int(values.real.argmax())].real
    return leading / np.abs(leading).max()


def _descent(model: ReactionModel, saddle: Vector, direction: Vector, attractors: dict[int, Vector]) -> Descent:
    """The way down on the side of `direction`.

    Where a start on the straight line to the attractor leads there too, its way is taken, from which a path out is
    found more easily.
    """
    size = min(np.abs(goal - saddle).max() for goal in attractors.values())
    start = np.maximum(saddle + AT_SADDLE * size * direction, LEAST * saddle)
    start *= (model.class_masses(saddle) / np.maximum(model.class_masses(start), np.finfo(float).tiny))[model.classes]
    found = _followed(model, saddle, start, attractors)
    if found.attractor < 0:
        return found
    goal = attractors[found.attractor]
    straight = _followed(model, saddle, saddle + AT_SADDLE * (goal - saddle), attractors)
    return straight if straight.attractor == found.attractor else found


def _followed(model: ReactionModel, saddle: Vector, start: Vector, attractors: dict[int, Vector]) -> Descent:
    numbers, goals = list(attractors), np.array(list(attractors.values()))
    sizes = np.abs(goals - saddle).max(1)

    def rate(time: float, x: np.ndarray) -> np.ndarray:
        return model.drift(x)

    def away(x: np.ndarray) -> np.ndarray:
        return np.abs(x - goals).max(1) / sizes

    def arrived(time: float, x: np.ndarray) -> float:
        return float(away(x).min() - AT_ATTRACTOR)

    arrived.terminal = True  # type: ignore[attr-defined]
    span = (0.0, LONGEST / model.fastest)
    end: Any = solve_ivp(rate, span, start, "DOP853", events=arrived, dense_output=True, rtol=1e-8, atol=1e-11)
    ended = numbers[int(away(end.y[:, -1]).argmin())] if end.status == 1 else -1
    return Descent(ended, end.sol, float(end.t[-1]))
