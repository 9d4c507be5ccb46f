"""The measured evidence of runs: how often each agent's crop, shown to a model alone, was called truth or rival."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pandas as pd

from meanfield import InputError
from meanfield.toolbox import column_whole_numbers, read_csv, shown, whole_number
from theory.flag_game.mechanism1 import ENDPOINTS

Source = str | os.PathLike[str] | pd.DataFrame
CROPS = ("decided", "alike")
AGENT = ("agent_id", "agent")
VALID = ("valid_count", "B_valid")
PRIOR = 0.5  # answers of each kind that every agent has in advance (Jeffreys)
UNKNOWN = -1


@dataclass(frozen=True)
class Runs:
    """R runs, and the answers to the crops of their agents.

    Attributes
    ----------
    n_agents, seed, endpoint
        Shape (R,): N; the seed, -1 where there is none; the place in `ENDPOINTS`, -1 where it is not known.
    truth, rival
        For each run the numbers of answers (N,) of each agent; fractions of answers where pooled counts were split.

    Examples
    --------
    Two runs of four agents, with 50 and 150 of 200 answers for the rival.

    >>> from theory.flag_game.evidence import read_runs
    >>> runs = read_runs(pd.DataFrame({"N": [4, 4], "rival_count": [50, 150], "valid_count": 200}))
    >>> len(runs), runs.evidence.tolist(), runs.rival_sided(0).round(2).tolist()
    (2, [0.25, 0.75], [0.99, 0.01, 0.01, 0.01])
    """

    n_agents: np.ndarray
    seed: np.ndarray
    endpoint: np.ndarray
    truth: tuple[np.ndarray, ...]
    rival: tuple[np.ndarray, ...]

    def __len__(self) -> int:
        return len(self.n_agents)

    @property
    def evidence(self) -> np.ndarray:
        """The rival's share of all answers of a run, shape (R,); NaN without answers."""
        total = np.array([t.sum() + r.sum() for t, r in zip(self.truth, self.rival, strict=True)])
        rival = np.array([r.sum() for r in self.rival])
        return np.divide(rival, total, out=np.full(len(self), np.nan), where=total > 0)

    def rival_sided(self, run: int) -> np.ndarray:
        """The probability (N,) that an agent holds the rival at first, by its posterior mean; 1/2 without answers."""
        run = whole_number("run", run, 0, len(self) - 1)
        truth, rival = self.truth[run], self.rival[run]
        return (rival + PRIOR) / (truth + rival + 2 * PRIOR)

    def select(self, rows: np.ndarray) -> Runs:
        chosen = np.arange(len(self))[rows]
        agents = [tuple(counts[i] for i in chosen) for counts in (self.truth, self.rival)]
        return Runs(self.n_agents[chosen], self.seed[chosen], self.endpoint[chosen], *agents)


def read_runs(table: Source | Runs, *, crops: str = "decided") -> Runs:
    """Runs from a table of pooled counts, or of counts agent by agent.

    Parameters
    ----------
    table
        A DataFrame or a CSV file. Pooled, a row for each run: `N`, `rival_count` and `valid_count`, the numbers of
        answers over all its agents; `seed` if you like. Agent by agent, a row for each agent, with `N`, `seed` (or
        `run_id`), `agent` (or `agent_id`), `rival_count`, and `truth_count` or `valid_count` (or `B_valid`). `outcome`,
        one of `ENDPOINTS`, may be missing or empty where it is not known.
    crops
        How pooled counts, N v valid ones, are dealt to agents. 'decided': the rival's answers come from as few agents
        as possible, v from each but one, since most crops get 50 equal answers. 'alike': every agent has the same share
        of them. Counts agent by agent do not need it.

    Returns
    -------
    Runs. Agents without a row or without valid answers count as uninformative: truth and rival are equally likely.

    Raises
    ------
    InputError
        If a column is missing, a count is no whole number or larger than the valid answers, an agent is there twice or
        beyond N, or an outcome is unknown.

    See Also
    --------
    forecast : takes such a table

    Examples
    --------
    75 of 200 answers about the crops of four agents name the rival.

    >>> from theory.flag_game.evidence import read_runs
    >>> table = pd.DataFrame({"N": [4], "rival_count": [75], "valid_count": [200]})
    >>> for crops in ("decided", "alike"):
    ...     print(read_runs(table, crops=crops).rival[0].tolist())
    [50.0, 25.0, 0.0, 0.0]
    [18.75, 18.75, 18.75, 18.75]
    """
    if isinstance(table, Runs):
        return table
    if crops not in CROPS:
        raise InputError(f"crops = {shown(crops)}: expected {' or '.join(CROPS)}")
    if not isinstance(table, pd.DataFrame):
        if not isinstance(table, (str, os.PathLike)):
            raise InputError(f"table is a {type(table).__name__}: expected a DataFrame or the path of a CSV file")
        table = read_csv(table, "table")
    if not len(table):
        raise InputError("table has no rows: expected one for each run or agent")
    n_agents = _whole(table, "N", 2)
    rival = _whole(table, "rival_count")
    truth = _truth(table, rival)
    seed = _whole(table, "seed", -1) if "seed" in table.columns else np.full(len(table), -1)
    ends = _endpoints(table)
    agent = next((name for name in AGENT if name in table.columns), None)
    if agent is None:
        dealt = [_dealt(*counts, crops) for counts in zip(n_agents.tolist(), truth, rival, strict=True)]
        return Runs(n_agents, seed, ends, *(tuple(one[k] for one in dealt) for k in range(2)))
    return _by_agent(table, agent, Runs(n_agents, seed, ends, (truth,), (rival,)))


