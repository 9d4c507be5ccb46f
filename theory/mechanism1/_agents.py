"""Mechanism 1 agent by agent: [002] Appendix E as it stands there, many runs side by side.

A run draws in a fixed order, and how much it draws does not depend on the parameters: for each agent the component,
then the normal deviate of its field; for each interaction the pair, then the message. So runs of the same number under
two sets of parameters share their luck, and their difference is due to the parameters (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit, prange

from theory._random import next_bits, next_pair, pair_limits, seed_streams
from theory.mechanism1._parameters import Mechanism1

MANTISSA = np.uint64(11)
INTERACTIONS_A_CALL = 2 * 10**7  # a call into compiled code can't be interrupted


class Ends(NamedTuple):
    """How runs of one population size end, each of shape (runs,)."""

    truth_votes: np.ndarray  # agents who vote for the truth; the others vote for the rival
    m: np.ndarray  # mean of s_i = tanh(β ℓ_i), [002] Eq. 8
    q: np.ndarray  # mean of s_i²


def play(
    parameters: Mechanism1,
    n_agents: int,
    runs: int,
    seed: int,
    report: Callable[[int], object] = lambda done: None,
) -> Ends:
    """`runs` runs among N agents; a run depends on (parameters, seed, N, its number) only, not on threads.

    `report` is told how many more runs are done.
    """
    numbers = np.array([parameters.mean_T, parameters.mean_R, parameters.mean_0])
    widths = np.array([parameters.sd_T, parameters.sd_R, parameters.sd_0])
    limits = np.cumsum(parameters.weights(n_agents)[:2])
    rules = np.array([parameters.J, parameters.beta, parameters.alpha])
    n_interactions = parameters.interactions_per_agent * n_agents
    ends = Ends(np.empty(runs, np.int64), np.empty(runs), np.empty(runs))
    portion = max(1, INTERACTIONS_A_CALL // max(n_interactions, n_agents))
    for first in range(0, runs, portion):
        part = slice(first, min(first + portion, runs))
        streams = seed_streams(seed, n_agents, np.arange(part.start, part.stop))
        play_runs(streams, n_agents, n_interactions, limits, numbers, widths, rules, *(all_[part] for all_ in ends))
        report(part.stop - part.start)
    return ends


@njit(cache=True)
def next_uniform(s0, s1, s2, s3):
    """A number strictly between 0 and 1, and the stream after it."""
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    return (np.float64(bits >> MANTISSA) + 0.5) * 2.0**-53, s0, s1, s2, s3


@njit(cache=True)
def draw_fields(h, stream, limits, means, sds):
    """Writes the private fields into `h` (N,); normal deviates by Box and Muller 1958."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for i in range(h.size):
        u, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        radius, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        angle, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        component = np.int64(u >= limits[0]) + np.int64(u >= limits[1])
        z = np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)
        h[i] = means[component] + sds[component] * z
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(cache=True)
def interact(belief, h, stream, n_interactions, rules):
    """Plays the interactions on the beliefs ℓ (N,)."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    J, beta, alpha = rules[0], rules[1], rules[2]
    pairs = pair_limits(h.size)
    for _ in range(n_interactions):
        speaker, listener, s0, s1, s2, s3 = next_pair(pairs, s0, s1, s2, s3)
        u, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        # u < (1 + tanh(βℓ))/2, which is 1/(1 + exp(-2βℓ))
        said = 1.0 if u * (1.0 + np.exp(-2.0 * beta * belief[speaker])) < 1.0 else -1.0
        belief[listener] += alpha * (h[listener] + J * said - belief[listener])
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@njit(cache=True, parallel=True)
def play_runs(streams, n_agents, n_interactions, limits, means, sds, rules, truth_votes, m, q):
    """Writes the ends of the runs of `streams` (runs, 4) into the last three arrays (runs,)."""
    for run in prange(streams.shape[0]):
        h = np.empty(n_agents)
        draw_fields(h, streams[run], limits, means, sds)
        belief = h.copy()
        interact(belief, h, streams[run], n_interactions, rules)
        votes, total, squares = 0, 0.0, 0.0
        for i in range(n_agents):
            lean = np.tanh(rules[1] * belief[i])
            votes += np.int64(belief[i] > 0.0)
            total += lean
            squares += lean * lean
        truth_votes[run], m[run], q[run] = votes, total / n_agents, squares / n_agents
