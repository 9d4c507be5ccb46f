"""Leading eigenvalues of the reduced Jacobian at a composition."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.linalg import eig
from scipy.sparse.linalg import ArpackError, LinearOperator, eigs

from meanfield._fixed_points.reduced_jacobian import ReducedJacobian
from meanfield._numerics.extended_eigenvalues import extended_eigenvalues
from meanfield._numerics.stability import MARGINAL
from meanfield._population.compositions import validate_composition
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.population import Population
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import as_games
from meanfield._reactions.modes import modes_at
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._columns import Columns, labelled

DENSE_SIZE = 100  # below, LAPACK is faster than Arnoldi and finds every eigenvalue
# Vectors and restarts of Arnoldi iteration, which takes one to five where the leading eigenvalues stand apart. Where
# many lie close together 30 vectors take hundreds or do not converge; 120 took 12 at most. LAPACK is faster then, for
# matrices that are not too large.
VECTORS, MORE_VECTORS = (30, 15), (120, 100)
LARGEST_DENSE = 1024
ENOUGH = 3e-7  # a larger error asks for extended precision
TOGETHER = 64  # matrices, at up to a megabyte each
EPS = np.finfo(float).eps
FLOOR = 1e-14  # smaller probabilities may be rounding of 0
TRIALS = 2  # random changes of x within its error
PAIR = 1e-6  # relative distance of eigenvalues that are alike
MARGIN = 10.0  # between the error to first order and the one reported


def spectrum(
    policy: xr.Dataset | Population | ReactionModel, composition: xr.DataArray | np.ndarray, *, k: int | None = None
) -> xr.Dataset:
    """Leading eigenvalues of the reduced Jacobian, in order of decreasing real part.

    For policies J = A(Q)ᵀ - I + (∂A/∂Q ᵀ x) qᵀ acts on perturbations with Σε = 0: [004] Eqs. 34-38, for any
    composition x.
    For a reaction model J acts on perturbations that keep the mass of each conserved class and leave empty classes
    empty.

    Matrix-free Arnoldi iteration finds the eigenvalues, or LAPACK where J is small. Near λ = -1 J is almost defective,
    since agents forget everything in H interactions; eigenvalues that float64 can't resolve are computed in
    extended precision, where an eigenvalue with several eigenvectors is listed once.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair, a population, or a reaction model. In a population Σε = 0 for each kind
        of agents.
    composition
        Fractions of agents in each state, shape (S,), for a population (M, S); rows sum to 1. A DataArray is aligned by
        its coordinates; for a stack it may have its dims too, else all share it. It need not be a fixed point.
    k
        How many eigenvalues, 1 ≤ k ≤ M(S - 1). Default: 4, or all where there are fewer; one more where the last would
        be one of a conjugate pair, except in a stack.

    Returns
    -------
    Dataset over `mode` with `eigenvalue` and `eigenvalue_imaginary`, per unit of time (two units are a round for
    policies), `eigenvalue_error`, a bound of the error for the table as given, and for policies
    `eigenvalue_floor_shift`, the shift to first order if entries below 1e-14 are set to 0. attrs["completeness"], in a
    stack a variable, says so if k leaves out one of a conjugate pair.

    Raises
    ------
    InputError
        If `composition` does not fit the policy, or k is out of range.

    See Also
    --------
    fixed_points : with the leading eigenvalue of each

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> composition = meanfield.fixed_points(policy)["composition"].isel(fixed_point=0)
    >>> meanfield.spectrum(policy, composition, k=3)["eigenvalue"].values.round(3)
    array([-0.183, -0.284, -0.302])
    """
    if isinstance(policy, ReactionModel):
        x = validate_composition(composition, policy)
        modes = modes_at(policy, x, policy.class_masses(x)[policy.classes] > 0)
        number = _number(k, len(modes.values))
        number += k is None and bool(_completeness(modes.values[:number]))
        values, errors = modes.values[:number] * policy.fastest, modes.errors[:number] * policy.fastest
        result = labelled(_columns(values, errors, f"1/{policy.time_unit}"), coords={"mode": np.arange(number)})
        return stamp(result.assign_attrs(completeness=_completeness(values)), "spectrum", k=number)
    games = as_games(policy, in_groups=True)
    every = games.compositions(composition)
    number = _number(k, every[0].size - len(every[0]))
    columns, told = [], []
    for mixture, x in zip(games.mixtures, every, strict=True):
        found = leading_eigenvalues(mixture, x, mixture.space, number)
        if k is None and games.population is not None and _completeness(found.values):
            found = leading_eigenvalues(mixture, x, mixture.space, number + 1)
        told.append(_completeness(found.values))
        shift = (found.floor_shifts, "shift of the eigenvalue without entries below 1e-14")
        columns.append(_columns(found.values, found.errors, "1/time", eigenvalue_floor_shift=shift))
    result = games.labelled(columns, "mode", completeness=told).drop_dims("word", errors="ignore")
    return games.stamped(result, "spectrum", k=number)


def _number(k: int | None, most: int) -> int:
    if k is None and most:
        return min(4, most)
    return whole_number("k", k, 1, most)


def _completeness(values: np.ndarray) -> str:
    """Says so if the last eigenvalue is one of a conjugate pair without the other; '' if not."""
    last = values[-1] if len(values) else 0.0
    pair = np.isclose(values, np.conj(last), rtol=PAIR, atol=0)
    if abs(np.imag(last)) <= PAIR * abs(last) or pair.sum() >= np.isclose(values, last, rtol=PAIR, atol=0).sum():
        return ""
    return f"the conjugate of the last eigenvalue, {last:.3g}, is left out: k = {len(values) + 1} has both"


def _columns(values: np.ndarray, errors: np.ndarray, unit: str, **further: tuple[np.ndarray, str]) -> Columns:
    columns = {
        "eigenvalue": (values.real, "eigenvalue of the reduced Jacobian, real part"),
        "eigenvalue_imaginary": (values.imag, "eigenvalue of the reduced Jacobian, imaginary part"),
        "eigenvalue_error": (errors, "bound of the error of the eigenvalue"),
        **further,
    }
    return {name: (("mode",), column, label, unit) for name, (column, label) in columns.items()}


class Eigenvalues(NamedTuple):
    """Eigenvalues λ of the reduced Jacobian."""

    values: np.ndarray  # by decreasing real part, complex
    errors: np.ndarray  # a bound of the error of each
    # Shift of the real part of each, to first order, if entries of the policy below 1e-14 are set to 0: digits beyond
    # it say nothing about a language model.
    floor_shifts: np.ndarray


def leading_eigenvalues(
    mixture: Mixture | Groups,
    x: Float[np.ndarray, "kinds states"],
    space: MemorySpace,
    k: int = 1,
    *,
    x_error: float = 0.0,
) -> Eigenvalues:
    """The k eigenvalues with the largest real parts.

    They are computed in float64 where their condition allows, elsewhere in extended precision, which finds an
    eigenvalue with several eigenvectors once. `x_error` is the relative error of the entries of x, which adds to the
    errors.
    """
    matrix = ReducedJacobian(mixture, x, space)
    dense = matrix.size <= max(DENSE_SIZE, 4 * k)
    pairs = _dense_pairs(matrix.apply(np.eye(matrix.size)).T, k) if dense else _arnoldi(matrix, k)
    errors = _errors(matrix, pairs)
    if not _suffices(pairs.values, errors).all():
        extended, better = _extended(mixture, x, space, k)
        if better.max(initial=0.0) < errors.max():
            pairs, errors = extended, better
    shifts = np.zeros(len(pairs.values))
    if (floors := (mixture.q > 0) & (mixture.q < FLOOR)).any():
        without = ReducedJacobian(mixture._replace(q=np.where(floors, 0.0, mixture.q)), x, space)
        shifts = without.between(pairs.left, pairs.right) - matrix.between(pairs.left, pairs.right)
    if x_error:
        errors = errors + _from_composition(matrix, pairs, partial(_extended, mixture), x, space, x_error)
    # Zero belongs to what the next word does not show: an eigenvalue of J + I, where B has fewer dimensions
    zeros = np.zeros(min(k, max(0, x.size - len(x) - matrix.size)))
    values, errors, shifts = (np.append(column, zeros) for column in (pairs.values, errors, shifts))
    order = np.lexsort((-values.imag, -values.real))[:k]
    return _paced(mixture, Eigenvalues(values[order] - 1, errors[order], shifts[order]))


def _suffices(values: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Whether float64 suffices: stability depends on how |Re λ| compares with the bound for marginal."""
    return (np.abs(np.abs(values.real - 1) - MARGINAL) > errors) & (errors <= ENOUGH)


