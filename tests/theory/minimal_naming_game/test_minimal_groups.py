"""The minimal naming game in groups: its rate equation against pairs and against agents who meet in groups."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import theory.minimal_naming_game as game
from meanfield import InputError

RULES = ("union", "unanimity")


@pytest.mark.parametrize("agree", RULES)
def test_two_are_a_pair(agree):
    beta, p = 0.6, 0.3
    x = np.random.default_rng(0).dirichlet(np.ones(5))
    pairs = game.reaction_model(p=p, accepts=(beta, 0)).drift(x)
    np.testing.assert_allclose(game.group_model(2, agree, beta=beta, p=p).drift(x), pairs, atol=1e-15)


def ends(model, start, time):
    return solve_ivp(lambda _, x: model.drift(x), (0, time), start, "LSODA", rtol=1e-8, atol=1e-11).y[:, -1]


def played(size, agree, beta, start, rounds, seed):
    """Fractions of A, B and both after so many rounds, by the rules. A word is a bit; committed agents come last."""
    random, enough = np.random.default_rng(seed), any if agree == "union" else all
    n_agents, n_free, held = sum(start), sum(start[:3]), np.repeat([1, 2, 3, 1], start).tolist()
    groups = random.integers(n_agents, size=(2 * rounds * n_agents, size))
    groups = groups[(np.diff(np.sort(groups), axis=1) > 0).all(1)][: rounds * n_agents].tolist()
    coins, agreeing = random.integers(1, 3, len(groups)).tolist(), (random.random(len(groups)) < beta).tolist()
    for (speaker, *hearers), coin, agrees in zip(groups, coins, agreeing, strict=True):
        word = held[speaker] if held[speaker] < 3 else coin
        success = agrees and enough(held[one] & word for one in hearers)
        for one in (speaker, *hearers) if success else hearers:
            if one < n_free:
                held[one] = word if success else held[one] | word
    return np.array([held[:n_free].count(k) for k in (1, 2, 3)]) / n_agents


@pytest.mark.parametrize("agree", RULES)
def test_two_thousand_agents_follow_the_rate_equation(agree):
    """Groups of three, three rounds, two runs; a fraction has a standard error of about 0.018."""
    start = [300, 1300, 200, 200]
    found = np.mean([played(3, agree, 0.7, start, 3, seed) for seed in range(2)], axis=0)
    x = np.array([*start, 0]) / 2000
    limit = 4 * 0.025 / np.sqrt(2)
    for beta, follows in ((0.7, True), (0.2, False)):
        model = game.group_model(3, agree, beta=beta)
        assert (np.abs(found - ends(model, x, 6.0)[:3]).max() < limit) == follows


@pytest.mark.parametrize(("agree", "critical"), [("union", 0.0771), ("unanimity", 0.125)])
def test_critical_fractions(agree, critical):
    """Pairs need 0.0979. In groups of three fewer do if one who knows the word suffices, more if all must."""
    model = game.group_model(3, agree)
    low, high = (ends(model, [0, 1 - c, 0, c, 0], 2000.0)[0] for c in (0.98 * critical, 1.02 * critical))
    assert low < 0.3 < 0.8 < high


def test_arguments_are_checked():
    with pytest.raises(InputError, match="agree = 'all'"):
        game.group_model(3, "all")
