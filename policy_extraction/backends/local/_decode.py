"""Sampled continuations of prompts; equal ones share forward passes.

Each copy of a prompt has its own random numbers, so its text does not depend on the batches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from policy_extraction.backends.local._batches import cache_of, read, repeated
from policy_extraction.backends.local._tokens import Tokens


class _Row(NamedTuple):
    """A continuation, and the numbers of the copies that wrote it."""

    parent: int
    written: Tokens
    copies: np.ndarray


def continuations(
    model: Any,
    contexts: Sequence[Tokens],
    draws: np.ndarray,
    temperature: float,
    stops: frozenset[int],
    rows_at_once: Callable[[int], int],
    with_cache: bool,
) -> list[Tokens]:
    """The model's continuation of each context, without the token that stops it.

    `draws` are uniform random numbers, shape (contexts, longest continuation); temperature 0 takes the most probable
    token. `rows_at_once` gives the number of sequences of a length that run together. `with_cache` tells whether the
    model has a cache that can be copied.
    """
    import torch

    copies: dict[Tokens, list[int]] = defaultdict(list)
    for i, context in enumerate(contexts):
        copies[context].append(i)
    written: list[Tokens] = [()] * len(contexts)

    def follow(context: Tokens, numbers: Sequence[int]) -> None:
        most = rows_at_once(len(context) + draws.shape[1])
        pending: list[tuple[Any, list[_Row]]] = [(None, [_Row(0, (), np.array(numbers))])]
        while pending:
            cache, rows = pending.pop()
            step = len(rows[0].written)
            if step == draws.shape[1]:
                continue
            if cache is None or not with_cache:
                output = read(model, [context + row.written for row in rows], None, [-1])
            else:
                again = repeated(cache, [row.parent for row in rows])
                output = read(model, [row.written[-1:] for row in rows], again, [-1])
            children = []
            for i, (row, logits) in enumerate(zip(rows, output.logits[:, -1], strict=True)):
                chosen = _chosen(logits, draws[row.copies, step], temperature)
                order = np.argsort(chosen, kind="stable")
                tokens, first = np.unique(chosen[order], return_index=True)
                # Each chosen token with its copies, in one pass over the sorted tokens.
                for token, said in zip(tokens.tolist(), np.split(row.copies[order], first[1:]), strict=True):
                    if token in stops:
                        continue
                    children.append(_Row(i, (*row.written, token), said))
                    for number in said.tolist():
                        written[number] = children[-1].written
            cache = cache_of(output) if with_cache else None
            pending += [(cache, group) for group in _groups(children, most)]

    with torch.inference_mode():
        for context, numbers in copies.items():
            follow(context, numbers)
    return written


def _groups(rows: Sequence[_Row], most: int) -> list[list[_Row]]:
    """Rows to run together: a single row, or rows of at most `most` copies, which bounds the rows to come."""
    groups: list[list[_Row]] = []
    copies = 0
    for row in rows:
        if groups and copies + len(row.copies) <= most:
            groups[-1].append(row)
            copies += len(row.copies)
        else:
            groups.append([row])
            copies = len(row.copies)
    return groups


def _chosen(logits: Any, draws: np.ndarray, temperature: float) -> np.ndarray:
    """A token for each draw, by inversion of the distribution function."""
    logits = logits.float().cpu().double().numpy()
    if temperature == 0:
        return np.full(len(draws), logits.argmax())
    cumulated = np.cumsum(np.exp((logits - logits.max()) / temperature))
    return np.searchsorted(cumulated, draws * cumulated[-1], side="right")
