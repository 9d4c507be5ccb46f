"""Which word wins in populations that were really run."""

from __future__ import annotations

import pandas as pd

from meanfield import InputError
from meanfield.toolbox import real_number
from validation.comparison import wilson_interval
from validation.populations._conditions import PAPERS_SUCCESS_RATE, SUBJECT, read_runs, with_lengths

CONDITION = ["model", "options", "memory_length", "n_agents"]


def winners(runs: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """How many runs from empty memories agree on each word, by model, words, memory length and number of agents.

    A run agrees on the word said most often in its last 3N interactions if 95 % of them succeed, if the table says that
    the run had `converged`, or if its order shows that it stopped after a usual number of successes in a row. Source:
    [001] Fig. 2A.

    Parameters
    ----------
    runs
        Runs as in `meanfield.datasets.ai_norms`, of any number of words.
    level
        Confidence of each single interval.

    Returns
    -------
    DataFrame with a row for each condition and word that won, most wins first: `model`, `options`, `memory_length`,
    `n_agents`, `word`, `wins`; `runs`, those of the condition that agree on a word; `share`, wins / runs, with Wilson's
    interval `low` to `high`; and `undecided`, the other runs.

    Raises
    ------
    InputError
        If a column is missing, a number is out of range, or no run begins with empty memories.

    See Also
    --------
    individual_bias : before any interaction
    """
    level = real_number("level", level, above=0, below=1)
    table = read_runs(runs)
    table = table[table["experiment"] == "from_empty"]
    if table.empty:
        raise InputError("runs: expected some with the experiment 'from_empty'")
    agreed = table["success_last_3N"] >= PAPERS_SUCCESS_RATE
    if "converged" in table:
        agreed |= table["converged"].astype(bool)
    for _, runs_of_one in table.groupby(SUBJECT):
        agreed[runs_of_one.index] |= with_lengths(runs_of_one)["by_streak"]
    undecided = (~agreed).groupby([table[name] for name in CONDITION]).sum().rename("undecided")
    counted = table[agreed].groupby([*CONDITION, "majority_word_last_3N"]).size().rename("wins")
    found = counted.rename_axis([*CONDITION, "word"]).reset_index().join(undecided, on=CONDITION)
    found["runs"] = found.groupby(CONDITION)["wins"].transform("sum")
    found["share"] = found["wins"] / found["runs"]
    found["low"], found["high"] = wilson_interval(found["wins"].to_numpy(), found["runs"].to_numpy(), level)
    order = [True] * len(CONDITION) + [False]
    found = found.sort_values([*CONDITION, "wins"], ascending=order, kind="stable").reset_index(drop=True)
    columns = [*CONDITION, "word", "wins", "runs", "share", "low", "high", "undecided"]
    found = found.loc[:, columns]
    found.attrs |= {"kind": "winners", "option_level": level}
    return found
