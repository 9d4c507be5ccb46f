"""Population protocols of any kind, simulated exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, ReactionModel
from meanfield.toolbox import LARGEST_SEED, labelled, shown, stamp, whole_number
from theory.streams import seed_streams
from validation._engine.arguments import LARGEST_POPULATION, check_protocol_runs
from validation._engine.ensemble import play_to_end, portions
from validation.reactions._epochs import log_survival
from validation.reactions._kernel import EVERYBODY, NO_CHANGES, Outcomes, Runs, advance
from validation.reactions._models import changes_of, interaction_rate, moves_alone, reaction_outcomes
from validation.reactions._network import Network
from validation.reactions._transitions import (
    LARGEST_IN_BATCHES,
    groups_of,
    outcomes_of_rows,
    rows_of_array,
    start_of,
)

METHODS = ("auto", "agents", "batches")
# As measured, an interaction agent by agent takes 10 ns. Of an epoch a collision takes 0.08 µs or more, and there are
# 2·c² in c·sqrt(N) interactions; the batch at its end takes at most 0.15 µs for each pair of states. So c of about K is
# best, and epochs are faster from about 1000·K² agents on.
LEAST_FOR_BATCHES = 1000
MOST_EPOCH_ROOTS = 24
LONGEST_EPOCH = 4 * 10**6  # its table has twice as many entries
BITS = 63  # of a whole number
BATCH_LENGTH = 0.63  # of sqrt(N); π/8 under a root


def simulate(
    transitions: Iterable[tuple] | np.ndarray | ReactionModel,
    counts: Mapping[str, int] | Sequence[int] | np.ndarray,
    *,
    runs: int,
    seed: int,
    max_rounds: int,
    record_rounds: int | None = None,
    absorbing: Mapping[str, Collection[Hashable]] | None = None,
    method: str = "auto",
    topology: Any = None,
    pick: str = "edge",
    initial_nodes: Mapping[str, Sequence[Any] | str] | None = None,
    node_groups: Mapping[Any, Hashable] | Sequence[Hashable] | np.ndarray | None = None,
    counted: Mapping[str, Sequence[int]] | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate a population protocol exactly: agents with few states meet in pairs.

    An interaction takes a uniformly random ordered pair of distinct agents (initiator, responder), on a graph of
    neighbours, from the states (i, j) to (i', j') with the given probability. A round is N interactions. Both methods
    play this process exactly: 'agents' plays one interaction after another; 'batches' draws the interactions of agents
    not met before at once, and only those that meet an agent again one by one, 2·K² in K·sqrt(N) interactions. Source:
    Berenbrink, Hammer, Kaaser, Meyer, Penschuck and Tran 2020, arXiv 2005.03584.

    Parameters
    ----------
    transitions
        Objects `Transition` (before, after, probability, marked), any number for a pair of states; with the remaining
        probability nothing changes, and immutable states (zealots) need none. Or an array P[i, j, i', j'] of shape
        (K, K, K, K), each P[i, j] summing to 1. Or a `meanfield.ReactionModel`, whose spontaneous moves are
        interactions too: N (ε + s) of them take a unit of time, with s the largest total rate of such moves. Rates that
        are functions are tabulated for all (N + 1)^(K - 1) compositions, for small N and K, and s gains their largest
        total; they are played agent by agent.
    counts
        Agents in each state at the start, {state: number}, or a sequence for the states 0 … K - 1; N ≥ 2 in all, at
        most 2^32 - 1 agent by agent and 10^12 in batches. K ≤ 256. States of a model that are not named have none.
    runs
        Number of runs, ≥ 1.
    seed
        0 to 2^63 - 1. A run depends only on (seed, N, its number), the method, `transitions`, `counts` and the graph:
        1,000 runs are the first 1,000 of 10,000, on any number of threads. In batches it also depends on `absorbing`.
    max_rounds
        Rounds after which a run ends without absorption.
    record_rounds
        Record the counts of this many rounds, at most `max_rounds`. While they are recorded a run continues beyond its
        absorption.
    absorbing
        {name: states}: a run is absorbed in this group, and stops, at the very interaction after which all agents are
        in these states. By default runs do not stop early.
    method
        'agents', 'batches' or 'auto', the faster one for N and K.
    topology
        Who meets whom: None, everybody; or a graph as `validation.simulate` takes it, or a function that makes one for
        each run. Of a model each edge meets at the rate 2 ε over the mean degree, for `pick` 'edge', and agents move
        alone at the same rates wherever they are. Rates that are functions are refused.
    pick
        'edge': the two who meet are the ends of an edge at random, in proportion to its weight, either one with
        probability 1/2 the initiator. 'agent': an agent at random is the initiator, and one of its neighbours the
        responder, in proportion to the weights of their edges.
    initial_nodes
        {state: nodes} where the agents of some states start: as many nodes as agents in that state, or 'hubs', the
        nodes with the most neighbours. All others start anywhere, in each run.
    node_groups
        Groups of nodes whose counts are recorded: a label for each node, in their order or by node, such as
        ``networkx.get_node_attributes(graph, "block")``.
    counted
        {name: channels} of a model, by their numbers: the encounters in each round that took one of these channels.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `run` with `final_count` (run, state), at absorption or after `max_rounds`.

    - With `absorbing`: `absorbed_group` (its name, None without absorption), `absorbed_interaction`, the number of
      interactions by then, and `absorbed_round`, that number over N; both NaN without absorption.
    - With `record_rounds`: `count` (run, round, state) and, for marked transitions, `marked_share` (run, round) of the
      round's interactions; round 0 is the start, where the share is NaN. With `counted`: `events` (run, round, event),
      which are 0 at the start.
    - On a graph `interface_density` (run, round), the share of edges between agents in different states, and with
      `node_groups` `group_share` (run, round, node_group, state), the share of each state in each group.
    - Of a model, `time` along `round` and `absorbed_time`, in its unit: the mean time of so many interactions. Where
      they happen at random times, as in `meanfield.finite_size`, variances at a given time are larger.

    Raises
    ------
    InputError
        If an argument is out of range or contradicts another.

    See Also
    --------
    meanfield.ReactionModel : games whose `protocol` this plays as well
    validation.simulate : the naming game, faster

    Examples
    --------
    Approximate majority: opponents who meet become undecided, and the undecided follow whom they meet.

    >>> rules = [(("A", "B"), ("A", "-")), (("B", "A"), ("B", "-")), (("A", "-"), ("A", "A")), (("B", "-"), ("B", "B"))]
    >>> options = {"runs": 200, "seed": 1, "max_rounds": 100, "absorbing": {"A wins": ["A"], "B wins": ["B"]}}
    >>> runs = validation.reactions.simulate(rules, {"A": 55, "B": 45, "-": 0}, **options)
    >>> (runs["absorbed_group"] == "A wins").mean().item(), runs["absorbed_round"].median().round(1).item()
    (0.865, 12.6)

    An epidemic dies out among 30 agents, though the rate equation keeps half of them infected:

    >>> model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [1.0, 0.5])
    >>> options = {"runs": 1000, "seed": 1, "max_rounds": 10_000, "absorbing": {"healthy": ["S"]}}
    >>> runs = validation.reactions.simulate(model, {"I": 15, "S": 15}, **options)
    >>> runs["absorbed_time"].mean().round(-1).item()
    1030.0
    """
    model = transitions if isinstance(transitions, ReactionModel) else None
    if model is not None:
        counts = _of_all_states(counts, model)
    states, start = start_of(counts)
    groups = groups_of(absorbing, states)
    network = Network.of(topology, pick, initial_nodes, node_groups, states, start)
    if node_groups is not None and record_rounds is None:
        raise InputError("node_groups without record_rounds: expected both")
    marks, shifts = _marks_of(counted, model, int(start.sum()), record_rounds)
    changes, rate_of_changes = NO_CHANGES, 0.0
    if model is None:
        rows = rows_of_array(transitions, len(states)) if isinstance(transitions, np.ndarray) else transitions
        outcomes = outcomes_of_rows(rows, states, groups, np.eye(len(states), dtype=np.int64))
    elif network is None:
        changes, rate_of_changes = changes_of(model, int(start.sum()))
        outcomes = reaction_outcomes(model, changes, groups, marks)
    else:
        if len(model.changes):
            raise InputError("topology beside a model with rates that are functions: expected numbers, or None")
        outcomes = reaction_outcomes(*moves_alone(model), groups, marks)
    n_agents = int(start.sum())
    plan = Plan(n_agents, runs, seed, max_rounds, record_rounds, progress)
    if changes.strides.size and method == "batches":
        raise InputError(
            "method = 'batches': expected 'agents' for rates that are functions, which change at every move"
        )
    if network is not None and method == "batches":
        raise InputError(
            "method = 'batches' beside a topology: expected 'agents', since agents differ by their neighbours"
        )
    one_by_one = changes.strides.size or network is not None
    played = play_protocol(outcomes, start, plan, "agents" if one_by_one and method == "auto" else method, network)
    state = ("state", list(states), {"long_name": "state of an agent"})
    result = labelled(
        {"final_count": (("run", "state"), played.final, "number of agents at the end")},
        coords={"run": np.arange(len(played.final)), "state": state, "n_agents": n_agents},
    )
    if absorbing:
        result = result.assign(absorption(played, list(absorbing), n_agents))
    if record_rounds is not None:
        count = played.recorded[..., : len(states)]
        result["count"] = (("run", "round", "state"), count, {"long_name": "number of agents", "units": "1"})
        if counted:
            result = result.assign_coords(event=list(counted))
            events = played.marked[..., None] >> shifts & (1 << BITS // len(counted)) - 1
            result["events"] = ("run", "round", "event"), events, {"long_name": "encounters in the round", "units": "1"}
        elif outcomes.marked.any():
            result["marked_share"] = marked_share(played, n_agents, "share of marked interactions")
        result = result.assign_coords(round=np.arange(played.recorded.shape[1]))
        if network is not None:
            result = network.with_records(result, played.recorded[..., len(states) :])
    if model is not None:
        rounds, units = interaction_rate(model) + rate_of_changes, {"long_name": "time", "units": model.time_unit}
        if "round" in result.coords:
            result = result.assign_coords(time=("round", result["round"].values / rounds, units))
        if absorbing:
            result["absorbed_time"] = ("run", result["absorbed_round"].values / rounds, units)
    options = {"runs": runs, "seed": seed, "max_rounds": max_rounds, "record_rounds": record_rounds, "method": method}
    return stamp(result, "protocol_simulation", None, **options, **(network.options() if network is not None else {}))


def _of_all_states(counts: Mapping[str, int] | Sequence[int] | np.ndarray, model: ReactionModel) -> dict[str, int]:
    """Agents in every state of the model, by its name."""
    if isinstance(counts, Mapping):
        unknown = [name for name in counts if name not in model.names]
        if unknown:
            raise InputError(f"counts has {unknown}: expected states of the model, {list(model.names)}")
        return {name: counts.get(name, 0) for name in model.names}
    if np.shape(counts) != (model.n_states,):
        raise InputError(f"counts = {counts}: expected {model.n_states} numbers of agents, one for each state")
    return dict(zip(model.names, counts, strict=True))


def _marks_of(
    counted: Mapping[str, Sequence[int]] | None, model: ReactionModel | None, n_agents: int, record_rounds: int | None
) -> tuple[np.ndarray | None, np.ndarray]:
    """Numbers that encounters of each channel add to one that has all counts side by side, and the places of counts."""
    if not counted:
        return None, np.empty(0, np.int64)
    if not isinstance(counted, Mapping) or not all(isinstance(one, (Sequence, np.ndarray)) for one in counted.values()):
        raise InputError(f"counted = {shown(counted)}: expected {{name: numbers of channels}}")
    if model is None or record_rounds is None:
        raise InputError("counted without a model or record_rounds: expected all three")
    if n_agents >> (bits := BITS // len(counted)):
        raise InputError(
            f"counts sum to {n_agents}: expected fewer than {1 << bits} agents with {len(counted)} names counted"
        )
    known, shifts = range(len(model.alpha)), bits * np.arange(len(counted))
    for name, channels in counted.items():
        if unknown := [m for m in channels if m not in known]:
            raise InputError(f"counted[{name!r}] has {unknown[0]!r}: expected numbers of channels, 0 to {known[-1]}")
    chosen = np.array([np.isin(known, list(channels)) for channels in counted.values()])
    return (chosen << shifts[:, None]).sum(0), shifts


def absorption(played: Runs, names: Sequence[str], n_agents: int) -> dict[str, tuple]:
    """Variables that say when and in which of the groups `names` each run was absorbed."""
    interaction, group = played.absorbed.T
    time = np.where(interaction < 0, np.nan, interaction)
    labels = np.array([*names, None], dtype=object)  # the last one is where -1 points
    return {
        "absorbed_group": ("run", labels[group], {"long_name": "group that all agents are in", "missing": ""}),
        "absorbed_interaction": ("run", time, {"long_name": "time of absorption", "units": "interactions"}),
        "absorbed_round": ("run", time / n_agents, {"long_name": "time of absorption", "units": "N interactions"}),
    }


def marked_share(played: Runs, n_agents: int, long_name: str) -> tuple:
    """Variable (run, round): the share of each round's interactions that is marked."""
    share = played.marked / n_agents
    share[:, :1] = np.nan
    return ("run", "round"), share, {"long_name": long_name, "units": "1"}


class Plan(NamedTuple):
    """Which runs are played, with the arguments of `simulate`."""

    n_agents: int
    runs: int
    seed: int
    max_rounds: int
    record_rounds: int | None
    progress: bool = False

    def checked(self, n_final: int, n_watched: int) -> Plan:
        """The same, its numbers checked, for runs that end with `n_final` numbers and record `n_watched` a round."""
        runs = whole_number("runs", self.runs, 1)
        seed = whole_number("seed", self.seed, 0, LARGEST_SEED)
        max_rounds = whole_number("max_rounds", self.max_rounds, 1, 2**62 // self.n_agents)
        record = self.record_rounds
        record = None if record is None else whole_number("record_rounds", record, 0, max_rounds)
        check_protocol_runs(runs, n_final, 0 if record is None else record + 1, n_watched)
        return Plan(self.n_agents, runs, seed, max_rounds, record, self.progress)


def play_protocol(
    outcomes: Outcomes, start: np.ndarray, plan: Plan, method: str = "auto", network: Network | None = None
) -> Runs:
    """Runs of a protocol from the counts `start` (K,)."""
    n_agents, n_states = plan.n_agents, len(start)
    n_watched = len(outcomes.watched) + (network.n_watched if network is not None else 0)
    plan = plan.checked(n_states, n_watched)
    in_batches = takes_batches(method, n_agents, n_states)
    epoch = _epoch_length(n_agents, n_states)
    table = log_survival(n_agents, epoch) if in_batches else np.empty(0)
    agents = np.repeat(np.arange(n_states, dtype=np.uint8), start * (not in_batches))
    round_cost = int(np.sqrt(n_agents) / BATCH_LENGTH * (50 + 20 * n_states**2)) if in_batches else n_agents

    def more(active: np.ndarray, part: Runs, arranged: Any, n_rounds: int, min_rounds: int) -> None:
        # Copies, since threads that count references to the same arrays wait for each other
        own = Outcomes(*(one.copy() for one in outcomes[:-1]), outcomes.changes), table.copy()
        agents, meetings = (arranged, [EVERYBODY]) if network is None else arranged
        same = meetings[0] is meetings[-1]
        for some in [active] if same else active[:, None]:
            met = meetings[0 if same else some[0]]
            advance(some, part, agents, *own, epoch, met, n_rounds, min_rounds)

    return play_runs(plan, start, start, n_watched, agents, round_cost, more, network)


def play_runs(
    plan: Plan,
    counts: np.ndarray,
    final: np.ndarray,
    n_watched: int,
    agents: np.ndarray,
    round_cost: int,
    advance: Callable[[np.ndarray, Runs, Any, int, int], None],
    network: Network | None = None,
) -> Runs:
    """Runs of a checked plan of agents in the states `agents` (N,), or (0,) if they are not told apart.

    Parameters
    ----------
    counts, final
        `Runs.counts` and `Runs.final` of one run at the start; the latter is the beginning of the former.
    n_watched
        Numbers recorded in a round.
    round_cost
        Cost of a round, in interactions agent by agent: calls into compiled code can't be interrupted.
    advance
        Plays so many more rounds of the runs with these numbers, and those that are recorded. It is given the states of
        all agents (run, N), on a `network` with its meetings.
    """
    runs, max_rounds = plan.runs, plan.max_rounds
    recorded = 0 if plan.record_rounds is None else plan.record_rounds + 1
    played = Runs(
        streams=seed_streams(plan.seed, plan.n_agents, np.arange(runs)),
        counts=np.tile(counts, (runs, 1)),
        played=np.zeros(runs, np.int64),
        absorbed=np.full((runs, 2), -1),
        final=np.tile(final, (runs, 1)),
        recorded=np.empty((runs, recorded, n_watched), np.int64),
        marked=np.zeros((runs, recorded), np.int64),
    )

    def play_portion(some: slice) -> None:
        part = Runs(*(values[some] for values in played))
        if network is None:
            states = np.tile(agents, (len(part.played), 1))
        else:
            states = network.arrange(plan.seed, np.arange(runs)[some], part.streams)
        play_to_end(
            lambda active, n_rounds: advance(active, part, states, n_rounds, recorded - 1),
            part.played,
            max_rounds,
            round_cost,
            lambda: (part.absorbed[:, 0] >= 0) & (part.played >= recorded - 1),
            bar.update,
        )
        lasting = part.absorbed[:, 0] < 0
        part.final[lasting] = part.counts[lasting, : len(final)]

    bytes_a_run = agents.nbytes or 64 * len(counts)
    if network is not None:
        bytes_a_run += network.topology.nbytes(plan.n_agents, plan.seed)
    with tqdm(total=runs * max_rounds, disable=not plan.progress, unit="round", leave=False) as bar:
        for some in portions(runs, bytes_a_run, numba.get_num_threads()):
            play_portion(some)
    return played


def takes_batches(method: str, n_agents: int, n_states: int) -> bool:
    """Whether a method plays so many agents in batches."""
    if method not in METHODS:
        raise InputError(f"method = {method!r}: expected one of {', '.join(map(repr, METHODS))}")
    in_batches = method == "batches" or (method == "auto" and n_agents >= LEAST_FOR_BATCHES * n_states**2)
    most = LARGEST_IN_BATCHES if in_batches else LARGEST_POPULATION
    if n_agents > most:
        raise InputError(f"counts sum to {n_agents}: expected at most {most} with the method {method!r}")
    return in_batches


def _epoch_length(n_agents: int, n_states: int) -> int:
    """Interactions an epoch, in equal parts of a round."""
    best = min(n_states, MOST_EPOCH_ROOTS) * np.sqrt(n_agents)
    return -(-n_agents // max(1, round(n_agents / min(best, LONGEST_EPOCH))))
