"""The door of drawings: panels, axes, colours of words, legends and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from importlib import import_module
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import meanfield
import validation
from _drawn_results import drawn
from _paths import ROOT
from _policies import random_policy
from meanfield import InputError
from meanfield._plot import registry
from meanfield._plot.words import PALETTE, word_colours


@pytest.fixture
def solution() -> xr.Dataset:
    return meanfield.solve(random_policy(1), times=np.linspace(0, 5, 6))


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
        bias = meanfield.plot(validation.collective_bias(policies[:1], n_agents=[4], runs=5, seed=1))
        bias.figure.savefig(BytesIO())
    assert "STIXGeneral" in axes.xaxis.label.get_fontfamily()
    with pytest.warns(UserWarning) as told:
        meanfield.plot(meanfield.fixed_points(policies[1]))
    (message,) = (str(one.message) for one in told)
    assert message == "no installed font has \U000e1234, drawn as boxes: install one, such as Noto"


def test_a_dollar_in_a_word_is_no_mathematics():
    """Titles, legends and ticks; powers of ten stay."""
    policy = meanfield.make_policy(random_policy(1)["q"].values, ["$\\x$", "b_{"])
    for result in (policy, meanfield.solve(policy), meanfield.sensitivity(policy, of="word_share", fixed_point=0)):
        axes = meanfield.plot(result)
        axes.figure.savefig(BytesIO())
        assert axes.get_title() == "{$\\x$, b_{}"
        plt.close(axes.figure)
    axes = meanfield.plot(drawn("lifetime"))
    axes.figure.canvas.draw()
    assert "10^{" in axes.get_yticklabels()[0].get_text() and axes.get_yticklabels()[0].get_parse_math()


@pytest.fixture
def solutions() -> xr.Dataset:
    """Two pairs of a model, and a third that another model alone has; pairs share words."""
    words = [("a", "b"), ("b", "c"), ("d", "e")]
    models = ["one", "one", "two"]
    singles = [
        meanfield.make_policy(random_policy(k)["q"].values, both, model=model)
        for k, (both, model) in enumerate(zip(words, models, strict=True))
    ]
    stacked = [
        policy.drop_vars("word").assign_coords(word_label=("word", list(both))).expand_dims(("model", "pair"))
        for policy, both in zip(singles, words, strict=True)
    ]
    labels = [one["word_label"].expand_dims(pair=one["pair"].values) for one in stacked]
    stacked = [one.assign_coords(word_label=label) for one, label in zip(stacked, labels, strict=True)]
    policies = xr.combine_by_coords(stacked, combine_attrs="drop_conflicts", join="outer")
    return meanfield.solve(policies, times=np.linspace(0, 2, 3))


def test_a_lone_result_is_drawn_into_new_or_given_axes(solution: xr.Dataset):
    _, given = plt.subplots()
    assert meanfield.plot(solution, given) is given
    new = meanfield.plot(solution)
    assert new is not given
    for axes in (given, new):
        assert [line.get_label() for line in axes.get_lines()] == list(solution["word"].values)
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(solution["word"].values)
        assert axes.get_title() == "random, {a, b}"


def test_a_panel_for_each_policy_that_was_measured(solutions: xr.Dataset):
    axes = meanfield.plot(solutions)
    assert [one.get_title() for one in axes] == ["one, {a, b}", "one, {b, c}", "two, {d, e}"]
    colours = [{line.get_label(): line.get_color() for line in one.get_lines()} for one in axes]
    assert colours[0]["b"] == colours[1]["b"]  # a word keeps its colour
    assert all(len(set(one.values())) == 2 for one in colours)


@pytest.mark.parametrize(("width", "title"), [(1.2, "random,\n{a, b}"), (6.0, "random, {a, b}")])
def test_a_title_wider_than_its_panel_has_several_lines(solution: xr.Dataset, width: float, title: str):
    axes = meanfield.plot(solution, plt.figure(figsize=(width, 3)).add_subplot())
    assert axes.get_title() == title


def test_long_labels_and_entries_have_several_lines(solution: xr.Dataset):
    longer = {
        word: f"{word} which is one of the longest conventions that there are" for word in solution["word"].values
    }
    renamed = solution.assign_coords(
        {name: (solution[name].dims, list(longer.values())) for name in ("word", "word_label")}
    )
    axes = meanfield.plot(renamed, plt.figure(figsize=(3, 1)).add_subplot())
    entries = [text.get_text() for text in axes.get_legend().get_texts()]
    assert [one.replace("\n", " ") for one in entries] == list(longer.values()) and all("\n" in one for one in entries)
    axes = meanfield.plot(solution, plt.figure(figsize=(1, 0.8)).add_subplot())
    assert axes.get_ylabel() == "word\nshare" and axes.get_xlabel() == "population\nround"


def test_rounds_are_whole(solution: xr.Dataset):
    axes = meanfield.plot(solution)
    axes.set_xlim(0, 18)
    assert all(tick == round(tick) for tick in axes.get_xticks())


def test_words_that_meet_differ_and_words_that_do_not_share_colours():
    assert word_colours([("a", "b"), ("c", "d")]) == {
        "a": PALETTE[0],
        "b": PALETTE[1],
        "c": PALETTE[0],
        "d": PALETTE[1],
    }
    ring = [("a", "b"), ("b", "c"), ("c", "a")]
    assert len(set(word_colours(ring).values())) == 3
    assert len(set(word_colours([[str(k) for k in range(26)]]).values())) == 26


def test_style_has_aliases_and_rc_parameters_hold(solution: xr.Dataset):
    with plt.rc_context({"axes.titlesize": 23.0, "lines.linewidth": 4.5}):
        axes = meanfield.plot(solution, lw=7, ls="--")
        plain = meanfield.plot(solution)
    assert [(line.get_linewidth(), line.get_linestyle()) for line in axes.get_lines()] == [(7, "--")] * 2
    assert plain.get_lines()[0].get_linewidth() == 4.5 and plain.title.get_fontsize() == 23


def test_panels_that_name_the_same_have_one_legend(solution: xr.Dataset):
    pairs = xr.concat([solution.assign_coords(pair=name) for name in ("first", "second")], "pair", coords="minimal")
    axes = meanfield.plot(pairs.assign_attrs(solution.attrs))
    assert [one.get_legend() for one in axes] == [None, None]
    (legend,) = axes[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(solution["word"].values)


def test_a_table_with_its_attrs_is_drawn():
    columns = {"observable": ["winner"], "observed": [0.4], "predicted": [0.5]}
    table = pd.DataFrame(columns)
    table.attrs["kind"] = "transition_rate"
    with pytest.raises(
        InputError, match=r"kind'\] = 'transition_rate': expected one that plot draws, such as transition_rates, "
    ):
        meanfield.plot(table)


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (3, {}, "result is a int: expected what a function of this package returned"),
        (
            xr.Dataset(),
            {},
            r"result has attrs\['kind'\] = '': expected one that plot draws, such as .*plots.md lists them all$",
        ),
        ("solution", {"view": "pie"}, "view = 'pie': expected word_share or success_rate for the kind solution"),
        ("solution", {"ax": 5}, "ax holds a int: expected matplotlib axes"),
        ("solutions", {"ax": "one"}, "ax holds 1 axes: expected 3, one for each panel"),
        ("solution", {"figsize": (4, -1)}, r"figsize = \[4.0, -1.0\]: expected a width and a height in inches"),
        ("solution", {"figsize": (4, 3), "ax": "one"}, "figsize and ax are both given"),
        (
            "solution",
            {"linewith": 2},
            "linewith = 2: expected what matplotlib takes for view = 'word_share' .*'linewith'",
        ),
        ("solution", {"linewidth": "thick"}, "linewidth = 'thick': expected what matplotlib takes"),
        ("solution", {"lw": 2, "linewidth": 3}, "lw = 2, linewidth = 3: expected what matplotlib takes .* aliases"),
    ],
)
def test_what_cannot_be_drawn_is_refused(result, options, message, request: pytest.FixtureRequest):
    result = request.getfixturevalue(result) if isinstance(result, str) else result
    if options.get("ax") == "one":
        options = options | {"ax": plt.subplots()[1]}
    with pytest.raises(InputError, match=message):
        meanfield.plot(result, **options)


def test_a_new_figure_has_the_size_that_is_asked_for(solution: xr.Dataset):
    assert meanfield.plot(solution, figsize=(4, 3)).figure.get_size_inches().tolist() == [4, 3]


def test_what_is_left_of_a_solution_is_drawn(solution: xr.Dataset):
    (line,) = meanfield.plot(solution.sel(word="b")).get_lines()
    np.testing.assert_array_equal(line.get_ydata(), solution["word_share"].sel(word="b"))
    last = meanfield.plot(solution.isel(time=-1)).get_lines()
    assert [(len(line.get_xdata()), line.get_marker()) for line in last] == [(1, "o")] * 2
    expected = "result has nothing along time, no round: expected word_share"
    with pytest.raises(InputError, match=expected):
        meanfield.plot(solution.isel(time=[]).drop_vars("round"))


def test_a_legend_that_would_cover_curves_stands_beside_them(solution: xr.Dataset):
    random = np.random.default_rng(1).random((300, 2))
    many = xr.Dataset({"word_share": (("time", "word"), random)}, {"word": ["a", "b"]}, solution.attrs)
    many = many.assign_coords(time=np.arange(300.0), round=("time", np.arange(300.0)))
    axes, plain = meanfield.plot(many), meanfield.plot(solution)
    assert axes.get_legend().get_window_extent().x0 > axes.bbox.x1
    assert plain.get_legend().get_window_extent().x1 < plain.bbox.x1


def test_legends_beside_panels_widen_the_figure_and_leave_the_panels_their_width(solution: xr.Dataset):
    shares = np.random.default_rng(1).random((300, 2))
    full = xr.Dataset({"word_share": (("time", "word"), shares)}, attrs=solution.attrs)
    full = full.assign_coords(time=np.arange(300.0), round=("time", np.arange(300.0)))
    words = [("a", "b"), ("c", "d")]
    parts = [full.assign_coords(word_label=("word", list(pair)), pair="/".join(pair)) for pair in words]
    panels = meanfield.plot(xr.concat(parts, "pair", coords="different", compat="equals"))
    panels[0].figure.draw_without_rendering()
    empty = meanfield.plot(
        xr.concat([one * 0 for one in parts], "pair", coords="different", compat="equals").assign_attrs(solution.attrs)
    )
    empty[0].figure.draw_without_rendering()
    for axes in panels:
        assert axes.get_legend().get_window_extent().x0 > axes.bbox.x1
        assert axes.bbox.width > 0.9 * empty[0].bbox.width
    assert meanfield.plot(xr.concat(parts, "pair", coords="different", compat="equals"), figsize=(4, 3))[
        0
    ].figure.get_size_inches().tolist() == [4, 3]


def test_a_result_without_numbers_is_refused(solutions: xr.Dataset):
    empty = solutions.sel(model=["two"], pair=["a/b"])
    with pytest.raises(InputError, match="result holds no numbers"):
        meanfield.plot(empty)


def test_the_page_of_plots_lists_all_views():
    page = (ROOT / "docs" / "how_to" / "plots.md").read_text()
    with pytest.raises(InputError):
        registry.view_of(xr.Dataset(), None)  # imports them
    rows = {
        f"| `{kind}` | `{name}` | {view.draw.__doc__.splitlines()[0].rstrip('.')} |"
        for kind, views in registry.VIEWS.items()
        for name, view in views.items()
    }
    assert rows == {line for line in page.split("\n") if line.startswith("| `")}


EXAMPLES = meanfield.plot.__doc__.partition("Examples\n")[2]


def test_the_examples_have_functions_that_exist_and_a_line_for_each_family():
    called = set(re.findall(r"\b((?:meanfield|theory|validation)(?:\.\w+)+)\(", EXAMPLES))
    for name in called:
        room, _, function = name.rpartition(".")
        assert callable(getattr(import_module(room), function)), name
    assert len(called) >= 18
    assert len(re.findall(r">>> axes = meanfield\.plot\(", EXAMPLES)) >= 18


def test_matplotlib_is_imported_when_something_is_drawn():
    code = "import sys, meanfield; meanfield.plot; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
