"""Statistics that grow where choices depart from a policy in one way or another.

Each has residuals e = [word was said] - p, or log q(said) less its mean for the direction of sharpness. Given the past,
every residual has mean 0 under the policy, so that products with anything known before it are martingale differences:
runs may stop, and agents may return to a memory, because of what was said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from validation.populations._choice_model import Cells, Tilts
from validation.populations._experiment import UNSAID, Experiment

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
    """Residuals of choices in memory states under policies near q, and their variances; arrays over `choice`."""

    def __init__(self, experiment: Experiment, said: np.ndarray, log_q: np.ndarray, cells: Cells, tilts: Tilts) -> None:
        self.experiment, self.said = experiment, said
        self.state = cells.state[cells.of]
        logs = log_q[cells.state].T.copy()
        p = tilts.probabilities(cells.unit, logs)
        centred = logs - (p * logs).sum(0)
        chosen = said[experiment.free]
        self.p = p[:, cells.of]  # (word, choice)
        self.words = (chosen == np.arange(len(self.p))[:, None]) - self.p
        sharpness, spread = centred[chosen, cells.of], (p * centred**2).sum(0)[cells.of]
        # (direction, choice): one direction a word, or the one of sharpness
        self.of = {"words": (self.words, self.p * (1 - self.p)), "sharpness": (sharpness[None], spread[None])}


def _sums(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Of values (direction, choice) by the group of each choice, (direction, group)."""
    return np.stack([np.bincount(group, one, minlength=n_groups) for one in values])


def _fraction(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """0 where the denominator is."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def apart(residuals: Residuals, direction: str, group: np.ndarray, parent: np.ndarray) -> Departure:
    """Score test of a variance: sums over `group` (choice,) vary more than chance within their `parent` (choice,)."""
    _, first, of = np.unique(group, return_index=True, return_inverse=True)
    _, above = np.unique(parent[first], return_inverse=True)
    several = np.bincount(above)[above] > 1
    S, V = (_sums(of, one, len(first)) for one in residuals.of[direction])
    S_above, V_above = (_sums(above, one, above.max() + 1)[:, above] for one in (S, V))
    share = _fraction(V, V_above)
    S, V = S - share * S_above, V * (1 - share)
    weight = 1 / (1 + TYPICAL[direction] ** 2 * V) ** 2
    top, square = (weight * (S**2 - V)).sum(), (weight**2 * V**2).sum()
    if not several.any() or square <= 0:
        return NOTHING
    effect = np.sqrt(max(0.0, top) / (weight * V**2).sum())
    return Departure(top / np.sqrt(2 * square), float(effect), int(several.sum()))


def drift(residuals: Residuals, direction: str, group: np.ndarray, order: np.ndarray) -> Departure:
    """Bridge of sums over `group` (choice,), in the given `order` of choices: mean square distance from its chord."""
    group = group[order]
    starts = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    lengths = np.diff(np.append(starts, len(group)))
    S, V = (one[:, order] for one in residuals.of[direction])
    sum_S, sum_V = (np.add.reduceat(one, starts, axis=1) for one in (S, V))

    def repeated(sums: np.ndarray) -> np.ndarray:
        return np.repeat(sums, lengths, axis=1)

    # Within each group: the running sum less what the others before it left
    run_S, run_V = (np.cumsum(one, 1) - repeated(np.cumsum(sums, 1) - sums) for one, sums in ((S, sum_S), (V, sum_V)))
    known = sum_V > 0
    scale = np.where(known, sum_V, 1)
    bridge = run_S - run_V / repeated(scale) * repeated(sum_S)
    # In the clock of the variance: stretches where all say the same do not count.
    squares = np.add.reduceat(bridge**2 * V, starts, axis=1) / scale**2
    number = int(known[-1].sum())
    return Departure(squares[known].sum(), np.nan, number) if number else NOTHING


def alike(residuals: Residuals, first: np.ndarray, second: np.ndarray) -> Departure:
    """Whether pairs of choices depart from the policy in the same direction."""
    shared, information = (float((one[:, first] * one[:, second]).sum()) for one in residuals.of["words"])
    if information <= 0:
        return NOTHING
    effect = np.sqrt(max(0.0, shared) / information)
    return Departure(shared / np.sqrt(information), float(effect), len(first))


def trend(residuals: Residuals, direction: str, covariate: np.ndarray) -> Departure:
    """Score test of a coefficient of a covariate (choice,), compared within runs."""
    run, (values, variances) = residuals.experiment.run_of, residuals.of[direction]
    n_runs = int(run.max()) + 1
    mean = _fraction(_sums(run, variances * covariate, n_runs), _sums(run, variances, n_runs))
    centred = covariate - mean[:, run]
    U, information = (centred * values).sum(1), (centred**2 * variances).sum(1)
    U, information = U[information > 0], information[information > 0]
    if not len(U):
        return NOTHING
    return Departure((U**2 / information).sum(), float(np.sqrt(np.mean((U / information) ** 2))), len(run))


def echo(residuals: Residuals, past: np.ndarray) -> Departure:
    """Score test of a coefficient: does a choice repeat words, own or partner's, of these slots (lag, choice)?"""
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
    order = np.lexsort((residuals.state, residuals.experiment.run_of))
    return _of_two(residuals, order[:-1], order[1:], same_state=True)


def next_elsewhere(residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of choices of different agents in different memory states, in consecutive interactions of a run."""
    first = np.arange(len(residuals.state) - PLAYERS)
    first, second = _of_two(residuals, first, first + PLAYERS, same_state=False)
    later = residuals.experiment.step_of[first] != residuals.experiment.step_of[second]
    return first[later], second[later]


def _of_two(
    residuals: Residuals, first: np.ndarray, second: np.ndarray, same_state: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of one run and two agents, in the same state or in different ones."""
    run, agent, state = residuals.experiment.run_of, residuals.experiment.agent_of, residuals.state
    pairs = (run[first] == run[second]) & (agent[first] != agent[second])
    pairs &= (state[first] == state[second]) == same_state
    return first[pairs], second[pairs]


def partners(residuals: Residuals) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of choices of one interaction."""
    interaction = residuals.experiment.free // PLAYERS
    first = np.flatnonzero(interaction[1:] == interaction[:-1])
    return first, first + 1
