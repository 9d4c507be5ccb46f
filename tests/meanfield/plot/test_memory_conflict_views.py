"""The memory-conflict probe: shares of answers by social entries, and fitted parameters in rows."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield._plot.intervals import wilson

RESPONSES = ["private_evidence", "social_evidence", "other_private_compatible", "other_incompatible"]
CONDITIONS = ("evidence", "bandwidth")


@pytest.fixture
def fit() -> xr.Dataset:
    """Two models and one condition; compatible evidence was asked about, incompatible was not."""
    by_model, cells = (*CONDITIONS, "model"), (*CONDITIONS, "model", "relation", "social_entries", "response")
    count = np.full((1, 1, 2, 2, 2, 4), np.nan)
    count[..., 0, 0, :], count[..., 0, 1, :] = [12, 0, 0, 0], [3, 6, 2, 1]
    parameters = {"uptake": [0.8, 0.8], "rewrite": [0.0, 0.4], "literal": [0.8, 0.48]}
    columns = {name: (by_model, np.array(value)[None, None]) for name, value in parameters.items()}
    ends = {f"{name}_interval": ((*by_model, "bound"), np.array([[[[0, 0.9], [0.2, 1]]]])) for name in parameters}
    return xr.Dataset(
        {
            **columns,
            **ends,
            "count": (cells, count),
            "predicted": (cells, np.where(np.isnan(count), np.nan, 0.25)),
            "aic": (CONDITIONS, [[136.5]]),
            "aic_similarity_fitted": (CONDITIONS, [[121.5]]),
        },
        {
            "model": ["gpt-4o", "gpt-5.4"],
            "evidence": ["weak"],
            "bandwidth": [3],
            "relation": ["compatible", "incompatible"],
            "social_entries": [0, 8],
            "response": RESPONSES,
            "bound": ["low", "high"],
        },
        {"kind": "mechanism2", "option_level": 0.95},
    )


def test_parameters_of_both_models_are_rows(fit):
    axes = meanfield.plot(fit)
    first, second = axes.get_legend_handles_labels()[0]
    assert [one.get_label() for one in (first, second)] == ["GPT-4o", "GPT-5.4"]
    np.testing.assert_allclose(second.get_xdata(), [0.8, 0.4, 0.48])
    np.testing.assert_allclose(second.get_ydata() - first.get_ydata(), 0.3)
    np.testing.assert_allclose([one[:, 0] for one in axes.collections[1].get_segments()], [[0.2, 1]] * 3)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["uptake α", "rewrite γ", "literal α(1 - γ)"]
    assert axes.get_title() == "evidence weak, bandwidth 3"


def test_answers_have_wilson_intervals_beside_the_fit(fit):
    axes = meanfield.plot(fit, view="answers")
    assert axes.size == 4 and [one.axison for one in axes] == [True, False, True, False]
    assert axes[1].texts[0].get_text() == "not asked"
    assert axes[0].get_title() == "GPT-4o, relation compatible"
    assert len(axes[0].figure.legends) == 1, "one for all panels, though two are empty"
    fitted = axes[0].get_legend_handles_labels()[0]
    assert [line.get_ydata().tolist() for line in fitted] == [[0.25, 0.25]] * 4
    points, _, (bars,) = axes[0].containers[1].lines
    np.testing.assert_allclose(points.get_ydata(), [0, 0.5])
    low, high = wilson(np.array([0, 0.5]), np.array([12, 12]))
    np.testing.assert_allclose([one[:, 1] for one in bars.get_segments()], np.transpose([low, high]), atol=1e-12)


@pytest.mark.parametrize("select", [{}, {"evidence": 0}, {"evidence": 0, "bandwidth": 0}])
def test_the_gain_of_a_fitted_similarity(fit, select):
    axes = meanfield.plot(fit.isel(select), view="likelihood")
    assert [bar.get_height() for bar in axes.patches] == [15.0]
    assert axes.get_xticklabels()[0].get_text() == "weak\nm = 3"


def test_answers_to_a_probe_of_one_agent():
    counts = {"target": [4, 1], "lure": [0, 2], "other": [0, 1]}
    columns = {f"{name}_count": ("social_entries", value) for name, value in counts.items()}
    attrs = {"kind": "memory_conflict", "option_target": "France", "option_lure": "Peru", "option_trials": 4}
    axes = meanfield.plot(xr.Dataset(columns, {"social_entries": [0, 1], "model": "gpt-4o"}, attrs))
    np.testing.assert_allclose([one.lines[0].get_ydata() for one in axes.containers], [[1, 0.25], [0, 0.5], [0, 0.25]])
    assert [one.get_label() for one in axes.containers] == ["France (target)", "Peru (lure)", "other"]
    assert axes.get_xlabel() == "entries of memory that name Peru" and axes.get_title() == "GPT-4o"
