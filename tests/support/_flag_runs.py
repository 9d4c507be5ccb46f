"""Made-up runs of the flag game whose ends follow a known law of copying."""

from __future__ import annotations

import numpy as np
import pandas as pd

from theory.flag_game.evidence import copying_endpoints, read_runs
from theory.flag_game.mechanism1 import ENDPOINTS

ANSWERS = 50


def runs_with(n_agents: int, runs: int, seed: int, anchored: float = 0.45, bias: float | None = 0.6) -> pd.DataFrame:
    """Rows of agents with 50 equal answers each; the rival's share differs from run to run."""
    random = np.random.default_rng([seed, n_agents])
    rival = ANSWERS * (random.random((runs, n_agents)) < random.random((runs, 1)))
    table = pd.DataFrame(
        {
            "N": n_agents,
            "seed": np.repeat(np.arange(runs), n_agents),
            "agent": np.tile(np.arange(n_agents), runs),
            "truth_count": ANSWERS - rival.ravel(),
            "rival_count": rival.ravel(),
        }
    )
    given = read_runs(table)
    laws = [copying_endpoints(given.rival_sided(run), anchored=anchored, bias=bias) for run in range(runs)]
    ends = [random.choice(ENDPOINTS, p=law / law.sum()) for law in laws]
    return table.assign(outcome=np.repeat(ends, n_agents))


def pooled(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each run."""
    each = table.groupby(["N", "seed"], sort=False)
    sums = each[["truth_count", "rival_count"]].sum()
    sums = sums.assign(valid_count=sums.sum(axis=1), outcome=each["outcome"].first())
    return sums.reset_index().drop(columns="truth_count")
