"""An ensemble of naming games of one population size."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numba
import numpy as np

from meanfield import MemorySpace
from theory.pairs import NO_EDGES
from theory.streams import seed_streams
from validation._engine.arguments import RECORDED
from validation._engine.ensemble import play_to_end, portions
from validation._engine.thresholds import word_thresholds
from validation._engine.topology import Edges, NodeGroups, Topology, pairs_met, placed
from validation.naming_game._convention import ROUNDS_AVERAGED, Convention
from validation.naming_game._kernel import advance
from validation.naming_game._lazy_policy import AGENT_BYTES, RUNS_AT_ONCE, LazyPolicy, find_rows, rows_at_start
from validation.naming_game._roster import combined_successors

OF_AGENTS = [*RECORDED][3:]  # they take a policy
ALL_KNOWN = np.empty((0, 2), np.int64), np.empty(0, np.uint64)  # in place of the table and the sizes of a lazy policy
HYPEREDGE_PAIRS = 10**6  # stand for the pairs of words in a round where their number varies; shares have 6 digits


class Rules(NamedTuple):
    """Policies as the kernel reads them: arrays over the states of all kinds, made once for all ensembles."""

    q: np.ndarray  # (kinds · S, W)
    thresholds: np.ndarray  # (kinds · S, W - 1)
    successors: np.ndarray  # (kinds · S,), int32 like agents' states
    n_kinds: int

    @classmethod
    def of(cls, q: np.ndarray, space: MemorySpace) -> Rules:
        """From choice probabilities, shape (kinds, S, W)."""
        flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
        return cls(flat, word_thresholds(flat), combined_successors(space, len(q)).astype(np.int32), len(q))


class Recording(NamedTuple):
    """Number of recorded rounds, and which of `RECORDED`."""

    rounds: int = 0
    observables: tuple[str, ...] = ()
    groups: NodeGroups | None = None

    def shapes(self, n_words: int, n_kinds: int, n_agents: int) -> list[tuple[int, ...]]:
        """Shapes of the records of a run, one for each of `RECORDED`."""
        n_groups = len(self.groups.labels) if self.groups else 0
        each = [(n_words,), (n_words,), (), (n_kinds, n_words), (), (n_groups, n_words), (n_agents, n_words)]
        rounds = [self.rounds + 1 if name in self.observables else 0 for name in RECORDED]
        return [(number, *one) for number, one in zip(rounds, each, strict=True)]


class Plan(NamedTuple):
    """Runs to be played, of any population size."""

    runs: int
    seed: int
    convention: Convention
    max_rounds: int
    recording: Recording


class Ensemble(NamedTuple):
    """Results of the runs of one population size; rounds start at 0, and quantities not recorded have none."""

    consensus: np.ndarray  # (run, 2): rounds played by then and number of the word; 0 and -1 where there was none
    word_share: np.ndarray  # (run, round, word)
    said: np.ndarray  # (run, round, word), NaN in round 0
    success_rate: np.ndarray  # (run, round), NaN in round 0
    kind_word_share: np.ndarray  # (run, round, kind, word)
    interface_density: np.ndarray  # (run, round)
    group_word_share: np.ndarray  # (run, round, node_group, word)
    node_word_share: np.ndarray  # (run, round, node, word)

    @classmethod
    def unplayed(cls, plan: Plan, q: np.ndarray, start: np.ndarray, n_kinds: int = 1) -> Ensemble:
        """Before the first round, to be written into; agent k speaks by the row start[k] of `q`."""
        shapes = plan.recording.shapes(q.shape[1], n_kinds, len(start))
        recorded = [np.empty((plan.runs, *shape)) for shape in shapes]
        for values in recorded:
            values[:, :1] = np.nan
        if "word_share" in plan.recording.observables:
            recorded[0][:, 0] = q[start].mean(0)
        if "kind_word_share" in plan.recording.observables:
            agents = np.bincount(start, minlength=len(q)).reshape(n_kinds, -1)
            said = np.einsum("ks,ksw->kw", agents, q.reshape(n_kinds, -1, q.shape[1]))
            with np.errstate(invalid="ignore"):  # a kind without agents
                recorded[3][:, 0] = said / agents.sum(1)[:, None]
        return cls(np.tile(np.array([0, -1]), (plan.runs, 1)), *recorded)


class Runs(NamedTuple):
    """Runs side by side, as far as they have been played."""

    states: np.ndarray  # (run, N) of a lazy policy, else (run, 0)
    rows: np.ndarray  # (run, N), int32: of each agent in tables of probabilities; its state, unless the policy is lazy
    streams: np.ndarray  # (run, 4)
    done: np.ndarray  # (run, 3), rounds played, interactions of the unfinished one, and whether a state has no row
    met: np.ndarray  # (run, W²), pairs of words in the latest round
    agreed: np.ndarray  # (run, 3, W), agreements of the last rounds
    counted: np.ndarray  # (run, 3), pairs of words in them, where groups differ in size


def play_ensemble(
    policy: Rules | LazyPolicy,
    start: np.ndarray,
    plan: Plan,
    report: Callable[[int], object],
    topology: Topology | None = None,
    n_committed: int = 0,
    edges: Edges = NO_EDGES,
) -> Ensemble:
    """Runs from the states `start` of the agents; `report` receives how many rounds are now settled, over all runs.

    The last `n_committed` agents are committed. Without a topology agents meet along `edges`, as in `theory.pairs`.
    """
    if isinstance(policy, LazyPolicy):
        rows, rules, n_kinds = rows_at_start(policy, start), policy.answers, 1
        bytes_a_run, fewest = start.size * AGENT_BYTES, RUNS_AT_ONCE
    else:
        rows, start = start.astype(np.int32), start[:0]
        rules, n_kinds, bytes_a_run, fewest = policy, policy.n_kinds, rows.nbytes, numba.get_num_threads()
    ensemble, groups = Ensemble.unplayed(plan, rules.q, rows, n_kinds), plan.recording.groups
    if topology is not None:
        bytes_a_run += topology.nbytes(len(rows), plan.seed)
    for part in portions(plan.runs, bytes_a_run, fewest):
        numbers = np.arange(part.start, part.stop)
        streams = seed_streams(plan.seed, len(rows), numbers)
        states, rows_of = (np.tile(one, (len(numbers), 1)) for one in (start, rows))
        edges_of, groups_of = [edges] * len(numbers), [np.empty(0, np.int64)] * len(numbers)
        if topology is not None:
            graphs = topology.graphs(len(rows), plan.seed, numbers)
            known = {
                key: (topology.committed(graph, n_committed), groups.of(graph) if groups else groups_of[0])
                for key, graph in {id(graph): graph for graph in graphs}.items()
            }
            for run, graph in enumerate(graphs):
                placed(rows, known[id(graph)][0], streams[run], rows_of[run])
            edges_of, groups_of = [graph.edges for graph in graphs], [known[id(graph)][1] for graph in graphs]
        shapes = (3,), (rules.q.shape[1] ** 2,), (ROUNDS_AVERAGED, rules.q.shape[1]), (ROUNDS_AVERAGED,)
        counts = [np.zeros((len(numbers), *shape), np.int64) for shape in shapes]
        runs = Runs(states, rows_of, streams, *counts)
        here = Ensemble(*(values[part] for values in ensemble))
        _play_portion(policy, runs, edges_of, groups_of, plan, here, report)
    return ensemble


def _play_portion(
    policy: Rules | LazyPolicy,
    runs: Runs,
    edges: list[Edges],
    groups: list[np.ndarray],
    plan: Plan,
    ensemble: Ensemble,
    report: Callable[[int], object],
) -> None:
    """Plays `runs` to their ends, writing into `ensemble`; each run has its edges and groups."""
    n_agents, limits = runs.rows.shape[1], np.array([plan.recording.rounds, plan.max_rounds])
    n_pairs, rule = n_agents * pairs_met(edges[0]) or HYPEREDGE_PAIRS, plan.convention
    test = np.array([rule.first_test, rule.successes_needed(n_pairs), ROUNDS_AVERAGED * n_pairs])
    same = all(one is edges[0] for one in edges)
    lazy = policy if isinstance(policy, LazyPolicy) else None

    def prepare(active: np.ndarray) -> None:
        if lazy and runs.done[active, 2].any():
            find_rows(lazy, active, runs.states, runs.rows)

    def more(active: np.ndarray, n_rounds: int) -> None:
        rules = lazy.answers if lazy else policy  # looked up each time, since answers grow
        tables = rules.thresholds, rules.successors, rules.q, (rules.table, rules.sizes) if lazy else ALL_KNOWN
        for some in [active] if same else active[:, None]:
            where = edges[some[0]], groups[some[0]]
            advance(some, runs, ensemble, n_rounds, limits, test, *where, *tables)

    def ended() -> np.ndarray:
        return (ensemble.consensus[:, 0] > 0) & (runs.done[:, 0] >= limits[0])

    play_to_end(more, runs.done[:, 0], plan.max_rounds, n_agents, ended, report, prepare)
