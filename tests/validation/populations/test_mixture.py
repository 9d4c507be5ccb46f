"""Mixtures of policies: as many as there were, and which one held when."""

from __future__ import annotations

import numpy as np
import pytest

from _ordered_populations import experiments, play
from meanfield import InputError
from validation.populations import mixture
from validation.populations._experiment import Experiment
from validation.populations._mixture import Mixture, _observed, filtered


def two_kinds(run: int, step: int, agent: int, first: bool) -> tuple[float, float]:
    """Every other run leans to B, and forgets more."""
    return (2.0, 0.6) if run % 2 else (0.4, -0.8)


def changing(run: int, step: int, agent: int, first: bool) -> tuple[float, float]:
    """Each run changes its policy after 60 interactions, some one way, some the other."""
    return two_kinds(run + (step >= 60), step, agent, first)


def test_one_policy_is_one_component():
    found = mixture(experiments(np.random.default_rng(0)))
    assert found.components["share"].tolist() == [1] and found.components["sharpness"].tolist() == [1]
    assert found.numbers.loc[found.numbers["chosen"], "components"].tolist() == [1]
    assert (found.numbers["gain"] <= 0).all() and found.runs["component"].eq(0).all()


def test_two_policies_of_runs_are_two_components():
    found = mixture(experiments(np.random.default_rng(1), two_kinds, 8))
    assert found.numbers.loc[found.numbers["chosen"], "components"].tolist() == [2]
    runs = found.runs.set_index("run")["component"]
    assert runs[::2].nunique() == runs[1::2].nunique() == 1 and runs[0] != runs[1]
    sharp = found.components.set_index("component")["sharpness"]
    assert sharp[runs[1]] > 1 > sharp[runs[0]]
    assert np.isinf(found.components["length"]).all() and found.runs["draws"].tolist() == [1] * 24
    one = found.numbers.set_index("components")
    assert one.loc[2, "gain"] > 5 * one.loc[2, "gain_error"] > 0
    assert found.stretches["start"].eq(0).all() and len(found.stretches) == 24


def test_change_points_are_found():
    real = experiments(np.random.default_rng(2), changing, 8)
    found = mixture(real, period=12)
    assert found.numbers.loc[found.numbers["chosen"], "components"].tolist() == [2]
    last = real.events.groupby("run")["step"].max()
    stretches = found.stretches.set_index("run")
    changes = stretches.loc[stretches["start"] > 0, "start"].groupby("run").first()
    longer = last.index[last > 84]
    assert (abs(changes.reindex(longer) - 60) <= 12).mean() > 0.7
    ends = found.stretches.groupby("run")["stop"].max()
    np.testing.assert_array_equal(ends, last + 1)
    with_change = mixture(real)
    best = [table["log_likelihood"].max() for table in (found.numbers, with_change.numbers)]
    assert best[0] > best[1]


def test_likelihood_is_the_sum_over_all_histories():
    """Two policies and three periods: 8 histories, by hand."""
    real = play(np.random.default_rng(0), 2)
    (one,) = Experiment.all_of(real._replace(events=real.events[real.events["step"] < 9]))
    observed = _observed(one, 3)
    random = np.random.default_rng(1)
    q = random.dirichlet([1, 1], (2, one.space.n_states))
    shares, change = np.array([0.3, 0.7]), 0.2
    held = filtered(observed, Mixture(q, shares, change))
    states, chosen = one.choices.states(), one.choices.chosen
    jumps = (1 - change) * np.eye(2) + change * shares
    for run in range(2):
        total, first = 0.0, 0.0
        for history in np.ndindex(2, 2, 2):
            p = shares[history[0]] * jumps[history[0], history[1]] * jumps[history[1], history[2]]
            mine = one.run_of == run
            policies = np.array(history)[one.step_of[mine] // 3]
            p *= np.prod(q[policies, states[mine], chosen[mine]])
            total += p
            first += p * (history[1] == 0)
        assert held.log_likelihood[run] == pytest.approx(np.log(total))
        assert held.weights[run, 1, 0] == pytest.approx(first / total)
    assert held.drawn.sum(2).max() <= 1 + 1e-12
    np.testing.assert_allclose(held.weights.sum(2), 1)


def test_steps_may_be_any_numbers_in_order():
    real = play(np.random.default_rng(0), 3)
    late = real._replace(events=real.events.assign(step=10**9 + 1000 * real.events["step"]))
    found, again = mixture(late, period=10).stretches, mixture(real, period=10).stretches
    np.testing.assert_array_equal(found["start"], 10**9 + 1000 * again["start"])
    np.testing.assert_array_equal(found["component"], again["component"])


def test_few_data_are_no_failure():
    found = mixture(play(np.random.default_rng(0), 1), period=10)
    assert found.numbers["components"].tolist() == [1] and found.numbers["gain"].isna().all()
    assert mixture(play(np.random.default_rng(0), 2), most=3).runs["component"].tolist() == [0, 0]


def test_bad_arguments():
    real = play(np.random.default_rng(0), 1)
    for options, message in [({"most": 0}, "most = 0"), ({"period": -1}, "period = -1"), ({"seed": -1}, "seed = -1")]:
        with pytest.raises(InputError, match=message):
            mixture(real, **options)


@pytest.mark.slow
def test_one_policy_seldom_looks_like_two():
    """30 data sets: the rule of one standard error is passed by chance in fewer than a fifth of them."""
    sets = (experiments(np.random.default_rng(100 + k)) for k in range(30))
    numbers = [mixture(one, most=2, seed=k).numbers for k, one in enumerate(sets)]
    assert sum(int(table.loc[table["chosen"], "components"].iloc[0]) > 1 for table in numbers) < 6
