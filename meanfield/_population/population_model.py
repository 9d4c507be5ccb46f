"""Policies and populations as reaction models, the general form."""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from scipy.sparse import block_diag, csr_array, eye_array

from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.mixture import Blocks
from meanfield._population.population import Population, as_population
from meanfield._population.reaction_model import ReactionModel

SAME = 1e-14  # rates


def reaction_model(policy: xr.Dataset | Population) -> ReactionModel:
    """Express the naming game of a policy or a population as a `ReactionModel` with the same rate equation.

    In channel (a, b) the initiator says word a, the responder says word b, and both memories shift. `solve` and
    `fixed_points` are faster for the policy itself.

    Parameters
    ----------
    policy
        One policy, or a population.

    Returns
    -------
    ReactionModel over the memory states of each kind of agents, followed by the agents committed to each word, in each
    kind if kinds meet at rates of their own. Its composition holds fractions of all agents, as
    `Population.fractions_of_all` does: for a single policy x itself. Two units of time are a round.

    Raises
    ------
    InputError
        If `policy` is neither a policy nor a population.

    See Also
    --------
    ReactionModel : any other game

    Examples
    --------
    >>> import meanfield, numpy as np
    >>> policy = meanfield.make_policy(np.array([0.5, 0.9, 0.1, 0.9, 0.1]), ["A", "B"])
    >>> float(meanfield.fixed_points(meanfield.reaction_model(policy))["eigenvalue"][0].round(6))
    -0.2
    """
    population = as_population(policy)
    space, arrays = population.space, population.arrays
    W, kinds = space.n_words, range(len(arrays.q))
    place, firm = np.nonzero(np.atleast_2d(arrays.committed))
    kind = np.append(np.repeat(kinds, space.n_states), place)  # of each state
    if isinstance(arrays, Blocks):
        initiates, responds = (part[:, kind] for part in factors(arrays.meets))
        bound = [("committed", population.words[w], population.kinds[k]) for k, w in zip(place, firm, strict=True)]
    else:
        initiates = responds = np.ones((1, len(kind)))
        bound = [("committed", population.words[w]) for w in firm]
    memories = [str(space.memory(i)) for i in range(space.n_states)]
    states = memories if isinstance(policy, xr.Dataset) else [(kind, m) for kind in population.kinds for m in memories]
    said = np.concatenate([*arrays.q, np.eye(W)[firm]])

    def shift(own: int, partner: int) -> csr_array:
        after = space.successors() + W * own + partner
        one = csr_array((np.ones(len(after)), (np.arange(len(after)), after)), shape=(len(after),) * 2)
        return csr_array(block_diag([*(one for _ in kinds), eye_array(len(firm))]))

    channels = list(itertools.product(range(len(initiates)), range(W), range(W)))
    return ReactionModel(
        [*states, *bound],
        alpha=[said[:, a] * initiates[n] / initiates.max() for n, a, _ in channels],
        beta=[said[:, b] * responds[n] / responds.max() for n, _, b in channels],
        first=[shift(a, b) for _, a, b in channels],
        second=[shift(b, a) for _, a, b in channels],
        encounter_rate=initiates.max() * responds.max() / TIME_PER_ROUND,
    )


def factors(meets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and B with meets = AᵀB, not negative: of one row where kinds differ only in how often they meet others."""
    activity = np.sqrt(np.diag(meets))[None]
    alike = np.allclose(activity.T @ activity, meets, rtol=SAME, atol=0)
    return (activity, activity) if alike else (np.eye(len(meets)), meets)
