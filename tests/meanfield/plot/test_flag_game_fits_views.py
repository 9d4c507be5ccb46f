"""Fits of the flag game: curves against N, measured points with intervals, and rows of parameters."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import meanfield
from _endpoint_counts import table
from meanfield._plot.intervals import error_bars, forest, wilson
from theory.flag_game import mechanism1
from validation.comparison import wilson_interval

SIZES = [4, 16, 64]
ENDPOINTS = ["correct_consensus", "wrong_consensus", "polarization", "fragmentation"]
PARAMETERS = ["J", "mean_R", "scale_T", "beta"]


@pytest.fixture
def fit() -> xr.Dataset:
    """J is known, mean_R has an end far away, scale_T is not determined, beta is held."""
    by_size, rng = ("n_agents", "endpoint"), np.random.default_rng(0)
    shares = {name: (by_size, rng.dirichlet(np.ones(4), 3)) for name in ("fitted", "paper")}
    known = [True, True, False, False]
    return xr.Dataset(
        {
            **shares,
            "measured": (by_size, np.array([[5, 3, 2, 0], [8, 2, 7, 3], [10, 0, 15, 5]]) / [[10], [20], [30]]),
            "seeds": ("n_agents", [10, 20, 30]),
            "measured_accuracy": ("n_agents", [0.5, 0.6, np.nan]),
            "measured_accuracy_error": ("n_agents", [0.1, 0.05, np.nan]),
            "fitted_accuracy": ("n_agents", [0.55, 0.58, 0.6]),
            "paper_accuracy": ("n_agents", [0.4, 0.5, 0.6]),
            "estimate": ("parameter", [2.0, -0.2, 4.0, 1.0]),
            "free": ("parameter", [True, True, True, False]),
            "identified": ("parameter", known),
            "interval": (("parameter", "bound"), [[1.5, 2.6], [-0.4, np.inf], [1e-9, 1e9], [np.nan, np.nan]]),
            "bootstrap_standard_error": ("parameter", [0.1, np.nan, np.nan, np.nan]),
            "direction_error": ("direction", [0.1, 0.5, np.inf]),
            "direction_determined": ("direction", [True, True, False]),
        },
        {
            "n_agents": SIZES,
            "endpoint": ENDPOINTS,
            "parameter": PARAMETERS,
            "bound": ["low", "high"],
            "direction": range(3),
        },
        {"kind": "mechanism1_fit", "option_level": 0.95},
    )


def bars_of(axes, number=0):
    """(x, low, high) of the bars of one call of errorbar."""
    segments = axes.containers[number].lines[2][0].get_segments()
    return np.array([[one[0, 0], one[0, 1], one[1, 1]] for one in segments if one.size])


def test_intervals_are_those_of_the_simulator():
    share, trials = np.array([0.0, 0.3, 1.0]), np.array([10, 20, 30])
    expected = [wilson_interval(np.array(s * n), int(n), 0.9) for s, n in zip(share, trials, strict=True)]
    np.testing.assert_allclose(np.transpose(wilson(share, trials, 0.9)), expected, atol=1e-12)
    assert np.isnan(wilson(np.array([0.5]), 0.0)).all()


@pytest.mark.parametrize("view", ["polarization", "endpoints", "accuracy"])
def test_curves_and_measured_points_against_size(fit, view):
    axes = np.ravel(meanfield.plot(fit, view=view, linewidth=3))
    one = fit.sel(endpoint="polarization")
    place, names = (2, ("fitted", "paper")) if view == "endpoints" else (0, ("fitted", "paper"))
    if view == "accuracy":
        one, names = fit, ("fitted_accuracy", "paper_accuracy")
    fitted, paper, points = axes[place].lines[:3]
    np.testing.assert_allclose(fitted.get_xydata(), np.column_stack([SIZES, one[names[0]]]))
    np.testing.assert_allclose(paper.get_ydata(), one[names[1]])
    assert (fitted.get_linestyle(), fitted.get_linewidth(), paper.get_linestyle()) == ("-", 3, "--")
    if view == "accuracy":
        np.testing.assert_allclose(bars_of(axes[0])[0, 1:], [0.5 - 0.196, 0.5 + 0.196], atol=1e-4)
    else:
        np.testing.assert_allclose(points.get_ydata(), one["measured"])
        np.testing.assert_allclose(bars_of(axes[place])[:, 1:], np.transpose(wilson(one["measured"], one["seeds"])))
        assert len(axes) == (4 if view == "endpoints" else 1)
    assert axes[place].get_ylim() == (-0.03, 1.03) and axes[place].get_xlabel() == "number of agents N"


def test_parameters_are_rows(fit):
    axes = meanfield.plot(fit, view="intervals")
    assert [label.get_text() for label in axes.get_yticklabels()] == PARAMETERS
    assert [(text.get_position()[1], text.get_text()) for text in axes.texts] == [(2, "not determined"), (3, "held")]
    known, arrow, others = axes.lines[:3]
    np.testing.assert_allclose(known.get_xydata(), [[2, 0], [-0.2, 1]])
    right = axes.get_xlim()[1]
    assert arrow.get_marker() == ">" and arrow.get_xydata().tolist() == [[right, 1]]
    np.testing.assert_allclose(others.get_xydata(), [[4, 2], [1, 3]])
    assert others.get_fillstyle() == "none" and axes.get_ylim()[0] > axes.get_ylim()[1]
    first, _ = axes.collections[0].get_segments()
    np.testing.assert_allclose(first, [[1.5, 0], [2.6, 0]])
    boot = axes.collections[1].get_segments()[0]
    np.testing.assert_allclose(boot[:, 0], [2 - 0.196, 2 + 0.196], atol=1e-4)
    assert axes.get_xlabel() == "95 % interval; bootstrap below" and axes.get_xscale() == "symlog"


def test_directions_by_their_errors(fit):
    axes = meanfield.plot(fit, view="directions")
    known, open_ones, beyond, threshold = axes.lines
    np.testing.assert_allclose(known.get_xydata(), [[1, 0.1], [2, 0.5]])
    assert len(open_ones.get_xdata()) == 0 and threshold.get_ydata()[0] == 1
    assert beyond.get_xdata() == [3] and beyond.get_label() == "no curvature"


def test_a_real_fit_is_drawn():
    result = mechanism1.fit_copying(table())
    axes = meanfield.plot(result)
    assert [line.get_label() for line in axes.lines] == [name.replace("_", " ") for name in ENDPOINTS]
    for line, name in zip(axes.lines, ENDPOINTS, strict=True):
        np.testing.assert_allclose(line.get_ydata(), result["fitted"].sel(endpoint=name))
    rows = meanfield.plot(result, view="parameters")
    np.testing.assert_allclose(rows.lines[0].get_xdata(), result["estimate"])
    lengths = [np.ptp(one[:, 0]) for one in rows.collections[0].get_segments()]
    np.testing.assert_allclose(lengths, 2 * result["standard_error"])


def test_simulated_values_beside_measured_ones():
    over = ("n_agents", "quantity")
    result = xr.Dataset(
        {
            "measured": (over, [[0.4], [0.2]]),
            "simulated": (over, [[0.45], [0.6]]),
            "simulated_error": (over, [[0.01], [0.02]]),
            "interval": ((*over, "bound"), [[[0.3, 0.5]], [[0.1, 0.3]]]),
            "inside": (over, [[1.0], [0.0]]),
        },
        {"n_agents": [4, 8], "quantity": ["polarization"], "bound": ["low", "high"]},
        {"kind": "mechanism1_comparison", "option_level": 0.95},
    )
    axes = meanfield.plot(result)
    simulated, inside, outside = (axes.lines[0], *(one.lines[0] for one in axes.containers))
    np.testing.assert_allclose(simulated.get_xydata(), [[4, 0.45], [8, 0.6]])
    np.testing.assert_allclose(inside.get_xydata(), [[4, 0.4]])
    np.testing.assert_allclose(outside.get_xydata(), [[8, 0.2]])
    assert outside.get_markerfacecolor() == "white" and axes.get_title() == "polarization"
    np.testing.assert_allclose(bars_of(axes, 1), [[8, 0.1, 0.3]])
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["simulated, ± SE", "measured, 95 %", "simulated lies outside"]


def test_ends_beyond_the_limits_are_arrows():
    axes, rows = plt.subplots()[1], np.arange(3)
    ends = np.array([-np.inf, 0.5, np.nan]), np.array([1, 9.0, np.nan])
    forest(axes, rows, rows + 0.0, *ends, (-1.0, 5.0), color="red")
    _, left, right = axes.lines
    assert (left.get_marker(), left.get_xydata().tolist()) == ("<", [[-1, 0]])
    assert (right.get_marker(), right.get_xydata().tolist()) == (">", [[5, 1]])
    drawn = [one[:, 0].tolist() for one in axes.collections[0].get_segments() if one.size]
    assert drawn == [[-1, 1], [0.5, 5]], "no bar without an interval"


def test_rounding_does_not_turn_bars_around():
    axes = plt.subplots()[1]
    error_bars(axes, np.arange(1), np.array([0.3]), np.array([0.3 + 1e-16]), np.array([0.4]))
    np.testing.assert_allclose(bars_of(axes), [[0, 0.3, 0.4]])
