"""Policies that are worse than reality: seeded families of what models produce and of what breaks solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import xarray as xr

import meanfield

FILTER_FLOOR = 2.2e-16


@cache
def memories(n_words: int, memory_length: int) -> tuple[np.ndarray, np.ndarray]:
    """The own words and the partners' words of every state, newest first, shape (S, H); -1 where none is remembered."""
    space = meanfield.MemorySpace(n_words, memory_length)
    own = np.full((space.n_states, memory_length), -1)
    partner = own.copy()
    for length in range(1, memory_length + 1):
        states = np.arange(space.offset(length), space.offset(length + 1))
        digits = (states - space.offset(length))[:, None] // space.n_digits ** np.arange(length) % space.n_digits
        own[states, :length], partner[states, :length] = np.divmod(digits, n_words)
    return own, partner


def counted(n_words: int, memory_length: int, weight_own: np.ndarray, weight_partner: np.ndarray) -> np.ndarray:
    """Σ over the remembered interactions of the weight of their age, for each word: shape (S, W)."""
    own, partner = memories(n_words, memory_length)
    words = np.arange(n_words)[:, None]
    said, heard = (side[:, None, :] == words for side in (own, partner))
    return said @ weight_own + heard @ weight_partner


def softmax(logits: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    weight = np.exp(logits - logits.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True)


def _logits(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """Logits of an agent who follows what it said and heard, more or less recently, with a bias and whims."""
    age = np.arange(H)
    own = random.normal(0.3, 0.6) * random.uniform(0.3, 1.2) ** age
    partner = random.exponential(1.5) * random.uniform(0.3, 1.2) ** age
    bias = random.normal(0, 0.3, W)
    whims = random.exponential(0.2) * random.standard_normal((meanfield.MemorySpace(W, H).n_states, W))
    return random.uniform(0.3, 2) * counted(W, H, own, partner) + bias + whims


def noisy_majority(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """A softmax of weighted counts, as of a model at some temperature."""
    return softmax(_logits(random, W, H))


def near_deterministic(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """The likeliest word or any word, but for a floor between 1e-16 and 1e-3, the same in all memories or not."""
    logits = _logits(random, W, H) if random.random() < 0.7 else random.standard_normal((_n_states(W, H), W))
    best = np.eye(W, dtype=bool)[logits.argmax(1)]
    sizes = len(best) if random.random() < 0.5 else 1
    floor = 10 ** random.uniform(-16, -3, size=(sizes, 1))
    return np.where(best, 1 - (W - 1) * floor, floor)


def nucleus_filtered(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """The mean over two orders of presentation, each cut to its nucleus before: other words get 2.2e-16."""
    top = random.uniform(0.8, 0.97)
    order_effect = random.exponential(1.0)
    plain = random.uniform(1, 4) * _logits(random, W, H)
    total = np.zeros_like(plain)
    for sign in (1, -1):
        p = softmax(plain + sign * order_effect * np.linspace(-1, 1, W))
        falling = np.argsort(-p, axis=1, kind="stable")
        sorted_p = np.take_along_axis(p, falling, 1)
        kept = np.zeros_like(p, dtype=bool)
        np.put_along_axis(kept, falling, sorted_p.cumsum(1) - sorted_p < top, 1)
        cut = np.where(kept, p, 0.0)
        total += cut / cut.sum(1, keepdims=True) / 2
    p = np.maximum(total, FILTER_FLOOR)
    return p / p.sum(1, keepdims=True)


def decomposable(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """Agents who keep to one of several cycles of their own words and hardly ever leave it, whatever they hear.

    The own words of a memory are a node of a de Bruijn graph. A random successor of every node is kept to; leaving it
    has a probability between 1e-14 and 1e-2 that may depend on what was heard.
    """
    own, partner = memories(W, H)
    node = ((own + 1) * (W + 1) ** np.arange(H)).sum(1)
    _, number = np.unique(node, return_inverse=True)
    kept_to = random.integers(W, size=number.max() + 1)[number]
    leave = 10 ** random.uniform(-14, -2)
    if random.random() < 0.5:
        leave = leave * np.exp(random.normal(0, 1) * ((partner == 0).sum(1) - H / 2))
    leave = np.broadcast_to(np.minimum(leave, 0.3), len(own))[:, None]
    return np.where(np.eye(W, dtype=bool)[kept_to], 1 - leave, leave / (W - 1))


def exact_corners(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """Some of the entries are exactly 0 or 1."""
    q = softmax(_logits(random, W, H))
    certain = random.random(len(q)) < random.choice([0.1, 0.5, 0.9, 1.0])
    best = q.argmax(1) if random.random() < 0.7 else random.integers(W, size=len(q))
    return np.where(certain[:, None], np.eye(W)[best], q)


def uniform(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """Rows uniform on the simplex."""
    return random.dirichlet(np.ones(W), size=_n_states(W, H))


def constant(random: np.random.Generator, W: int, H: int) -> np.ndarray:
    """The same in every memory."""
    return np.repeat(random.dirichlet(np.full(W, 0.5), size=1), _n_states(W, H), axis=0)


FAMILIES: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    function.__name__: function
    for function in (
        noisy_majority,
        near_deterministic,
        nucleus_filtered,
        decomposable,
        exact_corners,
        uniform,
        constant,
    )
}


def battery(number: int, n_words: int, memory_length: int, seed: int = 0) -> Iterator[tuple[str, xr.Dataset]]:
    """`number` policies, the families in turn, each with its family's name; the same for the same arguments."""
    names = list(FAMILIES)
    for i in range(number):
        family = names[i % len(names)]
        random = np.random.default_rng([seed, n_words, memory_length, i])
        yield family, policy_of(FAMILIES[family](random, n_words, memory_length), f"{family} {i}")


def policy_of(q: np.ndarray, model: str) -> xr.Dataset:
    """A policy over the words a, b, c, …"""
    return meanfield.make_policy(q, [chr(ord("a") + w) for w in range(q.shape[1])], model=model)


def _n_states(W: int, H: int) -> int:
    return meanfield.MemorySpace(W, H).n_states
