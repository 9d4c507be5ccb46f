"""Disjoint events of words where some words continue others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policy_extraction.backends.local._tokens import Tokens


def disjoint(log_p: np.ndarray, answers: Sequence[Tokens]) -> np.ndarray:
    """log P(word, not continued to another word) from log P(text begins with the word), shape (W,)."""
    result = log_p.copy()
    for i, word in enumerate(answers):
        longer = [j for j, other in enumerate(answers) if _continues(other, word)]
        nearest = [j for j in longer if not any(_continues(answers[j], answers[k]) for k in longer)]
        if nearest:
            with np.errstate(divide="ignore"):
                result[i] += np.log(max(0.0, -np.expm1(np.logaddexp.reduce(log_p[nearest]) - log_p[i])))
    return result


def _continues(longer: Tokens, shorter: Tokens) -> bool:
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter
