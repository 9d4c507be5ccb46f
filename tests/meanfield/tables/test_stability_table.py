"""The stability table against Table S1 of [004], its columns and its sentences."""

import numpy as np
import pandas as pd
import pytest

import meanfield
from _metastable import follower
from _policies import random_policy
from meanfield.toolbox import CRITERIA
from paper_figs import table_s1
from paper_figs.table_s1 import equals_printed

COLUMNS = [
    *("model", "pair", "row", "word", "word_share", "eigenvalue", "eigenvalue_error"),
    *("residual", "is_fixed_point", "stable", "strong"),
]


@pytest.fixture(scope="module")
def table(published):
    return meanfield.stability_table(published.sel(pair=["his/her", "young/old", "tall/short", "African/White"]))


@pytest.mark.slow
def test_all_of_table_s1(published):
    comparison = table_s1.published_against_computed(meanfield.stability_table(published))
    assert len(comparison) == 44
    assert comparison["agrees"].all()
    no_fixed_points = comparison[~comparison["is_fixed_point"]]
    assert no_fixed_points[["model", "word"]].values.tolist() == [["llama31_70B", "her"], ["llama31_70B", "short"]]
    assert no_fixed_points["residual"].round(3).tolist() == [0.056, 0.142]


def test_printed_digits_decide():
    assert equals_printed(-0.6149, "-0.615")
    assert not equals_printed(-0.6144, "-0.615")
    assert equals_printed(4e-16, "-7.39e-16")
    assert not equals_printed(-1e-8, "-7.39e-16")
    assert not equals_printed(-0.85, "-8.50"), "the erratum is a difference, not a rounding"


def test_strong_words_in_csv_in_print_and_in_sentences(table, tmp_path):
    written = pd.read_csv(meanfield.write_stability(table, tmp_path / "table.csv"))
    assert written.columns.tolist() == COLUMNS and len(written) == table.sizes["entry"]
    np.testing.assert_array_equal(written["eigenvalue"], table["eigenvalue"])
    assert set(written["row"]) == {"candidate", "fixed_point"}
    strong = written.groupby(["model", "pair"])["strong"].unique()
    assert all(len(words) == 1 for words in strong)
    assert strong["llama31_70B", "young/old"][0] == "mostly young (0.91)"
    assert strong["gpt-4o", "African/White"][0] == "African"
    printed = str(meanfield.stability_report(table))
    assert "not fixed" in printed and "-0.615" in printed
    assert "…" not in printed, "nothing is cut off at 80 columns"
    sentences = meanfield.describe_stability(table)
    assert len(sentences) == 8
    assert any("without a convention, mostly young (0.91)" in sentence for sentence in sentences)
    assert any("attractors compete" in sentence for sentence in sentences)


@pytest.fixture(scope="module")
def judged():
    """A policy of three heard words with a bias of empty memories against that of the rule, by every criterion."""
    first = heard_majority(0.995)
    first[0] = 0.4
    first[1:] += 0.004
    policy = meanfield.make_policy(first, ["a_1", "b%"], model="m&m")
    return meanfield.stability_table(policy, criteria=CRITERIA)


def heard_majority(p):
    space = meanfield.MemorySpace(2, 3)
    heard = [sum(1 - 2 * partner for _, partner in space.memory(i)) for i in range(space.n_states)]
    return np.array([0.5 + (p - 0.5) * np.sign(h) for h in heard])


def test_a_long_name_cuts_no_number():
    q = [0.5, 0.9, 0.4, 0.6, 0.2]
    policy = meanfield.make_policy(np.array(q), ["Scandinavian", "Mediterranean"], model="SmolLM2-135M-Instruct")
    table = meanfield.stability_table(policy)
    text = str(meanfield.stability_report(table))
    assert "…" not in text and max(map(len, text.splitlines())) <= 80
    assert all(f"{share:.4f}" in text for share in table["word_share"].values)
    assert "Mediterranean}" in text and repr(meanfield.stability_report(table)) == text


def test_criteria_that_disagree_are_flagged(judged):
    """Empty memories start towards b, the rule pushes towards a: most of the family of consensus memories ends at a."""
    assert set(judged["strong"].values) == {"b%"}
    assert set(judged["strong_by_basin"].values) == {"a_1"}
    assert set(judged["strong_by_law"].values) == {"b%"}
    assert judged["disagreement"].all()
    assert 0.5 < judged["basin"].values[0] < 0.6
    assert "disagrees" in str(meanfield.stability_report(judged))
    (sentence,) = meanfield.describe_stability(judged)
    assert sentence.endswith("the largest basin is that of 'a_1'.")


