"""Who meets whom: a random ordered pair of different agents, the ends of a random edge, or of two communities.

Every compiled simulator of single agents draws its pairs here, those of `validation` and the fit of Mechanism 1.
"""

from __future__ import annotations

import numpy as np

from meanfield.toolbox import compiled
from theory.streams import HALF_BITS, HALF_MASK, ONE, next_bits

# Edges of a graph: the agents at both ends (E, 2), and for edges that are not equally likely the random bits from which
# on another edge takes their place (E,), and which one (the alias method; Walker 1977, ACM Trans. Math. Softw. 3, 253).
# Edges between communities have the first agents of both at their ends, and the numbers to draw from (E, 2): their
# sizes, in one community without the agent drawn first. Without edges everybody may meet everybody. Unless they meet in
# pairs one by one, numbers follow: the number in `core.HEARS` of the rule by which they hear each other, the sizes of
# groups, and for each but the last one the share of meetings of at most this size, times 2^62. The rule of matchings is
# MATCHED, with groups of 2. Groups of size 0 are hyperedges, with their members one after the other in a last array,
# where ends are the first place of each and the one after its last.
MATCHED = -1
NO_EDGES = (
    np.empty((0, 2), np.uint32),
    np.empty(0, np.uint64),
    np.empty(0, np.uint32),
    np.empty((0, 2), np.uint32),
    np.empty(0, np.int64),
    np.empty(0, np.uint32),
)


@compiled
def pair_limits(n_agents):
    """N, and the remainders below which `next_pair` rejects a draw of its first and second agent.

    The rejections keep all agents equally likely where N does not divide 2^32.
    Source: Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3.
    """
    n = np.uint64(n_agents)
    return n, (ONE << HALF_BITS) % n, (ONE << HALF_BITS) % (n - ONE)


@compiled
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


@compiled
def edge_limits(n_edges):
    """E, and the remainder below which `next_edge` rejects a draw."""
    number = np.uint64(max(n_edges, 1))
    return number, (ONE << HALF_BITS) % number


@compiled
def next_edge(limits, s0, s1, s2, s3):
    """The number of a uniformly random edge, and the stream after it.

    Kernels look up its ends themselves: a function that is given arrays counts references to them, which takes ten
    times as long as all the rest.
    """
    number, rejected = limits
    while True:
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        product = (bits >> HALF_BITS) * number
        if (product & HALF_MASK) >= rejected:
            break
    return product >> HALF_BITS, s0, s1, s2, s3


@compiled
def next_two(n, m, s0, s1, s2, s3):
    """Uniformly random numbers below `n` and below `m`, and the stream after them; rejects draws like `next_pair`."""
    while True:
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        first, second = (bits >> HALF_BITS) * n, (bits & HALF_MASK) * m
        low, lower = first & HALF_MASK, second & HALF_MASK
        # Remainders are smaller than their divisors, and divisions slow
        if (low >= n or low >= (ONE << HALF_BITS) % n) and (lower >= m or lower >= (ONE << HALF_BITS) % m):
            break
    return first >> HALF_BITS, second >> HALF_BITS, s0, s1, s2, s3
