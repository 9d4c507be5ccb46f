"""The integrator against closed forms, and its batches against one problem at a time."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from conftest import random_composition, random_policy
from meanfield._mixture import Mixture, mixture_drift
from meanfield._rows import heard_rows, spoken_rows
from meanfield._tsit5 import Problems, Tolerances, integrate_problems, runge_kutta

FAST = np.array([0.3, 1.0, 4.0, 15.0])
TIMES = np.linspace(0, 3, 50)


def logistic(start: float = 0.01) -> Problems:
    """dx/dt = r x (1 - x), each with its own r."""
    return Problems(lambda x, lanes: FAST[lanes, None] * x * (1 - x), lambda x, _: x, np.full((4, 1), start))


def exact(times: np.ndarray, start: float = 0.01) -> np.ndarray:
    growth = start / (1 - start) * np.exp(FAST[:, None] * times)
    return growth / (1 + growth)


@pytest.mark.parametrize("first_step", [None, 0.1, 50.0])
def test_errors_follow_the_tolerance(first_step):
    errors = []
    for rtol in (1e-5, 1e-8, 1e-11):
        found, *_ = integrate_problems(logistic(), TIMES, 3.0, Tolerances(rtol, rtol), first_step=first_step)
        errors.append(np.abs(found[..., 0] - exact(TIMES)).max())
        assert errors[-1] < 100 * rtol
    assert errors[0] > 1e3 * errors[2]  # the control: it is the tolerance that decides


def test_one_step_is_of_order_five():
    """On a linear problem: the error of a step falls with the sixth power of its length, or a little faster."""
    errors = []
    steps = np.array([0.1, 0.05, 0.025])
    for step in steps:
        x = np.ones((1, 1))
        after, _ = runge_kutta(lambda y, _: -2 * y, x, -2 * x, step)
        errors.append(abs(after.item() - np.exp(-2 * step)))
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(6.3, abs=0.6)


def test_problems_come_to_rest_each_at_its_own_time():
    found, end, when, slope = integrate_problems(logistic(), TIMES, 100.0, Tolerances(1e-8, 1e-11), at_rest=1e-6)
    assert (np.diff(when) < 0).all()
    assert (np.abs(slope) < 1e-6).all()
    assert end == pytest.approx(1, abs=1e-5)
    assert found[3, -1] == end[3]


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr("meanfield._tsit5.MAX_STEPS", 5)
    with pytest.raises(meanfield.InputError, match="time 3 is not reached in 5 steps"):
        integrate_problems(logistic(), TIMES, 3.0, Tolerances(1e-8, 1e-11))


def test_batches_are_single_solutions(monkeypatch):
    """More starts than a batch holds; each with steps of its own."""
    policy = random_policy(1, 2, 2)
    starts = np.random.default_rng(0).dirichlet(np.ones(21), size=7)
    monkeypatch.setattr("meanfield._integrate.BATCH_NUMBERS", 3 * 21)
    alone = [meanfield.solve(policy, initial=start)["word_share"].values for start in starts]
    together = meanfield.solve(policy, initial=xr.DataArray(starts, dims=("start", "state")))["word_share"]
    np.testing.assert_allclose(together.values, alone, atol=1e-12)


@pytest.mark.parametrize("size", [(2, 1), (2, 3), (3, 2), (5, 2)])
def test_rows_are_the_rate_equation(size):
    policy = random_policy(3, *size)
    q, space = policy["q"].values, meanfield.space_of(policy)
    x = np.array([random_composition(seed, space.n_states) for seed in range(3)])
    found = heard_rows(spoken_rows(x, q.T.copy(), space), x @ q) - x
    mixture = Mixture(q[None], np.ones(1), np.zeros(space.n_words))
    np.testing.assert_allclose(found, [mixture_drift(one[None], mixture, space)[0] for one in x], atol=1e-15)
