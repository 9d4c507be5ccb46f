"""Numbers that summarise a word share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy import special

from meanfield.toolbox._arguments import one_or_several
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import canonical_order, real_numbers

# The simulations of [004] have converged when 98 % of the last 3N interactions succeeded.
CONSENSUS_SUCCESS_RATE = 0.98
MIXED = "mixed"


def success_rate(word_share: np.ndarray | xr.DataArray) -> np.ndarray | np.float64:
    """Σ_w Q_w², the probability that two random agents say the same word; words on the last axis, or on the dim `word`.

    Examples
    --------
    >>> meanfield.success_rate(np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])).round(3)
    array([0.5 , 0.82, 1.  ])
    """
    return (_words_last(word_share) ** 2).sum(-1)


def entropy(word_share: np.ndarray | xr.DataArray) -> np.ndarray | np.float64:
    """Entropy of what a random agent says, -Σ_w Q_w ln Q_w in nats; words on the last axis, or on the dim `word`.

    Examples
    --------
    >>> meanfield.entropy(np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])).round(3)
    array([0.693, 0.325, 0.   ])
    """
    return special.entr(np.clip(_words_last(word_share), 0.0, None)).sum(-1)


def convention(word_share: np.ndarray | xr.DataArray, words: Sequence[str]) -> str:
    """The word on which a population with this word share agrees (success rate at least 0.98), or 'mixed'.

    `word_share` has the shape (W,), in the order of `words`.

    Examples
    --------
    >>> meanfield.convention(np.array([0.995, 0.005]), ["his", "her"])
    'his'
    >>> meanfield.convention(np.array([0.9, 0.1]), ["his", "her"])
    'mixed'
    """
    Q, words = _words_last(word_share), one_or_several(words)
    if Q.shape != (len(words),):
        raise InputError(f"word_share has shape {Q.shape}: expected ({len(words)},), one for each of words")
    return words[int(np.argmax(Q))] if success_rate(Q) >= CONSENSUS_SUCCESS_RATE else MIXED


def label_of(word_share: np.ndarray, words: Sequence[str], *, committed: bool = False) -> str:
    """The word of a convention, else 'mostly A (0.97)'; without a majority 'mixed (A 0.50)'.

    Where some agents are committed, the share is of the other agents, and the text says so.
    """
    if (found := convention(word_share, words)) != MIXED:
        return found
    most = words[int(np.argmax(word_share))]
    share = f"{np.max(word_share):.2f}{' of the uncommitted' if committed else ''}"
    return f"mostly {most} ({share})" if leading_word(word_share, words) else f"{MIXED} ({most} {share})"


def leading_word(word_share: np.ndarray, words: Sequence[str]) -> str:
    """The word with a majority, which two digits show; '' without one."""
    return words[int(np.argmax(word_share))] if np.max(word_share).round(2) > 0.5 else ""


def _words_last(word_share: np.ndarray | xr.DataArray) -> np.ndarray:
    if isinstance(word_share, xr.DataArray):
        if "word" not in word_share.dims:
            raise InputError(f"word_share has the dims {', '.join(map(str, word_share.dims))}: expected word")
        word_share = canonical_order(word_share, "word_share").transpose(..., "word").values
    values = real_numbers(word_share, "word_share")
    if not values.ndim:
        raise InputError(f"word_share = {values}: expected the shares of words on the last axis")
    return values
