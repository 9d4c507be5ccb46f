"""When a population counts as agreed: most of its last 3N interactions were successes ([001] Methods).

Of the last K = 3N interactions at most k₀ may fail. If each fails with the chance φ, their number k has the binomial
law π. Taken for a birth-death process with this law, in which each failure is forgotten at the rate 1/K, it first
reaches k₀ from k > k₀ at the rate

    S_{k₀+1} / Σ_{k>k₀} S_k² K/(k π_k),   S_k = P(at least k fail).

A real failure is forgotten after K interactions exactly. Near k₀ = Kφ that makes the number fluctuate as if twice as
fast, for rare agreements not at all: the rate is multiplied by 1 + (k₀ + 1)/(Kφ), 2 at most. For 1.2 k₀ ≤ Kφ ≤ 2 k₀ and
N = 24 to 100 it is within 45 % of the simulated one.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float
from scipy.stats import binom

WINDOW = 3  # rounds
RANGE = 12  # standard deviations of the number of failures within which agreement is looked at
POINTS = 200


class AgreementRule:
    """At which rate N agents are first seen to agree."""

    def __init__(self, n_agents: int, success_rate: float) -> None:
        size = WINDOW * n_agents
        allowed = size - math.ceil(Fraction(str(success_rate)) * size)
        most = allowed + 1 + RANGE * math.sqrt(allowed + 1) + RANGE
        least = (allowed + 1) * max(0.05, 1 - RANGE / math.sqrt(allowed + 1))
        self._chances = np.geomspace(least / size, min(most / size, 0.5), POINTS)
        k = np.arange(allowed + 1, min(int(most + RANGE * math.sqrt(most)), size) + 1)
        with np.errstate(divide="ignore"):
            self._logs = np.log([_rate(chance, k, size) for chance in self._chances])

    def per_interaction(self, chance: Float[np.ndarray, " points"]) -> Float[np.ndarray, " points"]:
        """The rate at which agreement is first seen, where interactions fail with this chance."""
        logs = np.interp(np.log(np.maximum(chance, 1e-300)), np.log(self._chances), self._logs)
        return np.where(chance <= self._chances[-1], np.exp(logs), 0.0)


def _rate(chance: float, k: np.ndarray, size: int) -> float:
    law, tail = binom.pmf(k, size, chance), binom.sf(k - 1, size, chance)
    known = law > 1e-280
    time = (tail[known] / law[known] * tail[known] * size / k[known]).sum()
    return float(tail[0] / time * (1 + min(1.0, k[0] / (size * chance))))
