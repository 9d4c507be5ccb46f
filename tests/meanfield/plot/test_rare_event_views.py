"""Lifetimes against group size, ways out of conventions, and probabilities by splitting."""

import numpy as np
import pytest
import xarray as xr

import meanfield
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
def test_rates_of_populations_are_drawn(view):
    population = meanfield.Population(conformist(), committed={"a": 0.02})
    rates = meanfield.transition_rates(population, n_agents=[5, 10])
    labels = [line.get_label() for line in meanfield.plot(rates, view=view).lines]
    assert len(labels) == 2 and labels[0].startswith("a 0.")


def test_rates_too_small_to_draw_are_told():
    found = meanfield.transition_rates(conformist(), n_agents=[10, 20, 100, 1000])
    axes = meanfield.plot(found, view="rates")
    assert [line.get_label().split("\n")[-1] for line in axes.lines] == ["below 1e-15 from N = 100 on"] * 2
    assert [line.get_xdata().tolist() for line in axes.lines] == [[10, 20]] * 2 and axes.get_xlim()[1] < 100
    (text,) = meanfield.plot(found.isel(n_agents=[2, 3]), view="rates").texts
    assert text.get_text().count("below 1e-15 from N = 100 on") == 2


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
    assert (axes.get_yscale(), axes.get_ylabel()) == (scale, "chance to end at a")
