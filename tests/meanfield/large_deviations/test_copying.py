"""Agents with two states who copy each other: exits of the Hamiltonian against closed forms and exact chains.

A has the fitness 1, B has r < 1, and an encounter makes the partner a copy. B takes over by chance alone, which is an
extinction, with momentum to the end. On the way there h = 0, and the momentum is a function of x.
"""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from _exact_chains import ExactChain
from _metastable import copying
from meanfield._large_deviations.linearised import Hamiltonian

FITNESS = 0.5


def momentum(model, x, nearest):
    """p_A - p_B with h = 0, other than 0, where the share of A is x."""
    h = Hamiltonian(model, np.ones(2, bool), np.eye(2))

    def value(y):
        return h.flow(np.array([[x, 1 - x]]), np.array([[y, 0.0]])).value[0] / y

    return brentq(value, *nearest, xtol=1e-14)


def test_the_fitter_state_dies_out_with_the_chance_of_the_moran_process():
    """From N·x agents in A, r^Nx (1 - r^(N - Nx))/(1 - r^N), whose least action is x log(1/r)."""
    model, share = copying([1.0, FITNESS]), 0.3
    np.testing.assert_allclose([momentum(model, x, (-2, -1e-3)) for x in (0.1, 0.5, 0.9)], np.log(FITNESS), rtol=1e-9)
    action = quad(lambda x: -momentum(model, x, (-2, -1e-3)), 0, share)[0]
    assert action == pytest.approx(share * np.log(1 / FITNESS), rel=1e-8)
    sizes = np.array([10, 20, 40, 80])
    exact = np.array([extinction(model, n, share) for n in sizes])
    closed = FITNESS ** (sizes * share) * (1 - FITNESS ** (sizes * (1 - share))) / (1 - FITNESS**sizes)
    np.testing.assert_allclose(exact, closed, rtol=1e-8)
    ratios = np.exp(-sizes * action) / exact
    assert (np.diff(ratios) < 0).all() and ratios[-1] == pytest.approx(1, abs=1e-6)
    assert -np.log(exact[-1] / exact[-2]) / 40 == pytest.approx(action, abs=1e-4)
    wrong = share * 2 * (1 - FITNESS) / (1 + FITNESS)  # of the diffusion with the same drift and noise
    assert abs(-np.log(exact[-1] / exact[-2]) / 40 - wrong) > 5e-3, "control: a diffusion"


def extinction(model, n_agents, share):
    """The probability that A dies out in the exact chain."""
    chain = ExactChain(model, [n_agents])
    n_a = chain.counts[:, 0]
    order = np.argsort(n_a)
    Q = chain.generator.toarray()[np.ix_(order, order)]
    free = slice(1, n_agents)
    chance = np.linalg.solve(-Q[free, free], Q[free, 0])
    return chance[round(n_agents * share) - 1]
