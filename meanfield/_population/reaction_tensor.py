"""The dense reaction tensor P_k(i, j), for teaching and tests: the engine factorises it through the words."""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from meanfield._population.single_policy import single_policy, space_of
from meanfield.core._game import WordGame
from meanfield.core._rates import reaction_tensor
from meanfield.toolbox._errors import InputError

MAX_DENSE_STATES = 400  # 400³ float64 are 0.5 GB


def dense_tensor(policy: xr.Dataset) -> Float[np.ndarray, "states states states"]:
    """The dense reaction tensor P[k, i, j] = P_k(i, j), for small state spaces.

    P_k(i, j) = Σ_ab q_a(i) q_b(j) [k = Γ(i, a, b)] is the probability that an agent in state i goes to state k on
    meeting one in state j; Σ_k P_k(i, j) = 1. Source: [004] Eq. 16, whose last case reads (1 - q(i))(1 - q(j)).

    Raises
    ------
    InputError
        If the space has more than 400 states.

    Examples
    --------
    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
    >>> P = meanfield.dense_tensor(policy)
    >>> P[:, 0, 0].round(2)  # two agents without memories meet: one then remembers nothing, A/A, A/B, B/A, B/B
    array([0.  , 0.36, 0.24, 0.24, 0.16])
    """
    policy = single_policy(policy)
    space = space_of(policy)
    if space.n_states > MAX_DENSE_STATES:
        raise InputError(
            f"policy has {space.n_states} states: expected at most {MAX_DENSE_STATES} for the dense tensor; "
            "solve, fixed_points and spectrum never need it"
        )
    with jax.enable_x64(True):
        return np.asarray(reaction_tensor(WordGame(policy["q"].values)))
