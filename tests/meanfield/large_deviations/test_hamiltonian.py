"""The Hamiltonian of reaction models against sums over all pairs of agents, and its derivatives."""

import numpy as np

import meanfield
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
