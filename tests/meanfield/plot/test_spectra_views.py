"""Eigenvalues in the complex plane, and tables of policies and variants as charts."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield._plot.words import PALETTE


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
    axes = meanfield.plot(spectrum(values, [0.01, 0.01, 0, 0, np.inf]), color="red")
    (points,) = axes.containers
    np.testing.assert_array_equal(points[0].get_xdata() + 1j * points[0].get_ydata(), values)
    assert points[0].get_color() == "red"
    across, along = (bars.get_segments() for bars in points[2])
    np.testing.assert_allclose([np.ptp(across[0][:, 0]), np.ptp(along[0][:, 1])], 0.02)
    assert [list(line.get_xdata()) for line in axes.lines if line.get_linestyle() == "--"] == [[0, 0]]
    assert sorted(note.get_text() for note in axes.texts) == [" (error unknown)", "×2"]
    assert axes.get_xlabel() == "real part (1/day)"
    assert -axes.get_ylim()[0] == axes.get_ylim()[1] > 0.4


def test_a_pair_that_is_cut_in_two_is_told():
    told = "the conjugate of the last eigenvalue, 0.1+0.4j, is left out: k = 2 has both"
    axes = meanfield.plot(spectrum([0.1 + 0.4j], [0]).assign_attrs(completeness=told))
    assert [text.get_text().replace("\n", " ") for text in axes.get_legend().get_texts()] == [told]


def test_real_eigenvalues_are_not_stretched_by_rounding():
    axes = meanfield.plot(spectrum([0.1 + 4e-296j, -1], [0, 0]))
    assert axes.get_ylim() == (-0.1, 0.1)


def test_eigenvalues_without_numbers_are_counted_and_nothing_else_is_refused():
    axes = meanfield.plot(spectrum([0.1, np.nan, -1], [0, 0, 0]))
    assert axes.containers[0][0].get_xdata().tolist() == [0.1, -1]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["without numbers: 1"]
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
    entries = [(number, *policy, *row) for number, policy in enumerate(policies) for row in ROWS]
    names = ("policy", "model", "pair", "row", "word", "eigenvalue", "eigenvalue_error", "is_fixed_point")
    columns = {
        name: ("entry", np.array(column)) for name, column in zip(names, zip(*entries, strict=True), strict=True)
    }
    columns["strong"] = ("entry", np.array(["his"] * len(entries)))
    return xr.Dataset(columns, attrs={"kind": "stability_table"})


def points(axes):
    """The markers by their label."""
    return {bars.get_label(): bars[0] for bars in axes.containers}


def test_eigenvalues_of_each_policy_are_on_its_line():
    axes = meanfield.plot(table(pairs=("his/her", "she/he")), markersize=9)
    drawn = points(axes)
    assert drawn["candidate, a fixed point"].get_xydata().tolist() == [[-0.2, 0], [-0.2, 1]]
    assert drawn["candidate, no fixed point"].get_xydata().tolist() == [[-0.6, 0], [-0.6, 1]]
    assert drawn["fixed point"].get_xydata().tolist() == [[0.3, 0], [0.3, 1]]
    assert drawn["candidate, no fixed point"].get_markerfacecolor() == "white"
    assert drawn["candidate, a fixed point"].get_markerfacecolor() == PALETTE[0]
    assert drawn["candidate, a fixed point"].get_markersize() == 9
    assert [text.get_text() for text in axes.get_yticklabels()] == ["{his, her}", "{she, he}"]
    assert axes.get_ylim() == (1.5, -0.5), "the first policy on top"
    assert axes.lines[0].get_xdata() == [0, 0]
    assert axes.get_title("left") == "GPT-4o"


def test_errors_are_bars_where_they_are_known():
    axes = meanfield.plot(table())
    bars = {group.get_label(): group[2][0].get_segments() for group in axes.containers}
    np.testing.assert_allclose(bars["candidate, a fixed point"][0][:, 0], [-0.21, -0.19])
    (unknown,) = bars["candidate, no fixed point"]
    assert not len(unknown), "a bar of no length"
    assert np.isfinite(axes.get_xlim()).all()


def test_words_stand_beside_their_candidates_the_strong_one_in_bold():
    axes = meanfield.plot(table())
    words = {note.get_text(): note for note in axes.texts}
    assert [(words[name].xy[0], words[name].get_ha()) for name in ("her", "his")] == [(-0.6, "right"), (-0.2, "left")]
    assert [words[name].get_fontweight() for name in ("her", "his")] == ["normal", "bold"]


def test_a_word_that_would_hide_a_point_is_raised():
    part = table()
    part["eigenvalue"][2] = -0.63  # the fixed point, now under the word 'her' on the left of -0.6
    words = {note.get_text(): note for note in meanfield.plot(part).texts}
    assert [(words[name].get_va(), words[name].xyann[1] > 0) for name in ("her", "his")] == [
        ("bottom", True),
        ("center", False),
    ]


@pytest.mark.parametrize("number", [11, 2])
def test_several_models_are_told_apart(number):
    pairs = [f"a{k}/b{k}" for k in range(number)]
    axes = meanfield.plot(table(("gpt-4o", "phi_4"), pairs))
    names = [text.get_text() for text in axes.get_yticklabels()]
    beside = {text.get_text(): text.get_position()[1] for text in axes.texts if text.get_text() in ("GPT-4o", "Phi-4")}
    if number == 11:
        assert (names[0], len(names)) == ("{a0, b0}", 22)
        assert beside == {"GPT-4o": 5, "Phi-4": 16}
    else:
        assert names == ["GPT-4o {a0, b0}", "GPT-4o {a1, b1}", "Phi-4 {a0, b0}", "Phi-4 {a1, b1}"]
        assert not beside


@pytest.mark.parametrize("words", [1, 20])
def test_a_long_name_does_not_hide_the_legend(words):
    name = " ".join(["word"] * words)
    axes = meanfield.plot(table(models=[name]))
    axes.figure.canvas.draw()
    title = axes._left_title.get_window_extent()
    assert not title.overlaps(axes.get_legend().get_window_extent())
    assert title.x1 <= axes.get_window_extent().x1
    assert axes.get_title(loc="left").replace("\n", " ") == name


def test_a_table_that_was_made_for_a_policy():
    policy = meanfield.make_policy(np.array([0.5, 0.9, 0.3, 0.9, 0.3]), ["a", "b"], model="copies")
    found = meanfield.stability_table(policy)
    axes = meanfield.plot(found)
    assert sum(len(line.get_xdata()) for line in points(axes).values()) == found.sizes["entry"]


def test_variants_have_a_row_each():
    columns = {
        "eigenvalue": (("variant", "word"), np.array([[-0.5, -0.4], [0.2, -0.4]])),
        "is_fixed_point": (("variant", "word"), np.array([[True, False], [True, True]])),
        "strong_word": ("variant", ["a", "mixed"]),
    }
    coords = {"variant": ["plain", "shouted"], "word": ["a", "b"]}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "variant_table"}))
    drawn = {line.get_label(): line for line in axes.lines}
    assert drawn["a"].get_xdata().tolist() == [-0.5, 0.2]
    assert drawn["b"].get_xdata().tolist() == drawn["b, no fixed point"].get_xdata().tolist() == [-0.4]
    assert np.round(drawn["b"].get_ydata()) == [1]
    assert drawn["b, no fixed point"].get_markerfacecolor() == "white"
    assert "a, no fixed point" not in drawn
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["plain\n(strong: a)", "shouted\n(strong: mixed)"]
