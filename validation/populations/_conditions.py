"""Conditions of real populations, and when their runs stopped: read from the table of runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.toolbox import check_columns
from validation.naming_game._convention import ROUNDS_AVERAGED
from validation.naming_game._stopped_runs import Stop
from validation.populations._choices import numbers_in

EXPERIMENTS = ("from_empty", "from_consensus", "committed")
NUMBERS = ("memory_length", "n_agents", "n_committed", "interactions", "success_last_3N", "majority_share_last_3N")
# More than any experiment has had, since all of it is simulated.
RANGES = {"memory_length": (1, 1000), "n_agents": (2, 10**5), "n_committed": (0, 10**5), "interactions": (1, 10**8)}
RANGES |= {"agreed_at_end": (0, 10**8), "agreed_at_most": (0, 10**8)}
TEXTS = ("model", "experiment", "options", "initial_consensus", "committed_word", "majority_word_last_3N")
SUBJECT = ["model", "options", "memory_length"]  # columns that tell policies apart
CONDITION = ["experiment", "n_agents", "initial_consensus", "committed_word", "n_committed"]
STANDARD_WINDOW = 72  # interactions: the 3N of the papers' populations of N = 24
PAPERS_SUCCESS_RATE = 0.95
MOST_ROUNDS = 1000
LISTED = "committed_agents"
STREAK, MOST = "agreed_at_end", "agreed_at_most"  # columns that runs in order have


class Rule(NamedTuple):
    """Successes needed of the last interactions, and the rule as text."""

    window: int
    successes: int
    text: str

    @classmethod
    def all_of_the_last(cls, window: int) -> Rule:
        return cls(int(window), int(window), f"all of the last {window}")


class Condition(NamedTuple):
    """Runs of one policy under equal conditions.

    `runs` has the columns of the table, whether a run `stopped` by itself, its `longest` length, and its `rule`.
    """

    n_agents: int
    initial: str | None
    committed: dict[str, int]
    runs: pd.DataFrame

    def stops(self, longest: int) -> list[Stop]:
        """When each run stops, at the latest after `longest` interactions."""
        rules = zip(self.runs["rule"], self.runs["longest"], strict=True)
        return [Stop(rule.window, rule.successes, min(int(most), longest)) for rule, most in rules]


def read_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """The table of runs, with sorted words in `options`; InputError if a column is missing or a value impossible."""
    check_columns("runs", runs, (*TEXTS, *NUMBERS))
    if runs.empty:
        raise InputError("runs is empty: expected a row a run")
    table = runs.reset_index(drop=True).copy()
    for column in (*NUMBERS, *sorted({STREAK, MOST} & set(table.columns))):
        whole = column in RANGES
        values = numbers_in(table, column, *RANGES.get(column, (0, 1)), whole)
        table[column] = values.astype(int) if whole else values
    for column in TEXTS:
        table[column] = table[column].fillna("").astype(str)
    if LISTED in table:
        # A file of one number a row makes numbers of texts
        listed = table[LISTED] = table[LISTED].fillna("").astype(str).str.replace(r"\.0$", "", regex=True)
        if (wrong := (listed.str.split().str.len() != table["n_committed"]).to_numpy()).any():
            expected = f"expected n_committed = {table['n_committed'][wrong.argmax()]} numbers"
            raise InputError(f"committed_agents = {listed[wrong.argmax()]!r}: {expected}")
    for row in table.itertuples(index=False):
        options = _words(row.options)
        if row.experiment not in EXPERIMENTS:
            raise InputError(f"experiment = {row.experiment!r}: expected one of {', '.join(EXPERIMENTS)}")
        for name in ("initial_consensus", "committed_word", "majority_word_last_3N"):
            word = getattr(row, name)
            if word not in options and (word or name == "majority_word_last_3N"):
                raise InputError(f"{name} = {word!r}: expected one of {', '.join(options)}")
        if row.n_committed >= row.n_agents or (row.n_committed > 0) != bool(row.committed_word):
            given = f"{row.n_committed} with n_agents = {row.n_agents} and committed_word = {row.committed_word!r}"
            raise InputError(f"n_committed = {given}: expected fewer than all, and a word if and only if there are any")
        if row.experiment != "committed" and (row.experiment == "from_empty") == bool(row.initial_consensus):
            given = f"{row.initial_consensus!r} in an experiment {row.experiment}"
            raise InputError(f"initial_consensus = {given}: expected a word, and none in from_empty")
    table["options"] = table["options"].map(option_key)
    return table


def option_key(options: str) -> str:
    """The words in alphabetical order, joined by underscores: prompts list them in random order."""
    return "_".join(sorted(_words(options)))


def _words(options: str) -> list[str]:
    """Words of logs may have blanks; published tables have blanks between words."""
    return options.split("_" if "_" in options else " ")


def with_lengths(runs: pd.DataFrame, window: int | None = None) -> pd.DataFrame:
    """Runs of one experiment of one policy, with their greatest lengths (`longest`) and whether they `stopped` before.

    Runs that end at a fixed length, or in the agreement they started from, did not stop by themselves. Runs in order
    stopped by themselves if they ended after a number of successes in a row that is usual, or the same in other runs;
    or as in [001], or as the file says; or after `window` successes, if it is given. Else the log ends there.
    The others could have gone on to the greatest length at which a run under the same condition, or else of the same
    N, did not stop; or to the 1,000 rounds of [004] if a run under the same condition was longer.
    """
    # Where several ended without agreement at one length, the runs did not choose it
    failed = (runs["success_last_3N"] < 1).groupby([runs["n_agents"], runs["interactions"]]).transform("sum").to_numpy()
    censored = (runs["majority_word_last_3N"] == runs["initial_consensus"]) | (failed > 1)
    by_streak = pd.Series(False, runs.index)
    if STREAK in runs:
        n_agents, streak, most_agreed = (runs[name] for name in ("n_agents", STREAK, MOST))
        described, of_length = ROUNDS_AVERAGED * n_agents, runs.groupby(["n_agents", "interactions"])[STREAK]
        various, times = (of_length.transform(what).to_numpy() for what in ("nunique", "size"))
        # As long as most of the same N, although they had agreed for different times
        censored |= (various > 1) & (2 * times > streak.groupby(n_agents).transform("size").to_numpy())
        # As many successes in a row as is usual, or as in another run; a run that had agreed for longer did not stop so
        usual = (streak.where(~censored).duplicated(keep=False) & (streak >= n_agents)) | (streak == described)
        by_streak = (usual | (streak == STANDARD_WINDOW)) & (most_agreed <= streak) & ~censored
        if window is None:  # 95 % of the last 3N had succeeded, as in [001], or the file says so
            told = (runs["interactions"] >= described) & (most_agreed <= described)
            told &= _just_enough(runs["success_last_3N"], described)
            told |= runs["converged"].astype(bool) if "converged" in runs else False
        else:
            told = streak >= window
        censored = ~by_streak if by_streak.any() else censored | ~told
    cut = runs["interactions"].where(censored)
    possible = cut.groupby([runs[name] for name in CONDITION]).transform("max")
    possible = possible.fillna(cut.groupby(runs["n_agents"]).transform("max")).fillna(0).to_numpy()
    uncut = runs.groupby(CONDITION)["interactions"].transform("max").to_numpy() > possible
    most = np.maximum(MOST_ROUNDS * runs["n_agents"], runs["interactions"])
    longest = np.where(censored, runs["interactions"], np.where(uncut, most, possible)).astype(int)
    return runs.assign(stopped=~censored, longest=longest, by_streak=by_streak)


def _just_enough(success: Any, described: Any) -> Any:
    """Whether a success rate over the last 3N is the least one of at least 95 %, or one success more."""
    needed = np.ceil(PAPERS_SUCCESS_RATE * described)
    return (success * described > needed - 0.5) & (success * described < needed + 1.5)


def conditions(runs: pd.DataFrame, window: int | None, tested: pd.Index) -> list[Condition]:
    """The conditions in runs `with_lengths` of equal size and start, each with its tested runs."""
    n_agents = int(runs["n_agents"].iloc[0])
    rules = _rules(runs, window, _never(n_agents))
    usual = max(sorted(set(rules)), key=rules.count)
    found = []
    for _, group in runs.groupby(CONDITION, sort=True):
        initial, word, number = (group[column].iloc[0] for column in CONDITION[2:])
        group = group.assign(rule=_rules(group, window, usual))
        group = group[group.index.isin(tested)]
        if len(group):
            found.append(Condition(n_agents, initial or None, {word: int(number)} if word else {}, group))
    return found


def _never(n_agents: int) -> Rule:
    return Rule(ROUNDS_AVERAGED * n_agents, ROUNDS_AVERAGED * n_agents + 1, "never")


def _rules(runs: pd.DataFrame, window: int | None, usual: Rule) -> list[Rule]:
    """Each run's rule: the successes in a row that stopped it, or else the number that most often stopped one.

    A run that went on after the number that most often stopped others never stops. Given `window`, or without streaks,
    all have one rule.
    """
    by_streak = runs["by_streak"].to_numpy()
    if window is not None or not by_streak.any():
        return [_rule(runs, window) or usual] * len(runs)
    most, never = runs.loc[by_streak, STREAK].mode()[0], _never(int(runs["n_agents"].iloc[0]))
    told = np.where(by_streak, runs[STREAK], np.where(runs[MOST] >= most, 0, most)).tolist()
    return [Rule.all_of_the_last(streak) if streak else never for streak in told]


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
        return Rule.all_of_the_last(window)
    if MOST in runs and (runs.loc[runs["stopped"], MOST] > described).any():
        return _never(n_agents)
    if success.min() == 1:
        return Rule(described, described, "all of the last 3N")
    if _just_enough(success, described).all():
        return Rule(described, int(np.ceil(PAPERS_SUCCESS_RATE * described)), "95 % of the last 3N")
    return Rule.all_of_the_last(STANDARD_WINDOW)
