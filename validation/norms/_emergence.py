"""Norm emergence of [003] in finite populations: exact runs of the reaction model of `theory.norms`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError, ReactionModel
from meanfield.toolbox import LARGEST_SEED, check_memory, real_number, stamp, whole_number
from theory import norms
from theory.norms import AGENTS, Behaviour, NormAgent, NormRates
from theory.toolbox import CHANNELS, DAYS, EVENTS, Setting, rates_of
from validation._engine.arguments import population_sizes
from validation.reactions._models import interaction_rate, reaction_outcomes
from validation.reactions._protocol import Plan, play_protocol

WHOLE = 1e-6  # by which fractions of N agents may miss whole numbers
RECORD_BYTES = 500  # for each size, run and time, at most; 490 were measured, and the result keeps 244
BITS = 63 // len(EVENTS)  # of one integer that counts all events of a round, side by side; none exceeds N
SHIFTS = BITS * np.arange(len(EVENTS))
ROWS_AT_ONCE = 2**15  # of counts, from which observables are made; they take 1.5 kB each


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

    Runs come from `validation.reactions.simulate` for `theory.norms.reaction_model`, with the interactions of each
    round that were conflicts, thoughts and chats. With ε encounters and at most s moves alone that an agent initiates
    in a day, N interactions, a round, take 1/(ε + s) days.

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
    theory.norms.emergence : the limit of many agents

    Examples
    --------
    >>> runs = validation.norms.simulate("tipping", n_agents=[10, 1000], runs=50, seed=1, days=1)
    >>> accepted = runs["accepted"].sel(standard="for").isel(time=-1)  # shares that hold the norm after a day
    >>> accepted.mean("run").values.round(2), accepted.std("run").values.round(2)
    (array([0.7 , 0.93]), array([0.42, 0.01]))
    """
    one = Setting.of(behaviour, operations, agents, fractions, rates)
    name, model = one.behaviour.name, one.model
    sizes = population_sizes(n_agents)
    whole_number("n_agents", max(sizes), 2, 2**BITS - 1)
    starts = [_numbers(one.start, n) for n in sizes]
    runs, seed = whole_number("runs", runs, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    real_number("days", days, above=0)
    times = days * interaction_rate(model) + 1
    needed = len(sizes) * runs * times * RECORD_BYTES
    check_memory(needed, f"runs = {runs}, days = {days:g}, n_agents = {sizes}", "fewer of them")
    rounds = math.ceil(times - 1 - WHOLE)
    counted = np.array([[channel.event in named for channel in CHANNELS] for named in EVENTS.values()])
    outcomes = reaction_outcomes(model, marks=(counted << SHIFTS[:, None]).sum(0))

    def played(n: int, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        some = play_protocol(outcomes, start, Plan(n, runs, _seed_of(seed, name), rounds, rounds, progress))
        events = some.marked[..., None] >> SHIFTS & 2**BITS - 1
        return some.recorded.astype(np.int32), events.astype(np.int32)

    each = [_observed(model, n, *played(n, start)) for n, start in zip(sizes, starts, strict=True)]
    result = xr.concat(each, dim="n_agents")
    result = result.assign_coords(
        n_agents=("n_agents", sizes, {"long_name": "number of agents"}),
        **{"behaviour": name, "kind": one.behaviour.kind, "made_of": one.made_of},
    )
    options = {"n_agents": " ".join(map(str, sizes)), "runs": runs, "seed": seed, "days": days}
    return stamp(result, "norm_simulation", **options, **vars(rates_of(rates)))


def _numbers(start: xr.DataArray, n_agents: int) -> np.ndarray:
    """Agents in each state at the start, shape (K,)."""
    exact = start * n_agents
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


def _observed(model: ReactionModel, n_agents: int, counts: np.ndarray, events: np.ndarray) -> xr.Dataset:
    """The counts and events of runs, and what is observed; made of some runs at a time."""
    runs, times, _ = counts.shape
    together = max(1, ROWS_AT_ONCE // times)
    parts = [
        norms.observables(model, counts[k : k + together] / n_agents, n_agents=n_agents)
        for k in range(0, runs, together)
    ]
    time = ("time", np.arange(times) / interaction_rate(model), {"long_name": "time", "units": "day"})
    coords = {"run": np.arange(runs), "time": time, "state": list(model.names), "event": list(EVENTS)}
    result = xr.concat(parts, "dim_0").rename(dim_0="run", dim_1="time").assign_coords(coords)
    label = {"long_name": "events since the time before", "units": "1"}
    result["events"] = (("run", "time", "event"), events, label)
    result["count"] = (("run", "time", "state"), counts, {"long_name": "number of agents", "units": "1"})
    return result
