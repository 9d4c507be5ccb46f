"""Where runs end, and when."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from scipy.stats import binomtest

import meanfield
from meanfield.toolbox import word_coords

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
