"""Tests of one policy: uniform p-values where there is one, small ones where choices depend on what they should not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import meanfield
from _ordered_populations import H, experiments, play
from _real_populations import joined, real_log
from meanfield import InputError
from meanfield.datasets import RealPopulations
from validation.populations import one_policy

TESTS = ["compared", "direction"]


def p_values(populations: RealPopulations, seed: int = 0, **options) -> pd.Series:
    return one_policy(populations, seed=seed, **{"imitations": 19} | options).set_index(TESTS)["p_value"]


@pytest.fixture(scope="module")
def real() -> RealPopulations:
    return experiments(np.random.default_rng(1))


def test_table(real):
    table = one_policy(real, imitations=3)
    assert table.attrs["kind"] == "one_policy"
    assert len(table) == 19 and not table.duplicated(TESTS).any()
    assert table["p_value"].isin([0.25, 0.5, 0.75, 1]).all()
    assert set(table["verdict"]) == {"agrees"}, "p-values of three imitations can't be below 0.01"
    pd.testing.assert_frame_equal(table, one_policy(real, imitations=3))
    assert table.set_index(TESTS).loc[("runs", "sharpness"), "number"] == 12


@pytest.mark.parametrize(
    ("tilt", "found"),
    [
        (lambda run, step, agent, first: (1.6 if run < 4 else 0.7, 0.0), ("experiments", "sharpness")),
        (lambda run, step, agent, first: ([0.5, 1.8][run % 2], 0.0), ("runs", "sharpness")),
        (lambda run, step, agent, first: (1.0, [-1.5, 1.5][agent % 2]), ("agents", "words")),
        (lambda run, step, agent, first: (1.0, 0.7 if first else -0.7), ("first or second", "words")),
    ],
)
def test_departures_are_found(tilt, found):
    table = one_policy(experiments(np.random.default_rng(4), tilt), imitations=19, level=0.95).set_index(TESTS)
    assert table.loc[found, "p_value"] == 0.05 and table.loc[found, "verdict"] == "disagrees"


def test_memories_that_are_too_short_are_found():
    random = np.random.default_rng(5)
    parts = (play(random, 4, remember=H + 1, initial=word, first_run=4 * k) for k, word in enumerate(["", "B"]))
    seen = p_values(joined(*parts))
    assert seen["interaction H + 1", "words"] == 0.05
    assert seen["first or second", "sharpness"] > 0.05


def test_time_can_be_given_a_tilt_for_each_period():
    def halves(run, step, agent, first):
        return (2.0 if step >= 60 else 0.5), 0.0

    populations = experiments(np.random.default_rng(6), halves)
    assert p_values(populations)["time in a run", "sharpness"] == 0.05
    assert p_values(populations, period=60)["time in a run", "sharpness"] > 0.05


def test_few_data_are_no_failure():
    one = play(np.random.default_rng(0), 1, initial="B")
    table = one_policy(one, imitations=2).set_index(TESTS)
    assert table.loc[("experiments", "sharpness"), "verdict"] == "too few data"
    assert table.loc[("agents", "words"), "verdict"] == "agrees"
    single = meanfield.datasets.from_events(one.events.head(1), memory_length=6, words=["A", "B"])
    assert len(one_policy(single, imitations=2)) == 19


def test_agents_without_choice_agree():
    table = one_policy(play(np.random.default_rng(0), 3, lambda *_: (1e9, 0.0), initial="B"), imitations=9)
    assert not (table["verdict"] == "disagrees").any()


def test_what_cannot_be_tabulated_has_one_line():
    rows = [(0, 0, 1, 2, "a", "b"), (0, 1, 1, 2, "c", "d")]
    table = one_policy(real_log(rows, 9), imitations=1)
    assert table["verdict"].tolist() == ["too few data"] and "memory states" in table["note"][0]


@pytest.mark.parametrize(("name", "value"), [("imitations", 0), ("period", 0)])
def test_bad_arguments(real, name, value):
    with pytest.raises(InputError, match=f"{name} = {value}"):
        one_policy(real, **{name: value})


@pytest.mark.slow
def test_p_values_are_uniform_where_there_is_one_policy():
    """200 data sets, stopped when they agree. Each of 19 tests passes with probability 1 - 5e-4: 1 % fail by chance."""
    sets = (experiments(np.random.default_rng(k), runs=3) for k in range(200))
    seen = pd.concat([p_values(one, k, imitations=39) for k, one in enumerate(sets)], axis=1)
    # p-values are multiples of 1/40.
    continuous = seen - np.random.default_rng(0).random(seen.shape) / 40
    uniform = continuous.apply(lambda row: kstest(row, "uniform").pvalue, axis=1)
    assert (uniform > 5e-4).all(), uniform.sort_values()


@pytest.mark.slow
def test_p_values_are_not_uniform_where_runs_differ():
    def tilt(run, step, agent, first):
        return [0.8, 1.25][run % 2], 0.0

    seen = pd.concat([p_values(experiments(np.random.default_rng(k), tilt), k) for k in range(30)], axis=1)
    assert kstest(seen.loc[("runs", "sharpness")], "uniform").pvalue < 1e-4
    assert kstest(seen.loc[("first or second", "sharpness")], "uniform").pvalue > 1e-3, "runs may differ there"
