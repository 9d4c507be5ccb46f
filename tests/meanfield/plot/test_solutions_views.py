"""Solutions as lines: each holds the numbers of its column."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield.toolbox import word_coords

SHARES = np.array([[0.5, 0.2], [0.8, 0.1], [1.0, 0.0]])  # of the first word by time, from two starts
TIMES = np.array([0.0, 8.0, 400.0])


def solution() -> xr.Dataset:
    share = np.stack([SHARES.T, 1 - SHARES.T], -1)
    return xr.Dataset(
        {"word_share": (("start", "time", "word"), share), "success_rate": (("start", "time"), (share**2).sum(-1))},
        coords={"time": TIMES, "round": ("time", TIMES / 2), **word_coords(["his", "her"])},
        attrs={"kind": "solution"},
    )


def reactions(names: list[str]) -> xr.Dataset:
    fractions = np.random.default_rng(1).dirichlet(np.ones(len(names)), size=4)
    return xr.Dataset(
        {"composition": (("time", "state"), fractions)},
        coords={"time": ("time", np.arange(4.0), {"units": "days"}), "state": names},
        attrs={"kind": "reaction_solution"},
    )


def test_starts_share_the_colours_of_words():
    axes = meanfield.plot(solution().isel(time=[2, 0, 1], word=[1, 0]), linewidth=3)
    lines = axes.get_lines()
    for k, (line, expected) in enumerate(zip(lines, np.hstack([SHARES, 1 - SHARES]).T, strict=True)):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([TIMES / 2, expected]))
        assert line.get_linewidth() == 3
        assert line.get_color() == lines[2 * (k // 2)].get_color()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["his", "her"]
    assert lines[0].get_color() != lines[2].get_color()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("population round", "word share")


def test_the_success_rate_has_a_line_for_each_start():
    lines = meanfield.plot(solution(), view="success_rate").get_lines()
    np.testing.assert_allclose([line.get_ydata() for line in lines], (SHARES**2 + (1 - SHARES) ** 2).T)


def test_rounds_are_shown_until_nothing_moves_and_as_far_as_before():
    settled = solution().assign(word_share=solution()["word_share"].isel(time=[0, 2, 2]).drop_vars(["time", "round"]))
    axes = meanfield.plot(settled)
    assert axes.get_xlim() == (0, 10)
    meanfield.plot(solution(), axes)
    assert axes.get_xlim() == (0, 10)
    moving = solution().isel(start=[0], time=[0, 1, 2]).copy(deep=True)
    moving["word_share"][:, 1] += 0.1
    meanfield.plot(moving.assign_coords(round=("time", [0.0, 100.0, 200.0])), axes)
    assert axes.get_xlim()[1] == pytest.approx(115)
    meanfield.plot(settled, axes)
    assert axes.get_xlim()[1] == pytest.approx(115)


def test_states_of_a_reaction_model_have_their_names():
    result = reactions(["S", "I", "R"])
    axes = meanfield.plot(result)
    np.testing.assert_array_equal([line.get_ydata() for line in axes.get_lines()], result["composition"].values.T)
    assert [line.get_label() for line in axes.get_lines()] == ["S", "I", "R"]
    assert axes.get_xlabel() == "time (days)"


def test_the_largest_of_many_states_are_named_and_the_others_counted():
    names = [f"state {k}" for k in range(15)]
    result = reactions(names)
    axes = meanfield.plot(result)
    assert len(axes.get_lines()) == 16
    labels = axes.get_legend_handles_labels()[1]
    smallest = result["state"].values[np.argsort(result["composition"].max("time").values)[:3]]
    assert labels == [name for name in names if name not in smallest] + ["and 3 more states"]
