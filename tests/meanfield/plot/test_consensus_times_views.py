"""Times until consensus, and how long a consensus is held."""

from __future__ import annotations

import numpy as np
import xarray as xr

import meanfield
from meanfield.toolbox import word_coords
from validation.naming_game import consensus_times


def times() -> xr.Dataset:
    """By size and winner; 'c' never wins."""
    ends = np.array([["a", "a", "b", "b", "b", None], ["a"] * 6], dtype=object)
    rounds = np.array([[4, 4, 5, 7, 7, np.nan], [9, 9, 9, 8, 7, 7]])
    simulation = xr.Dataset(
        {"consensus_word": (("n_agents", "run"), ends), "consensus_round": (("n_agents", "run"), rounds)},
        coords={"n_agents": [100, 1000], "run": range(6), **word_coords(["a", "b", "c"])},
        attrs={"kind": "simulation"},
    )
    return consensus_times(simulation)


def test_each_winner_has_the_density_of_its_times():
    result = times()
    small, large = meanfield.plot(result.isel(consensus_time=slice(None, None, -1)))
    for axes, n_agents in ((small, 100), (large, 1000)):
        for line, word in zip(axes.get_lines(), "abc", strict=False):
            one = result.sel(n_agents=n_agents, word=word)
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([one["consensus_time"], one["density"]]))
            assert line.get_drawstyle() == "steps-mid"
    labels = small.get_legend_handles_labels()[1]
    assert labels == ["a: 2 runs", "b: 3 runs", "c: 0 runs", "no consensus: 16.7 % of runs"]


def test_modes_are_drawn_against_the_size():
    axes = meanfield.plot(times(), view="mode")
    lines = {line.get_label(): line.get_xydata() for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["a"], [[100, 3], [1000, 8]])
    np.testing.assert_array_equal(lines["b"], [[100, 6], [1000, np.nan]])
    assert np.isnan(lines["c: no runs"][:, 1]).all()
    assert axes.get_xscale() == "log"


def stability() -> xr.Dataset:
    return xr.Dataset(
        {
            "held": ("n_agents", [0.9, 0.4]),
            "interval": (("n_agents", "bound"), [[0.8, 0.95], [0.3, 0.5]]),
            "moved": ("n_agents", [0.05, 0.1]),
            "word_share": (("n_agents", "round"), [[1.0, 0.9, 0.8], [1.0, 0.7, 0.5]]),
        },
        coords={"n_agents": [24, 8], "bound": ["low", "high"], "round": [0, 1, 2], "model": "gpt-4o", "pair": "a/b"},
        attrs={"kind": "consensus_stability", "held_word": "b"},
    )


def test_the_share_of_the_held_word_is_drawn_by_rising_size():
    axes = meanfield.plot(stability())
    assert [line.get_label() for line in axes.get_lines()] == ["N = 8", "N = 24"]
    np.testing.assert_array_equal([line.get_ydata() for line in axes.get_lines()], [[1, 0.7, 0.5], [1, 0.9, 0.8]])
    assert (axes.get_title(), axes.get_ylabel()) == ("GPT-4o, {a, b}", "mean share of 'b'")


def test_held_groups_have_their_intervals():
    axes = meanfield.plot(stability(), view="held")
    (bars,) = axes.containers
    line, _, (segments,) = bars
    np.testing.assert_array_equal(line.get_xydata(), [[8, 0.4], [24, 0.9]])
    np.testing.assert_allclose(np.array(segments.get_segments())[:, :, 1], [[0.3, 0.5], [0.8, 0.95]])
    (moved,) = (line for line in axes.get_lines() if line.get_label() == "agree on another word")
    np.testing.assert_array_equal(moved.get_ydata(), [0.1, 0.05])