def _paced(mixture: Mixture | Groups, found: Eigenvalues) -> Eigenvalues:
    """Per unit of time, from eigenvalues per interaction of an agent."""
    return Eigenvalues(*(mixture.pace * values for values in found))


def leading_of_each(
    mixtures: Sequence[Mixture | Groups], x: list[np.ndarray], *, x_error: float = 0.0
) -> list[Eigenvalues]:
    """`leading_eigenvalues` of each population at its composition (M, S); small ones are computed together."""
    found: list[Eigenvalues | None] = [None] * len(x)
    groups: dict[tuple, list[int]] = {}
    for number, mixture in enumerate(mixtures):
        if not ((mixture.q > 0) & (mixture.q < FLOOR)).any():
            full = not x[number][:, : -mixture.space.n_full].any()
            groups.setdefault((full, *map(np.shape, mixture)), []).append(number)
    for (full, shape, *_), numbers in groups.items():
        space = MemorySpace.from_sizes(*shape[1:])
        if full and shape[0] * space.n_full // space.n_words <= DENSE_SIZE:
            for first in range(0, len(numbers), TOGETHER):
                some = numbers[first : first + TOGETHER]
                together = Mixture.stacked([mixtures[number] for number in some])
                matrix = ReducedJacobian(together, np.stack([x[number] for number in some]), space)
                for number, value in zip(some, _all_dense(matrix, x_error), strict=True):
                    found[number] = value and _paced(mixtures[number], value)
    return [
        leading_eigenvalues(mixture, one, mixture.space, x_error=x_error) if value is None else value
        for mixture, one, value in zip(mixtures, x, found, strict=True)
    ]


