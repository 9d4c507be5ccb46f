"""The exact distribution of words among a few agents who have a policy each, whoever meets whom."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.sparse import csr_array
from scipy.stats import chisquare

import validation
from meanfield.core import HEARS
from meanfield.toolbox import space_of

Law = tuple[np.ndarray, np.ndarray]


class ExactGame:
    """The chain of all memories of all `agents`, of two words."""

    def __init__(self, agents: Sequence[xr.Dataset], hears: str = "majority") -> None:
        assert hears in HEARS
        self.q, self.space, self.hears = np.stack([one["q"].values for one in agents]), space_of(agents[0]), hears
        self.places = self.space.n_states ** np.arange(len(agents))
        self.size = self.space.n_states ** len(agents)
        self.states = np.arange(self.size)[:, None] // self.places % self.space.n_states
        self.empty = np.eye(1, self.size)[0]

    def meeting(self, members: Sequence[int]) -> csr_array:
        """Probabilities of memories before and after a meeting of these agents."""
        here, successors, total = np.arange(self.size), self.space.successors(), csr_array((self.size, self.size))
        for said in itertools.product(range(2), repeat=len(members)):
            chance = np.prod([self.q[i, self.states[:, i], own] for i, own in zip(members, said, strict=True)], axis=0)
            for p, heard in self._heard(said):
                after = here.copy()
                for i, own, other in zip(members, said, heard, strict=True):
                    state = self.states[:, i]
                    after += (successors[state] + 2 * own + other - state) * self.places[i]
                total += csr_array((p * chance, (here, after)), shape=total.shape)
        return total

    def _heard(self, said: Sequence[int]) -> list[tuple[float, tuple[int, ...]]]:
        if self.hears == "majority":
            each = [_mode([word for k, word in enumerate(said) if k != member]) for member in range(len(said))]
            return [(0.5 ** sum(map(len, each)) * 2.0 ** len(said), heard) for heard in itertools.product(*each)]
        words = _mode(said) if self.hears == "vote" else said
        return [(1 / len(words), (word,) * len(said)) for word in words]

    def one_by_one(self, weights: Mapping[Sequence[int], float], meetings: int) -> Law:
        """Shares after so many meetings of random members, with probabilities in proportion to `weights`."""
        total, law = sum(weights.values()), self.empty
        step = sum(weight / total * self.meeting(members) for members, weight in weights.items())
        for _ in range(meetings):
            law = step.T @ law
        return self.shares(law)

    def in_matchings(self, edges: Sequence[tuple[int, int]], rounds: int) -> Law:
        """Shares after rounds of N interactions in random maximal matchings, the last one of each round cut short."""
        n_agents, found, law = len(self.places), {}, self.empty
        for order in itertools.permutations(edges):
            pairs: list[tuple[int, int]] = []
            for edge in order:
                pairs += [edge] * (not set(edge) & {i for pair in pairs for i in pair})
            found[tuple(pairs)] = found.get(tuple(pairs), 0) + 1
        steps, total = {edge: self.meeting(edge).T for edge in edges}, sum(found.values())
        for _ in range(rounds):
            parts = {0: law}
            for done in range(n_agents):
                for pairs, number in found.items() if done in parts else ():
                    after, some = number / total * parts[done], pairs[: n_agents - done]
                    for edge in some:
                        after = steps[edge] @ after
                    parts[done + len(some)] = parts.get(done + len(some), 0) + after
            law = parts[n_agents]
        return self.shares(law)

    def shares(self, law: np.ndarray) -> Law:
        """Values of the share of the first word, and their probabilities."""
        shares = self.q[range(len(self.places)), self.states, 0].mean(1)
        values, which = np.unique(shares.round(9), return_inverse=True)
        return values, np.bincount(which, law)


def _mode(said: Sequence[int]) -> list[int]:
    counts = np.bincount(said, minlength=2)
    return np.flatnonzero(counts == counts.max()).tolist()


def agreement(policy: xr.Dataset, exact: Law, rounds: int = 2, runs: int = 20_000, **options) -> float:
    """The p-value of χ² for shares of the first word among four agents in simulated runs."""
    values, law = exact
    found = validation.simulate(policy, n_agents=4, runs=runs, seed=5, max_rounds=9, record_rounds=rounds, **options)
    shares = found["word_share"].isel(n_agents=0, round=rounds, word=0).values.round(9)
    places = np.searchsorted(values, shares - 1e-8)
    assert np.abs(values[places] - shares).max() < 1e-8
    counts, expected = np.bincount(places, minlength=len(values)), runs * law
    common = expected > 5
    rest = [expected[~common].sum()] if expected[~common].sum() > 5 else []
    counted = np.append(counts[common], [counts[~common].sum()] * len(rest))
    expected = np.append(expected[common], rest)
    return chisquare(counted, expected * counted.sum() / expected.sum()).pvalue
