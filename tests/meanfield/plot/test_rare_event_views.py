"""Lifetimes against group size, ways out of conventions, and probabilities by splitting."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from _drawn_results import drawn
from _labelled_calls import conformist


@pytest.fixture(scope="module")
def lifetimes():
    return meanfield.lifetime(conformist(), n_agents=[5, 10, 500])


def test_lifetimes_are_drawn_up_to_the_longest_with_their_barriers(lifetimes):
    axes = meanfield.plot(lifetimes)
    for line, number in zip(axes.lines, range(lifetimes.sizes["fixed_point"]), strict=True):
        one = lifetimes.isel(fixed_point=number)
        np.testing.assert_array_equal(line.get_xydata(), np.stack([[5, 10], one["lifetime"].values[:2]], axis=1))
        assert line.get_label().endswith(f"barrier {one['barrier'].item():.3g}\nbeyond 1e+15 from N = 500 on")
    assert len({line.get_color() for line in axes.lines}) == 2
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "mean lifetime (rounds)"


def test_one_size_has_a_row_for_each_attractor(lifetimes):
    axes = meanfield.plot(lifetimes.sel(n_agents=10))
    found = lifetimes["lifetime"].sel(n_agents=10).values
    np.testing.assert_array_equal([line.get_xydata()[0] for line in axes.lines], np.stack([found, [0, 1]], axis=1))
    barriers = [f"barrier {barrier:.3g}" for barrier in lifetimes["barrier"].values]
    assert [label.get_text().split(", ")[1] for label in axes.get_yticklabels()] == barriers
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "mean lifetime (rounds), N = 10")
    (beyond,) = meanfield.plot(lifetimes.sel(n_agents=500)).texts
    assert beyond.get_text().count("beyond 1e+15 from N = 500 on") == 2
    alone = meanfield.plot(lifetimes.sel(n_agents=[10, 500]))
    assert alone.get_xlabel() == axes.get_xlabel() and alone.get_yticklabels()[0].get_text().endswith("N = 500 on")


def test_attractors_without_a_lifetime_say_why(lifetimes):
    reason = xr.full_like(lifetimes["reason"], "this is the only attractor", dtype=object)
    empty = lifetimes.assign(
        lifetime=lifetimes["lifetime"] * np.nan, barrier=lifetimes["barrier"] * np.nan, reason=reason
    )
    (first, _) = meanfield.plot(empty).lines
    assert " ".join(first.get_label().split()).endswith("barrier unknown not drawn: this is the only attractor")
    forever = empty.assign(barrier=empty["barrier"].fillna(np.inf))
    assert "never left" in meanfield.plot(forever).lines[0].get_label()


@pytest.mark.parametrize("view", ["stationary", "rates"])
def test_rates_have_a_line_for_each_attractor(view):
    found = drawn("transition_rates", 1)
    first, second, *_ = meanfield.plot(found, view=view).lines
    assert first.get_label().startswith("a 0.995") and second.get_label().startswith("b 0.995")
    out = found["log_rate"].isel(fixed_point=0, next_fixed_point=-1)
    expected = found["stationary"].isel(fixed_point=0) if view == "stationary" else np.exp(out)
    np.testing.assert_allclose(first.get_ydata(), expected)


def test_rates_too_small_to_draw_are_told():
    found = drawn("transition_rates")
    sizes = found["n_agents"].values
    axes = meanfield.plot(found, view="rates")
    for line, (start, end) in zip(axes.lines, ((0, -1), (-1, 0)), strict=True):
        shown = found["log_rate"].isel(fixed_point=start, next_fixed_point=end).values >= np.log(1e-15)
        assert line.get_label().split("\n")[-1] == f"below 1e-15 from N = {sizes[~shown].min()} on"
        assert line.get_xdata().tolist() == sizes[shown].tolist()
    assert axes.get_xlim()[1] < 100
    (text,) = meanfield.plot(found.isel(n_agents=[-2, -1]), view="rates").texts
    assert text.get_text().count(f"below 1e-15 from N = {sizes[-2]:,} on") == 2


@pytest.mark.slow
def test_the_way_out_ends_at_the_saddle():
    path = meanfield.escape_path(conformist(), fixed_point=0)
    first = meanfield.plot(path).lines[0]
    np.testing.assert_array_equal(
        first.get_xydata(), np.stack([path["round"], path["word_share"].sel(word="a")], axis=1)
    )
    assert meanfield.plot(path, view="composition").get_ylabel() == "fraction of agents"


@pytest.mark.parametrize(("spread", "scale"), [(2, "linear"), (10, "log")])
def test_estimates_have_their_mean_and_interval(spread, scale):
    found = xr.Dataset(
        {
            "estimate": ("replication", [1e-9, spread * 1e-9, 0.0]),
            "probability": ((), 1e-9),
            "interval": ("bound", [5e-10, 2e-9], {"long_name": "99 % interval"}),
        },
        coords={"word": "a", "pair": "a/b", "bound": ["low", "high"]},
        attrs={"kind": "rare_event"},
    )
    axes = meanfield.plot(found)
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[1, 1e-9], [2, spread * 1e-9]])
    assert [text.get_text() for text in axes.get_legend().get_texts()][1:] == [
        "mean 1e-09",
        "99 % interval",
        "1 of 3 without the event",
    ]
    assert (axes.get_yscale(), axes.get_ylabel()) == (scale, "probability to end at a")
