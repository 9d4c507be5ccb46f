"""Conventions that chance ends, such as those of agents who say what they remember most and err; counts of ends."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2_contingency

import meanfield


def follower(errs: float, empty: float = 0.5, tie: float = 0.5, length: int = 2, words: str = "AB"):
    """The word that an agent has said and heard most in its last interactions."""

    def first(memory):
        lead = sum(pair.count(words[0]) - 1 for pair in memory)
        return empty if not memory else tie if lead == 0 else 1 - errs if lead > 0 else errs

    return meanfield.make_policy(first, [*words], memory_length=length)


def counting_model(errs: float, tie: float = 0.5) -> meanfield.ReactionModel:
    """The same agents, of whom only the number of A in each of two interactions counts: nine states."""
    states = [(i, j) for i in range(3) for j in range(3)]
    lead = np.array([i + j - 2 for i, j in states])
    first = np.where(lead == 0, tie, np.where(lead > 0, 1 - errs, errs))
    said = [first, 1 - first]
    pairs = [(a, b) for a in range(2) for b in range(2)]
    after = [np.eye(9)[[states.index((j, 2 - a - b)) for _, j in states]] for a, b in pairs]
    names = [(f"{i}", j) for i, j in states]
    return meanfield.ReactionModel(
        names, [said[a] for a, _ in pairs], [said[b] for _, b in pairs], after, after, encounter_rate=0.5
    )


def ends(runs, width: int) -> np.ndarray:
    """Numbers of runs of one size by winner, A or not, and by consensus round in 13 bins, the last for none too."""
    word, rounds = (runs[name].isel(n_agents=0).values for name in ("consensus_word", "consensus_round"))
    late = np.minimum(np.nan_to_num(rounds, nan=12 * width) // width, 12).astype(int)
    return np.bincount(13 * (word == "A") + late, minlength=26)


def alike(one: np.ndarray, other: np.ndarray) -> float:
    """p of two such numbers of runs having one distribution."""
    table = np.stack([one, other])
    return chi2_contingency(table[:, table.sum(0) > 10]).pvalue


def copying(fitness=(1.0, 1.0), errors: float = 0.0) -> meanfield.ReactionModel:
    """Agents who make those whom they meet their copies, as often as their state is fit, and mutate."""
    hear = [np.array([[1.0, 0], [1, 0]]), np.array([[0.0, 1], [0, 1]])]
    alone = errors * (1 - np.eye(2))
    return meanfield.ReactionModel(["A", "B"], np.diag(fitness), np.ones((2, 2)), None, hear, alone)


def voters(error: float, followed: int = 6) -> meanfield.ReactionModel:
    """Agents who follow so many others if these agree, and err."""
    rates = [lambda x, s=s: (1 - error) * x[s] ** followed + error / 2 for s in ("up", "down")]
    return meanfield.ReactionModel.from_rules({"down": "up", "up": "down"}, rates)


def most(points, state: str) -> int:
    """The number of the fixed point at which most agents are in this state."""
    return int(np.argmax(points["composition"].sel(state=state).values))
