"""Flag games run by run: answers in cells, shares of answers, consensus, and who heard whom."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba

import meanfield
from _drawn_results import drawn
from meanfield import InputError
from meanfield._plot.words import NEUTRAL, PALETTE

REPORTS = np.array(
    [
        [["A", "A", "B"], ["A", "B", "B"], ["B", "B", "B"], ["B", "B", "B"]],
        [["C", "A", "A"], ["A", "A", "A"], [None, None, None], [None, None, None]],
    ],
    dtype=object,
)


@pytest.fixture
def gossip() -> xr.Dataset:
    """Two runs of three agents; the second one stops after its second probe."""
    return xr.Dataset(
        {
            "initial_report": (("run", "agent"), REPORTS[:, 0].astype(str)),
            "final_report": (("run", "agent"), [list("BBB"), list("AAA")]),
            "report": (("run", "probe", "agent"), REPORTS),
            "steps": ("run", [9, 3]),
            "stopped": ("run", [False, True]),
            "truth": ("run", ["A", "A"]),
        },
        {"run": [0, 1], "agent": range(3), "step": ("probe", [0, 3, 6, 9])},
        {"kind": "gossip"},
    )


def game(gossip: xr.Dataset, **columns: object) -> xr.Dataset:
    models = ("agent", ["gpt-4o", "gpt-4o", "phi_4"])
    return gossip.isel(run=[0]).assign_coords(model=models).assign(columns).assign_attrs(kind="flag_game")


def test_accuracy_before_and_after(gossip):
    axes = meanfield.plot(gossip)
    before, after = ([bar.get_height() for bar in one] for one in axes.containers)
    assert (before[6], sum(before)) == (1, 1), "two of three agents are right in both runs"
    assert (after[0], after[-1]) == (0.5, 0.5)
    assert meanfield.plot(gossip.drop_vars("truth")).get_xlabel() == "share of answers"


def test_shares_of_answers(gossip):
    axes = meanfield.plot(gossip, view="reports")
    before, after = ([bar.get_width() for bar in one] for one in axes.containers)
    np.testing.assert_allclose([before, after], [[4 / 6, 1 / 6, 1 / 6], [0.5, 0.5, 0]])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A (true)", "B", "C"]
    many = gossip.assign(final_report=(("run", "agent"), [list("DEF"), list("GHI")]))
    assert meanfield.plot(many, view="reports").get_yticklabels()[-1].get_text() == "2 others"


def test_the_answers_of_a_run_are_cells(gossip):
    axes = meanfield.plot(gossip, view="answers")
    assert [one.get_title() for one in axes] == ["run 0", "run 1"]
    cells = np.ma.getdata(axes[0].collections[0].get_array())
    np.testing.assert_allclose(cells, (REPORTS[0].T == "A").astype(float), err_msg="B is the most frequent answer")
    assert axes[1].collections[0].get_array().mask.sum() == 6, "no colour after the end"
    assert [text.get_text() for text in axes[1].get_legend().get_texts()] == ["A", "C"]
    with pytest.raises(InputError, match="result has no report, expected one made with trajectories=True"):
        meanfield.plot(gossip.drop_vars("report"), view="answers")


def test_rare_answers_share_a_colour(gossip):
    names = np.array(list("AABBCCDDEEFFGGHI"), dtype=object).reshape(1, 1, 16)
    one = xr.Dataset(
        {"report": (("run", "probe", "agent"), names)},
        {"run": [0], "agent": range(16), "step": ("probe", [0])},
        {"kind": "flag_game"},
    )
    axes = meanfield.plot(one)
    (mesh,) = axes.collections
    assert mesh.get_array().max() == 7 and mesh.cmap(7) == to_rgba(NEUTRAL)
    assert axes.get_legend().get_texts()[-1].get_text() == "2 others"


def test_a_manager_has_a_row(gossip):
    decisions = np.array([[None, "A", "B", "B"]], dtype=object)
    axes = meanfield.plot(game(gossip, manager_decision=(("run", "probe"), decisions)))
    cells = axes.collections[0].get_array()
    assert cells.shape == (4, 4) and cells.mask[3, 0] and cells[3, 1:].tolist() == [1, 0, 0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["0 GPT-4o", "1 GPT-4o", "2 Phi-4", "manager"]
    with pytest.raises(InputError, match="result is a game with a manager: expected one in pairs or by broadcast"):
        meanfield.plot(game(gossip), view="links")


def test_messages_between_agents(gossip):
    heard = np.arange(9).reshape(1, 3, 3)
    result = game(gossip, messages=(("run", "agent", "source"), heard, {"long_name": "messages heard"}))
    axes = meanfield.plot(result, view="links")
    np.testing.assert_array_equal(axes.collections[0].get_array(), heard[0])
    assert axes.figure.axes[1].get_ylabel() == "messages heard"


def test_a_run_keeps_its_last_answers(gossip):
    axes = meanfield.plot(gossip, view="consensus")
    most, true = axes.lines
    np.testing.assert_allclose(most.get_xydata(), np.column_stack([[0, 3, 6, 9], [2 / 3, 5 / 6, 1, 1]]))
    np.testing.assert_allclose(true.get_ydata(), [2 / 3, 2 / 3, 0.5, 0.5])
    assert (most.get_color(), true.get_color()) == PALETTE[:2]
    alone = meanfield.plot(gossip.isel(run=1), view="consensus")
    np.testing.assert_allclose(alone.lines[0].get_ydata(), [2 / 3, 1, 1, 1])


def test_shares_of_answers_over_time(gossip):
    axes = meanfield.plot(gossip, view="shares", linewidth=3)
    first, second = ({line.get_label(): line for line in one.lines} for one in axes)
    np.testing.assert_allclose(first["A"].get_xydata(), np.column_stack([[0, 3, 6, 9], [2 / 3, 1 / 3, 0, 0]]))
    np.testing.assert_allclose(second["C"].get_ydata(), [1 / 3, 0, 0, 0], err_msg="the last answers stay")
    assert list(first) == ["B", "A"] and first["A"].get_linewidth() == 3


def test_rare_answers_share_a_line(gossip):
    names = np.array(list("AABBCCDDEEFFGGHI"), dtype=object).reshape(1, 1, 16)
    one = xr.Dataset(
        {"report": (("run", "probe", "agent"), names)},
        {"run": [0], "agent": range(16), "step": ("probe", [0])},
        {"kind": "flag_game"},
    )
    others = meanfield.plot(one, view="shares").lines[-1]
    assert (others.get_label(), others.get_color(), others.get_ydata().tolist()) == ("2 others", NEUTRAL, [1 / 8])


def test_steps_by_their_end(gossip):
    axes = meanfield.plot(gossip, view="steps")
    stopped, played = ([bar.get_height() for bar in one] for one in axes.containers)
    assert (stopped[0], played[-1], sum(stopped), sum(played)) == (1, 1, 1, 1)
    assert axes.get_legend_handles_labels()[1] == ["stopped by consensus", "not stopped"]


def leans(axes, runs):
    """The lines of the runs of m and of q, and the two means."""
    _, *lines = axes.lines
    return np.array([line.get_ydata() for line in lines[: 2 * runs]]).reshape(2, runs, -1), lines[2 * runs :]


def test_each_size_has_the_leans_of_its_runs_and_their_means():
    simulation = drawn("mechanism1_simulation")
    panels = np.ravel(meanfield.plot(simulation, view="lean", linestyle="--"))
    assert [axes.get_title() for axes in panels] == ["N = 4", "N = 16"]
    for axes, size in zip(panels, simulation["n_agents"].values, strict=True):
        runs, means = leans(axes, 6)
        paths = [simulation[name].sel(n_agents=size).values for name in ("m_path", "q_path")]
        np.testing.assert_allclose(runs, paths)
        for mean, path, label in zip(means, paths, ("m, mean", "q, mean"), strict=True):
            np.testing.assert_allclose(mean.get_xydata(), np.column_stack([np.arange(17), path.mean(0)]))
            assert (mean.get_label(), mean.get_linestyle()) == (label, "--")
        assert axes.get_xlim() == (0, 16) and axes.get_xlabel() == "time t/N"
    with pytest.raises(InputError, match=r"result has no m_path, expected one made with trajectories=True$"):
        meanfield.plot(simulation.drop_vars("m_path"), view="lean")


def test_leans_of_gossip_keep_their_last_values():
    result = drawn("gossip")
    runs, means = leans(meanfield.plot(result, view="lean"), 4)
    assert result["m_path"].isnull().any() and not np.isnan(runs).any(), "some runs stop early"
    kept = result["m_path"].to_pandas().ffill(axis=1).to_numpy()
    np.testing.assert_allclose(runs[0], kept)
    np.testing.assert_allclose(means[0].get_xydata(), np.column_stack([result["step"] / 4, kept.mean(0)]))
    alone = meanfield.plot(result.isel(run=3), view="lean").lines[1]
    np.testing.assert_allclose(alone.get_ydata(), kept[3])
