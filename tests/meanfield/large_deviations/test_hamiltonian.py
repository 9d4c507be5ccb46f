"""The Hamiltonian of reaction models: sums over all pairs of agents, its derivatives, and Moran's process."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

import meanfield
from _exact_chains import ExactChain
from _metastable import copying
from meanfield._large_deviations.linearised import Hamiltonian


def some_model():
    """Three states of one class and one that never changes, random in all else."""
    rng = np.random.default_rng(3)
    first, second = ([moves(rng) for _ in range(2)] for _ in range(2))
    alone = np.zeros((4, 4))
    alone[0, 2], alone[1, 0] = 0.3, 0.2
    shown = rng.random((2, 2, 4)) / 2
    return meanfield.ReactionModel(["a", "b", "c", "firm"], *shown, first, second, alone, encounter_rate=0.7)


def moves(rng):
    matrix = np.eye(4)
    matrix[:3, :3] = rng.dirichlet(np.ones(3), 3)
    return matrix


def some_points(n_states, number=3):
    rng = np.random.default_rng(5)
    return rng.dirichlet(np.ones(n_states), number), 0.4 * rng.standard_normal((number, n_states))


def whole(model):
    return Hamiltonian(model, np.ones(model.n_states, bool), np.eye(model.n_states))


def over_pairs(model, x, p):
    """The growth rate of the mean of exp(N p·X) at X = x, over N: all outcomes of all encounters, and moves alone."""
    pairs = np.outer(x, x)
    after = p[None, None, :, None] + p[None, None, None, :] - p[:, None, None, None] - p[None, :, None, None]
    met = (pairs[:, :, None, None] * model.tensor() * (np.exp(after) - 1)).sum()
    alone = (x[:, None] * model.spontaneous.toarray() * (np.exp(p[None] - p[:, None]) - 1)).sum()
    return model.encounter_rate * met + alone


def test_it_is_the_sum_over_all_pairs():
    model = some_model()
    x, p = some_points(4)
    np.testing.assert_allclose(
        whole(model).flow(x, p).value, [over_pairs(model, *one) for one in zip(x, p, strict=True)]
    )


def test_derivatives():
    """The first ones against differences of the value, the second ones against differences of the first."""
    h, (x, p), step = whole(some_model()), some_points(4), 1e-5
    first, second = h.flow(x, p), h.curvature(x, p)
    for k, d in enumerate(step * np.eye(4)):
        by_p, by_x = (
            [(up - down) / (2 * step) for up, down in zip(*sides, strict=True)]
            for sides in ((h.flow(x, p + d), h.flow(x, p - d)), (h.flow(x + d, p), h.flow(x - d, p)))
        )
        np.testing.assert_allclose(by_p[0], first.by_p[:, k], atol=1e-9)
        np.testing.assert_allclose(by_x[0], first.by_x[:, k], atol=1e-9)
        np.testing.assert_allclose(by_p[1], second.pp[:, k], atol=1e-8)
        np.testing.assert_allclose(by_p[2], second.xp[:, :, k], atol=1e-8)
        np.testing.assert_allclose(by_x[2], second.xx[:, k], atol=1e-8)


def test_without_momentum_it_is_the_rate_equation():
    model, (x, p) = some_model(), some_points(4)
    h, none = whole(model), np.zeros_like(p)
    np.testing.assert_allclose(h.flow(x, none).value, 0, atol=1e-15)
    for one, velocity, matrix in zip(x, h.flow(x, none).by_p, h.curvature(x, none).xp, strict=True):
        np.testing.assert_allclose(velocity, model.drift(one), atol=1e-15)
        np.testing.assert_allclose(matrix.T, model.jacobian(one), atol=1e-15)


FITNESS = 0.5


def momentum(model, x):
    """p_A - p_B with h = 0, other than 0, where the share of A is x."""

    def value(y):
        return whole(model).flow(np.array([[x, 1 - x]]), np.array([[y, 0.0]])).value[0] / y

    return brentq(value, -2, -1e-3, xtol=1e-14)


def test_the_fitter_state_dies_out_with_the_chance_of_the_moran_process():
    """From N·x agents in A, r^Nx (1 - r^(N - Nx))/(1 - r^N), whose least action is x log(1/r)."""
    model, share = copying([1.0, FITNESS]), 0.3
    np.testing.assert_allclose([momentum(model, x) for x in (0.1, 0.5, 0.9)], np.log(FITNESS), rtol=1e-9)
    action = quad(lambda x: -momentum(model, x), 0, share)[0]
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


@pytest.mark.slow
def test_shares_with_mutations_have_the_stationary_law_of_the_chain():
    """π(n) tends to a constant times exp(-N S + e)/√(w₊w₋), with S = ∫ p dx, w the rates of one more and one fewer.

    e comes from agents not copying themselves, so that they meet the other state N/(N - 1) times as often.
    """
    model, errors = copying([1.0, FITNESS], 0.02), 0.02
    x = np.array([0.2, 0.5, 0.8])

    def rates(at):
        return at * (1 - at) + errors * (1 - at), FITNESS * at * (1 - at) + errors * at

    def slope(at):
        up, down = rates(at)
        return np.log(down / up)

    def others(at):
        up, down = rates(at)
        return at * (1 - at) * (1 / up - FITNESS / down)

    found = [momentum(model, one) for one in x]
    np.testing.assert_allclose(found, [slope(one) for one in x], rtol=1e-9)
    ratios = []
    for n in (20, 40, 80, 160):
        chain = ExactChain(model, [n])
        order = np.argsort(chain.counts[:, 0])
        Q = chain.generator.toarray()[np.ix_(order, order)]
        up, down = np.diagonal(Q, 1), np.diagonal(Q, -1)
        log_pi = np.concatenate([[0.0], np.cumsum(np.log(up / down))])
        two = np.array([0.3, 0.7])
        theory = -n * quad(slope, *two)[0] + quad(others, *two)[0] - np.diff(np.log(np.prod(rates(two), axis=0)))[0] / 2
        ratios.append(np.exp(theory - np.diff(log_pi[np.round(n * two).astype(int)])[0]))
    off = np.abs(np.array(ratios) - 1)
    assert off[-1] < 0.01
    np.testing.assert_allclose(off[1:] / off[:-1], 0.5, atol=0.1)
