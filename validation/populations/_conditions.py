"""Conditions of real populations, and when their runs stopped: read from the table of runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.toolbox import column_numbers
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._stopped_runs import Stop
from validation.populations._empirical_policy import check_columns

EXPERIMENTS = ("from_empty", "from_consensus", "committed")
NUMBERS = ("memory_length", "n_agents", "n_committed", "interactions", "success_last_3N", "majority_share_last_3N")
# More than any experiment has had, since all of it is simulated.
RANGES = {"memory_length": (1, 1000), "n_agents": (2, 10**5), "n_committed": (0, 10**5), "interactions": (1, 10**8)}
TEXTS = ("model", "experiment", "options", "initial_consensus", "committed_word", "majority_word_last_3N")
SUBJECT = ["model", "options", "memory_length"]  # what has a policy of its own
CONDITION = ["experiment", "n_agents", "initial_consensus", "committed_word", "n_committed"]
STANDARD_WINDOW = 72  # interactions: the 3N of the papers' populations of N = 24
PAPERS_SUCCESS_RATE = 0.95
MOST_ROUNDS = 1000


class Rule(NamedTuple):
    """Successes needed of the last interactions, and the rule as text."""

    window: int
    successes: int
    text: str


@dataclass(frozen=True)
class Condition:
    """Runs of one policy under equal conditions. `runs` has the columns of the table, `longest` and `stopped`."""

    n_agents: int
    initial: str | None
    committed_word: str | None
    n_committed: int
    rule: Rule
    runs: pd.DataFrame

    @property
    def committed(self) -> dict[str, int]:
        return {self.committed_word: self.n_committed} if self.committed_word else {}

    def of(self, runs: np.ndarray) -> Condition:
        """With those of its runs whose index is among `runs`."""
        return replace(self, runs=self.runs[self.runs.index.isin(runs)])

    def stop(self, longest: int) -> Stop:
        return Stop(self.rule.window, self.rule.successes, longest)


def read_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The checked table of runs, with the words of `options` in alphabetical order, joined by underscores.

    Raises
    ------
    InputError
        If a column is missing, a number is missing or out of range, an experiment is unknown, or a word is not an
        option.
    """
    if not isinstance(runs, pd.DataFrame):
        raise InputError(f"runs is a {type(runs).__name__}: expected a pandas.DataFrame")
    check_columns("runs", runs, (*TEXTS, *NUMBERS))
    if runs.empty:
        raise InputError("runs is empty: expected a row a run")
    table = runs.reset_index(drop=True).copy()
    for column in NUMBERS:
        table[column] = _numbers(table[column], column)
    for column in TEXTS:
        table[column] = table[column].fillna("").astype(str)
    _check_words(table)
    table["options"] = [option_key(options, " ") for options in table["options"]]
    return table


def option_key(options: str, separator: str) -> str:
    """The words in alphabetical order, joined by underscores: prompts list them in random order."""
    return "_".join(sorted(options.split(separator)))


