"""The stability table against Table S1 of [004], its columns and its sentences."""

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import meanfield
from conftest import random_policy
from paper_figs import table_s1
from paper_figs._published import equals_printed

COLUMNS = ["model", "pair", "row", "word", "word_share", "eigenvalue", "residual", "is_fixed_point", "stable", "strong"]


@pytest.fixture(scope="module")
def table(published):
    return meanfield.stability_table(published.sel(pair=["his/her", "young/old", "tall/short", "African/White"]))


def test_candidates_are_those_of_table_s1(table):
    """Sixteen entries here; all 44 of these models are checked by the slow test."""
    comparison = table_s1.published_against_computed(table)
    assert len(comparison) == 16
    assert comparison["agrees"].all()
    no_fixed_points = comparison[~comparison["is_fixed_point"]]
    assert no_fixed_points[["model", "word"]].values.tolist() == [["llama31_70B", "her"], ["llama31_70B", "short"]]
    assert no_fixed_points["residual"].round(3).tolist() == [0.056, 0.142]


@pytest.mark.slow
def test_all_of_table_s1(published):
    comparison = table_s1.published_against_computed(meanfield.stability_table(published))
    assert len(comparison) == 44
    assert comparison["agrees"].all()


def test_printed_digits_decide():
    assert equals_printed(-0.6149, "-0.615")
    assert not equals_printed(-0.6144, "-0.615")
    assert equals_printed(4e-16, "-7.39e-16")
    assert not equals_printed(-1e-8, "-7.39e-16")
    assert not equals_printed(-0.85, "-8.50"), "the erratum is a difference, not a rounding"


def test_csv_has_the_documented_columns(table, tmp_path):
    written = pd.read_csv(meanfield.write_stability_csv(table, tmp_path / "table.csv"))
    assert written.columns.tolist() == COLUMNS
    assert len(written) == table.sizes["entry"]
    np.testing.assert_array_equal(written["eigenvalue"], table["eigenvalue"])
    assert set(written["row"]) == {"candidate", "fixed_point"}


def test_strong_word_is_the_same_in_every_row_of_a_policy(table):
    strong = table.to_dataframe().groupby(["model", "pair"])["strong"].unique()
    assert all(len(words) == 1 for words in strong)
    assert strong["llama31_70B", "young/old"][0] == "mixed"
    assert strong["gpt-4o", "African/White"][0] == "African"


def test_printed_and_said(table):
    console = Console(width=80, record=True)
    console.print(meanfield.stability_report(table))
    printed = console.export_text()
    assert "not fixed" in printed
    assert "…" not in printed, "nothing is cut off at 80 columns"
    assert "-0.615" in printed
    sentences = meanfield.describe_stability(table)
    assert len(sentences) == 8
    assert any("mixed state" in sentence for sentence in sentences)
    assert any("attractors compete" in sentence for sentence in sentences)


def test_tables_of_several_files_stand_in_one(tmp_path):
    several = [random_policy(1, 2, 1), random_policy(2, 2, 2)]
    table = meanfield.stability_table(several)
    assert (table["row"] == "candidate").sum() == 4
    assert len(meanfield.describe_stability(table)) == 2, "policies of one name stay two"
    with pytest.raises(meanfield.InputError, match="policies is empty"):
        meanfield.stability_table([])
