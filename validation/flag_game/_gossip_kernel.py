"""Quantized Simplex Gossip on private evidence, agent by agent: [002] Eqs. 4-6, 10 and 11.

A message is an array over the K labels, not normalised: counts of the labels drawn, or sums of them. Agents are rows;
the manager, if there is one, is the last. Every run has two streams of random numbers, one for the dynamics and one for
the answers to probes, so a run does not depend on how often it is probed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meanfield.toolbox import compiled, copy_to, inner
from theory.pairs import next_pair, pair_limits
from validation._engine.batches import draw_below, draw_uniform

PAIRWISE, BROADCAST, MANAGER = range(3)
LIKELIEST, SAMPLED = range(2)


class Team(NamedTuple):
    """The constants of a run. T is 1 where all runs have the same crops, else the number of runs."""

    anchor: np.ndarray  # (T, agents, K), the largest of each row is 1; all 1 where nothing is grounded
    crop_weight: np.ndarray  # (T, agents, K): listener j has the map C_j[k, l] = crop_weight[j, k] · maps[j, l, k]
    maps: np.ndarray  # (agents, K, K), the label reported first; or (1, K, K), for all
    disposition: np.ndarray  # (agents, 2): α and γ
    bandwidth: np.ndarray  # (agents,), 0 for infinite


class Rules(NamedTuple):
    """The protocol of a run: numbers, not arrays."""

    protocol: int
    report: int
    n_observers: int
    max_steps: int
    probe_every: int
    patience: int  # unanimous probes in a row after which a run stops; 0 for never


class Runs(NamedTuple):
    """The state of the runs; the first dim of every array is the run."""

    belief: np.ndarray  # (run, agents, K)
    streams: np.ndarray  # (run, 4)
    answer_streams: np.ndarray  # (run, 4)
    steps: np.ndarray  # (run,), played so far
    unanimous: np.ndarray  # (run,), unanimous probes in a row
    reports: np.ndarray  # (run, agents), the latest
    history: np.ndarray  # (run, probes + 1, agents), -1 after the end; no probes where none are recorded
    axis: np.ndarray  # (run, 2), the numbers of the truth and of its rival
    paths: np.ndarray  # (run, probes + 1, 2), m and q of [002] Eq. 8; no probes where there is no rival


@inner
def draw_label(stream, belief, agent):
    left = draw_uniform(stream)
    label = 0
    for k in range(belief.shape[1]):
        if belief[agent, k] > 0.0:
            label = k
            if left <= belief[agent, k]:
                break
            left -= belief[agent, k]
    return label


@inner
def add_message(stream, belief, agent, bandwidth, share, message):
    """Adds an agent's message to `message`: `share` for each label drawn, or in all where it sends its belief."""
    if bandwidth == 0:
        for k in range(message.size):
            message[k] += share * belief[agent, k]
    for _ in range(bandwidth):
        message[draw_label(stream, belief, agent)] += share


@inner
def sum_of(values):
    """The sum in four partial sums: additions that wait for each other would take most of the time of a step."""
    s0 = s1 = s2 = s3 = 0.0
    whole = values.size // 4 * 4
    for k in range(0, whole, 4):
        s0 += values[k]
        s1 += values[k + 1]
        s2 += values[k + 2]
        s3 += values[k + 3]
    for k in range(whole, values.size):
        s0 += values[k]
    return (s0 + s1) + (s2 + s3)


@inner
def rewrite_message(message, agent, crop_weight, maps, rewritten):
    """Writes C_j M into `rewritten` (K,) and returns its sum."""
    for k in range(message.size):
        rewritten[k] = 0.0
    number = agent if maps.shape[0] > 1 else 0
    for label in range(message.size):
        if message[label] > 0.0:
            for k in range(message.size):
                rewritten[k] += message[label] * maps[number, label, k]
    for k in range(message.size):
        rewritten[k] *= crop_weight[agent, k]
    return sum_of(rewritten)


@inner
def ground(moved, anchor, agent):
    """Π_p of [002] Eq. 6 in place; False where no label has a share in both, and then all are 0."""
    for k in range(moved.size):
        moved[k] *= anchor[agent, k]
    total = sum_of(moved)
    if total > 0.0:
        scale = 1.0 / total
        for k in range(moved.size):
            moved[k] *= scale
    return total > 0.0


@inner
def listen(belief, agent, message, anchor, crop_weight, maps, disposition, moved, rewritten):
    """[002] Eqs. 5, 6, 10, 11, with the limits that `simulate_gossip` tells: the agent takes up `message` (K,).

    The last two arrays are working space.
    """
    uptake, rewrite = disposition[agent, 0], disposition[agent, 1]
    literal_scale = 1.0 / sum_of(message)
    rewritten_scale = 0.0
    if rewrite > 0.0:
        total = rewrite_message(message, agent, crop_weight, maps, rewritten)
        rewritten_scale = 1.0 / total if total > 0.0 else 0.0
    if rewritten_scale > 0.0:
        # Where C = I both terms are equal to the last bit, and the difference is 0.
        for k in range(message.size):
            literal = message[k] * literal_scale
            heard = literal + rewrite * (rewritten[k] * rewritten_scale - literal)
            moved[k] = (1.0 - uptake) * belief[agent, k] + uptake * heard
    else:
        for k in range(message.size):
            moved[k] = (1.0 - uptake) * belief[agent, k] + uptake * (message[k] * literal_scale)
    if not ground(moved, anchor, agent):
        for k in range(message.size):
            moved[k] = belief[agent, k]
        ground(moved, anchor, agent)
    for k in range(message.size):
        belief[agent, k] = moved[k]


