"""Basins of attraction against symmetry, another integrator and solutions one by one."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from _policies import drift, majority_policy, oscillating_pair, random_policy
from meanfield import Population
from meanfield._dynamics.recurrence import LIMIT_CYCLE


def uneven_majority(towards_first=0.99, towards_second=0.9):
    """H = 3: say the word heard more often, but slip to the other more often where it is the second."""
    space = meanfield.MemorySpace(2, 3)
    heard = [sum(1 if partner == 0 else -1 for _, partner in space.memory(i)) for i in range(space.n_states)]
    by_sign = {1: towards_first, 0: 0.5, -1: 1 - towards_second}
    return meanfield.make_policy(np.array([by_sign[int(np.sign(h))] for h in heard]), ["a", "b"])


def end_of(policy, start, until=200.0, rtol=1e-10):
    """Share of the first word where another integrator ends."""
    q = policy["q"].values
    options = {"method": "DOP853", "rtol": rtol, "atol": rtol / 1000}
    solution = solve_ivp(lambda t, x: drift(x, q), (0, until), start, **options)
    return float(solution.y[:, -1] @ q[:, 0])


def test_symmetric_policy_has_halves():
    policy = majority_policy(3, 0.9)
    basins, points = meanfield.basins(policy), meanfield.fixed_points(policy)
    np.testing.assert_allclose(basins["separatrix"], [0.5], atol=1e-7)
    np.testing.assert_allclose(basins["fraction"], [0.5, 0.5], atol=1e-7)
    np.testing.assert_allclose(basins["word_share"], points["word_share"].values[points["stable"].values], atol=1e-6)
    assert basins["outcome"].values.tolist() == ["steady", "steady"]


@pytest.mark.slow
def test_separatrix_is_that_of_bisection_with_another_integrator():
    policy = uneven_majority()
    first, second = (meanfield.consensus(policy, word).values for word in ("a", "b"))
    low, high = 0.0, 1.0
    assert end_of(policy, second) < 0.3 < 0.7 < end_of(policy, first)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if end_of(policy, middle * first + (1 - middle) * second) > 0.5 else (middle, high)
    basins = meanfield.basins(policy)
    assert basins["separatrix"].values == pytest.approx([(low + high) / 2], abs=2e-6)
    assert basins["fraction"].values == pytest.approx([1 - low, low], abs=2e-6)
    assert abs(low - 0.5) > 0.02, "the control: not the symmetric one"


@pytest.mark.parametrize("family", ["consensus", "dirichlet"])
def test_one_attractor_takes_all(family):
    policy = random_policy(1, 2, 3, concentration=5.0)
    basins = meanfield.basins(policy, family=family, starts=16)
    assert basins["fraction"].values.tolist() == [1.0] and basins.sizes["boundary"] == 0
    np.testing.assert_allclose(basins["word_share"], meanfield.fixed_points(policy)["word_share"].values, atol=1e-6)


@pytest.mark.parametrize("family", ["consensus", "dirichlet"])
def test_fractions_sum_to_one(family):
    population = Population(uneven_majority(), committed={"b": 0.03})
    basins = meanfield.basins(population, family=family, starts=16, concentration=0.02, seed=3)
    assert basins.sizes["attractor"] == 2
    assert basins["fraction"].sum() == pytest.approx(1.0, abs=1e-12)
    stable = meanfield.fixed_points(population).query(fixed_point="stable")
    np.testing.assert_allclose(basins["word_share"], stable["word_share"], atol=1e-6)
    assert basins["convention"].values.tolist() == stable["convention"].values.tolist()
    error = np.full(2, np.nan) if family == "consensus" else np.sqrt(basins["fraction"].prod().item() / 16)
    np.testing.assert_allclose(basins["standard_error"], error, atol=1e-12)


@pytest.mark.slow
def test_fractions_of_random_starts_are_those_of_others_one_by_one():
    """Two sets of draws, apart by at most 4 standard errors: a false alarm once in 16,000 seeds. The control fails."""
    policy, concentration, draws = uneven_majority(), 0.02, 80
    basins = meanfield.basins(policy, family="dirichlet", starts=256, concentration=concentration, seed=1)
    random = np.random.default_rng(2)
    starts = random.dirichlet(np.full(85, concentration), size=draws)
    ours = np.mean([end_of(policy, start, until=40.0, rtol=1e-6) > 0.5 for start in starts])
    fraction, error = basins["fraction"].values[0], basins["standard_error"].values[0]
    assert error == pytest.approx(np.sqrt(fraction * (1 - fraction) / 256), rel=1e-12)
    allowed = 4 * np.hypot(error, np.sqrt(ours * (1 - ours) / draws))
    assert abs(fraction - ours) < allowed < 0.25
    assert abs(basins["fraction"].values[1] - ours) > allowed


def test_draws_are_those_of_the_seed():
    policy = uneven_majority()
    options = {"family": "dirichlet", "starts": 16, "concentration": 0.02}
    ours, again, others = (meanfield.basins(policy, seed=seed, **options) for seed in (0, 0, 5))
    assert ours.identical(again)
    assert not np.array_equal(ours["fraction"], others["fraction"])
    assert ours.attrs["option_seed"] == 0


def test_those_committed_move_the_separatrix():
    """The more are committed to a word, the fewer others have to start with it; beyond the critical mass none."""
    policy = uneven_majority()
    critical = meanfield.critical_mass(policy, word="a")["critical_mass"].item()
    alone, beside = (
        meanfield.basins(Population(policy, committed={"a": c}))["separatrix"].item() for c in (0.0, 0.9 * critical)
    )
    assert alone > beside > 0
    beyond = meanfield.basins(Population(policy, committed={"a": 1.1 * critical}))
    assert beyond["fraction"].values.tolist() == [1.0]


@pytest.mark.slow
def test_limit_cycle_is_an_attractor():
    basins = meanfield.basins(oscillating_pair(), max_time=600.0)
    cycle = basins.sel(attractor=basins["outcome"].values == LIMIT_CYCLE)
    assert cycle["fraction"].item() == pytest.approx(1.0, abs=1e-6)
    assert np.isnan(cycle["word_share"]).all()
    assert cycle["convention"].item() == ""


def test_continuum_of_fixed_points_does_not_end_in_a_list_of_starts():
    """Agents who say what they heard last stay where they are: there are no basins to tell apart."""
    copy = meanfield.make_policy(np.array([0.5, *[1.0, 0.0] * 42]), ["a", "b"])
    basins = meanfield.basins(copy, family="dirichlet", starts=16, concentration=0.02)
    assert basins.sizes["attractor"] < 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "uniform"}, "family = 'uniform': expected one of consensus, dirichlet"),
        ({"family": "dirichlet", "starts": 0}, "starts = 0: expected a whole number of at least 1"),
        ({"family": "dirichlet", "concentration": 0.0}, "concentration = 0.0: expected a number above 0"),
        ({"max_time": 0.0}, r"max_time = 0\.0: expected"),
        ({"policy": random_policy(1, 3)}, "policy has 3 words: expected 2 for family = 'consensus'"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.basins(**{"policy": random_policy(1), **arguments})


@pytest.mark.slow
def test_three_words_have_basins_of_random_starts():
    space = meanfield.MemorySpace(3, 1)
    repeat = np.array(
        [[1 / 3] * 3, *(np.eye(3)[b] * 0.97 + 0.01 for _, b in (space.memory(i)[0] for i in range(1, 10)))]
    )
    basins = meanfield.basins(meanfield.make_policy(repeat, ["a", "b", "c"]), family="dirichlet", starts=16)
    np.testing.assert_allclose(basins["word_share"], [[1 / 3] * 3], atol=1e-6)
    assert basins["fraction"].values.tolist() == [1.0]
