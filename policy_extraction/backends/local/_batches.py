"""Log-probabilities of answers from plain batches, for every causal language model.

Sequences in a batch are equally long: unpadded, each is exact. A shared prefix is run once if a cache can be copied.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from policy_extraction.backends.local._passes import Wanted, add_scores, forward, sequences_of, takes
from policy_extraction.backends.local._tokens import Question, Tokens, shared_length


def batch_scores(model: Any, questions: Sequence[Question], tokens: int, share: bool = True) -> np.ndarray:
    """Log-probability that the model's answer begins with each word, shape (questions, words).

    A batch has at most `tokens` tokens, counting the shared beginning for each sequence, but at least one sequence.
    `share` runs the beginning that all questions share only once.
    """
    import torch

    groups: dict[int, list[tuple[Tokens, dict[int, list[Wanted]]]]] = defaultdict(list)
    for sequence, asked in sequences_of(questions).items():
        if asked:
            groups[len(sequence)].append((sequence, asked))
    scores = np.zeros((len(questions), len(questions[0].answers)))
    with torch.inference_mode():
        # The last token of a context is never shared, as its logits are wanted.
        contexts = [question.context for question in questions]
        n_shared = min(shared_length(contexts), min(map(len, contexts)) - 1) if share and len(questions) > 1 else 0
        shared = contexts[0][:n_shared]
        cache = cache_of(read(model, [shared], None, ())) if shared and repeatable(model) else None
        skip = 0 if cache is None else n_shared
        sizes = ((group, max(1, tokens // length)) for length, group in groups.items())
        for batch in (group[i : i + size] for group, size in sizes for i in range(0, len(group), size)):
            places = sorted({position - skip for _, asked in batch for position in asked})
            again = None if cache is None else repeated(cache, [0] * len(batch))
            logits = read(model, [sequence[skip:] for sequence, _ in batch], again, places).logits
            for row, (_, asked) in zip(logits, batch, strict=True):
                add_scores(scores, row[[places.index(p - skip) for p in asked]], list(asked.values()))
    return scores


def read(model: Any, sequences: Sequence[Tokens], cache: Any, places: Sequence[int]) -> Any:
    """A forward pass; its logits are those at `places` of the sequences."""
    options = {} if cache is None else {"cache" if takes(model, "cache") else "past_key_values": cache}
    return forward(model, sequences, [place % len(sequences[0]) for place in places or [-1]], use_cache=True, **options)


def cache_of(output: Any) -> Any:
    """The cache that a pass returns, under the name of this release of transformers; None without one."""
    return getattr(output, "cache" if hasattr(output, "cache") else "past_key_values", None)


def repeatable(model: Any) -> bool:
    """Whether the model has a cache that can be copied; the states of recurrent layers can't."""
    import torch

    with torch.inference_mode():
        cache = cache_of(read(model, [(0, 0)], None, ()))
    try:
        repeated(cache, [0, 0])
    except (AttributeError, NotImplementedError, TypeError):
        return False
    return True


def repeated(cache: Any, rows: Sequence[int]) -> Any:
    """A copy of these rows of a cache, in this order."""
    import torch

    result = copy.copy(cache)
    result.layers = [copy.copy(layer) for layer in cache.layers]
    result.batch_select_indices(torch.tensor(rows, device=cache.layers[0].keys.device))
    return result
