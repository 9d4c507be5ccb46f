"""Simulated runs by round, where they end and when; agents on their network."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import same_color, to_rgb
from scipy.stats import binomtest

import meanfield
import validation
from _drawings import band, labels, notes, points, ticks
from meanfield import InputError
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield.toolbox import word_coords
from validation.naming_game import consensus_times

ROUNDS = 4
SIZES = [24, 8]


def recorded(n_words: int = 2, runs: int = 12) -> xr.Dataset:
    """Random numbers in the form of a simulation; a third of the runs has no consensus."""
    random, words = np.random.default_rng(1), list("abc"[:n_words])
    over = ("n_agents", "run", "round", "word")
    share = random.dirichlet(np.ones(n_words), size=(2, runs, ROUNDS))
    number = np.arange(runs) % (n_words + 1)
    unplayed = np.where(np.arange(ROUNDS) == 0, np.nan, 1.0)
    columns = {
        "consensus_word": (over[:2], np.tile(np.array([*words, None], dtype=object)[number], (2, 1))),
        "consensus_round": (over[:2], np.tile(np.where(number < n_words, 3.0 + number, np.nan), (2, 1))),
        "word_share": (over, share),
        "said": (over, share * unplayed[:, None]),
        "success_rate": (over[:3], random.uniform(size=share.shape[:3]) * unplayed),
    }
    coords = {"n_agents": SIZES, "run": np.arange(runs), "round": np.arange(ROUNDS), **word_coords(words)}
    return xr.Dataset(columns, coords, {"kind": "simulation"})


@pytest.mark.parametrize(("name", "first"), [("word_share", 0), ("said", 1)])
def test_runs_have_the_colour_of_the_word_in_which_they_end(name, first):
    """Each panel is one size."""
    result = recorded()
    panels = meanfield.plot(result, view=None if name == "word_share" else name)
    assert [axes.get_title() for axes in panels] == ["N = 24", "N = 8"]
    for k, axes in enumerate(panels):
        share = result[name].isel(n_agents=k, word=0).values[:, first:]
        thin = axes.get_lines()[:12]
        np.testing.assert_array_equal([line.get_ydata() for line in thin], share)
        for number, line in enumerate(thin):
            assert same_color(line.get_color(), (PALETTE[0], PALETTE[1], NEUTRAL)[number % 3])
        assert labels(axes) == ["a: 4 runs", "b: 4 runs", "no consensus: 4 runs"]
        for number, label in enumerate(labels(axes)):
            np.testing.assert_allclose(points(axes, label)[:, 1], share[number::3].mean(0))
            percentiles = np.percentile(share[number::3], [5, 95], axis=0)
            np.testing.assert_allclose(band(axes, number), percentiles.T)


def test_of_three_words_runs_show_the_winner_and_of_many_runs_a_hundred_have_lines():
    result = recorded(3).sel(n_agents=8)
    share = result["word_share"].values
    for run, line in enumerate(meanfield.plot(result).get_lines()[: len(share)]):
        winner = run % 4 if run % 4 < 3 else share[run, -1].argmax()
        np.testing.assert_array_equal(line.get_ydata(), share[run, :, winner])
    axes = meanfield.plot(recorded(runs=150).sel(n_agents=8))
    assert len([line for line in axes.get_lines() if line.get_label().startswith("_")]) == 100
    assert labels(axes)[-1] == "the first 100 runs"


def test_success_rates_are_means_by_rising_size_without_round_0():
    result = recorded()
    axes = meanfield.plot(result, view="success_rate")
    for size in (8, 24):
        mean = result["success_rate"].sel(n_agents=size).mean("run").values
        np.testing.assert_allclose(points(axes, f"N = {size}"), np.column_stack([np.arange(ROUNDS), mean])[1:])
    assert labels(axes) == ["N = 8", "N = 24"]


def test_the_minimal_naming_game_has_its_share_of_agents():
    game = recorded().sel(n_agents=8).rename(word_share="single_share", said="other")
    axes = meanfield.plot(game.assign_attrs(kind="minimal_naming_game_simulation"))
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), game["single_share"].isel(run=0, word=0))
    assert axes.get_ylabel() == "agents with only 'a'"


def test_a_protocol_has_the_fraction_of_agents_in_each_state():
    counts = np.random.default_rng(1).multinomial(10, [0.2, 0.3, 0.5], size=(5, ROUNDS))
    columns = {
        "count": (("run", "round", "state"), counts),
        "final_count": (("run", "state"), counts[:, -1]),
        "marked_share": (("run", "round"), counts[..., 0] / np.array([np.nan, 10, 10, 10])),
        "absorbed_group": ("run", np.array(["over", "over", None, "all ill", None], dtype=object)),
        "absorbed_round": ("run", [1.5, 2.25, np.nan, 7.0, np.nan]),
    }
    coords = {"state": list("SIR"), "round": np.arange(ROUNDS), "n_agents": 10}
    protocol = xr.Dataset(columns, coords, {"kind": "protocol_simulation"})
    axes = meanfield.plot(protocol)
    np.testing.assert_allclose([points(axes, state)[:, 1] for state in "SIR"], counts.mean(0).T / 10)
    marked = points(meanfield.plot(protocol, view="marked_share"), "N = 10")
    np.testing.assert_allclose(marked[:, 1], counts[:, 1:, 0].mean(0) / 10)
    bars = meanfield.plot(protocol, view="outcomes")
    assert ticks(bars, "x") == ["all ill", "over", "not absorbed"]
    assert [bar.get_height() for bar in bars.patches] == [0.2, 0.4, 0.4]
    assert sum(bar.get_height() for bar in meanfield.plot(protocol, view="times").patches) == 3
    final = meanfield.plot(protocol.drop_vars(["count", "marked_share", "absorbed_group"])).get_lines()
    np.testing.assert_allclose([line.get_ydata() for line in final], counts[:, -1].T / 10)


# Agents who say A for ever once they have heard it last, and B otherwise.
COPY = meanfield.make_policy(np.array([0.5, 1, 0, 1, 0]), ["A", "B"])


@pytest.fixture(scope="module")
def on_a_path() -> xr.Dataset:
    options = {"n_agents": 8, "runs": 3, "seed": 1, "max_rounds": 3, "record_rounds": 3}
    record = {"record": ["node_word_share", "group_word_share"], "node_groups": ["low"] * 4 + ["high"] * 4}
    return validation.simulate(COPY, topology=networkx.path_graph(8), **options, **record)


def test_agents_have_the_colour_of_their_word_and_edges_join_them_by_their_labels(on_a_path):
    """The agent at the end of a path has one edge, in whatever order nodes are listed."""
    order = [3, 0, 1, 2, 4, 5, 6, 7]
    axes = meanfield.plot(on_a_path.isel(node=order), view="network")
    (dots,) = [one for one in axes.collections if len(one.get_offsets()) == 8]
    share = on_a_path["node_word_share"].isel(n_agents=0, run=0, round=-1, node=order).values
    for colour, q in zip(dots.get_facecolors(), share, strict=True):
        hue = np.array(to_rgb(PALETTE[q.argmax()]))
        assert same_color(colour[:3], 1 - (2 * q.max() - 1) * (1 - hue))
    edges = np.concatenate([line.get_xydata() for line in axes.get_lines()])
    numbers = [(np.abs(edges - at).max(1) < 1e-9).sum() for at in dots.get_offsets()]
    assert numbers == [2, 1, 2, 2, 2, 2, 2, 1]
    groups = meanfield.plot(on_a_path, view="node_groups")
    for group in ("low", "high"):
        mean = on_a_path["group_word_share"].isel(n_agents=0, word=0).sel(node_group=group).mean("run")
        np.testing.assert_allclose(points(groups, group)[:, 1], mean)


def test_networks_that_are_not_drawn(on_a_path, monkeypatch):
    with pytest.raises(InputError, match="edge_node"):
        meanfield.plot(on_a_path.drop_vars("edge_node"), view="network")
    monkeypatch.setattr("meanfield._plot.views.ensembles.MOST_NODES", 7)
    with pytest.raises(InputError, match="of 8 nodes: expected 7 at most"):
        meanfield.plot(on_a_path, view="network")


# --- where runs end and when ---

ENDS = {20: ["a", "a", "a", "b", None], 500: ["a", "a", "a", "a", "a"]}
TIMES = {20: [3, 5, 5, 4, np.nan], 500: [8, 9, 9, 9, 12]}


def ended() -> xr.Dataset:
    columns = {
        "consensus_word": (("n_agents", "run"), np.array([*ENDS.values()], dtype=object)),
        "consensus_round": (("n_agents", "run"), np.array([*TIMES.values()])),
    }
    return xr.Dataset(
        columns, {"n_agents": [*ENDS], "run": range(5), **word_coords(["a", "b"])}, {"kind": "simulation"}
    )


def test_fractions_of_runs_have_wilson_intervals():
    axes = meanfield.plot(ended().isel(n_agents=[1, 0]), view="outcomes")
    for word, wins in {"a": (3, 5), "b": (1, 0), "no consensus": (1, 0)}.items():
        expected = [
            [n, won / 5, *binomtest(won, 5).proportion_ci(0.95, "wilson")] for n, won in zip(ENDS, wins, strict=True)
        ]
        np.testing.assert_allclose(points(axes, word), expected, atol=1e-12)
    axes.figure.canvas.draw()
    assert axes.get_xscale() == "log" and "100" in ticks(axes, "x")
    one = meanfield.plot(ended().sel(n_agents=20), view="outcomes")
    assert [bar.get_height() for bar in one.patches] == [0.6, 0.2, 0.2]
    assert ticks(one, "x") == ["a", "b", "no consensus"]


@pytest.mark.parametrize("n_agents", ENDS)
def test_times_are_counted_by_winner(n_agents):
    axes = meanfield.plot(ended().sel(n_agents=n_agents))
    ends, times = np.array(ENDS[n_agents], dtype=object), np.array(TIMES[n_agents])
    counted = {bars[0].get_label(): bars for bars in axes.containers}
    assert [*counted] == {20: ["a: 3 runs", "b: 1 run"], 500: ["a: 5 runs"]}[n_agents]
    for label, bars in counted.items():
        rounds, numbers = np.unique(times[ends == label[0]], return_counts=True)
        found = {bar.get_x() + 0.5: bar.get_height() for bar in bars if bar.get_height()}
        assert found == dict(zip(rounds, numbers, strict=True))
    assert ("no consensus: 1 run" in labels(axes)) == (n_agents == 20)


def test_long_times_share_bins():
    long = ended().sel(n_agents=500)
    long["consensus_round"][:] = [3, 100, 200, 500, 1003]
    bars = meanfield.plot(long).patches
    assert len(bars) <= 40 and {bar.get_width() for bar in bars} == {26}
    assert sum(bar.get_height() for bar in bars) == 5


def sweep() -> xr.Dataset:
    """Two policies, of which the second has not the word of the second case; two seeds, one of them half done."""
    ends = np.full((2, 2, 2, 2, 3), None, dtype=object)
    ends[0, 0, 0] = [["a", "a", "b"], ["a", "b", "b"]]
    ends[0, 0, 1, 0] = ["b", "b", "b"]
    done = np.full((2, 2, 2, 2), True)
    done[0, 0, 1, 1] = False
    dims = ("policy", "case", "seed", "n_agents")
    coords = {
        "model": ("policy", ["first", "second"]),
        "pair": ("policy", ["a/b", "c/d"]),
        "word_label": (("policy", "word"), [["a", "b"], ["c", "d"]]),
        "word": [0, 1],
        "committed_word": ("case", ["", "a"]),
        "committed_agents": ("case", [0, 2]),
        "n_agents": [10, 20],
    }
    return xr.Dataset({"consensus_word": ((*dims, "run"), ends), "done": (dims, done)}, coords, {"kind": "sweep"})


def test_a_sweep_has_a_panel_for_each_policy_and_case():
    with_nobody, with_two, other, impossible = meanfield.plot(sweep())
    # Seeds are counted together, and what is not done is not counted.
    np.testing.assert_allclose(points(with_nobody, "a")[:, :2], [[10, 2 / 6], [20, 1 / 3]])
    np.testing.assert_allclose(points(with_nobody, "b")[:, :2], [[10, 4 / 6], [20, 2 / 3]])
    assert with_two.get_legend().get_title().get_text() == "2 committed to 'a'"
    np.testing.assert_allclose(points(with_two, "no consensus")[:, 1], 1)
    assert other.get_title() == "second, {c, d}"
    assert notes(impossible) == ["no such word: 2 committed to 'a'"]
    unfinished = sweep().isel(policy=[0], case=[0])
    unfinished["done"].loc[{"n_agents": 20}] = False
    axes = meanfield.plot(unfinished)
    assert "not done: N = 20" in labels(axes) and points(axes, "a")[:, 0].tolist() == [10]
    assert "not done: N = 20" in labels(meanfield.plot(unfinished.isel(n_agents=[1])))


def test_each_winner_has_its_times():
    """'c' never wins."""
    ends = np.array([["a", "a", "b", "b", "b", None], ["a"] * 6], dtype=object)
    rounds = np.array([[4, 4, 5, 7, 7, np.nan], [9, 9, 9, 8, 7, 7]])
    columns = {"consensus_word": (("n_agents", "run"), ends), "consensus_round": (("n_agents", "run"), rounds)}
    coords = {"n_agents": [100, 1000], "run": range(6), **word_coords(list("abc"))}
    result = consensus_times(xr.Dataset(columns, coords, {"kind": "simulation"}))
    panels = meanfield.plot(result.isel(consensus_time=slice(None, None, -1)))
    for axes, n_agents in zip(panels, (100, 1000), strict=True):
        for line, word in zip(axes.get_lines(), "abc", strict=False):
            one = result.sel(n_agents=n_agents, word=word)
            np.testing.assert_array_equal(line.get_xydata(), np.column_stack([one["consensus_time"], one["density"]]))
    assert labels(panels[0]) == ["a: 2 runs", "b: 3 runs", "c: 0 runs", "no consensus: 16.7 % of runs"]
    axes = meanfield.plot(result, view="mode")
    for label, mode in {"a": [3, 8], "b": [6, np.nan], "c: no runs": [np.nan] * 2}.items():
        np.testing.assert_array_equal(points(axes, label), np.column_stack([[100, 1000], mode]))


def test_a_consensus_that_is_held():
    columns = {
        "held": ("n_agents", [0.9, 0.4]),
        "interval": (("n_agents", "bound"), [[0.8, 0.95], [0.3, 0.5]]),
        "moved": ("n_agents", [0.05, 0.1]),
        "word_share": (("n_agents", "round"), [[1.0, 0.9, 0.8], [1.0, 0.7, 0.5]]),
    }
    coords = {"n_agents": [24, 8], "bound": ["low", "high"], "round": [0, 1, 2]}
    result = xr.Dataset(columns, coords, {"kind": "consensus_stability", "held_word": "b"})
    axes = meanfield.plot(result)
    assert labels(axes) == ["N = 8", "N = 24"]
    np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], [[1, 0.7, 0.5], [1, 0.9, 0.8]])
    axes = meanfield.plot(result, view="held")
    np.testing.assert_allclose(points(axes, "hold 'b'"), [[8, 0.4, 0.3, 0.5], [24, 0.9, 0.8, 0.95]])
    np.testing.assert_allclose(points(axes, "agree on another word")[:, 1], [0.1, 0.05])
