"""Leading eigenvalues of the reduced Jacobian at a composition."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs

from meanfield._compositions import validate_composition
from meanfield._errors import InputError
from meanfield._memory import MemorySpace
from meanfield._mixture import Mixture, mixture_linearised_drift
from meanfield._policy import names_of
from meanfield._population import Population, as_population
from meanfield._provenance import stamp

# A policy that float64 rounds to a floor of 2e-16 has a zero eigenvalue displaced by the root of that floor, 1.5e-8.
MARGINAL = 1e-7
DENSE_STATES = 100  # below, LAPACK is faster than Arnoldi and finds every eigenvalue


def spectrum(policy: xr.Dataset | Population, composition: xr.DataArray | np.ndarray, *, k: int = 4) -> xr.Dataset:
    """The k leading eigenvalues of the reduced Jacobian, those with the largest real parts.

    J = A(Q)ᵀ - I + (∂A/∂Q ᵀ x) qᵀ, restricted to perturbations with Σε = 0: [004] Eqs. 34-38 for any composition x.
    Found by matrix-free Arnoldi iteration, by dense LAPACK for at most 100 states. Near λ = -1, where an agent who has
    forgotten everything in H interactions makes J defective, eigenvalues are good to about eps^(1/H) only.

    Parameters
    ----------
    policy
        One policy, or a population; of the kinds of agents in a population each keeps its own Σε = 0.
    composition
        Shape (S,), for a population (M, S), or a DataArray, of which coordinates count; rows sum to 1: the fraction
        of agents of a kind in each state. It need not be a fixed point.
    k
        How many eigenvalues, 1 ≤ k ≤ M(S - 1), for more than 100 states less than M·S - 1.

    Returns
    -------
    Dataset with `eigenvalue` and `eigenvalue_imaginary` (mode), per unit of time (two units are a round).

    Raises
    ------
    InputError
        If the composition is none, or k is out of range.
    """
    population = as_population(policy)
    x = validate_composition(composition, population)
    # As many as there are directions that keep each Σx; Arnoldi iteration leaves out two at least
    most = x.size - len(x) if x.size <= DENSE_STATES else x.size - max(len(x), 2)
    if not 1 <= k <= most:
        raise InputError(f"k = {k}: expected 1 to {most} eigenvalues")
    values = leading_eigenvalues(population.mixture, x, population.space, k)
    result = xr.Dataset(
        {"eigenvalue": ("mode", values.real), "eigenvalue_imaginary": ("mode", values.imag)},
        coords={"mode": np.arange(k)},
    )
    for name in result.data_vars:
        result[name].attrs = {"units": "1/time", "long_name": f"{name.replace('_', ', ')} part of the reduced Jacobian"}
    result = result.assign_attrs(policy=population.name).assign_coords(names_of(policy))
    return stamp(result, "spectrum", policy, k=k)


def leading_eigenvalues(
    mixture: Mixture, x: Float[np.ndarray, "kinds states"], space: MemorySpace, k: int = 1
) -> np.ndarray:
    """The k eigenvalues with the largest real parts, complex, in falling order."""

    def shifted(flat: np.ndarray) -> np.ndarray:
        # On Σv = 0 it is J + I, whose eigenvalues are at most 2 in modulus; directions that leave the simplex get -3,
        # and so are never leading ones.
        v = flat.reshape(x.shape)
        leaving = x * v.sum(1, keepdims=True)
        tangent = v - leaving
        return (mixture_linearised_drift(tangent, x, mixture, space) + tangent - 3 * leaving).ravel()

    n = x.size
    if n <= DENSE_STATES:
        dense = np.stack([shifted(column) for column in np.eye(n)], axis=1)
        return _largest(np.linalg.eigvals(dense), k) - 1
    operator = LinearOperator((n, n), matvec=lambda v: shifted(v.ravel()), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n)
    for basis in (40, 120, 360):
        size = min(max(basis, 2 * k + 2), n - 1)
        try:
            found = eigs(operator, k=k, which="LR", ncv=size, v0=start, return_eigenvectors=False, maxiter=2000)
            return _largest(found, k) - 1
        except ArpackNoConvergence:
            continue
    raise RuntimeError("Arnoldi iteration found no leading eigenvalue with 360 basis vectors")


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    return values[np.lexsort((-values.imag, -values.real))][:k]


def stability(eigenvalue: complex) -> str:
    """'stable', 'unstable' or 'marginal' (|Re λ| ≤ 1e-7), from the leading eigenvalue."""
    if abs(eigenvalue.real) <= MARGINAL:
        return "marginal"
    return "stable" if eigenvalue.real < 0 else "unstable"
