"""The orders in which words are presented in a prompt: all of them, or a balanced sample."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import ceil, factorial
from numbers import Integral

import numpy as np

from meanfield import InputError
from meanfield.toolbox import shown, whole_number

ALL_ORDERS_UP_TO = 3  # words
SAMPLE = 24  # at least, of more words
MOST_WORDS = 255  # a word is a byte in what is kept
MOST_ORDERS = 100_000

Order = tuple[str, ...]


def orders(words: Sequence[str], number: int | None = None, seed: int = 0) -> list[Order]:
    """Presentation orders of the words: all W!, or a seeded sample in which position and neighbour are balanced.

    The sample consists of Williams' Latin squares: in the W orders of a square each word is in each position once. In a
    square of an even number of words, and in a square and its mirror of an odd one, it also follows each other word
    equally often. Squares are drawn uniformly without replacement, so that all orders differ and each order is equally
    likely to be among them. A mean over them is that of an agent who sees a random order, without the error that a
    word's positions would add. Source: Williams, Aust. J. Sci. Res. A 2, 149 (1949).

    Parameters
    ----------
    words
        The W ≥ 2 words, all different.
    number
        Multiple of W, at most W! and 100,000. None: all for W ≤ 3, and for more words the smallest balanced number of
        at least 24, or all.
    seed
        Of the sample, ≥ 0.

    Returns
    -------
    The orders; where they are all, the given one first.

    Raises
    ------
    InputError
        If words are equal, or `number` or `seed` is out of range.

    See Also
    --------
    policy_extraction.extract : averages over them
    """
    words = tuple(words)
    n_words = len(words)
    if not 2 <= n_words <= MOST_WORDS or len(set(words)) < n_words:
        raise InputError(f"words = {shown(words)}: expected several words that differ, at most {MOST_WORDS}")
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
    """The smallest number of orders in which each word is in each position and after each other word equally often."""
    return n_words if n_words % 2 == 0 else 2 * n_words


def _squares(names: list[str]) -> list[list[Order]]:
    """Williams' square of the words in this cyclic sequence, and of an odd number also the one with mirrored orders.

    The squares of the (W - 1)! cyclic sequences are disjoint and make up all orders.
    """
    n = len(names)
    zigzag = [(i + 1) // 2 if i % 2 else n - i // 2 for i in range(n)]
    square = [tuple(names[(step + start) % n] for step in zigzag) for start in range(n)]
    return [square] if n % 2 == 0 else [square, [order[::-1] for order in square]]


def default_number(n_words: int) -> int:
    """How many orders `orders` gives where it is not told."""
    if n_words <= ALL_ORDERS_UP_TO:
        return factorial(n_words)
    return min(factorial(n_words), balanced_number(n_words) * ceil(SAMPLE / balanced_number(n_words)))


def _checked(number: int, n_words: int) -> int:
    most = min(factorial(n_words), MOST_ORDERS)
    if (
        not isinstance(number, Integral)
        or isinstance(number, bool)
        or not n_words <= number <= most
        or number % n_words
    ):
        raise InputError(
            f"number = {shown(number)}: expected a multiple of {n_words}, so that each of the {n_words} words is in "
            f"each position equally often, and at most {most}"
        )
    return int(number)
