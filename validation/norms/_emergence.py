"""Norm emergence of [003] in finite populations: exact runs of the reaction model of `theory.norms`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError, ReactionModel
from meanfield.toolbox import LARGEST_SEED, check_memory, expect, real_number, stamp, whole_number
from theory import norms
from theory.norms import AGENTS, CHANNELS, Behaviour, NormAgent, NormRates, behaviour_of, default_operations
from theory.toolbox import DAYS, EVENTS, fractions_text, mixture_of, operations_sha256
from validation._engine.arguments import population_sizes
from validation.reactions._events import ReactionRuns, most_agents, play_reactions
from validation.reactions._models import interaction_rate

WHOLE = 1e-6  # by which fractions of N agents may miss whole numbers
RECORD_BYTES = 500  # for each size, run and time, at most; measured 490, of which the result keeps 244
ROWS_AT_ONCE = 2**15  # of counts, from which observables are made; they take 1.5 kB each
OVER_RUNS = ("conflicts", "thoughts", "chats", "accepted", "complying", "reached", "informed")


def simulate(
    behaviour: str | Behaviour,
    *,
    n_agents: int | Sequence[int],
    runs: int,
    seed: int,
    operations: xr.Dataset | None = None,
    agents: Sequence[NormAgent] = AGENTS,
    fractions: Mapping[tuple[str, str], float] | None = None,
    rates: NormRates | None = None,
    days: float = DAYS,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate norm emergence among N agents exactly, with the observables of [003] Fig. 2.

    Runs follow the reaction model `theory.norms.reaction_model`. An interaction is an encounter of two distinct agents,
    uniformly at random, or a move of one alone, as in `ReactionModel.protocol`. The clock counts interactions:
    with ε encounters and at most s moves alone that an agent initiates in a day, N interactions, a round, take 1/(ε +
    s) days. A clock that ticks at random, as in continuous time, would have the same mean and the variance t/(N(ε +
    s)).

    Parameters
    ----------
    behaviour
        A name of `theory.norms.BEHAVIOURS`, or a `Behaviour`.
    n_agents
        N ≥ 2, up to 2·10^6, one number or several different ones. The fractions of N must be whole numbers of agents.
    runs
        Number of runs of each size, ≥ 1.
    seed
        0 to 2^63 - 1. A run depends only on (seed, the behaviour's name, its N, its number) and the model, so runs of
        two behaviours are independent.
    operations, rates
        As for `theory.norms.emergence`.
    agents, fractions
        Types and preferences of the N agents and their proportions, as for `theory.norms.emergence`.
    days
        Duration, positive; rounded up to whole rounds.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over (n_agents, run, time), time 0 and the end of each round in days, with the names of
    `theory.norms.emergence`: `conflicts`, `thoughts` and `chats`, their expected numbers per agent and day in the
    composition at that time, and over `standard` as well `accepted`, `complying`, `reached` and `informed`, fractions
    of the agents. Also `events` (event), the numbers of conflicts, thoughts and chats since the time before, and
    `count` (state), numbers of agents.

    Raises
    ------
    InputError
        If an argument is out of range, a kind has no whole number of agents, or the simulation would take more memory
        than 16 GiB (or the environment variable MEANFIELD_MEMORY, in GiB).

    See Also
    --------
    simulate_society : agents who decide for themselves
    theory.norms.emergence : the limit of many agents

    Examples
    --------
    >>> runs = validation.norms.simulate("tipping", n_agents=[10, 1000], runs=50, seed=1, days=1)
    >>> accepted = runs["accepted"].sel(standard="for").isel(time=-1)  # shares that hold the norm after a day
    >>> accepted.mean("run").values.round(2), accepted.std("run").values.round(2)
    (array([0.7 , 0.93]), array([0.42, 0.01]))
    """
    one = behaviour_of(behaviour)
    operations = default_operations() if operations is None else operations
    model = norms.reaction_model(operations, one, rates)
    mixture = mixture_of(one, agents, fractions)
    sizes = population_sizes(n_agents)
    whole_number("n_agents", max(sizes), 2, most_agents(len(EVENTS)))
    starts = [_numbers(mixture, n) for n in sizes]
    runs, seed = whole_number("runs", runs, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    real_number("days", days, above=0)
    times = days * interaction_rate(model) + 1
    needed = len(sizes) * runs * times * RECORD_BYTES
    check_memory(needed, f"runs = {runs}, days = {days:g}, n_agents = {sizes}", "fewer of them")
    rounds = math.ceil(times - 1 - WHOLE)
    counted = np.array([[channel.event in named for channel in CHANNELS] for named in EVENTS.values()])
    own_seed = _seed_of(seed, one.name)
    observed = []
    for n, start in zip(sizes, starts, strict=True):
        observed.append(_observed(model, n, play_reactions(model, start, counted, runs, own_seed, rounds, progress)))
    result = xr.concat(observed, dim="n_agents")
    result = result.assign_coords(n_agents=("n_agents", sizes, {"long_name": "number of agents"}))
    result = result.assign_coords(behaviour=one.name, kind=one.kind)
    options = {"n_agents": " ".join(map(str, sizes)), "runs": runs, "seed": seed, "days": days}
    options |= {"operations_sha256": operations_sha256(operations), "fractions": fractions_text(mixture)}
    return stamp(result, "norm_simulation", **options, **vars(rates or NormRates()))


def average(simulation: xr.Dataset) -> xr.Dataset:
    """Means of `validation.norms.simulate` over its runs, under the same names, and their standard errors.

    Returns
    -------
    Dataset over (n_agents, time) with the observables of `theory.norms.emergence`, which
    `theory.norms.emergence_measures` takes; and of each the `…_standard_error`.

    Raises
    ------
    InputError
        If it is no such simulation, or has only one run.

    See Also
    --------
    simulate : the runs

    Examples
    --------
    >>> runs = validation.norms.simulate("tipping", n_agents=100, runs=50, seed=1, days=0.5)
    >>> mean = validation.norms.average(runs)
    >>> mean["accepted"].sel(standard="for").isel(time=-1).values.round(2)
    array([0.81])
    >>> mean["accepted_standard_error"].sel(standard="for").isel(time=-1).values.round(2)
    array([0.02])
    """
    simulation = norm_simulation("simulation", simulation)
    if simulation.sizes["run"] < 2:
        raise InputError("simulation has 1 run: expected at least 2, for a standard error")
    result = xr.Dataset(attrs=simulation.attrs)
    for name in OVER_RUNS:
        values, text = simulation[name], simulation[name].attrs
        result[name] = values.mean("run").assign_attrs(text | {"long_name": f"{text['long_name']}, mean over runs"})
        error = values.std("run", ddof=1) / np.sqrt(values.sizes["run"])
        label = {"long_name": f"standard error of the mean of {name}", "units": text["units"]}
        result[f"{name}_standard_error"] = error.assign_attrs(label)
    return result


def norm_simulation(name: str, simulation: object) -> xr.Dataset:
    """Result of `simulate` with the dim n_agents, also where one size was selected; else InputError."""
    simulation = expect(simulation, "norm_simulation", name)
    if "n_agents" not in simulation.dims:
        simulation = simulation.expand_dims("n_agents")
    return simulation


def _numbers(mixture: Mapping[tuple[str, str], float], n_agents: int) -> np.ndarray:
    """Agents in each state at the start, shape (K,)."""
    exact = norms.initial_composition(mixture) * n_agents
    numbers = np.rint(exact.values).astype(np.int64)
    wrong = np.abs(numbers - exact.values)
    if wrong.max() > WHOLE:
        worst = exact[int(wrong.argmax())]
        found = f"{float(worst):g} agents would start as {worst['state'].item()}"
        raise InputError(f"n_agents = {n_agents}: {found}, expected a whole number")
    return numbers


def _seed_of(seed: int, behaviour: str) -> int:
    """The seed of one behaviour's runs; the same on every platform."""
    words = np.random.SeedSequence(seed, spawn_key=tuple(behaviour.encode())).generate_state(1, np.uint64)
    return int(words[0]) % (LARGEST_SEED + 1)


def _observed(model: ReactionModel, n_agents: int, played: ReactionRuns) -> xr.Dataset:
    runs, times, n_states = played.counts.shape
    rows = played.counts.reshape(-1, n_states)
    parts = [_observables(model, n_agents, rows[k : k + ROWS_AT_ONCE]) for k in range(0, len(rows), ROWS_AT_ONCE)]
    result = xr.Dataset(
        {
            name: (
                ("run", "time", *one.dims[1:]),
                np.concatenate([part[name].values for part in parts]).reshape(runs, times, *one.shape[1:]),
                one.attrs,
            )
            for name, one in parts[0].items()
        },
        coords={
            "standard": parts[0]["standard"],
            "run": np.arange(runs),
            "time": ("time", np.arange(times) / interaction_rate(model), {"long_name": "time", "units": "day"}),
            "state": list(model.names),
            "event": list(EVENTS),
        },
    )
    label = {"long_name": "events since the time before", "units": "1"}
    result["events"] = (("run", "time", "event"), played.events, label)
    result["count"] = (("run", "time", "state"), played.counts, {"long_name": "number of agents", "units": "1"})
    return result


def _observables(model: ReactionModel, n_agents: int, counts: np.ndarray) -> xr.Dataset:
    """Expected observables of N agents in each row of `counts`, shape (rows, K)."""
    composition = counts / n_agents
    result = norms.observables(model, composition)
    for name, channels in EVENTS.items():
        chosen = np.array([channel.event in channels for channel in CHANNELS])
        alone = composition @ (model.alpha * model.beta)[chosen].sum(0) * model.encounter_rate
        # By `theory.norms.observables` an agent meets itself as often as any other, which only many never notice
        result[name] = ((n_agents * result[name] - alone) / (n_agents - 1)).assign_attrs(result[name].attrs)
    return result
