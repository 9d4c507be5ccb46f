"""Who meets whom: an ordered pair of different agents, all pairs equally likely.

Every compiled simulator of single agents draws its pairs here. To put agents on a graph, change these two functions.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from theory.streams import HALF_BITS, HALF_MASK, ONE, next_bits


@njit(cache=True)
def pair_limits(n_agents):
    """N, and the remainders below which `next_pair` rejects a draw of its first and second agent.

    The rejections keep all agents equally likely where N does not divide 2^32.
    Source: Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3.
    """
    n = np.uint64(n_agents)
    return n, (ONE << HALF_BITS) % n, (ONE << HALF_BITS) % (n - ONE)


@njit(cache=True)
def next_pair(limits, s0, s1, s2, s3):
    """A uniformly random ordered pair of distinct agents, and the stream after it: (i, j, s0, s1, s2, s3)."""
    n, reject_first, reject_second = limits
    while True:
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        first = (bits >> HALF_BITS) * n
        second = (bits & HALF_MASK) * (n - ONE)
        if (first & HALF_MASK) >= reject_first and (second & HALF_MASK) >= reject_second:
            break
    i = first >> HALF_BITS
    j = second >> HALF_BITS
    return i, j + np.uint64(j >= i), s0, s1, s2, s3
