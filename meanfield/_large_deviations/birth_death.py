"""Rates between attractors of N agents in two states who change one at a time, from their exact chain.

With u_n and d_n the rates at which n agents in the second state become n + 1 and n - 1, π_n = Π_{k<n} u_k/d_(k+1)
is in detailed balance and 1/(π_n u_n) is the resistance between n and n + 1. From n until a < n or c > n is reached

    T = Σ_m π_m R(a, min(m, n)) R(max(m, n), c)/R(a, c),   P(c first) = R(a, n)/R(a, c),

with R the sum of the resistances between two places (Van Kampen, Stochastic Processes in Physics and Chemistry, ch.
XII). All terms are positive, so that no digits are lost; logarithms are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from meanfield._large_deviations.exits import Landscape
from meanfield._population.reaction_model import ReactionModel

Rates = Float[np.ndarray, "places places *sizes"]
Law = Float[np.ndarray, "places *sizes"]

MOST_AGENTS = 100_000  # theory, exact up to factors 1 + O(1/N), is used beyond
TINY = np.finfo(float).tiny  # rate, in place of 0 where steps go one way only


class ExactRates(NamedTuple):
    """Logarithms of rates for `few` of the sizes; NaN where N agents are too few to tell these places apart."""

    few: Bool[np.ndarray, " sizes"]
    between: Float[np.ndarray, "places places few"]  # attractors
    leaving: Float[np.ndarray, "places few"]  # to another attractor, or to where agents stay for good
    stationary: Float[np.ndarray, "places few"] | None  # fraction of time, None where agents stay somewhere for good


def balanced(rates: Rates, add: np.ufunc = np.logaddexp) -> Law:
    """Logarithms of the stationary distribution of a chain in which every place is reached from every other.

    The state reduction of Grassmann, Taksar and Heyman (Oper. Res. 33, 1107 (1985)) adds, multiplies and divides, but
    never subtracts: no digits are lost. With `np.maximum` as the sum, rates exp(-NΔ) given as -Δ have distributions
    exp(N · result) to leading order.
    """
    rates = rates.copy()
    size = len(rates)
    for n in range(size - 1, 0, -1):
        rates[:n, n] -= add.reduce(rates[n, :n])
        rates[:n, :n] = add(rates[:n, :n], rates[:n, None, n] + rates[None, n, :n])
    law = np.zeros(rates.shape[1:])
    for n in range(1, size):
        law[n] = add.reduce(law[:n] + rates[:n, n])
    return law - add.reduce(law)


def exact_rates(ground: Landscape, sizes: np.ndarray) -> ExactRates | None:
    """The rates between attractors of agents who have two states and change one at a time; None for others."""
    model, places = ground.model, ground.compositions[ground.attractors]
    few, moves = sizes <= MOST_AGENTS, zip(model.alpha, model.beta, model.first, model.second, strict=True)
    both = (((a * (one.diagonal() < 1)).any() and (b * (two.diagonal() < 1)).any()) for a, b, one, two in moves)
    if model.n_states != 2 or model.n_classes != 1 or not len(places) or not few.any() or any(both):
        return None
    between = np.full((len(places), len(places), few.sum()), np.nan)
    leaving, returns = between[:, 0].copy(), True
    for s, (up, down) in enumerate(_steps(model, sizes[few])):
        counts = np.rint(places[:, 1] * (len(up) - 1)).astype(int)
        for_good = [n for n, stays in ((0, up[0] == 0), (len(up) - 1, down[-1] == 0)) if stays]
        ends, returns = {*counts.tolist(), *for_good}, returns and not for_good
        if len(ends) < len(counts) + len(for_good) - (places == 0).any(1).sum():
            continue
        between[..., s] = -np.inf
        for i, n in enumerate(counts):
            below, above = max((k for k in ends if k < n), default=-1), min((k for k in ends if k > n), default=-1)
            rates = _rates_out(up, down, n, below, above)
            leaving[i, s] = np.nan if len(ends) == 1 and not for_good else np.logaddexp(*rates)
            for end, rate in zip((below, above), rates, strict=True):
                between[i, counts == end, s] = rate
    return ExactRates(few, between, leaving, np.exp(balanced(between)) if returns else None)


def _steps(model: ReactionModel, sizes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """u_n and d_n for n = 0 … N, of each number of agents N."""
    second = np.concatenate([np.arange(size + 1) for size in sizes])
    total = np.repeat(sizes, sizes + 1)
    counts, moves = np.stack([total - second, second], axis=1), model.moves
    driven = iter(model.changes.checked(counts / total[:, None]).T)
    flux = np.zeros((len(total), 2))
    for source, field, rate in zip(moves.source, moves.field, moves.rate, strict=True):
        if field < len(moves.offset):
            others = counts - np.eye(2)[source]
            felt = others @ moves.fields[field] / (total - 1) + moves.offset[field]
        else:
            felt = next(driven)
        flux[:, source] += rate * felt * counts[:, source]
    for one in np.split(flux, np.cumsum(sizes + 1)[:-1]):
        yield one[:, 0], one[:, 1]


def _rates_out(up: np.ndarray, down: np.ndarray, n: int, below: int, above: int) -> tuple[float, float]:
    """Logarithms of the rates at which n becomes `below` and `above`, the one before the other; -1 is no such place."""
    lowest, highest = n - int(np.argmin(down[n::-1] > 0)), n + int(np.argmin(up[n:] > 0))
    falls, rises = lowest <= below, 0 <= above <= highest
    part = slice(below + 1 if falls else lowest, above if rises else highest + 1)
    u, d = np.log(np.maximum(up[part], TINY)), np.log(np.maximum(down[part], TINY))
    weight = np.append(0.0, np.cumsum(u[:-1] - d[1:]))
    steps, here = -weight - u, n - part.start
    to_below = np.logaddexp.accumulate(np.append(-d[0], steps[:-1])) if falls else np.zeros(len(u))
    to_above = np.logaddexp.accumulate(steps[::-1])[::-1] if rises else np.zeros(len(u))
    places = np.arange(len(u))
    time = weight + to_below[np.minimum(places, here)] + to_above[np.maximum(places, here)]
    slow = -np.logaddexp.reduce(time)
    return slow + to_above[here] if falls else -np.inf, slow + to_below[here] if rises else -np.inf
