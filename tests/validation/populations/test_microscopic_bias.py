"""The bias of agents with no memory and with little: the tests and tables of the papers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chisquare

import meanfield
from meanfield import InputError
from validation.populations._microscopic_bias import individual_bias, microscopic_bias

COLUMNS = ["model", "options", "memory_length", "state", "choice", "count"]
# [000] Table 1: P(M) of Llama 3.1; as if each memory had been asked 1,000 times and the empty one 10,000 times.
PAPER = {
    "Q,M": 951, "M,Q": 5, "Q,Q": 3, "M,M": 990,
    "Q,M|M,Q": 549, "M,Q|Q,M": 848, "Q,M|M,M": 1000, "M,Q|Q,Q": 4,
    "Q,Q|Q,M": 936, "M,M|M,Q": 159, "M,M|M,M": 999, "Q,Q|Q,Q": 11,
}  # fmt: skip


@pytest.fixture
def paper():
    rows = [("m", "M_Q", 2, "", "M", 5079), ("m", "M_Q", 2, "", "Q", 4921)]
    for state, strong in PAPER.items():
        rows += [("m", "M_Q", 2, state, "M", strong), ("m", "M_Q", 2, state, "Q", 1000 - strong)]
    return pd.DataFrame(rows, columns=COLUMNS)


def test_table_of_the_paper(paper):
    table = microscopic_bias(paper, "M", interactions=3)
    whole = table[table["memory"] == "all"].set_index("interaction")
    first = table.iloc[0]
    assert first["share"] == pytest.approx(0.508, abs=5e-4)
    assert first["p_exact"] == pytest.approx(0.116, abs=2e-3)
    # The paper prints .487, a mean with equal weights; that weighted by the memories' probabilities is .495.
    assert whole.loc[2, "equal_share"] == pytest.approx(0.487, abs=5e-4)
    assert whole.loc[2, "share"] == pytest.approx(0.495, abs=5e-4)
    listed = table[table["memory"].isin([m for m in PAPER if "|" in m])]
    assert listed["weight"].sum() == pytest.approx(0.983, abs=5e-4)
    assert (listed["weight"] * listed["share"]).sum() / listed["weight"].sum() == pytest.approx(0.558, abs=5e-4)
    assert listed["share"].mean() == pytest.approx(0.563, abs=5e-4)
    assert whole.loc[2, "p_exact"] == pytest.approx(0.110, abs=0.01)
    assert whole.loc[3, "weight"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("memory", "printed"), [("Q,M", 0.522), ("M,Q", 0.551), ("Q,Q", 0.644), ("M,M", 0.608), ("Q,M|M,Q", 0.495)]
)
def test_bootstrap_of_the_paper(paper, memory, printed):
    table = microscopic_bias(paper, "M").set_index("memory")
    # Theirs are 10,000 draws, and 1,000 choices a memory are our reading of them.
    assert table.loc[memory, "p_bootstrap"] == pytest.approx(printed, abs=0.02)


def test_individual_bias_is_the_test_of_the_number_of_words():
    rows = [("m", "A_B", 1, "", "A", 540), ("m", "A_B", 1, "", "B", 460), ("m", "A_B", 1, "A,B", "B", 9)]
    rows += [("m", "A_B_C", 1, "", "A", 40), ("m", "A_B_C", 1, "", "C", 60)]
    table = individual_bias(pd.DataFrame(rows, columns=COLUMNS)).set_index("options")
    assert table["p_value"].tolist() == [binomtest(540, 1000).pvalue, chisquare([40, 0, 60]).pvalue]
    assert table["favourite"].tolist() == ["A", "C"]
    assert not table["unbiased"].any()
    assert not table["neutral"].any()
    even = pd.DataFrame([("m", "A_B", 1, "", w, 500) for w in "AB"], columns=COLUMNS)
    assert individual_bias(even)[["unbiased", "neutral"]].all(axis=None)


def test_wrong_input_is_refused_by_name(paper):
    with pytest.raises(InputError, match="strong = 'X'"):
        microscopic_bias(paper, "X")
    with pytest.raises(InputError, match="interactions = 4"):
        microscopic_bias(paper, "M", interactions=4)
    with pytest.raises(InputError, match="lacks the column state"):
        individual_bias(paper.drop(columns="state"))


def test_published_counts(data_folder):
    counts = meanfield.datasets.ai_norms(data_folder).choice_counts
    bias = individual_bias(counts).set_index(["model", "options", "memory_length"])
    assert bias.loc[("llama31", "M_Q", 5), "unbiased"]
    assert not bias.loc[("llama31", "female_male", 5), "unbiased"]
    chosen = counts[(counts["model"] == "llama31") & (counts["options"] == "M_Q")]
    table = microscopic_bias(chosen, "M")
    third = table[(table["interaction"] == 3) & (table["memory"] == "all")]
    assert third["share"].item() > 0.5
    assert np.isclose(third["weight"].item(), 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("A_B", "A", 3), ("A_B", "C", 500)], "choice = 'C': expected one of A, B"),
        ([("A_B", "A", 5.7)], "count = 5.7: expected a whole number"),
        ([("A_B", "A", -1)], "count = -1: expected a whole number"),
        ([("A_B", "A", 0)], "counts of A, B with empty memories sum to 0"),
        ([("A", "A", 3)], r"words = \['A'\]: expected at least two"),
    ],
)
def test_individual_bias_repairs_nothing(rows, message):
    counts = pd.DataFrame(rows, columns=["options", "choice", "count"])
    with pytest.raises(meanfield.InputError, match=message):
        individual_bias(counts.assign(model="m", memory_length=5, state=""))
