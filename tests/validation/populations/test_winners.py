"""Which word wins in real populations."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import meanfield
from meanfield import InputError
from validation.populations import winners


def runs(*ends: tuple[str, float], experiment: str = "from_empty") -> pd.DataFrame:
    """Runs of 24 agents with these majority words and success rates at the end."""
    row = {"model": "llama3", "options": "Q M X", "memory_length": 5, "n_agents": 24, "n_committed": 0}
    row |= {"experiment": experiment, "initial_consensus": "", "committed_word": "", "interactions": 300}
    end = {"majority_share_last_3N": 1.0}
    return pd.DataFrame([row | end | {"majority_word_last_3N": w, "success_last_3N": s} for w, s in ends])


def test_runs_that_agree_are_counted():
    table = winners(runs(("M", 1.0), ("Q", 0.95), ("M", 0.96), ("X", 0.94)))
    assert table[["word", "wins", "runs", "undecided"]].values.tolist() == [["M", 2, 3, 1], ["Q", 1, 3, 1]]
    assert table["share"].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert ((table["low"] < table["share"]) & (table["share"] < table["high"])).all()
    wider = winners(runs(("M", 1.0), ("Q", 0.95), ("M", 0.96)), level=0.99)
    assert (wider["low"] < table["low"]).all() and (wider["high"] > table["high"]).all()


def test_runs_that_stopped_after_successes_in_a_row_agreed():
    table = runs(("M", 0.9), ("M", 0.9), ("Q", 0.9)).assign(
        n_agents=200, agreed_at_end=[72, 72, 5], interactions=[900, 800, 1000], agreed_at_most=72
    )
    assert winners(table)[["word", "wins", "undecided"]].values.tolist() == [["M", 2, 1]]


def test_other_runs_are_not_counted():
    with pytest.raises(InputError, match="runs: expected some with the experiment 'from_empty'"):
        winners(runs(("M", 1.0), experiment="from_consensus").assign(initial_consensus="Q"))
    with pytest.raises(InputError, match="level = 1"):
        winners(runs(("M", 1.0)), level=1)


def test_runs_that_never_agree_are_told_and_have_a_panel_that_says_so():
    with pytest.warns(UserWarning, match="none of 2 runs from empty memories agrees on a word: nothing has won"):
        table = winners(runs(("M", 0.5), ("Q", 0.4)))
    assert table.empty
    assert "no run agrees on a word" in meanfield.plot(table).texts[0].get_text()
    plt.close("all")


def test_winners_are_bars_with_intervals():
    table = winners(runs(("M", 1.0), ("Q", 1.0), ("M", 1.0)))
    axes = meanfield.plot(table)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["M", "Q"]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([2 / 3, 1 / 3])
    (segments,) = [collection.get_segments() for collection in axes.collections]
    np.testing.assert_allclose([segment[:, 1] for segment in segments], table[["low", "high"]])
    assert axes.get_legend().get_texts()[0].get_text() == "Llama 3 70B, H = 5, N = 24: 3 runs"
    pairs = pd.concat([runs(("M", 1.0)).assign(options=options) for options in ("M Q", "M Y")])
    axes = meanfield.plot(winners(pairs), plt.figure().add_subplot())
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [f"Llama 3 70B, {{{words}}}, H = 5, N = 24: 1 runs" for words in ("M, Q", "M, Y")]
    assert len({round(bar.get_x(), 6) for bar in axes.patches}) == 2, "beside each other"
    plt.close("all")
