"""Outcomes of trajectories that do not come to rest, known ones and real limit cycles."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from _policies import drift, oscillating_pair
from meanfield._dynamics.recurrence import LIMIT_CYCLE, SLOW_TRANSIENT, WINDOWS, recurrence

TIMES = WINDOWS[0]


def two_words(trajectory):
    return np.stack([trajectory, 1 - trajectory], axis=1)


def sine(period, phase=0.0):
    return np.sin(2 * np.pi * TIMES / period + phase)


CYCLES = {  # the word share and its period
    "fast": (two_words(0.5 + 0.4 * sine(0.7)), 0.7),
    "small": (two_words(0.5 + 1e-4 * sine(3.3, 2.5)), 3.3),
    "slow": (two_words(0.5 + 0.4 * sine(66.0, 4.0)), 66.0),
    "of its longest repeat": (two_words(0.5 + 0.2 * sine(13.0) + 0.15 * sine(6.5, np.pi / 2)), 13.0),
    "of the word that varies most": (np.stack([0.3 + 0 * TIMES, 0.35 + sine(9) / 5, 0.35 - sine(9) / 5], 1), 9.0),
}


@pytest.mark.parametrize("name", CYCLES)
def test_cycles_have_their_period(name):
    share, period = CYCLES[name]
    assert recurrence(TIMES, share) == (LIMIT_CYCLE, pytest.approx(period, rel=2e-3))


TRAJECTORIES = {
    "drift": 0.3 + 1e-3 * TIMES,
    "decaying sine": 0.5 + 0.3 * np.exp(-TIMES / 2000) * np.sin(TIMES),
    "noise": 0.4 + 1e-7 * np.random.default_rng(0).standard_normal(len(TIMES)),
    "changing frequency": 0.5 + 0.3 * np.sin(TIMES + 3e-3 * TIMES**2),
    "one turn": 0.5 + 0.3 * sine(210),
}


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_what_does_not_repeat_itself_is_a_slow_transient(name):
    assert recurrence(TIMES, two_words(TRAJECTORIES[name])) == (SLOW_TRANSIENT, pytest.approx(np.nan, nan_ok=True))


def cyclic_majority(error):
    """W = 3, H = 2: the word heard and said most, a coin among equals; with probability `error` the one after it."""
    space = meanfield.MemorySpace(3, 2)
    q = np.empty((space.n_states, 3))
    for i in range(space.n_states):
        counts = np.bincount(np.array(space.memory(i), dtype=int).ravel(), minlength=3)
        majority = (counts == counts.max()) / (counts == counts.max()).sum()
        q[i] = (1 - error) * majority + error * np.roll(majority, 1)
    return meanfield.make_policy(q, ["a", "b", "c"])


def turns(policy, start, until, observed):
    """Times between crossings of the middle of the first word's range, upwards, by another integrator."""
    q, times = policy["q"].values, until + np.arange(0, observed, 0.01)
    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-12, "t_eval": times}
    solution = solve_ivp(lambda t, x: drift(x, q), (0, until + observed), start, **options)
    share = solution.y.T @ q[:, 0]
    above = share - (share.max() + share.min()) / 2
    rises = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    return np.diff(times[rises] + 0.01 * above[rises] / (above[rises] - above[rises + 1]))


def uneven_start(policy):
    return 0.6 * meanfield.consensus(policy, "a").values + 0.4 * meanfield.consensus(policy, "b").values


@pytest.mark.slow
@pytest.mark.parametrize("policy", [cyclic_majority(0.16), oscillating_pair()], ids=["W = 3, H = 2", "W = 2, H = 3"])
def test_limit_cycle_of_the_rate_equation_has_the_period_of_another_integrator(policy):
    start = uneven_start(policy)
    solution = meanfield.solve(policy, initial=start, times=np.array([0.0, 1.0]), max_time=1000.0)
    assert solution["outcome"].item() == LIMIT_CYCLE and not solution["steady"]
    periods = turns(policy, start, 1000.0, 200.0)
    assert np.ptp(periods) < 1e-3
    assert solution["period"].item() == pytest.approx(periods.mean(), rel=1e-4)


def test_its_centre_is_an_unstable_focus_and_the_only_fixed_point():
    points = meanfield.fixed_points(oscillating_pair())
    assert points["word_share"].values[:, 0] == pytest.approx([0.5], abs=1e-12)
    assert points["stability"].values.tolist() == ["unstable"]
    assert points["oscillatory"].values.tolist() == [True]


def test_without_the_cause_of_the_cycle_the_same_start_comes_to_rest():
    """The control: 'say the next word' so often that the symmetric state is a stable focus."""
    policy = cyclic_majority(0.3)
    options = {"times": np.array([0.0, 1.0]), "max_time": 1000.0}
    solution = meanfield.solve(policy, initial=uneven_start(policy), **options)
    assert solution["outcome"].item() == "steady"
    assert np.isnan(solution["period"])
    assert meanfield.spectrum(policy, solution["composition"], k=1)["eigenvalue_imaginary"].item() > 0.1


def test_long_limit_cycle_is_one():
    """Close to where the cycle is born a turn takes long; another integrator measures 109.42 units of time."""
    policy = cyclic_majority(0.12)
    start = uneven_start(policy)
    solution = meanfield.solve(policy, initial=start, times=np.array([0.0, 1.0]), max_time=1000.0)
    assert solution["outcome"].item() == LIMIT_CYCLE
    assert solution["period"].item() == pytest.approx(109.42, abs=0.02)
