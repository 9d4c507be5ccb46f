"""The Hamiltonian of reaction models against sums over all pairs of agents, and its derivatives."""

import itertools

import numpy as np
import pytest

import meanfield
from _metastable import follower
from _policies import random_composition, random_policy
from meanfield._finite_size.least_action_path import linearised
from meanfield._large_deviations.hamiltonian import Hamiltonian
from meanfield.toolbox import as_population, space_of


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
    model, step = some_model(), 1e-5
    h, (x, p) = whole(model), some_points(4)
    second = h.curvature(x, p)
    for k, one in itertools.product(range(4), [step]):
        d = one * np.eye(4)[k]
        by_p, by_x = h.flow(x, p)[1:]
        np.testing.assert_allclose((h.flow(x, p + d).value - h.flow(x, p - d).value) / (2 * one), by_p[:, k], atol=1e-9)
        np.testing.assert_allclose((h.flow(x + d, p).value - h.flow(x - d, p).value) / (2 * one), by_x[:, k], atol=1e-9)
        (up_p, up_x), (down_p, down_x) = h.flow(x, p + d)[1:], h.flow(x, p - d)[1:]
        np.testing.assert_allclose((up_p - down_p) / (2 * one), second.pp[:, k], atol=1e-8)
        np.testing.assert_allclose((up_x - down_x) / (2 * one), second.xp[:, :, k], atol=1e-8)
        up_x, down_x = h.flow(x + d, p).by_x, h.flow(x - d, p).by_x
        np.testing.assert_allclose((up_x - down_x) / (2 * one), second.xx[:, k], atol=1e-8)


def test_without_momentum_it_is_the_rate_equation():
    model, (x, p) = some_model(), some_points(4)
    h, none = whole(model), np.zeros_like(p)
    np.testing.assert_allclose(h.flow(x, none).value, 0, atol=1e-15)
    for one, velocity, matrix in zip(x, h.flow(x, none).by_p, h.curvature(x, none).xp, strict=True):
        np.testing.assert_allclose(velocity, model.drift(one), atol=1e-15)
        np.testing.assert_allclose(matrix.T, model.jacobian(one), atol=1e-15)


def test_of_the_naming_game_it_is_that_of_words():
    """½ [Σ_ab g_ab g_ba - 1], with committed agents in g."""
    policy = random_policy(2, memory_length=2)
    population = meanfield.Population(policy, committed={"b": 0.2})
    model, space = meanfield.reaction_model(population), space_of(policy)
    x = np.append(0.8 * random_composition(1, space.n_states), 0.2)
    p = np.append(0.3 * np.random.default_rng(2).standard_normal(space.n_states), 0.0)
    g = np.zeros((2, 2))
    for i, a, b in itertools.product(range(space.n_states), range(2), range(2)):
        after = space.successors()[i] + 2 * a + b
        g[a, b] += x[i] * policy["q"].values[i, a] * np.exp(p[after] - p[i])
    g[1] += 0.2
    assert whole(model).flow(x[None], p[None]).value[0] == pytest.approx(((g * g.T).sum() - 1) / 2, abs=1e-14)


def test_products_of_a_population_are_those_of_its_matrices():
    population = meanfield.Population([random_policy(1), random_policy(2)], fractions=[0.3, 0.7], committed={"a": 0.1})
    model = meanfield.reaction_model(population)
    x = np.stack([share * random_composition(1, 5) for share in population.mixture.share])
    w = np.random.default_rng(1).standard_normal((2, 5))
    second = whole(model).curvature(np.append(x, 0.1)[None], np.zeros((1, 11)))
    full = np.append(w, 0.0)
    _, transposed, noise = linearised(tuple(as_population(population).mixture), x, w)
    off = transposed.ravel() - (second.xp[0] @ full)[:10]
    np.testing.assert_allclose(off, off[0], atol=1e-14)  # a number that perturbations of Σx = 1 do not see
    assert (w * noise).sum() == pytest.approx(full @ second.pp[0] @ full, rel=1e-12)


def test_a_face_is_a_model_of_its_own():
    """Agents of full memories only: the others have no part in h."""
    model = meanfield.reaction_model(follower(0.05))
    face = np.arange(model.n_states) >= 5
    x, p = some_points(16)
    padded = [np.hstack([np.zeros((3, 5)), one]) for one in (x, p)]
    np.testing.assert_allclose(
        Hamiltonian(model, face, np.eye(model.n_states)).flow(x, p).value, whole(model).flow(*padded).value, rtol=1e-13
    )
