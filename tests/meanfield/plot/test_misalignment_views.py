"""Individual against collective bias, and neutrality."""

import numpy as np
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from meanfield._plot.words import PALETTE


def misalignment():
    """Three pairs at two sizes; nothing was simulated for the last."""
    collective = np.array([[0.8, 0.9], [0.7, 0.75], [np.nan, np.nan]])
    columns = {
        "type": (("pair", "n_agents"), [["amplified", "amplified"], ["none", "reversed"], ["", ""]]),
        "individual": ("pair", np.array([0.6, 0.4, np.nan])),
        "collective": (("pair", "n_agents"), collective),
        "interval": (("pair", "n_agents", "bound"), np.stack([collective - 0.1, collective + 0.05], -1)),
        "strong_word": ("pair", ["his", "he", ""]),
    }
    coords = {
        "n_agents": [12, 24],
        "bound": ["low", "high"],
        "model": ("pair", ["m"] * 3),
        "word": [0, 1],
        "word_label": (("pair", "word"), [["his", "her"], ["she", "he"], ["x", "y"]]),
    }
    return xr.Dataset(columns, coords, {"kind": "misalignment"})


def test_types_have_markers_in_a_panel_for_each_size():
    small, large = meanfield.plot(misalignment())
    points = {bars.get_label(): bars[0] for bars in large.containers}
    assert points["amplified"].get_xydata().tolist() == [[0.6, 0.9]]
    assert points["reversed"].get_xydata().tolist() == [[0.4, 0.75]]
    assert points["amplified"].get_marker() != points["reversed"].get_marker()
    assert {bars.get_label() for bars in small.containers} == {"amplified", "none"}
    ends = large.containers[0][2][0].get_segments()[0][:, 1]
    np.testing.assert_allclose(ends, [0.8, 0.95])
    assert sorted(note.get_text() for note in large.texts) == ["he", "his"]
    assert "no consensus: {x, y}" in [text.get_text() for text in large.get_legend().get_texts()]
    assert large.get_xlim()[0] < 0.4 and large.get_ylim()[1] > 0.95
    assert large.get_ylabel() == "collective bias"
    diagonal = [line for line in large.lines if getattr(line, "get_slope", lambda: None)() == 1]
    assert len(diagonal) == 1


def test_many_points_have_no_names():
    result = misalignment().isel(n_agents=[0])
    many = xr.concat([result.isel(pair=[0])] * 16, "pair", data_vars="minimal")
    assert not meanfield.plot(many).texts


def test_distances_from_a_random_choice():
    columns = {"distance": ("pair", np.array([0.02, 0.001])), "neutral": ("pair", np.array([False, True]))}
    coords = {
        "model": ("pair", ["gpt-4o", "phi_4"]),
        "word": [0, 1],
        "word_label": (("pair", "word"), [["his", "her"], ["his", "her"]]),
    }
    attrs = {"kind": "neutrality", "option_largest_neutral_distance": 0.005}
    axes = meanfield.plot(xr.Dataset(columns, coords, attrs))
    drawn = {line.get_label(): line for line in axes.lines}
    assert drawn["not neutral"].get_xydata().tolist() == [[0.02, 0]]
    assert drawn["neutral"].get_xydata().tolist() == [[0.001, 1]]
    assert to_hex(drawn["not neutral"].get_markerfacecolor()) == PALETTE[0]
    assert drawn["neutral"].get_markerfacecolor() == "white"
    assert drawn["neutral below 0.005"].get_xdata() == [0.005, 0.005]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["GPT-4o {his, her}", "Phi-4 {his, her}"]
    assert axes.get_xlim()[0] == 0
