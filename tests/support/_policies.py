"""Policies, compositions and the rate equation in the form that tests take."""

from __future__ import annotations

import jax
import numpy as np
import xarray as xr

import meanfield
from meanfield import core
from meanfield.toolbox import space_of

_drift, _jacobian_product = jax.jit(core.drift), jax.jit(core.jacobian_product)


def random_policy(seed: int, n_words: int = 2, memory_length: int = 1, concentration: float = 1.0) -> xr.Dataset:
    """A policy with Dirichlet rows; the words are a, b, c, …"""
    space = meanfield.MemorySpace(n_words, memory_length)
    q = np.random.default_rng(seed).dirichlet([concentration] * n_words, size=space.n_states)
    return meanfield.make_policy(q, [chr(ord("a") + w) for w in range(n_words)], model="random")


def random_composition(seed: int, n_states: int) -> np.ndarray:
    """A composition with all states occupied."""
    return np.random.default_rng(seed).dirichlet(np.ones(n_states))


def drift(x, q):
    """dx/dt of agents of one policy."""
    return np.asarray(_drift(core.WordGame(q), np.asarray(x)))


def linearised_drift(v, x, q):
    """J(x)v of agents of one policy."""
    return np.asarray(_jacobian_product(core.WordGame(q), np.asarray(x), np.asarray(v)))


def relabelled_states(space: meanfield.MemorySpace, order: list[int]) -> np.ndarray:
    """For each state the state in which word w is called order[w]."""
    return np.array([space.state([(order[a], order[b]) for a, b in space.memory(i)]) for i in range(space.n_states)])


def relabelled(policy: xr.Dataset, order: list[int]) -> xr.Dataset:
    """The same policy with its words listed in another order: word w becomes number order[w]."""
    space = space_of(policy)
    q = np.empty_like(policy["q"].values)
    q[np.ix_(relabelled_states(space, order), order)] = policy["q"].values
    words = np.empty(space.n_words, dtype=object)
    words[order] = meanfield.toolbox.words_of(policy)
    return meanfield.make_policy(q, [str(w) for w in words], model="random")


def majority_policy(length, p):
    """Say the word that one has heard more often, with probability p; a coin where both were heard equally often."""
    space = meanfield.MemorySpace(2, length)
    heard = [sum(1 if partner == 0 else -1 for _, partner in space.memory(i)) for i in range(space.n_states)]
    return meanfield.make_policy(np.array([0.5 + (p - 0.5) * np.sign(h) for h in heard]), ["a", "b"])


def loyal_policy(seed, length, strength=1.5, concentration=3.0):
    """Random choices, tilted towards the words that are in memory most often: several conventions hold themselves."""
    policy = random_policy(seed, 3, length, concentration)
    space = space_of(policy)
    counts = [np.bincount(np.ravel(space.memory(i)).astype(int), minlength=3) for i in range(space.n_states)]
    q = policy["q"].values * np.exp(strength * np.array(counts))
    return meanfield.make_policy(q / q.sum(1, keepdims=True), ["a", "b", "c"])


# What agents with a full memory of two words and three interactions say, for the first half of the memories; in the
# other half, the same with the words exchanged. Found by a search for a complex eigenvalue that leads.
OSCILLATING = "++-++---++-++-+++-+--++-+--++---"


def oscillating_pair(error=1e-3):
    """W = 2, H = 3: a policy, symmetric under exchange of its words, whose mixed state is an unstable focus."""
    half = np.array([sign == "+" for sign in OSCILLATING])
    said = np.concatenate([np.full(21, 0.5), half, ~half[::-1]])
    return meanfield.make_policy(error + (1 - 2 * error) * said, ["a", "b"])


def majority(start: float, fidelity: float = 0.995, length: int = 3):
    """Say the word heard more often, with that fidelity; P(first word) is `start` with an empty memory."""
    first = majority_policy(length, fidelity)["q"].values[:, 0].copy()
    first[0] = start
    return meanfield.make_policy(first, ["a", "b"], model="majority")
