"""The group-size law, simulated fractions over it, critical sizes, misalignment and rare events."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

import meanfield
from _drawings import labels, notes, points, ticks
from _policies import majority
from meanfield._plot.words import PALETTE

SIZES = np.array([10, 1000])


def bias(kappa, models="m", strong=None, simulated=None):
    """Pairs {a0, b0}, {a1, b1}, … with these κ; NaN is no law."""
    kappa = np.array(kappa, float)
    number = len(kappa)
    words = np.array([[f"a{k}", f"b{k}"] for k in range(number)])
    fractions = np.full((number, 2), [0.6, 0.9]) if simulated is None else np.array(simulated, float)
    columns = {
        "simulated": (("pair", "n_agents"), fractions),
        "interval": (("pair", "n_agents", "bound"), np.stack([fractions - 0.1, fractions + 0.05], -1)),
        "kappa": ("pair", kappa),
        "strong_word": ("pair", words[:, 0] if strong is None else strong),
        "applies": ("pair", ~np.isnan(kappa)),
    }
    coords = {"model": ("pair", np.resize(list(models), number)), "n_agents": SIZES, "bound": ["low", "high"]}
    coords |= {"word": [0, 1], "word_label": (("pair", "word"), words)}
    return xr.Dataset(columns, coords, {"kind": "collective_bias"})


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


@pytest.fixture(scope="module")
def law():
    return meanfield.group_size_law(majority(0.53), n_agents=[10, 100, 10_000])


def test_the_law_against_the_number_of_agents(law):
    axes = meanfield.plot(law)
    curve, sizes = curves(axes)
    np.testing.assert_array_equal(sizes.get_xydata(), np.stack([law["n_agents"], law["probability"]], axis=1))
    np.testing.assert_allclose(curve.get_xdata()[[0, -1]], [10, 10_000])
    np.testing.assert_allclose(curve.get_ydata(), ndtr(law["kappa"].item() * np.sqrt(curve.get_xdata())))
    assert np.abs(np.diff(curve.get_ydata())).max() < 0.01, "no kinks"
    assert curve.get_color() == PALETTE[0], "the strong word is a"
    critical = law["n_critical"].item()
    assert labels(axes) == [f"a over b, κ = {law['kappa'].item():.3f}", f"99 % from N = {critical:,.0f} on"]
    assert axes.lines[2].get_xdata() == [critical, critical]
    curve, sizes = meanfield.plot(law.sel(n_agents=100)).lines[:2]
    np.testing.assert_allclose(curve.get_xdata()[[0, -1]], [10, 1000], err_msg="a decade each way")
    axes = meanfield.plot(law.assign(kappa=np.inf, probability=law["probability"] * 0 + 1, n_critical=0.0))
    assert labels(axes) == ["a over b, κ = ∞"]


def test_the_majority_law_against_the_number_of_agents_and_over_rounds():
    policy = meanfield.make_policy(np.array([0.6, 0.75, 0.5, 0.6, 0.3]), ["a", "b"])
    law = meanfield.group_size_law(policy, n_agents=[10, 100], rounds=np.array([0, 1, 2]))
    axes = meanfield.plot(law)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), law["probability"])
    assert axes.get_ylabel() == "probability that the strong word is ahead"
    axes = meanfield.plot(law, view="memory")
    for size in (10, 100):
        np.testing.assert_array_equal(points(axes, f"N = {size}")[:, 1], law["still_ahead"].sel(n_agents=size))


def test_where_there_is_no_law_its_reason_is_written():
    slow = meanfield.make_policy(np.array([0.5, 0.9999, 0.5, 0.5, 1e-4]), ["a", "b"])
    law = meanfield.group_size_law(slow, n_agents=[10, 100])
    axes = meanfield.plot(law)
    assert notes(axes) == [f"no group-size law: {law.attrs['reason']}"] and not curves(axes)


def test_points_with_intervals_over_lines_by_falling_kappa():
    axes = meanfield.plot(bias([0.02, 0.1]), markersize=9)
    assert legend(axes) == ["a1 over b1, 0.100", "a0 over b0, 0.020"]
    for line, kappa, label, shown in zip(curves(axes), (0.1, 0.02), labels(axes), axes.containers, strict=True):
        np.testing.assert_allclose(line.get_ydata(), ndtr(kappa * np.sqrt(line.get_xdata())))
        np.testing.assert_allclose(line.get_xdata()[[0, -1]], SIZES)
        np.testing.assert_allclose(points(axes, label), [[10, 0.6, 0.5, 0.65], [1000, 0.9, 0.8, 0.95]])
        assert line.get_color() == shown[0].get_color() and shown[0].get_markersize() == 9
    assert axes.get_title() == "m"


def test_pairs_without_a_law_or_with_an_infinite_kappa_are_points_without_a_line():
    simulated = [[0.6, 0.7], [1, 1], [0.5, 0.5], [np.nan, np.nan]]
    result = bias([0.1, np.inf, np.nan, 0.05], models="xy", strong=["a0", "a1", "", "mixed"], simulated=simulated)
    axes = meanfield.plot(result)
    assert len(curves(axes)) == 2 and len(axes.containers) == 4
    names = ["x: a0 over b0, 0.100", "y: {a3, b3}, 0.050, no runs", "y: a1 over b1, ∞", "x: {a2, b2}, no law"]
    assert legend(axes) == names
    collapsed = legend(meanfield.plot(result, view="collapse"))
    assert [name for name in collapsed if name.startswith("not drawn")] == [f"not drawn: {one}" for one in names[2:]]


def test_all_pairs_share_a_line_against_the_scaled_size():
    axes = meanfield.plot(bias([0.02, 0.1]), view="collapse")
    scaled, share = points(axes, "Φ(κ√N)").T
    np.testing.assert_allclose(share, ndtr(scaled))
    assert scaled[0] < 0.02 * np.sqrt(10) and scaled[-1] > 0.1 * np.sqrt(1000)
    for shown, kappa in zip(axes.containers, (0.1, 0.02), strict=True):
        np.testing.assert_allclose(shown[0].get_xdata(), kappa * np.sqrt(SIZES))


def test_critical_sizes_found_and_predicted():
    columns = {
        "n_critical": ("pair", [100.0, np.nan, np.nan, 50.0]),
        "n_below": ("pair", [50.0, 400.0, np.nan, np.nan]),
        "n_predicted": ("pair", [90.0, 800.0, np.nan, 40.0]),
    }
    coords = {"word_label": (("pair", "word"), [[f"a{k}", f"b{k}"] for k in range(4)])}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "critical_size_from_simulation"}))
    assert points(axes, "simulated").tolist() == [[90, 100, 50, 100], [40, 50, 0, 50]]
    assert points(axes, "larger than simulated").tolist() == [[800, 400]]
    assert notes(axes) == ["a0, b0", "a1, b1", "a3, b3"] and "not drawn: {a2, b2}" in labels(axes)
    assert axes.get_xscale() == axes.get_yscale() == "log" and axes.get_ylim() == axes.get_xlim()


# --- individual against collective bias ---


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
    coords = {"n_agents": [12, 24], "bound": ["low", "high"], "model": ("pair", ["m"] * 3), "word": [0, 1]}
    coords["word_label"] = (("pair", "word"), [["his", "her"], ["she", "he"], ["x", "y"]])
    return xr.Dataset(columns, coords, {"kind": "misalignment"})


def test_types_of_misalignment_in_a_panel_for_each_size():
    small, large = meanfield.plot(misalignment())
    np.testing.assert_allclose(points(large, "amplified"), [[0.6, 0.9, 0.8, 0.95]])
    np.testing.assert_allclose(points(large, "reversed"), [[0.4, 0.75, 0.65, 0.8]])
    assert {bars.get_label() for bars in small.containers} == {"amplified", "none"}
    assert sorted(notes(large)) == ["he", "his"] and "no consensus: {x, y}" in labels(large)
    many = xr.concat([misalignment().isel(n_agents=[0], pair=[0])] * 16, "pair", data_vars="minimal")
    assert not meanfield.plot(many).texts


def test_distances_from_a_random_choice():
    columns = {"distance": ("pair", np.array([0.02, 0.001])), "neutral": ("pair", np.array([False, True]))}
    coords = {"model": ("pair", ["gpt-4o", "phi_4"]), "word_label": (("pair", "word"), [["his", "her"]] * 2)}
    result = xr.Dataset(columns, coords, {"kind": "neutrality", "option_largest_neutral_distance": 0.005})
    axes = meanfield.plot(result)
    assert points(axes, "not neutral").tolist() == [[0.02, 0]] and points(axes, "neutral").tolist() == [[0.001, 1]]
    assert points(axes, "neutral below 0.005")[:, 0].tolist() == [0.005, 0.005]
    assert ticks(axes) == ["GPT-4o {his, her}", "Phi-4 {his, her}"]


# --- rare events ---


SHARES = (("fixed_point", "word"), [[0.995, 0.005], [0.005, 0.995]])
PLACES = {"n_agents": [5, 10, 500], "word": ["a", "b"], "fixed_point": [0, 1]}


@pytest.fixture
def lifetimes():
    columns = {
        "lifetime": (("fixed_point", "n_agents"), [[1e3, 1e5, 1e40], [2e3, 3e5, 1e42]], {"units": "rounds"}),
        "barrier": ("fixed_point", [0.3, 0.31]),
        "reason": ("fixed_point", ["", ""]),
        "word_share": SHARES,
    }
    return xr.Dataset(columns, PLACES, {"kind": "lifetime"})


def test_lifetimes_are_drawn_up_to_the_longest_with_their_barriers(lifetimes):
    axes = meanfield.plot(lifetimes)
    for number, line in enumerate(axes.lines):
        one = lifetimes.isel(fixed_point=number)
        np.testing.assert_array_equal(line.get_xydata(), np.stack([[5, 10], one["lifetime"].values[:2]], axis=1))
        assert line.get_label().endswith(f"barrier {one['barrier'].item():.3g}\nbeyond 1e+15 from N = 500 on")
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "mean lifetime (rounds)"
    axes = meanfield.plot(lifetimes.sel(n_agents=[10, 500]))
    found = lifetimes["lifetime"].sel(n_agents=10).values
    np.testing.assert_array_equal([line.get_xydata()[0] for line in axes.lines], np.stack([found, [0, 1]], axis=1))
    barriers = [f"barrier {barrier:.3g}" for barrier in lifetimes["barrier"].values]
    assert [tick.replace("\n", ", ").split(", ")[1] for tick in ticks(axes)] == barriers, "a row for each attractor"


def test_attractors_without_a_lifetime_say_why(lifetimes):
    reason = xr.full_like(lifetimes["reason"], "this is the only attractor", dtype=object)
    nowhere = {"lifetime": lifetimes["lifetime"] * np.nan, "barrier": lifetimes["barrier"] * np.nan}
    empty = lifetimes.assign(reason=reason, **nowhere)
    told = " ".join(meanfield.plot(empty).lines[0].get_label().split())
    assert told.endswith("barrier unknown not drawn: this is the only attractor")
    forever = empty.assign(barrier=empty["barrier"].fillna(np.inf))
    assert "never left" in meanfield.plot(forever).lines[0].get_label()


def test_rates_and_fractions_of_time_have_a_line_for_each_attractor():
    log_rate = np.full((2, 2, 3), np.nan)
    log_rate[0, 1], log_rate[1, 0] = np.log([1e-3, 1e-5, 1e-40]), np.log([2e-3, 3e-5, 1e-42])
    columns = {
        "log_rate": (("fixed_point", "next_fixed_point", "n_agents"), log_rate, {"units": "log 1/round"}),
        "reason": (("fixed_point", "next_fixed_point"), [["", ""], ["", ""]]),
        "stationary": (("fixed_point", "n_agents"), [[0.7, 0.8, 0.9], [0.3, 0.2, 0.1]]),
        "word_share": SHARES,
    }
    found = xr.Dataset(columns, {**PLACES, "next_fixed_point": [0, 1]}, {"kind": "transition_rates"})
    first, second = meanfield.plot(found).lines
    assert (first.get_label(), second.get_label()) == ("a 0.995", "b 0.995")
    np.testing.assert_array_equal(first.get_ydata(), [0.7, 0.8, 0.9])
    axes = meanfield.plot(found, view="rates")
    for line, start, expected in zip(axes.lines, "ab", ([1e-3, 1e-5], [2e-3, 3e-5]), strict=True):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([[5, 10], expected]))
        told = " ".join(line.get_label().split())
        assert told.startswith(f"{start} 0.995 to ") and told.endswith("below 1e-15 from N = 500 on")
    assert axes.get_ylabel() == "rate (1/round)"


@pytest.mark.parametrize(("spread", "scale"), [(2, "linear"), (10, "log")])
def test_estimates_have_their_mean_and_interval(spread, scale):
    columns = {
        "estimate": ("replication", [1e-9, spread * 1e-9, 0.0]),
        "probability": ((), 1e-9),
        "interval": ("bound", [5e-10, 2e-9], {"long_name": "99 % interval"}),
    }
    axes = meanfield.plot(xr.Dataset(columns, {"word": "a", "bound": ["low", "high"]}, {"kind": "rare_event"}))
    np.testing.assert_array_equal(points(axes, "replication"), [[1, 1e-9], [2, spread * 1e-9]])
    assert labels(axes)[1:] == ["mean 1e-09", "99 % interval", "1 of 3 without the event"]
    assert axes.get_yscale() == scale
