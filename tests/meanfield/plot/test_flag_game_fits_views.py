"""Fits of the flag game, forecasts of its runs, and the memory-conflict probe."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import meanfield
from _drawn_results import drawn
from meanfield._plot.intervals import error_bars, forest, wilson
from validation.comparison import wilson_interval

ENDPOINTS = ["correct consensus", "wrong consensus", "polarization", "fragmentation"]


def bars_of(axes, number=0):
    """(x, low, high) of the bars of one call of errorbar."""
    segments = axes.containers[number].lines[2][0].get_segments()
    return np.array([[one[0, 0], one[0, 1], one[1, 1]] for one in segments if one.size])


def test_intervals_are_those_of_the_simulator():
    share, trials = np.array([0.0, 0.3, 1.0]), np.array([10, 20, 30])
    expected = [wilson_interval(np.array(s * n), int(n), 0.9) for s, n in zip(share, trials, strict=True)]
    np.testing.assert_allclose(np.transpose(wilson(share, trials, 0.9)), expected, atol=1e-12)
    assert np.isnan(wilson(np.array([0.5]), 0.0)).all()


@pytest.fixture
def fit() -> xr.Dataset:
    copying, error = drawn("copying_fit"), ("n_agents", [0.1, 0.05])
    fitted = {name: copying["fitted"] * factor for name, factor in (("fitted", 1), ("paper", 0.9), ("measured", 0.8))}
    accuracies = {f"{name}_accuracy": copying["fitted_accuracy"] * 0.9 for name in fitted}
    columns = {**fitted, **accuracies, "measured_accuracy_error": error, "seeds": ("n_agents", [10, 20])}
    return xr.Dataset(columns, attrs={"kind": "mechanism1_fit"})


@pytest.mark.parametrize("view", ["polarization", "endpoints", "accuracy"])
def test_curves_and_measured_points_against_size(fit, view):
    axes = np.ravel(meanfield.plot(fit, view=view, linewidth=3))
    place, names = fit["endpoint"].values.tolist().index("polarization"), ("fitted", "paper", "measured")
    one = fit.sel(endpoint="polarization") if view != "accuracy" else fit
    shown = axes[place if view == "endpoints" else 0]
    names = names if view != "accuracy" else [f"{name}_accuracy" for name in names]
    fitted, paper, points = shown.lines[:3]
    np.testing.assert_allclose(fitted.get_xydata(), np.column_stack([fit["n_agents"], one[names[0]]]))
    for line, name in ((paper, names[1]), (points, names[2])):
        np.testing.assert_allclose(line.get_ydata(), one[name])
    assert (fitted.get_linestyle(), fitted.get_linewidth(), paper.get_linestyle()) == ("-", 3, "--")
    if view == "accuracy":
        half = 1.959964 * fit["measured_accuracy_error"].values
        np.testing.assert_allclose(np.ptp(bars_of(shown)[:, 1:], axis=1), 2 * half, rtol=1e-5)
    else:
        np.testing.assert_allclose(bars_of(shown)[:, 1:], np.transpose(wilson(one["measured"], one["seeds"])))
        assert len(axes) == (4 if view == "endpoints" else 1)
    assert shown.get_ylim() == (-0.03, 1.03) and shown.get_xlabel() == "number of agents N"


@pytest.fixture
def parameters() -> xr.Dataset:
    """J is known, mean_R has an end far away, scale_T is not determined, beta is held."""
    return xr.Dataset(
        {
            "estimate": ("parameter", [2.0, -0.2, 4.0, 1.0]),
            "free": ("parameter", [True, True, True, False]),
            "identified": ("parameter", [True, True, False, False]),
            "interval": (("parameter", "bound"), [[1.5, 2.6], [-0.4, np.inf], [1e-9, 1e9], [np.nan, np.nan]]),
            "bootstrap_standard_error": ("parameter", [0.1, np.nan, np.nan, np.nan]),
            "direction_error": ("direction", [0.1, 0.5, np.inf]),
            "direction_determined": ("direction", [True, True, False]),
        },
        {"parameter": ["J", "mean_R", "scale_T", "beta"], "bound": ["low", "high"], "direction": range(3)},
        {"kind": "mechanism1_fit", "option_level": 0.95},
    )


def test_parameters_are_rows(parameters):
    axes = meanfield.plot(parameters, view="intervals")
    assert [label.get_text() for label in axes.get_yticklabels()] == parameters["parameter"].values.tolist()
    assert [(text.get_position()[1], text.get_text()) for text in axes.texts] == [(2, "not determined"), (3, "held")]
    known, arrow, others = axes.lines[:3]
    np.testing.assert_allclose(known.get_xydata(), [[2, 0], [-0.2, 1]])
    assert arrow.get_marker() == ">" and arrow.get_xydata().tolist() == [[axes.get_xlim()[1], 1]]
    np.testing.assert_allclose(others.get_xydata(), [[4, 2], [1, 3]])
    assert others.get_fillstyle() == "none" and axes.get_ylim()[0] > axes.get_ylim()[1]
    np.testing.assert_allclose(axes.collections[0].get_segments()[0], [[1.5, 0], [2.6, 0]])
    boot = axes.collections[1].get_segments()[0]
    np.testing.assert_allclose(boot[:, 0], [2 - 0.196, 2 + 0.196], atol=1e-4)
    assert axes.get_xlabel() == "95 % interval; bootstrap below" and axes.get_xscale() == "symlog"


def test_directions_by_their_errors(parameters):
    known, open_ones, beyond, threshold = meanfield.plot(parameters, view="directions").lines
    np.testing.assert_allclose(known.get_xydata(), [[1, 0.1], [2, 0.5]])
    assert len(open_ones.get_xdata()) == 0 and threshold.get_ydata()[0] == 1
    assert beyond.get_xdata() == [3] and beyond.get_label() == "no curvature"
    for ratio in (1.5, 30, 1e4, 1e13):
        spread = parameters.assign(direction_error=("direction", [0.3, 0.3 * ratio, np.inf]))
        axes = meanfield.plot(spread, view="directions")
        axes.figure.draw_without_rendering()
        low, high = axes.get_ylim()
        shown = [
            low <= at <= high and bool(label.get_text())
            for at, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
        ]
        assert 1 <= sum(shown) <= 12


def test_the_copying_process():
    result = drawn("copying_fit")
    axes = meanfield.plot(result)
    assert [line.get_label() for line in axes.lines] == ENDPOINTS
    np.testing.assert_allclose([line.get_ydata() for line in axes.lines], result["fitted"].transpose("endpoint", ...))
    rows = meanfield.plot(result, view="parameters")
    np.testing.assert_allclose(rows.lines[0].get_xdata(), result["estimate"])
    lengths = [np.ptp(one[:, 0]) for one in rows.collections[0].get_segments()]
    np.testing.assert_allclose(lengths, 2 * result["standard_error"])


def test_simulated_values_beside_measured_ones():
    result = drawn("mechanism1_comparison")
    outside = result["inside"].copy(data=np.resize([1.0, 0.0], result["inside"].shape[::-1]).T)
    for axes, name in zip(meanfield.plot(result.assign(inside=outside)), result["quantity"].values, strict=True):
        one = result.sel(quantity=name)
        simulated, inside, beyond = (axes.lines[0], *(one.lines[0] for one in axes.containers))
        np.testing.assert_allclose(simulated.get_ydata(), one["simulated"])
        np.testing.assert_allclose([inside.get_ydata()[0], beyond.get_ydata()[0]], one["measured"])
        assert beyond.get_markerfacecolor() == "white" and axes.get_title() == name.replace("_", " ")
        np.testing.assert_allclose(bars_of(axes, 1)[0, 1:], one["interval"][1])
        labels = axes.get_legend_handles_labels()[1]
        assert labels == ["simulated, ± SE", "measured, 95 %", "simulated lies outside"]


def test_ends_beyond_the_limits_are_arrows():
    axes, rows = plt.subplots()[1], np.arange(3)
    ends = np.array([-np.inf, 0.5, np.nan]), np.array([1, 9.0, np.nan])
    forest(axes, rows, rows + 0.0, *ends, (-1.0, 5.0), color="red")
    _, left, right = axes.lines
    assert (left.get_marker(), left.get_xydata().tolist()) == ("<", [[-1, 0]])
    assert (right.get_marker(), right.get_xydata().tolist()) == (">", [[5, 1]])
    shown = [one[:, 0].tolist() for one in axes.collections[0].get_segments() if one.size]
    assert shown == [[-1, 1], [0.5, 5]], "no bar without an interval"


def test_rounding_does_not_turn_bars_around():
    axes = plt.subplots()[1]
    error_bars(axes, np.arange(1), np.array([0.3]), np.array([0.3 + 1e-16]), np.array([0.4]))
    np.testing.assert_allclose(bars_of(axes), [[0, 0.3, 0.4]])


def test_parameters_of_mechanism_2_are_rows_for_each_model():
    fit = drawn("mechanism2")
    names = ("uptake", "rewrite", "literal")
    half = fit.assign({name: fit[name] / 2 for one in names for name in (one, f"{one}_interval")})
    both = xr.concat([fit, half], "model").assign_coords(model=["gpt-4o", "gpt-5.4"])
    axes = meanfield.plot(both)
    first, second = axes.get_legend_handles_labels()[0]
    assert [one.get_label() for one in (first, second)] == ["GPT-4o", "GPT-5.4"]
    one = both.isel(model=1).squeeze()
    np.testing.assert_allclose(second.get_xdata(), [one[name] for name in names])
    np.testing.assert_allclose(second.get_ydata() - first.get_ydata(), 0.3)
    shown = [segment[:, 0] for segment in axes.collections[1].get_segments()]
    np.testing.assert_allclose(shown, [one[f"{name}_interval"] for name in names])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["uptake α", "rewrite γ", "literal α(1 - γ)"]
    assert axes.get_title() == "evidence strong, bandwidth 1"


def test_answers_have_wilson_intervals_beside_the_fit():
    fit = drawn("mechanism2")
    unasked, axes = meanfield.plot(fit, view="answers")
    assert not unasked.axison and unasked.texts[0].get_text() == "not asked"
    assert axes.get_title() == "relation incompatible" and len(axes.figure.legends) == 1
    one = fit.squeeze().sel(relation="incompatible").transpose("response", "social_entries", ...)
    np.testing.assert_allclose([line.get_ydata() for line in axes.get_legend_handles_labels()[0]], one["predicted"])
    share = one["count"] / one["count"].sum("response")
    np.testing.assert_allclose(axes.containers[1].lines[0].get_ydata(), share[1])
    low, high = wilson(share[1], one["count"].sum("response"))
    np.testing.assert_allclose(bars_of(axes, 1)[:, 1:], np.transpose([low, high]), atol=1e-12)


@pytest.mark.parametrize("select", [{}, {"evidence": 0}, {"evidence": 0, "bandwidth": 0}])
def test_the_gain_of_a_fitted_similarity(select):
    fit = drawn("mechanism2")
    axes = meanfield.plot(fit.isel(select), view="likelihood")
    gain = (fit["aic"] - fit["aic_similarity_fitted"]).values.ravel()
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], gain)
    assert axes.get_xticklabels()[0].get_text() == "strong\nm = 1"


def test_answers_to_a_probe_of_one_agent():
    probe = drawn("memory_conflict")
    axes = meanfield.plot(probe.assign_coords(model="gpt-4o"))
    for one, name in zip(axes.containers, ("target", "lure", "other"), strict=True):
        np.testing.assert_allclose(one.lines[0].get_ydata(), probe[f"{name}_count"] / 20)
    assert [one.get_label() for one in axes.containers] == ["France (target)", "Peru (lure)", "other"]
    assert axes.get_xlabel() == "entries of memory that name Peru" and axes.get_title() == "GPT-4o"


def test_forecasts_have_a_curve_for_each_endpoint_and_the_runs_of_their_size():
    table = drawn("flag_run_evidence")
    for one, size in zip(meanfield.plot(table.isel(endpoint=[2, 0, 3, 1])), (4, 8), strict=True):
        shown = {line.get_label(): line for line in one.lines if not line.get_label().startswith("_")}
        assert set(shown) == set(ENDPOINTS)
        expected = table["probability"].squeeze("model").sel(n_agents=size, endpoint="polarization")
        np.testing.assert_array_equal(shown["polarization"].get_ydata(), expected)
        ticks = np.concatenate([line.get_xdata() for line in one.lines if line.get_marker() == "|"])
        runs = table["run_evidence"].values[table["run_n_agents"].values == size]
        assert sorted(ticks) == sorted(runs) and len(runs) == (4 if size == 4 else 0)


@pytest.mark.parametrize("view", ["log_score", "brier"])
def test_scores_have_a_row_for_each_model(view):
    scores = drawn("flag_run_scores")
    axes = meanfield.plot(scores, view=view)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), scores[view])
    np.testing.assert_allclose([one[:, 0] for one in axes.collections[0].get_segments()], scores[f"{view}_interval"])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["constant", "zealots"]
