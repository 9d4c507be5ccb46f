"""Solutions, means among N agents, theory beside simulation, bifurcations and critical masses."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import meanfield
from _drawings import band, labels, points, ticks
from _drawn_results import drawn
from meanfield import InputError
from meanfield._plot.words import PALETTE
from meanfield.toolbox import word_coords

SHARES = np.array([[0.5, 0.2], [0.8, 0.1], [1.0, 0.0]])  # of the first word by time, from two starts
TIMES = np.array([0.0, 8.0, 400.0])


def solution() -> xr.Dataset:
    share = np.stack([SHARES.T, 1 - SHARES.T], -1)
    columns = {
        "word_share": (("start", "time", "word"), share),
        "success_rate": (("start", "time"), (share**2).sum(-1)),
    }
    coords = {"time": TIMES, "round": ("time", TIMES / 2), **word_coords(["his", "her"])}
    return xr.Dataset(columns, coords, {"kind": "solution"})


def test_starts_share_the_colours_of_words():
    axes = meanfield.plot(solution().isel(time=[2, 0, 1], word=[1, 0]), linewidth=3)
    for k, (line, expected) in enumerate(zip(axes.lines, np.hstack([SHARES, 1 - SHARES]).T, strict=True)):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([TIMES / 2, expected]))
        assert (line.get_linewidth(), line.get_color()) == (3, PALETTE[k // 2])
    assert labels(axes) == ["his", "her"]
    lines = meanfield.plot(solution(), view="success_rate").lines
    np.testing.assert_allclose([line.get_ydata() for line in lines], (SHARES**2 + (1 - SHARES) ** 2).T)


def test_rounds_are_shown_until_nothing_moves_and_as_far_as_before():
    settled = solution().assign(word_share=solution()["word_share"].isel(time=[0, 2, 2]).drop_vars(["time", "round"]))
    axes = meanfield.plot(settled)
    assert axes.get_xlim() == (0, 10)
    moving = solution().isel(start=[0]).copy(deep=True)
    moving["word_share"][:, 1] += 0.1
    meanfield.plot(moving.assign_coords(round=("time", [0.0, 100.0, 200.0])), axes)
    meanfield.plot(settled, axes)
    assert axes.get_xlim()[1] == pytest.approx(115)


def test_the_largest_of_many_states_are_named_and_the_others_counted():
    fractions, names = np.random.default_rng(1).dirichlet(np.ones(15), size=4), [f"state {k}" for k in range(15)]
    coords = {"time": ("time", np.arange(4.0), {"units": "days"}), "state": names}
    result = xr.Dataset({"composition": (("time", "state"), fractions)}, coords, {"kind": "reaction_solution"})
    axes = meanfield.plot(result)
    np.testing.assert_array_equal([line.get_ydata() for line in axes.lines[:15]], fractions.T)
    smallest = np.argsort(fractions.max(0))[:3]
    assert labels(axes) == [name for k, name in enumerate(names) if k not in smallest] + ["and 3 more states"]
    assert axes.get_xlabel() == "time (days)"


ROUNDS = np.array([0.0, 1.0, 2.0])


def moments(n_words: int = 2) -> xr.Dataset:
    random, sizes = np.random.default_rng(1), np.array([40, 10])
    limit = random.dirichlet(np.ones(n_words), size=3)
    correction, variance = random.normal(size=(3, n_words)), random.uniform(0.1, 1, (3, n_words))
    columns = {
        "word_share": (("time", "word"), limit),
        "word_share_correction": (("time", "word"), correction),
        "word_share_variance": (("time", "word"), variance),
        "mean": (("n_agents", "time", "word"), limit + correction / sizes[:, None, None]),
        "variance": (("n_agents", "time", "word"), variance / sizes[:, None, None]),
    }
    coords = {"time": 2 * ROUNDS, "round": ("time", ROUNDS), "word": list("abc"[:n_words]), "n_agents": sizes}
    return xr.Dataset(columns, coords, {"kind": "finite_size"})


def assert_mean_and_two_deviations(axes, one: xr.Dataset, number: int, label: str) -> None:
    np.testing.assert_array_equal(points(axes, label), np.column_stack([ROUNDS, one["mean"]]))
    ends = one["mean"].values[:, None] + np.outer(2 * np.sqrt(one["variance"]), [-1, 1])
    np.testing.assert_allclose(band(axes, number), ends.clip(0, 1))


def test_each_size_has_its_mean_and_two_standard_deviations_within_0_and_1():
    result = moments()
    axes = meanfield.plot(result)
    assert labels(axes) == ["N = 10", "N = 40", "rate equation"] and band(axes).min() == 0
    for number, n_agents in enumerate((10, 40)):
        assert_mean_and_two_deviations(axes, result.sel(n_agents=n_agents, word="a"), number, f"N = {n_agents}")
    np.testing.assert_array_equal(points(axes, "rate equation")[:, 1], result["word_share"].sel(word="a"))
    assert labels(meanfield.plot(result.sel(n_agents=10))) == ["N = 10", "rate equation"]
    exact = result[["mean", "variance"]].isel(n_agents=0, drop=True).rename(time="interactions")
    axes = meanfield.plot(exact.assign_attrs(kind="exact_moments", option_n_agents=40))
    assert_mean_and_two_deviations(axes, exact.sel(word="a"), 0, "N = 40")
    for name in ("variance", "correction"):
        line = meanfield.plot(result, view=name).lines[-1]
        np.testing.assert_array_equal(line.get_ydata(), result[f"word_share_{name}"].sel(word="a"))
    without = meanfield.plot(result.drop_vars(["mean", "variance", "n_agents"]))
    assert without.get_ylabel() == "N · variance of word share", "the default without sizes"


def test_three_words_have_a_line_for_each_size():
    result = moments(3)
    axes = meanfield.plot(result)
    assert sorted(labels(axes)) == sorted(["a", "b", "c", "N = 10", "N = 40", "rate equation"])
    expected = result["mean"].sortby("n_agents").transpose("word", "n_agents", "time").values.reshape(6, -1)
    np.testing.assert_array_equal([line.get_ydata() for line in axes.lines[:6]], expected)


def test_several_attractors_are_named_beside_the_bands():
    def told(attractors: str) -> list[str]:
        drawn_labels = labels(meanfield.plot(moments().assign_attrs(attractors=attractors)))
        return [" ".join(label.split()) for label in drawn_labels if label.startswith("bands")]

    expected = "bands are those around one resting place, but groups end at A or mostly B (0.96)"
    assert (told("A; mostly B (0.96)"), told("mostly A (0.96)")) == ([expected], [])


def test_reaction_models_have_bands_for_each_state():
    mean = np.array([[[1.0, 0.0], [0.4, 0.6]], [[1.0, 0.0], [0.3, 0.7]]])
    over = ("n_agents", "time", "state")
    columns = {"composition": (over[1:], mean[1]), "mean": (over, mean), "variance": (over, np.full(mean.shape, 0.01))}
    coords = {"n_agents": [10, 50], "time": [0.0, 1.0], "state": ["S", "I"]}
    result = xr.Dataset(columns, coords=coords, attrs={"kind": "reaction_finite_size"})
    small, large = meanfield.plot(result)
    np.testing.assert_allclose(band(small), [[0.8, 1.0], [0.2, 0.6]])
    assert [list(line.get_ydata()) for line in large.get_lines()] == [[1.0, 0.3], [0.0, 0.7]]
    assert len(meanfield.plot(result.drop_vars(["mean", "variance", "n_agents"])).lines) == 2


# --- theory beside simulation ---


def test_trajectories_have_bands_and_the_rate_equation():
    comparison = drawn("comparison")
    axes = meanfield.plot(comparison)
    for number, n_agents in enumerate(comparison["n_agents"].values):
        one = comparison.sel(n_agents=n_agents, word="a")
        np.testing.assert_array_equal(points(axes, f"N = {n_agents}")[:, 1], one["simulated"])
        ends = [(one["simulated"] + side * one["band"]).clip(0, 1) for side in (-1, 1)]
        np.testing.assert_allclose(band(axes, number), np.transpose(ends), atol=1e-12)
    np.testing.assert_array_equal(points(axes, "rate equation")[:, 1], comparison["theory"].sel(word="a"))


@pytest.mark.parametrize(
    ("predicted", "shown"), [("a", ["a (predicted)", "b"]), ("mixed", ["a", "b", "no consensus (predicted)"])]
)
def test_the_predicted_outcome_has_a_solid_line(predicted, shown):
    comparison = drawn("comparison").assign(predicted_word=predicted, predicted_end=predicted)
    comparison["no_consensus"][:] = 0.0
    axes = meanfield.plot(comparison, view="outcomes")
    assert labels(axes) == shown
    for label, container in zip(shown, axes.containers, strict=True):
        assert container.lines[0].get_linestyle() == ("-" if "predicted" in label else ":")
        if label[0] in "ab":
            one = comparison.sel(word=label[0])
            ends = one["consensus_interval"].transpose("n_agents", "bound")
            expected = np.column_stack([one["n_agents"], one["consensus_probability"], ends])
            np.testing.assert_allclose(points(axes, label), expected)


def test_errors_that_are_resolved_have_points_and_others_are_named():
    columns = {"error": ("n_agents", [0.02, 0.002]), "error_uncertainty": ("n_agents", [0.001, 0.0005])}
    result = xr.Dataset(columns, {"n_agents": [100, 1600]}, {"kind": "comparison"}).assign(error_slope=-0.83)
    axes = meanfield.plot(result, view="error")
    np.testing.assert_allclose(points(axes, "slope -0.83"), [[100, 0.02, 0.019, 0.021], [1600, 2e-3, 1.5e-3, 2.5e-3]])
    np.testing.assert_allclose(np.prod(points(axes, "1/N"), axis=1), 2)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    unresolved = result.assign(error_uncertainty=("n_agents", [0.001, np.nan]), error_slope=np.nan)
    axes = meanfield.plot(unresolved, view="error")
    assert len(points(axes, "simulated")) == 1 and "not resolved: N = 1,600" in labels(axes)


def test_ensembles_differ_where_a_point_lies_below_the_line():
    columns = {
        "outcome_p": ("n_agents", [0.8, 0.4]),
        "time_p": (("n_agents", "winner"), [[0.5, np.nan], [1e-4, np.nan]]),
    }
    coords = {"n_agents": [100, 1600], "winner": ["a", "b"]}
    axes = meanfield.plot(xr.Dataset(columns, coords, {"kind": "ensemble_comparison", "option_level": 0.99}))
    np.testing.assert_allclose(points(axes, "differ below 0.01")[:, 0], 0.01)
    for size, expected in (("100", [1, 1, np.nan]), ("1,600", [0.8, 2e-4, np.nan])):
        np.testing.assert_allclose(points(axes, f"N = {size}")[:, 0], expected, err_msg="times the number of tests")
    assert ticks(axes) == ["outcomes", "times, a", "times, b (no runs)"]


# --- bifurcations, critical masses and committed minorities in one plane ---


def bifurcation(stability, fold, arc=None, word="b"):
    share = np.linspace(0.9, 0.1, len(stability))
    columns = {
        "parameter": ("point", np.linspace(0, 0.5, len(share))),
        "word_share": (("point", "word"), np.stack([share, 1 - share], -1)),
        "stability": ("point", stability),
        "fold": ("point", np.array(fold, bool)),
        "arc": ("point", [0] * len(share) if arc is None else arc),
    }
    attrs = {"kind": "bifurcation", "word": word, "parameter": "committed" if word else "fraction"}
    return xr.Dataset(columns, coords={"word": ["a", "b"]}, attrs=attrs)


def critical_mass(mass, folds=(), reason=""):
    columns = {
        "critical_mass": ((), mass),
        "word_share": ("word", np.array([0.7, 0.3]) if np.isfinite(mass) else np.full(2, np.nan)),
        "old_word_share": ("word", np.array([0.95, 0.05])),
        "fold_parameter": ("fold", np.array(folds)),
        "fold_word_share": (("fold", "word"), np.array([[0.7, 0.3]] * len(folds)).reshape(-1, 2)),
    }
    attrs = {"kind": "critical_mass", "word": "b", "parameter": "committed", "reason": reason}
    return xr.Dataset(columns, coords={"word": ["a", "b"]}, attrs=attrs)


def minority(mean_field=3.0, reason=""):
    columns = {
        "flipped": ("n_committed", np.array([0.0, 0.5, 1.0])),
        "interval": (("n_committed", "bound"), np.array([[0.0, 0.2], [0.3, 0.7], [0.8, 1.0]])),
        "mean_field": ((), mean_field),
    }
    attrs = {"kind": "committed_minority", "committed_word": "b", "option_n_agents": 20, "mean_field_reason": reason}
    return xr.Dataset(columns, {"n_committed": [1, 2, 6], "bound": ["low", "high"]}, attrs)


def arcs(axes):
    return [(line.get_linestyle(), line.get_xydata().tolist()) for line in axes.lines if len(line.get_xydata()) > 1]


@pytest.mark.parametrize("at_the_fold", ["stable", "unstable", "marginal"])
def test_stability_changes_at_folds_whatever_is_found_there(at_the_fold):
    result = bifurcation(["stable", "stable", at_the_fold, "unstable", "unstable"], [0, 0, 1, 0, 0])
    axes = meanfield.plot(result)
    where = np.stack([result["parameter"], result["word_share"].sel(word="b")], -1)
    assert arcs(axes) == [("-", where[:3].tolist()), ("--", where[2:].tolist())]
    assert points(axes, "fold").tolist() == [where[2].tolist()]
    assert labels(axes) == ["stable", "unstable", "fold"] and axes.lines[0].get_color() == PALETTE[1]


def test_arcs_are_not_joined_and_named_once():
    axes = meanfield.plot(bifurcation(["stable"] * 4, [False] * 4, arc=[0, 0, 1, 1], word=""))
    assert [len(line) for _, line in arcs(axes)] == [2, 2] and labels(axes) == ["stable"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fraction of the last policy", "share of a")


def test_critical_masses_and_minorities_lie_in_the_plane_of_the_bifurcation():
    axes = meanfield.plot(bifurcation(["stable"] * 3, [False, True, False]))
    meanfield.plot(critical_mass(0.2, [0.2, 0.4]), ax=axes)
    assert axes.lines[-2].get_xydata().tolist() == [[0.2, 0], [0.2, 1]]
    assert points(axes, "old state").tolist() == [[0, 0.05]]
    assert points(axes, "it vanishes at 0.2").tolist() == [[0.2, 0.3]]
    meanfield.plot(minority(), ax=axes, view="fraction")
    meanfield.plot(minority().assign_attrs(option_n_agents=40).assign(mean_field=6.0), ax=axes, view="fraction")
    assert points(axes, "mean field, 0.15")[:, 0].tolist() == [0.15, 0.15]
    assert labels(axes).count("fold") == labels(axes).count("mean field, 0.15") == 1, "named once"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fraction of agents committed to b", "share of b")


@pytest.mark.parametrize(("view", "scale"), [("number", 1), ("fraction", 20)])
def test_committed_minorities_beside_mean_field(view, scale):
    axes = meanfield.plot(minority(), view=view)
    expected = np.column_stack([np.array([1, 2, 6]) / scale, minority()["flipped"], minority()["interval"]])
    np.testing.assert_allclose(points(axes, "runs that flip, N = 20"), expected)
    assert points(axes, f"mean field, {3 / scale:.3g}")[0, 0] == 3 / scale


def test_where_there_is_no_number_its_reason_is_told():
    assert labels(meanfield.plot(critical_mass(np.nan, reason="it changes gradually"))) == [
        "old state",
        "it never vanishes:\nit changes gradually",
    ]
    assert "no mean-field prediction:\nof three words" in labels(meanfield.plot(minority(np.nan, "of three words")))
    with pytest.raises(InputError, match=r"attrs\['word'\] = 'c': expected one of a, b"):
        meanfield.plot(critical_mass(0.2).assign_attrs(word="c"))


def test_reaction_model_draws_the_states_that_change_most_with_its_bifurcations():
    infected = np.array([0.0, 0.0, 0.5])
    columns = {
        "parameter": ("point", [0.5, 1.0, 2.0]),
        "stability": ("point", ["stable", "marginal", "stable"]),
        "bifurcation": ("point", ["", "branch point", ""]),
        "fold": ("point", [False] * 3),
        "arc": ("point", [0] * 3),
        "composition": (("point", "state"), np.stack([1 - infected, infected], -1)),
    }
    result = xr.Dataset(columns, {"state": ["S", "I"]}, {"kind": "reaction_bifurcation", "parameter": "R0"})
    axes = meanfield.plot(result)
    assert sorted(labels(axes)) == ["I", "S", "branch point", "marginal", "stable"]
    marks = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert marks == [[[1, 1]], [[1, 0]]], "one for each state"
    shown = [line.get_xydata().tolist() for line in axes.lines if len(line.get_xdata()) > 1]
    assert [[1, 0], [2, 0.5]] in shown and axes.get_xlabel() == "R0"
