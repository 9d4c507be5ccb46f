"""The group-size law, simulated fractions over it, and critical sizes."""

import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr

import meanfield
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
    coords = {
        "model": ("pair", np.resize(list(models), number)),
        "n_agents": SIZES,
        "bound": ["low", "high"],
        "word": [0, 1],
        "word_label": (("pair", "word"), words),
    }
    return xr.Dataset(columns, coords, {"kind": "collective_bias"})


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def test_the_law_against_the_number_of_agents():
    law = meanfield.group_size_law(majority(0.53), n_agents=[10, 100, 10_000])
    axes = meanfield.plot(law)
    curve, points = curves(axes)
    np.testing.assert_array_equal(points.get_xydata(), np.stack([law["n_agents"], law["probability"]], axis=1))
    assert points.get_linestyle() == "None" and points.get_color() == curve.get_color()
    np.testing.assert_allclose(curve.get_xdata()[[0, -1]], [10, 10_000])
    np.testing.assert_allclose(curve.get_ydata(), ndtr(law["kappa"].item() * np.sqrt(curve.get_xdata())))
    assert np.abs(np.diff(curve.get_ydata())).max() < 0.01, "no kinks"
    assert curve.get_color() == PALETTE[0], "the strong word is a"
    critical = law["n_critical"].item()
    assert legend(axes) == [f"a over b, κ = {law['kappa'].item():.3f}", f"99 % from N = {critical:,.0f} on"]
    assert axes.lines[2].get_xdata() == [critical, critical]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "number of agents N")


def test_one_number_of_agents_is_a_point_on_the_law_around_it():
    curve, points = meanfield.plot(meanfield.group_size_law(majority(0.53), n_agents=24)).lines[:2]
    np.testing.assert_allclose(curve.get_xdata()[[0, -1]], [2.4, 240])
    assert points.get_xdata().tolist() == [24]


def test_the_majority_law_against_the_number_of_agents_and_over_rounds():
    policy = meanfield.make_policy(np.array([0.6, 0.75, 0.5, 0.6, 0.3]), ["a", "b"])
    law = meanfield.group_size_law(policy, n_agents=[10, 100], rounds=np.array([0, 1, 2]))
    axes = meanfield.plot(law)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), law["probability"])
    critical = law["n_critical"].item()
    assert legend(axes) == [f"a over b, κ = {law['kappa'].item():.3f}", f"99 % from N = {critical:,.0f} on"]
    assert axes.get_ylabel() == "probability that the strong word is ahead"
    axes = meanfield.plot(law, view="memory")
    assert legend(axes) == ["N = 10", "N = 100"]
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), law["still_ahead"].sel(n_agents=100))


def test_where_there_is_no_law_its_reason_is_written():
    slow = meanfield.make_policy(np.array([0.5, 0.9999, 0.5, 0.5, 1e-4]), ["a", "b"])
    law = meanfield.group_size_law(slow, n_agents=[10, 100])
    axes = meanfield.plot(law)
    assert " ".join(axes.texts[0].get_text().split()) == f"no group-size law: {law.attrs['reason']}"
    assert not curves(axes)


def test_an_infinite_kappa_has_no_critical_size():
    law = meanfield.group_size_law(majority(0.53), n_agents=[10, 100])
    axes = meanfield.plot(law.assign(kappa=np.inf, probability=law["probability"] * 0 + 1, n_critical=0.0))
    assert legend(axes) == ["a over b, κ = ∞"]


def test_points_with_intervals_over_lines_by_falling_kappa():
    result = bias([0.02, 0.1])
    axes = meanfield.plot(result, markersize=9)
    assert legend(axes) == ["a1 over b1, 0.100", "a0 over b0, 0.020"]
    assert axes.get_legend().get_title().get_text() == "strong over weak word, κ"
    lines = [line for line in curves(axes)]
    for line, kappa, points in zip(lines, (0.1, 0.02), axes.containers, strict=True):
        np.testing.assert_allclose(line.get_ydata(), ndtr(kappa * np.sqrt(line.get_xdata())))
        assert (line.get_xdata()[0], round(line.get_xdata()[-1])) == (10, 1000)
        assert line.get_color() == points[0].get_color()
        assert points[0].get_markersize() == 9
        np.testing.assert_array_equal(points[0].get_xydata(), [[10, 0.6], [1000, 0.9]])
        np.testing.assert_allclose([one[:, 1] for one in points[2][0].get_segments()], [[0.5, 0.65], [0.8, 0.95]])
    assert lines[0].get_color() != lines[1].get_color()
    assert axes.get_title() == "m"
    assert axes.get_ylabel() == "fraction of runs at the strong word"


