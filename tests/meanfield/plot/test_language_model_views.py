"""Checks and records of language models, and populations that were really run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm

import meanfield
from _drawings import labels, notes, points, ticks
from _drawn_results import drawn
from meanfield._plot.words import PALETTE

WORDS = {"word": [0, 1], "word_label": ("word", ["his", "her"])}


def test_accuracy_by_kind_of_question():
    columns = {
        "accuracy": ("question", [0.9, 0.5]),
        "standard_error": ("question", [0.05, 0.1]),
        "malformed": (("question", "agent"), [[0.0, 0.0], [0.5, 0.25]]),
    }
    coords = {"question": ["payoff", "round"], "category": ("question", ["Rules", "Time"])}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "comprehension"}))
    assert [bar.get_height() for bar in axes.patches] == [0.9, 0.5]
    np.testing.assert_allclose([one[:, 1] for one in axes.collections[0].get_segments()], [[0.85, 0.95], [0.4, 0.6]])
    assert points(axes, "not in the format")[:, 1].tolist() == [0, 0.375]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Rules", "Time", "not in the format"]


@pytest.fixture
def generated() -> xr.Dataset:
    """Ten words in each of three states, the last of which was not tested."""
    share = np.array([0.2, 0.5, 0.9])
    interval = np.stack([share - 0.1, share + 0.1], -1)
    columns = {
        "count": (("state", "word"), np.array([[2, 8], [5, 5], [9, 1]])),
        "q": (("state", "word"), [[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]),
        "share_interval": (("state", "word", "bound"), np.stack([interval, 1 - interval[:, ::-1]], 1)),
        "p_value": ("state", [0.01, 0.9, np.nan]),
        "deviation": (("state", "word"), [[-0.7, 0.7], [0.1, -0.1], [np.nan, np.nan]]),
        "expected_alarms": 0.3,
        "alarm_interval": ("bound", [0, 2]),
    }
    attrs = {"kind": "generation_test", "option_share_level": 0.95, "option_alarm_level": 0.99}
    return xr.Dataset(columns, {"state": range(3), "bound": ["low", "high"], **WORDS}, attrs)


def test_generated_words_against_the_policy(generated):
    expected = [[0.3, 0.2, 0.1, 0.3], [0.5, 0.5, 0.4, 0.6], [1, 0.9, 0.8, 1]]
    for one in (generated, generated.isel(word=[1, 0])):
        np.testing.assert_allclose(points(meanfield.plot(one), "his"), expected)
    axes = meanfield.plot(generated, view="p_values")
    heights = [bar.get_height() for bar in axes.patches]
    assert (heights[0], heights[18], sum(heights)) == (1, 1, 2), "the state without a test is not counted"
    np.testing.assert_allclose(points(axes, "false alarms, 99 %"), [[0.025, 0.3, 0, 2]])
    axes = meanfield.plot(generated, view="deviations")
    x, density = axes.lines[0].get_xydata().T
    assert sum(bar.get_height() for bar in axes.patches) == 2
    np.testing.assert_allclose(density, 2 * axes.patches[0].get_width() * norm.pdf(x))


def test_records_have_the_mass_of_the_words_in_each_order_and_open_bounds():
    log_p = np.log([[[0.2, 0.3], [0.4, 0.1]], [[0.4, 0.3], [0.4, 0.1]]])
    censored = np.zeros(log_p.shape, dtype=bool)
    censored[1, 1, 1] = True
    over = ("order", "state", "word")
    columns = {"log_probability": (over, log_p), "censored": (over, censored)}
    columns["captured_mass"] = (over[:2], np.exp(log_p).sum(-1))
    coords = {"order_label": ("order", ["his, her", "her, his"]), "state": range(2), **WORDS}
    record = xr.Dataset(columns, coords, {"kind": "record"})
    axes = meanfield.plot(record)
    for label, mass in (("his, her", [0.5, 0.5]), ("her, his", [0.7, 0.5])):
        np.testing.assert_allclose(points(axes, label)[:, 1], mass)
    axes = meanfield.plot(record, view="log_probability")
    np.testing.assert_allclose(points(axes, "his")[:, 1], [np.log([0.2, 0.4]).mean(), np.log(0.4)])
    np.testing.assert_allclose(points(axes, "her"), [[0, np.log(0.3)]])
    bounded = axes.lines[-1]
    assert (bounded.get_xdata().tolist(), bounded.get_fillstyle(), bounded.get_color()) == ([1], "none", PALETTE[1])


def test_warnings_about_policies():
    columns = {
        "warning": (("policy", "check"), [["", "low"], ["", ""]]),
        "lowest_mass": ("policy", [0.2, np.nan]),
        "median_mass": ("policy", [0.4, np.nan]),
    }
    coords = {"policy": [0, 1], "check": ["filter", "captured_mass"]}
    report = xr.Dataset(columns, coords, {"kind": "policy_check", "option_least_mass": 0.5})
    axes = meanfield.plot(report)
    assert axes.collections[0].get_array().reshape(2, 2).tolist() == [[0, 1], [0, 0]]
    assert ticks(axes, "x") == ["filter", "captured mass"]
    axes = meanfield.plot(report, view="captured_mass")
    assert [points(axes, label)[0, 1] for label in ("lowest", "median", "least that passes")] == [0.2, 0.4, 0.5]
    assert "not recorded: 1" in labels(axes)


def test_factors_explain_parts_of_the_variance():
    columns = {
        "lowest": ("conclusion", [0.1, 0.2]),
        "highest": ("conclusion", [0.3, 0.2]),
        "explained": (("part", "conclusion"), [[0.7, 0.2], [0.3, 0.8]]),
    }
    coords = {"conclusion": ["kappa", "word_share"], "part": ["template", "interactions"]}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "robustness"}))
    bars = [[(bar.get_x(), bar.get_width()) for bar in one] for one in axes.containers]
    np.testing.assert_allclose(bars, [[(0, 0.7), (0, 0.2)], [(0.7, 0.3), (0.2, 0.8)]])
    assert ticks(axes) == ["kappa\n0.1 to 0.3", "word share\n0.2"]


def test_predictions_inside_intervals_of_each_level():
    columns = {"q": (("state", "word"), [[0.5, 0.5]]), "held_out_level": ("prediction", [0.1, 0.6, 0.35, 0.9])}
    policy = xr.Dataset(columns, {"state": [0], **WORDS}, {"kind": "policy"})
    level, inside = points(meanfield.plot(policy, view="calibration"), "4 predictions").T
    at = dict(zip(level.round(2), inside, strict=True))
    assert [at[level] for level in (0.0, 0.1, 0.34, 0.36, 0.6, 1.0)] == [0, 0.25, 0.25, 0.5, 0.75, 1]


# --- populations that were really run ---


def test_words_and_success_by_round():
    """Two runs of two rounds of two agents."""
    said = np.array([[[0, 0], [0, 1], [0, 0], [0, 0]], [[1, 1], [0, 1], [1, 1], [1, 1]]])
    columns = {
        "said": (("run", "interaction", "speaker"), said),
        "success_rate": (("run", "round"), [[0.5, 1.0], [0.5, 1.0]]),
    }
    population = xr.Dataset(columns, {"round": [1, 2], **WORDS}, {"kind": "live_population"})
    axes = meanfield.plot(population)
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines[:2]], [[0.75, 1], [0.25, 0]])
    np.testing.assert_allclose(points(axes, "his"), [[1, 0.5], [2, 0.5]])
    axes = meanfield.plot(population, view="success_rate")
    np.testing.assert_allclose(points(axes, "mean of the runs"), [[1, 0.5], [2, 1]])


def test_posterior_intervals_by_the_number_of_choices():
    policy = drawn("policy", 2)
    shown = points(meanfield.plot(policy, view="posterior"), "A")
    np.testing.assert_allclose(shown[:, :2], np.column_stack([policy["observed"], policy["q"][:, 0]]))
    uniform = policy.assign(alpha=policy["alpha"] * 0 + 1.0, q=policy["q"] * 0 + 0.5)
    shown = points(meanfield.plot(uniform, view="posterior"), "A")
    np.testing.assert_allclose(shown[0, 2:], [0.025, 0.975], err_msg="Beta(1, 1) is uniform")


def test_observed_numbers_against_predicted_ones():
    columns = {
        "quantity": ["majority word", "flips", "majority word", "time", "time"],
        "verdict": ["agrees", "disagrees", "too few data", "agrees", "agrees"],
        "observed": [0.9, 0.2, np.nan, 100.0, 5000.0],
        "predicted": [0.8, 0.6, np.nan, 120.0, 4000.0],
        "low": [0.7, 0.1, np.nan, np.nan, np.nan],
        "high": [1.0, 0.3, np.nan, np.nan, np.nan],
    }
    tests = pd.DataFrame(columns).to_xarray().assign_attrs(kind="real_populations", level=0.99)
    axes = meanfield.plot(tests)
    np.testing.assert_allclose(points(axes, "majority word, agrees: 1"), [[0.8, 0.9, 0.7, 1.0]])
    np.testing.assert_allclose(points(axes, "flips, disagrees: 1"), [[0.6, 0.2, 0.1, 0.3]])
    assert "without numbers: 1" in labels(axes)
    axes = meanfield.plot(tests, view="times")
    assert axes.containers[0].lines[0].get_xydata().tolist() == [[120, 100], [4000, 5000]]
    assert axes.get_xscale() == "log" and meanfield.plot(tests.isel(index=[3]), view="times").get_xscale() == "linear"
    without = meanfield.plot(tests.isel(index=[0, 1]), view="times")
    assert notes(without)[0].startswith("nothing to draw:")


def test_tables_of_populations():
    scores = drawn("choice_scores")
    axes = meanfield.plot(scores)
    for name, one in scores.groupby("law"):
        np.testing.assert_array_equal(np.sort(points(axes, name)[:, 0]), np.sort(one["log_likelihood"]))
    power = drawn("power")
    axes = meanfield.plot(power)
    for size, one in power.groupby("n_agents"):
        np.testing.assert_array_equal(points(axes, f"κ = 0.1, N = {size}"), one[["runs", "power"]])
    won = drawn("winners")
    axes = meanfield.plot(won)
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], won.sort_values("word")["share"])
    sharp = drawn("sharpness")
    axes = meanfield.plot(sharp)
    shown = np.concatenate([line.get_xdata() for line in axes.lines[:-1]])
    np.testing.assert_array_equal(np.sort(shown), np.sort(sharp["sharpness"]))