def _whole(table: pd.DataFrame, name: str, least: int = 0) -> np.ndarray:
    if name not in table.columns:
        raise InputError(f"table lacks the column {name}: it has {', '.join(map(str, table.columns))}")
    return column_whole_numbers(table, name, least)


def _truth(table: pd.DataFrame, rival: np.ndarray) -> np.ndarray:
    """Answers that named the truth; with both columns the rest of the valid answers named neither."""
    valid = next((name for name in VALID if name in table.columns), None)
    if valid is None:
        return _whole(table, "truth_count")
    most = _whole(table, valid)
    truth = _whole(table, "truth_count") if "truth_count" in table.columns else np.maximum(most - rival, 0)
    above = truth + rival > most
    if above.any():
        raise InputError(f"truth_count + rival_count = {(truth + rival)[above][0]}: above {valid} = {most[above][0]}")
    return truth


def _endpoints(table: pd.DataFrame) -> np.ndarray:
    if "outcome" not in table.columns:
        return np.full(len(table), UNKNOWN)
    known = {name: k for k, name in enumerate(ENDPOINTS)}
    given = table["outcome"].astype(object).where(table["outcome"].notna(), "").astype(str).str.strip()
    wrong = [one for one in given if one and one not in known]
    if wrong:
        raise InputError(f"outcome = {wrong[0]!r}: expected {', '.join(ENDPOINTS)}, or nothing")
    return np.array([known.get(one, UNKNOWN) for one in given])


def _dealt(n_agents: int, truth: float, rival: float, crops: str) -> tuple[np.ndarray, np.ndarray]:
    each = (truth + rival) / n_agents
    if crops == "alike":
        return np.full(n_agents, truth / n_agents), np.full(n_agents, rival / n_agents)
    rivals = np.clip(rival - each * np.arange(n_agents), 0, each)
    return each - rivals, rivals


def _by_agent(table: pd.DataFrame, agent: str, rows: Runs) -> Runs:
    """Rows of agents brought together by run; `rows` has the columns, one entry a row."""
    if "run_id" not in table.columns and "seed" not in table.columns:
        raise InputError("table has rows of agents and no seed or run_id: expected one of them, to tell runs apart")
    key = ["N", "run_id" if "run_id" in table.columns else "seed"]
    if table[key].isna().to_numpy().any():
        raise InputError(f"table has rows without {key[1]} or N: expected both in each row of an agent")
    groups = table.reset_index(drop=True).groupby(key, sort=False).indices
    found = []
    for places in groups.values():
        n_agents = int(rows.n_agents[places[0]])
        where = f"run {table[key[1]].iloc[places[0]]} with N = {n_agents}"
        twice = table[agent].iloc[places].duplicated()
        if twice.any():
            raise InputError(f"{where}: agent {table[agent].iloc[places][twice].iloc[0]} is there twice")
        if len(places) > n_agents:
            raise InputError(f"{where} has {len(places)} agents: expected at most N")
        if len(set(rows.endpoint[places])) > 1:
            raise InputError(f"{where}: its rows have different outcomes, expected one")
        padded = [np.zeros(n_agents) for _ in range(2)]
        for counts, column in zip(padded, (rows.truth[0], rows.rival[0]), strict=True):
            counts[: len(places)] = column[places]
        found.append((n_agents, rows.seed[places[0]], rows.endpoint[places[0]], *padded))
    n, seed, ends, truth, rival = zip(*found, strict=True)
    return Runs(np.array(n), np.array(seed), np.array(ends), truth, rival)
