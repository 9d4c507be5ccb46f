"""What moves the least-noise path and its momentum.

With kept[k, a] = Σ_i x_i q_a(i), the sum over the states i that keep the memory k, and R[k, a, b] the value of the
state that follows k when a is said and b is heard, all products of `_rate_equation` and `_noise` are sums over k. They
are called thousands of times, so that they are compiled (`_path_kernel`).

Two sets of equations are for the same path. `LeadingOrder` takes the noise as Gaussian, of covariance D, and leaves out
the gradient of D. `LeastAction` are Hamilton's equations of the interactions themselves.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float

from meanfield import _path_kernel as kernel
from meanfield._memory import MemorySpace

Vector = Float[np.ndarray, " states"]
Rows = Float[np.ndarray, "kept own partner"]


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
        self.q = np.array(q, order="C")
        self.n_words = space.n_words
        self.n_kept = space.offset(space.memory_length)
        self.memory = (space.successors() - 1) // space.n_digits
        self._policy = self.q, self.memory, self.n_kept

    def leading_order(self) -> LeadingOrder:
        """Those of leading order for the same policy."""
        return LeadingOrder(self.q, self.space)

    def rows(self, w: Vector) -> Rows:
        """R."""
        return w[1:].reshape(-1, self.n_words, self.n_words)

    def states(self, flow: Rows) -> Vector:
        """The composition into which agents come who keep k, say a and hear b."""
        return np.concatenate([[0.0], flow.ravel()])

    def kept(self, x: Vector) -> Float[np.ndarray, "kept own"]:
        """kept."""
        return kernel.keep(x, *self._policy)[0]

    def drift(self, x: Vector) -> Vector:
        """F(x) of `_rate_equation.drift`."""
        return kernel.drift(x, *self._policy)

    def transposed(self, x: Vector, w: Vector) -> Vector:
        """J(x)ᵀw; J(x)x = F(x), since F has degree one."""
        return kernel.transposed(x, w, *self._policy)

    def linearised(self, x: Vector, v: Vector) -> Vector:
        """J(x)v."""
        kept, Q = kernel.keep(x, *self._policy)
        kept_v, moved = kernel.keep(v, *self._policy)
        total = Q.sum()
        Q, moved = Q / total, moved / total
        flow = kept_v[:, :, None] * Q + kept[:, :, None] * (moved - Q * moved.sum())
        return self.states(flow) - v

    def noise(self, x: Vector, w: Vector) -> Vector:
        """D(x)w of `_noise.noise`."""
        return kernel.noise(x, w, *self._policy)

    def drift_slope(self, x: Vector, w: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of w·F by x_i q_a(i), up to a number for each state."""
        R = self.rows(w)
        return (R @ (x @ self.q))[self.memory].T + kernel.met(self.kept(x), R).sum(0)[:, None]

    def noise_slope(self, x: Vector, v: Vector, w: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of vᵀDw by x_i q_a(i)."""
        return kernel.noise_slope(x, v, w, *self._policy)


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
        push = self.noise(x, p)
        return self.drift(x) + push, push

    def work(self, x: Vector, p: Vector) -> float:
        """pᵀDp, which is -(p·x)' of a solution."""
        return float(p @ self.noise(x, p))


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
        return ratio, R, kept, kernel.met(kept, R)

    def _left(self, R: Rows, met: np.ndarray) -> Vector:
        """Σ_ab q_a(i) R[k, a, b] met[b, a] for the memory k that each state keeps."""
        return kernel.release(kernel.over_heard(R, met.T), self.q, self.memory)

    def backward(self, x: Vector, p: Vector) -> Vector:
        """∂h/∂x."""
        ratio, R, _, met = self._met(x, p)
        return self._left(R, met) / ratio - ((met * met.T).sum() + 1) / 2

    def backward_change(self, x: Vector, p: Vector, change: Vector) -> Vector:
        """The derivative of ∂h/∂x by p in a direction."""
        ratio, R, kept, met = self._met(x, p)
        R_change = self.rows(ratio * change)
        met_change = kernel.met(kept, R_change) - kernel.met(self.kept(x * change / ratio), R)
        left_change = self._left(R_change, met) + self._left(R, met_change)
        return (left_change - self._left(R, met) * change) / ratio - (met * met_change.T).sum()

    def forward(self, x: Vector, p: Vector) -> tuple[Vector, Vector]:
        """∂h/∂p, and by how much it differs from F."""
        ratio, R, kept, met = self._met(x, p)
        moved = self.states(kept[:, :, None] * R * met.T) - x * self._left(R, met) / ratio
        return moved, moved - self.drift(x)

    def slope(self, x: Vector, p: Vector) -> Float[np.ndarray, "own states"]:
        """Derivative of h by q_a(i)."""
        ratio, R, _, met = self._met(x, p)
        return x / ratio * kernel.over_heard(R, met.T)[self.memory].T

    def work(self, x: Vector, p: Vector) -> float:
        """p·∂h/∂p - h, which is -(p·x)' of a solution."""
        met = self._met(x, p)[3]
        return float(p @ self.forward(x, p)[0]) - ((met * met.T).sum() - 1) / 2
