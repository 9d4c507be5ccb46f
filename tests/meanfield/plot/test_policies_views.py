"""Policies as trees of memories, and the flow of the word share."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb

import meanfield
from _policies import random_policy
from meanfield import InputError, MemorySpace
from meanfield._plot.views import policies, simplex
from meanfield._plot.words import PALETTE


def place(memory, space):
    """Row and columns of a memory in the tree."""
    digits = [space.n_words * own + partner for own, partner in reversed(memory)]
    first = sum(digit * space.n_digits ** (space.memory_length - 1 - k) for k, digit in enumerate(digits))
    return len(memory), slice(first, first + space.n_digits ** (space.memory_length - len(memory)))


def test_each_memory_stands_below_what_it_remembers_last():
    policy, space = random_policy(1, memory_length=3), MemorySpace(2, 3)
    axes = meanfield.plot(policy)
    (image,) = axes.images
    cells = image.get_array()
    for state in range(space.n_states):
        row, columns = place(space.memory(state), space)
        assert (cells[row, columns] == policy["q"].values[state, 0]).all(), space.memory(state)
    assert image.get_extent() == [0.0, 1.0, 3.5, -0.5]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a/\na", "a/\nb", "b/\na", "b/\nb"]
    assert axes.get_xlabel().startswith("newest interaction")
    np.testing.assert_allclose(image.cmap([0.0, 1.0])[:, :3], [to_rgb(PALETTE[1]), to_rgb(PALETTE[0])], atol=1e-6)
    assert [cax.get_ylabel() for cax in axes.child_axes] == ["P(a)"]


@pytest.mark.parametrize(("width", "slanted"), [(2.0, True), (8.0, False)])
def test_names_of_memories_without_room_are_slanted(width, slanted):
    policy = meanfield.make_policy(np.linspace(0.1, 0.9, 5), ["woman", "man"])
    axes = meanfield.plot(policy, plt.figure(figsize=(width, 3)).add_subplot())
    label = axes.get_xticklabels()[1]
    assert (label.get_text(), label.get_rotation()) == (("woman/man", 30) if slanted else ("woman/\nman", 0))


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
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b", "c"]


def test_a_tree_too_large_to_draw_is_refused(monkeypatch):
    monkeypatch.setattr(policies, "MOST_CELLS", 7)
    with pytest.raises(InputError, match="policy has 5 memories: expected a tree of at most 7 cells, not 8"):
        meanfield.plot(random_policy(1))


def test_the_flow_of_agents_who_answer_what_they_heard():
    """With P(a | heard a) = 0.9 and P(a | heard b) = 0.3, F(Q) = 0.9 Q + 0.3 (1 - Q), which is Q at 3/4."""
    policy = meanfield.make_policy(np.array([0.5, 0.9, 0.3, 0.9, 0.3]), ["a", "b"])
    axes = meanfield.plot(policy, view="flow", linewidth=3)
    curve = next(line for line in axes.lines if line.get_linewidth() == 3)
    Q = curve.get_xdata()
    np.testing.assert_allclose(curve.get_ydata(), 0.3 - 0.4 * Q, atol=1e-12)
    assert Q.min() < 1e-3 < 0.999 < Q.max()
    (root,) = (line for line in axes.lines if line.get_label() == "stable")
    np.testing.assert_allclose(root.get_xydata(), [[0.75, 0]], atol=1e-9)
    assert axes.get_xlabel() == "Q, share of a heard"


def test_each_closed_class_has_its_flow():
    axes = meanfield.plot(meanfield.make_policy(np.array([0.5, 1, 1, 0, 0]), ["a", "b"]), view="flow")
    curves = {line.get_label(): line for line in axes.lines if line.get_label().startswith("closed class")}
    said = sorted((line.get_ydata() + line.get_xdata()).round(9).mean() for line in curves.values())
    assert said == [0, 1], "agents repeat themselves for ever"


def test_the_flow_of_three_words_is_in_the_triangle(monkeypatch):
    monkeypatch.setattr(simplex, "CELLS", 4)
    axes = meanfield.plot(random_policy(1, 3), view="flow")
    assert [note.get_text() for note in axes.texts] == ["a", "b", "c"]
    assert len(axes.collections) == 2, "basins and arrows"


def test_a_stack_has_a_panel_for_each_policy():
    one, other = random_policy(1), random_policy(2)
    both = meanfield.make_policy(other["q"].values, ["c", "d"], model="random")
    axes = meanfield.plot(meanfield.validate_policy(stacked(one, both)))
    assert [one.get_title() for one in axes] == ["{a, b}", "{c, d}"]
    np.testing.assert_array_equal(axes[1].images[0].get_array()[1], other["q"].values[1:, 0])


def stacked(*singles):
    numbered = [one.drop_vars("word").assign_coords(word=[0, 1]) for one in singles]
    return xr.concat(numbered, "pair", coords=["word_label"], compat="override")


def test_four_words_have_no_flow():
    with pytest.raises(InputError, match="policy has 4 words: expected 2 or 3 for view = 'flow'"):
        meanfield.plot(random_policy(1, 4), view="flow")
