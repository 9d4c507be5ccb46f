"""Eigenvalues in the complex plane and in tables, and the memories on which a quantity hangs."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from _drawings import labels, notes, points, ticks
from meanfield import InputError
from meanfield._plot.views.sensitivity import LOWERS, RAISES


def spectrum(values, errors):
    values = np.array(values, dtype=complex)
    columns = {
        "eigenvalue": ("mode", values.real, {"units": "1/day"}),
        "eigenvalue_imaginary": ("mode", values.imag),
        "eigenvalue_error": ("mode", np.array(errors, float)),
    }
    return xr.Dataset(columns, attrs={"kind": "spectrum"})


def test_eigenvalues_lie_in_the_complex_plane_with_their_errors():
    values = [0.1 + 0.4j, 0.1 - 0.4j, -1, -1.001, -0.5]
    axes = meanfield.plot(spectrum(values, [0.01, 0.01, 0, 0, np.inf]))
    (container,) = axes.containers
    np.testing.assert_array_equal(container[0].get_xdata() + 1j * container[0].get_ydata(), values)
    across, along = (bars.get_segments() for bars in container[2])
    np.testing.assert_allclose([np.ptp(across[0][:, 0]), np.ptp(along[0][:, 1])], 0.02)
    assert sorted(notes(axes)) == ["(error unknown)", "×2"]
    assert axes.get_xlabel() == "real part (1/day)"


def test_an_incomplete_spectrum_says_so_and_rounding_does_not_stretch_the_plane():
    told = "the conjugate of the last eigenvalue, 0.1+0.4j, is left out: k = 2 has both"
    axes = meanfield.plot(spectrum([0.1 + 0.4j], [0]).assign_attrs(completeness=told))
    assert labels(axes)[0].replace("\n", " ") == told
    assert meanfield.plot(spectrum([0.1 + 4e-296j, -1], [0, 0])).get_ylim() == (-0.1, 0.1)
    axes = meanfield.plot(spectrum([0.1, np.nan, -1], [0, 0, 0]))
    assert axes.containers[0][0].get_xdata().tolist() == [0.1, -1] and labels(axes) == ["without numbers: 1"]
    with pytest.raises(InputError, match="no number in eigenvalue and eigenvalue_imaginary"):
        meanfield.plot(spectrum([np.nan], [0]))


ROWS = [
    # row, word, eigenvalue, error, is a fixed point
    ("candidate", "his", -0.2, 0.01, True),
    ("candidate", "her", -0.6, np.inf, False),
    ("fixed_point", "his", 0.3, 0.0, True),
]


def table(models=("gpt-4o",), pairs=("his/her",)):
    policies = [(model, pair) for model in models for pair in pairs]
    entries = [(number, *policy, *row, "his") for number, policy in enumerate(policies) for row in ROWS]
    names = ["policy", "model", "pair", "row", "word", "eigenvalue", "eigenvalue_error", "is_fixed_point", "strong"]
    columns = zip(names, zip(*entries, strict=True), strict=True)
    return xr.Dataset({name: ("entry", list(one)) for name, one in columns}, attrs={"kind": "stability_table"})


def test_eigenvalues_of_each_policy_are_on_its_line_with_their_words():
    axes = meanfield.plot(table(pairs=("his/her", "she/he")))
    bars = {one.get_label(): one for one in axes.containers}
    for name, value in (("candidate, a fixed point", -0.2), ("candidate, no fixed point", -0.6), ("fixed point", 0.3)):
        assert bars[name][0].get_xydata().tolist() == [[value, 0], [value, 1]]
    assert bars["candidate, no fixed point"][0].get_markerfacecolor() == "white"
    np.testing.assert_allclose(bars["candidate, a fixed point"][2][0].get_segments()[0][:, 0], [-0.21, -0.19])
    assert not any(len(one) for one in bars["candidate, no fixed point"][2][0].get_segments()), "of unknown length"
    assert ticks(axes) == ["{his, her}", "{she, he}"] and axes.get_ylim() == (1.5, -0.5), "the first policy on top"
    assert axes.get_title("left") == "GPT-4o"
    words = {note.get_text(): note for note in axes.texts}
    assert [(words[name].xy[0], words[name].get_ha()) for name in ("her", "his")] == [(-0.6, "right"), (-0.2, "left")]
    assert [words[name].get_fontweight() for name in ("her", "his")] == ["normal", "bold"], "his is strong"


def test_a_word_that_would_hide_a_point_is_raised():
    part = table()
    part["eigenvalue"][2] = -0.63  # the fixed point, now under the word 'her' on the left of -0.6
    words = {note.get_text(): note for note in meanfield.plot(part).texts}
    assert [words[name].get_va() for name in ("her", "his")] == ["bottom", "center"]


@pytest.mark.parametrize("number", [11, 2])
def test_several_models_are_told_apart(number):
    axes = meanfield.plot(table(("gpt-4o", "phi_4"), [f"a{k}/b{k}" for k in range(number)]))
    beside = {text.get_text(): text.get_position()[1] for text in axes.texts if text.get_text() in ("GPT-4o", "Phi-4")}
    assert ticks(axes)[0] == ("{a0, b0}" if number == 11 else "GPT-4o {a0, b0}")
    assert beside == ({"GPT-4o": 5, "Phi-4": 16} if number == 11 else {})


def test_variants_have_a_row_each():
    columns = {
        "eigenvalue": (("variant", "word"), np.array([[-0.5, -0.4], [0.2, -0.4]])),
        "is_fixed_point": (("variant", "word"), np.array([[True, False], [True, True]])),
        "strong_word": ("variant", ["a", "mixed"]),
    }
    coords = {"variant": ["plain", "shouted"], "word": ["a", "b"]}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "variant_table"}))
    np.testing.assert_allclose(points(axes, "a").round(), [[-0.0, 0], [0, 1]])
    assert points(axes, "b")[:, 0].tolist() == points(axes, "b, no fixed point")[:, 0].tolist() == [-0.4]
    assert ticks(axes) == ["plain\n(strong: a)", "shouted\n(strong: mixed)"]


# --- sensitivities ---


def sensitivity(derivative, of="kappa", **columns):
    columns = {"derivative": derivative, **columns}
    data = {name: ("state", np.array(values, float)) for name, values in columns.items()}
    coords = {"word": ["his", "her"], "state": np.arange(len(derivative))}
    return xr.Dataset(data, coords, {"kind": "sensitivity", "of": of, "value": 0.25})


def widths(axes):
    return [bar.get_width() for bar in axes.patches]


def test_the_largest_derivatives_come_first_with_their_memories():
    values = np.zeros(21)
    values[[0, 5 + 4 + 3, 2, 7]] = [0.1, -0.4, 0.3, 0.2]
    axes = meanfield.plot(sensitivity(values), number=3)
    assert ticks(axes) == ["his/her, her/her", "his/her", "his/his, her/his"]
    assert widths(axes) == [-0.4, 0.3, 0.2]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == [to_hex(side) for side in (LOWERS, RAISES, RAISES)]
    assert axes.get_ylim()[0] > axes.get_ylim()[1] and notes(axes) == ["18 others at most 0.1"]
    axes = meanfield.plot(sensitivity([0, 0.5, 0, 0, -1], of="word_share"))
    assert (ticks(axes), notes(axes)) == (["her/her", "his/his"], ["3 others are 0"])
    assert axes.get_xlabel() == "d share of his / d P(his)"
    with pytest.raises(InputError, match="number = 0"):
        meanfield.plot(sensitivity(values), number=0)


def test_long_memories_and_words_leave_room_for_bars():
    long = sensitivity(np.arange(1365.0))
    assert ticks(meanfield.plot(long, number=1)) == ["her/her, her/her, her/her,\nher/her, her/her"]
    one = sensitivity(np.arange(21.0)).assign_coords(word=["New York City", "New York State"])
    axes = meanfield.plot(one, number=2)
    assert ticks(axes)[1] == "New York S…/New York S…, New York S…/New York C…"
    axes.figure.canvas.draw()
    assert axes.bbox.width > 0.3 * axes.figure.bbox.width


def test_contributions_of_kappa_only():
    axes = meanfield.plot(sensitivity([1, 2, 3, 4, 5], contribution=[0.1, 0, 0, 0, 0.2]), view="contribution")
    assert widths(axes) == [0.2, 0.1] and axes.get_xlabel() == "contribution to κ = 0.25"
    with pytest.raises(InputError, match="sensitivity of eigenvalue: expected of = 'kappa'"):
        meanfield.plot(sensitivity([1, 2, 3, 4, 5], of="eigenvalue"), view="contribution")


def test_the_largest_changes_come_first_whatever_they_cost():
    result = sensitivity([0.0] * 5, change=[0.1, 0, -0.3, 0, 0.2], cost=[3, 0, 1, 0, 2]).isel(state=[4, 0, 1, 3, 2])
    axes = meanfield.plot(result.assign_attrs(kind="design"), number=2)
    assert (widths(axes), ticks(axes)) == ([-0.3, 0.2], ["his/her", "her/her"])


@pytest.mark.parametrize(("kind", "column"), [("design", "change"), ("sensitivity", "derivative")])
def test_three_words_have_a_bar_each(kind, column):
    values = np.zeros((10, 3))
    values[[0, 4]] = [[0.1, -0.1, 0.0], [-0.3, 0.1, 0.2]]
    coords = {"word": ["a", "b", "c"], "state": np.arange(10)}
    axes = meanfield.plot(xr.Dataset({column: (("state", "word"), values)}, coords, {"kind": kind, "of": "eigenvalue"}))
    assert widths(axes) == [-0.3, 0.1, 0.1, -0.1, 0.2, 0.0]
    assert (ticks(axes), labels(axes)) == (["b/a", "empty"], ["a", "b", "c"])


def test_populations_have_a_panel_for_each_policy():
    both = [sensitivity(values, of="eigenvalue") for values in ([0, 3, 0, 0, -1.0], [0, 0, 2.0, 0, 0])]
    result = xr.concat(both, "component").assign_coords(component=[0, 1], component_policy=("component", ["x", "y"]))
    first, second = meanfield.plot(result)
    assert (first.get_title(), second.get_title(), widths(second)) == ("x", "y", [2.0])


@pytest.mark.parametrize("of", ["eigenvalue", "composition"])
def test_moves_of_reaction_models(of):
    values = np.array([[0.5, -0.5], [-3.0, 3.0], [1.0, -1.0]])
    columns = {"derivative": ("move", values[:, 0]) if of == "eigenvalue" else (("move", "state"), values)}
    moves = {"source": ["S", "I", "S"], "target": ["I", "S", "I"], "side": ["first", "spontaneous", "first"]}
    coords = {name: ("move", column) for name, column in {**moves, "channel": [0, -1, 1]}.items()}
    attrs = {"kind": "reaction_sensitivity", "of": of}
    axes = meanfield.plot(xr.Dataset(columns, {**coords, "state": ["S", "I"]}, attrs), number=2)
    assert widths(axes) == [-3.0, 1.0] + [3.0, -1.0] * (of == "composition")
    assert ticks(axes) == ["I → S\nspontaneous", "S → I\nfirst, channel 1"]
