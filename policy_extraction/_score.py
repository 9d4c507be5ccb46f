"""Log-probabilities of answers over the whole vocabulary.

The tokens that all questions share are run once and kept in the key-value cache. What follows is run in batches of
equal length: without padding every position is exact.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield import InputError
from policy_extraction._tokens import Question, Tokens, shared_length


@dataclass(frozen=True)
class _Row:
    """One sequence to run: question `number`, followed by `head`, the beginning of one or more of its answers."""

    number: int
    tokens: Tokens
    head: Tokens


def score(
    model: Any, questions: Sequence[Question], batch_size: int, done: Callable[[int], object] = lambda n: None
) -> np.ndarray:
    """Log-probability that the model answers with each word, shape (questions, words).

    An answer of several tokens has the product of their conditional probabilities. Where one word continues another
    ('he', 'her'), the shorter one is the event that the longer does not follow, so that the events are disjoint.

    Parameters
    ----------
    model
        A causal language model of transformers.
    questions
        What it reads, and the tokens of each possible answer.
    batch_size
        Sequences a forward pass.
    done
        Called with the number of questions answered since the last call.

    Raises
    ------
    InputError
        If the model returns logits that are not numbers.
    """
    import torch

    rows = [_Row(i, q.context + head, head) for i, q in enumerate(questions) for head in _heads(q.answers)]
    shared = _shared_prefix(questions)
    scores = np.empty((len(questions), len(questions[0].answers)))
    pending = {i: len(_heads(q.answers)) for i, q in enumerate(questions)}
    with torch.inference_mode():
        cache = getattr(_run(model, [shared], 1), "past_key_values", None) if shared else None
        if not _repeatable(cache):
            cache, shared = None, ()
        for batch in _batches(rows, batch_size):
            log_p = _log_probabilities(model, batch, cache, len(shared))
            for row, table in zip(batch, log_p, strict=True):
                for word, answer in enumerate(questions[row.number].answers):
                    if row.head[: len(answer) - 1] == answer[:-1]:
                        scores[row.number, word] = sum(table[i, token] for i, token in enumerate(answer))
                pending[row.number] -= 1
                done(int(pending[row.number] == 0))
    for i, question in enumerate(questions):
        scores[i] = _disjoint(scores[i], question.answers)
    return scores


def _repeatable(cache: Any) -> bool:
    """Whether a cache can be copied for a batch; recurrent layers keep a state that can't, or no cache at all."""
    try:
        copy.deepcopy(cache).batch_repeat_interleave(2)
    except (AttributeError, NotImplementedError):
        return False
    return True


def _heads(answers: Sequence[Tokens]) -> list[Tokens]:
    """What must be read after the context to see the probability of every token of every answer."""
    heads = {answer[:-1] for answer in answers}
    return sorted(head for head in heads if not any(_continues(other, head) for other in heads))


def _continues(longer: Tokens, shorter: Tokens) -> bool:
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter


def _shared_prefix(questions: Sequence[Question]) -> Tokens:
    """The tokens to run once; the last token of a context is left, since its logits are wanted."""
    if len(questions) < 2:
        return ()
    contexts = [question.context for question in questions]
    return contexts[0][: min(shared_length(contexts), min(map(len, contexts)) - 1)]


def _batches(rows: Sequence[_Row], batch_size: int) -> list[list[_Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[len(row.tokens), len(row.head)].append(row)
    return [group[i : i + batch_size] for group in groups.values() for i in range(0, len(group), batch_size)]


def _log_probabilities(model: Any, batch: Sequence[_Row], cache: Any, skip: int) -> np.ndarray:
    """Shape (rows, positions, vocabulary); position 0 is that of the first token of the answer."""
    if cache is not None:
        cache = copy.deepcopy(cache)
        cache.batch_repeat_interleave(len(batch))
    positions = len(batch[0].head) + 1
    logits = _run(model, [row.tokens[skip:] for row in batch], positions, cache).logits[:, -positions:]
    log_p = logits.float().cpu().double().log_softmax(-1).numpy()
    if np.isnan(log_p).any():
        raise InputError("model: it returned logits that are not numbers (NaN); try dtype='float32'")
    return log_p


def _run(model: Any, sequences: Sequence[Tokens], positions: int, cache: Any = None) -> Any:
    import torch

    tokens = torch.tensor(sequences, device=model.device)
    return model(input_ids=tokens, past_key_values=cache, use_cache=True, logits_to_keep=positions)


def _disjoint(log_p: np.ndarray, answers: Sequence[Tokens]) -> np.ndarray:
    """log P(word, not continued to another word) from log P(text begins with word)."""
    result = log_p.copy()
    for i, word in enumerate(answers):
        longer = [j for j, other in enumerate(answers) if _continues(other, word)]
        nearest = [j for j in longer if not any(_continues(answers[j], answers[k]) for k in longer)]
        if nearest:
            with np.errstate(divide="ignore"):
                result[i] += np.log(max(0.0, -np.expm1(np.logaddexp.reduce(log_p[nearest]) - log_p[i])))
    return result
