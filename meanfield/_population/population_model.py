"""Policies and populations as reaction models, the general form."""

from __future__ import annotations

import itertools

import numpy as np
import xarray as xr
from scipy.sparse import block_diag, csr_array, eye_array

from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import Population, as_population
from meanfield._population.reaction_model import ReactionModel


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
    ReactionModel over the memory states of each kind of agents, followed by the agents committed to each word. Its
    composition holds fractions of all agents: for a single policy x itself; for a population the composition of each
    kind times the fraction of that kind, then the committed fractions. Two units of time are a round.

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
    space, mixture = population.space, population.mixture
    W, kinds = space.n_words, range(len(mixture.q))
    firm = np.flatnonzero(mixture.committed)
    memories = [str(space.memory(i)) for i in range(space.n_states)]
    states = memories if isinstance(policy, xr.Dataset) else [(kind, m) for kind in population.kinds for m in memories]
    said = np.concatenate([*mixture.q, np.eye(W)[firm]])

    def shift(own: int, partner: int) -> csr_array:
        after = space.successors() + W * own + partner
        one = csr_array((np.ones(len(after)), (np.arange(len(after)), after)), shape=(len(after),) * 2)
        return csr_array(block_diag([*(one for _ in kinds), eye_array(len(firm))]))

    pairs = list(itertools.product(range(W), repeat=2))
    return ReactionModel(
        [*states, *(("committed", population.words[w]) for w in firm)],
        alpha=[said[:, a] for a, _ in pairs],
        beta=[said[:, b] for _, b in pairs],
        first=[shift(a, b) for a, b in pairs],
        second=[shift(b, a) for a, b in pairs],
        encounter_rate=1 / TIME_PER_ROUND,
    )
