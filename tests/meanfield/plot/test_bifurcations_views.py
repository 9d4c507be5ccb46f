"""Bifurcations, critical masses and committed minorities in one plane."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import majority
from meanfield import InputError
from meanfield._plot.words import PALETTE


def bifurcation(stability, fold, share=None, arc=None, word="b"):
    number = len(stability)
    share = np.linspace(0.9, 0.1, number) if share is None else np.array(share)
    columns = {
        "parameter": ("point", np.linspace(0, 0.5, number)),
        "word_share": (("point", "word"), np.stack([share, 1 - share], -1)),
        "stability": ("point", stability),
        "fold": ("point", fold),
        "arc": ("point", [0] * number if arc is None else arc),
    }
    parameter = "committed" if word else "fraction"
    attrs = {"kind": "bifurcation", "word": word, "parameter": parameter}
    return xr.Dataset(columns, coords={"word": ["a", "b"]}, attrs=attrs)


def critical_mass(mass, old, folds, reason="the old state meets a saddle"):
    columns = {
        "critical_mass": ((), mass),
        "word_share": ("word", np.array([0.7, 0.3]) if np.isfinite(mass) else np.full(2, np.nan)),
        "old_word_share": ("word", np.array([1 - old, old])),
        "fold_parameter": ("fold", np.array(folds)),
        "fold_word_share": (("fold", "word"), np.array([[0.7, 0.3]] * len(folds)).reshape(-1, 2)),
    }
    attrs = {"kind": "critical_mass", "word": "b", "parameter": "committed", "reason": reason}
    return xr.Dataset(columns, coords={"word": ["a", "b"]}, attrs=attrs)


def minority(mean_field=3.0, reason=""):
    interval = np.array([[0.0, 0.2], [0.3, 0.7], [0.8, 1.0]])
    columns = {
        "flipped": ("n_committed", np.array([0.0, 0.5, 1.0])),
        "interval": (("n_committed", "bound"), interval),
        "mean_field": ((), mean_field),
    }
    attrs = {"kind": "committed_minority", "committed_word": "b", "option_n_agents": 20, "mean_field_reason": reason}
    return xr.Dataset(columns, {"n_committed": [1, 2, 6], "bound": ["low", "high"]}, attrs)


def branches(axes):
    return [(line.get_linestyle(), line.get_xydata().tolist()) for line in axes.lines if len(line.get_xydata()) > 1]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("at_the_fold", ["stable", "unstable", "marginal"])
def test_stability_changes_at_folds_whatever_is_found_there(at_the_fold):
    result = bifurcation(["stable", "stable", at_the_fold, "unstable", "unstable"], [0, 0, 1, 0, 0])
    axes = meanfield.plot(result.assign(fold=result["fold"].astype(bool)), linewidth=3)
    where = np.stack([result["parameter"], result["word_share"].sel(word="b")], -1)
    assert branches(axes) == [("-", where[:3].tolist()), ("--", where[2:].tolist())]
    assert {line.get_color() for line in axes.lines if line.get_linewidth() == 3} == {PALETTE[1]}
    (fold,) = (line for line in axes.lines if line.get_label() == "fold")
    assert fold.get_xydata().tolist() == [where[2].tolist()]
    assert legend(axes) == ["stable", "unstable", "fold"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fraction of agents committed to b", "share of b")


def test_arcs_are_not_joined_and_named_once():
    result = bifurcation(["stable"] * 4, [False] * 4, arc=[0, 0, 1, 1], word="")
    axes = meanfield.plot(result)
    assert [len(points) for _, points in branches(axes)] == [2, 2]
    assert legend(axes) == ["stable"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fraction of the last policy", "share of a")


def test_every_point_of_a_policy_is_on_a_line():
    result = meanfield.bifurcation(majority(0.53), word="b", spacing=0.2)
    axes = meanfield.plot(result)
    drawn = {tuple(point) for _, points in branches(axes) for point in points}
    expected = np.stack([result["parameter"], result["word_share"].sel(word="b")], -1)
    assert drawn == set(map(tuple, expected.tolist()))
    assert {style for style, _ in branches(axes)} == {"-", "--"}


def test_a_critical_mass_in_the_plane_of_its_bifurcation():
    axes = meanfield.plot(bifurcation(["stable"] * 3, [False, True, False]))
    meanfield.plot(critical_mass(0.2, 0.05, [0.2, 0.4]), ax=axes)
    marks = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    folds = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert folds[-1] == [[0.2, 0.3], [0.4, 0.3]]
    assert marks["old state"] == [[0, 0.05]]
    assert marks["it vanishes at 0.2"] == [[0.2, 0.3]]
    assert sorted(legend(axes)) == ["fold", "it vanishes at 0.2", "old state", "stable"]


def test_a_state_that_never_vanishes_has_its_reason():
    axes = meanfield.plot(critical_mass(np.nan, 0.05, [], reason="it changes gradually"))
    assert legend(axes) == ["old state", "it never vanishes:\nit changes gradually"]


def test_a_word_that_is_not_there_is_named():
    with pytest.raises(InputError, match="attrs\\['word'\\] = 'c': expected one of a, b"):
        meanfield.plot(critical_mass(0.2, 0.05, []).assign_attrs(word="c"))


@pytest.mark.parametrize(("view", "scale"), [("number", 1), ("fraction", 20)])
def test_committed_minorities_beside_mean_field(view, scale):
    axes = meanfield.plot(minority(), view=view)
    (points,) = axes.containers
    np.testing.assert_allclose(points[0].get_xydata(), [[1 / scale, 0], [2 / scale, 0.5], [6 / scale, 1]])
    ends = [segment[:, 1].tolist() for segment in points[2][0].get_segments()]
    np.testing.assert_allclose(ends, minority()["interval"])
    (line,) = (line for line in axes.lines if line.get_linestyle() == "--")
    assert line.get_xdata() == [3 / scale, 3 / scale]
    assert axes.get_ylabel() == "fraction of runs that flip"


def test_a_minority_in_the_plane_of_its_bifurcation():
    axes = meanfield.plot(bifurcation(["stable"] * 3, [False] * 3))
    meanfield.plot(minority(), ax=axes, view="fraction")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("fraction of agents committed to b", "share of b")
    assert set(legend(axes)) == {"stable", "runs that flip, N = 20", "mean field, 0.15"}
    assert axes.containers[0][0].get_marker() == "s", "unlike folds"
    meanfield.plot(minority().assign_attrs(option_n_agents=40).assign(mean_field=6.0), ax=axes, view="fraction")
    assert legend(axes).count("mean field, 0.15") == 1


def test_a_missing_prediction_has_its_reason():
    axes = meanfield.plot(minority(np.nan, "critical masses are found for two words"))
    assert "no mean-field prediction:\ncritical masses are found for two words" in legend(axes)
    assert not [line for line in axes.lines if line.get_linestyle() == "--"]


def test_reaction_model_draws_the_states_that_change_most_with_its_bifurcations(unchecked_types):
    rules = {"S + I": "2 I", "I": "S"}
    diagram = meanfield.bifurcation(
        lambda R0: meanfield.ReactionModel.from_rules(rules, [R0, 1.0]), interval=(0.5, 2), starts=2, spacing=0.1
    )
    axes = meanfield.plot(diagram)
    assert axes.get_xlabel() == "R0"
    labels = axes.get_legend_handles_labels()[1]
    assert {"S", "I", "stable", "unstable", "branch point"} <= set(labels) and len(labels) == len(set(labels))
    assert "fold" not in labels
    marks = [line for line in axes.lines if line.get_marker() == "D" and len(line.get_xdata())]
    assert len(marks) == 2 and all(np.allclose(mark.get_xdata(), 1) for mark in marks), "one for each state"
