"""Graphs of agents, as the simulators draw from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import coo_array, csr_array, issparse, triu
from scipy.sparse.csgraph import connected_components

from meanfield import InputError
from meanfield.toolbox import one_of, shown
from theory.pairs import NO_EDGES
from theory.streams import HALF_BITS, seed_streams
from validation._engine.batches import draw_below

LARGEST = 2**32 - 1  # edges are drawn from 32 random bits
MOST_TOLD = 3
SAME = 1e-12  # weights of edges
PICKS, HUBS = ("edge", "agent"), "hubs"
EXPECTED = "expected a graph of networkx, a SciPy sparse matrix, an array of edges (E, 2), or a function that makes one"

Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Graph(NamedTuple):
    """A connected graph of agents 0 to N - 1."""

    edges: Edges  # as in `theory.pairs`
    degree: np.ndarray  # shape (N,)
    nodes: list[Any] | None = None  # names of the agents; None: their numbers

    @property
    def n_agents(self) -> int:
        return len(self.degree)

    @property
    def n_edges(self) -> int:
        return len(self.edges[0])

    @property
    def nbytes(self) -> int:
        """About, with a name for each node."""
        return sum(part.nbytes for part in self.edges) + 2 * self.degree.nbytes


@dataclass(frozen=True)
class Topology:
    """Who meets whom, and where agents are who always say one word.

    `graph` is one for all runs, or a function of the number of agents and of a seed that makes one for each.
    """

    graph: Graph | Callable[[int, int], Any]
    pick: str
    committed_nodes: Sequence[Any] | str | None

    @classmethod
    def of(cls, topology: Any, pick: str, committed_nodes: Sequence[Any] | str | None) -> Topology:
        """From arguments of `simulate`; InputError where they are none."""
        one_of("pick", pick, PICKS)
        if isinstance(committed_nodes, str) and committed_nodes != HUBS:
            raise InputError(f"committed_nodes = {committed_nodes!r}: expected {HUBS!r} or a sequence of nodes")
        if committed_nodes is not None and not isinstance(committed_nodes, str):
            try:
                committed_nodes = list(committed_nodes)
                set(committed_nodes)
            except TypeError:
                raise InputError(f"committed_nodes = {shown(committed_nodes)}: expected a sequence of nodes") from None
        return cls(topology if callable(topology) else graph_of(topology, pick), pick, committed_nodes)

    def graphs(self, n_agents: int, seed: int, runs: np.ndarray) -> list[Graph]:
        """The graph of each run."""
        if isinstance(self.graph, Graph):
            return [self.of_size(self.graph, n_agents)] * len(runs)
        made = []
        for run_seed in (seed_streams(seed, n_agents, runs)[:, 0] >> HALF_BITS).tolist():
            try:
                one = self.graph(n_agents, run_seed)
            except Exception as error:
                raise InputError(
                    f"topology({n_agents}, {run_seed}) fails with {type(error).__name__} ({shown(str(error))}): "
                    "expected a function of the number of agents and of a seed that returns a graph"
                ) from error
            made.append(self.of_size(graph_of(one, self.pick), n_agents))
        return made

    @staticmethod
    def of_size(graph: Graph, n_agents: int) -> Graph:
        """The graph; InputError if its agents are more or fewer."""
        if graph.n_agents != n_agents:
            raise InputError(
                f"topology has {graph.n_agents} nodes: expected one for each of {n_agents} agents, committed ones too"
            )
        return graph

    def committed(self, graph: Graph, number: int) -> np.ndarray:
        """Where the committed agents are, in the order of their words; nowhere if they are anywhere."""
        if self.committed_nodes is None:
            return np.empty(0, np.int64)
        if isinstance(self.committed_nodes, str):
            return np.argsort(-graph.degree, kind="stable")[:number]
        nodes = self.committed_nodes
        if len(nodes) != number:
            raise InputError(
                f"committed_nodes has {len(nodes)} nodes: expected one for each of {number} committed agents"
            )
        known = {node: k for k, node in enumerate(range(graph.n_agents) if graph.nodes is None else graph.nodes)}
        if unknown := [node for node in nodes if node not in known]:
            raise InputError(f"committed_nodes has {shown(unknown)}: expected nodes of the graph")
        if len(set(nodes)) < number:
            raise InputError(f"committed_nodes = {shown(nodes)}: expected different nodes")
        return np.array([known[node] for node in nodes], np.int64)

    def places(self) -> str:
        """Where committed agents are, for the stamp of a result."""
        return "anywhere" if self.committed_nodes is None else str(self.committed_nodes)

    def option(self) -> str:
        """For the stamp of a result."""
        if isinstance(self.graph, Graph):
            digest = sha256(b"".join(part.tobytes() for part in self.graph.edges)).hexdigest()[:16]
            return f"graph of {self.graph.n_agents} nodes and {self.graph.n_edges} edges, {digest}"
        return f"graphs of {getattr(self.graph, '__name__', type(self.graph).__name__)}"


def graph_of(topology: Any, pick: str) -> Graph:
    """The graph of an argument; InputError where it is none, or where some agents can't reach others."""
    matrix, nodes = _matrix(topology)
    if complaints := _complaints(matrix, nodes):
        raise InputError(f"topology {'; '.join(complaints)}")
    matrix = matrix / matrix.data.max()
    if abs(matrix - matrix.T).sum() > 0:  # who is named first does not matter
        matrix = csr_array(matrix + matrix.T)
    upper = coo_array(triu(matrix, 1))
    weight = upper.data.astype(float)
    if len(weight) > LARGEST:
        raise InputError(f"topology has {len(weight)} edges: expected at most {LARGEST}")
    if pick == "agent":
        strength = matrix.sum(axis=1)
        weight = weight / strength[upper.row] + weight / strength[upper.col]
    ends = np.column_stack([upper.row, upper.col]).astype(np.uint32)
    return Graph((ends, *_aliases(weight), *NO_EDGES[3:]), np.diff(matrix.indptr), nodes)