def test_pairs_without_a_law_or_with_an_infinite_kappa_are_points_without_a_line():
    strong = ["a0", "a1", "", "mixed"]
    simulated = [[0.6, 0.7], [1, 1], [0.5, 0.5], [np.nan, np.nan]]
    result = bias([0.1, np.inf, np.nan, 0.05], models="xy", strong=strong, simulated=simulated)
    axes = meanfield.plot(result)
    assert len(curves(axes)) == 2 and len(axes.containers) == 4
    names = ["x: a0 over b0, 0.100", "y: {a3, b3}, 0.050, no runs", "y: a1 over b1, ∞", "x: {a2, b2}, no law"]
    assert legend(axes) == names
    assert axes.get_title() == ""
    collapsed = meanfield.plot(result, view="collapse")
    assert [name for name in legend(collapsed) if name.startswith("not drawn")] == [
        "not drawn: y: a1 over b1, ∞",
        "not drawn: x: {a2, b2}, no law",
    ]


def test_all_pairs_share_a_line_against_the_scaled_size():
    axes = meanfield.plot(bias([0.02, 0.1]), view="collapse")
    (curve,) = curves(axes)
    np.testing.assert_allclose(curve.get_ydata(), ndtr(curve.get_xdata()))
    assert (curve.get_label(), curve.get_color()) == ("Φ(κ√N)", "black")
    for points, kappa in zip(axes.containers, (0.1, 0.02), strict=True):
        np.testing.assert_allclose(points[0].get_xdata(), kappa * np.sqrt(SIZES))
    assert curve.get_xdata()[0] < 0.02 * np.sqrt(10) and curve.get_xdata()[-1] > 0.1 * np.sqrt(1000)
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "κ√N")


@pytest.mark.parametrize(("number", "inside"), [(6, True), (7, False)])
def test_many_pairs_have_their_legend_beside_the_axes(number, inside):
    axes = meanfield.plot(bias(np.linspace(0.01, 0.1, number)))
    axes.figure.canvas.draw()
    box = axes.get_legend().get_window_extent()
    assert (box.x0 < axes.bbox.x1) == inside


def test_critical_sizes_found_and_predicted():
    columns = {
        "n_critical": ("pair", [100.0, np.nan, np.nan, 50.0]),
        "n_below": ("pair", [50.0, 400.0, np.nan, np.nan]),
        "n_predicted": ("pair", [90.0, 800.0, np.nan, 40.0]),
    }
    words = [[f"a{k}", f"b{k}"] for k in range(4)]
    result = xr.Dataset(
        columns,
        coords={"word_label": (("pair", "word"), words), "model": ("pair", ["m"] * 4)},
        attrs={"kind": "critical_size_from_simulation"},
    )
    axes = meanfield.plot(result)
    (found,) = axes.containers
    assert found[0].get_xydata().tolist() == [[90, 100], [40, 50]]
    first, second = found[2][0].get_segments()
    assert [first[:, 1].tolist(), second[:, 1].tolist()] == [[50, 100], [0, 50]]
    larger = {line.get_label(): line for line in axes.lines}["larger than simulated"]
    assert larger.get_xydata().tolist() == [[800, 400]]
    assert [note.get_text() for note in axes.texts] == ["a0, b0", "a1, b1", "a3, b3"]
    assert "not drawn: {a2, b2}" in legend(axes)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_ylim() == axes.get_xlim()


@pytest.mark.parametrize("view", ["size", "collapse"])
def test_a_selected_pair_is_drawn_like_a_collection_of_one(view):
    several = bias([0.3, 0.1]).assign_coords(pair=["a0/b0", "a1/b1"])
    one = meanfield.plot(several.isel(pair=1), view=view)
    lone = meanfield.plot(several.isel(pair=[1]), view=view)
    assert legend(one) == legend(lone)
    for mine, other in zip(one.lines, lone.lines, strict=True):
        np.testing.assert_array_equal(mine.get_xydata(), other.get_xydata())
