"""Bars of the memories on which a quantity hangs."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from meanfield import InputError
from meanfield._plot.views.sensitivity import LOWERS, RAISES


def sensitivity(derivative, of="kappa", **columns):
    columns = {"derivative": derivative, **columns}
    data = {name: ("state", np.array(values, float)) for name, values in columns.items()}
    attrs = {"kind": "sensitivity", "of": of, "value": 0.25}
    return xr.Dataset(data, coords={"word": ["his", "her"], "state": np.arange(len(derivative))}, attrs=attrs)


def names(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def test_the_largest_derivatives_come_first_with_their_memories():
    values = np.zeros(21)
    values[[0, 5 + 4 + 3, 2, 7]] = [0.1, -0.4, 0.3, 0.2]
    axes = meanfield.plot(sensitivity(values), number=3)
    assert names(axes) == ["his/her, her/her", "his/her", "his/his, her/his"]
    assert [bar.get_width() for bar in axes.patches] == [-0.4, 0.3, 0.2]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [to_hex(side) for side in (LOWERS, RAISES, RAISES)]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "the largest on top"
    assert [text.get_text() for text in axes.texts] == ["18 others at most 0.1"]
    assert axes.get_xlabel() == "d κ / d P(his)"


def test_long_memories_have_several_lines():
    values = np.zeros(1365)
    values[-1] = 1
    (name,) = names(meanfield.plot(sensitivity(values)))
    assert name == "her/her, her/her, her/her,\nher/her, her/her"


def test_long_words_leave_room_for_bars():
    one = sensitivity(np.arange(21.0)).assign_coords(word=["New York City", "New York State"])
    axes = meanfield.plot(one, number=2)
    assert names(axes) == [
        "New York S…/New York S…, New York S…/New York S…",
        "New York S…/New York S…, New York S…/New York C…",
    ]
    axes.figure.canvas.draw()
    assert axes.bbox.width > 0.3 * axes.figure.bbox.width
    assert axes.title.get_window_extent().x1 <= axes.figure.bbox.x1


def test_memories_that_do_not_count_are_left_out_and_told():
    axes = meanfield.plot(sensitivity([0, 0.5, 0, 0, -1], of="word_share"))
    assert names(axes) == ["her/her", "his/his"]
    assert [text.get_text() for text in axes.texts] == ["3 others are 0"]
    assert axes.get_xlabel() == "d share of his / d P(his)"


def test_contributions_of_kappa_only():
    result = sensitivity([1, 2, 3, 4, 5], contribution=[0.1, 0, 0, 0, 0.2])
    axes = meanfield.plot(result, view="contribution")
    assert [bar.get_width() for bar in axes.patches] == [0.2, 0.1]
    assert axes.get_xlabel() == "contribution to κ = 0.25"
    with pytest.raises(InputError, match="sensitivity of eigenvalue: expected of = 'kappa'"):
        meanfield.plot(sensitivity([1, 2, 3, 4, 5], of="eigenvalue"), view="contribution")


def test_the_largest_changes_come_first_whatever_they_cost():
    result = sensitivity([0.0] * 5, change=[0.1, 0, -0.3, 0, 0.2], cost=[3, 0, 1, 0, 2]).isel(state=[4, 0, 1, 3, 2])
    axes = meanfield.plot(result.assign_attrs(kind="design"), number=2)
    assert [bar.get_width() for bar in axes.patches] == [-0.3, 0.2]
    assert names(axes) == ["his/her", "her/her"]
    assert [text.get_text() for text in axes.texts] == ["3 others at most 0.1"]
    assert axes.get_xlabel() == "change of P(his)"


@pytest.mark.parametrize(("kind", "column"), [("design", "change"), ("sensitivity", "derivative")])
def test_three_words_have_a_bar_each(kind, column):
    values = np.zeros((10, 3))
    values[[0, 4]] = [[0.1, -0.1, 0.0], [-0.3, 0.1, 0.2]]
    coords = {"word": ["a", "b", "c"], "state": np.arange(10)}
    result = xr.Dataset({column: (("state", "word"), values)}, coords, {"kind": kind, "of": "eigenvalue"})
    axes = meanfield.plot(result)
    assert [bar.get_width() for bar in axes.patches] == [-0.3, 0.1, 0.1, -0.1, 0.2, 0.0]
    assert names(axes) == ["b/a", "empty"]
    assert axes.get_legend_handles_labels()[1] == ["a", "b", "c"]
    assert axes.get_xlabel().endswith("P(word)")


def test_a_number_of_bars_that_is_none_is_refused():
    with pytest.raises(InputError, match="number = 0"):
        meanfield.plot(sensitivity([1, 2, 3, 4, 5]), number=0)


def test_populations_have_a_panel_for_each_policy():
    both = [sensitivity(values, of="eigenvalue") for values in ([0, 3, 0, 0, -1.0], [0, 0, 2.0, 0, 0])]
    result = xr.concat(both, "component").assign_coords(component=[0, 1], component_policy=("component", ["x", "y"]))
    first, second = meanfield.plot(result)
    assert (first.get_title(), second.get_title()) == ("x", "y")
    assert [bar.get_width() for bar in second.patches] == [2.0]


@pytest.mark.parametrize("of", ["eigenvalue", "composition"])
def test_moves_of_reaction_models(of):
    values = np.array([[0.5, -0.5], [-3.0, 3.0], [1.0, -1.0]])
    columns = {"derivative": ("move", values[:, 0]) if of == "eigenvalue" else (("move", "state"), values)}
    names = {"source": ["S", "I", "S"], "target": ["I", "S", "I"], "side": ["first", "spontaneous", "first"]}
    coords = {name: ("move", values) for name, values in {**names, "channel": [0, -1, 1]}.items()}
    attrs = {"kind": "reaction_sensitivity", "of": of}
    axes = meanfield.plot(xr.Dataset(columns, coords={**coords, "state": ["S", "I"]}, attrs=attrs), number=2)
    assert [bar.get_width() for bar in axes.patches][:2] == [-3.0, 1.0]
    assert len(axes.patches) == (2 if of == "eigenvalue" else 4)
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert ticks == ["I → S\nspontaneous", "S → I\nfirst, channel 1"]
