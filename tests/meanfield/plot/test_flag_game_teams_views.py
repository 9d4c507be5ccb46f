"""Endpoints and accuracies of flag games by size and by composition."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from _drawn_results import drawn
from meanfield import InputError
from meanfield._plot.views.flag_game_teams import COLOURS
from validation.flag_game import accuracy

ANSWERS = np.array([list("TTTT"), list("TTRR"), list("RRRR"), list("TRST")])


@pytest.fixture(scope="module")
def simulation() -> xr.Dataset:
    return validation.flag_game.simulate(n_agents=[4, 16], runs=50, seed=1)


@pytest.fixture(scope="module")
def scored() -> xr.Dataset:
    return accuracy(ANSWERS[::-1], ANSWERS, "T")


def bars_of(container):
    return [sorted(one[:, 1]) for one in container.lines[2][0].get_segments()]


def test_endpoints_against_size(simulation):
    axes = meanfield.plot(simulation)
    for container, name in zip(axes.containers, simulation["endpoint"].values, strict=True):
        one = simulation.sel(endpoint=name)
        np.testing.assert_allclose(
            container.lines[0].get_xydata(), np.column_stack([[4, 16], one["endpoint_fraction"]])
        )
        np.testing.assert_allclose(bars_of(container), one["endpoint_interval"], atol=1e-12)
        assert container.lines[0].get_color() == COLOURS[name] and container.get_label() == name.replace("_", " ")
    assert axes.get_ylabel() == "fraction of runs"


def test_accuracy_and_votes_of_a_simulation(simulation):
    axes = meanfield.plot(simulation, view="accuracy")
    value, error = simulation["collective_accuracy"], simulation["collective_accuracy_se"]
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), value)
    np.testing.assert_allclose(bars_of(axes.containers[0]), np.column_stack([value - error, value + error]))
    panels = meanfield.plot(simulation, view="votes")
    heights = [bar.get_height() for bar in panels[0].patches]
    expected, _ = np.histogram(simulation["truth_share"][0], np.linspace(0, 1, 21))
    np.testing.assert_allclose(heights, expected / 50)
    assert [one.get_title() for one in panels] == ["N = 4", "N = 16"]


def test_one_ensemble_has_rows(scored):
    axes = meanfield.plot(scored)
    np.testing.assert_allclose(axes.lines[0].get_xdata(), scored["endpoint_fraction"])
    np.testing.assert_allclose([one[:, 0] for one in axes.collections[0].get_segments()], scored["endpoint_interval"])
    rows = meanfield.plot(scored, view="accuracy")
    names = ("initial_accuracy", "majority_vote_accuracy", "collective_accuracy", "final_vote_accuracy")
    np.testing.assert_allclose(rows.lines[0].get_xdata(), [scored[name] for name in names])
    assert rows.get_yticklabels()[2].get_text() == "agents in the end"
    several = xr.concat([scored, scored.assign_coords(n_agents=8)], "n_agents")
    axes = meanfield.plot(several, view="accuracy")
    np.testing.assert_allclose(axes.containers[2].lines[0].get_xydata()[:, 0], [4, 8])


def test_uplift_is_shaded_between_accuracies(scored):
    raised = [scored.assign(collective_accuracy=0.1 * n).assign_coords(n_agents=n) for n in (4, 8)]
    several = xr.concat(raised, "n_agents")
    axes = meanfield.plot(several, view="uplift")
    before, after = (container.lines[0] for container in axes.containers)
    np.testing.assert_allclose(before.get_xydata(), np.column_stack([[4, 8], several["initial_accuracy"]]))
    np.testing.assert_allclose(after.get_ydata(), several["collective_accuracy"])
    error = several["collective_accuracy_se"]
    expected = np.column_stack([after.get_ydata() - error, after.get_ydata() + error])
    np.testing.assert_allclose(bars_of(axes.containers[1]), expected)
    shaded = axes.collections[-1].get_paths()[0].vertices
    for x, *ends in zip([4, 8], before.get_ydata(), after.get_ydata(), strict=True):
        np.testing.assert_allclose(sorted(set(shaded[shaded[:, 0] == x, 1])), sorted(ends))
    with pytest.raises(InputError, match="result has no n_agents"):
        meanfield.plot(scored.drop_vars("n_agents"), view="uplift")


def test_composition_predicted_and_measured():
    teams = drawn("team_composition_comparison")
    panels = meanfield.plot(teams, color="tab:purple")
    assert [one.get_title() for one in panels] == ["uptake 0.5", "uptake 0.9"]
    predicted, before, *_ = panels[1].lines
    one = teams.isel(uptake=1)
    np.testing.assert_allclose(predicted.get_ydata(), one["collective_accuracy"])
    np.testing.assert_allclose(before.get_ydata(), one["initial_accuracy"])
    assert (predicted.get_color(), before.get_linestyle()) == ("tab:purple", ":")
    band = panels[1].collections[0].get_paths()[0].vertices[:, 1]
    ends = one["collective_accuracy"] + 2 * one["collective_accuracy_se"] * xr.DataArray([-1, 1], dims="end")
    assert {round(end, 9) for end in ends.values.ravel()} <= {round(end, 9) for end in band}
    measured = np.column_stack([one["measured"] - one["measured_se"], one["measured"] + one["measured_se"]])
    np.testing.assert_allclose(bars_of(panels[1].containers[0]), measured)
    assert panels[0].get_xlabel() == "GPT-5.4 among 2 agents"
    alone = meanfield.plot(drawn("team_composition"))[0]
    assert not alone.containers, "a prediction alone has no measured points"


def test_uplift_and_gain_of_mixed_teams():
    teams = drawn("team_composition_comparison")
    axes = meanfield.plot(teams, view="uplift")[0]
    np.testing.assert_allclose(axes.containers[0].lines[0].get_ydata(), teams["social_uplift"][0])
    axes = meanfield.plot(teams, view="mixed_gain")
    assert [one.get_label() for one in axes.containers] == ["predicted, ± SE", "measured, ± SE"]
    for bars, name in zip(axes.containers, ("mixed_gain", "measured_mixed_gain"), strict=True):
        gain, error = teams[name], teams[f"{name}_se"]
        np.testing.assert_allclose(bars.lines[0].get_xydata(), np.column_stack([[0.5, 0.9], gain]))
        np.testing.assert_allclose(bars_of(bars), np.column_stack([gain - error, gain + error]))
