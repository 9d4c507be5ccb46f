"""Runs by round, and agents on their network."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import same_color, to_rgb

import meanfield
import validation
from meanfield import InputError
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield.toolbox import word_coords
from validation.naming_game import _simulate

ROUNDS = 4
SIZES = [24, 8]


def simulation(n_words: int = 2, runs: int = 12, record: tuple[str, ...] = ("word_share", "said", "success_rate")):
    """Random numbers in the form of a simulation; a third of the runs has no consensus."""
    random, words = np.random.default_rng(1), [chr(ord("a") + w) for w in range(n_words)]
    shape = (len(SIZES), runs, ROUNDS)
    share = random.dirichlet(np.ones(n_words), size=shape)
    number = np.arange(runs) % (n_words + 1)
    result = xr.Dataset(
        {
            "consensus_word": (("n_agents", "run"), np.tile(np.array([*words, None], dtype=object)[number], (2, 1))),
            "consensus_round": (("n_agents", "run"), np.tile(np.where(number < n_words, 3.0 + number, np.nan), (2, 1))),
        },
        coords={"n_agents": SIZES, "run": np.arange(runs), **word_coords(words)},
        attrs={"kind": "simulation"},
    )
    unplayed = np.where(np.arange(ROUNDS) == 0, np.nan, 1.0)
    columns = {
        "word_share": (("n_agents", "run", "round", "word"), share),
        "said": (("n_agents", "run", "round", "word"), share * unplayed[:, None]),
        "success_rate": (("n_agents", "run", "round"), random.uniform(size=shape) * unplayed),
    }
    result = result.assign({name: columns[name] for name in record})
    return result.assign_coords(round=np.arange(ROUNDS)) if record else result


def labelled(axes: Axes) -> dict[str, np.ndarray]:
    """The numbers of the lines in the legend."""
    return {line.get_label(): line.get_ydata() for line in axes.get_lines() if not line.get_label().startswith("_")}


@pytest.mark.parametrize(("view", "first"), [(None, 0), ("said", 1)])
def test_runs_have_the_colour_of_the_word_in_which_they_end(view, first):
    """Each panel is one size."""
    result = simulation()
    name = view or "word_share"
    panels = meanfield.plot(result, view=view)
    assert [axes.get_title() for axes in panels] == ["N = 24", "N = 8"]
    for k, axes in enumerate(panels):
        share = result[name].isel(n_agents=k, word=0).values[:, first:]
        thin = axes.get_lines()[: result.sizes["run"]]
        np.testing.assert_array_equal([line.get_ydata() for line in thin], share)
        for number, line in enumerate(thin):
            assert same_color(line.get_color(), (PALETTE[0], PALETTE[1], NEUTRAL)[number % 3])
        means = labelled(axes)
        assert list(means) == ["a: 4 runs", "b: 4 runs", "no consensus: 4 runs"]
        np.testing.assert_allclose(list(means.values()), [share[number::3].mean(0) for number in range(3)])
        low = [band.get_paths()[0].vertices[:, 1].min() for band in axes.collections]
        np.testing.assert_allclose(low, [np.percentile(share[number::3], 5, axis=0).min() for number in range(3)])


def test_of_three_words_runs_show_the_winner():
    result = simulation(3).sel(n_agents=8)
    axes = meanfield.plot(result)
    share = result["word_share"].values
    for run, line in enumerate(axes.get_lines()[: len(share)]):
        winner = run % 4 if run % 4 < 3 else share[run, -1].argmax()
        np.testing.assert_array_equal(line.get_ydata(), share[run, :, winner])
    assert axes.get_ylabel() == "share of the winner"


def test_of_many_runs_a_hundred_have_lines_and_the_legend_says_so():
    axes = meanfield.plot(simulation(runs=150).sel(n_agents=8))
    assert len([line for line in axes.get_lines() if line.get_label().startswith("_")]) == 100
    assert list(labelled(axes))[-1] == "the first 100 runs"


def test_success_rates_are_means_by_rising_size_without_round_0():
    result = simulation()
    axes = meanfield.plot(result, view="success_rate")
    means = labelled(axes)
    assert list(means) == ["N = 8", "N = 24"]
    np.testing.assert_allclose(list(means.values()), result["success_rate"].mean("run").values[::-1, 1:])
    np.testing.assert_array_equal(axes.get_lines()[0].get_xdata(), np.arange(1, ROUNDS))


@pytest.mark.parametrize("view", ["trajectories", "said", "success_rate"])
def test_what_was_not_recorded_is_named_with_the_option_that_records_it(view):
    without = simulation(record=())
    variable = "word_share" if view == "trajectories" else view
    with pytest.raises(
        InputError, match=rf"^view = '{view}': result has no {variable}, expected .*record_rounds=…"
    ) as error:
        meanfield.plot(without, view=view)
    assert view == "trajectories" or f"record=['{view}']" in str(error.value)
    assert variable in _simulate.RECORDED


def test_without_rounds_the_times_are_drawn():
    assert meanfield.plot(simulation(record=()).sel(n_agents=8)).get_xlabel() == "rounds until consensus"


def test_the_minimal_naming_game_has_its_share_of_agents_and_success_rate():
    game = simulation(record=("word_share", "success_rate")).sel(n_agents=8).rename(word_share="single_share")
    game.attrs["kind"] = "minimal_naming_game_simulation"
    axes = meanfield.plot(game)
    np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), game["single_share"].isel(run=0, word=0))
    assert axes.get_ylabel() == "agents with only 'a'"
    assert list(labelled(meanfield.plot(game, view="success_rate"))) == ["N = 8"]


def test_a_protocol_has_the_fraction_of_agents_in_each_state():
    counts = np.random.default_rng(1).multinomial(10, [0.2, 0.3, 0.5], size=(5, ROUNDS))
    protocol = xr.Dataset(
        {
            "count": (("run", "round", "state"), counts),
            "final_count": (("run", "state"), counts[:, -1]),
            "marked_share": (("run", "round"), counts[..., 0] / np.array([np.nan, 10, 10, 10])),
        },
        coords={"state": list("SIR"), "round": np.arange(ROUNDS), "n_agents": 10},
        attrs={"kind": "protocol_simulation"},
    )
    means = labelled(meanfield.plot(protocol))
    assert list(means) == ["S", "I", "R"]
    np.testing.assert_allclose(list(means.values()), counts.mean(0).T / 10)
    marked = labelled(meanfield.plot(protocol, view="marked_share"))
    np.testing.assert_allclose(marked["N = 10"], counts[:, 1:, 0].mean(0) / 10)
    assert meanfield.plot(protocol.drop_vars(["count", "marked_share"])).get_ylabel() == "final fraction of agents"
    with pytest.raises(InputError, match=r"has no absorbed_group, expected one made with absorbing=…"):
        meanfield.plot(protocol, view="outcomes")


# Agents who say A for ever once they have heard it last, and B otherwise.
COPY = meanfield.make_policy(np.array([0.5, 1, 0, 1, 0]), ["A", "B"])
BORDER = networkx.path_graph(8)


def played(**options):
    return validation.simulate(
        COPY,
        n_agents=8,
        runs=3,
        seed=1,
        max_rounds=3,
        topology=BORDER,
        record_rounds=3,
        record=["node_word_share", "group_word_share"],
        node_groups=["low"] * 4 + ["high"] * 4,
        **options,
    )


def test_agents_have_the_colour_of_their_word() -> None:
    runs = played()
    axes = meanfield.plot(runs, view="network")
    (dots,) = [one for one in axes.collections if len(one.get_offsets()) == 8]
    share = runs["node_word_share"].isel(n_agents=0, run=0, round=-1).values
    for colour, q in zip(dots.get_facecolors(), share, strict=True):
        hue = np.array(to_rgb(PALETTE[q.argmax()]))
        assert same_color(colour[:3], 1 - (2 * q.max() - 1) * (1 - hue))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["A", "B"]
    assert axes.get_xlabel() == "run 0, round 3"
    assert len(axes.get_lines()) == BORDER.number_of_edges()
    np.testing.assert_array_equal(runs["edge_node"], [[k, k + 1] for k in range(7)])


def test_edges_join_nodes_by_their_labels() -> None:
    """The agent at the end of a path has one edge, in whatever order nodes are listed."""
    axes = meanfield.plot(played().isel(node=[3, 0, 1, 2, 4, 5, 6, 7]), view="network")
    (dots,) = [one for one in axes.collections if len(one.get_offsets()) == 8]
    edges = np.concatenate([line.get_xydata() for line in axes.get_lines()])
    numbers = [(np.abs(edges - at).max(1) < 1e-9).sum() for at in dots.get_offsets()]
    assert numbers == [2, 1, 2, 2, 2, 2, 2, 1]


def test_groups_have_their_means() -> None:
    runs = played()
    axes = meanfield.plot(runs, view="node_groups")
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    for group in ("low", "high"):
        share = runs["group_word_share"].isel(n_agents=0, word=0).sel(node_group=group).mean("run")
        np.testing.assert_allclose(lines[group], share)


def test_networks_that_are_not_drawn() -> None:
    with pytest.raises(InputError, match="edge_node"):
        meanfield.plot(played().drop_vars("edge_node"), view="network")
    large = validation.simulate(
        COPY,
        n_agents=1200,
        runs=1,
        seed=1,
        max_rounds=1,
        topology=networkx.cycle_graph(1200),
        record_rounds=1,
        record=["node_word_share"],
    )
    with pytest.raises(InputError, match="of 1200 nodes: expected 1000 at most"):
        meanfield.plot(large, view="network")
