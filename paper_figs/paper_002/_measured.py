"""The published tables of [002] as results that views draw."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
import xarray as xr

from meanfield.toolbox import labelled, stamp, wilson_interval
from theory.flag_game.mechanism1 import ENDPOINTS, read_counts

OBSERVERS = {"4o agents": "GPT-4o", "5.4 agents": "GPT-5.4", "4 5.4 + 4 4o agents": "mixed"}


def by_size(table: pd.DataFrame) -> xr.Dataset:
    """The sweep over N as accuracies and endpoints; initial accuracies are published without errors."""
    counts = read_counts(table)
    interval = np.stack(wilson_interval(counts.counts, counts.seeds[:, None], 0.95), axis=-1)
    unknown = np.full(len(table), np.nan)
    over, by_end = ("n_agents",), ("n_agents", "endpoint")
    columns = {
        "initial_accuracy": (over, table["initial_mean"].to_numpy(), "mean accuracy of isolated answers"),
        "initial_accuracy_se": (over, unknown, "its standard error"),
        "collective_accuracy": (over, counts.accuracy, "mean accuracy at the end"),
        "collective_accuracy_se": (over, counts.standard_error, "its standard error"),
        "endpoint_fraction": (by_end, counts.counts / counts.seeds[:, None], "fraction of runs"),
        "endpoint_interval": ((*by_end, "bound"), interval, "Wilson interval, 0.95"),
        "seeds": (over, counts.seeds, "number of runs"),
    }
    coords = {"n_agents": counts.n_agents, "endpoint": list(ENDPOINTS), "bound": ["low", "high"]}
    return stamp(labelled(columns, coords), "flag_game_accuracy", None, level=0.95)


def by_protocol(table: pd.DataFrame) -> xr.Dataset:
    """Accuracies of N = 8 agents by protocol and models, the best first."""
    table = table.sort_values("final_accuracy_mean", ascending=False, kind="stable")
    over = ("condition",)
    columns = {
        "initial": (over, table["initial_accuracy_mean"].to_numpy(), "initial mean accuracy"),
        "collective": (over, table["final_accuracy_mean"].to_numpy(), "collective mean accuracy"),
        "error": (over, table["final_accuracy_sem"].to_numpy(), "standard error of the collective mean accuracy"),
        "protocol": (over, table["protocol"].to_numpy(str), "protocol"),
        "trials": (over, table["n_trials"].to_numpy(), "number of trials"),
    }
    return labelled(columns, {"condition": [_team(row) for row in table.to_dict("records")]})


def _team(row: Mapping[Hashable, str]) -> str:
    """The models of a condition; of a manager's also the manager."""
    observers = OBSERVERS[row["observer_group"]]
    if row["protocol"] != "org":
        return observers
    manager = row["condition_name"].removeprefix("manager_").removeprefix("all_")
    return f"{'GPT-5.4' if manager.startswith('gpt_5_4') else 'GPT-4o'} manages {observers}"
