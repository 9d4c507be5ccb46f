"""Solutions as lines, and means with bands among N agents."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield import InputError
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


ROUNDS = np.array([0.0, 1.0, 2.0])
SIZES = [40, 10]


def moments(n_words: int = 2) -> xr.Dataset:
    words = [chr(ord("a") + w) for w in range(n_words)]
    random = np.random.default_rng(1)
    limit = random.dirichlet(np.ones(n_words), size=3)
    correction, variance = random.normal(size=(3, n_words)), random.uniform(0.1, 1, (3, n_words))
    sizes = np.array(SIZES)[:, None, None]
    return xr.Dataset(
        {
            "word_share": (("time", "word"), limit),
            "word_share_correction": (("time", "word"), correction),
            "word_share_variance": (("time", "word"), variance),
            "mean": (("n_agents", "time", "word"), limit + correction / sizes),
            "variance": (("n_agents", "time", "word"), variance / sizes),
        },
        coords={"time": 2 * ROUNDS, "round": ("time", ROUNDS), "word": words, "n_agents": SIZES},
        attrs={"kind": "finite_size"},
    )


def bands(axes: Axes) -> list[np.ndarray]:
    """The lower and the upper end of each band by round."""
    found = []
    for band in axes.collections:
        corners = band.get_paths()[0].vertices
        found.append(np.array([[f(corners[corners[:, 0] == r, 1]) for f in (min, max)] for r in ROUNDS]))
    return found


def notes(axes: Axes) -> list[str]:
    return [" ".join(line.get_label().split()) for line in axes.get_lines() if not len(line.get_xdata())]


def test_other_attractors_are_in_the_legend():
    both = moments().assign_attrs(attractors="A; mostly B (0.96)")
    assert notes(meanfield.plot(both)) == [
        "bands are those around one resting place, but groups end at A or mostly B (0.96)"
    ]
    assert notes(meanfield.plot(moments().assign_attrs(attractors="mostly A (0.96)"))) == []
    stack = xr.concat([moments(), moments()], xr.Variable("pair", ["a/b", "c/d"])).assign(
        attractors=("pair", ["mostly a (0.9)", "c; d"])
    )
    first, second = meanfield.plot(stack)
    assert (notes(first), len(notes(second))) == ([], 1)


def test_each_size_has_its_mean_and_two_standard_deviations():
    result = moments()
    axes = meanfield.plot(result)
    *lines, limit = axes.get_lines()
    assert [line.get_label() for line in axes.get_lines()] == ["N = 10", "N = 40", "rate equation"]
    for line, band, n_agents in zip(lines, bands(axes), sorted(SIZES), strict=True):
        one = result.sel(n_agents=n_agents, word="a")
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([ROUNDS, one["mean"]]))
        half = 2 * np.sqrt(one["variance"].values)
        np.testing.assert_allclose(band, np.clip(one["mean"].values[:, None] + np.outer(half, [-1, 1]), 0, 1))
    assert (half > one["mean"].values).any(), "some bands end at 0"
    assert limit.get_linestyle() == "--"
    np.testing.assert_array_equal(limit.get_ydata(), result["word_share"].sel(word="a"))
    assert lines[0].get_linewidth() > lines[1].get_linewidth()
    assert axes.get_ylabel() == "mean share of 'a'"


def test_three_words_have_shades_of_their_colours():
    result = moments(3)
    axes = meanfield.plot(result)
    labels = axes.get_legend_handles_labels()[1]
    assert sorted(labels) == sorted(["a", "b", "c", "N = 10", "N = 40", "rate equation"])
    means = [line.get_ydata() for line in axes.get_lines()[:6]]
    expected = result["mean"].sortby("n_agents").transpose("word", "n_agents", "time").values.reshape(6, -1)
    np.testing.assert_array_equal(means, expected)


def test_one_size_that_was_selected_is_drawn_alike():
    lines = meanfield.plot(moments().sel(n_agents=10)).get_lines()
    assert [line.get_label() for line in lines] == ["N = 10", "rate equation"]


@pytest.mark.parametrize("name", ["variance", "correction"])
def test_coefficients_are_drawn_as_they_are(name):
    result = moments()
    axes = meanfield.plot(result, view=name)
    np.testing.assert_array_equal(axes.get_lines()[-1].get_ydata(), result[f"word_share_{name}"].sel(word="a"))


def test_without_sizes_the_variance_is_drawn_and_the_option_is_named():
    result = moments().drop_vars(["mean", "variance", "n_agents"])
    assert meanfield.plot(result).get_ylabel() == "N · variance of word share"
    with pytest.raises(InputError, match=r"^view = 'word_share': result has no mean, expected one made with n_agents$"):
        meanfield.plot(result, view="word_share")


def test_exact_moments_take_their_size_from_the_options():
    exact = moments()[["mean", "variance"]].isel(n_agents=0, drop=True).rename(time="interactions")
    exact.attrs = {"kind": "exact_moments", "option_n_agents": 40}
    axes = meanfield.plot(exact)
    (line,) = axes.get_lines()
    assert line.get_label() == "N = 40"
    np.testing.assert_array_equal(line.get_ydata(), exact["mean"].sel(word="a"))
    half = 2 * np.sqrt(exact["variance"].sel(word="a").values)
    ends = exact["mean"].sel(word="a").values[:, None] + np.outer(half, [-1, 1])
    np.testing.assert_allclose(bands(axes)[0], ends.clip(0, 1))


def test_reaction_models_have_bands_for_each_state():
    mean = np.array([[[1.0, 0.0], [0.4, 0.6]], [[1.0, 0.0], [0.3, 0.7]]])
    columns = {
        "composition": (("time", "state"), mean[1]),
        "mean": (("n_agents", "time", "state"), mean),
        "variance": (("n_agents", "time", "state"), np.full((2, 2, 2), 0.01)),
    }
    coords = {"n_agents": [10, 50], "time": [0.0, 1.0], "state": ["S", "I"]}
    result = xr.Dataset(columns, coords=coords, attrs={"kind": "reaction_finite_size"})
    small, large = meanfield.plot(result)
    assert (small.get_title(), large.get_title()) == ("N = 10", "N = 50")
    band = small.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0.2, 1.0))
    assert [list(line.get_ydata()) for line in large.get_lines()] == [[1.0, 0.3], [0.0, 0.7]]
    assert len(meanfield.plot(result.drop_vars(["mean", "variance", "n_agents"])).get_lines()) == 2
