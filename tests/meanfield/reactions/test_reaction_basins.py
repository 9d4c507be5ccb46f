"""Basins of reaction models, where it is known which start leads where."""

import numpy as np
import pytest

import meanfield


def rule(pairs, states="abc", spontaneous=None):
    """For each (i, j, k): a responder in state j moves to state k if it meets an initiator in state i."""
    one = np.eye(len(states))
    alpha, beta = one[[i for i, _, _ in pairs]], one[[j for _, j, _ in pairs]]
    second = [np.where(one[j][:, None] == 1, one[k], one) for _, j, k in pairs]
    return meanfield.ReactionModel(list(states), alpha, beta, None, second, spontaneous)


UNDECIDED = [
    (0, 1, 2),
    (1, 0, 2),
    (0, 2, 0),
    (1, 2, 1),
]  # a and b make each other undecided, and convince the undecided


def test_the_larger_party_wins():
    """a - b never changes its sign, since d(a - b)/dt = (a - b) u."""
    found = meanfield.basins(rule(UNDECIDED), family="dirichlet", starts=200, seed=3)
    random = np.random.default_rng(3)
    starts = np.concatenate([random.dirichlet(np.ones(3), size) for size in (64, 64, 64, 8)])
    first = (starts[:, 0] > starts[:, 1]).mean()
    assert 0.4 < first < 0.6
    np.testing.assert_allclose(found["fraction"], sorted([first, 1 - first], reverse=True))
    expected = [[1, 0, 0], [0, 1, 0]] if first > 0.5 else [[0, 1, 0], [1, 0, 0]]
    np.testing.assert_allclose(found["composition"], expected, atol=1e-6)
    assert found["outcome"].values.tolist() == ["steady", "steady"]
    np.testing.assert_allclose(found["standard_error"], np.sqrt(first * (1 - first) / 200))


def test_masses_of_classes_stay():
    """Two species of an epidemic that only the first spreads: infected 1 - r / s of the first with the mass s."""
    recover = np.zeros((4, 4))
    recover[1, 0] = recover[3, 2] = 0.4
    model = rule([(1, 0, 1), (1, 2, 3)], "SIsi", recover)
    found = meanfield.basins(model, family="dirichlet", starts=20, masses=[0.8, 0.2])
    ill = 0.8 - 0.4
    follows = 0.2 * ill / (ill + 0.4)
    np.testing.assert_allclose(found["composition"], [[0.8 - ill, ill, 0.2 - follows, follows]], atol=1e-6)
    assert found["fraction"].item() == 1
    with pytest.raises(meanfield.InputError, match="masses = None: expected the fractions of agents in 2"):
        meanfield.basins(model, family="dirichlet")


def test_cycles_are_one_entry():
    """Stone, scissors, paper go round on closed orbits, abc = constant."""
    found = meanfield.basins(rule([(0, 1, 0), (1, 2, 1), (2, 0, 2)]), family="dirichlet", starts=4, max_time=100.0)
    assert found["outcome"].values.tolist() == ["limit cycle"]
    assert found["composition"].isnull().all()


def test_wrong_input_is_named():
    with pytest.raises(meanfield.InputError, match="family = 'consensus': a ReactionModel has no words"):
        meanfield.basins(rule(UNDECIDED))
    with pytest.raises(meanfield.InputError, match="max_time = inf: expected a number above 0"):
        meanfield.basins(rule(UNDECIDED), family="dirichlet", max_time=np.inf)
    policy = meanfield.make_policy(np.full(5, 0.5), ["a", "b"])
    with pytest.raises(meanfield.InputError, match="masses is given: expected only with a ReactionModel"):
        meanfield.basins(policy, masses=[1.0])
