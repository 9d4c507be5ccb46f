"""What moves the least-noise path and its momentum, in NumPy: nothing is compiled, and a product takes microseconds.

With kept_ak = Σ_i x_i q_a(i), the sum over the states i that keep the memory k, and R_abk the value of the state that
follows k when a is said and b is heard, all products of `_rate_equation` and `_noise` are sums over k. Two sparse
matrices of S·W numbers lead from states to k and back.

Two sets of equations are for the same path. `LeadingOrder` takes the noise as Gaussian, of covariance D, and leaves out
the gradient of D. `LeastAction` are Hamilton's equations of the interactions themselves.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array

from meanfield._memory import MemorySpace

Vector = Float[np.ndarray, " states"]
Rows = Float[np.ndarray, "own partner kept"]


@no_type_check  # of shapes, under test: products are called thousands of times
class PathEquations:
    """Drift and noise of one policy.

    Parameters
    ----------
    q
        The policy, shape (S, W).
    space
        Its memories.
    """

    def __init__(self, q: Float[np.ndarray, "states words"], space: MemorySpace) -> None:
        self.space = space
        self.q = np.ascontiguousarray(q)
        self.n_words = space.n_words
        self.n_kept = space.offset(space.memory_length)
        state = np.tile(np.arange(space.n_states), self.n_words)
        self.memory = (space.successors() - 1) // space.n_digits
        row = np.tile(self.memory, self.n_words) + self.n_kept * np.repeat(np.arange(self.n_words), space.n_states)
        shape = (self.n_words * self.n_kept, space.n_states)
        self.keep = csr_array((self.q.T.ravel(), (row, state)), shape=shape)
        self.release = csr_array(self.keep.T)

    def leading_order(self) -> LeadingOrder:
        """Those of leading order for the same policy."""
        return LeadingOrder(self.q, self.space)

    def kept(self, x: Vector) -> Float[np.ndarray, "own 1 kept"]:
        """kept_ak, with an axis for the partner's word."""
        return (self.keep @ x).reshape(self.n_words, 1, -1)

    def rows(self, w: Vector) -> Rows:
        """R_abk."""
        return np.ascontiguousarray(w[1:].reshape(self.n_kept, self.n_words, self.n_words).transpose(1, 2, 0))

    def states(self, flow: Rows) -> Vector:
        """The composition into which agents come who keep k, say a and hear b."""
        x = np.empty(1 + flow.size)
        x[0] = 0.0
        x[1:].reshape(self.n_kept, self.n_words, self.n_words)[...] = flow.transpose(2, 0, 1)
        return x

    def drift(self, x: Vector) -> Vector:
        """F(x) of `_rate_equation.drift`."""
        Q = x @ self.q
        return self.states(self.kept(x) * (Q / Q.sum())[:, None]) - x

    def transposed(self, x: Vector, w: Vector) -> Vector:
        """J(x)ᵀw; J(x)x = F(x), since F has degree one."""
        Q, R = x @ self.q, self.rows(w)
        total = Q.sum()
        Q = Q / total
        effect = (R * self.kept(x)).sum((0, 2)) / total
        return self.release @ (Q @ R).ravel() + self.q @ (effect - effect @ Q) - w

    def linearised(self, x: Vector, v: Vector) -> Vector:
        """J(x)v."""
        Q, moved = x @ self.q, v @ self.q
        total = Q.sum()
        Q, moved = Q / total, moved / total
        flow = self.kept(v) * Q[:, None] + self.kept(x) * (moved - Q * moved.sum())[:, None]
        return self.states(flow) - v

    def noise(self, x: Vector, w: Vector) -> Vector:
        """D(x)w of `_noise.noise`."""
        return self._noise(x, x @ self.q, self.kept(x), w)

    def _noise(self, x: Vector, Q: np.ndarray, kept: np.ndarray, w: Vector) -> Vector:
        R, weighted = self.rows(w), x * w
        jump = self.mean_jump(kept, R, weighted)
        gain = kept * (Q[:, None] * R + jump.T[:, :, None]) - Q[:, None] * self.kept(weighted)
        lost = self.release @ (Q @ R + jump.sum(0)[:, None]).ravel()
        return self.states(gain) - x * lost + weighted

    def drift_slope(self, x: Vector, w: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of w·F by x_i q_a(i), up to a number for each state."""
        R = self.rows(w)
        return (x @ self.q @ R)[:, self.memory] + (R * self.kept(x)).sum((0, 2))[:, None]

    def noise_slope(self, x: Vector, v: Vector, w: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of vᵀDw by x_i q_a(i)."""
        Q, kept, Rv, Rw = x @ self.q, self.kept(x), self.rows(v), self.rows(w)
        jump_v, jump_w = self.mean_jump(kept, Rv, x * v), self.mean_jump(kept, Rw, x * w)
        both = Q @ (Rv * Rw) + (Rv * jump_w.T[:, :, None] + Rw * jump_v.T[:, :, None]).sum(1)
        lone_v, lone_w = Q @ Rv + jump_v.sum(0)[:, None], Q @ Rw + jump_w.sum(0)[:, None]
        of_partner = (kept * Rv * Rw - Rv * self.kept(x * w) - Rw * self.kept(x * v)).sum((0, 2)) + (x * v) @ w
        single = both[:, self.memory] - w * lone_v[:, self.memory] - v * lone_w[:, self.memory] + v * w
        return single + of_partner[:, None]

    def mean_jump(self, kept: np.ndarray, R: Rows, weighted: Vector) -> Float[np.ndarray, "own partner"]:
        """w·u_ab of `_noise`."""
        return (R * kept).sum(2) - (weighted @ self.q)[:, None]


@no_type_check  # of shapes, under test: products are called thousands of times
class LeadingOrder(PathEquations):
    """x' = F(x) + D(x)p and p' = -J(x)ᵀp, with κ² = ∫ pᵀDp dt."""

    linear = True  # in p, given x
    kappa_squared = 1.0  # of the integral of `forward`'s work

    def backward(self, x: Vector, p: Vector) -> Vector:
        """-p'."""
        return self.transposed(x, p)

    def forward(self, x: Vector, p: Vector) -> tuple[Vector, Vector]:
        """x', and what the momentum adds to it."""
        Q, kept = x @ self.q, self.kept(x)
        push = self._noise(x, Q, kept, p)
        return self.states(kept * (Q / Q.sum())[:, None]) - x + push, push

    def work(self, x: Vector, p: Vector) -> float:
        """pᵀDp, which is -(p·x)' of a solution."""
        Q, R, kept, weighted = x @ self.q, self.rows(p), self.kept(x), x * p
        jump = self.mean_jump(kept, R, weighted)
        single = Q @ (R * (kept * R - 2 * self.kept(weighted))).sum((0, 2)) + weighted @ p
        return float(single + (jump * jump.T).sum())


@no_type_check  # of shapes, under test: products are called thousands of times
class LeastAction(PathEquations):
    """Hamilton's equations for h(x, p) = ½ [Σ_ab g_ab g_ba / Σx - Σx], g_ab = Σ_i x_i q_a(i) exp(p_Γ(i,a,b) - p_i).

    N·h is the rate at which the mean of exp(N p·x) grows; ∂h/∂p is F at p = 0, and its second derivative D. The chance
    to leave along a path is exp(-N ∫ p·∂h/∂p - h dt) (Freidlin and Wentzell, ch. 5), and κ²/2 that integral.
    """

    linear = False
    kappa_squared = 2.0

    def _met(self, x: Vector, p: Vector) -> tuple[Vector, Rows, np.ndarray, np.ndarray]:
        ratio = np.exp(p)
        R = self.rows(ratio)
        kept = self.kept(x / ratio)
        return ratio, R, kept, (R * kept).sum(2)

    def backward(self, x: Vector, p: Vector) -> Vector:
        """∂h/∂x."""
        ratio, R, _, met = self._met(x, p)
        left = self.release @ (R * met.T[:, :, None]).sum(1).ravel()
        return left / ratio - ((met * met.T).sum() + 1) / 2

    def backward_change(self, x: Vector, p: Vector, change: Vector) -> Vector:
        """The derivative of ∂h/∂x by p in a direction."""
        ratio, R, kept, met = self._met(x, p)
        R_change = self.rows(ratio * change)
        met_change = (R_change * kept - R * self.kept(x * change / ratio)).sum(2)
        flow, flow_change = R * met.T[:, :, None], R_change * met.T[:, :, None] + R * met_change.T[:, :, None]
        left, left_change = (self.release @ part.sum(1).ravel() for part in (flow, flow_change))
        return (left_change - left * change) / ratio - (met * met_change.T).sum()

    def forward(self, x: Vector, p: Vector) -> tuple[Vector, Vector]:
        """∂h/∂p, and by how much it differs from F."""
        ratio, R, kept, met = self._met(x, p)
        flow = R * met.T[:, :, None]
        left = self.release @ flow.sum(1).ravel()
        moved = self.states(kept * flow) - x * left / ratio
        return moved, moved - self.drift(x)

    def slope(self, x: Vector, p: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of h by q_a(i)."""
        ratio, R, _, met = self._met(x, p)
        return x / ratio * (R * met.T[:, :, None]).sum(1)[:, self.memory]

    def work(self, x: Vector, p: Vector) -> float:
        """p·∂h/∂p - h, which is -(p·x)' of a solution."""
        met = self._met(x, p)[3]
        return float(p @ self.forward(x, p)[0]) - ((met * met.T).sum() - 1) / 2
