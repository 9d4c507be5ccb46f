"""The naming game of [004] simulated agent by agent."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, Population
from meanfield.core import HEARS
from meanfield.toolbox import LARGEST_SEED, as_population, names_of, one_of, stamp, whole_number, word_coords
from theory.pairs import MATCHED, NO_EDGES
from validation._engine.arguments import LARGEST_POPULATION, RECORDED, check_ensembles, population_sizes
from validation._engine.ensemble import collection_paused
from validation._engine.topology import PAIRWISE, Graph, NodeGroups, Topology
from validation.naming_game._convention import Convention, convention_of
from validation.naming_game._ensemble import OF_AGENTS, Ensemble, Plan, Recording, Rules, play_ensemble
from validation.naming_game._lazy_policy import LazyPolicy, lazy_start
from validation.naming_game._roster import Cast, kind_names, make_cast, start_composition, start_options

LONG_ROUND = 10**9  # interactions, some 10^7 a second in large populations
ROUNDS_PLAYED = {"long_name": "rounds played until consensus", "units": "rounds of N interactions"}
# Of the axes after run and round
AXES = {"kind_word_share": "agent_kind", "group_word_share": "node_group", "node_word_share": "node"}
SCHEDULES = ("asynchronous", "matching")


def simulate(
    policy: xr.Dataset | Population | LazyPolicy,
    *,
    n_agents: int | Sequence[int],
    runs: int,
    seed: int,
    committed: Mapping[str, int | Sequence[int] | np.ndarray] | None = None,
    committed_are_extra: bool = False,
    initial: str | xr.DataArray | np.ndarray | None = None,
    convention: str | Convention = "004",
    max_rounds: int = 1000,
    trajectories: bool = False,
    record_rounds: int | None = None,
    record: Sequence[str] | None = None,
    topology: Any = None,
    pick: str = "edge",
    committed_nodes: Sequence[Any] | str | None = None,
    node_groups: Sequence[Any] | Mapping[Any, Any] | None = None,
    schedule: str = "asynchronous",
    progress: bool = False,
) -> xr.Dataset:
    """Simulate the naming game among agents of one policy or several, with or without committed agents.

    In an interaction two distinct agents, uniformly at random, at the rates of a population with `meets` or at the ends
    of an edge of a graph, each say a word by their policy and remember what they said and heard. In a population with a
    `group` it is that many agents, and along a hyperedge its members, who hear as `hears` of the population says. A
    round is N interactions. A run converges, and stops, when the mean success rate of its last three rounds is high
    enough. Source: [004] Methods.

    Parameters
    ----------
    policy
        A single policy of W ≥ 2 words, or a `meanfield.Population`, whose fractions become the closest whole numbers of
        agents that sum to N (largest remainders). A warning tells where this changes a share by more than 1 % of
        itself, as 2 of 25 agents for 10 % do; where it leaves no agents of a kind, N is refused. Or a `LazyPolicy`, a
        function that is asked about memories as they occur; `initial` is then None or a word.
    n_agents
        N ≥ 2, one population size or several different ones.
    runs
        Number of runs of each size, ≥ 1.
    seed
        0 to 2^63 - 1. A run depends only on (seed, its N, its number): 1,000 runs are the first 1,000 of 10,000, with
        any number of threads and any other sizes.
    committed
        Number of agents by word who always say it, in place of fractions in the population. They remember like others.
        Of a population with `meets` numbers in each kind, or one for all kinds by their fractions.
    committed_are_extra
        Add them to the N agents instead of replacing some.
    initial
        Memories at the start. None: empty. A word: all have only ever said and heard it. Or a composition, shape (S,),
        (M, S) for a population, or a DataArray, matched by its coordinates; it becomes the closest whole numbers of
        agents. Committed agents start like the first policy's.
    convention
        When a run has converged: '004', '001', '001 strict' or a `Convention`. It is looked at after each round; [000]
        and [001] look after each interaction, which ends runs about half a round earlier.
    max_rounds
        Rounds after which a run ends without consensus.
    trajectories
        Record all `max_rounds` rounds.
    record_rounds
        Record this many rounds, at most `max_rounds`. While they are recorded a run continues beyond its consensus,
        because a mean over runs without the first to converge would be biased.
    record
        Observables to record: some of 'word_share' (the default), 'said', 'success_rate', 'kind_word_share',
        'interface_density', 'group_word_share' and 'node_word_share'. They don't change the runs.
    topology
        Who meets whom. None: everybody. A connected graph of `networkx`, with its attribute `weight`, a SciPy sparse
        matrix, or an array of edges between numbers of nodes, (E, 2), or (E, 3) with weights. Directions do not matter;
        edges that are listed several times, or in both directions where others are not, count as often. Or a function
        of the number of agents and of a seed that makes a graph for each run. Agents are placed at random in each run.
        Or hyperedges, all of whose members meet: a list of sets of numbers of nodes, as ``[{0, 1, 2}, {2, 3}]``, or a
        hypergraph of `xgi`. They hear as `hears` of the population says, by default the majority of the others.
    pick
        'edge': the two who meet are the ends of an edge at random, in proportion to its weight. 'agent': an agent at
        random and one of its neighbours, in proportion to the weights of their edges, or one of its hyperedges. Where
        all nodes have edges of the same total weight both are the same.
    committed_nodes
        Where on the graph committed agents are, the first word of `committed` first: a sequence of nodes, such as those
        of a community, or 'hubs', the nodes with the most neighbours. Default: anywhere, in each run.
    node_groups
        A label for each node of the graph, strings or whole numbers: in the order of the nodes, or a mapping from nodes
        to labels. For the record 'group_word_share'.
    schedule
        'asynchronous': one interaction after the other. 'matching': all pairs of a random matching of the agents at
        once, in which no agent is twice. On a graph it is made of its edges, in a random order, where both ends are
        free. A round is still N interactions: two matchings without a graph for even N, and as many as it takes
        otherwise; the last one is cut short.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over (n_agents, run), both always there, which `meanfield.save` keeps as it is:

    - `consensus_word`, missing (`isnull`) where a run did not converge;
    - `consensus_round`, the number of rounds played by then, NaN where a run did not converge. [004] numbers rounds
      from 0, so its consensus time is t = `consensus_round` - 1, as in `consensus_times`;
    - `agents` (n_agents, agent_kind), the numbers of agents, if there are several kinds; attrs["option_committed"], the
      numbers of committed agents, at each size where they differ;
    - attrs `function_calls` and `memories_asked`, the calls of a `LazyPolicy` and the new memories that it was asked
      for;

    and, if recorded, with the dim `round`, where 0 is the start and r the r-th round played, the time r - 1 of [004]:

    - `word_share` (n_agents, run, round, word), the probability Q that a random agent says the word at the end of the
      round;
    - `said` (n_agents, run, round, word), the share of the word in the 2N words said in the round (in groups of k kN),
      which the papers plot ([004] Fig. 1, the frequency in the previous N interactions); NaN in round 0;
    - `success_rate` (n_agents, run, round), the share of the N interactions in which both said the same word ([001]
      Fig. 1), in groups and hyperedges the share of neighbours who did, with all in a circle; NaN in round 0;
    - `kind_word_share` (n_agents, run, round, agent_kind, word), the word share among the agents of each kind;
    - `interface_density` (n_agents, run, round), the mean of 1 - Σ_w q_i(w) q_j(w) over the edges (i, j) of the graph,
      each counted once, or over all pairs of agents without one: the probability that both ends of a random edge would
      say different words. Of hyperedges it is the probability that not all members would say the same;
    - `group_word_share` (n_agents, run, round, node_group, word), the word share among the agents at the nodes of each
      of `node_groups`, near 0 or 1 where the group agrees;
    - `node_word_share` (n_agents, run, round, node, word), the probability q_i that the agent at the node says the
      word, for one number of agents; where all runs have one graph, `edge_node` (edge, end) has the nodes at both
      ends of its edges.

    Committed agents count like all others, in words and in interactions, as they do for consensus in [001].

    Raises
    ------
    InputError
        If an argument is out of range, `policy` is not a policy or holds several, N is so small that a kind of agents
        of the population is rounded to none, or the simulation would take more memory than 16 GiB (or the environment
        variable MEANFIELD_MEMORY, in GiB).

    Warns
    -----
    UserWarning
        If a round of all runs has 10^9 interactions or more, which take minutes, and no progress bar is shown.

    See Also
    --------
    sweep : many policies and sizes, resumable
    validation.naming_game.exact_population : the whole distribution of a small group
    validation.compare : beside the rate equation

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> runs = validation.simulate(policy, n_agents=[10, 1000], runs=100, seed=1, max_rounds=30, record_rounds=30)
    >>> his = runs["word_share"].sel(word="his", round=30)
    >>> his.mean("run").values.round(2), his.std("run").values.round(2)  # large groups are alike
    (array([0.53, 0.53]), array([0.06, 0.01]))
    """
    if callable(policy):
        raise InputError(
            f"policy is a {type(policy).__name__}, a function: expected LazyPolicy(f, words, memory_length) of "
            "validation.naming_game, which makes a policy of it"
        )
    lazy = policy if isinstance(policy, LazyPolicy) else None
    population = lazy or as_population(policy)
    sizes = population_sizes(n_agents)
    runs = whole_number("runs", runs, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    max_rounds = whole_number("max_rounds", max_rounds, 1, LARGEST_SEED)
    if trajectories and record_rounds is None:
        record_rounds = max_rounds
    if trajectories and record_rounds != max_rounds:
        raise InputError(f"record_rounds = {record_rounds}: expected None beside trajectories=True, which records all")
    if record_rounds is not None:
        record_rounds = whole_number("record_rounds", record_rounds, 0, max_rounds)
    recording = _recording(record_rounds, record, node_groups)
    if lazy and (wrong := [name for name in recording.observables if name in OF_AGENTS]):
        raise InputError(f"record = {record!r} beside a LazyPolicy: expected no {wrong[0]!r}, which takes a policy")
    rule = convention_of(convention)
    cast = make_cast(population, committed, sizes=sizes, extra=committed_are_extra)
    agents = [int(cast.numbers(n).sum()) for n in sizes]
    if max(agents) > LARGEST_POPULATION:
        raise InputError(f"n_agents = {sizes} with committed agents: expected at most {LARGEST_POPULATION} agents")
    matched = one_of("schedule", schedule, SCHEDULES) == "matching"
    edges = [cast.edges(n) for n in sizes]
    if matched:
        if lazy or any(part[4].size or part[0].size for part in edges):
            which = "a LazyPolicy" if lazy else f"{population!r}, whose agents meet in groups or at rates of their own"
            raise InputError(f"schedule = 'matching' beside {which}: expected 'asynchronous'")
        edges = [(*NO_EDGES[:4], np.array([MATCHED, 2]), NO_EDGES[5])] * len(sizes)
    meeting = edges[0][4] if matched else PAIRWISE
    graph = _topology(topology, pick, committed_nodes, agents, population, meeting)
    by_node = "node_word_share" in recording.observables
    if graph is None and (by_node or recording.groups):
        asked = "record of 'node_word_share'" if by_node else "node_groups"
        raise InputError(f"{asked} without a topology: expected one beside it")
    if by_node and len(sizes) > 1:
        raise InputError(f"record of 'node_word_share' with n_agents = {sizes}: expected one number of agents")
    if graph is not None and recording.groups and isinstance(graph.graph, Graph):
        recording.groups.of(graph.graph)
    n_words = len(cast.population.words)
    records = sum(map(math.prod, recording.shapes(n_words, len(kind_names(cast)), max(agents))))
    shared = n_words if "word_share" in recording.observables else 0
    check_ensembles(agents, runs, records=records, sharing_words=shared)
    if not progress and (interactions := sum(agents) * runs) >= LONG_ROUND:
        told = f"n_agents = {sizes}, runs = {runs}: {interactions:.1g} interactions a round, up to {max_rounds} rounds"
        warnings.warn(f"{told} of a minute or more each; progress=True shows how far they are", stacklevel=2)
    plan = Plan(runs, seed, rule, max_rounds, recording)
    calls, memories = lazy.asked if lazy else (0, 0)
    if lazy:
        starts = [lazy_start(lazy, cast, n, initial) for n in sizes]
    else:
        composition = start_composition(population, initial)
        starts = [cast.states(n, composition) for n in sizes]
    rules = lazy or Rules.of(cast.q, population.space)
    # Ends with the most that could be played, not with what was: runs that converge make the bar jump.
    most = sum(map(len, starts)) * runs * max_rounds
    bar_format = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
    ensembles = []
    with (
        # A function that is asked may leave garbage
        nullcontext() if lazy else collection_paused(),
        tqdm(total=most, desc=population.name, disable=not progress, bar_format=bar_format, leave=False) as bar,
    ):
        for n, start, meeting in zip(sizes, starts, edges, strict=True):
            report = partial(lambda agents, rounds: bar.update(rounds * agents), len(start))
            there = (graph, int(cast.numbers(n)[len(population.kinds) :].sum()))
            ensembles.append(play_ensemble(rules, start, plan, report, *there, meeting))
    result = _labelled(ensembles, policy, cast, sizes, plan)
    if by_node:
        fixed = graph.graph if graph and isinstance(graph.graph, Graph) else None
        nodes = [*range(agents[0])] if fixed is None or fixed.nodes is None else fixed.nodes
        names = nodes if all(isinstance(node, int) for node in nodes) else [str(node) for node in nodes]
        result = result.assign_coords(node=names)
        if fixed and fixed.is_pairwise:
            ends = np.array(names)[fixed.edges[0]]
            result["edge_node"] = (("edge", "end"), ends, {"long_name": "node at each end of the edge"})
    options = {"n_agents": " ".join(map(str, sizes)), "runs": runs, "seed": seed, "max_rounds": max_rounds}
    options |= {"record_rounds": record_rounds, "record": " ".join(recording.observables) or None}
    options |= start_options(initial, cast, sizes)
    options |= {"topology": graph and graph.option(), "pick": graph and pick}
    options |= {"committed_nodes": graph and graph.places(), "schedule": "matching" if matched else None}
    options |= {"convention": str(convention), "committed_are_extra": committed_are_extra}
    result = stamp(result, "simulation", None if lazy else policy, **options)
    if lazy:
        asked = {"function_calls": lazy.asked.calls - calls, "memories_asked": lazy.asked.memories - memories}
        result = result.assign_attrs(memory_length=lazy.space.memory_length, **asked)
    return result


def _topology(
    topology: Any,
    pick: str,
    committed_nodes: Any,
    agents: list[int],
    population: Population | LazyPolicy,
    meeting: np.ndarray,
) -> Topology | None:
    """Who meets whom, from arguments of `simulate`; None for everybody."""
    if topology is None:
        given = {"pick": pick != "edge", "committed_nodes": committed_nodes is not None}
        if wrong := [name for name, is_given in given.items() if is_given]:
            raise InputError(f"{' and '.join(wrong)} without a topology: expected one beside it")
        return None
    if isinstance(population, LazyPolicy):
        raise InputError("topology beside a LazyPolicy: expected None, or a policy")
    if population.meets is not None or max(population.sizes) > 2:
        which = "has meets" if population.meets is not None else "meets in groups"
        raise InputError(f"topology beside {population!r}, which {which}: expected one of the two")
    if population.in_groups:
        meeting = np.array([HEARS.index(population.hears), 0])
    found = Topology.of(topology, pick, committed_nodes, meeting)
    for n in agents:
        if isinstance(found.graph, Graph):
            found.of_size(found.graph, n)
    return found


def _recording(record_rounds: int | None, record: Sequence[str] | None, node_groups: Any) -> Recording:
    """Records to keep, from arguments of `simulate`; `record_rounds` is checked already."""
    names = () if record_rounds is None else ("word_share",)
    if record is not None:
        several = isinstance(record, Sequence) and not isinstance(record, str) and len(record) > 0
        if not several or not all(isinstance(name, str) and name in RECORDED for name in record):
            raise InputError(f"record = {record!r}: expected a sequence of some of {', '.join(RECORDED)}")
        if record_rounds is None:
            raise InputError(
                f"record = {record!r} without rounds: expected record_rounds or trajectories=True beside it"
            )
        names = tuple(name for name in RECORDED if name in record)
    if (node_groups is not None) != ("group_word_share" in names):
        raise InputError("node_groups without record = ['group_word_share'], or the other way round: expected both")
    return Recording(record_rounds or 0, names, None if node_groups is None else NodeGroups.checked(node_groups))


def _labelled(
    ensembles: list[Ensemble],
    policy: xr.Dataset | Population | LazyPolicy,
    cast: Cast,
    sizes: list[int],
    plan: Plan,
) -> xr.Dataset:
    words = np.array([*cast.population.words, None], dtype=object)  # the last one is where -1, no consensus, points
    played, word = np.moveaxis(np.stack([ensemble.consensus for ensemble in ensembles]), -1, 0)
    result = xr.Dataset(
        {
            "consensus_word": (
                ("n_agents", "run"),
                words[word],
                {"long_name": "word of consensus", "missing": ""},
            ),
            "consensus_round": (("n_agents", "run"), np.where(played == 0, np.nan, played), ROUNDS_PLAYED),
        },
        coords={
            "n_agents": ("n_agents", sizes, {"long_name": "number of agents"}),
            "run": np.arange(plan.runs),
            **word_coords(cast.population.words),
        },
    )
    result = result.assign_coords(policy.labels if isinstance(policy, LazyPolicy) else names_of(policy))
    kinds = kind_names(cast)
    if len(kinds) > 1 or "kind_word_share" in plan.recording.observables:
        numbers = np.stack([cast.numbers(n) for n in sizes])
        result["agents"] = (("n_agents", "agent_kind"), numbers, {"long_name": "number of agents", "units": "1"})
        result = result.assign_coords(agent_kind=kinds)
    for name in plan.recording.observables:
        values = np.stack([getattr(ensemble, name) for ensemble in ensembles])
        axes = [AXES[name]] if name in AXES else []
        dims = ("n_agents", "run", "round", *axes, "word")[: values.ndim]
        result[name] = (dims, values, {"long_name": RECORDED[name], "units": "1"})
    if plan.recording.groups:
        result = result.assign_coords(node_group=plan.recording.groups.labels)
    if plan.recording.observables:
        result = result.assign_coords(round=np.arange(plan.recording.rounds + 1))
    return result