@inner
def answer(stream, belief, agent, report):
    """An agent's answer to a probe: one label drawn from its belief, or the likeliest, ties broken evenly."""
    if report == SAMPLED:
        return draw_label(stream, belief, agent)
    largest, ties = belief[agent, 0], 0
    for k in range(belief.shape[1]):
        largest = max(largest, belief[agent, k])
    for k in range(belief.shape[1]):
        ties += belief[agent, k] == largest
    place = draw_below(stream, ties) if ties > 1 else 0
    label = 0
    while belief[agent, label] < largest or place > 0:
        place -= belief[agent, label] == largest
        label += 1
    return label


@inner
def play_steps(n_steps, belief, stream, bandwidth, anchor, crop_weight, maps, disposition, rules):
    # Arrays are passed one by one: to take one out of a tuple counts a reference, which costs more than an interaction.
    message, moved, rewritten = np.empty(belief.shape[1]), np.empty(belief.shape[1]), np.empty(belief.shape[1])
    posted = np.empty(belief.shape)
    limits = pair_limits(rules.n_observers)
    for _ in range(n_steps):
        for k in range(message.size):
            message[k] = 0.0
        if rules.protocol == PAIRWISE:
            i, j, stream[0], stream[1], stream[2], stream[3] = next_pair(
                limits, stream[0], stream[1], stream[2], stream[3]
            )
            add_message(stream, belief, np.int64(i), bandwidth[i], 1.0, message)
            listen(belief, np.int64(j), message, anchor, crop_weight, maps, disposition, moved, rewritten)
        elif rules.protocol == BROADCAST:  # all post; then each hears the mean of the others' messages
            for i in range(belief.shape[0]):
                for k in range(message.size):
                    posted[i, k] = 0.0
                add_message(stream, belief, i, bandwidth[i], 1.0 / max(bandwidth[i], 1), posted[i])
            for j in range(belief.shape[0]):
                for k in range(message.size):
                    message[k] = 0.0
                for i in range(belief.shape[0]):
                    if i != j:
                        for k in range(message.size):
                            message[k] += posted[i, k]
                listen(belief, j, message, anchor, crop_weight, maps, disposition, moved, rewritten)
        else:  # the observers post, the manager hears all of it and decides, and all observers hear its decision
            manager = rules.n_observers
            for i in range(manager):
                add_message(stream, belief, i, bandwidth[i], 1.0 / max(bandwidth[i], 1), message)
            listen(belief, manager, message, anchor, crop_weight, maps, disposition, moved, rewritten)
            for k in range(message.size):
                message[k] = 0.0
            message[answer(stream, belief, manager, rules.report)] = 1.0
            for j in range(manager):
                listen(belief, j, message, anchor, crop_weight, maps, disposition, moved, rewritten)


@inner
def probe(runs, run, rules, number):
    """Asks all agents, as the probe of this number; returns whether their answers are the same."""
    reports, belief = runs.reports[run], runs.belief[run]
    same = True
    for agent in range(reports.size):
        reports[agent] = answer(runs.answer_streams[run], belief, agent, rules.report)
        same = same and reports[agent] == reports[0]
    if runs.history.shape[1] > 0:
        copy_to(runs.history[run, number], reports)
    if runs.paths.shape[1] > 0:
        m = q = 0.0
        for i in range(rules.n_observers):
            s = belief[i, runs.axis[run, 0]] - belief[i, runs.axis[run, 1]]
            m += s
            q += s * s
        runs.paths[run, number, 0] = m / rules.n_observers
        runs.paths[run, number, 1] = q / rules.n_observers
    return same


@compiled
def advance(active, runs, team, rules, n_probes):
    """Plays the runs with the numbers `active` up to `n_probes` more probes, or to their ends.

    Without any it makes the first probe, for the isolated answers before any message.
    """
    for k in range(active.size):
        run = active[k]
        trial = run if team.anchor.shape[0] > 1 else 0
        belief, stream = runs.belief[run], runs.streams[run]
        anchor, weight = team.anchor[trial], team.crop_weight[trial]
        if n_probes == 0:
            probe(runs, run, rules, runs.steps[run])
        for _ in range(n_probes):
            stopped = rules.patience > 0 and runs.unanimous[run] >= rules.patience
            if stopped or runs.steps[run] >= rules.max_steps:
                break
            n_steps = min(rules.probe_every, rules.max_steps - runs.steps[run])
            play_steps(n_steps, belief, stream, team.bandwidth, anchor, weight, team.maps, team.disposition, rules)
            runs.steps[run] += n_steps
            same = probe(runs, run, rules, -(-runs.steps[run] // rules.probe_every))
            runs.unanimous[run] = runs.unanimous[run] + 1 if same else 0