def pairs_met(edges: Edges) -> int:
    """Pairs of words that are counted in an interaction."""
    return int(edges[4][1]) if edges[4].size == 2 else 1


def between_groups(numbers: np.ndarray, weight: np.ndarray) -> Edges:
    """Edges between groups of so many agents, who stand one group after the other, of this weight for ordered pairs."""
    one, other = np.nonzero(np.triu(weight))
    same, first = one == other, np.cumsum(numbers) - numbers
    ends, sizes = np.column_stack([one, other]), np.column_stack([numbers[one], numbers[other] - same])
    return (
        first[ends].astype(np.uint32),
        *_aliases(weight[one, other] / (1 + same)),
        sizes.astype(np.uint32),
        NO_EDGES[4],
    )


@njit(cache=True)
def placed(start, committed, stream, states):
    """Writes the states of the agents to the nodes: the last ones at `committed`, all others anywhere."""
    taken = np.zeros(states.size, np.bool_)
    free = start.size - committed.size
    for k in range(committed.size):
        taken[committed[k]] = True
        states[committed[k]] = start[free + k]
    values = start[:free].copy()
    k = 0
    for node in range(states.size):
        if not taken[node]:
            swapped = k + draw_below(stream, free - k)
            states[node] = values[swapped]
            values[swapped] = values[k]
            k += 1


