"""Fixed points and basins on the line, in the triangle and as bars; policies as trees and flows."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.quiver import Quiver

import meanfield
from _drawings import labels, notes, points, ticks
from _policies import loyal_policy, majority, random_policy
from meanfield import InputError, MemorySpace, Population
from meanfield._fixed_points.response import responses
from meanfield._plot.views import policies, simplex
from meanfield._plot.words import NEUTRAL, PALETTE
from meanfield._population.population import as_population


def found(shares, stability, branch=None, kind="fixed_points"):
    """Fixed points with these word shares; those of a share above 0.98 are conventions."""
    shares = np.array(shares)
    words = np.array(list("abcd"[: shares.shape[1]]))
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
    """Tail, head and row of each arrow on the line."""
    return [(note.xyann[0], note.xy[0], note.xy[1]) for note in axes.texts if note.arrow_patch is not None]


def directions(*given):
    return [tail < head for tail, head, _ in arrows(meanfield.plot(found(*given)))]


def test_points_of_a_policy_lie_on_the_line_with_the_flow_between_them():
    result = meanfield.fixed_points(majority(0.53))
    axes = meanfield.plot(result)
    share = result["word_share"].isel(word=0).values
    assert points(axes, "stable")[:, 0].tolist() == share[[0, 2]].tolist()
    assert points(axes, "unstable")[:, 0].tolist() == share[[1]].tolist()
    assert [line.get_fillstyle() for line in axes.lines[-2:]] == ["full", "none"]
    (left, right) = arrows(axes)
    assert left[0] > left[1] and right[0] < right[1], "from the saddle to both attractors"
    words = {note.get_text(): note for note in axes.texts if note.get_text()}
    assert [words["a"].get_color(), words["b"].get_color()] == list(PALETTE[:2])
    assert words[result["label"].values[1]].xy[0] == share[1]


def test_the_flow_leaves_ends_that_are_no_fixed_points_and_is_unknown_beside_marginal_ones():
    assert directions(pairs(0.3), ["stable"]) == [True, False]
    assert directions(pairs(0.7, 0.3), ["marginal", "stable"]) == [True]
    assert directions(pairs(0.5), ["unstable"]) == [], "an unstable focus"
    kind = "minimal_naming_game_fixed_points"
    assert len(directions(pairs(1.0, 0.4, 0.1), ["stable", "unstable", "stable"], None, kind)) == 3


def test_each_closed_class_has_a_line():
    result = found(pairs(1.0, 0.5, 0.2, 0.0), ["stable", "stable", "stable", "unstable"], branch=[-1, 0, 1, -1])
    axes = meanfield.plot(result)
    assert ticks(axes) == ["exact consensus", "closed class 0", "closed class 1"]
    assert points(axes, "stable").tolist() == [[1.0, 0], [0.5, 1], [0.2, 2]]
    assert {row for *_, row in arrows(axes)} == {1, 2}, "corners may belong to different classes"


def test_points_in_the_triangle():
    axes = meanfield.plot(found([[1, 0, 0], [0.2, 0.3, 0.5], [0, 0, 1]], ["stable", "unstable", "stable"]))
    height = np.sqrt(0.75)
    np.testing.assert_allclose(points(axes, "stable"), [[0, 0], [0.5, height]])
    np.testing.assert_allclose(points(axes, "unstable"), [[0.3 + 0.25, 0.5 * height]])
    corners = {note.get_text(): note.xy for note in axes.texts}
    np.testing.assert_allclose([corners["b"], corners["c"]], [[1, 0], [0.5, height]])


def widths(axes):
    return [[bar.get_width() for bar in group] for group in axes.containers]


@pytest.mark.parametrize(("words", "view"), [(4, None), (2, "word_share")])
def test_word_shares_are_parts_of_bars(words, view):
    shares = np.random.default_rng(1).dirichlet(np.ones(words), size=2)
    axes = meanfield.plot(found(shares, ["stable", "unstable"]), view=view)
    np.testing.assert_allclose(widths(axes), shares.T)
    assert to_hex(axes.patches[0].get_facecolor()) == PALETTE[0]
    assert [bar.get_hatch() or "" for bar in axes.containers[0]] == ["", "///"]


def test_compositions_of_reaction_models():
    x, states = np.random.default_rng(1).dirichlet(np.ones(14), size=2), [f"s{k}" for k in range(14)]
    columns = {"composition": (("fixed_point", "state"), x), "stability": ("fixed_point", ["stable", "marginal"])}
    coords = {"state": states, "fixed_point": [0, 1]}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "reaction_fixed_points"}))
    np.testing.assert_allclose(widths(axes), x.T)
    np.testing.assert_allclose([bar.get_x() for bar in axes.containers[-1]], 1 - x[:, -1])
    named = {text.get_text() for text in axes.get_legend().get_texts()}
    assert named == {states[k] for k in np.argsort(-x.max(0))[:12]}, "the largest"


def basins(fraction, convention, *, separatrix=(), outcome="steady", family="dirichlet", error=np.nan):
    columns = {
        "fraction": ("attractor", np.array(fraction, float)),
        "standard_error": ("attractor", np.resize(error, len(fraction))),
        "convention": ("attractor", convention),
        "outcome": ("attractor", [outcome] * len(fraction)),
        "separatrix": ("boundary", np.array(separatrix, float)),
    }
    coords = {"word": ["a", "b"], "attractor": np.arange(len(fraction))}
    return xr.Dataset(columns, coords, {"kind": "basins", "option_family": family, "option_starts": 40})


def test_fractions_are_bars_with_their_standard_errors():
    axes = meanfield.plot(basins([0.7, 0.1, 0.1], ["a", "mixed", "b"], error=[0.07, 0.05, 0.04]))
    np.testing.assert_allclose([bar.get_height() for bar in axes.patches], [0.7, 0.1, 0.1, 0.1])
    colours = [PALETTE[0], to_hex(NEUTRAL), PALETTE[1], to_hex(NEUTRAL)]
    assert [to_hex(bar.get_facecolor()) for bar in axes.patches] == colours
    (segments,) = (one.get_segments() for one in axes.collections)
    np.testing.assert_allclose([np.ptp(one[:, 1]) / 2 for one in segments[:3]], [0.07, 0.05, 0.04])
    assert ticks(axes, "x") == ["a", "mixed", "b", "at a saddle"]
    assert ticks(meanfield.plot(basins([1.0], [""], outcome="limit cycle")), "x") == ["limit cycle"]
    assert [bar.get_height() for bar in meanfield.plot(basins([], [])).patches] == [1], "no attractor at all"


def test_starts_between_two_consensus_states():
    result = basins([0.6, 0.3, 0.1], ["a", "mixed", "b"], separatrix=[0.1, 0.4], family="consensus")
    axes = meanfield.plot(result, view="separatrix")
    assert [line.get_xdata()[0] for line in axes.lines] == [0.1, 0.4]
    drawn = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(drawn, [(0, 0.1), (0.1, 0.3), (0.4, 0.6)])
    assert notes(axes) == ["b", "mixed", "a", "0.1", "0.4"]
    assert to_hex(axes.patches[0].get_facecolor()) == PALETTE[1]
    # Both basins of b and one of a: three intervals, whose lengths are those of no attractor, or of one
    unlike = basins([0.5, 0.5], ["a", "b"], separatrix=[0.2, 0.7], family="consensus")
    assert notes(meanfield.plot(unlike, view="separatrix")) == ["0.2", "0.7"]


# --- the flow and the basins in the triangle ---

CELLS = 8
LOYAL = loyal_policy(1, 2)


@pytest.fixture(autouse=True)
def _few_cells(monkeypatch):
    monkeypatch.setattr(simplex, "CELLS", CELLS)


@pytest.fixture(scope="module")
def three():
    return meanfield.fixed_points(LOYAL)


def shared_out(axes):
    """Centres of the cells in the plane, and their colours without the white in them."""
    (cells,) = (one for one in axes.collections if isinstance(one, PolyCollection) and not isinstance(one, Quiver))
    centres = np.array([path.vertices[:3].mean(0) for path in cells.get_paths()])
    return centres, 1 - (1 - cells.get_facecolor()[:, :3]) / simplex.SHADE


def test_arrows_and_basins_of_three_words(three):
    axes = meanfield.plot(three, policy=Population([LOYAL]))
    (flow,) = (one for one in axes.collections if isinstance(one, Quiver))
    middle = np.stack([flow.X + flow.U / 2, flow.Y + flow.V / 2], -1)
    c = middle[:, 1] / np.sqrt(0.75)
    Q = np.stack([1 - middle[:, 0] - c / 2, middle[:, 0] - c / 2, c], -1)
    change = simplex.in_plane(responses(as_population(LOYAL).mixture)[0](Q) - Q)
    speed, length = np.hypot(*change.T), np.hypot(flow.U, flow.V)
    cosine = (change * np.stack([flow.U, flow.V], -1)).sum(1) / length / speed
    np.testing.assert_allclose(cosine, 1, atol=1e-6)
    np.testing.assert_allclose((length / length.max()) ** 4, speed / speed.max(), atol=1e-6)
    centres, colours = shared_out(axes)
    assert len(centres) == CELLS**2
    stable = three["word_share"].values[three["stable"].values]
    expected = stable @ [to_rgb(colour) for colour in PALETTE[:3]]
    for place, colour in zip(simplex.in_plane(stable), expected, strict=True):
        np.testing.assert_allclose(colours[np.hypot(*(centres - place).T).argmin()], colour, atol=1e-6)
    known = np.abs(colours[:, None] - expected).max(-1).min(1)
    assert (known < 1e-6).all(), "each cell belongs to one of them"


def test_a_start_that_reaches_none_of_the_fixed_points_is_white_and_named(three):
    axes = meanfield.plot(three.isel(fixed_point=three["convention"].values != "b"), policy=LOYAL)
    assert 0.2 < (shared_out(axes)[1] == 1).all(1).mean() < 0.9
    assert "reaches none of these" in labels(axes)


REPEATING = meanfield.make_policy(np.vstack([np.full(3, 1 / 3), np.repeat(np.eye(3), 3, axis=0)]), ["a", "b", "c"])


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (found([[1 / 3] * 3], ["stable"]), {"view": "line"}, "3 words: expected 2"),
        (found([[1 / 2] * 2], ["stable"]), {"view": "triangle"}, "2 words: expected 3"),
        (found([[1 / 2] * 2], ["stable"]), {"policy": majority(0.53, length=1)}, "policy is given for 2 words"),
        (found([[1 / 3] * 3], ["stable"]), {"policy": random_policy(1)}, "policy is over a, b: expected a, b, c"),
        (found([[1 / 3] * 3], ["stable"]), {"policy": REPEATING}, "policy has 3 closed classes of memories"),
        (basins([1.0], ["a"]), {"view": "separatrix"}, "family = 'dirichlet': expected 'consensus'"),
        (random_policy(1, 4), {"view": "flow"}, "policy has 4 words: expected 2 or 3 for view = 'flow'"),
    ],
)
def test_views_refuse_what_they_cannot_draw(result, options, message):
    with pytest.raises(InputError, match=message):
        meanfield.plot(result, **options)


# --- policies ---


def test_each_memory_stands_below_what_it_remembers_last():
    policy, space = random_policy(1, memory_length=3), MemorySpace(2, 3)
    axes = meanfield.plot(policy)
    (image,) = axes.images
    for state in range(space.n_states):
        memory = space.memory(state)
        digits = [2 * own + partner for own, partner in reversed(memory)]
        first = sum(digit * 4 ** (2 - k) for k, digit in enumerate(digits))
        cells = image.get_array()[len(memory), first : first + 4 ** (3 - len(memory))]
        assert (cells == policy["q"].values[state, 0]).all(), memory
    assert ticks(axes, "x") == ["a/\na", "a/\nb", "b/\na", "b/\nb"]
    np.testing.assert_allclose(image.cmap([0.0, 1.0])[:, :3], [to_rgb(PALETTE[1]), to_rgb(PALETTE[0])], atol=1e-6)


def test_three_words_have_the_colour_of_the_likeliest():
    q = np.full((10, 3), 1 / 3)
    q[1:] = np.eye(3)[[0, 0, 0, 1, 1, 1, 2, 2, 2]]
    q[9] = [0.2, 0.2, 0.6]
    axes = meanfield.plot(meanfield.make_policy(q, ["a", "b", "c"]))
    cells = np.asarray(axes.images[0].get_array())
    full = np.array([to_rgb(colour) for colour in PALETTE[:3]])
    np.testing.assert_allclose(cells[0], 1, atol=1e-12, err_msg="white where all are equally likely")
    np.testing.assert_allclose(cells[1, :8], np.repeat(full, 3, axis=0)[:8])
    np.testing.assert_allclose(1 - cells[1, 8], 0.4 * (1 - full[2]), err_msg="paler")


def test_a_tree_too_large_to_draw_is_refused(monkeypatch):
    monkeypatch.setattr(policies, "MOST_CELLS", 7)
    with pytest.raises(InputError, match="policy has 5 memories: expected a tree of at most 7 cells, not 8"):
        meanfield.plot(random_policy(1))


def test_the_flow_of_agents_who_answer_what_they_heard():
    """With P(a | heard a) = 0.9 and P(a | heard b) = 0.3, F(Q) = 0.9 Q + 0.3 (1 - Q), which is Q at 3/4."""
    axes = meanfield.plot(meanfield.make_policy(np.array([0.5, 0.9, 0.3, 0.9, 0.3]), ["a", "b"]), view="flow")
    Q, change = axes.lines[0].get_xydata().T
    np.testing.assert_allclose(change, 0.3 - 0.4 * Q, atol=1e-12)
    assert Q.min() < 1e-3 < 0.999 < Q.max()
    np.testing.assert_allclose(points(axes, "stable"), [[0.75, 0]], atol=1e-9)


def test_each_closed_class_has_its_flow_and_three_words_the_triangle():
    axes = meanfield.plot(meanfield.make_policy(np.array([0.5, 1, 1, 0, 0]), ["a", "b"]), view="flow")
    said = [points(axes, f"closed class {k}").sum(1).round(9).mean() for k in (0, 1)]
    assert sorted(said) == [0, 1], "agents repeat themselves for ever"
    axes = meanfield.plot(random_policy(1, 3), view="flow")
    assert notes(axes) == ["a", "b", "c"] and len(axes.collections) == 2, "basins and arrows"


def test_a_stack_has_a_panel_for_each_policy():
    one, other = random_policy(1), random_policy(2)
    both = meanfield.make_policy(other["q"].values, ["c", "d"], model="random")
    numbered = [one.drop_vars("word").assign_coords(word=[0, 1]) for one in (one, both)]
    stack = xr.concat(numbered, "pair", coords=["word_label"], compat="override")
    axes = meanfield.plot(meanfield.validate_policy(stack))
    assert [one.get_title() for one in axes] == ["{a, b}", "{c, d}"]
    np.testing.assert_array_equal(axes[1].images[0].get_array()[1], other["q"].values[1:, 0])
