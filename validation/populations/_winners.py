"""Which word wins in populations that were really run."""

from __future__ import annotations

import warnings

import pandas as pd

from meanfield import InputError
from meanfield.toolbox import check_level, wilson_interval
from validation.populations._conditions import PAPERS_SUCCESS_RATE, SUBJECT, read_runs, with_lengths

CONDITION = ["model", "options", "memory_length", "n_agents"]


def winners(runs: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Number of runs from empty memories that agree on each word, by model, words, memory length and number of agents.

    The winner of a run is the word on which it agrees: the word said most often in its last 3N interactions, if 95 % of
    these succeed, if the table says that the run had `converged`, or if its order shows that it stopped after a usual
    number of successes in a row. Another run is undecided and has no winner. Source: [001] Fig. 2A.

    Parameters
    ----------
    runs
        Runs as in `meanfield.datasets.ai_norms`, of any number of words.
    level
        Confidence of each single interval.

    Returns
    -------
    DataFrame with a row for each condition and word that won, most wins first: `model`, `options`, `memory_length`,
    `n_agents`, `word`, `wins`; `runs`, the number under this condition that agree on a word; `share`, wins / runs, with
    Wilson's interval `low` to `high`; and `undecided`, the other runs. A condition in which no run agrees has no row.

    Raises
    ------
    InputError
        If a column is missing, a number is out of range, or no run begins with empty memories.

    Warns
    -----
    UserWarning
        If no run agrees on a word, so that the table is empty.

    See Also
    --------
    individual_bias : before any interaction

    Examples
    --------
    Ten runs of 24 agents; nine end with agreement, eight of them on M:

    >>> runs = pd.DataFrame({"success_last_3N": [0.97] * 9 + [0.6], "majority_word_last_3N": list("MMMMMMMMQM")})
    >>> runs = runs.assign(model="m", experiment="from_empty", options="M Q", memory_length=5, n_agents=24)
    >>> runs = runs.assign(n_committed=0, initial_consensus="", committed_word="", interactions=500)
    >>> found = validation.populations.winners(runs.assign(majority_share_last_3N=0.9))
    >>> found[["word", "wins", "runs", "share", "low", "high", "undecided"]].round(2)
      word  wins  runs  share   low  high  undecided
    0    M     8     9   0.89  0.57  0.98          1
    1    Q     1     9   0.11  0.02  0.43          1
    """
    check_level(level)
    table = read_runs(runs)
    table = table[table["experiment"] == "from_empty"]
    if table.empty:
        why = "empty memories at the start and no committed agents"
        raise InputError(f"runs: expected some with the experiment 'from_empty', {why}")
    agreed = table["success_last_3N"] >= PAPERS_SUCCESS_RATE
    if "converged" in table:
        agreed |= table["converged"].astype(bool)
    for _, runs_of_one in table.groupby(SUBJECT):
        agreed[runs_of_one.index] |= with_lengths(runs_of_one)["by_streak"]
    if not agreed.to_numpy().any():
        warnings.warn(f"none of {len(table)} runs from empty memories agrees on a word: nothing has won", stacklevel=2)
    undecided = (~agreed).groupby([table[name] for name in CONDITION]).sum().rename("undecided")
    counted = table[agreed].groupby([*CONDITION, "majority_word_last_3N"]).size().rename("wins")
    found = counted.rename_axis([*CONDITION, "word"]).reset_index().join(undecided, on=CONDITION)
    found["runs"] = found.groupby(CONDITION)["wins"].transform("sum")
    found["share"] = found["wins"] / found["runs"]
    found["low"], found["high"] = wilson_interval(found["wins"].to_numpy(), found["runs"].to_numpy(), level)
    order = [True] * len(CONDITION) + [False]
    found = found.sort_values([*CONDITION, "wins"], ascending=order, kind="stable").reset_index(drop=True)
    found = found.loc[:, [*CONDITION, "word", "wins", "runs", "share", "low", "high", "undecided"]]
    found.attrs |= {"kind": "winners", "option_level": level}
    return found
