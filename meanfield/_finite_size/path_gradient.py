"""How κ changes with the policy, along the least-noise path.

Of the path of least action only h depends on the policy to first order: d(κ²/2) = -∫ ∂_q h dq dt. Of the path of
leading order, with α - p and b the multipliers of its equations for x and p, κ dκ = ∫ ∂_q L dq dt at fixed courses,

    L = αᵀDp - ½ pᵀDp + (α - p)·F - p·Jb,
    db/dt = Jb - Dα,  b(0) = 0,    dα/dt = -Jᵀp - ∂L/∂x,  α ending in the left eigenvector,

which is scaled such that b ends in the saddle's stable manifold. α and b are there because dp/dt leaves out the
gradient of D, and are small with κ. They are the fixed point of turns, α from b and b from α: as in the sweeps for the
path itself, d(p·b)/dt = -pᵀDα says where b is in the unstable direction.
"""

from __future__ import annotations

from typing import NamedTuple, no_type_check

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.least_action_path import LeastActionPath
from meanfield._finite_size.least_noise_path import LeastNoisePath
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.anderson import anderson
from meanfield._numerics.course import Halves, Vector, halves, integrate, remaining
from meanfield.toolbox._errors import ConvergenceError

TOLERANCE = 1e-8  # change of b in a turn, against b
MAX_TURNS = 60


class PathGradient(NamedTuple):
    """Derivative of κ by q_a(i) up to a number for each i, shape (W, S), and ∫ x · work dt, shape (S,)."""

    gradient: Float[np.ndarray, "words states"]
    passed: Vector


class _Multipliers(NamedTuple):
    """α and b at nodes and middles, shape (halves, S)."""

    alpha: Halves
    b: Halves


def path_gradient(path: LeastNoisePath | LeastActionPath) -> PathGradient:
    """The derivative of κ with respect to the policy.

    Raises
    ------
    ConvergenceError
        If α and b are not found; its `best` is κ.
    """
    if isinstance(path, LeastActionPath):
        return PathGradient(-path.slopes() / path.kappa, path.weights * path.work() @ path.x)
    x, p = halves(path.x), halves(path.p)
    work = np.array([path.equations.work(*both) for both in zip(x, p, strict=True)])
    slopes = _of_leading_order(path, path.equations, x, p)
    return PathGradient(slopes / path.kappa, _weights(len(x), path.step) * work @ x)


def _weights(n_halves: int, step: float) -> Float[np.ndarray, " halves"]:
    """Of Simpson's rule."""
    weights = np.full(n_halves, step / 3)
    weights[1::2] *= 2
    weights[[0, -1]] /= 2
    return weights


def _of_leading_order(path: LeastNoisePath, equations: PathEquations, x: Halves, p: Halves) -> np.ndarray:
    alpha, b = solve_multipliers(path, equations, x, p)
    weights = _weights(len(x), path.step)
    total = np.zeros((equations.n_words, x.shape[1]))
    for weight, y, p_, a, b_ in zip(weights, x, p, alpha, b, strict=True):
        total += weight * (_first(equations, y, p_, a) + _second(equations, y, p_, a, b_))
    # After T the first decay with the growth rate, the second twice as fast
    last = x[-1], p[-1], alpha[-1]
    return total + (_first(equations, *last) + _second(equations, *last, b[-1]) / 2) / path.growth


def _first(equations: PathEquations, x: Vector, p: Vector, alpha: Vector) -> np.ndarray:
    """Derivative by q_a(i) of the part of L that is linear in p, α and b."""
    return x * equations.drift_slope(x, alpha - p)


def _second(equations: PathEquations, x: Vector, p: Vector, alpha: Vector, b: Vector) -> np.ndarray:
    """Derivative by q_a(i) of the rest of L."""
    of_x = equations.noise_slope(x, alpha - p / 2, p) - equations.drift_slope(b, p)
    return x * of_x - b * equations.drift_slope(x, p)


def solve_multipliers(path: LeastNoisePath, equations: PathEquations, x: Halves, p: Halves) -> _Multipliers:
    """α and b, each from the other."""
    n_steps, step, last = len(path.x) - 1, path.step, 2 * len(path.x) - 2
    spread = np.array([equations.noise(*both) for both in zip(x, p, strict=True)])  # Dp
    policy = equations.q.T

    def alpha_from(source: Halves, end: Vector) -> Halves:
        @no_type_check
        def rate(number: int, alpha: Vector) -> Vector:
            y, p_ = x[last - number], p[last - number]
            moved = (policy * equations.noise_slope(y, alpha, p_)).sum(0)
            return equations.transposed(y, alpha) + moved - source[last - number]

        return halves(integrate(rate, end, n_steps, step)[::-1])

    def effort(alpha: Halves) -> Float[np.ndarray, " nodes"]:  # ∫ pᵀDα from each node on
        rate = (spread * alpha).sum(1)
        return remaining(rate, step) + rate[-1] / (2 * path.growth)

    def alpha_of(b: Halves) -> Halves:
        source = own + np.array([(policy * equations.drift_slope(*both)).sum(0) for both in zip(b, p, strict=True)])
        alpha = alpha_from(source, np.zeros(x.shape[1]))
        return alpha - effort(alpha)[0] / steering[0] * steer

    def b_of(alpha: Halves) -> Float[np.ndarray, "nodes states"]:
        pull = np.array([equations.noise(*both) for both in zip(x, alpha, strict=True)])
        target = effort(alpha)

        @no_type_check
        def held(number: int, b: Vector) -> Vector:
            push = spread[2 * number]
            return b + (target[number] - p[2 * number] @ b) / (p[2 * number] @ push) * push

        @no_type_check
        def rate(number: int, b: Vector) -> Vector:
            return equations.linearised(x[number], b) - pull[number]

        return integrate(rate, np.zeros(x.shape[1]), n_steps, step, held)

    def turn(state: np.ndarray) -> np.ndarray:
        b = b_of(alpha_of(halves(state.reshape(path.x.shape)))).ravel()
        size[0] = np.abs(b).max()
        return b

    def small(residual: np.ndarray) -> bool:
        return bool(np.abs(residual).max() <= TOLERANCE * size[0])

    own = np.array([(policy * equations.noise_slope(x, p, p)).sum(0) / 2 for x, p in zip(x, p, strict=True)])
    steer = alpha_from(np.zeros_like(x), p[-1])
    steering, size = effort(steer), [0.0]
    found = anderson(turn, np.zeros(path.x.size), small, MAX_TURNS)
    if found is None:
        raise ConvergenceError(
            f"the derivative of kappa = {path.kappa:.3g} was not found in {MAX_TURNS} turns; kappa itself stands: "
            f"differences of group_size_law are the other way to its derivative",
            best=path.kappa,
        )
    b = halves(found.reshape(path.x.shape))
    return _Multipliers(alpha_of(b), b)
