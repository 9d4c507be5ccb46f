"""Checks of arguments that several simulators share, and coordinates of their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numba
import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import (
    canonical_order,
    check_memory,
    different,
    expect,
    one_or_several,
    whole_number,
    wilson_interval,
)

LARGEST_POPULATION = 2**32 - 1  # agents are drawn from 32 random bits each
RECORDED = {  # observables of a round, and their labels
    "word_share": "probability that a random agent says the word",
    "said": "share of the word in what is said in the round",
    "success_rate": "share of the round's interactions that succeed",
    "kind_word_share": "probability that a random agent of the kind says the word",
    "interface_density": "probability that the ends of a random edge say different words",
    "group_word_share": "probability that a random agent of the group of nodes says the word",
    "node_word_share": "probability that the agent at the node says the word",
}
ENSEMBLE_VARIABLES = ("consensus_round", "consensus_word", *RECORDED, "agents")

# As measured, of an ensemble and of its Dataset
BYTES_A_RUN = 40
BYTES_A_RECORD = 16  # for each number recorded


def population_sizes(n_agents: int | Iterable[int]) -> list[int]:
    sizes = [whole_number("n_agents", n, 2, LARGEST_POPULATION) for n in one_or_several(n_agents)]
    return different("n_agents", sizes, "number of agents")


def check_ensembles(agents: Sequence[int], runs: int, *, records: int = 0, sharing_words: int = 0) -> None:
    """Refuse ensembles that would exceed the memory which `meanfield.toolbox.check_memory` allows.

    Parameters
    ----------
    agents
        Number of agents in each ensemble, committed ones included.
    runs
        Number of runs of each ensemble.
    records
        Numbers recorded in a run.
    sharing_words
        W where the word share is recorded, else 0.
    """
    kept = len(agents) * runs * (BYTES_A_RUN + BYTES_A_RECORD * records)
    played = min(runs, numba.get_num_threads())
    states = 8 * sum(agents) + max(agents) * max(8, 8 * sharing_words, 2 * played)
    recorded = f", {records} numbers recorded a run" if records else ""
    asked = f"runs = {runs}, n_agents = {_shortened(agents)}{recorded}"
    less = "fewer rounds to record" if records > 1000 else "fewer runs or agents"
    check_memory(kept + states, asked, less)


def check_protocol_runs(runs: int, n_states: int, recorded: int, watched: int) -> None:
    """Refuse `runs` with `watched` numbers in each recorded round that would exceed that memory."""
    needed = runs * (BYTES_A_RUN + 16 * n_states + 8 * recorded * (watched + 1))
    asked = f"runs = {runs}, {n_states} states, {recorded} rounds recorded"
    check_memory(needed, asked, "fewer runs or rounds to record")


def name_in(data: xr.Dataset, name: str) -> str:
    """The value of a coordinate that names a policy, '' where it has none."""
    return str(data[name].item()) if name in data.coords else ""


def interval_column(dims: tuple[str, ...], successes: np.ndarray, trials: int, level: float) -> tuple:
    """The Wilson interval of a fraction with these dims, as a column of `labelled`."""
    interval = np.stack(wilson_interval(successes, trials, level), -1)
    return (*dims, "bound"), interval, f"{100 * level:g} % Wilson interval of that fraction"


def _shortened(numbers: Sequence[int]) -> str:
    return f"{list(numbers[:3])}"[:-1] + (f", … ({len(numbers)} sizes)]" if len(numbers) > 3 else "]")


def ensembles(name: str, simulation: object) -> xr.Dataset:
    """Result of `simulate` with the dims n_agents and run, also where one size was selected; else InputError."""
    simulation = canonical_order(expect(simulation, "simulation", name), name)
    if "n_agents" not in simulation.dims:
        simulation = simulation.assign(
            {v: simulation[v].expand_dims("n_agents") for v in ENSEMBLE_VARIABLES if v in simulation}
        )
    if set(simulation["consensus_round"].dims) != {"n_agents", "run"} or simulation["word_label"].ndim != 1:
        raise InputError(f"{name} has the dims {', '.join(map(str, simulation.dims))}: expected n_agents and run")
    if not simulation.sizes["run"]:
        raise InputError(f"{name} has no runs: expected at least 1")
    return simulation.transpose("n_agents", "run", ...)
