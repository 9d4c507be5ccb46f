"""The right-hand side of the mean-field rate equation at a composition, for all kinds of agents at once.

    dx_m/dt = A_m(Q)ᵀ x_m - x_m,   Q = Σ_m s_m q_mᵀ x_m / Σx_m + c.

Kind m has the share s_m of all agents, agents who always say w have the share c_w, and Σ_m s_m + Σ_w c_w = 1. Kinds act
on each other through Q alone. For one policy the equation is dx_k/dt = -x_k + Σ_ij x_i x_j P_k(i, j), with two units of
time to a population round ([004] Eqs. 1 and 27). The normalised Q conserves each Σx_m whatever its value; the printed
form leaves the simplex, since there σ = Σx obeys σ' = σ² - σ.

`meanfield.core` computes it here as for `solve`: `WordGame` is its Hamiltonian.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.compositions import validate_composition
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.population import Population
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.stacks import as_games
from meanfield.core._export import exported

word_drifts = exported("meanfield.core._trajectory", "word_drifts")
LABEL = "rate of change of the composition"
ROWS = 8  # compositions at once: a program is compiled for each number of them
TIME_PER_ROUND = 2.0  # one round is N interactions, and each of them updates two agents


def drift(policy: xr.Dataset | Population | ReactionModel, composition: xr.DataArray | np.ndarray) -> xr.DataArray:
    """The right-hand side of the rate equation, for policies dx/dt = A(Q)ᵀx - x, per unit of time.

    Two units of time are one population round. Source: [004] Eq. 1.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair, a population, or a reaction model.
    composition
        Fractions of agents in each state, shape (S,), for a population (M, S); rows sum to 1. A DataArray is aligned by
        its coordinates; for a stack it may have its dims too, else all share it.

    Returns
    -------
    DataArray with dims (state), for a population (component, state), after the dims of a stack. It sums to 0 over the
    states.

    Raises
    ------
    InputError
        If `composition` does not fit the policy or leaves the simplex.

    See Also
    --------
    solve : integrates it
    meanfield.core.reaction_tensor : the tensor behind it

    Examples
    --------
    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
    >>> meanfield.drift(policy, meanfield.empty_memories(policy)).values.round(2)  # empty, A/A, A/B, B/A, B/B
    array([-1.  ,  0.36,  0.24,  0.24,  0.16])
    >>> composition = meanfield.fixed_points(policy)["composition"].isel(fixed_point=0)
    >>> abs(meanfield.drift(policy, composition)).max().item() < 1e-12
    True
    """
    if isinstance(policy, ReactionModel):
        slope = policy.drift(validate_composition(composition, policy))
        label = {"long_name": LABEL, "units": f"1/{policy.time_unit}", "kind": "drift"}
        return xr.DataArray(slope, {"state": np.array(policy.names, dtype=str)}, ["state"], name="drift", attrs=label)
    games = as_games(policy, in_groups=True)
    rows = zip(games.mixtures, games.compositions(composition), strict=True)
    slopes = [word_drifts(tuple(mixture), x[None])[0] for mixture, x in rows]
    found = games.labelled([{"drift": (("component", "state"), one, LABEL, "1/time")} for one in slopes])
    return found["drift"].assign_attrs(kind="drift")


def mixture_word_share(
    x: Float[np.ndarray, "*batch kinds states"], mixture: Mixture | Groups
) -> Float[np.ndarray, "*batch words"]:
    """Q, the word share of a random partner."""
    return np.einsum("m,...ms,msw->...w", mixture.share, x, mixture.q) + mixture.committed


def mixture_drift(
    x: Float[np.ndarray, "batch kinds states"], mixture: Mixture | Groups
) -> Float[np.ndarray, "batch kinds states"]:
    """F_m(x) = A_m(Q)ᵀx_m - x_m, which sums to 0 for each kind, for a batch of compositions of one population."""
    parts = [x[first : first + ROWS] for first in range(0, len(x), ROWS)]
    slopes = [word_drifts(tuple(mixture), np.resize(part, (ROWS, *part.shape[1:])))[: len(part)] for part in parts]
    return np.concatenate([x[:0], *slopes])
