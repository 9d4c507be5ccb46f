"""Choice probabilities as 63-bit integers, which honour them beyond double precision.

32-bit draws would round 2.2e-16, the floor of published policies, to never, and 53-bit draws can't hold 1e-17: the
simulated chain would have other closed classes than the policy. In 63 bits 2.2e-16 is about 2,030 of 2^63, and 0 and 1
are exactly never and always.
"""

from __future__ import annotations

import numpy as np

from meanfield.toolbox import inner
from theory.streams import ONE

DRAW_BITS = 63  # 64 would not leave room for 'always', which is 2^bits


def word_thresholds(q: np.ndarray) -> np.ndarray:
    """Cumulated integer choice probabilities: a 63-bit draw u says the word Σ_k [u ≥ thresholds[state, k]].

    Parameters
    ----------
    q
        Shape (S, W); rows sum to 1 within rounding. The likeliest word of a row absorbs the rounding of its sum. A
        positive probability below 2^-63 counts as 2^-63, so no possible word is lost.

    Returns
    -------
    uint64 of shape (S, W - 1); the last word needs no threshold.
    """
    weights = np.ceil(q * 2.0**DRAW_BITS).astype(np.uint64)
    states, likeliest = np.arange(q.shape[0]), q.argmax(axis=1)
    weights[states, likeliest] = 0
    weights[states, likeliest] = np.uint64(2**DRAW_BITS) - weights.sum(axis=1, dtype=np.uint64)
    return np.ascontiguousarray(np.cumsum(weights, axis=1, dtype=np.uint64)[:, :-1])


@inner
def draw_word(thresholds, state, bits):
    """The word of an agent in `state`, given 64 random bits."""
    draw = bits >> ONE
    word = np.uint64(0)
    for k in range(thresholds.shape[1]):
        word += np.uint64(draw >= thresholds[state, k])
    return word
