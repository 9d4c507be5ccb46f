"""Fixed points on the line, in the triangle and as bars."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from _policies import majority
from meanfield import InputError
from meanfield._plot.words import PALETTE


def points(shares, stability, branch=None, kind="fixed_points"):
    """Fixed points with these word shares; those of a share above 0.98 are conventions."""
    shares = np.array(shares)
    words = np.array(["a", "b", "c", "d"][: shares.shape[1]])
    over = "fixed_point"
    columns = {
        "word_share": ((over, "word"), shares),
        "stability": (over, stability),
        "convention": (over, [words[row.argmax()] if row.max() > 0.98 else "mixed" for row in shares]),
        "branch": (over, [0] * len(shares) if branch is None else branch),
    }
    return xr.Dataset(columns, coords={"word": words}, attrs={"kind": kind})


def pairs(*first):
    return [[share, 1 - share] for share in first]


def arrows(axes):
    """Tail and head of each arrow on the line."""
    return [(note.xyann[0], note.xy[0], note.xy[1]) for note in axes.texts if note.arrow_patch is not None]


def markers(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def test_points_of_a_policy_lie_on_the_line_with_the_flow_between_them():
    found = meanfield.fixed_points(majority(0.53))
    axes = meanfield.plot(found)
    share = found["word_share"].isel(word=0).values
    assert found["stability"].values.tolist() == ["stable", "unstable", "stable"]
    drawn = markers(axes)
    np.testing.assert_array_equal(drawn["stable"].get_xdata(), share[[0, 2]])
    np.testing.assert_array_equal(drawn["unstable"].get_xdata(), share[[1]])
    assert [drawn[status].get_fillstyle() for status in ("stable", "unstable")] == ["full", "none"]
    left, right = arrows(axes)
    assert left[0] > left[1], "from the saddle to the attractor at 0"
    assert right[0] < right[1]
    words = {note.get_text(): note for note in axes.texts if note.get_text()}
    assert [words["a"].get_color(), words["b"].get_color()] == list(PALETTE[:2])
    assert words[found["label"].values[1]].xy[0] == share[1]
    assert axes.get_xlabel() == "share of a; the others say b"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["stable", "unstable"]


def test_the_flow_leaves_ends_that_are_no_fixed_points_and_is_unknown_beside_marginal_ones():
    axes = meanfield.plot(points(pairs(0.3), ["stable"]))
    assert [tail < head for tail, head, _ in arrows(axes)] == [True, False]
    axes = meanfield.plot(points(pairs(0.7, 0.3), ["marginal", "stable"]))
    assert [tail < head for tail, head, _ in arrows(axes)] == [True]
    assert markers(axes)["marginal"].get_fillstyle() == "left"
    assert not arrows(meanfield.plot(points(pairs(0.5), ["unstable"]))), "an unstable focus"


def test_each_closed_class_has_a_line():
    result = points(pairs(1.0, 0.5, 0.2, 0.0), ["stable", "stable", "stable", "unstable"], branch=[-1, 0, 1, -1])
    axes = meanfield.plot(result)
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "exact consensus",
        "closed class 0",
        "closed class 1",
    ]
    stable = markers(axes)["stable"]
    assert stable.get_xydata().tolist() == [[1.0, 0], [0.5, 1], [0.2, 2]]
    assert {row for *_, row in arrows(axes)} == {1, 2}, "corners may belong to different classes"


def test_points_in_the_triangle():
    shares = np.array([[1, 0, 0], [0.2, 0.3, 0.5], [0, 0, 1]])
    axes = meanfield.plot(points(shares, ["stable", "unstable", "stable"]), color="green")
    height = np.sqrt(0.75)
    np.testing.assert_allclose(markers(axes)["stable"].get_xydata(), [[0, 0], [0.5, height]])
    np.testing.assert_allclose(markers(axes)["unstable"].get_xydata(), [[0.3 + 0.25, 0.5 * height]])
    assert markers(axes)["stable"].get_color() == "green"
    corners = {note.get_text(): note.xy for note in axes.texts}
    np.testing.assert_allclose([corners["b"], corners["c"]], [[1, 0], [0.5, height]])
    assert axes.get_aspect() == 1


@pytest.mark.parametrize(("words", "view"), [(4, None), (3, "word_share"), (2, "word_share")])
def test_word_shares_are_parts_of_bars(words, view):
    shares = np.random.default_rng(1).dirichlet(np.ones(words), size=2)
    axes = meanfield.plot(points(shares, ["stable", "unstable"]), view=view)
    np.testing.assert_allclose([[bar.get_width() for bar in group] for group in axes.containers], shares.T)
    first = axes.containers[0]
    assert to_hex(first[0].get_facecolor()) == PALETTE[0]
    assert [bar.get_hatch() or "" for bar in first] == ["", "///"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["mixed, stable", "mixed, unstable"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list("abcd"[:words])


@pytest.mark.parametrize("number", [3, 14])
def test_compositions_of_reaction_models(number):
    x = np.random.default_rng(1).dirichlet(np.ones(number), size=2)
    states = [f"s{k}" for k in range(number)]
    columns = {"composition": (("fixed_point", "state"), x), "stability": ("fixed_point", ["stable", "marginal"])}
    coords = {"state": states, "fixed_point": [0, 1]}
    result = xr.Dataset(columns, coords=coords, attrs={"kind": "reaction_fixed_points"})
    axes = meanfield.plot(result)
    np.testing.assert_allclose([[bar.get_width() for bar in group] for group in axes.containers], x.T)
    np.testing.assert_allclose([bar.get_x() for bar in axes.containers[-1]], 1 - x[:, -1])
    named = {text.get_text() for text in axes.get_legend().get_texts()}
    assert named == {states[k] for k in np.argsort(-x.max(0))[:12]}
    assert axes.get_legend().get_title().get_text() == ("2 rarer ones have no label" if number == 14 else "")


def test_points_of_the_minimal_naming_game():
    result = points(pairs(1.0, 0.4, 0.1), ["stable", "unstable", "stable"], kind="minimal_naming_game_fixed_points")
    assert len(arrows(meanfield.plot(result.drop_vars("branch")))) == 3


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (3, {"view": "line"}, "3 words: expected 2"),
        (2, {"view": "triangle"}, "2 words: expected 3"),
        (2, {"policy": majority(0.53, length=1)}, "policy is given for 2 words"),
    ],
)
def test_views_refuse_other_numbers_of_words(words, options, message):
    result = points([[1 / words] * words], ["stable"])
    with pytest.raises(InputError, match=message):
        meanfield.plot(result, **options)