def with_lengths(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs of one experiment of one policy, with their greatest lengths (`longest`) and whether they `stopped` before.

    Runs that end at a fixed length, or in the agreement they started from, did not stop by themselves. The others could
    have gone on to the greatest fixed length, or to the 1,000 rounds of [004] if a run under the same condition was
    longer.
    """
    fixed = _fixed_lengths(runs)
    censored = runs["interactions"].isin(fixed) | (runs["majority_word_last_3N"] == runs["initial_consensus"])
    cut = max(fixed, default=0)
    uncut = runs.groupby(CONDITION)["interactions"].transform("max").to_numpy() > cut
    possible = np.where(uncut, np.maximum(MOST_ROUNDS * runs["n_agents"], runs["interactions"]), cut)
    return runs.assign(stopped=~censored, longest=np.where(censored, runs["interactions"], possible))


def _fixed_lengths(runs: pd.DataFrame) -> list[int]:
    """Lengths at which more than one run ended without agreement, so the runs did not choose them."""
    lengths = runs.loc[runs["success_last_3N"] < 1, "interactions"].value_counts()
    return [int(length) for length in lengths.index[lengths > 1]]


def conditions(runs: pd.DataFrame, window: int | None) -> list[Condition]:
    """The conditions in runs `with_lengths` of equal size and start, each with the rule that stopped its runs."""
    n_agents = int(runs["n_agents"].iloc[0])
    usual = _rule(runs, window) or _never(n_agents)
    found = []
    for _, group in runs.groupby(CONDITION, sort=True):
        initial, word, number = (group[column].iloc[0] for column in CONDITION[2:])
        rule = _rule(group, window) or usual
        found.append(Condition(n_agents, initial or None, word or None, int(number), rule, group))
    return found


def _never(n_agents: int) -> Rule:
    described = ROUNDS_AVERAGED * n_agents
    return Rule(described, described + 1, "never")


def _rule(runs: pd.DataFrame, window: int | None) -> Rule | None:
    """All of the last 3N if every run that stopped had that; never, if runs that came to agree went on; or None.

    A run that stops when 95 % of the last 3N have succeeded, as in [001], has just that success rate. Runs that stop
    with a lower one, or with various ones, met neither rule. Their lengths and success rates fit that all of the last
    72 succeeded, 3N of the papers' usual N = 24.
    """
    n_agents = int(runs["n_agents"].iloc[0])
    described = ROUNDS_AVERAGED * n_agents
    success = runs["success_last_3N"].to_numpy()[runs["stopped"].to_numpy()]
    if success.size == 0:
        agreed = (runs["majority_word_last_3N"] != runs["initial_consensus"]) & (runs["success_last_3N"] == 1)
        return _never(n_agents) if agreed.to_numpy().any() else None
    if window is not None:
        return Rule(window, window, f"all of the last {window}")
    if success.min() == 1:
        return Rule(described, described, "all of the last 3N")
    needed = int(np.ceil(PAPERS_SUCCESS_RATE * described))
    if ((success * described > needed - 0.5) & (success * described < needed + 1.5)).all():
        return Rule(described, needed, "95 % of the last 3N")
    return Rule(STANDARD_WINDOW, STANDARD_WINDOW, f"all of the last {STANDARD_WINDOW}")


def _numbers(column: pd.Series, name: str) -> pd.Series:
    values = pd.Series(column_numbers(column))
    share = name.endswith("_3N")
    least, most = RANGES.get(name, (0, 1))
    good = (values >= least) & (values <= most) & (share | (values == values.round()))
    if not good.all():
        expected = f"a {'' if share else 'whole '}number from {least} to {most}"
        given = column.tolist()[int(good.to_numpy().argmin())]
        raise InputError(f"{name} = {given!r}: expected {expected}")
    return values if share else values.astype(int)


def _check_words(table: pd.DataFrame) -> None:
    for row in table.itertuples(index=False):
        options = row.options.split(" ")
        if row.experiment not in EXPERIMENTS:
            raise InputError(f"experiment = {row.experiment!r}: expected one of {', '.join(EXPERIMENTS)}")
        for name in ("initial_consensus", "committed_word", "majority_word_last_3N"):
            word = getattr(row, name)
            if word not in options and (word or name == "majority_word_last_3N"):
                raise InputError(f"{name} = {word!r}: expected one of {', '.join(options)}")
        if row.n_committed >= row.n_agents or (row.n_committed > 0) != bool(row.committed_word):
            given = f"{row.n_committed} with n_agents = {row.n_agents} and committed_word = {row.committed_word!r}"
            raise InputError(f"n_committed = {given}: expected fewer than all, and a word if and only if there are any")
        if (row.experiment == "from_empty") == bool(row.initial_consensus):
            given = f"{row.initial_consensus!r} in an experiment {row.experiment}"
            raise InputError(f"initial_consensus = {given}: expected a word, and none in from_empty")
