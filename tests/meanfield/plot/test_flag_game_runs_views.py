"""Forecasts of flag games: curves against evidence with runs as ticks, and scores with intervals."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield

ENDPOINTS = ["correct_consensus", "wrong_consensus", "polarization", "fragmentation"]
SHARES = [0.0, 0.5, 1.0]


@pytest.fixture
def table() -> xr.Dataset:
    chances = np.random.default_rng(0).dirichlet(np.ones(4), (2, 2, 3))
    return xr.Dataset(
        {
            "probability": (("model", "n_agents", "evidence", "endpoint"), chances),
            "run_evidence": ("run", [0.1, 0.4, 0.9]),
            "run_n_agents": ("run", [4, 4, 8]),
            "run_endpoint": ("run", ["polarization", "correct_consensus", "polarization"]),
        },
        {"model": ["zealots", "constant"], "n_agents": [4, 16], "evidence": SHARES, "endpoint": ENDPOINTS},
        {"kind": "flag_run_evidence"},
    )


def test_a_panel_has_a_curve_for_each_endpoint_and_the_runs_of_its_size(table):
    axes = meanfield.plot(table.isel(endpoint=[2, 0, 3, 1]))
    assert len(axes) == 4
    for one, (model, n_agents) in zip(axes, [(m, n) for m in table["model"] for n in table["n_agents"]], strict=True):
        drawn = {line.get_label(): line for line in one.lines if not line.get_label().startswith("_")}
        assert set(drawn) == {name.replace("_", " ") for name in ENDPOINTS}
        expected = table["probability"].sel(model=model, n_agents=n_agents, endpoint="polarization")
        np.testing.assert_array_equal(drawn["polarization"].get_ydata(), expected)
        ticks = np.concatenate([line.get_xdata() for line in one.lines if line.get_marker() == "|"])
        assert sorted(ticks) == ([0.1, 0.4] if n_agents == 4 else [])


@pytest.mark.parametrize("view", ["log_score", "brier"])
def test_a_row_for_each_model(view):
    columns = {view: ("model", [-1.0, -0.5]), f"{view}_interval": (("bound", "model"), [[-1.5, -0.7], [-0.9, -0.1]])}
    scores = xr.Dataset(
        columns,
        {"model": ["constant", "biased_copying"], "bound": ["low", "high"]},
        {"kind": "flag_run_scores", "option_level": 0.95},
    )
    axes = meanfield.plot(scores, view=view)
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), [-1.0, -0.5])
    (bars,) = axes.collections
    np.testing.assert_allclose([segment[:, 0] for segment in bars.get_segments()], [[-1.5, -0.9], [-0.7, -0.1]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["constant", "biased copying"]
