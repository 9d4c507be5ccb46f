"""Products of drift and noise with vectors.

With kept[k, a] = Σ_i x_i q_a(i), summed over the states i that keep the memory k, and R[k, a, b] the value of the state
that follows k after saying a and hearing b, all products of `drift` and `noise` are sums over k. They are called
thousands of times and therefore compiled (`path_kernel`).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float

from meanfield._finite_size import path_kernel as kernel
from meanfield._numerics.course import Vector
from meanfield.core._space import MemorySpace

Rows = Float[np.ndarray, "kept own partner"]


@no_type_check  # of shapes, under test: products are called thousands of times
class PathEquations:
    """Drift and noise of one policy q, shape (S, W)."""

    def __init__(self, q: Float[np.ndarray, "states words"], space: MemorySpace) -> None:
        self.space = space
        self.q = np.array(q, order="C")
        self.n_words = space.n_words
        self.n_kept = space.offset(space.memory_length)
        self.memory = (space.successors() - 1) // space.n_digits
        self._policy = self.q, self.memory, self.n_kept

    def rows(self, w: Vector) -> Rows:
        """R."""
        return w[1:].reshape(-1, self.n_words, self.n_words)

    def drift(self, x: Vector) -> Vector:
        """F(x), the right-hand side of the rate equation."""
        return kernel.drift(x, *self._policy)

    def transposed(self, x: Vector, w: Vector) -> Vector:
        """J(x)ᵀw; J(x)x = F(x), since F has degree one."""
        return kernel.transposed(x, w, *self._policy)

    def noise(self, x: Vector, w: Vector) -> Vector:
        """D(x)w, for encounters at the times of a Poisson process; see `core.noise_product`."""
        return kernel.noise(x, w, *self._policy)
