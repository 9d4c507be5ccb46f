"""What goes into the action of a path, and how it changes with the policy, in u = x exp(-p) and v = exp(p)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield._finite_size import message_kernel as kernel
from meanfield._finite_size.path_equations import PathEquations
from meanfield._finite_size.path_kernel import over_heard
from meanfield._numerics.course import Course, Vector

Messages = Float[np.ndarray, "nodes own partner"]


def work(equations: PathEquations, u: Course, v: Course, messages: Messages) -> Float[np.ndarray, " nodes"]:
    """p·dx/dt - h at the nodes, which is (p·x)'."""
    q, memory, n_kept = equations.q, equations.memory, equations.n_kept
    rates = np.empty(len(u))
    for n, (one, other, g) in enumerate(zip(u, v, messages, strict=True)):
        moved = other * kernel.forwards(one, g, q, memory, n_kept) - one * kernel.backwards(other, g, q, memory)
        rates[n] = np.log(other) @ moved - ((g * g.T).sum() - 1) / 2
    return rates


def policy_slope(equations: PathEquations, u: Vector, v: Vector, g: np.ndarray) -> Float[np.ndarray, "own states"]:
    """∂h/∂q_a(i) at a node, up to a number for each i."""
    return u * over_heard(equations.rows(v), g.T)[equations.memory].T
