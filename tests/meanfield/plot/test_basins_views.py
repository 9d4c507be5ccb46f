"""Basins of attraction as bars, and on the line of starts between two consensus states."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import meanfield
from meanfield import InputError
from meanfield._plot.words import NEUTRAL, PALETTE


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
