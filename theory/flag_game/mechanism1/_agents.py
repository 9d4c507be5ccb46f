"""Mechanism 1 agent by agent, exactly as in [002] Appendix E, many runs side by side.

A run draws the same random numbers in the same order under all parameters: for each agent's field a mixture component,
then a normal deviate; for each interaction the pair, then the message. Run k under two sets of parameters therefore
differs by the parameters alone (common random numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from meanfield.toolbox import compiled, in_threads
from theory.flag_game.mechanism1._endpoints import Moments, moments_of_laws
from theory.flag_game.mechanism1._parameters import Mechanism1
from theory.pairs import next_pair, pair_limits
from theory.streams import next_bits, seed_streams

MANTISSA = np.uint64(11)
INTERACTIONS_A_CALL = 2 * 10**7  # a call into compiled code can't be interrupted
LEAST_FIELD = 1e-9
INTERACTIONS_A_NUMBER = 64  # in the time in which a thread is taken to work on one number


class Ends(NamedTuple):
    """Ends of runs of one population size under several parameters."""

    truth_votes: np.ndarray  # (runs, points), agents who vote for the truth; the others vote for the rival
    m: np.ndarray  # (runs, points, times), mean of s_i = tanh(β ℓ_i), [002] Eq. 8
    q: np.ndarray  # (runs, points, times), mean of s_i²


def played(
    points: Sequence[Mechanism1],
    n_agents: int,
    runs: int,
    seed: int,
    *,
    given: Sequence[float] | np.ndarray = (),
    times: int = 0,
    report: Callable[[int], object] = lambda done: None,
) -> Ends:
    """Ends under each of the parameters, with m and q at `times` times; random numbers are drawn once for all of them.

    A run depends on (parameters, seed, N, its number) only. With one time it is the end, with `interactions_per_agent`
    + 1 the start and after every N interactions. Agents may have `given` private fields (N,). A field of 0 favours
    either side by a hair, at random: the vote of an agent who knows nothing would else be for the rival.
    """
    if len({one.interactions_per_agent for one in points}) > 1:
        raise ValueError("points differ in interactions_per_agent")
    n_interactions = points[0].interactions_per_agent * n_agents
    rules = np.array([[one.J, one.beta, one.alpha] for one in points], dtype=float).T.copy()
    laws = [one.field_law(n_agents) for one in (() if len(given) else points)]
    limits = np.array([law.weights[:2].cumsum() for law in laws]).reshape(-1, 2)
    means, sds = (np.array([getattr(law, name) for law in laws]).reshape(-1, 3) for name in ("means", "sds"))
    fields = np.asarray(given, dtype=float), limits, means, sds
    ends = Ends(np.empty((runs, len(points)), np.int64), *np.empty((2, runs, len(points), times)))
    portion = max(1, INTERACTIONS_A_CALL // (len(points) * max(n_interactions, n_agents)))
    for first in range(0, runs, portion):
        numbers = np.arange(first, min(first + portion, runs))
        streams = seed_streams(seed, n_agents, numbers)

        def play_some(some: slice, first: int = first, streams: np.ndarray = streams) -> None:
            found = (values[first : first + len(streams)][some] for values in ends)
            play_runs(streams[some], n_agents, n_interactions, *fields, rules, *found)

        in_threads(play_some, len(numbers), len(points) * n_interactions // INTERACTIONS_A_NUMBER)
        report(len(numbers))
    return ends


def simulated_moments(points: Sequence[Mechanism1], sizes: Sequence[int], runs: int, seed: int) -> list[Moments]:
    """Moments under each of the parameters, from `runs` runs at each N with the random numbers of `seed`."""
    votes = [played(points, n, runs, seed).truth_votes.T for n in sizes]
    laws = [[np.bincount(one, minlength=n + 1) / runs for one in all_] for n, all_ in zip(sizes, votes, strict=True)]
    return [moments_of_laws(law, runs) for law in zip(*laws, strict=True)]


@compiled
def next_uniform(s0, s1, s2, s3):
    """A number strictly between 0 and 1, and the stream after it."""
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    return (np.float64(bits >> MANTISSA) + 0.5) * 2.0**-53, s0, s1, s2, s3


@compiled
def draw_fields(h, stream, given, limits, means, sds):
    """Writes the private fields into `h` (N, points); normal deviates by Box and Muller 1958."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    for i in range(h.shape[0]):
        u, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        if len(given):
            h[i] = given[i] if given[i] != 0.0 else np.copysign(LEAST_FIELD, u - 0.5)
            continue
        radius, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        angle, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        z = np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)
        for p in range(h.shape[1]):
            component = np.int64(u >= limits[p, 0]) + np.int64(u >= limits[p, 1])
            h[i, p] = means[p, component] + sds[p, component] * z
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@compiled
def interact(belief, h, stream, n_interactions, rules):
    """Plays the interactions on the beliefs ℓ (N, points)."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    J, beta, alpha = rules[0], rules[1], rules[2]
    pairs = pair_limits(h.shape[0])
    for _ in range(n_interactions):
        speaker, listener, s0, s1, s2, s3 = next_pair(pairs, s0, s1, s2, s3)
        u, s0, s1, s2, s3 = next_uniform(s0, s1, s2, s3)
        # u < (1 + tanh(βℓ))/2 if 2βℓ is above this number
        sharp = np.log(u / (1.0 - u))
        for p in range(h.shape[1]):
            said = J[p] if 2.0 * beta[p] * belief[speaker, p] > sharp else -J[p]
            belief[listener, p] += alpha[p] * (h[listener, p] + said - belief[listener, p])
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3


@compiled
def play_runs(streams, n_agents, n_interactions, given, limits, means, sds, rules, truth_votes, m, q):
    """Writes the ends of the runs of `streams` (runs, 4) into `truth_votes` (runs, points).

    Writes `m` and `q` (runs, points, times) at the end, or, where they have several times, from the start on.
    """
    points, times = truth_votes.shape[1], m.shape[2]
    for run in range(streams.shape[0]):
        h = np.empty((n_agents, points))
        draw_fields(h, streams[run], given, limits, means, sds)
        belief = h.copy()
        if times <= 1:
            interact(belief, h, streams[run], n_interactions, rules)
        for time in range(times):
            if time > 0:
                interact(belief, h, streams[run], n_interactions // (times - 1), rules)
            for p in range(points):
                lean = np.tanh(rules[1, p] * belief[:, p])
                m[run, p, time], q[run, p, time] = np.mean(lean), np.mean(lean * lean)
        for p in range(points):
            truth_votes[run, p] = np.sum(belief[:, p] > 0.0)
