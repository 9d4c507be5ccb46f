"""Epochs: a fixed number of interactions. Only interactions that meet an agent again are drawn one by one.

An epoch goes on beyond its first collision. It decides at once who has met whom, but draws the result of a meeting of
two fresh agents only when it is needed: until then such a pair waits, and its agents count by their states before it.

- Given t agents met so far, the number of interactions of fresh agents that follow is again a birthday problem in N.
- The next interaction is uniform over the ordered pairs with at least one agent met before. If that agent belongs to a
  waiting pair, the states of the two and the result of their meeting are drawn now: they are uniformly random agents of
  those not yet drawn, since nothing depended on them before. The other pairs go on waiting.
- At the end the waiting pairs are played at once, as a batch (`_engine.batches`).

So an epoch draws the numbers of a batch, one or more for every pair of states, once for several collisions. The code of
a collision is inlined, since handing all arrays on takes as long as the draws. Source: MultiBatch in Berenbrink,
Hammer, Kaaser, Meyer, Penschuck and Tran 2020, arXiv 2005.03584. There an epoch ends after so many agents met, here
after so many interactions, so that no round needs a part of an epoch.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.toolbox import compiled, inner
from validation._engine.batches import chosen_row, draw_below, draw_bits, draw_entry, draw_uniform, play_batch

LEAST_UNIFORM_LOG = -37.0  # below log(2^-53), so that no uniform number lies beyond the table from 0 agents met on


def log_survival(n_agents: int, interactions: int) -> np.ndarray:
    """A table: log_survival[t + 2k] - log_survival[t] = log P(k interactions meet 2k fresh agents | t were met).

    It covers t + 2k up to 2 · `interactions`, and for t = 0 all probabilities that a double can tell from 0.
    """
    longest = max(2 * interactions, 2 + math.isqrt(int(-2 * LEAST_UNIFORM_LOG * n_agents)))
    met = np.arange(min(n_agents, longest) - 1, dtype=float)
    table = np.zeros(met.size + 2)
    steps = np.log1p(-met / n_agents) + np.log1p(-met / (n_agents - 1))
    for parity in (0, 1):  # interactions of fresh agents add 2 to the agents met
        table[parity + 2 :: 2] = np.cumsum(steps[parity::2])
    return table


@compiled(inline="always")
def draw_length(stream, table, met, n_agents):
    """Number of interactions of fresh agents before the next collision, from the table `log_survival`."""
    surprise = -math.log(draw_uniform(stream))
    least = table[met] - surprise
    most = (table.size - 1 - met) // 2
    # log P is -((t + 2k)² - t²) / 2N to leading order, from which the exact entry is a step or two
    guess = (math.sqrt(np.float64(met) * met + 2.0 * n_agents * surprise) - met) / 2
    k = most if guess >= most else np.int64(guess)
    while k < most and table[met + 2 * k + 2] >= least:
        k += 1
    while k > 0 and table[met + 2 * k] < least:
        k -= 1
    return k


@compiled(inline="always")
def take_agent(stream, counts, number):
    """Removes a uniformly random one of the `number` agents in `counts` (K,); returns its state."""
    state = draw_entry(stream, counts, number)
    counts[state] -= 1
    return state


@compiled(inline="always")
def draw_row(stream, pair, first_row, thresholds):
    """The row of one outcome of the pair."""
    if first_row[pair + 1] - first_row[pair] == 1:
        return first_row[pair]
    return chosen_row(first_row, thresholds, pair, draw_bits(stream))


@compiled(inline="always")
def take_met(stream, place, fresh, met, n_fresh, waiting, first_row, after, thresholds, counted):
    """Removes the agent met with the number `place`: first come agents of `waiting` pairs, then agents in `met` (K,).

    If it belongs to a pair, the pair is played and its partner goes to `met`. Returns its state, the number of pairs
    that still wait, and the number of marked interactions played.
    """
    if place >= 2 * waiting:
        place -= 2 * waiting
        state = 0
        while place >= met[state]:
            place -= met[state]
            state += 1
        met[state] -= 1
        return state, waiting, np.int64(0)
    i = take_agent(stream, fresh, n_fresh)
    j = take_agent(stream, fresh, n_fresh - 1)
    row = draw_row(stream, i * fresh.size + j, first_row, thresholds)
    side = place & 1
    met[after[row, 1 - side]] += 1
    return after[row, side], waiting - 1, counted[row]


@compiled(inline="always")
def collide(stream, fresh, met, n_agents, n_met, waiting, first_row, after, thresholds, counted):
    """One interaction with at least one of the `n_met` agents met, who are in `met` (K,) and in the `waiting` pairs.

    `fresh` (K,) has all others, and agents of the waiting pairs in their states before. Returns the number of agents
    met, of pairs that still wait, and of marked interactions played.
    """
    n_fresh, i, j, marked = n_agents - n_met + 2 * waiting, 0, 0, np.int64(0)
    # The other one: as a responder any of the N - 1, as an initiator only if not met, lest these pairs count twice
    places = n_met, 2 * n_agents - n_met - 1
    for other in range(2):  # a loop, so that the code is there once
        place = draw_below(stream, places[other])
        if place < n_met - other:
            state, left, more = take_met(
                stream, place, fresh, met, n_fresh, waiting, first_row, after, thresholds, counted
            )
            n_fresh, waiting, marked = n_fresh - 2 * (waiting - left), left, marked + more
            i, j = (i, state) if other else (state, j)
        else:
            j = take_agent(stream, fresh, n_fresh)
            if place >= n_agents - 1:
                i, j = j, i
            n_met += 1
    row = draw_row(stream, i * met.size + j, first_row, thresholds)
    met[after[row, 0]] += 1
    met[after[row, 1]] += 1
    return n_met, waiting, marked + counted[row]


@inner
def play_epoch(stream, counts, n_agents, length, table, outcomes):
    """`length` interactions of the agents in `counts` (K,); returns how many were marked."""
    first_row, after, thresholds, counted = outcomes.first_row, outcomes.after, outcomes.thresholds, outcomes.marked
    met, initiators, responders = np.zeros(counts.size, np.int64), np.empty_like(counts), np.empty_like(counts)
    rows, numbers = np.empty_like(counted), np.empty_like(counted)
    left, n_met, waiting, marked = length, 0, 0, np.int64(0)
    while True:
        free = min(left, draw_length(stream, table, n_met, n_agents))
        left -= free
        n_met += 2 * free
        waiting += free
        if left == 0:
            break
        n_met, waiting, more = collide(
            stream, counts, met, n_agents, n_met, waiting, first_row, after, thresholds, counted
        )
        marked += more
        left -= 1
    n_fresh = n_agents - n_met + 2 * waiting
    work = initiators, responders, met, rows, numbers
    n_rows = play_batch(stream, counts, n_fresh, waiting, first_row, after, outcomes.chance, *work)
    for k in range(n_rows):
        marked += counted[rows[k]] * numbers[k]
    for state in range(counts.size):
        counts[state] += met[state]
    return marked
