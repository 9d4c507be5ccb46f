"""Aggregates of flows, between which a stationary law is balanced exactly."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from meanfield._closed_classes import classes_of
from meanfield._elimination import stationary_law
from meanfield._memory import MemorySpace

LEAKS = (1e-3, 1e-6, 1e-9, 1e-12)
MAX_AGGREGATES = 80


class Aggregates:
    """A partition of the flows, the same for all laws.

    Parameters
    ----------
    label
        The aggregate of each flow, shape (M,), from 0 on.
    said
        P(said | flow, heard), shape (M, W, W).
    successors
        As `flow_successors`, shape (M, W, W).
    """

    def __init__(self, label: np.ndarray, said: np.ndarray, successors: np.ndarray) -> None:
        self._label, self._n = label, int(label.max()) + 1
        flows = np.arange(len(label))
        self._members = csr_array((np.ones(len(label)), (label, flows)), shape=(self._n, len(label)))
        pair = label[:, None, None] * self._n + label[successors]
        self._pairs, number = np.unique(pair, return_inverse=True)
        number = number.reshape(pair.shape)
        # One matrix for each word heard, from the laws of flows to the weights that move between aggregates
        self._moved = [
            coo_array(
                (said[:, heard].ravel(), (number[:, heard].ravel(), np.repeat(flows, said.shape[2]))),
                shape=(len(self._pairs), len(label)),
            ).tocsr()
            for heard in range(said.shape[1])
        ]

    def balance(self, law: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """Rescale the weight of each aggregate to the stationary law of the chain between them that `law` implies."""
        moved = sum(matrix @ law * chance for matrix, chance in zip(self._moved, heard, strict=True))
        chain = np.zeros((law.shape[1], self._n * self._n))
        chain[:, self._pairs] = np.asarray(moved).T
        factor = _factors(chain.reshape(-1, self._n, self._n), (self._members @ law).T)
        return law * factor.T[self._label]


class LawAggregates:
    """A partition of the flows for each law.

    Parameters
    ----------
    label
        The aggregate of each flow, shape (M, laws), from 0 on.
    said, successors
        As for `Aggregates`.
    """

    def __init__(self, label: np.ndarray, said: np.ndarray, successors: np.ndarray) -> None:
        self._label, self._said, self._successors = label, said, successors
        self._n = int(label.max()) + 1

    def select(self, laws: np.ndarray) -> LawAggregates:
        """For some of the laws."""
        return LawAggregates(self._label[:, laws], self._said, self._successors)

    def balance(self, law: np.ndarray, heard: np.ndarray) -> np.ndarray:
        """As `Aggregates.balance`."""
        n, laws = self._n, law.shape[1]
        place = self._label + n * np.arange(laws)
        weight = np.bincount(place.ravel(), law.ravel(), n * laws).reshape(laws, n)
        chain = np.zeros(laws * n * n)
        for b, word in np.ndindex(self._said.shape[1:]):
            moved = law * heard[b] * self._said[:, b, word, None]
            pair = place * n + self._label[self._successors[:, b, word]]
            chain += np.bincount(pair.ravel(), moved.ravel(), len(chain))
        factor = _factors(chain.reshape(laws, n, n), weight)
        return law * np.take_along_axis(factor.T, self._label, 0)


def _factors(moved: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """By what to multiply the weights of aggregates, shape (laws, n), for moved weights of shape (laws, n, n)."""
    occupied = weight > 0
    chain = moved / np.where(occupied, weight, 1)[:, :, None]
    return np.divide(stationary_law(chain, occupied), weight, out=np.zeros_like(weight), where=occupied)


def own_words(q: np.ndarray, space: MemorySpace) -> np.ndarray:
    """A label for each flow: the own words that it remembers, and the sets that agents leave only by rare answers.

    A set is closed but for answers of probability below 1e-3, 1e-6, 1e-9 or 1e-12.
    """
    W, H = space.n_words, space.memory_length
    flow = np.arange(space.n_digits ** (H - 1) * W)
    label = flow % W
    for k in range(H - 1):
        label = label * W + flow // W // space.n_digits**k % space.n_digits // W
    for leak in LEAKS:
        classes = classes_of(q, space, tuple(range(W)), leak)
        if sum(len(np.unique(label[flows])) for flows in classes) == len(np.unique(label[np.concatenate(classes)])):
            continue  # own words tell these sets apart
        label = label * (len(flow) + 1)
        for number, flows in enumerate(classes, start=1):
            label[flows] += number
        label = np.unique(label, return_inverse=True)[1]
    return label


def strong_couplings(law: np.ndarray, heard: np.ndarray, said: np.ndarray, successors: np.ndarray) -> LawAggregates:
    """Each flow together with the one to or from which it moves most, and groups likewise, until there are few.

    Source: strength-based aggregates as in De Sterck et al., SIAM J. Sci. Comput. 30, 2235 (2008).
    """
    M, laws = law.shape
    nodes = np.arange(M * laws).reshape(M, laws)
    start = np.broadcast_to(nodes[:, None, None, :], (*successors.shape, laws)).ravel()
    end = nodes[successors].ravel()
    weight = (law[:, None, None, :] * said[..., None] * heard[None, :, None, :]).ravel()
    label, n = nodes.ravel(), M * laws
    while n > laws:
        a, b = label[start], label[end]
        between = (a != b) & (weight > 0)
        flow = coo_array((weight[between], (a[between], b[between])), shape=(n, n)).tocsr()
        both = (flow + flow.T).tocsr()
        strongest = _largest_entries(both, n)
        joined = connected_components(csr_array((np.ones(n), (np.arange(n), strongest)), shape=(n, n)), directed=False)
        if joined[0] == n or _numbered(joined[1][label], M, laws).max() < 8:
            break
        n, label = joined[0], joined[1][label]
        if _numbered(label, M, laws).max() < MAX_AGGREGATES:
            break
    return LawAggregates(_numbered(label, M, laws), said, successors)


def _largest_entries(matrix: csr_array, n: int) -> np.ndarray:
    """The column of the largest entry of each row; the row's own number where it has none."""
    largest = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    order = np.lexsort((matrix.data, rows))
    largest[rows[order]] = matrix.indices[order]  # the last one of a row stays
    return largest


def _numbered(label: np.ndarray, M: int, laws: int) -> np.ndarray:
    """Labels of all laws together as labels from 0 on within each law, shape (M, laws)."""
    label = label.reshape(M, laws)
    return np.stack([np.unique(column, return_inverse=True)[1] for column in label.T], axis=1)
