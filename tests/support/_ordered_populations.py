"""Populations of known policies whose runs are in order, as a person would write them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from _real_populations import joined, real_log
from meanfield.datasets import RealPopulations

WORDS = ("A", "B")
N, H = 12, 2
LONGEST = 20 * N

# Sharpness and bias (log-odds of A) of an agent: from run, step, agent and whether it is the first of the two
Tilt = Callable[[int, int, int, bool], tuple[float, float]]


def one_tilt(run: int, step: int, agent: int, first: bool) -> tuple[float, float]:
    """One policy for all."""
    return 1.0, 0.0


def log_odds(memory: list[tuple[int, int]], strength: float = 1.0, bias: float = 0.2) -> float:
    """Log-odds of A: agents tend to the word they remember most, and a little to A."""
    return strength * sum(1 - own - partner for own, partner in memory) + bias


def play(
    random: np.random.Generator,
    runs: int,
    tilt: Tilt = one_tilt,
    *,
    remember: int = H,
    initial: str = "",
    first_run: int = 0,
    committed: int = 0,
) -> RealPopulations:
    """Runs that stop when 2N interactions in a row succeed, or at LONGEST. The policy looks at `remember` interactions.

    Agents below `committed` always say B.
    """
    rows = []
    for run in range(first_run, first_run + runs):
        memories = [[(WORDS.index(initial),) * 2] * remember if initial else [] for _ in range(N)]
        streak = 0
        for step in range(LONGEST):
            pair = random.permutation(N)[:2].tolist()
            words = []
            for k, agent in enumerate(pair):
                sharpness, bias = tilt(run, step, agent, k == 0)
                odds = sharpness * log_odds(memories[agent]) + bias
                words.append(1 if agent < committed else int(random.random() >= (1 + np.tanh(odds / 2)) / 2))
            for agent, own, partner in zip(pair, words, words[::-1], strict=True):
                memories[agent] = [*memories[agent], (own, partner)][-remember:]
            rows.append((run, step, *pair, *(WORDS[word] for word in words)))
            streak = streak + 1 if words[0] == words[1] else 0
            if streak == 2 * N and not committed:
                break
    minority = dict.fromkeys(range(committed), "B")
    return real_log(rows, H, words=WORDS, initial=initial, committed=minority, n_agents=N)


def experiments(random: np.random.Generator, tilt: Tilt = one_tilt, runs: int = 4) -> RealPopulations:
    """From empty memories, from consensus on B, and with a committed agent."""
    return joined(
        play(random, runs, tilt),
        play(random, runs, tilt, initial="B", first_run=runs),
        play(random, runs, tilt, initial="A", committed=1, first_run=2 * runs),
    )
