"""The orders in which words are presented in a prompt: all of them, or a balanced sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import ceil, factorial

import numpy as np

from meanfield import InputError
from meanfield.toolbox import one_or_several, shown, whole_number

ALL_ORDERS_UP_TO = 3  # words
SAMPLE = 24  # orders at least, for more words
MOST_WORDS = 255  # the cache stores a word as one byte
MOST_ORDERS = 100_000

Order = tuple[str, ...]


def orders(words: Sequence[str], number: int | None = None, seed: int = 0) -> list[Order]:
    """Orders in which words are presented: all W!, or a seeded sample balanced in positions and neighbours.

    The sample consists of Williams' Latin squares. In the W orders of a square each word has each position once. In a
    square of an even number of words each word also follows each other word equally often; for an odd number, a square
    and its mirror together do. Squares are drawn uniformly without replacement: all orders differ, and each is equally
    likely to be drawn. A mean over the sample estimates the mean over all orders, without error from the words'
    positions. Source: Williams, Aust. J. Sci. Res. A 2, 149 (1949).

    Parameters
    ----------
    words
        The W ≥ 2 words, all different.
    number
        Multiple of W, at most W! and 100,000. None for all orders if W ≤ 3, else for the smallest balanced number ≥ 24.
    seed
        Seed of the sample, ≥ 0.

    Returns
    -------
    The orders. If they are all orders, the given one comes first.

    Raises
    ------
    InputError
        If words are equal, or an argument is out of range.

    See Also
    --------
    policy_extraction.extract : averages over them

    Examples
    --------
    All orders of two words, and a sample of the orders of four, in which each word comes first once.

    >>> from policy_extraction.prompts import orders
    >>> orders(("his", "her"))
    [('his', 'her'), ('her', 'his')]
    >>> sorted(order[0] for order in orders("ABCD", 4))
    ['A', 'B', 'C', 'D']
    """
    words = tuple(words if isinstance(words, str) else one_or_several(words))
    n_words = len(words)
    if not 2 <= n_words <= MOST_WORDS or len(set(words)) < n_words:
        raise InputError(f"words = {shown(words)}: expected 2 to {MOST_WORDS} different words")
    whole_number("seed", seed)
    number = default_number(n_words) if number is None else _checked(number, n_words)
    if number == factorial(n_words):
        return list(permutations(words))
    rng, names, found = np.random.default_rng(seed), list(words), {}
    while len(found) * n_words < number:
        rest = [names[1 + i] for i in rng.permutation(n_words - 1)]
        for square in _squares([names[0], *rest]):
            found.setdefault(frozenset(square), square)
    return [order for square in found.values() for order in square][:number]


def balanced_number(n_words: int) -> int:
    """The smallest number of orders that are balanced in positions and neighbours."""
    return n_words if n_words % 2 == 0 else 2 * n_words


def _squares(names: list[str]) -> list[list[Order]]:
    """Williams' square of this cyclic sequence of words; for an odd number of words also its mirror.

    The squares of the (W - 1)! cyclic sequences are disjoint and contain all orders.
    """
    n = len(names)
    zigzag = [(i + 1) // 2 if i % 2 else n - i // 2 for i in range(n)]
    square = [tuple(names[(step + start) % n] for step in zigzag) for start in range(n)]
    return [square] if n % 2 == 0 else [square, [order[::-1] for order in square]]


def default_number(n_words: int) -> int:
    """The number of orders that `orders` gives by default."""
    if n_words <= ALL_ORDERS_UP_TO:
        return factorial(n_words)
    return min(factorial(n_words), balanced_number(n_words) * ceil(SAMPLE / balanced_number(n_words)))


def _checked(number: int, n_words: int) -> int:
    most = min(factorial(n_words), MOST_ORDERS)
    if whole_number("number", number, n_words, most) % n_words:
        raise InputError(f"number = {number}: expected a multiple of {n_words}, the number of words")
    return int(number)
