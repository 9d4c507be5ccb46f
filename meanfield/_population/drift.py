"""The mean-field rate equation, of all kinds of agents at once, and its linearisation.

    dx_m/dt = A_m(Q)ᵀ x_m - x_m,   Q = Σ_m s_m q_mᵀ x_m / Σx_m + c,

with s_m the share of kind m among all agents and c_w that of agents who always say w, Σ_m s_m + Σ_w c_w = 1. Kinds act
on each other through Q alone. For one policy this is dx_k/dt = -x_k + Σ_ij x_i x_j P_k(i, j), in a time of which two
units are one population round ([004] Eqs. 1 and 27). Written with the normalised Q it conserves each Σx_m whatever its
value; as printed it drifts off the simplex, since there σ = Σx obeys σ' = σ² - σ.

Functions of a `Mixture` take NumPy and JAX arrays alike.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.compositions import validate_composition
from meanfield._population.memory import MemorySpace
from meanfield._population.mixture import Mixture
from meanfield._population.population import Population, as_population
from meanfield._population.reaction_tensor import Array, gain, heard, spoken

TIME_PER_ROUND = 2.0  # one round is N interactions, and each of them updates two agents


def drift(policy: xr.Dataset | Population, composition: xr.DataArray | np.ndarray) -> xr.DataArray:
    """The right-hand side of the rate equation, dx/dt = A(Q)ᵀx - x, per unit of time; two units are a round.

    Source: [004] Eq. 1.

    Parameters
    ----------
    policy
        One policy, or a population.
    composition
        Shape (S,), for a population (M, S), or a DataArray, of which coordinates count; rows sum to 1.

    Returns
    -------
    Dims (state), for a population (component, state); sums to 0 over the states.

    Raises
    ------
    InputError
        If the composition is none.

    See Also
    --------
    solve : integrates it
    dense_tensor : the tensor behind it
    """
    population = as_population(policy)
    slope = mixture_drift(validate_composition(composition, population), population.mixture, population.space)
    alone = not isinstance(policy, Population)
    coords = {"state": np.arange(population.space.n_states)}
    attrs = {"long_name": "rate of change of the composition", "units": "1/time"}
    dims = ("state",) if alone else ("component", "state")
    return xr.DataArray(slope[0] if alone else slope, coords, dims, name="drift", attrs=attrs)


def mixture_word_share(x: Float[Array, "kinds states"], mixture: Mixture) -> Float[Array, " words"]:
    """Q, what a partner drawn from all agents says; each x_m is taken relative to its sum."""
    said = [x[m] @ mixture.q[m] for m in range(x.shape[0])]
    return sum(mixture.share[m] * (Q / Q.sum()) for m, Q in enumerate(said)) + mixture.committed


def mixture_drift(
    x: Float[Array, "kinds states"], mixture: Mixture, space: MemorySpace
) -> Float[Array, "kinds states"]:
    """F_m(x) = A_m(Q)ᵀx_m - x_m, which conserves each Σx_m whatever its value."""
    xp = x.__array_namespace__()
    Q = mixture_word_share(x, mixture)
    return xp.stack([gain(x[m], Q, mixture.q[m], space) - x[m] for m in range(x.shape[0])])


def mixture_linearised_drift(
    v: Float[Array, "kinds states"], x: Float[Array, "kinds states"], mixture: Mixture, space: MemorySpace
) -> Float[Array, "kinds states"]:
    """J(x)v for a perturbation v with Σ_i v_m(i) = 0 for each kind: A_m(Q)ᵀv_m + (∂A_m/∂Q ᵀ x_m) δQ - v_m.

    With one policy and x = e_n it is the reduced Jacobian of [004] Eq. 38, also where [π]^2H is no fixed point.
    """
    xp = x.__array_namespace__()
    Q = mixture_word_share(x, mixture)
    change = sum(mixture.share[m] * (v[m] @ mixture.q[m]) for m in range(x.shape[0]))
    rows = [
        gain(v[m], Q, mixture.q[m], space) + heard(spoken(x[m], mixture.q[m], space), change) - v[m]
        for m in range(x.shape[0])
    ]
    return xp.stack(rows)
