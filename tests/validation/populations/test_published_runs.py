"""The published runs in order: one policy or several, also against the committed minorities of [001] Fig. 3B."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import meanfield
import validation
from meanfield import MemorySpace
from meanfield.datasets import RealPopulations
from validation.populations import empirical_policy, mixture, one_policy, sample_policies, sharpness
from validation.populations._experiment import Experiment
from validation.populations._mixture import Mixture, _best, _observed

ROUNDS, N_AGENTS, PERIOD = 30, 24, 20
NUMBERS = [1, 2, 4, 6, 8, 10]  # committed to Q, ten runs each
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unchecked_types")]


@pytest.fixture(scope="module")
def published(data_folder) -> RealPopulations:
    return meanfield.datasets.ai_norms(data_folder, ordered=True)


def of(published: RealPopulations, model: str, words: str, experiments: str) -> RealPopulations:
    """The runs of one model, of two words in any order, and H = 5."""
    options = "_".join(words.split())
    runs, counts = (table[table["memory_length"] == 5] for table in (published.runs, published.choice_counts))
    runs = runs[(runs["model"] == model) & runs["options"].isin([words, " ".join(words.split()[::-1])])]
    runs = runs[runs["experiment"].str.fullmatch(experiments)]
    counts = counts[(counts["model"] == model) & (counts["options"] == options)]
    assert published.events is not None
    return RealPopulations(counts, runs, published.events[published.events["run"].isin(runs["run"])])


@pytest.fixture(scope="module")
def real(published) -> RealPopulations:
    return of(published, "llama31", "M Q", ".*")


def test_llama3_followed_one_policy(published):
    xy = of(published, "llama3", "X Y", "from_empty")
    assert (one_policy(xy, imitations=99)["p_value"] < 0.02).sum() <= 2, "19 tests; 0.2 expected"
    assert mixture(xy, most=2).numbers.set_index("components")["chosen"].tolist() == [True, False]


def test_llama31_mq_changed_its_policy_but_its_agents_are_alike(published):
    fresh = of(published, "llama31", "M Q", "from_empty")
    table = one_policy(fresh, imitations=99).set_index(["compared", "direction"])["p_value"]
    assert table["runs", "policy"] == table["order of runs", "sharpness"] == 0.01
    assert table["time in a run", "words"] == table["next choice, same memory", "words"] == 0.01
    assert table["agents", "words"] > 0.05 and table["interaction H + 1", "words"] > 0.05
    runs = sharpness(fresh).query("of == 'run'")["sharpness"].to_numpy()
    assert runs[:10].min() > 1.1 > runs[10:].mean()
    one = mixture(fresh, period=20, most=2).numbers.set_index("components")
    assert one.loc[2, "gain"] > 3 * one.loc[2, "gain_error"]  # 58 ± 15


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
    found = _best(observed, 3, np.random.default_rng(0))[0]
    chances = np.array([changing_flips(found, number, 1000) for number in NUMBERS])
    assert (tails(real_flips(real), chances) > 0.01).all()


def tails(flips: list[int], chances: np.ndarray, runs: int = 10) -> np.ndarray:
    """Twice the probability of a number as far off."""
    low, high = binom.cdf(flips, runs, chances), binom.sf(np.array(flips) - 1, runs, chances)
    return np.minimum(1, 2 * np.minimum(low, high))


def changing_flips(found: Mixture, number: int, runs: int) -> float:
    """Fraction of runs that flip if the policy is kept or drawn anew after each period."""
    random, space, rows = np.random.default_rng(number), MemorySpace(2, 5), np.arange(runs)
    first, successors = found.q[:, :, 0], space.successors()  # of words M, Q
    memory = np.full((runs, N_AGENTS), space.consensus_state(0))
    policy = random.choice(len(found.shares), runs, p=found.shares)
    said = np.empty((ROUNDS * N_AGENTS, runs, 2), dtype=int)
    for step in range(len(said)):
        if step and step % PERIOD == 0:
            anew = random.random(runs) < found.change
            policy[anew] = random.choice(len(found.shares), anew.sum(), p=found.shares)
        one = random.integers(N_AGENTS, size=runs)
        two = (one + random.integers(1, N_AGENTS, size=runs)) % N_AGENTS
        pair = np.stack([one, two], axis=1)
        old = memory[rows[:, None], pair]
        said[step] = (random.random((runs, 2)) >= first[policy[:, None], old]) | (pair < number)
        memory[rows[:, None], pair] = successors[old] + 2 * said[step] + said[step][:, ::-1]
    words = np.array(["M", "Q"])[said]
    return float(np.mean([first_flip(words[:, run]) < np.inf for run in range(runs)]))
