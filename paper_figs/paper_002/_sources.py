"""Published tables, and computations for several figures: fits of both mechanisms, and teams by their rewrites."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
import xarray as xr

import theory
from meanfield.toolbox import labelled, stamp, wilson_interval
from paper_figs._study import Study
from theory.flag_game import mechanism2
from theory.flag_game.mechanism1 import ENDPOINTS, read_counts
from validation.flag_game import compare_composition, predict_composition

MODELS = ("gpt-4o", "gpt-5.4")
OBSERVERS = {"4o agents": "GPT-4o", "5.4 agents": "GPT-5.4", "4 5.4 + 4 4o agents": "mixed"}
UPTAKES = [0.0, 0.25, 0.5, 0.75, 1.0]  # of the sweeps, [002] Figs. 1c and 9
FEWEST_RUNS = 1000  # with fewer the fit of Mechanism 1 gives a warning
FIT_RUNS = 4000  # as in [002] Appendix E
TRIALS = 1000


def by_size(study: Study) -> xr.Dataset:
    """The sweep over N as accuracies and endpoints; initial accuracies are published without errors."""
    table = study.flag_game("population_scaling_gpt4o")
    counts = read_counts(table)
    interval = np.stack(wilson_interval(counts.counts, counts.seeds[:, None], 0.95), axis=-1)
    over, by_end = ("n_agents",), ("n_agents", "endpoint")
    columns = {
        "initial_accuracy": (over, table["initial_mean"].to_numpy(), "mean accuracy of isolated answers"),
        "initial_accuracy_se": (over, np.full(len(table), np.nan), "its standard error"),
        "collective_accuracy": (over, counts.accuracy, "mean accuracy at the end"),
        "collective_accuracy_se": (over, counts.standard_error, "its standard error"),
        "endpoint_fraction": (by_end, counts.counts / counts.seeds[:, None], "fraction of runs"),
        "endpoint_interval": ((*by_end, "bound"), interval, "Wilson interval, 0.95"),
        "seeds": (over, counts.seeds, "number of runs"),
    }
    coords = {"n_agents": counts.n_agents, "endpoint": list(ENDPOINTS), "bound": ["low", "high"]}
    return stamp(labelled(columns, coords), "flag_game_accuracy", None, level=0.95)


def by_protocol(study: Study) -> xr.Dataset:
    """Accuracies of N = 8 agents by protocol and models, the best first."""
    table = study.flag_game("protocols_n8").sort_values("final_accuracy_mean", ascending=False, kind="stable")
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


def by_uptake(study: Study) -> xr.Dataset:
    """Accuracies of pairs in both measured sweeps."""
    names = {"final_mean": "collective mean accuracy", "initial_mean": "initial mean accuracy"}
    names |= {"final_mean_ci_low": "lower end of its 95 % interval", "final_mean_ci_high": "upper end"}
    rows = study.flag_game("pairwise_alpha").set_index(["source", "alpha"])[list(names)].to_xarray()
    return labelled({name: (rows[name].dims, rows[name].values, text) for name, text in names.items()}, rows.coords)


def mechanism1_fit(study: Study) -> xr.Dataset:
    """Mechanism 1 fitted to the sweep of GPT-4o over N."""
    options = study.effort(FIT_RUNS) | {"runs": max(FEWEST_RUNS, study.runs(FIT_RUNS)), "bootstrap": 0}
    return study.kept("mechanism1_fit", theory.fit_mechanism1, study.flag_game("population_scaling_gpt4o"), **options)


def mechanism2_fit(study: Study) -> xr.Dataset:
    """Mechanism 2 fitted to the memory-conflict probe, with the similarity of countries."""
    table, options = study.flag_game("memory_conflict_probe"), {"similarity": None, "progress": study.progress}
    return study.kept("mechanism2_fit", mechanism2.fit, table, **options)


def rewrites(study: Study) -> dict[str, float]:
    """γ of each model in messages with reasons, where a crop leaves several countries."""
    gamma = mechanism2_fit(study)["rewrite"].sel(evidence="weak", bandwidth=3)
    return {model: float(gamma.sel(model=model)) for model in MODELS}


def teams(study: Study) -> xr.Dataset:
    """Broadcasting teams of both models by composition and uptake: predicted from their rewrites, and measured."""
    measured = study.flag_game("broadcast_alpha_composition")
    options = {"uptake": UPTAKES, **study.effort(TRIALS)}
    return compare_composition(study.kept("teams", predict_composition, rewrites(study), **options), measured)
