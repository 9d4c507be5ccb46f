"""`plot`: panels, axes, colours of words, legends and what it refuses."""

from __future__ import annotations

import warnings
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
from _drawings import labels
from _paths import ROOT
from _policies import random_policy
from meanfield import InputError
from meanfield._plot import registry
from meanfield._plot.words import PALETTE, word_colours


@pytest.fixture(scope="module")
def solution() -> xr.Dataset:
    return meanfield.solve(random_policy(1), times=np.linspace(0, 5, 6))


@pytest.fixture(scope="module")
def solutions() -> xr.Dataset:
    """Two pairs of a model, and a third that another model alone has; pairs share words."""
    words = [("a", "b"), ("b", "c"), ("d", "e")]
    stacked = []
    for k, (both, model) in enumerate(zip(words, ("one", "one", "two"), strict=True)):
        policy = meanfield.make_policy(random_policy(k)["q"].values, both, model=model).drop_vars("word")
        label = xr.DataArray([list(both)], {"pair": ["/".join(both)]}, ("pair", "word"))
        stacked.append(policy.expand_dims(("model", "pair")).assign_coords(word_label=label))
    policies = xr.combine_by_coords(stacked, combine_attrs="drop_conflicts", join="outer")
    return meanfield.solve(policies, times=np.linspace(0, 2, 3))


def crowded(solution: xr.Dataset) -> xr.Dataset:
    """Two panels that are full of curves."""
    share = np.random.default_rng(1).random((300, 2))
    full = xr.Dataset({"word_share": (("time", "word"), share)}, attrs=solution.attrs)
    full = full.assign_coords(time=np.arange(300.0), round=("time", np.arange(300.0)))
    pairs = [("a", "b"), ("c", "d")]
    parts = [full.assign_coords(word_label=("word", list(pair)), pair="/".join(pair)) for pair in pairs]
    return xr.concat(parts, "pair", coords="different", compat="equals")


def test_results_of_a_population_are_named():
    population = meanfield.Population(random_policy(1), committed={"a": 0.1})
    axes = meanfield.plot(meanfield.solve(population, times=np.linspace(0, 5, 6)))
    assert axes.get_title() == population.name == "random, 0.1 committed to 'a' {a, b}"


