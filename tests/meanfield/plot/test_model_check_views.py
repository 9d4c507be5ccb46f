"""Checks of language models, and records of measurements."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex
from scipy.stats import norm

import meanfield
from meanfield import InputError
from meanfield._plot.words import PALETTE

WORDS = {"word": [0, 1], "word_label": ("word", ["his", "her"]), "pair": "his/her", "model": "gpt-4o"}


def test_accuracy_by_kind_of_question():
    result = xr.Dataset(
        {
            "accuracy": ("question", [0.9, 0.5]),
            "standard_error": ("question", [0.05, 0.1]),
            "malformed": (("question", "agent"), [[0.0, 0.0], [0.5, 0.25]]),
        },
        {"question": ["payoff", "round"], "category": ("question", ["Rules", "Time"]), "model": "phi_4"},
        {"kind": "comprehension"},
    )
    axes = meanfield.plot(result)
    bars = axes.patches
    assert [bar.get_height() for bar in bars] == [0.9, 0.5]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == list(PALETTE[:2])
    np.testing.assert_allclose([one[:, 1] for one in axes.collections[0].get_segments()], [[0.85, 0.95], [0.4, 0.6]])
    (malformed,) = (line for line in axes.lines if line.get_label() == "not in the format")
    assert malformed.get_ydata().tolist() == [0, 0.375]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Rules", "Time", "not in the format"]
    assert axes.get_xticklabels()[1].get_text() == "round" and axes.get_title() == "Phi-4"


@pytest.fixture
def generated() -> xr.Dataset:
    """Ten words in each of three states, the last of which was not tested."""
    share = np.array([0.2, 0.5, 0.9])
    interval = np.stack([share - 0.1, share + 0.1], -1)
    return xr.Dataset(
        {
            "count": (("state", "word"), np.array([[2, 8], [5, 5], [9, 1]])),
            "q": (("state", "word"), [[0.3, 0.7], [0.5, 0.5], [1.0, 0.0]]),
            "share_interval": (("state", "word", "bound"), np.stack([interval, 1 - interval[:, ::-1]], 1)),
            "p_value": ("state", [0.01, 0.9, np.nan]),
            "deviation": (("state", "word"), [[-0.7, 0.7], [0.1, -0.1], [np.nan, np.nan]]),
            "expected_alarms": 0.3,
            "alarm_interval": ("bound", [0, 2]),
        },
        {"state": range(3), "bound": ["low", "high"], **WORDS},
        {"kind": "generation_test", "option_share_level": 0.95, "option_alarm_level": 0.99},
    )


def test_generated_shares_against_the_policy(generated):
    axes = meanfield.plot(generated)
    (container,) = axes.containers
    points, _, (bars,) = container.lines
    np.testing.assert_allclose(points.get_xydata(), [[0.3, 0.2], [0.5, 0.5], [1, 0.9]])
    np.testing.assert_allclose([one[:, 1] for one in bars.get_segments()], [[0.1, 0.3], [0.4, 0.6], [0.8, 1]])
    assert container.get_label() == "his" and axes.get_ylabel() == "generated, 95 % interval"
    turned = meanfield.plot(generated.isel(word=[1, 0])).containers[0].lines[0]
    np.testing.assert_allclose(turned.get_xydata(), points.get_xydata())


def test_p_values_and_false_alarms(generated):
    axes = meanfield.plot(generated, view="p_values")
    heights = [bar.get_height() for bar in axes.patches]
    assert (heights[0], heights[18], sum(heights)) == (1, 1, 2), "the state without a test is not counted"
    expected, _, (bar,) = axes.containers[1].lines
    np.testing.assert_allclose(expected.get_xydata(), [[0.025, 0.3]])
    np.testing.assert_allclose(bar.get_segments()[0][:, 1], [0, 2])


def test_deviations_beside_the_normal_law(generated):
    axes = meanfield.plot(generated, view="deviations")
    assert sum(bar.get_height() for bar in axes.patches) == 2
    x, law = axes.lines[0].get_xydata().T
    np.testing.assert_allclose(law, 2 * axes.patches[0].get_width() * norm.pdf(x))


@pytest.fixture
def record() -> xr.Dataset:
    over = ("order", "state", "word")
    log_p = np.log([[[0.2, 0.3], [0.4, 0.1]], [[0.4, 0.3], [0.4, 0.1]]])
    censored = np.zeros((2, 2, 2), dtype=bool)
    censored[1, 1, 1] = True
    columns = {"log_probability": (over, log_p), "censored": (over, censored)}
    columns["captured_mass"] = (over[:2], np.exp(log_p).sum(-1))
    coords = {"order_label": ("order", ["his, her", "her, his"]), "state": range(2), **WORDS}
    return xr.Dataset(columns, coords, {"kind": "record"})


def test_the_mass_of_the_words_in_each_order(record):
    axes = meanfield.plot(record)
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], [[0.5, 0.5], [0.7, 0.5]])
    assert [line.get_label() for line in axes.lines] == ["his, her", "her, his"]


def test_bounds_of_log_probabilities_are_open(record):
    lines = meanfield.plot(record, view="log_probability").lines
    his, _, her, bounded = lines
    np.testing.assert_allclose(his.get_ydata(), [np.log([0.2, 0.4]).mean(), np.log(0.4)])
    assert her.get_xydata().tolist() == [[0, np.log(0.3)]] and her.get_label() == "her"
    assert bounded.get_xdata().tolist() == [1] and bounded.get_fillstyle() == "none"
    assert bounded.get_color() == PALETTE[1]
    policy = record.assign(q=record["log_probability"].isel(order=0)).assign_attrs(kind="policy")
    assert len(meanfield.plot(policy, view="captured_mass").lines) == 2
    with pytest.raises(InputError, match=r"no captured_mass, expected one made with policy_extraction.extract"):
        meanfield.plot(policy.drop_vars("captured_mass"), view="captured_mass")


def test_warnings_about_policies():
    report = xr.Dataset(
        {
            "warning": (("policy", "check"), [["", "low"], ["", ""]]),
            "lowest_mass": ("policy", [0.2, np.nan]),
            "median_mass": ("policy", [0.4, np.nan]),
        },
        {"policy": [0, 1], "check": ["filter", "captured_mass"], "model": ("policy", ["m", "m"])},
        {"kind": "policy_check", "option_least_mass": 0.5},
    )
    axes = meanfield.plot(report)
    assert axes.collections[0].get_array().reshape(2, 2).tolist() == [[0, 1], [0, 0]]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["filter", "captured mass"]
    assert axes.get_ylim() == (2, 0) and axes.get_xlabel() == "warnings (filled): 1"
    axes = meanfield.plot(report, view="captured_mass")
    assert [line.get_ydata()[0] for line in axes.lines[:2]] == [0.2, 0.4]
    assert axes.get_legend_handles_labels()[1][2:] == ["not recorded: 1", "least that passes"]


def test_predictions_inside_intervals_of_each_level():
    coords = {"state": [0], **WORDS}
    levels = {"held_out_level": ("prediction", [0.1, 0.6, 0.35, 0.9])}
    policy = xr.Dataset({"q": (("state", "word"), [[0.5, 0.5]]), **levels}, coords, {"kind": "policy"})
    diagonal, inside = meanfield.plot(policy, view="calibration").lines
    assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
    at = dict(zip(inside.get_xdata().round(2), inside.get_ydata(), strict=True))
    assert [at[level] for level in (0.0, 0.1, 0.34, 0.36, 0.6, 1.0)] == [0, 0.25, 0.25, 0.5, 0.75, 1]
    assert inside.get_label() == "4 predictions"
    with pytest.raises(InputError, match=r"no held_out_level, expected one made with policy_extraction.measure"):
        meanfield.plot(policy.drop_vars("held_out_level"), view="calibration")
