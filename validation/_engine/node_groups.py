"""Labels of the nodes of graphs, by which shares of words are recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from meanfield import InputError
from meanfield.toolbox import shown
from validation._engine.topology import Graph


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