def test_words_are_compared_and_not_how_many_say_them():
    """Where agents err in 3 % of cases nearly all say A by every criterion; no candidate is a fixed point."""
    policy = follower(0.03, empty=0.6, tie=0.52)
    table = meanfield.stability_table(policy, criteria=["basin"])
    named = [table[name].values[0] for name in ("strong", "strong_by_basin")]
    assert all(name.startswith("mostly A (0.9") for name in named)
    assert not table["disagreement"].any() and "disagrees" not in str(meanfield.stability_report(table))
    assert table["stability"].values[:2].tolist() == ["not fixed"] * 2 and not table["stable"].values[:2].any()
    labels = meanfield.fixed_points(policy)["label"].values.tolist()
    assert [label.split(" (")[0] for label in labels] == ["mostly A", "mostly B", "mostly B"]
    assert meanfield.basins(policy)["label"].values.tolist() == [labels[0], labels[2]]
    assert meanfield.solve(policy)["label"].item() == labels[0]


def test_labels_beside_committed_agents_tell_the_share_of_the_others():
    population = meanfield.Population(follower(0.03, empty=0.6, tie=0.52), committed={"A": 0.05})
    points = meanfield.fixed_points(population).sel(fixed_point=0)
    share = (points["word_share"].sel(word="A").item() - 0.05) / 0.95
    assert points["label"].item() == f"mostly A ({share:.2f} of the uncommitted)"
    assert meanfield.solve(population)["label"].item() == points["label"].item()
    assert points["label"].item() in meanfield.basins(population)["label"].values


def test_latex_is_escaped_and_complete(judged, tmp_path):
    text = meanfield.write_stability(judged, tmp_path / "table.tex").read_text()
    assert r"m\&m \{a\_1, b\%\}" in text
    assert r"largest basin & a\_1" in text
    assert r"candidate & \textbf{b\%}" in text, "the strong word"
    assert f"${judged['eigenvalue'].values[0]:.3f}$" in text
    assert text.splitlines()[1:3] == [r"\begin{table}", r"\centering"] and r"\label{tab:stability}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(body) == 1 + 1 + 2 + judged.sizes["entry"], "title, policy, criteria, entries"
    assert all(line.count("&") - line.count(r"\&") in (1, 5) for line in body)
    meanfield.write_stability(judged, tmp_path / "table.csv")
    columns = pd.read_csv(tmp_path / "table.csv").columns.tolist()
    assert columns == [*COLUMNS, "strong_by_basin", "basin", "strong_by_law", "kappa", "disagreement"]


def test_populations_have_rows_too():
    first = heard_majority(0.999)
    first[0] = 0.6
    policy = meanfield.make_policy(first, ["a", "b"], model="majority")
    bare, committed = policy, meanfield.Population(policy, committed={"b": 0.3})
    table = meanfield.stability_table([bare, committed])
    strong = table.to_dataframe().groupby("policy")["strong"].first().tolist()
    assert strong == ["a", "b"]
    of_population = table.to_dataframe().query("policy == 1")
    assert of_population["model"].iloc[0] == "majority, 0.3 committed to 'b'"
    candidates = of_population.query("row == 'candidate'")
    assert candidates["residual"].tolist() == pytest.approx([0.3 + 0.7 * 0.001, 0.7 * 0.001])


@pytest.mark.parametrize("criteria", ["basin", ["size"]])
def test_unknown_criteria_are_named(criteria):
    with pytest.raises(meanfield.InputError, match=r"criteria = .*: expected some of trajectory, basin, law"):
        meanfield.stability_table(random_policy(1), criteria=criteria)


def test_tables_of_several_files_stand_in_one(tmp_path):
    several = [random_policy(1, 2, 1), random_policy(2, 2, 2)]
    table = meanfield.stability_table(several)
    assert (table["row"] == "candidate").sum() == 4
    assert len(meanfield.describe_stability(table)) == 2, "policies of one name stay two"
    with pytest.raises(meanfield.InputError, match="policies is empty"):
        meanfield.stability_table([])
