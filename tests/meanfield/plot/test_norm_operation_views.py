"""Operations of norm societies: points in rows, scores; and a society event by event."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from meanfield._plot.views.norm_operations import LOOKS
from meanfield._plot.words import NEUTRAL, PALETTE
from theory.norms import default_operations


def names_of_rows(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_every_entry_of_every_operation_is_a_point():
    table = default_operations().assign_attrs(kind="norm_operations")
    axes = meanfield.plot(table)
    values = np.concatenate([table[name].values.ravel() for name in table.data_vars])
    assert len(axes.lines) == values.size == 42
    np.testing.assert_allclose([line.get_xdata()[0] for line in axes.lines], values)
    rows = [round(line.get_ydata()[0]) for line in axes.lines]
    assert rows == [row for row, name in enumerate(table.data_vars) for _ in range(table[name].size)]
    assert names_of_rows(axes)[3] == "decide to talk"
    talk = [line for line, row in zip(axes.lines, rows, strict=True) if row == 3]
    assert [(one.get_marker(), one.get_fillstyle()) for one in talk] == [
        ("s", "full"), ("s", "none"), ("o", "full"), ("o", "none")
    ]  # fmt: skip
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(texts) == len(LOOKS) and "holds opposed" in texts


@pytest.fixture
def probes() -> xr.Dataset:
    """Probes of two scenes of one operation, and of one scene of another without a right answer."""
    over = ("scene", "agent", "behaviour", "standard")
    return xr.Dataset(
        {
            "probability": (over, np.array([[0.9, 0.8], [0.3, 0.2], [0.5, 0.6]])[:, :, None, None]),
            "right": (over, np.array([[1.0, 1], [0, 0], [np.nan] * 2])[:, :, None, None]),
            "agreement": ("operation", [0.8, np.nan]),
            "contrast": ("operation", [0.6, np.nan]),
            "mean_mass": ("operation", [0.4, 0.5]),
        },
        {
            "asked": ("scene", ["is_unique", "is_unique", "has_thought"]),
            "operation": ["is_unique", "has_thought"],
            "model": "gpt-4o",
        },
        {"kind": "norm_probes"},
    )


def test_agreement_with_right_answers(probes):
    axes = meanfield.plot(probes)
    assert [line.get_xdata()[0] for line in axes.lines] == [0.8, 0.6, 0.4]
    assert [line.get_label() for line in axes.lines] == ["agreement", "contrast", "captured mass"]
    assert names_of_rows(axes) == ["is unique", "has thought (no right answer)"] and axes.get_title() == "GPT-4o"


def test_probabilities_are_coloured_by_the_right_answer(probes):
    true, false, unknown = meanfield.plot(probes, view="probabilities").lines
    for line, expected in ((true, [0.9, 0.8]), (false, [0.3, 0.2]), (unknown, [0.5, 0.6])):
        x, y = line.get_xydata()[~np.isnan(line.get_xdata())].T
        assert x.tolist() == expected and len(set(y)) == 1
    assert true.get_ydata()[0] < 0 < false.get_ydata()[2] < 0.5, "scenes of one operation share its row"
    assert unknown.get_color() == NEUTRAL


def test_scores_of_tasks_with_their_errors():
    result = xr.Dataset(
        {
            "score": ("task", [5.0, 6.0, np.nan]),
            "standard_error": ("task", [0.1, 0.2, np.nan]),
            "items": ("task", [20, 20, 0]),
            "overall": 5.5,
            "overall_standard_error": 0.05,
        },
        {"task": ["Sender", "Plan", "Action"], "module": ("task", ["Spreading", "Compliance", "Compliance"])},
        {"kind": "norm_questionnaire"},
    )
    axes = meanfield.plot(result)
    sender, plan, overall = axes.lines
    assert sender.get_xydata().tolist() == [[5, 0]] and plan.get_xydata()[0].tolist() == [6, 1]
    assert (sender.get_color(), plan.get_color(), overall.get_xdata()[0]) == (*PALETTE[:2], 5.5)
    np.testing.assert_allclose(axes.collections[0].get_segments()[0][:, 0], [4.9, 5.1])
    assert names_of_rows(axes) == ["Sender", "Plan", "Action (no items)"] and axes.get_xlim() == (1, 7)


@pytest.fixture
def society() -> xr.Dataset:
    """Six events about two behaviours: two conflicts, one of which leads to a chat, and a plan."""
    counts = {"conflicts": [[0, 0, 1, 1, 2, 2], [0] * 6], "thoughts": [[0] * 6, [0, 1, 1, 1, 1, 1]]}
    counts["chats"] = [[0, 0, 1, 1, 1, 1], [0] * 6]
    share = np.linspace(0, 1, 6)
    columns = {name: (("behaviour", "event"), value) for name, value in counts.items()}
    for name in ("accepted", "complying", "reached", "informed"):
        columns[name] = (("event", "behaviour", "standard"), np.broadcast_to(share[:, None, None], (6, 2, 2)))
    return xr.Dataset(
        {**columns, "unparsed": ("operation", [0, 3])},
        {
            "time": ("event", 0.1 * np.arange(6)),
            "what": ("event", ["start", "encounter", "encounter", "plan", "encounter", "encounter"]),
            "behaviour": ["smoking", "noise"],
            "standard": ["for", "against"],
            "operation": ["create", "is_unique"],
        },
        {"kind": "norm_society"},
    )


def test_the_events_of_a_society_are_strokes(society):
    axes = meanfield.plot(society)
    strokes = [one.get_positions() for one in axes.collections]
    expected = [[0.2, 0.4], [], [0.2], [], [0.1], [], [0.3], []]
    assert len(strokes) == 8
    for found, times in zip(strokes, expected, strict=True):
        np.testing.assert_allclose(found, times)
    assert [to_hex(one.get_color()) for one in axes.collections[:6]] == [PALETTE[0]] * 3 + [PALETTE[1]] * 3
    assert names_of_rows(axes) == ["conflict", "thought", "chat", "plan", "synthesis (none)"]
    assert axes.get_legend_handles_labels()[1] == ["smoking", "noise"] and axes.get_xlim() == (0, 0.5)
    assert axes.get_legend().get_window_extent().x0 > axes.get_window_extent().x1, "beside the strokes"
    assert len(meanfield.plot(society.sel(behaviour="noise")).collections) == 5


def test_shares_of_a_society(society):
    panels = meanfield.plot(society, view="shares")
    line = panels[1].lines[0]
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([0.1 * np.arange(6), np.linspace(0, 1, 6)]))
    assert line.get_drawstyle() == "steps-post" and line.get_label() == "accepted, for"
    assert meanfield.plot(society, view="reached")[0].lines[1].get_label() == "informed, for"
