"""Where runs end and when, and how long a consensus is held."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from scipy.stats import binomtest

import meanfield
from meanfield.toolbox import word_coords
from validation.naming_game import consensus_times

ENDS = {20: ["a", "a", "a", "b", None], 500: ["a", "a", "a", "a", "a"]}
TIMES = {20: [3, 5, 5, 4, np.nan], 500: [8, 9, 9, 9, 12]}


def simulation() -> xr.Dataset:
    return xr.Dataset(
        {
            "consensus_word": (("n_agents", "run"), np.array([*ENDS.values()], dtype=object)),
            "consensus_round": (("n_agents", "run"), np.array([*TIMES.values()])),
        },
        coords={"n_agents": [*ENDS], "run": range(5), **word_coords(["a", "b"])},
        attrs={"kind": "simulation"},
    )


def sweep() -> xr.Dataset:
    """Two policies, of which the second has not the word of the second case; two seeds, one of them half done."""
    ends = np.full((2, 2, 2, 2, 3), None, dtype=object)
    ends[0, 0, 0] = [["a", "a", "b"], ["a", "b", "b"]]
    ends[0, 0, 1, 0] = ["b", "b", "b"]
    done = np.full((2, 2, 2, 2), True)
    done[0, 0, 1, 1] = False
    dims = ("policy", "case", "seed", "n_agents")
    return xr.Dataset(
        {
            "consensus_word": ((*dims, "run"), ends),
            "consensus_round": ((*dims, "run"), np.where(ends == None, np.nan, 5.0)),  # noqa: E711
            "done": (dims, done),
        },
        coords={
            "model": ("policy", ["first", "second"]),
            "pair": ("policy", ["a/b", "c/d"]),
            "word_label": (("policy", "word"), [["a", "b"], ["c", "d"]]),
            "word": [0, 1],
            "committed_word": ("case", ["", "a"]),
            "committed_agents": ("case", [0, 2]),
            "n_agents": [10, 20],
        },
        attrs={"kind": "sweep"},
    )


def points(axes: Axes) -> dict[str, np.ndarray]:
    """Size, fraction, low and high by the label of the outcome."""
    found = {}
    for bars in axes.containers:
        line, _, (segments,) = bars
        ends = np.array(segments.get_segments())[:, :, 1]
        found[bars.get_label()] = np.column_stack([line.get_xydata(), ends])
    return found


def test_fractions_of_runs_have_wilson_intervals():
    axes = meanfield.plot(simulation().isel(n_agents=[1, 0]), view="outcomes")
    found = points(axes)
    for word, wins in {"a": (3, 5), "b": (1, 0), "no consensus": (1, 0)}.items():
        for row, n_agents, won in zip(found[word], ENDS, wins, strict=True):
            interval = binomtest(won, 5).proportion_ci(0.95, "wilson")
            np.testing.assert_allclose(row, [n_agents, won / 5, *interval], atol=1e-12)
    assert axes.get_xscale() == "log"
    axes.figure.canvas.draw()
    assert "100" in [text.get_text() for text in axes.get_xticklabels()]


def test_one_size_has_bars():
    axes = meanfield.plot(simulation().sel(n_agents=20), view="outcomes")
    assert [bar.get_height() for bar in axes.patches] == [0.6, 0.2, 0.2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "no consensus"]
    assert axes.get_xlabel() == "word of consensus, N = 20"
    assert len(meanfield.plot(simulation().sel(n_agents=500), view="outcomes").patches) == 2


@pytest.mark.parametrize("n_agents", ENDS)
def test_times_are_counted_by_winner(n_agents):
    axes = meanfield.plot(simulation().sel(n_agents=n_agents))
    ends, times = np.array(ENDS[n_agents], dtype=object), np.array(TIMES[n_agents])
    counted = {bars[0].get_label(): bars for bars in axes.containers}
    assert [*counted] == {20: ["a: 3 runs", "b: 1 run"], 500: ["a: 5 runs"]}[n_agents]
    for label, bars in counted.items():
        rounds, numbers = np.unique(times[ends == label[0]], return_counts=True)
        found = {bar.get_x() + 0.5: bar.get_height() for bar in bars if bar.get_height()}
        assert found == dict(zip(rounds, numbers, strict=True))
    assert ("no consensus: 1 run" in axes.get_legend_handles_labels()[1]) == (n_agents == 20)


def test_long_times_share_bins():
    long = simulation().sel(n_agents=500)
    long["consensus_round"][:] = [3, 100, 200, 500, 1003]
    bars = meanfield.plot(long).patches
    assert len(bars) <= 40
    assert {bar.get_width() for bar in bars} == {26}
    assert sum(bar.get_height() for bar in bars) == 5


def test_a_sweep_has_a_panel_for_each_policy_and_case():
    with_nobody, with_two, other, impossible = meanfield.plot(sweep())
    # Seeds are counted together, and what is not done is not counted.
    np.testing.assert_allclose(points(with_nobody)["a"][:, :2], [[10, 2 / 6], [20, 1 / 3]])
    np.testing.assert_allclose(points(with_nobody)["b"][:, :2], [[10, 4 / 6], [20, 2 / 3]])
    assert with_two.get_legend().get_title().get_text() == "2 committed to 'a'"
    np.testing.assert_allclose(points(with_two)["no consensus"][:, 1], 1)
    assert other.get_title() == "second, {c, d}"
    assert [text.get_text() for text in impossible.texts] == ["no such word:\n2 committed to 'a'"]


@pytest.mark.parametrize("sizes", [[0, 1], [1]])
def test_what_a_sweep_has_not_done_is_named(sizes):
    unfinished = sweep().isel(policy=[0], case=[0], n_agents=sizes)
    unfinished["done"].loc[{"n_agents": 20}] = False
    axes = meanfield.plot(unfinished)
    assert "not done: N = 20" in [text.get_text() for text in axes.get_legend().get_texts()]
    if len(sizes) > 1:
        assert [rows[:, 0].tolist() for rows in points(axes).values()] == [[10], [10]]


def test_groups_of_a_protocol_are_outcomes():
    protocol = xr.Dataset(
        {
            "absorbed_group": ("run", np.array(["over", "over", None, "all ill"], dtype=object)),
            "absorbed_round": ("run", [1.5, 2.25, np.nan, 7.0]),
            "final_count": (("run", "state"), np.array([[1, 9], [2, 8], [3, 7], [10, 0]])),
        },
        coords={"state": ["S", "I"], "n_agents": 10},
        attrs={"kind": "protocol_simulation"},
    )
    bars = meanfield.plot(protocol, view="outcomes")
    assert [text.get_text() for text in bars.get_xticklabels()] == ["all ill", "over", "not absorbed"]
    assert [bar.get_height() for bar in bars.patches] == [0.25, 0.5, 0.25]
    times = meanfield.plot(protocol)
    assert times.get_xlabel() == "rounds until absorption"
    assert sum(bar.get_height() for bar in times.patches) == 3
    final = meanfield.plot(protocol, view="final_count").get_lines()
    np.testing.assert_array_equal([line.get_ydata() for line in final], [[0.1, 0.2, 0.3, 1], [0.9, 0.8, 0.7, 0]])


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
