"""Fixed points and basins of attraction: on the line, in the triangle and as bars."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from _policies import majority
from meanfield import InputError
from meanfield._plot.words import NEUTRAL, PALETTE


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


def basins(fraction, convention, *, separatrix=(), outcome="steady", family="dirichlet", error=None):
    number = len(fraction)
    columns = {
        "fraction": ("attractor", np.array(fraction, float)),
        "standard_error": ("attractor", np.full(number, np.nan) if error is None else error),
        "convention": ("attractor", convention),
        "outcome": ("attractor", [outcome] * number),
        "separatrix": ("boundary", np.array(separatrix, float)),
    }
    coords = {"word": ["a", "b"], "attractor": np.arange(number)}
    return xr.Dataset(columns, coords, {"kind": "basins", "option_family": family, "option_starts": 40})


def test_fractions_are_bars_with_their_standard_errors():
    axes = meanfield.plot(basins([0.7, 0.1, 0.1], ["a", "mixed", "b"], error=[0.07, 0.05, 0.04]))
    bars = axes.patches
    np.testing.assert_allclose([bar.get_height() for bar in bars], [0.7, 0.1, 0.1, 0.1])
    colours = [PALETTE[0], to_hex(NEUTRAL), PALETTE[1], to_hex(NEUTRAL)]
    assert [to_hex(bar.get_facecolor()) for bar in bars] == colours
    (segments,) = (one.get_segments() for one in axes.collections)
    np.testing.assert_allclose([np.ptp(one[:, 1]) / 2 for one in segments[:3]], [0.07, 0.05, 0.04])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "mixed", "b", "at a saddle"]
    assert axes.get_xlabel() == "attractor of 40 random starts"


def test_trajectories_that_do_not_come_to_rest_are_named():
    axes = meanfield.plot(basins([1.0], [""], outcome="limit cycle"))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["limit cycle"]


def test_no_attractor_at_all():
    axes = meanfield.plot(basins([], []))
    assert [(bar.get_height(), axes.get_xticklabels()[0].get_text()) for bar in axes.patches] == [(1, "at a saddle")]


def test_starts_between_two_consensus_states():
    result = basins([0.6, 0.3, 0.1], ["a", "mixed", "b"], separatrix=[0.1, 0.4], family="consensus")
    axes = meanfield.plot(result, view="separatrix")
    assert [line.get_xdata()[0] for line in axes.lines] == [0.1, 0.4]
    np.testing.assert_allclose(
        [(bar.get_x(), bar.get_width()) for bar in axes.patches], [(0, 0.1), (0.1, 0.3), (0.4, 0.6)]
    )
    assert [text.get_text() for text in axes.texts] == ["b", "mixed", "a", "0.1", "0.4"]
    assert to_hex(axes.patches[0].get_facecolor()) == PALETTE[1]


def test_intervals_of_two_attractors_that_can_not_be_told_apart_have_no_name():
    """Both basins of b and one of a: three intervals, whose lengths are those of no attractor, or of one."""
    result = basins([0.5, 0.5], ["a", "b"], separatrix=[0.2, 0.7], family="consensus")
    axes = meanfield.plot(result, view="separatrix")
    assert [text.get_text() for text in axes.texts[:3]] == ["", "", ""]


def test_a_line_of_drawn_starts_is_refused():
    with pytest.raises(InputError, match="family = 'dirichlet': expected 'consensus'"):
        meanfield.plot(basins([1.0], ["a"]), view="separatrix")
