"""Statistics that grow where choices depart from a policy in one way or another.

Each has residuals e = [word was said] - p, or log q(said) less its mean for the direction of sharpness. Given the past,
every residual has mean 0 under the policy, so that products with anything known before it are martingale differences:
runs may stop, and agents may return to a memory, because of what was said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from validation.populations._schedule import UNSAID, Schedule
from validation.populations._tilts import Cells, Tilts, numbered

# Differences of log-odds and of sharpness that tests of variance are most powerful for: large groups count like others
TYPICAL = {"words": 0.3, "sharpness": 0.2}
PLAYERS = 2


class Departure(NamedTuple):
    """How far choices depart from a policy in one way."""

    statistic: float  # grows with it
    effect: float  # its size, in log-odds or sharpness
    number: int  # of things that were compared


NOTHING = Departure(np.nan, np.nan, 0)


class Residuals:
    """Residuals of choices in memory states under policies near q."""

    def __init__(self, schedule: Schedule, said: np.ndarray, log_q: np.ndarray, cells: Cells, tilts: Tilts) -> None:
        self.schedule, self.said = schedule, said
        self.state = cells.state[cells.of]
        logs = log_q[cells.state].T.copy()
        p = tilts.probabilities(cells.unit, logs)
        centred = logs - (p * logs).sum(0)
        chosen = said[schedule.free]
        # (word, choice)
        self.p = p[:, cells.of]
        self.words = (chosen == np.arange(len(p))[:, None]) - self.p
        self.variance = self.p * (1 - self.p)
        # (choice,)
        self.sharpness = centred[chosen, cells.of]
        self.spread = (p * centred**2).sum(0)[cells.of]

    def directions(self, direction: str) -> list[tuple[np.ndarray, np.ndarray]]:
        """Residuals and their variances (choice,): one pair a word, or one for sharpness."""
        if direction == "sharpness":
            return [(self.sharpness, self.spread)]
        return list(zip(self.words, self.variance, strict=True))


def apart(residuals: Residuals, direction: str, group: np.ndarray, parent: np.ndarray) -> Departure:
    """Score test of a variance: sums over `group` (choice,) vary more than chance within their `parent` (choice,)."""
    of, n_groups = numbered(group)
    above = np.empty(n_groups, dtype=np.int64)
    above[of] = parent
    above, n_parents = numbered(above)
    top = bottom = square = 0.0
    for values, variances in residuals.directions(direction):
        S, V = (np.bincount(of, v, minlength=n_groups) for v in (values, variances))
        S_above, V_above = (np.bincount(above, v, minlength=n_parents)[above] for v in (S, V))
        share = np.divide(V, V_above, out=np.zeros_like(V), where=V_above > 0)
        S, V = S - share * S_above, V * (1 - share)
        weight = 1 / (1 + TYPICAL[direction] ** 2 * V) ** 2
        top += (weight * (S**2 - V)).sum()
        bottom += (weight * V**2).sum()
        square += (weight**2 * V**2).sum()
    several = np.bincount(above)[above] > 1
    if not several.any() or square <= 0:
        return NOTHING
    return Departure(top / np.sqrt(2 * square), float(np.sqrt(max(0.0, top) / bottom)), int(several.sum()))


def drift(residuals: Residuals, direction: str, group: np.ndarray, order: np.ndarray) -> Departure:
    """Bridge of sums over `group` (choice,), in the given `order` of choices: mean square distance from its chord."""
    group = group[order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    lengths = np.diff(np.append(starts, len(group)))
    total, number = 0.0, 0
    for values, variances in residuals.directions(direction):
        S, V = values[order], variances[order]
        sum_S, sum_V = (np.add.reduceat(v, starts) for v in (S, V))
        # Within each group: the running sum less what the others before it left
        run_S, run_V = (np.cumsum(v) - np.repeat(np.cumsum(s) - s, lengths) for v, s in ((S, sum_S), (V, sum_V)))
        known = sum_V > 0
        scale = np.where(known, sum_V, 1)
        bridge = run_S - run_V / np.repeat(scale, lengths) * np.repeat(sum_S, lengths)
        # In the clock of the variance: stretches where all say the same do not count.
        squares = np.add.reduceat(bridge**2 * V, starts) / scale**2
        total += squares[known].sum()
        number = int(known.sum())
    return Departure(total, np.nan, number) if number else NOTHING


def alike(residuals: Residuals, first: np.ndarray, second: np.ndarray) -> Departure:
    """Whether pairs of choices depart from the policy in the same direction."""
    if not len(first):
        return NOTHING
    directions = residuals.directions("words")
    shared = float(sum((e[first] * e[second]).sum() for e, _ in directions))
    information = float(sum((v[first] * v[second]).sum() for _, v in directions))
    if information <= 0:
        return NOTHING
    effect = np.sqrt(max(0.0, shared) / information)
    return Departure(shared / np.sqrt(information), float(effect), len(first))


def trend(residuals: Residuals, direction: str, covariate: np.ndarray) -> Departure:
    """Score test of a coefficient of a covariate (choice,), compared within runs."""
    run, top, effects = residuals.schedule.run_of, 0.0, []
    for values, variances in residuals.directions(direction):
        V = np.bincount(run, variances)
        mean = np.divide(np.bincount(run, variances * covariate), V, out=np.zeros_like(V), where=V > 0)
        centred = covariate - mean[run]
        U, information = (centred * values).sum(), (centred**2 * variances).sum()
        if information > 0:
            top += U**2 / information
            effects.append(U / information)
    if not effects:
        return NOTHING
    return Departure(top, float(np.sqrt(np.mean(np.square(effects)))), len(run))


def echo(residuals: Residuals, lags: slice) -> Departure:
    """Score test of a coefficient: does a choice repeat words, own or partner's, of these forgotten interactions?"""
    past = residuals.schedule.earlier[lags]
    known = past != UNSAID
    # Own word and partner's, of the other slot of the interaction
    said = [residuals.said[past], residuals.said[past ^ 1]]
    heard = np.stack([sum(((one == word) & known).sum(0) for one in said) for word in range(len(residuals.p))])
    mean = (residuals.p * heard).sum(0)
    U = (residuals.words * heard).sum()
    information = (residuals.p * heard**2).sum() - (mean**2).sum()
    if information <= 0:
        return NOTHING
    return Departure(float(U**2 / information), float(U / information), int(known.any(0).sum()))


def next_in_memory(residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of consecutive choices of different agents in the same memory state of a run."""
    schedule = residuals.schedule
    key = schedule.run_of * (int(residuals.state.max()) + 1) + residuals.state
    order = np.argsort(key, kind="stable")
    first, second = order[:-1], order[1:]
    pairs = (key[first] == key[second]) & (schedule.agent_of[first] != schedule.agent_of[second])
    return first[pairs], second[pairs]


def next_elsewhere(residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of choices of different agents in different memory states, in consecutive interactions of a run."""
    schedule = residuals.schedule
    first = np.arange(len(schedule.free) - PLAYERS)
    second = first + PLAYERS
    pairs = (schedule.run_of[first] == schedule.run_of[second]) & (
        schedule.agent_of[first] != schedule.agent_of[second]
    )
    pairs &= (residuals.state[first] != residuals.state[second]) & (schedule.step_of[first] != schedule.step_of[second])
    return first[pairs], second[pairs]


def partners(residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of choices of one interaction."""
    interaction = residuals.schedule.free // 2
    first = np.flatnonzero(interaction[1:] == interaction[:-1])
    return first, first + 1
