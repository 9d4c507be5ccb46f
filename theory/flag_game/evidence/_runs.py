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
        If a column is missing, a count is not a whole number or larger than the valid answers, an agent is there twice
        or beyond N, or an outcome is unknown.

    See Also
    --------
    forecast : takes such a table

    Examples
    --------
    75 of 200 answers about the crops of four agents name the rival.

    >>> table = pd.DataFrame({"N": [4], "rival_count": [75], "valid_count": [200]})
    >>> for crops in ("decided", "alike"):
    ...     print(theory.flag_game.evidence.read_runs(table, crops=crops).rival[0].tolist())
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

    def whole(name: str, least: int = 0) -> np.ndarray:
        if name not in table.columns:
            raise InputError(f"table lacks the column {name}: it has {', '.join(map(str, table.columns))}")
        return column_whole_numbers(table, name, least)

    n_agents, rival = whole("N", 2), whole("rival_count")
    valid, agent = (next((name for name in names if name in table.columns), None) for names in (VALID, AGENT))
    most = None if valid is None else whole(valid)
    # With both columns the rest of the valid answers named neither.
    given = most is None or "truth_count" in table.columns
    truth = whole("truth_count") if given else np.maximum(most - rival, 0)
    if most is not None and (above := truth + rival > most).any():
        raise InputError(f"truth_count + rival_count = {(truth + rival)[above][0]}: above {valid} = {most[above][0]}")
    seed = whole("seed", -1) if "seed" in table.columns else np.full(len(table), -1)
    outcome = table["outcome"] if "outcome" in table.columns else pd.Series("", table.index)
    outcome = outcome.astype(object).where(outcome.notna(), "").astype(str).str.strip()
    place = {name: k for k, name in enumerate(ENDPOINTS)} | {"": UNKNOWN}
    if wrong := [one for one in outcome if one not in place]:
        raise InputError(f"outcome = {wrong[0]!r}: expected {', '.join(ENDPOINTS)}, or nothing")
    ends = outcome.map(place).to_numpy()
    if agent is not None:
        return _by_agent(table, agent, n_agents, seed, ends, (truth, rival))
    truths, rivals = [], []
    for n, t, r in zip(n_agents.tolist(), truth, rival, strict=True):
        each, alike = (t + r) / n, crops == "alike"
        rivals.append(np.full(n, r / n) if alike else np.clip(r - each * np.arange(n), 0, each))
        truths.append(np.full(n, t / n) if alike else each - rivals[-1])
    return Runs(n_agents, seed, ends, tuple(truths), tuple(rivals))


def _by_agent(
    table: pd.DataFrame, agent: str, n_agents: np.ndarray, seed: np.ndarray, ends: np.ndarray, counts: tuple
) -> Runs:
    """Rows of agents brought together by run."""
    if "run_id" not in table.columns and "seed" not in table.columns:
        raise InputError("table has rows of agents and no seed or run_id: expected one of them, to tell runs apart")
    key = ["N", "run_id" if "run_id" in table.columns else "seed"]
    if table[key].isna().to_numpy().any():
        raise InputError(f"table has rows without {key[1]} or N: expected both in each row of an agent")
    groups = list(table.reset_index(drop=True).groupby(key, sort=False).indices.values())
    for rows in groups:
        n, agents = n_agents[rows[0]], table[agent].iloc[rows]
        where = f"run {table[key[1]].iloc[rows[0]]} with N = {n}"
        if agents.duplicated().any():
            raise InputError(f"{where}: agent {agents[agents.duplicated()].iloc[0]} is there twice")
        if len(rows) > n:
            raise InputError(f"{where} has {len(rows)} agents: expected at most N")
        if len(set(ends[rows])) > 1:
            raise InputError(f"{where}: its rows have different outcomes, expected one")
    first = np.array([rows[0] for rows in groups])
    padded = (
        tuple(np.pad(one[rows].astype(float), (0, n_agents[rows[0]] - len(rows))) for rows in groups) for one in counts
    )
    return Runs(n_agents[first], seed[first], ends[first], *padded)
