"""Agents of a protocol on a graph: who meets whom, where states start, and groups of nodes that are recorded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import shown
from validation._engine.topology import Graph, NodeGroups, Topology, checked_nodes, placed, places_of
from validation.reactions._kernel import Meetings

NO_GROUPS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Network:
    """Graphs of runs, with the agents on them."""

    topology: Topology
    start: np.ndarray  # shape (K,), numbers of agents
    nodes: dict[int, Any]  # where the agents of a state start: nodes or 'hubs'
    names: Sequence[Hashable]  # of states
    groups: NodeGroups | None

    @classmethod
    def of(
        cls,
        topology: Any,
        pick: str,
        initial_nodes: Mapping[str, Any] | None,
        node_groups: Mapping[Any, Hashable] | Sequence[Hashable] | np.ndarray | None,
        states: Mapping[Hashable, int],
        start: np.ndarray,
    ) -> Network | None:
        """From arguments of `simulate`; None where everybody meets everybody."""
        if topology is None:
            given = {"pick": pick != "edge", "initial_nodes": initial_nodes, "node_groups": node_groups}
            if wrong := [name for name, one in given.items() if one is not None and one is not False]:
                raise InputError(f"{' and '.join(wrong)} without a topology: expected one beside it")
            return None
        groups = None if node_groups is None else NodeGroups.checked(node_groups)
        where = {} if initial_nodes is None else initial_nodes
        if not isinstance(where, Mapping) or not all(state in states for state in where):
            raise InputError(f"initial_nodes = {shown(where)}: expected {{state: nodes}} with states of {[*states]}")
        nodes = {states[state]: checked_nodes(f"initial_nodes[{state!r}]", some) for state, some in where.items()}
        network = cls(Topology.of(topology, pick, ordered=True), start, nodes, [*states], groups)
        if isinstance(network.topology.graph, Graph):
            network.places(graph := network.topology.of_size(network.topology.graph, int(start.sum())))
            network.group_of(graph)
        return network

    @property
    def labels(self) -> list[Hashable]:
        """The labels of groups of nodes."""
        return self.groups.labels if self.groups else []

    @property
    def n_watched(self) -> int:
        """Numbers recorded in a round besides the counts."""
        return 2 + len(self.labels) * len(self.start)

    def places(self, graph: Graph) -> np.ndarray:
        """Nodes of the agents who start at given ones, in the order of `nodes`."""
        places = [
            places_of(f"initial_nodes[{self.names[k]!r}]", nodes, graph, int(self.start[k]), "agents in counts")
            for k, nodes in self.nodes.items()
        ]
        places = np.concatenate([NO_GROUPS, *places])
        if len(np.unique(places)) < len(places):
            raise InputError("initial_nodes has a node twice: expected different nodes, hubs among them")
        return places

    def group_of(self, graph: Graph) -> np.ndarray:
        """The number of the group of each node; none where nodes have none."""
        return self.groups.of(graph) if self.groups else NO_GROUPS

    def arrange(self, seed: int, runs: np.ndarray, streams: np.ndarray) -> tuple[np.ndarray, list[Meetings]]:
        """States of the agents at the start (run, N), and who meets whom in each of these runs."""
        order = [k for k in range(len(self.start)) if k not in self.nodes] + [*self.nodes]
        agents = np.repeat(np.array(order, np.uint8), self.start[order])
        graphs = self.topology.graphs(len(agents), seed, runs)
        known = {
            key: (self.places(graph), Meetings(*graph.edges[:3], self.group_of(graph)))
            for key, graph in {id(graph): graph for graph in graphs}.items()
        }
        states = np.empty((len(runs), len(agents)), np.uint8)
        for run, graph in enumerate(graphs):
            placed(agents, known[id(graph)][0], streams[run], states[run])
        return states, [known[id(graph)][1] for graph in graphs]

    def with_records(self, result: xr.Dataset, recorded: np.ndarray) -> xr.Dataset:
        """The result of runs with what they recorded besides the counts (run, round, n_watched)."""
        edges, between = np.moveaxis(recorded[..., :2], -1, 0)
        label = {"long_name": "share of edges between different states", "units": "1"}
        result = result.assign(interface_density=(("run", "round"), between / edges, label))
        if not self.labels:
            return result
        counts = recorded[..., 2:].reshape(*edges.shape, len(self.labels), len(self.start))
        label = {"long_name": "share of the agents of the group", "units": "1"}
        with np.errstate(invalid="ignore"):  # a graph may have no nodes of a group
            share = counts / counts.sum(-1, keepdims=True)
        share = (("run", "round", "node_group", "state"), share, label)
        return result.assign(group_share=share).assign_coords(node_group=self.labels)

    def options(self) -> dict[str, str]:
        """For the stamp of a result."""
        nodes = {self.names[k]: nodes for k, nodes in self.nodes.items()}
        return {
            "topology": self.topology.option(),
            "pick": self.topology.pick,
            "initial_nodes": shown(nodes) if nodes else "anywhere",
        }
