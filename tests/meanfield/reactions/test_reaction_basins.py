"""Basins of reaction models, where it is known which start leads where."""

import numpy as np
import pytest

import meanfield

pytestmark = pytest.mark.usefixtures("unchecked_types")

# A and B make each other undecided, and convince the undecided
UNDECIDED = meanfield.ReactionModel.from_rules(
    {"A + B": "A + U", "B + A": "B + U", "A + U": "2 A", "B + U": "2 B"}, 1.0, states=[*"ABU"]
)


def test_the_larger_party_wins():
    """A - B never changes its sign, since d(A - B)/dt = (A - B) U."""
    found = meanfield.basins(UNDECIDED, family="dirichlet", starts=60, seed=3)
    random = np.random.default_rng(3)
    starts = random.dirichlet(np.ones(3), 60)
    first = (starts[:, 0] > starts[:, 1]).mean()
    assert 0.3 < first < 0.7
    np.testing.assert_allclose(found["fraction"], sorted([first, 1 - first], reverse=True))
    expected = [[1, 0, 0], [0, 1, 0]] if first > 0.5 else [[0, 1, 0], [1, 0, 0]]
    np.testing.assert_allclose(found["composition"], expected, atol=1e-6)
    assert found["outcome"].values.tolist() == ["steady", "steady"]
    np.testing.assert_allclose(found["standard_error"], np.sqrt(first * (1 - first) / 60))


def test_masses_of_classes_stay():
    """Two species of an epidemic that only the first spreads: infected 1 - r / s of the first with the mass s."""
    rules = {"S + I": "2 I", "s + I": "i + I", "I": "S", "i": "s"}
    model = meanfield.ReactionModel.from_rules(rules, [1.0, 1.0, 0.4, 0.4], states=[*"SIsi"])
    found = meanfield.basins(model, family="dirichlet", starts=10, masses=[0.8, 0.2])
    ill = 0.8 - 0.4
    follows = 0.2 * ill / (ill + 0.4)
    np.testing.assert_allclose(found["composition"], [[0.8 - ill, ill, 0.2 - follows, follows]], atol=1e-6)
    assert found["fraction"].item() == 1
    with pytest.raises(meanfield.InputError, match="masses = None: expected the fractions of agents in 2"):
        meanfield.basins(model, family="dirichlet")


def test_cycles_are_one_entry():
    """Stone, scissors, paper go round on closed orbits, abc = constant."""
    model = meanfield.ReactionModel.from_rules({"a + b": "2 a", "b + c": "2 b", "c + a": "2 c"}, 1.0)
    found = meanfield.basins(model, family="dirichlet", starts=2, max_time=100.0)
    assert found["outcome"].values.tolist() == ["limit cycle"]
    assert found["composition"].isnull().all()


def test_wrong_input_is_named():
    policy = meanfield.make_policy(np.full(5, 0.5), ["a", "b"])
    for game, options, message in (
        (UNDECIDED, {}, "family = 'consensus': a ReactionModel has no words"),
        (UNDECIDED, {"family": "dirichlet", "max_time": np.inf}, "max_time = inf: expected a number above 0"),
        (policy, {"masses": [1.0]}, "masses is given: expected only with a ReactionModel"),
    ):
        with pytest.raises(meanfield.InputError, match=message):
            meanfield.basins(game, **options)
