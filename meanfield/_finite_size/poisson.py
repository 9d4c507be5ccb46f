"""The Poisson equation of an agent's Markov chain, which differentiates everything stationary.

For partners of word share Q let p be the stationary law of the kernel A(Q), f = qᵀp the word share of the agent, and

    (I - A(Q)) y = r - (p·r) 1.

y(i) is the contribution of an agent in memory i to the sum of r over its future, compared with the average agent. Any
change δA of the kernel changes the mean p·r by p·δA y, so one solution gives the derivatives with respect to all
entries of the policy. With r = q_0,

    ∂f_0/∂q_a(i) = p_i (δ_a0 + Σ_b Q_b y(Γ(i, a, b))),   df_0/dQ_b = Σ_i p_i Σ_a q_a(i) y(Γ(i, a, b)).

The equation is solved on flows (see `flow_successors`), W times fewer than full memories. Source: Meyer, The condition
of a finite Markov chain and perturbation bounds, SIAM J. Algebraic Discrete Methods 1, 273 (1980).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import lu_factor, lu_solve
from scipy.linalg.lapack import dgecon
from scipy.optimize import root_scalar
from scipy.sparse.linalg import LinearOperator, eigs, gmres
from scipy.special import expit

from meanfield._finite_size.noise import outcome_values
from meanfield._fixed_points.closed_classes import closed_classes, flow_successors, said_next
from meanfield._fixed_points.stationary_law import StationaryLaw
from meanfield._population.drift import mixture_drift, mixture_linearised_drift
from meanfield._population.memory import MemorySpace
from meanfield._population.mixture import Mixture
from meanfield.toolbox._errors import ConvergenceError, InputError

DENSE_FLOWS = 2048  # those of H = 6, factorised in a second; above, Krylov iteration takes less time and memory
MIN_RECIPROCAL_CONDITION = 1e-11  # solutions then are good to 1e-5 at worst
KRYLOV_TOLERANCE = 1e-12
KRYLOV_RESTART, KRYLOV_CYCLES = 100, 10
DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi
SAME_EIGENVALUE = 1e-6
DEFECTIVE = 1e-11  # |l·r|/(|l||r|); derivatives are good to about 1e-16 over this number
MAX_POLISH = 0.1  # of logit Q: a fold further off is another one


class PoissonEquation:
    """(I - A(Q)) y = r - (p·r) 1 on the full memories of one policy, for one Q and many r.

    p is the stationary law of A(Q), zero outside the full memories; Q is the word share of the partners. InputError if
    the chain has several closed classes, or hardly ever leaves a habit: then a change of the policy by dq changes p by
    more than about 1e11·dq, if p has a derivative at all.
    """

    def __init__(
        self,
        q: Float[np.ndarray, "states words"],
        p: Float[np.ndarray, " states"],
        Q: Float[np.ndarray, " words"],
        space: MemorySpace,
    ) -> None:
        n_classes = len(closed_classes(q, space, heard=tuple(np.flatnonzero(Q > 0).tolist())))
        if n_classes > 1:
            raise InputError(
                f"policy has {n_classes} sets of memories that agents never leave: expected one, since "
                "the stationary law jumps when a transition between several opens"
            )
        self._p, self._Q, self._full = p, Q, space.offset(space.memory_length)
        self._successors, self._said = flow_successors(space), said_next(q, space)
        self._law = p[self._full :].reshape(-1, space.n_words).sum(1)
        self._factors = self._factorised() if len(self._law) <= DENSE_FLOWS else None

    def solve(self, r: Float[np.ndarray, " states"]) -> Float[np.ndarray, " states"]:
        """y on the full memories, 0 elsewhere. It is fixed up to a constant, which no derivative depends on."""
        centred = (r - self._p @ r)[self._full :].reshape(-1, len(self._Q))
        right = centred @ self._Q
        flows = self._iterated(right) if self._factors is None else lu_solve(self._factors, right)
        y = centred + (self._said * flows[self._successors]).sum(2)
        return np.concatenate([np.zeros(self._full), y.ravel()])

    def _factorised(self) -> tuple[np.ndarray, np.ndarray]:
        n = len(self._law)
        # The projector on the stationary law makes the matrix regular and leaves the solution with mean 0.
        matrix = np.eye(n) + self._law
        for heard, word in np.ndindex(self._said.shape[1:]):
            matrix[np.arange(n), self._successors[:, heard, word]] -= self._Q[heard] * self._said[:, heard, word]
        factors = lu_factor(matrix)
        reciprocal, _ = dgecon(factors[0], np.abs(matrix).sum(0).max())
        if reciprocal < MIN_RECIPROCAL_CONDITION:
            raise _no_derivative(f"reciprocal condition {reciprocal:.0e}")
        return factors

    def _iterated(self, right: np.ndarray) -> np.ndarray:
        n = len(right)

        def product(y: np.ndarray) -> np.ndarray:
            y = y.ravel()
            return y - np.einsum("fba,fba,b->f", self._said, y[self._successors], self._Q) + self._law @ y

        operator = LinearOperator((n, n), matvec=product, dtype=float)
        options = {"rtol": KRYLOV_TOLERANCE, "restart": KRYLOV_RESTART, "maxiter": KRYLOV_CYCLES}
        y, failed = gmres(operator, right, **options)
        if failed:
            raise _no_derivative(f"no solution for {n} flows in {KRYLOV_RESTART * KRYLOV_CYCLES} Krylov steps")
        return y


def _no_derivative(why: str) -> InputError:
    return InputError(
        f"policy has habits that its agents hardly ever leave ({why}): expected a stationary law whose derivatives "
        "float64 can resolve"
    )


class ShareResponse(NamedTuple):
    """How the share f of the first word that an agent says depends on its policy and on its partners."""

    share: float  # f = Σ_i p_i q_0(i)
    slope: float  # df/dQ_0, with Q_1 = 1 - Q_0
    gradient: Float[np.ndarray, " states"]  # ∂f/∂q(i) at fixed Q, where q_0(i) grows as q_1(i) falls


def share_response(
    equation: PoissonEquation,
    q: Float[np.ndarray, "states two"],
    p: Float[np.ndarray, " states"],
    Q: Float[np.ndarray, " two"],
    space: MemorySpace,
) -> ShareResponse:
    """Share, slope and gradient for a policy of two words, from one solution of the Poisson equation."""
    after = outcome_values(equation.solve(q[:, 0]), space)
    by_heard = np.einsum("i,ia,iab->b", p, q, after)
    by_said = after @ Q
    gradient = p * (1 + by_said[:, 0] - by_said[:, 1])
    return ShareResponse(float(p @ q[:, 0]), float(by_heard[0] - by_heard[1]), gradient)


class Fold(NamedTuple):
    """A fold of the equilibria Q = (1 - c) f(Q) + c e_w of agents of two words with a fraction c committed to w."""

    committed: float  # c at the fold
    gradient: Float[np.ndarray, " states"]  # ∂c/∂q(i), where q_0(i) grows as q_1(i) falls
    composition: Float[np.ndarray, " states"]  # of the uncommitted agents


def polished_fold(q: Float[np.ndarray, "states two"], space: MemorySpace, word: int, logit: float) -> Fold:
    """The fold near a logit of Q_0, and its gradient.

    With v the other word c(Q) = 1 - Q_v/f_v(Q). At the fold c has an extremum, f_v/Q_v = df_v/dQ_v, so its derivative
    with respect to the policy is the one at fixed Q.
    """
    law = StationaryLaw(q, space, closed_classes(q, space, heard=(0, 1))[0])

    def response(logit: float) -> tuple[ShareResponse, float, float, np.ndarray]:
        Q = np.array([expit(logit), expit(-logit)])
        p = law.composition(Q)
        return (
            share_response(PoissonEquation(q, p, Q, space), q, p, Q, space),
            Q[1 - word],
            float(p @ q[:, 1 - word]),
            p,
        )

    def turning(logit: float) -> float:
        said, Q_other, f_other, _ = response(logit)
        return f_other / Q_other - said.slope

    found = root_scalar(turning, x0=logit, x1=logit + 1e-4, xtol=1e-12)
    if not found.converged or abs(found.root - logit) > MAX_POLISH:
        _, Q_other, f_other, _ = response(logit)
        raise ConvergenceError(
            f"the fold at logit Q = {logit:.4g} could not be polished; error.best is the critical mass there",
            best=1 - Q_other / f_other,
        )
    said, Q_other, f_other, p = response(found.root)
    by_first = (1 if word == 1 else -1) * Q_other / f_other**2
    return Fold(1 - Q_other / f_other, by_first * said.gradient, p)


class EigenvalueResponse(NamedTuple):
    """The derivative of the leading eigenvalue of a fixed point of two words with respect to the policy."""

    value: complex  # λ, per unit of time
    direct: Float[np.ndarray, " states"]  # ∂Re λ/∂q(i) at a fixed composition, where q_0(i) grows as q_1(i) falls
    indirect: Float[np.ndarray, " states"]  # the contribution of the moving fixed point


def eigenvalue_response(
    equation: PoissonEquation, q: Float[np.ndarray, "states two"], x: Float[np.ndarray, " states"], space: MemorySpace
) -> EigenvalueResponse:
    """Leading eigenvalue λ of the fixed point x and its gradient.

    With left and right eigenvectors l and r, l·r = 1, dλ = l·(dJ)r. The fixed point moves by dx with J dx = -∂_qF dq,
    so the part h·dx of dλ equals -z·∂_qF dq with Jᵀz = h. On the tangent space J = A(Q)ᵀ - I + m q_0ᵀ with m = Σ_ia x_i
    q_a(i) (e_Γ(i,a,0) - e_Γ(i,a,1)), so z takes two solutions of the Poisson equation. InputError if λ is defective or
    degenerate, or another fixed point is about to merge with this one.
    """
    value, left, right = _leading_eigenvectors(q, x, space)
    (left_real, left_imaginary, right_real, right_imaginary) = (
        jnp.asarray(part) for part in (left.real, left.imag, right.real, right.imag)
    )

    def eigenvalue(x: Array, q: Array) -> Array:
        alone = Mixture.alone(q)
        real = left_real @ mixture_linearised_drift(right_real[None], x[None], alone, space)[0]
        return real - left_imaginary @ mixture_linearised_drift(right_imaginary[None], x[None], alone, space)[0]

    h, direct = (np.asarray(g) for g in jax.grad(eigenvalue, argnums=(0, 1))(jnp.asarray(x), jnp.asarray(q)))
    solutions = [equation.solve(h), equation.solve(q[:, 0])]
    by_heard = [np.einsum("i,ia,iab->b", x, q, outcome_values(y, space)) for y in solutions]
    (of_h, slope) = (float(heard[0] - heard[1]) for heard in by_heard)
    if abs(1 - slope) < SAME_EIGENVALUE:
        raise InputError(f"fixed_point is at a fold (df/dQ = 1 to {abs(1 - slope):.0e}): its derivatives are infinite")
    z = jnp.asarray(-of_h / (1 - slope) * solutions[1] - solutions[0])

    def along(q: Array) -> Array:
        return z @ mixture_drift(jnp.asarray(x)[None], Mixture.alone(q), space)[0]

    indirect = -np.asarray(jax.grad(along)(jnp.asarray(q)))
    return EigenvalueResponse(value, direct[:, 0] - direct[:, 1], indirect[:, 0] - indirect[:, 1])


def _leading_eigenvectors(q: np.ndarray, x: np.ndarray, space: MemorySpace) -> tuple[complex, np.ndarray, np.ndarray]:
    """The leading eigenvalue of J at x on the tangent space, left and right eigenvectors with l·r = 1."""

    alone = Mixture.alone(q)

    # As in `leading_eigenvalues`: J + I on Σv = 0, and -3 for the direction that leaves the simplex.
    def shifted(v: np.ndarray) -> np.ndarray:
        tangent = v - x * v.sum()
        return mixture_linearised_drift(tangent[None], x[None], alone, space)[0] + tangent - 3 * x * v.sum()

    def transposed(w: np.ndarray) -> np.ndarray:
        after = outcome_values(w, space)
        moved = np.einsum("ia,iab,b->i", q, after, x @ q) + q @ np.einsum("i,ia,iab->b", x, q, after)
        return moved - x @ moved - 3 * (x @ w)

    (value, *_), (right, *_) = _largest(shifted, len(x))
    values, vectors = _largest(transposed, len(x))
    same = int(np.argmin(np.abs(values - value)))
    left, overlap = vectors[same], vectors[same] @ right
    # What an agent has forgotten in H interactions makes J defective at λ = -1, which rounding spreads over a circle.
    forgotten = abs(value) < 5 * np.finfo(float).eps ** (1 / space.memory_length)
    if forgotten or abs(values[same] - value) > SAME_EIGENVALUE or abs(overlap) < DEFECTIVE:
        raise InputError(
            f"fixed_point has a defective or degenerate leading eigenvalue {value.real - 1:.6g} (overlap of its "
            f"eigenvectors {abs(overlap):.0e}): expected a simple one, which has derivatives"
        )
    return complex(value) - 1, left / overlap, right


def _largest(product: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues with the largest real parts, in falling order, and their eigenvectors, one a row, of length 1."""
    if n <= DENSE_STATES:
        values, vectors = np.linalg.eig(np.stack([product(column) for column in np.eye(n)], axis=1))
    else:
        operator = LinearOperator((n, n), matvec=lambda v: product(v.ravel()), dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        found: Any = eigs(operator, k=3, which="LR", ncv=min(60, n - 1), v0=start, maxiter=2000)
        values, vectors = found
    order = np.lexsort((-values.imag, -values.real))[:3]
    return values[order], vectors[:, order].T
