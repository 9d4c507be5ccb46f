"""The committed minorities of [001] Fig. 3B: one policy and several against the real runs of Llama 3.1."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import meanfield
import validation
from meanfield import MemorySpace
from meanfield.datasets import RealPopulations
from validation.populations import empirical_policy, sample_policies
from validation.populations._experiment import Experiment
from validation.populations._mixture import Mixture, _best, _observed

ROUNDS, N_AGENTS, PERIOD = 30, 24, 20
NUMBERS = [1, 2, 4, 6, 8, 10]  # committed to Q, ten runs each
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked_types")]


@pytest.fixture(scope="module")
def real(data_folder) -> RealPopulations:
    """Llama 3.1 {M, Q}, H = 5."""
    published = meanfield.datasets.ai_norms(data_folder, ordered=True)
    runs, events, counts = published.runs, published.events, published.choice_counts
    assert events is not None
    words = runs["options"].isin(["M Q", "Q M"])
    runs = runs[words & (runs["model"] == "llama31") & (runs["memory_length"] == 5)]
    of_it = (counts["model"] == "llama31") & (counts["options"] == "M_Q") & (counts["memory_length"] == 5)
    return RealPopulations(counts[of_it], runs, events[events["run"].isin(runs["run"])])


def first_flip(said: np.ndarray) -> float:
    """The interaction with which 95 % of the last 3N have succeeded, most of them on Q."""
    window = 3 * N_AGENTS
    succeeded, on_q = (np.append(0, np.cumsum(one)) for one in (said[:, 0] == said[:, 1], (said == "Q").sum(1)))
    agreed = succeeded[window:] - succeeded[:-window] >= 0.95 * window
    agreed &= on_q[window:] - on_q[:-window] > window
    return window + int(agreed.argmax()) if agreed.any() else np.inf


def real_flips(real: RealPopulations) -> list[int]:
    runs = real.runs[(real.runs["n_agents"] == N_AGENTS) & (real.runs["committed_word"] == "Q")]
    assert real.events is not None
    events = dict(iter(real.events.groupby("run")))
    when = {run: first_flip(events[run][["said", "heard"]].to_numpy(str)) for run in runs["run"]}
    in_time = runs["run"].map(when) <= ROUNDS * N_AGENTS
    return [int(in_time[runs["n_committed"] == n].sum()) for n in NUMBERS]


def test_one_policy_cannot_foretell_the_flips_beside_four_agents(real):
    """Nor can any that its posterior holds."""
    flips = real_flips(real)
    assert flips == [0, 0, 5, 5, 5, 9]
    options = {"n_agents": N_AGENTS, "word": "Q", "numbers": NUMBERS, "runs": 500, "seed": 1}
    drawn = [
        validation.naming_game.committed_minority(policy, **options)["flipped"].values
        for policy in sample_policies(empirical_policy(real.choice_counts), 10, seed=1)
    ]
    likely = np.mean([tails(flips, chances) for chances in drawn], axis=0)
    assert likely[2] < 1e-3
    assert (np.delete(likely, 2) > 0.01).all()


def test_policies_that_change_in_runs_foretell_the_flips(real):
    (one,) = Experiment.all_of(real)
    observed = _observed(one, PERIOD)
    mixture = _best(observed, 3, np.random.default_rng(0))[0]
    chances = np.array([changing_flips(mixture, number, 1000) for number in NUMBERS])
    assert (tails(real_flips(real), chances) > 0.01).all()


def tails(flips: list[int], chances: np.ndarray, runs: int = 10) -> np.ndarray:
    """Twice the probability of a number as far off."""
    low, high = binom.cdf(flips, runs, chances), binom.sf(np.array(flips) - 1, runs, chances)
    return np.minimum(1, 2 * np.minimum(low, high))


def changing_flips(mixture: Mixture, number: int, runs: int) -> float:
    """Fraction of runs that flip if the policy is kept or drawn anew after each period."""
    random, space, rows = np.random.default_rng(number), MemorySpace(2, 5), np.arange(runs)
    first, successors = mixture.q[:, :, 0], space.successors()  # of words M, Q
    memory = np.full((runs, N_AGENTS), space.consensus_state(0))
    policy = random.choice(len(mixture.shares), runs, p=mixture.shares)
    said = np.empty((ROUNDS * N_AGENTS, runs, 2), dtype=int)
    for step in range(len(said)):
        if step and step % PERIOD == 0:
            anew = random.random(runs) < mixture.change
            policy[anew] = random.choice(len(mixture.shares), anew.sum(), p=mixture.shares)
        one = random.integers(N_AGENTS, size=runs)
        two = (one + random.integers(1, N_AGENTS, size=runs)) % N_AGENTS
        pair = np.stack([one, two], axis=1)
        old = memory[rows[:, None], pair]
        said[step] = (random.random((runs, 2)) >= first[policy[:, None], old]) | (pair < number)
        memory[rows[:, None], pair] = successors[old] + 2 * said[step] + said[step][:, ::-1]
    words = np.array(["M", "Q"])[said]
    return float(np.mean([first_flip(words[:, run]) < np.inf for run in range(runs)]))
