"""The reduced Jacobian on kept memories and said words, where it is half as large and free of trivial modes.

A perturbation v with Σv = 0 enters J + I only through u = spoken(v), the weight of agents by the memory they keep and
the word they say (see `spoken`):

    (J + I) v = heard(u, Q) + heard(F, Σ_m s_m Σ_k u_m(k)),   F = spoken(x).

In groups P(b | a) takes the place of Q_b, and its change the place of the change of Q_b; J is in units of `pace`. So
B u = spoken(heard(u, Q) + heard(F, Σ_m s_m Σ_k u_m(k))) has the eigenvalues of J + I except for zeros. Zero is
always an eigenvalue of J + I: it belongs to differences between agents that the next word does not show.

Works on arrays of any numbers, so one definition serves float64 and extended precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from meanfield._population.mixture import Groups, Mixture
from meanfield.core._space import MemorySpace

Product = Callable[[np.ndarray], np.ndarray]
Numbers = Any  # numpy.ndarray of float64, or of objects that add and multiply


class ReducedJacobian:
    """B on vectors u of M·K·W numbers, for M kinds of agents and K memories of at most H - 1 interactions.

    Directions that leave the simplex, Σ_k u_m(k) ≠ 0 for a kind m, are projected out, which adds the eigenvalue 0. x is
    the composition, shape (M, S); `number` converts a float into the numbers to compute with. Several matrices of one
    shape, for x and arrays of the mixture with an axis before the others, are applied to u of shape (…, n, M·K·W).
    """

    def __init__(self, mixture: Mixture | Groups, x: np.ndarray, space: MemorySpace, number: Any = np.float64) -> None:
        self._space = space
        self._n_kept = space.n_full // space.n_digits  # memories of exactly H - 1 interactions
        # Nobody returns to a memory that is shorter than the shortest one
        lengths = [h for h in range(space.memory_length) if x[..., space.offset(h) : space.offset(h + 1)].any()]
        first = space.offset(min([*lengths, space.memory_length - 1]))
        start = first if lengths else space.offset(space.memory_length)
        q = _rows_of_one(_converted(mixture.q, number))
        x = _converted(x[..., start:], number)
        self.shape = (x.shape[-2], space.offset(space.memory_length) - first, space.n_words)
        self.size = int(np.prod(self.shape))
        self._spoken = self._kept((x / x.sum(-1, keepdims=True))[..., None] * q[..., start:, :])
        self._share = _converted(mixture.share, number)
        Q = _rows_of_one(self._said_by_all(self._spoken) + _converted(mixture.committed, number))
        if isinstance(mixture, Groups):
            weight, heard = (_converted(values, number) for values in (mixture.weight, mixture.heard))
            mixture = mixture._replace(weight=weight, heard=heard)
        self._voices, self._slope = mixture.voices, mixture.heard_slope(Q)
        # What an agent says next, by what it keeps, has just said, and hears; `_next` with the probability of that
        then = (*q.shape[:-3], *self.shape, space.n_words, space.n_words)
        self._then = q[..., 1 + space.n_digits * first :, :].reshape(then)
        self._next = self._then * mixture.heard_from(Q)[..., None, None, :, :, None]
        self._answers = [
            self._moved(self._spoken, self._then * self._slope[..., None, None, :, :, c, None])
            for c in range(space.n_words)
        ]

    def apply(self, u: Numbers) -> Numbers:
        """B u, shape (M·K·W,), or for each row of u."""
        u = u.reshape(*u.shape[:-1], *self.shape)
        change = self._said_by_all(u)[..., None, None, None]
        answers = (change[..., c, :, :, :] * answer for c, answer in enumerate(self._answers))
        image = self._moved(u, self._next) + sum(answers)
        image = image - self._spoken * image.sum((-2, -1), keepdims=True)
        return image.reshape(*image.shape[:-3], self.size)

    def apply_transposed(self, u: Numbers) -> Numbers:
        """Bᵀu, shape (M·K·W,)."""
        u = u.reshape(self.shape)
        u = u - (self._spoken * u).sum((-2, -1), keepdims=True)
        heard = np.array([(answer * u).sum() for answer in self._answers])
        return ((self._next * self._after(u)).sum((3, 4)) + self._share[:, None, None] * heard).ravel()

    def products(self) -> tuple[Product, Product]:
        """`apply` and `apply_transposed` of float64 as products with matrices, several times faster."""
        kinds, rows, W = self.shape
        children = np.arange(rows * self._space.n_digits)
        shorter = len(children) - self._space.n_full
        forgetting = rows - self._n_kept + (children - shorter) % self._n_kept
        kept = np.where(children < shorter, rows - shorter + children, forgetting)
        target = (W * kept[:, None] + np.arange(W)).reshape(rows, W, W, W)
        source = np.broadcast_to(np.arange(rows * W).reshape(rows, W, 1, 1), target.shape)
        kind = rows * W * np.arange(kinds)[:, None]
        places = ((kind + target.ravel()).ravel(), (kind + source.ravel()).ravel())
        step = csr_array((self._next.ravel(), places), shape=(self.size, self.size))
        step_back = step.T.tocsr()
        answers = np.stack([answer.ravel() for answer in self._answers], axis=1)
        says = (self._share[:, None, None, None] * np.eye(W)).repeat(rows, axis=1).reshape(-1, W)
        ones = np.eye(kinds).repeat(rows * W, axis=0)
        spoken = ones * self._spoken.reshape(-1, 1)

        def product(u: np.ndarray) -> np.ndarray:
            image = step @ u + answers @ (u @ says)
            return image - spoken @ (image @ ones)

        def transposed(u: np.ndarray) -> np.ndarray:
            u = u - ones @ (u @ spoken)
            return step_back @ u + says @ (u @ answers)

        return product, transposed

    def between(self, left: Numbers, right: Numbers) -> Numbers:
        """Re l·Br for complex vectors of float64, one a row."""
        image = self.apply(np.stack([right.real, right.imag]))
        return (left * (image[0] + 1j * image[1])).sum(-1).real

    def shift(self, left: Numbers, right: Numbers) -> Numbers:
        """A bound of |l·δB r| for a relative change of 1 of each entry of x; l·r = 1.

        x acts through F, entry by entry, and through Q.
        """
        left, right = (side.reshape(*side.shape[:-1], *self.shape) for side in (left, right))
        after = self._after(left - (self._spoken * left).sum((-2, -1), keepdims=True))
        answers = (self._then * after).sum(-1)
        change = self._said_by_all(right)[..., None, None, :]
        heard, most = ((self._slope * one).sum(-1)[..., None, None, :, :] for one in (change, np.abs(change)))
        through_memories = np.abs((answers * heard).sum(-1)) + (self._voices - 1) * (np.abs(answers) * most).sum(-1)
        through_words = np.abs((right[..., None, None] * self._next * after).sum((-5, -4, -3, -1)))
        return (self._spoken * through_memories).sum((-3, -2, -1)) + self._voices * through_words.sum(-1)

    def _after(self, u: Numbers) -> Numbers:
        """Values by (kind, memory kept, word) where an agent stands next, by what it said, hears and says then."""
        rows, W = self.shape[1:]
        shorter = rows * self._space.n_digits - self._space.n_full
        longest = [u[..., -self._n_kept :, :]] * self._space.n_digits
        after = np.concatenate([u[..., rows - shorter :, :], *longest], axis=-2)
        return after.reshape(*u.shape[:-2], rows, W, W, W)

    def _moved(self, u: Numbers, then: Numbers) -> Numbers:
        """Weights by (kind, memory kept, word said) one interaction after `u`."""
        moved = u[..., None, None] * then
        return self._kept(moved.reshape(*moved.shape[:-4], -1, self._space.n_words))

    def _kept(self, said: Numbers) -> Numbers:
        """Weights by (kind, memory, word), of the longest memories or of all, to those by (kind, memory kept, word)."""
        full, shorter = said[..., -self._space.n_full :, :], said[..., : -self._space.n_full, :]
        kept = full.reshape(*said.shape[:-2], self._space.n_digits, self._n_kept, -1).sum(-3)
        if shorter.shape[-2]:
            longest = shorter[..., -self._n_kept :, :] + kept
            kept = np.concatenate([shorter[..., : -self._n_kept, :], longest], axis=-2)
        never = said[..., : self.shape[1] - kept.shape[-2], :] * 0
        return np.concatenate([never, kept], axis=-2)

    def _said_by_all(self, spoken: Numbers) -> Numbers:
        return (self._share[..., None] * spoken.sum(-2)).sum(-2)


def _converted(values: np.ndarray, number: Any) -> Numbers:
    if number is np.float64:
        return np.asarray(values, dtype=np.float64)
    return np.array([number(float(value)) for value in np.ravel(values)], dtype=object).reshape(np.shape(values))


def _rows_of_one(q: Numbers) -> Numbers:
    """`q` with the largest entry of each row replaced by 1 minus the others.

    Rows of a table sum to 1 only up to rounding, which would move the eigenvalues of an almost defective J.
    """
    largest = q.argmax(-1)[..., None]
    excess = q.sum(-1, keepdims=True) - 1
    q = q.copy()
    np.put_along_axis(q, largest, np.take_along_axis(q, largest, -1) - excess, -1)
    return q
