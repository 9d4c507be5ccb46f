"""Leading eigenvalues of the reduced Jacobian in extended precision.

Agents forget in H interactions, so the Jacobian is almost defective near λ = -1: an error of 1e-16 moves such
eigenvalues by its fifth or tenth root. Two-sided Lanczos iteration in hundreds of bits needs only products, O(S) each,
and gives left and right vectors, which determine the error of each eigenvalue.

Source: Saad, Numerical Methods for Large Eigenvalue Problems (2011), ch. 6 and 7.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flint
import numpy as np

BITS_PER_INTERACTION = 96
MIN_BITS = 384
STEPS = (8, 12, 18, 24, 32, 40, 52, 64)  # of Lanczos, after which eigenvalues are compared
ENOUGH = 1e-9  # error at which the iteration ends
NEAR = 1e-4  # eigenvalues that still move by more are not worth an error
POLISH = 5  # Newton steps, from 30 digits to more than there are
MARGIN = 10.0  # between the error to first order and the one reported

Numbers = Any  # numpy.ndarray of flint.arb


class Ritz(NamedTuple):
    """The result of the iteration: the first k eigenvalues by decreasing real part, or as many as there are."""

    values: np.ndarray  # eigenvalues, complex
    errors: np.ndarray  # a bound of the distance of each to an eigenvalue of the matrix
    left: np.ndarray  # eigenvectors, one a row, with l·r = 1
    right: np.ndarray


def extended_eigenvalues(build: Callable[[Any], Any], memory_length: int, k: int) -> Ritz:
    """The k eigenvalues with the largest real parts, from at most 64 steps.

    An eigenvalue with several eigenvectors is found once. `build` makes the matrix, an object with `size`, `apply` and
    `apply_transposed`, from a converter of floats into numbers. The precision grows with `memory_length`.
    """
    with flint.ctx.workprec(max(MIN_BITS, BITS_PER_INTERACTION * memory_length)):
        iteration, before = _Lanczos(build(flint.arb)), []
        for steps in STEPS:
            iteration.advance(steps)
            leading = iteration.eigenvalues(k)
            last, before, previous = iteration.ended or steps == STEPS[-1], leading, before
            if not last and _apart(leading, previous) > NEAR:
                continue
            found = iteration.ritz(leading)
            if last or (len(found.errors) >= k and (found.errors <= ENOUGH).all()):
                return found
        raise AssertionError


class _Lanczos:
    """Bases v, w of Krylov spaces of the matrix and its transpose with w_i·v_j = δ_ij, and T = wᵀBv, tridiagonal."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        random = np.random.default_rng(0)
        v, w = (_numbers(random.standard_normal(matrix.size)) for _ in range(2))
        # From the range of B, where nothing is left of what B maps to zero at once
        self._next = matrix.apply(v), matrix.apply_transposed(w)
        self._v: list[Numbers] = []
        self._w: list[Numbers] = []
        self._diagonal: list[flint.arb] = []
        self._beside: list[tuple[flint.arb, flint.arb]] = []
        self.ended = False

    def advance(self, steps: int) -> None:
        """Go on to that many steps, or until the spaces are invariant."""
        while len(self._v) < steps and not self.ended:
            v, w = self._next
            overlap = w @ v
            smallest, size_v, size_w = flint.arb(2) ** (-flint.ctx.prec // 2), _norm(v), _norm(w)
            if abs(overlap) <= smallest * size_v * size_w or size_v <= smallest or size_w <= smallest:
                self.ended = True
                return
            below = abs(overlap).sqrt().mid()
            above = (overlap / below).mid()
            self._beside.append((below, above))
            self._v.append(_middles(v / below))
            self._w.append(_middles(w / above))
            self._step()

    def _step(self) -> None:
        v, w = self._v[-1], self._w[-1]
        right, left = self._matrix.apply(v), self._matrix.apply_transposed(w)
        alpha = (w @ right).mid()
        self._diagonal.append(alpha)
        right, left = right - alpha * v, left - alpha * w
        if len(self._v) > 1:
            below, above = self._beside[-1]
            right, left = right - above * self._v[-2], left - below * self._w[-2]
        self._next = _middles(right), _middles(left)

    def ritz(self, leading: list[Any]) -> Ritz:
        """The eigenvalues of T as eigenvalues of the matrix, with errors and vectors."""
        errors = np.full(len(leading), np.inf)
        left, right = np.zeros((2, len(leading), self._matrix.size), complex)
        for i, value in enumerate(leading):
            errors[i], left[i], right[i] = self._error(value)
        exact = np.array([complex(value) for value in leading])
        return Ritz(exact, np.minimum(errors, self._worst_error()), left, right)

    def eigenvalues(self, k: int) -> list[Any]:
        """The first k of T: roots of its characteristic polynomial, far faster than by QR iteration."""
        before, polynomial = flint.acb_poly([0]), flint.acb_poly([1])
        for i, (alpha, (below, above)) in enumerate(zip(self._diagonal, self._beside, strict=True)):
            after = flint.acb_poly([-alpha, 1]) * polynomial
            if i:
                after -= before * (below * above)
            before, polynomial = polynomial, flint.acb_poly([c.mid() for c in after.coeffs()])
        try:
            roots = polynomial.roots() if self._diagonal else []
        except ValueError:  # too close to be told apart
            return _leading(self._tridiagonal().eig(algorithm="approx"), k)
        # These are isolated, but eigenvectors by recurrence need all digits
        slope = polynomial.derivative()
        leading = _leading([root.mid() for root in roots], k)
        for _ in range(POLISH):
            leading = [(root - polynomial(root) / slope(root)).mid() for root in leading]
        return leading

    def _tridiagonal(self) -> Any:
        n = len(self._diagonal)
        T = flint.acb_mat(n, n)
        for i, (alpha, (below, above)) in enumerate(zip(self._diagonal, self._beside, strict=True)):
            T[i, i] = alpha
            if i:
                T[i, i - 1], T[i - 1, i] = below, above
        return T

    def _error(self, value: Any) -> tuple[float, np.ndarray | float, np.ndarray | float]:
        """|l|·|Br - μr| / |l·r|, a bound to first order of the distance to an eigenvalue; l and r with l·r = 1."""
        y, z = self._vectors(value)
        overlap = sum((a * b for a, b in zip(z, y, strict=True)), flint.acb(0)).mid()
        if not abs(overlap) > 0:
            return np.inf, 0.0, 0.0
        scale = 1 / overlap.sqrt()
        left, right = (_combined(basis, weights, scale) for basis, weights in ((self._w, z), (self._v, y)))
        rounding = flint.arb(2) ** (-flint.ctx.prec // 2)
        residual = abs(y[-1] * scale) * abs(self._next[0]) + rounding * abs(right)
        return MARGIN * float((abs(left) @ residual).mid()), left.astype(complex), right.astype(complex)

    def _vectors(self, value: Any) -> tuple[list[Any], list[Any]]:
        """Right and left eigenvectors of T from its rows; the last row holds for an eigenvalue."""
        y, z = [flint.acb(1)], [flint.acb(1)]
        before: tuple[Any, Any] = (0, 0)
        for i, (below, above) in enumerate(self._beside[1:]):
            rest = value - self._diagonal[i]
            right = (rest * y[-1] - before[0]) / above
            left = (rest * z[-1] - before[1]) / below
            before = (below * y[-1], above * z[-1])
            y.append(right.mid())
            z.append(left.mid())
        return y, z

    def _worst_error(self) -> float:
        """Elsner's bound on rounding errors of the eigenvalues of T, which are the matrix's once the iteration has
        ended.
        """
        n = len(self._diagonal)
        if not self.ended or not n:
            return np.inf
        beside = [entry for pair in self._beside[1:] for entry in pair]
        size = 1 + max(float(abs(entry).mid()) for entry in [*self._diagonal, *beside])
        return float(2 * size * 2.0 ** (-flint.ctx.prec / 2 / n))


def _apart(values: list[Any], others: list[Any]) -> float:
    if len(values) != len(others):
        return np.inf
    return max((abs(complex(a) - complex(b)) for a, b in zip(values, others, strict=True)), default=0.0)


def _leading(values: list[Any], k: int) -> list[Any]:
    return sorted(values, key=lambda z: (-float(z.real.mid()), -float(z.imag.mid())))[:k]


def _numbers(values: np.ndarray) -> Numbers:
    return np.array([flint.arb(float(value)) for value in values], dtype=object)


def _middles(numbers: Numbers) -> Numbers:
    """Without their radii, which would grow from step to step: rounding is accounted for in the end."""
    return np.array([number.mid() for number in numbers], dtype=object)


def _norm(numbers: Numbers) -> Any:
    return (numbers @ numbers).sqrt()


def _combined(basis: list[Numbers], weights: list[Any], scale: Any) -> Numbers:
    """Σ_j scale · weights_j · basis_j, complex."""
    scaled = [(scale * weight).mid() for weight in weights]
    real, imaginary = (
        sum(part * vector for part, vector in zip(parts, basis, strict=True))
        for parts in ([weight.real for weight in scaled], [weight.imag for weight in scaled])
    )
    return np.array([flint.acb(a.mid(), b.mid()) for a, b in zip(real, imaginary, strict=True)], dtype=object)
