"""One xoshiro256++ stream per run, seeded by SplitMix64, as functions that numba inlines.

`np.random` inside numba costs 5 to 10 times as much, and its streams belong to threads, not to runs.
Every compiled simulator of `validation` draws from here. So does the fit of Mechanism 1, hence the file is in `theory`.
Sources: Blackman and Vigna 2021, ACM Trans. Math. Softw. 47, 36; Steele, Lea and Flood 2014 (SplitMix64).
"""

from __future__ import annotations

import numpy as np

from meanfield.toolbox import compiled

# uint64 with a Python integer would make numba go through float64, so every constant is typed.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
WORD_BITS = np.uint64(64)
ONE = np.uint64(1)
HALF_BITS = np.uint64(32)
HALF_MASK = np.uint64(0xFFFFFFFF)


def splitmix(key: np.ndarray) -> np.ndarray:
    """The SplitMix64 output for the states `key`, uint64 of any shape ≥ 1-d; a bijection."""
    z = key + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    return z ^ (z >> np.uint64(31))


def seed_streams(seed: int, n_agents: int, runs: np.ndarray) -> np.ndarray:
    """Initial xoshiro256++ states, uint64 of shape (runs, 4), of the runs numbered `runs`.

    A stream depends on (seed, n_agents, run) only, so every ensemble is the beginning of a longer one, whatever other
    sizes are simulated beside it. No two runs of one seed and size share a stream: each step is a bijection.
    """
    key = splitmix(np.array([seed], dtype=np.uint64))
    key = splitmix(key + np.uint64(n_agents))
    key = splitmix(key + runs.astype(np.uint64))
    steps = np.arange(4, dtype=np.uint64) * GOLDEN
    return splitmix(key[:, None] + steps)


@compiled
def rotate_left(x, k):
    return (x << k) | (x >> (WORD_BITS - k))


@compiled
def next_bits(s0, s1, s2, s3):
    """64 random bits and the next state of the stream: (bits, s0, s1, s2, s3)."""
    bits = rotate_left(s0 + s3, np.uint64(23)) + s0
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3 = rotate_left(s3, np.uint64(45))
    return bits, s0, s1, s2, s3
