"""Closed classes of an agent's Markov chain: sets of memories that, once entered, are never left."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from meanfield.core._space import MemorySpace


def flow_successors(space: MemorySpace) -> np.ndarray:
    """The chain of an agent seen just after it speaks, shape (M, W, W): M = W^{2H-1} flows.

    A flow is (the H - 1 interactions kept, the word just said), with the partner's word still open; a flow and a word
    heard make a full memory. Entry [flow, heard, said] is the flow after hearing `heard` and then saying `said`.
    """
    W, D = space.n_words, space.n_digits
    n_kept = D ** (space.memory_length - 1)
    full = W * np.arange(W * n_kept)[:, None] + np.arange(W)  # flow and word heard → full memory
    return W * (full % n_kept)[:, :, None] + np.arange(W)


def said_next(q: np.ndarray, space: MemorySpace) -> np.ndarray:
    """P(said | flow, heard), shape (M, W, W): the policy of full memories in the order of `flow_successors`."""
    return q[space.offset(space.memory_length) :].reshape(-1, space.n_words, space.n_words)


def closed_classes(
    q: np.ndarray, space: MemorySpace, heard: tuple[int, ...] | Bool[np.ndarray, "words words"], leak: float = 0.0
) -> list[np.ndarray]:
    """The closed classes of flows, one array each, if agents hear all of the words `heard` and no others.

    In groups `heard` says whether one who says a may hear b.

    A class is left only by answers of probability at most `leak`. At 0 exact zeros of the policy count: a memory left
    with probability 2e-16 is not closed.
    """
    W, successors = space.n_words, flow_successors(space)
    hearable = np.tile(np.isin(range(W), heard), (W, 1)) if isinstance(heard, tuple) else heard
    n_flows = successors.shape[0]
    possible = (said_next(q, space) > leak) & hearable[np.arange(n_flows) % W, :, None]
    if possible.all():
        return [np.arange(n_flows)]  # H interactions lead from any flow to any other
    source = np.broadcast_to(np.arange(n_flows)[:, None, None], successors.shape)
    source, target = source[possible], successors[possible]
    return never_left(csr_array((np.ones(len(source), bool), (source, target)), shape=(n_flows, n_flows)))


def never_left(graph: csr_array) -> list[np.ndarray]:
    """The smallest sets of nodes that no edge leaves."""
    n_components, label = connected_components(graph, connection="strong")
    source, target = graph.nonzero()
    leaks = np.zeros(n_components, bool)
    leaks[label[source[label[source] != label[target]]]] = True
    order = np.argsort(label, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(label, minlength=n_components))[:-1])
    return [members[component] for component in np.flatnonzero(~leaks)]