def _matrix(topology: Any) -> tuple[csr_array, list[Any] | None]:
    """Weights of edges as a square matrix, and names of nodes."""
    if hasattr(topology, "adj") and hasattr(topology, "nodes"):
        import networkx

        if not len(topology):
            raise InputError(f"topology is an empty graph: {EXPECTED}")
        nodes = list(topology.nodes)
        return csr_array(networkx.to_scipy_sparse_array(topology, nodes, dtype=float)), nodes
    if issparse(topology):
        if topology.shape[0] != topology.shape[1]:
            raise InputError(f"topology is a matrix of shape {topology.shape}: expected a square one")
        matrix = csr_array(topology, dtype=float, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix, None
    try:
        rows = np.asarray(topology)
    except ValueError:
        raise InputError(f"topology = {shown(topology)}: {EXPECTED}") from None
    if rows.ndim != 2 or rows.shape[1] not in (2, 3) or not len(rows):
        raise InputError(f"topology is of shape {rows.shape}: {EXPECTED}")
    if rows.dtype.kind not in "iuf" or not (rows[:, :2] == np.floor(rows[:, :2])).all() or rows[:, :2].min() < 0:
        raise InputError(
            "topology has edges between other nodes than numbers from 0 on: networkx.from_edgelist(edges) takes names"
        )
    if not rows[:, :2].max() <= len(rows):  # or it could not be connected
        raise InputError(f"topology has {len(rows)} edges and a node {rows[:, :2].max():g}: expected a connected graph")
    ends = rows[:, :2].astype(np.int64)
    size = int(ends.max()) + 1
    weight = rows[:, 2].astype(float) if rows.shape[1] == 3 else np.ones(len(rows))
    return csr_array(coo_array((weight, ends.T), shape=(size, size))), None


def _complaints(matrix: csr_array, nodes: list[Any] | None) -> list[str]:
    """Faults of a graph."""

    def named(numbers: np.ndarray) -> str:
        some = ", ".join(str(k if nodes is None else nodes[k]) for k in numbers[:MOST_TOLD].tolist())
        return f"{some} and {len(numbers) - MOST_TOLD} more" if len(numbers) > MOST_TOLD else some

    if not (np.isfinite(matrix.data) & (matrix.data > 0)).all():
        wrong = matrix.data[~(np.isfinite(matrix.data) & (matrix.data > 0))]
        return [f"has edges of weight {wrong[0]:g}: expected positive numbers, and no edge in place of 0"]
    found = []
    if len(loops := np.flatnonzero(matrix.diagonal())):
        found.append(f"has edges from nodes to themselves ({named(loops)}): expected none")
    number, label = connected_components(matrix, directed=False)
    alone = np.flatnonzero(np.bincount(label)[label] == 1)
    if len(alone):
        found.append(f"has nodes without neighbours ({named(alone)}): expected none")
    if number > 1 + len(alone):
        sizes = np.sort(np.bincount(label))[::-1]
        found.append(
            f"has {number} parts without an edge between them, of {', '.join(map(str, sizes[:MOST_TOLD]))} nodes: "
            "expected a connected graph, such as its largest part"
        )
    return found


@njit(cache=True)
def _split(part, other, small, large):
    """Walker's table: each of the E places is filled by its own edge and at most one other."""
    n_small, n_large = 0, 0
    for k in range(part.size):
        if part[k] < 1.0:
            small[n_small] = k
            n_small += 1
        else:
            large[n_large] = k
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        low, high = small[n_small], large[n_large - 1]
        other[low] = high
        part[high] -= 1.0 - part[low]
        if part[high] < 1.0:
            n_large -= 1
            small[n_small] = high
            n_small += 1
    for k in range(n_small):
        part[small[k]] = 1.0
    for k in range(n_large):
        part[large[k]] = 1.0


def _aliases(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Random bits from which on another edge takes the place of each, and that edge; none where all weigh the same."""
    if np.ptp(weight) <= SAME * weight.max():
        return NO_EDGES[1:3]
    part, other = weight / weight.mean(), np.arange(len(weight), dtype=np.int64)
    _split(part, other, np.empty(len(part), np.int64), np.empty(len(part), np.int64))
    whole = part >= 1.0
    other[whole] = np.flatnonzero(whole)
    threshold = np.where(whole, 0.0, part) * 2.0**64
    return threshold.astype(np.uint64), other.astype(np.uint32)
