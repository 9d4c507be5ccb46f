"""What goes into the action of a path, and how it changes with the policy, in u = x exp(-p) and v = exp(p).

The path is stationary, and where its ends move with the policy its momentum is 0. So to first order only h depends on
the policy:

    dS/dq_a(i) = -∫ ∂h/∂q_a(i) dt,   ∂h/∂q_a(i) = x_i Σ_b g_ba exp(p_Γ(i,a,b) - p_i),

up to a number for each i. The difference between two words fades with p beyond the ends of the path.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield._finite_size.path_equations import PathEquations
from meanfield._finite_size.path_kernel import over_heard
from meanfield._numerics.course import Course, Vector
from meanfield.core._space import MemorySpace

Messages = Float[np.ndarray, "nodes own partner"]

GREGORY = (3 / 8, 7 / 6, 23 / 24)  # weights of the first nodes and of the last, of order four


def quadrature(pace: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
    """The weights of nodes in integrals over time; `pace` is the length of a step at each."""
    weights = pace.copy()
    for k, part in enumerate(GREGORY):
        weights[[k, -1 - k]] *= part
    return weights


def work(equations: PathEquations, x: Course, p: Course) -> Float[np.ndarray, " nodes"]:
    """p·dx/dt - h at the nodes, which is (p·x)'.

    With δ the change of p by an agent's move and d_ab the mean of exp(δ) - 1, in sums without the terms of first order
    in p, which cancel.
    """
    rates = np.empty(len(x))
    for n, (composition, momentum) in enumerate(zip(x, p, strict=True)):
        said = composition[:, None] * equations.q
        change = outcome_values(momentum, equations.space) - momentum[:, None, None]
        grown = np.expm1(change)
        single = np.einsum("ia,iab,b", said, change * grown - (grown - change), said.sum(0))
        d = np.einsum("ia,iab->ab", said, grown)
        joint = np.einsum("ia,iab->ab", said, change + change * grown) - d / 2
        rates[n] = single + (joint * d.T).sum()
    return rates


def policy_slope(equations: PathEquations, u: Vector, v: Vector, g: np.ndarray) -> Float[np.ndarray, "own states"]:
    """∂h/∂q_a(i) at a node, up to a number for each i."""
    return u * over_heard(equations.rows(v), g.T)[equations.memory].T


def action_slope(
    equations: PathEquations,
    u: Course,
    v: Course,
    messages: Messages,
    pace: Float[np.ndarray, " nodes"],
    *,
    growth: float,
    decay: float = np.inf,
) -> tuple[Vector, Vector]:
    """Derivative of the action by q of the first word of two, and ∫ x (p·dx/dt - h) dt.

    p decays with the rate `growth` after the last node, and has grown with the rate `decay` up to the first one.
    """
    rates = np.empty(u.shape)
    for n, (one, other, g) in enumerate(zip(u, v, messages, strict=True)):
        first, second = policy_slope(equations, one, other, g)
        rates[n] = second - first
    beyond = np.zeros(len(u))
    beyond[[0, -1]] = 1 / decay, 1 / growth
    weights, done = quadrature(pace), work(equations, u * v, np.log(v))
    return (weights + beyond) @ rates, ((weights + beyond / 2) * done) @ (u * v)


def outcome_values(w: Float[np.ndarray, " states"], space: MemorySpace) -> Float[np.ndarray, "states words words"]:
    """w_Γ(i,a,b), the value of the state that follows i after saying a and hearing b, shape (S, W, W)."""
    rows = w[1:].reshape(-1, space.n_words, space.n_words)  # one row for each memory of at most H - 1 interactions
    longest = rows[space.offset(space.memory_length - 1) :]
    return np.concat([rows, np.tile(longest, (space.n_digits, 1, 1))])