def test_words_in_other_scripts_have_a_font_or_one_plain_warning():
    """STIX, which comes with matplotlib, has a watch, and none of its fonts has an unassigned letter."""
    policies = [meanfield.make_policy(random_policy(1)["q"].values, [word, "b"]) for word in ("\u231a", "\U000e1234")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        axes = meanfield.plot(meanfield.fixed_points(policies[0]))
        axes.figure.savefig(BytesIO())
    assert "STIXGeneral" in axes.xaxis.label.get_fontfamily()
    with pytest.warns(UserWarning) as told:
        meanfield.plot(meanfield.fixed_points(policies[1]))
    (message,) = (str(one.message) for one in told)
    assert message == "no installed font has \U000e1234, drawn as boxes: install one, such as Noto"


def test_a_dollar_in_a_word_is_no_mathematics():
    """Titles, legends and ticks; powers of ten stay."""
    policy = meanfield.make_policy(random_policy(1)["q"].values, ["$\\x$", "b_{"])
    for result in (policy, meanfield.solve(policy)):
        axes = meanfield.plot(result)
        axes.figure.savefig(BytesIO())
        assert axes.get_title() == "{$\\x$, b_{}"
    columns = {"lifetime": (("fixed_point", "n_agents"), [[1e3, 1e7]]), "barrier": ("fixed_point", [0.5])}
    coords = {"n_agents": [10, 20], "fixed_point": [0]}
    lifetime = xr.Dataset(columns, coords, {"kind": "lifetime"}).assign(reason=("fixed_point", [""]))
    axes = meanfield.plot(
        lifetime.assign(word_share=(("fixed_point", "word"), [[0.9, 0.1]])).assign_coords(word=["a", "b"])
    )
    axes.figure.canvas.draw()
    assert "10^{" in axes.get_yticklabels()[0].get_text() and axes.get_yticklabels()[0].get_parse_math()


def test_a_lone_result_is_drawn_into_new_or_given_axes(solution):
    _, given = plt.subplots()
    assert meanfield.plot(solution, given) is given
    new = meanfield.plot(solution, figsize=(4, 3))
    assert new is not given and new.figure.get_size_inches().tolist() == [4, 3]
    for axes in (given, new):
        assert labels(axes) == [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
        assert axes.get_title() == "random, {a, b}"


def test_a_panel_for_each_policy_that_was_measured(solutions):
    axes = meanfield.plot(solutions)
    assert [one.get_title() for one in axes] == ["one, {a, b}", "one, {b, c}", "two, {d, e}"]
    colours = [{line.get_label(): line.get_color() for line in one.get_lines()} for one in axes]
    assert colours[0]["b"] == colours[1]["b"]  # a word keeps its colour
    assert all(len(set(one.values())) == 2 for one in colours)


def test_long_titles_labels_and_entries_have_several_lines(solution):
    longer = [f"{word} which is one of the longest conventions that there are" for word in "ab"]
    renamed = solution.assign_coords({name: (solution[name].dims, longer) for name in ("word", "word_label")})
    axes = meanfield.plot(renamed, plt.figure(figsize=(3, 1)).add_subplot())
    entries = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [one.replace("\n", " ") for one in entries] == longer and all("\n" in one for one in entries)
    axes = meanfield.plot(solution, plt.figure(figsize=(1, 0.8)).add_subplot())
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("word\nshare", "population\nround")
    assert axes.get_title() == "random,\n{a, b}"


def test_words_that_meet_differ_and_words_that_do_not_share_colours():
    first, second = PALETTE[:2]
    assert word_colours([("a", "b"), ("c", "d")]) == {"a": first, "b": second, "c": first, "d": second}
    assert len(set(word_colours([("a", "b"), ("b", "c"), ("c", "a")]).values())) == 3
    assert len(set(word_colours([[str(k) for k in range(26)]]).values())) == 26


def test_style_has_aliases_and_rc_parameters_hold(solution):
    with plt.rc_context({"axes.titlesize": 23.0, "lines.linewidth": 4.5}):
        axes = meanfield.plot(solution, lw=7, ls="--")
        plain = meanfield.plot(solution)
    assert [(line.get_linewidth(), line.get_linestyle()) for line in axes.get_lines()] == [(7, "--")] * 2
    assert plain.get_lines()[0].get_linewidth() == 4.5 and plain.title.get_fontsize() == 23


def test_panels_that_name_the_same_have_one_legend(solution):
    pairs = xr.concat([solution.assign_coords(pair=name) for name in ("first", "second")], "pair", coords="minimal")
    axes = meanfield.plot(pairs.assign_attrs(solution.attrs))
    assert [one.get_legend() for one in axes] == [None, None]
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_legends_that_would_cover_curves_stand_beside_panels_which_keep_their_width(solution):
    plain = meanfield.plot(solution)
    assert plain.get_legend().get_window_extent().x1 < plain.bbox.x1
    result = crowded(solution)
    panels, empty = meanfield.plot(result), meanfield.plot((result * 0).assign_attrs(solution.attrs))
    for one in (panels, empty):
        one[0].figure.draw_without_rendering()
    for axes in panels:
        assert axes.get_legend().get_window_extent().x0 > axes.bbox.x1
        assert axes.bbox.width > 0.9 * empty[0].bbox.width
    assert meanfield.plot(result, figsize=(4, 3))[0].figure.get_size_inches().tolist() == [4, 3]


def test_what_is_left_of_a_solution_is_drawn(solution):
    (line,) = meanfield.plot(solution.sel(word="b")).get_lines()
    np.testing.assert_array_equal(line.get_ydata(), solution["word_share"].sel(word="b"))
    last = meanfield.plot(solution.isel(time=-1)).get_lines()
    assert [(len(line.get_xdata()), line.get_marker()) for line in last] == [(1, "o")] * 2


TABLE = pd.DataFrame({"observed": [0.4]})
TABLE.attrs["kind"] = "transition_rate"


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (3, {}, "result is a int: expected what a function of this package returned"),
        (xr.Dataset(), {}, r"attrs\['kind'\] = '': expected one that plot draws, such as .*plots.md lists them all$"),
        (TABLE, {}, r"kind'\] = 'transition_rate': expected one that plot draws, such as transition_rates, "),
        ("solution", {"view": "pie"}, "view = 'pie': expected word_share or success_rate for the kind solution"),
        ("solution", {"ax": 5}, "ax holds a int: expected matplotlib axes"),
        ("solutions", {"ax": "one"}, "ax holds 1 axes: expected 3, one for each panel"),
        ("solution", {"figsize": (4, -1)}, r"figsize = \[4.0, -1.0\]: expected a width and a height in inches"),
        ("solution", {"figsize": (4, 3), "ax": "one"}, "figsize and ax are both given"),
        ("solution", {"linewith": 2}, "linewith = 2: expected what matplotlib takes for view = 'word_share' "),
        ("solution", {"lw": 2, "linewidth": 3}, "lw = 2, linewidth = 3: expected what matplotlib takes .* aliases"),
        ("emptied", {}, "result has nothing along time, no round: expected word_share"),
        ("unmeasured", {}, "result holds no numbers"),
    ],
)
def test_what_cannot_be_drawn_is_refused(result, options, message, solution, solutions):
    results = {"solution": solution, "solutions": solutions, "emptied": solution.isel(time=[]).drop_vars("round")}
    results["unmeasured"] = solutions.sel(model=["two"], pair=["a/b"])
    if options.get("ax") == "one":
        options = options | {"ax": plt.subplots()[1]}
    with pytest.raises(InputError, match=message):
        meanfield.plot(results[result] if isinstance(result, str) else result, **options)


def test_what_was_not_recorded_is_named_with_the_option_that_records_it():
    views = [(kind, view) for kind, views in registry.views().items() for view in views.values() if view.needs]
    assert len(views) > 10
    for kind, view in views:
        variable, option = next(iter(view.needs.items()))
        with pytest.raises(InputError) as error:
            meanfield.plot(xr.Dataset(attrs={"kind": kind}), view=view.name)
        assert str(error.value) == f"view = '{view.name}': result has no {variable}, expected one made with {option}"


def test_the_page_of_plots_lists_all_views():
    page = (ROOT / "docs" / "how_to" / "plots.md").read_text(encoding="utf-8")
    rows = {
        f"| `{kind}` | `{name}` | {view.draw.__doc__.splitlines()[0].rstrip('.')} |"
        for kind, views in registry.views().items()
        for name, view in views.items()
    }
    assert rows == {line for line in page.split("\n") if line.startswith("| `")}
