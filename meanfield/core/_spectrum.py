"""Leading eigenvalues of the linearised rate equation of any game, and their derivatives.

Those that `meanfield.spectrum` and `fixed_points` report for policies come from `meanfield._fixed_points.spectrum`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.linalg import eig, lu_factor, lu_solve
from scipy.optimize import linear_sum_assignment
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

from meanfield.core._game import Array, Game
from meanfield.core._rates import jacobian_product
from meanfield.toolbox._errors import ConvergenceError

DENSE_SIZE = 200  # below, LAPACK is faster than Arnoldi iteration
NEARBY, REFINED = 1e-9, 3  # shift from an eigenvalue in inverse iteration, and how often


class Eigenvalues(NamedTuple):
    """Eigenvalues by decreasing real part, with left and right eigenvectors in the shape of x and l·r = 1.

    See Also
    --------
    leading_eigenvalues : returns it
    """

    values: np.ndarray
    left: np.ndarray
    right: np.ndarray


def leading_eigenvalues(game: Game, x: Float[Array, ...], k: int = 1) -> Eigenvalues:
    """The k eigenvalues of J = ∂F/∂x with the largest real parts, on perturbations that keep every class's mass.

    k is at most the number of states minus the number of classes, else ValueError. ConvergenceError where Arnoldi
    iteration can't separate the leading eigenvalues from others close to them.

    LAPACK for small games, else Arnoldi iteration on products with J and Jᵀ (scipy). Runs on the host; `eigenvalue` is
    its differentiable part. In 64 bits eigenvalues of a naming game near -1 may err by 1e-3, since J is almost
    defective there: `meanfield.spectrum` bounds the error and computes in extended precision where it must.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> with jax.enable_x64(True):
    ...     game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    ...     x = core.fixed_point(game, np.array([0.6, 0.4])).composition
    ...     core.leading_eigenvalues(game, x, 2).values.round(3)
    array([-0.2+0.j, -1. +0.j])
    """
    shape, size = x.shape, x.size
    classes, mass = (np.asarray(values).ravel() for values in _classes(game, x))
    part = np.asarray(x, float).ravel() / np.where(mass > 0, mass, 1)
    kept = mass > 0
    directions = int(kept.sum()) - len(np.unique(classes[kept]))
    if not 1 <= k <= directions:
        raise ValueError(f"k = {k}: expected 1 to {directions} eigenvalues")

    def tangent(v: np.ndarray, transpose: bool) -> np.ndarray:
        if transpose:
            return np.where(kept, v - np.bincount(classes, weights=part * v, minlength=size)[classes], 0)
        return np.where(kept, v - part * np.bincount(classes, weights=v, minlength=size)[classes], 0)

    def product(transpose: bool, shift: float, v: np.ndarray) -> np.ndarray:
        v = np.asarray(v).ravel()
        along = tangent(v, transpose)
        image = np.asarray(
            jacobian_product(game, x, jnp.asarray(along.reshape(shape), x.dtype), transpose=transpose), float
        ).ravel()
        return tangent(image, transpose) - shift * (v - along)

    # Directions that change a class's mass come last, below all others
    if size <= max(DENSE_SIZE, 2 * k + 2):
        matrix = np.stack([product(False, 0.0, one) for one in np.eye(size)], axis=1)
        shift = 1 + 2 * np.abs(matrix).sum(0).max()
        matrix -= shift * np.stack([one - tangent(one, False) for one in np.eye(size)], axis=1)
        found: Any = eig(matrix, left=True)
        first = np.lexsort((-found[0].imag, -found[0].real))[:k]
        values = found[0][first]
        left, right = (vectors[:, first].astype(complex) for vectors in (found[1].conj(), found[2]))
        # LAPACK scales rows of states that hardly occur, and so loses eigenvectors
        for n, value in enumerate(values):
            closer = lu_factor(matrix - (value + NEARBY * max(1, abs(value))) * np.eye(size))
            for _ in range(REFINED):
                right[:, n], left[:, n] = lu_solve(closer, right[:, n]), lu_solve(closer, left[:, n], trans=1)
                right[:, n] /= np.linalg.norm(right[:, n])
                left[:, n] /= np.linalg.norm(left[:, n])
    else:
        options: dict[str, Any] = {"v0": np.random.default_rng(0).standard_normal(size)}

        def largest(transpose: bool, shift: float, **which: Any) -> Any:
            operator = LinearOperator((size, size), matvec=partial(product, transpose, shift), dtype=float)
            try:
                return eigs(operator, **options, **which)
            except ArpackError as error:
                raise ConvergenceError(
                    f"leading eigenvalues of a game of {size} states: no convergence of Arnoldi iteration, since many "
                    "eigenvalues lie close to the leading ones; meanfield.spectrum computes in extended precision"
                ) from error

        # Only its size matters; to more digits many eigenvalues near -1 may keep the iteration from an end
        radius = float(np.abs(largest(False, 0.0, k=1, which="LM", tol=0.1, return_eigenvectors=False))[0])
        leading = {"k": k + 1, "which": "LR", "ncv": max(40, 2 * k + 4)}
        (values, right), (others, left) = (largest(flag, 1 + 2 * radius, **leading) for flag in (False, True))
        left = left[:, linear_sum_assignment(np.abs(values[:, None] - others))[1]]  # each once: some may be equal
    order = np.lexsort((-values.imag, -values.real))[:k]
    right, left = right[:, order].T, left[:, order].T
    left = left / (left * right).sum(-1, keepdims=True)
    return Eigenvalues(values[order], left.reshape(-1, *shape), right.reshape(-1, *shape))


@eqx.filter_jit
def _classes(game: Game, x: Array) -> tuple[Array, Array]:
    """The class of each state, and its mass; one program, where each of their operations would be compiled."""
    return game.classes, game.masses(x)


def eigenvalue(game: Game, x: Float[Array, ...], left: Float[Array, ...], right: Float[Array, ...]) -> Float[Array, ""]:
    """The eigenvalue l·J(x)r that belongs to these eigenvectors; it has derivatives with respect to the game and x.

    By perturbation theory dλ = l·dJ r for a simple eigenvalue with l·r = 1, so the eigenvectors count as constants.
    `left` and `right` are real: for a complex pair Re λ is the value for the two real parts minus the value for the two
    imaginary parts. For the total derivative at a fixed point that moves, compute x = `fixed_point` (…) inside the
    function that you differentiate.

    Examples
    --------
    >>> import jax
    >>> from meanfield import core
    >>> q = np.array([0.6, 0.9, 0.5, 0.5, 0.1])
    >>> with jax.enable_x64(True):
    ...     game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    ...     x = core.fixed_point(game, np.array([0.6, 0.4])).composition
    ...     found = core.leading_eigenvalues(game, x)
    ...     print(core.eigenvalue(game, x, found.left[0].real, found.right[0].real).round(3))
    -0.2
    """
    left, right = jax.lax.stop_gradient(left), jax.lax.stop_gradient(right)
    return jnp.vdot(left, jacobian_product(game, x, right))
