"""The mean-field rate equation for all kinds of agents at once, and its linearisation.

    dx_m/dt = A_m(Q)ᵀ x_m - x_m,   Q = Σ_m s_m q_mᵀ x_m / Σx_m + c.

Kind m has the share s_m of all agents, agents who always say w have the share c_w, and Σ_m s_m + Σ_w c_w = 1. Kinds act
on each other through Q alone. For one policy the equation is dx_k/dt = -x_k + Σ_ij x_i x_j P_k(i, j), with two units of
time to a population round ([004] Eqs. 1 and 27). The normalised Q conserves each Σx_m whatever its value; the printed
form leaves the simplex, since there σ = Σx obeys σ' = σ² - σ.

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
    """The right-hand side of the rate equation, dx/dt = A(Q)ᵀx - x, per unit of time.

    Two units of time are one population round. Source: [004] Eq. 1.

    Parameters
    ----------
    policy
        One policy, or a population.
    composition
        Fractions of agents in each state, shape (S,), for a population (M, S); rows sum to 1. A DataArray is aligned by
        its coordinates.

    Returns
    -------
    DataArray with dims (state), for a population (component, state). It sums to 0 over the states.

    Raises
    ------
    InputError
        If `composition` does not fit the policy or leaves the simplex.

    See Also
    --------
    solve : integrates it
    dense_tensor : the tensor behind it

    Examples
    --------
    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
    >>> meanfield.drift(policy, meanfield.empty_memories(policy)).values.round(2)  # empty, A/A, A/B, B/A, B/B
    array([-1.  ,  0.36,  0.24,  0.24,  0.16])
    >>> composition = meanfield.fixed_points(policy)["composition"].isel(fixed_point=0)
    >>> abs(meanfield.drift(policy, composition)).max().item() < 1e-12
    True
    """
    population = as_population(policy)
    slope = mixture_drift(validate_composition(composition, population), population.mixture, population.space)
    alone = not isinstance(policy, Population)
    coords = {"state": np.arange(population.space.n_states)}
    attrs = {"long_name": "rate of change of the composition", "units": "1/time"}
    dims = ("state",) if alone else ("component", "state")
    return xr.DataArray(slope[0] if alone else slope, coords, dims, name="drift", attrs=attrs)


def mixture_word_share(x: Float[Array, "kinds states"], mixture: Mixture) -> Float[Array, " words"]:
    """Q, the word share of a random partner; each x_m is normalised by its sum."""
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

    For one policy at x = e_n it is the reduced Jacobian of [004] Eq. 38, whether or not [π]^2H is a fixed point.
    """
    xp = x.__array_namespace__()
    Q = mixture_word_share(x, mixture)
    change = sum(mixture.share[m] * (v[m] @ mixture.q[m]) for m in range(x.shape[0]))
    rows = [
        gain(v[m], Q, mixture.q[m], space) + heard(spoken(x[m], mixture.q[m], space), change) - v[m]
        for m in range(x.shape[0])
    ]
    return xp.stack(rows)
