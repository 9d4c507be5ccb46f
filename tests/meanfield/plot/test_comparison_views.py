"""Theory beside simulation."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield.toolbox import word_coords
from paper_figs import mean_field_dynamics, theory_and_simulation
from validation import compare
from validation.comparison import compare_ensembles

SIZES = [1600, 100]
RUNS, ROUNDS = 200, 6


def simulation(seed: int = 1) -> xr.Dataset:
    """Runs that follow theory up to 1/N in the mean and 1/√N in the deviations; 3 of 4 end at 'a'."""
    random, sizes = np.random.default_rng(seed), np.array(SIZES)[:, None, None]
    share = theory()["word_share"].values[::2, 0] + 20 / sizes + random.normal(size=(2, RUNS, ROUNDS)) / sizes**0.5 / 5
    ends = np.tile(np.array(["a", "a", "a", "b"], dtype=object), (2, RUNS // 4))
    return xr.Dataset(
        {
            "consensus_word": (("n_agents", "run"), ends),
            "consensus_round": (("n_agents", "run"), random.integers(3, 9, (2, RUNS)).astype(float)),
            "word_share": (("n_agents", "run", "round", "word"), np.stack([share, 1 - share], -1)),
        },
        coords={"n_agents": SIZES, "run": range(RUNS), "round": range(ROUNDS), **word_coords(["a", "b"])},
        attrs={"kind": "simulation"},
    )


def theory(attractor: str = "a") -> xr.Dataset:
    times = np.arange(2.0 * ROUNDS)
    share = 0.5 + 0.02 * times
    return xr.Dataset(
        {
            "word_share": (("time", "word"), np.stack([share, 1 - share], -1)),
            "attractor": attractor,
            "steady": attractor == "a",
        },
        coords={"time": times, "round": ("time", times / 2), **word_coords(["a", "b"])},
        attrs={"kind": "solution"},
    )


@pytest.fixture(scope="module")
def comparison() -> xr.Dataset:
    return compare(theory(), simulation())


def with_label(axes: Axes, label: str):
    return next(handle for handle, one in zip(*axes.get_legend_handles_labels(), strict=True) if one == label)


def test_trajectories_have_bands_and_the_rate_equation_is_dashed(comparison):
    axes = meanfield.plot(comparison)
    small, large, limit = axes.get_lines()
    assert [line.get_label() for line in axes.get_lines()] == ["N = 100", "N = 1,600", "rate equation"]
    for line, band, n_agents in zip((small, large), axes.collections, sorted(SIZES), strict=True):
        one = comparison.sel(n_agents=n_agents, word="a")
        np.testing.assert_array_equal(line.get_ydata(), one["simulated"])
        top = band.get_paths()[0].vertices[:, 1].max()
        assert top == pytest.approx(float((one["simulated"] + one["band"]).max()))
    np.testing.assert_array_equal(limit.get_ydata(), comparison["theory"].sel(word="a"))
    assert limit.get_linestyle() == "--"


@pytest.mark.parametrize(
    ("attractor", "labels"),
    [("a", ["a (predicted)", "b"]), ("mixed", ["a", "b", "no consensus (predicted)"])],
)
def test_the_predicted_outcome_has_a_solid_line(comparison, attractor, labels):
    axes = meanfield.plot(comparison.assign(predicted_word=attractor), view="outcomes")
    assert axes.get_legend_handles_labels()[1] == labels
    for label in labels:
        line, _, (segments,) = with_label(axes, label)
        assert line.get_linestyle() == ("-" if "predicted" in label else ":")
        if label[0] in "ab":
            one = comparison.sel(word=label[0]).sortby("n_agents")
            np.testing.assert_array_equal(line.get_ydata(), one["consensus_probability"])
            np.testing.assert_allclose(np.array(segments.get_segments())[:, :, 1], one["consensus_interval"])


def test_errors_that_are_resolved_have_points_and_others_are_named(comparison):
    axes = meanfield.plot(comparison, view="error")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    points = with_label(axes, f"slope {comparison['error_slope'].item():.2f}")[0]
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([sorted(SIZES), comparison["error"][::-1]]))
    line = with_label(axes, "1/N").get_xydata()
    assert line[:, 0] @ line[:, 1] / 2 == pytest.approx(100 * points.get_ydata()[0])
    unresolved = comparison.copy(deep=True)
    unresolved["error_uncertainty"].loc[{"n_agents": 1600}] = np.nan
    axes = meanfield.plot(unresolved.assign(error_slope=np.nan), view="error")
    assert len(with_label(axes, "simulated")[0].get_xdata()) == 1
    assert "not resolved: N = 1,600" in axes.get_legend_handles_labels()[1]


def test_close_sizes_have_a_straight_line_for_1_over_n(comparison):
    close = comparison.assign_coords(n_agents=[300, 100])
    assert meanfield.plot(close, view="error").get_xscale() == "log"
    assert meanfield.plot(close, view="outcomes").get_xscale() == "linear"


def test_ensembles_differ_where_a_point_lies_below_the_line():
    first, second = simulation(1), simulation(2)
    second["consensus_round"].loc[{"n_agents": 100}] += 2
    result = compare_ensembles(first, second)
    axes = meanfield.plot(result)
    line = with_label(axes, "differ below 0.01").get_xdata()[0]
    for n_agents in SIZES:
        one, shown = result.sel(n_agents=n_agents), with_label(axes, f"N = {n_agents:,}").get_xdata()
        np.testing.assert_allclose(shown, np.minimum(4 * np.append(one["outcome_p"], one["time_p"]), 1))
        assert (shown.min() >= line) == bool(one["agrees"])
    assert result["agrees"].values.tolist() == [True, False]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["outcomes", "times, a", "times, b", "times, any"]


def test_tests_without_runs_are_named():
    ends = xr.full_like(simulation()["consensus_word"], "a")
    result = compare_ensembles(*(simulation(seed).assign(consensus_word=ends) for seed in (1, 2)))
    assert "times, b (no runs)" in [text.get_text() for text in meanfield.plot(result).get_yticklabels()]


@pytest.mark.parametrize("pairs", [1, 2])
def test_figures_of_the_papers_lay_these_views_out(comparison, pairs, tmp_path, monkeypatch):
    figures = []
    for script in (mean_field_dynamics, theory_and_simulation):
        monkeypatch.setattr(script, "write_figure", lambda figure, path: figures.append(figure))
    over_pairs = [f"pair {k}" for k in range(pairs)]
    solutions = xr.concat([theory("a"), theory("mixed")][:pairs], "pair").assign_coords(pair=over_pairs)
    mean_field_dynamics.draw(solutions, tmp_path / "figure.png")
    comparisons = xr.concat([comparison] * pairs, "pair").assign_coords(pair=over_pairs)
    theory_and_simulation.draw(comparisons.assign_attrs(option_runs=RUNS), tmp_path / "figure.png")
    dynamics, beside = (figure.axes for figure in figures)
    assert [axes.get_title() for axes in dynamics] == ["{a, b}", "{a, b}, not steady"][:pairs]
    labels = ["mean share of 'a'"] * pairs + ["fraction of runs", ""][:pairs] + ["error of theory", ""][:pairs]
    assert [axes.get_ylabel() for axes in beside] == labels
