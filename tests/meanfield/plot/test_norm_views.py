"""Norms over time: lines by theory, means and middle halves of runs, fixed points, thresholds."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield._plot.views.norms import ACCEPTED, EVENTS

TIME = np.array([0.0, 0.5, 2.0])
SHARES = ("accepted", "complying", "reached", "informed")


@pytest.fixture
def simulation() -> xr.Dataset:
    """Five runs of two sizes; the opposite standard mirrors the standard."""
    rng = np.random.default_rng(0)
    over, columns = ("n_agents", "run", "time"), {}
    for name in SHARES:
        share = rng.random((2, 5, 3))
        columns[name] = ((*over, "standard"), np.stack([share, 1 - share], -1))
    columns |= {name: (over, rng.random((2, 5, 3)) * 30) for name in EVENTS}
    columns["events"] = ((*over, "event"), rng.integers(30, size=(2, 5, 3, 3)))
    coords = {"n_agents": [10, 100], "time": TIME, "standard": ["for", "against"], "behaviour": "tipping"}
    return xr.Dataset(columns, coords, {"kind": "norm_simulation"})


def theory(simulation: xr.Dataset) -> xr.Dataset:
    return simulation.isel(n_agents=0, run=0, drop=True).expand_dims("behaviour").assign_attrs(kind="norm_emergence")


@pytest.mark.parametrize(("view", "names"), [("shares", SHARES[:2]), ("reached", SHARES[2:])])
def test_standards_have_line_styles(simulation, view, names):
    curves = theory(simulation)
    axes = meanfield.plot(curves, view=view)
    assert [line.get_linestyle() for line in axes.lines] == ["-", "-", ":", ":"]
    for line, standard in zip(axes.lines[::2], ("for", "against"), strict=True):
        expected = curves[names[0]].sel(standard=standard, behaviour="tipping")
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([TIME, expected]))
        assert line.get_label() == f"{names[0]}, {standard}"
    assert axes.lines[0].get_color() == axes.lines[2].get_color() and not axes.collections
    assert (axes.get_xlabel(), axes.get_xlim(), axes.get_title()) == ("day", (0, 2), "behaviour tipping")


def test_runs_have_a_mean_and_their_middle_half(simulation):
    one = simulation.sel(standard="for")
    panels = meanfield.plot(one, linewidth=3)
    assert [axes.get_title() for axes in panels] == ["N = 10", "N = 100"]
    for axes, size in zip(panels, (10, 100), strict=True):
        for line, band, (name, colour) in zip(axes.lines, axes.collections, ACCEPTED.items(), strict=True):
            runs = np.sort(one[name].sel(n_agents=size).transpose("run", "time"), axis=0)
            np.testing.assert_allclose(line.get_ydata(), runs.mean(0))
            edges = band.get_paths()[0].vertices
            for k, value in ((1, runs[1]), (3, runs[3])):
                here = np.isclose(edges[:, None], np.column_stack([TIME, value])).all(-1).any(0)
                assert here.all(), f"run {k + 1} of five bounds the middle half"
            assert (line.get_label(), line.get_color(), line.get_linewidth()) == (name, colour, 3)
            assert line.get_drawstyle() == "default", "steps are for single events"


def test_events_are_per_agent_and_day(simulation):
    curves = theory(simulation)
    axes = meanfield.plot(curves, view="events")
    for line, name in zip(axes.lines, EVENTS, strict=True):
        np.testing.assert_allclose(line.get_ydata(), curves[name].squeeze())
    assert axes.get_ylabel() == "events per agent and day" and axes.get_ylim()[0] == 0


@pytest.fixture
def comparison() -> xr.Dataset:
    over, rng = ("n_agents", "time", "observable"), np.random.default_rng(1)
    columns = {name: (over, rng.random((2, 3, 2))) for name in ("simulated", "band")}
    columns |= {"theory": (over[1:], rng.random((3, 2))), "error_slope": ((), -1.0)}
    columns |= {"error": ("n_agents", [0.1, 0.01]), "error_uncertainty": ("n_agents", [0.01, 0.001])}
    coords = {"n_agents": [10, 100], "time": TIME, "observable": ["accepted for", "chats an encounter"]}
    return xr.Dataset(columns, coords, {"kind": "norm_comparison"})


def test_simulated_observables_beside_the_rate_equation(comparison):
    panels = meanfield.plot(comparison)
    small, large, dashed = panels[0].lines
    one = comparison.isel(observable=0)
    np.testing.assert_allclose([small.get_ydata(), large.get_ydata()], one["simulated"])
    np.testing.assert_allclose(dashed.get_ydata(), one["theory"])
    assert dashed.get_linestyle() == "--" and small.get_label() == "N = 10"
    ends = (one["simulated"] + one["band"]).sel(n_agents=100).clip(0, 1).values
    assert np.isclose(panels[0].collections[1].get_paths()[0].vertices[:, 1, None], ends).any(0).all()
    assert [axes.get_ylabel() for axes in panels] == ["share of agents", "per encounter"]


def test_the_error_of_theory_falls_with_size(comparison):
    axes = meanfield.plot(comparison, view="error")
    np.testing.assert_allclose(axes.containers[0].lines[0].get_xydata(), [[10, 0.1], [100, 0.01]])
