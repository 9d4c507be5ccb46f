"""Populations that were really run: words by round, posterior intervals, observed numbers against predicted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield._plot.words import PALETTE
from validation.populations import empirical_policy

SAID = np.array([[[0, 0], [0, 1], [0, 0], [0, 0]], [[1, 1], [0, 1], [1, 1], [1, 1]]])


@pytest.fixture
def population() -> xr.Dataset:
    """Two runs of two rounds of two agents."""
    return xr.Dataset(
        {
            "said": (("run", "interaction", "speaker"), SAID),
            "success_rate": (("run", "round"), [[0.5, 1.0], [0.5, 1.0]]),
        },
        {"round": [1, 2], "word": [0, 1], "word_label": ("word", ["his", "her"]), "pair": "his/her", "model": "gpt-4o"},
        {"kind": "live_population"},
    )


def test_words_said_by_round(population):
    axes = meanfield.plot(population)
    *runs, mean = axes.lines
    np.testing.assert_allclose([line.get_ydata() for line in runs], [[0.75, 1], [0.25, 0]])
    np.testing.assert_allclose(mean.get_xydata(), [[1, 0.5], [2, 0.5]])
    assert (mean.get_label(), mean.get_color()) == ("his", PALETTE[0])
    assert axes.get_ylabel() == "share of 'his' said" and axes.get_title() == "GPT-4o, {his, her}"


def test_success_by_round(population):
    axes = meanfield.plot(population, view="success_rate")
    np.testing.assert_allclose(axes.lines[-1].get_xydata(), [[1, 0.5], [2, 1]])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("population round", "success rate")


def test_posterior_intervals_by_the_number_of_choices():
    states, counts = ("", "A,A", "A,A", "B,A"), (40, 90, 10, 3)
    rows = [("m", "A_B", 1, state, word, n) for state, word, n in zip(states, "AABA", counts, strict=True)]
    policy = empirical_policy(
        pd.DataFrame(rows, columns=["model", "options", "memory_length", "state", "choice", "count"])
    )
    axes = meanfield.plot(policy, view="posterior")
    points, _, (bars,) = axes.containers[0].lines
    np.testing.assert_allclose(points.get_xydata(), np.column_stack([policy["observed"], policy["q"][:, 0]]))
    assert len(bars.get_segments()) == 5
    exact = policy.assign(alpha=policy["alpha"] * 0 + 1.0, q=policy["q"] * 0 + 0.5)
    (bars,) = meanfield.plot(exact, view="posterior").containers[0].lines[2]
    np.testing.assert_allclose(bars.get_segments()[0][:, 1], [0.025, 0.975], err_msg="Beta(1, 1) is uniform")
    with pytest.raises(
        InputError, match=r"no observed, expected one made with validation.populations.empirical_policy"
    ):
        meanfield.plot(policy.drop_vars("observed"), view="posterior")


@pytest.fixture
def tests() -> xr.Dataset:
    table = pd.DataFrame(
        {
            "quantity": ["majority word", "flips", "majority word", "time", "time"],
            "verdict": ["agrees", "disagrees", "too few data", "agrees", "agrees"],
            "observed": [0.9, 0.2, np.nan, 100.0, 5000.0],
            "predicted": [0.8, 0.6, np.nan, 120.0, 4000.0],
            "low": [0.7, 0.1, np.nan, np.nan, np.nan],
            "high": [1.0, 0.3, np.nan, np.nan, np.nan],
        }
    )
    return table.to_xarray().assign_attrs(kind="real_populations", level=0.99)


def test_observed_shares_against_predicted_ones(tests):
    axes = meanfield.plot(tests)
    agrees, differs = axes.containers
    assert agrees.lines[0].get_xydata().tolist() == [[0.8, 0.9]] and differs.lines[0].get_xydata().tolist() == [
        [0.6, 0.2]
    ]
    np.testing.assert_allclose(differs.lines[2][0].get_segments()[0][:, 1], [0.1, 0.3])
    labels = sorted(axes.get_legend_handles_labels()[1])
    assert labels == ["flips, disagrees: 1", "majority word, agrees: 1", "without numbers: 1"]
    assert axes.get_ylabel() == "observed, 99 % interval"


def test_observed_times_against_predicted_ones(tests):
    axes = meanfield.plot(tests, view="times")
    assert axes.containers[0].lines[0].get_xydata().tolist() == [[120, 100], [4000, 5000]]
    assert (axes.get_xscale(), axes.xaxis.get_major_formatter()(1000.0)) == ("log", "1,000")
    assert meanfield.plot(tests.isel(index=[3]), view="times").get_xscale() == "linear"
    without = meanfield.plot(tests.isel(index=[0, 1]), view="times")
    assert without.texts[0].get_text().startswith("nothing to draw:") and not without.containers