def _all_dense(matrix: ReducedJacobian, x_error: float) -> list[Eigenvalues | None]:
    """The leading eigenvalue of each matrix where float64 suffices, as nearly everywhere; else None."""
    columns = matrix.apply(np.eye(matrix.size)[:, None])
    each = [_dense_pairs(one.T, 1) for one in np.moveaxis(columns, 1, 0)]
    pairs = _Pairs(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
    errors = _errors(matrix, pairs)
    with np.errstate(invalid="ignore", over="ignore"):  # vectors are infinite where l·r = 0
        shifts = x_error * matrix.shift(pairs.left, pairs.right)
    enough = _suffices(pairs.values, errors) & (shifts <= ENOUGH)
    # Zero belongs to what the next word does not show
    kept = pairs.values.real > 0
    values, errors = np.where(kept, pairs.values, 0)[:, None] - 1, np.where(kept, errors + shifts, 0)[:, None]
    rows = zip(enough, values, errors, strict=True)
    return [Eigenvalues(value, error, np.zeros(1)) if sure else None for sure, value, error in rows]


def _extended(mixture: Mixture | Groups, x: np.ndarray, space: MemorySpace, k: int) -> tuple[_Pairs, np.ndarray]:
    found = extended_eigenvalues(partial(ReducedJacobian, mixture, x, space), space.memory_length, k)
    return _Pairs(found.values, found.left, found.right), found.errors


def _from_composition(
    matrix: ReducedJacobian, pairs: _Pairs, again: Any, x: np.ndarray, space: MemorySpace, x_error: float
) -> np.ndarray:
    """The errors of the eigenvalues from relative errors of x: to first order, or by trial where that is too large.

    Eigenvalues of a defective matrix have infinite derivatives, though none may move.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        shifts = x_error * matrix.shift(pairs.left, pairs.right)
    shifts[np.isnan(shifts)] = np.inf
    if (shifts <= ENOUGH).all():
        return shifts
    random = np.random.default_rng(0)
    trials = np.zeros((TRIALS, len(pairs.values)))
    for trial in trials:
        moved, _ = again(x * (1 + x_error * random.choice([-1.0, 1.0], size=x.shape)), space, len(trial))
        trial[:] = np.abs(np.append(moved.values, 0.0) - pairs.values[:, None]).min(1)
    return np.minimum(shifts, MARGIN * trials.max(0))


class _Pairs(NamedTuple):
    """Eigenvalues, and left and right eigenvectors, one a row, with l·r = 1; they are infinite if there are none."""

    values: np.ndarray
    left: np.ndarray
    right: np.ndarray


def _normalised(values: np.ndarray, left: np.ndarray, right: np.ndarray) -> _Pairs:
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 1 / np.sqrt((left * right).sum(1, keepdims=True).astype(complex))
        return _Pairs(values.astype(complex), scale * left, scale * right)


def _dense_pairs(columns: np.ndarray, k: int) -> _Pairs:
    """The k eigenvalues with the largest real parts, by LAPACK."""
    found: Any = eig(columns, left=True)
    values, left, right = found
    order = np.lexsort((-values.imag, -values.real))[:k]
    return _normalised(values[order], left[:, order].conj().T, right[:, order].T)


def _arnoldi(matrix: ReducedJacobian, k: int) -> _Pairs:
    """Eigenvalues with the largest real parts by Arnoldi iteration, or by LAPACK if it does not converge.

    A large matrix for which it does not converge gives 0 with an infinite error.
    """
    operators = [
        LinearOperator((matrix.size, matrix.size), matvec=product, dtype=np.float64) for product in matrix.products()
    ]
    start = np.random.default_rng(0).standard_normal(matrix.size)
    sides: list[Any] = []
    for vectors, restarts in (VECTORS, MORE_VECTORS):
        size = min(max(vectors, 2 * k + 2), matrix.size - 1)
        try:
            sides = [eigs(one, k=k, which="LR", ncv=size, v0=start, maxiter=restarts) for one in operators]
            break
        except ArpackError:
            if matrix.size <= LARGEST_DENSE:
                return _dense_pairs(matrix.apply(np.eye(matrix.size)).T, k)
    if not sides:
        return _Pairs(np.zeros(1, complex), np.full((1, matrix.size), np.inf), start[None])
    (values, right), (left_values, left) = sides
    # One of a pair of complex eigenvalues may be missing on the left
    left_values, left = np.append(left_values, left_values.conj()), np.append(left, left.conj(), axis=1)
    order = np.lexsort((-values.imag, -values.real))
    partner = np.abs(left_values - values[order, None]).argmin(1)
    return _normalised(values[order], left[:, partner].T, right[:, order].T)


def _errors(matrix: ReducedJacobian, pairs: _Pairs) -> np.ndarray:
    """Bounds of the distances to eigenvalues of the matrix, or of each matrix: |l|·|Br - μr|, plus rounding."""
    values, left, right = pairs
    with np.errstate(invalid="ignore", over="ignore"):  # vectors are infinite where l·r = 0
        real, imaginary = matrix.apply(np.stack([right.real, right.imag]))
        residual = np.abs(real + 1j * imaginary - values[:, None] * right)
        rounding = EPS * np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        errors = MARGIN * ((np.abs(left) * residual).sum(1) + rounding)
    return np.where(np.isnan(errors), np.inf, errors)
