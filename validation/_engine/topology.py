"""Graphs of agents, as the simulators draw from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse, triu
from scipy.sparse.csgraph import connected_components

from meanfield import InputError
from meanfield.core import HEARS
from meanfield.toolbox import compiled, one_of, shown
from theory.pairs import MATCHED, NO_EDGES
from theory.streams import HALF_BITS, seed_streams
from validation._engine.batches import draw_below

LARGEST = 2**32 - 1  # edges are drawn from 32 random bits
MOST_TOLD = 3
SAME = 1e-12  # weights of edges
PICKS, HUBS = ("edge", "agent"), "hubs"
EXPECTED = (
    "expected a graph of networkx, a SciPy sparse matrix, an array of edges (E, 2), a list of hyperedges that are "
    "sets, a hypergraph of XGI, or a function that makes one"
)
PAIRWISE = NO_EDGES[4]

Edges = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Graph(NamedTuple):
    """A connected graph or hypergraph of agents 0 to N - 1."""

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
    def is_pairwise(self) -> bool:
        """Whether all edges have two ends."""
        return not self.edges[5].size

    @property
    def nbytes(self) -> int:
        """About, with a name for each node."""
        return sum(part.nbytes for part in self.edges) + 2 * self.degree.nbytes


@dataclass(frozen=True)
class Topology:
    """Who meets whom, and where agents are who always say one word.

    `graph` is one for all runs, or a function of the number of agents and of a seed that makes one for each. `meeting`
    is how agents meet along edges, as in `theory.pairs`.
    """

    graph: Graph | Callable[[int, int], Any]
    pick: str
    committed_nodes: Sequence[Any] | str | None
    meeting: np.ndarray
    ordered: bool

    @classmethod
    def of(
        cls,
        topology: Any,
        pick: str = "edge",
        committed_nodes: Sequence[Any] | str | None = None,
        meeting: np.ndarray = PAIRWISE,
        ordered: bool = False,
    ) -> Topology:
        """From arguments of `simulate`; InputError where they are not as it expects."""
        one_of("pick", pick, PICKS)
        if committed_nodes is not None:
            committed_nodes = checked_nodes("committed_nodes", committed_nodes)
        graph = topology if callable(topology) else graph_of(topology, pick, meeting, ordered)
        return cls(graph, pick, committed_nodes, meeting, ordered)

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
            made.append(self.of_size(graph_of(one, self.pick, self.meeting, self.ordered), n_agents))
        return made

    def nbytes(self, n_agents: int, seed: int) -> int:
        """About, of a graph that belongs to one run only."""
        return 0 if isinstance(self.graph, Graph) else self.graphs(n_agents, seed, np.arange(1))[0].nbytes

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
        return places_of("committed_nodes", self.committed_nodes, graph, number, "committed agents")

    def places(self) -> str:
        """Where committed agents are, for the stamp of a result."""
        return "anywhere" if self.committed_nodes is None else str(self.committed_nodes)

    def option(self) -> str:
        """For the stamp of a result."""
        if isinstance(self.graph, Graph):
            return f"graph of {self.graph.n_agents} nodes and {self.graph.n_edges} edges, {digest(self.graph)}"
        return f"graphs of {getattr(self.graph, '__name__', type(self.graph).__name__)}"


class NodeGroups(NamedTuple):
    """A label for each node: in the order of the nodes, or by their names."""

    given: Sequence[Any] | Mapping[Any, Any]
    labels: list[Any]  # different ones, in the order in which they come first

    @classmethod
    def checked(cls, node_groups: Any) -> NodeGroups:
        """From an argument; InputError where it is none."""
        expected = "expected a label for each node, all strings or all whole numbers, or a mapping from nodes to labels"
        try:
            given = dict(node_groups) if isinstance(node_groups, Mapping) else np.asarray(node_groups, object).tolist()
            labels = list(dict.fromkeys(given.values() if isinstance(given, dict) else given))
        except (TypeError, ValueError):
            raise InputError(f"node_groups = {shown(node_groups)}: {expected}") from None
        alike = any(all(isinstance(label, kind) for label in labels) for kind in (str, (int, np.integer)))
        if not labels or not alike or not isinstance(given, (dict, list)):
            raise InputError(f"node_groups = {shown(node_groups)}: {expected}")
        return cls(given, labels)

    def of(self, graph: Graph) -> np.ndarray:
        """The number of the label of each node, shape (N,); InputError where a node has none."""
        number = {label: k for k, label in enumerate(self.labels)}
        if isinstance(self.given, Mapping):
            nodes = range(graph.n_agents) if graph.nodes is None else graph.nodes
            if missing := [node for node in nodes if node not in self.given]:
                raise InputError(f"node_groups lacks {shown(missing)}: expected a label for each node")
            return np.array([number[self.given[node]] for node in nodes])
        if len(self.given) != graph.n_agents:
            raise InputError(
                f"node_groups has {len(self.given)} labels: expected one for each of {graph.n_agents} nodes"
            )
        return np.array([number[label] for label in self.given])


def digest(graph: Graph) -> str:
    """A hash of the edges of a graph and of their weights, however agents meet along them."""
    return sha256(b"".join(part.tobytes() for part in (*graph.edges[:4], graph.edges[5]))).hexdigest()[:16]


def checked_nodes(name: str, nodes: Any) -> list[Any] | str:
    """A list of nodes, or 'hubs'; InputError for anything else."""
    if isinstance(nodes, str) and nodes != HUBS:
        raise InputError(f"{name} = {nodes!r}: expected {HUBS!r} or a sequence of nodes")
    try:
        nodes = nodes if isinstance(nodes, str) else list(nodes)
        set(nodes)
    except TypeError:
        raise InputError(f"{name} = {shown(nodes)}: expected a sequence of nodes") from None
    return nodes


def places_of(name: str, nodes: Sequence[Any] | str, graph: Graph, number: int, agents: str) -> np.ndarray:
    """Numbers of the nodes of so many `agents`, as the argument `name` says."""
    if isinstance(nodes, str):
        return np.argsort(-graph.degree, kind="stable")[:number]
    if len(nodes) != number:
        raise InputError(f"{name} has {len(nodes)} nodes: expected one for each of {number} {agents}")
    known = {node: k for k, node in enumerate(range(graph.n_agents) if graph.nodes is None else graph.nodes)}
    if unknown := [node for node in nodes if node not in known]:
        raise InputError(f"{name} has {shown(unknown)}: expected nodes of the graph")
    if len(set(nodes)) < number:
        raise InputError(f"{name} = {shown(nodes)}: expected different nodes")
    return np.array([known[node] for node in nodes], np.int64)


def graph_of(topology: Any, pick: str, meeting: np.ndarray = PAIRWISE, ordered: bool = False) -> Graph:
    """The graph of an argument; InputError where it is not a graph, or where some agents can't reach others.

    With `ordered` there are aliases for 2E pairs: 2e has the ends of the edge e in their order, 2e + 1 the second one
    first. The first of a pair is the agent that is picked.
    """
    if hyperedges := _hyperedges(topology):
        if ordered:
            raise InputError("topology has hyperedges: expected edges of two for agents who meet in ordered pairs")
        return _hypergraph(*hyperedges, pick, meeting)
    matrix, nodes = _matrix(topology)
    if complaints := _complaints(matrix, nodes):
        raise InputError(f"topology {'; '.join(complaints)}")
    matrix = matrix / matrix.data.max()
    if abs(matrix - matrix.T).sum() > 0:  # who is named first does not matter
        matrix = csr_array(matrix + matrix.T)
    upper = coo_array(triu(matrix, 1))
    most = LARGEST // 2 if ordered else LARGEST
    if len(upper.data) > most:
        raise InputError(f"topology has {len(upper.data)} edges: expected at most {most}")
    weight = upper.data.astype(float)
    first, second = weight, weight
    if pick == "agent":
        strength = matrix.sum(axis=1)
        first, second = weight / strength[upper.row], weight / strength[upper.col]
    weight = np.column_stack([first, second]).ravel() if ordered else first + second
    ends = np.column_stack([upper.row, upper.col]).astype(np.uint32)
    aliases, members = _aliases(weight), NO_EDGES[5]
    if _matched(meeting) and len(aliases[0]):
        raise InputError("topology has edges that meet at different rates: expected none beside schedule = 'matching'")
    if len(meeting) and not _matched(meeting):
        members, ends = ends.ravel(), _places(np.full(len(ends), 2))
    return Graph((ends, *aliases, NO_EDGES[3], meeting, members), np.diff(matrix.indptr), nodes)


def _hyperedges(topology: Any) -> tuple[list[Any], list[Any] | None] | None:
    """Hyperedges of an argument and names of their nodes, None for numbers; None where it is not a hypergraph."""
    if hasattr(getattr(topology, "edges", None), "members"):
        return list(topology.edges.members()), list(topology.nodes)
    if isinstance(topology, Sequence) and len(topology) and all(isinstance(one, Set) for one in topology):
        return list(topology), None
    return None


def _hypergraph(hyperedges: list[Any], nodes: list[Any] | None, pick: str, meeting: np.ndarray) -> Graph:
    """The hypergraph of sets of nodes; InputError as in `graph_of`."""
    if _matched(meeting):
        raise InputError("topology has hyperedges: expected edges of two beside schedule = 'matching'")
    sizes = np.array([len(one) for one in hyperedges])
    if not len(sizes) or sizes.min() < 2:
        raise InputError("topology has no hyperedges, or some of fewer than two nodes: expected at least two in each")
    listed = [node for one in hyperedges for node in one]
    if nodes is None and not all(isinstance(node, (int, np.integer)) and node >= 0 for node in listed):
        raise InputError(
            "topology has hyperedges of other nodes than numbers from 0 on: xgi.Hypergraph(topology) takes names"
        )
    if nodes is None and max(listed) >= len(listed):
        raise InputError(
            f"topology has {len(listed)} places in hyperedges and a node {max(listed)}: expected all nodes"
        )
    number = {node: k for k, node in enumerate(nodes)} if nodes is not None else range(max(listed) + 1)
    members = np.concatenate([np.sort([number[node] for node in one]) for one in hyperedges]).astype(np.uint32)
    if len(members) > LARGEST:
        raise InputError(f"topology has {len(members)} places in hyperedges: expected at most {LARGEST}")
    degree, ends = np.bincount(members, minlength=len(number)), _places(sizes)
    chain = np.delete(np.arange(len(members)), ends[:, 1] - 1)  # each member and the next one
    linked = coo_array((np.ones(len(chain)), (members[chain], members[chain + 1])), shape=2 * (len(number),))
    if complaints := _complaints(csr_array(linked), nodes):
        raise InputError(f"topology {'; '.join(complaints)}")
    weight = np.add.reduceat(1 / degree[members], ends[:, 0]) if pick == "agent" else np.ones(len(sizes))
    rule = meeting if len(meeting) else np.array([HEARS.index("majority"), 0])
    return Graph((ends, *_aliases(weight), NO_EDGES[3], rule, members), degree, nodes)


def _matched(meeting: np.ndarray) -> bool:
    return len(meeting) > 0 and meeting[0] == MATCHED


def _places(sizes: np.ndarray) -> np.ndarray:
    """The first place of hyperedges of these sizes among all members, and the one after their last, shape (E, 2)."""
    last = np.cumsum(sizes)
    return np.column_stack([last - sizes, last]).astype(np.uint32)


def pairs_met(edges: Edges) -> int:
    """Pairs of words that are counted in an interaction; 0 where their number varies."""
    return 1 if not edges[4].size else int(edges[4][1]) if edges[4].size == 2 else 0


def between_groups(numbers: np.ndarray, weight: np.ndarray) -> Edges:
    """Edges between groups of so many agents, who stand one group after the other, of this weight for ordered pairs."""
    one, other = np.nonzero(np.triu(weight))
    same, first = one == other, np.cumsum(numbers) - numbers
    ends, sizes = np.column_stack([one, other]), np.column_stack([numbers[one], numbers[other] - same])
    return (
        first[ends].astype(np.uint32),
        *_aliases(weight[one, other] / (1 + same)),
        sizes.astype(np.uint32),
        *NO_EDGES[4:],
    )


@compiled
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
        try:
            return csr_array(networkx.to_scipy_sparse_array(topology, nodes, dtype=float)), nodes
        except (TypeError, ValueError):
            raise InputError("topology has an edge whose weight is no number: expected positive numbers") from None
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


@compiled
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
