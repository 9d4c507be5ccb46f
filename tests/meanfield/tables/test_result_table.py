"""Tables as a terminal shows them: what stands first, what below, and nothing lost."""

import io

import numpy as np
import pandas as pd
from rich.console import Console

import meanfield
from _policies import random_policy
from meanfield._tables.result_table import result_table, shown_table


def shown(table, width=80, **options):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(shown_table(table, width, **options))
    return captured.get()


def test_columns_that_were_asked_for_stand_first():
    names = ["pair", "time", *(f"other_{k}" for k in range(9)), "mean_a"]
    table = pd.DataFrame({name: np.arange(8.0) for name in names})
    assert "mean_a" not in shown(table)
    header = shown(table, rows=["time"], first=["mean"]).split()[:4]
    assert header == ["pair", "time", "mean_a", "other_0"]


def test_texts_that_differ_stand_below_once_for_each_pair():
    texts = ["x" * 50, "x" * 50, "y " * 30, ""]
    table = pd.DataFrame({"pair": ["A/B", "C/D", "E/F", "G/H"], "value": range(4), "reason": texts})
    lines = shown(table, width=200)
    assert lines.count(f"reason, A/B, C/D: {'x' * 50}") == lines.count("reason, E/F: y y") == 1
    assert "reason, row 3: y y" in shown(table.drop(columns="pair"), width=200)


def test_numbers_that_are_not_known_are_no_nan():
    text = shown(pd.DataFrame({"value": [1.0, np.nan]}))
    assert "–" in text and "nan" not in text


def test_words_are_no_columns_beside_the_columns_that_they_label():
    table = result_table(meanfield.fixed_points(random_policy(1, memory_length=1)), ("fixed_point",))
    assert not [name for name in table if "word_number" in name or "word_label" in name]
    assert {"word_share_a", "word_share_b"} <= set(table)
