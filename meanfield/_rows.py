"""The rate equation for many compositions at once, in NumPy.

What `_reaction` says of one composition, for arrays whose last axis is the state; q comes words first, (…, W, S), and
what is known word by word has the word before the last axis. Loops over words keep the long axis innermost.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from meanfield._memory import MemorySpace

FEW_WORDS = 3  # up to which W² products with a long inner loop beat one product with an inner loop of length W


def spoken_rows(
    x: Float[np.ndarray, "... states"], q: Float[np.ndarray, "... words states"], space: MemorySpace
) -> Float[np.ndarray, "... words kept"]:
    """Weight of agents by the word that they say and the memory that they will keep; see `_reaction.spoken`."""
    full, longest = space.offset(space.memory_length), space.offset(space.memory_length - 1)
    said = x[..., None, :] * q
    kept = said[..., :full]
    kept[..., longest:] += said[..., full:].reshape(*said.shape[:-1], space.n_digits, -1).sum(-2)
    return kept


def heard_rows(
    kept: Float[np.ndarray, "... words kept"], Q: Float[np.ndarray, "... words"]
) -> Float[np.ndarray, "... states"]:
    """Compositions after agents of weight `kept` have heard a word drawn from Q; see `_reaction.heard`."""
    W, K = kept.shape[-2:]
    lead = np.broadcast_shapes(kept.shape[:-2], Q.shape[:-1])
    x = np.empty((*lead, 1 + K * W * W))
    x[..., 0] = 0.0
    after = x[..., 1:].reshape(*lead, K, W, W)
    if W > FEW_WORDS:
        np.multiply(np.swapaxes(kept, -1, -2)[..., None], Q[..., None, None, :], out=after)
        return x
    for own in range(W):
        for partner in range(W):
            np.multiply(kept[..., own, :], Q[..., partner, None], out=after[..., own, partner])
    return x
