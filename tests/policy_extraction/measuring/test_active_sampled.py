"""Sampled answers: what counts say of probits against quadrature, and measurements of tables that only speak."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr, ndtri
from scipy.stats import t
from test_active_measure import WORDS, family, leaning, table

import meanfield
from _known_server import backend
from _openai_server import Behaviour, KnownModel, serving
from meanfield import InputError, MemorySpace, ModelError
from policy_extraction import measure, sample_policies
from policy_extraction.backends import TableBackend
from policy_extraction.measuring._active.choice import XI
from policy_extraction.measuring._active.goals import Goal
from policy_extraction.measuring._active.sampled import ANSWERS, SampledExploration, quantile, sites
from policy_extraction.measuring._doubt import Tails
from policy_extraction.measuring._spoken import sampled_answers
from policy_extraction.prompts import NAMING_GAME, Payoffs

pytestmark = pytest.mark.usefixtures("unchecked_types")  # for the time that they take


def exact(K: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of two probits, given counts, on a grid."""
    axis = np.linspace(-9, 9, 401)
    z = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    log = -np.einsum("...i,ij,...j->...", z, np.linalg.inv(K), z) / 2
    log += (counts[:, 0] * log_ndtr(z) + counts[:, 1] * log_ndtr(-z)).sum(-1)
    weight = np.exp(log - log.max())
    mean = np.tensordot(weight, z, 2) / weight.sum()
    return mean, np.tensordot(weight, (z - mean) ** 2, 2) / weight.sum()


def marginals(K: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    z, tau = sites(K, counts, np.zeros((2, 2)))
    covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    return covariance @ (tau * z), np.diag(covariance)


@pytest.mark.parametrize("counts", [(0, 4), (4, 0), (2, 2), (200, 300), (0, 4000), (0, 0)])
def test_a_single_memory_is_known_as_by_quadrature(counts):
    K, both = np.diag([2.0, 0.5]), np.array([counts, (0, 0)], dtype=float)
    for found, expected in zip(marginals(K, both), exact(K, both), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("counts", [((0, 4), (1, 3)), ((4, 0), (0, 4)), ((30, 10), (0, 1))])
def test_related_memories_are_known_nearly_as_by_quadrature(counts):
    """The approximation is known to be close; the control takes the counts of the first memory alone."""
    K, both = np.array([[2.0, 1.2], [1.2, 1.5]]), np.array(counts, dtype=float)
    (mean, variance), (true, spread) = marginals(K, both), exact(K, both)
    assert (np.abs(mean - true) < 0.02 * np.sqrt(spread)).all()
    np.testing.assert_allclose(variance, spread, rtol=0.03)
    alone, _ = marginals(K, both * [[1.0], [0.0]])
    assert np.abs(alone - true)[1] > 0.2 * np.sqrt(spread)[1]


def test_errors_of_predicted_counts_have_the_tails_of_errors():
    """2,000 counts: normal scores' mean has a standard error of 0.022, the deviation 0.016. The control has thrice."""
    random, mean, deviation = np.random.default_rng(3), 0.3, 0.8
    q = ndtr(mean + deviation * Tails().of(random.standard_normal(2000)))
    counts = random.binomial(ANSWERS, q)
    right, wide = (
        ndtri(t.cdf([quantile(int(k), ndtr(mean + deviation * tails.of(XI)), random) for k in counts], 3, scale=0.7))
        for tails in (Tails(), Tails(3 * Tails().scale))
    )
    assert abs(right.mean()) < 0.1
    assert abs(right.std() - 1) < 0.07
    assert wide.std() < 0.85
    assert np.isfinite([quantile(count, np.full(len(XI), 1e-308), random) for count in range(ANSWERS + 1)]).all()


def test_many_answers_are_as_good_as_probabilities():
    """100,000 answers to some memories: their probabilities are known, in the policy and in draws."""
    space, random = MemorySpace(2, 2), np.random.default_rng(6)
    q = ndtr(random.standard_normal(space.n_states))
    found = SampledExploration(lambda states: states, 0.1, 0, space, WORDS, Goal("word_share"))
    found.order = np.array([0, 3, 4, 11])
    found.counts[found.order] = np.round(1e5 * np.stack([q, 1 - q], axis=1)).astype(int)[found.order]
    found._fit()
    np.testing.assert_allclose(found.best()[found.order, 0], q[found.order], atol=0.005)
    drawn = [found.draw(np.random.default_rng(seed), Tails())[:, 0] for seed in range(20)]
    np.testing.assert_allclose(np.array(drawn)[:, found.order], np.tile(q[found.order], (20, 1)), atol=0.01)
    others = np.setdiff1d(np.arange(space.n_states), found.order)
    assert np.std(drawn, axis=0)[others].min() > 0.01  # the control


class Silent(TableBackend):
    """Speaks, but has no log-probabilities; may be interrupted after so many answers."""

    left = 10**9

    def check(self, prompts, words):
        raise AssertionError

    def score(self, prompts, words):
        raise AssertionError

    def generate(self, prompts, **options):
        if self.left < len(prompts):
            raise KeyboardInterrupt
        self.left -= len(prompts)
        return super().generate(prompts, **options)


def silent(q: np.ndarray, length: int, identity: str = "", left: int = 10**9) -> TableBackend:
    backend = table(q, length, identity)
    backend.__class__ = type("Speaking", (Silent,), {"left": left})
    return backend


OPTIONS = {"words": WORDS, "temperature": 1.0, "sampled": True, "goal": "word_share"}


def test_a_model_that_only_speaks_is_measured():
    q = leaning(2, strength=0.5)
    policy = measure(silent(q, 2), memory_length=2, tolerance=0.25, budget=4000, cache=False, **OPTIONS)
    share = meanfield.fixed_points(meanfield.make_policy(q, WORDS))["word_share"].values[0, 0]
    assert policy.attrs["reached"] == 1
    assert policy.attrs["goal_low"] <= share <= policy.attrs["goal_high"]
    assert policy["answers"].values.sum() == policy.attrs["prompts_used"] < 4000
    np.testing.assert_array_equal(policy["answers"].values.sum(1) > 0, policy["asked"].values)
    assert (policy["answers"].values.sum(1) % ANSWERS == 0).all()
    meanfield.validate_policy(policy)
    draws = np.array([one["q"].sel(word="his").values for one in sample_policies(policy, 60, seed=1)])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    assert ((low <= q) & (q <= high)).mean() > 0.7  # of 21 memories, whose errors are not independent
    narrow = np.quantile(draws, [0.45, 0.55], axis=0)  # the control
    assert ((narrow[0] <= q) & (q <= narrow[1])).mean() < 0.7


def test_answers_are_kept_and_asked_once(tmp_path, capsys):
    q, options = leaning(2, strength=0.5), {**OPTIONS, "memory_length": 2, "budget": 140, "tolerance": 1e-9}
    backend = silent(q, 2, "one", left=70)
    with pytest.raises(KeyboardInterrupt):
        measure(backend, cache=tmp_path, **options)
    assert "answers are kept in" in capsys.readouterr().err
    backend.left = 140 - 70 + 64  # an interrupt loses up to 64 answers
    resumed = measure(backend, cache=tmp_path, **options)
    left = backend.left
    assert resumed.identical(measure(backend, cache=tmp_path, **options))
    assert backend.left == left
    assert 120 <= resumed.attrs["prompts_used"] <= 140
    assert resumed.attrs["reason"].startswith("the budget is spent")
    backend.left = 40
    other = measure(backend, cache=tmp_path, **{**options, "budget": 40, "temperature": 0.5})
    assert other.attrs["prompts_used"] == 40 - backend.left  # another temperature has answers of its own


def test_a_model_that_says_no_word_is_an_error():
    def law(memory, order):
        return {"hers": 0.9}

    with pytest.raises(ModelError, match="none of 100 answers to a prompt began with his or her"):
        measure(TableBackend(law, WORDS, 1), memory_length=1, budget=100, cache=False, **OPTIONS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "budget = None: expected a number of answers to sample"),
        ({"budget": 39}, "budget = 39: expected a whole number of at least 40"),
        ({"budget": 100, "temperature": 0}, "temperature = 0: expected a positive number"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(InputError) as caught:
        measure(table(leaning(1), 1), memory_length=1, **{**OPTIONS, **options})
    assert message in str(caught.value)


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """Fewer than 19 of 24 intervals of 95 % hold the truth in 2e-4 of cases; the control are those a tenth as wide."""
    held, narrow = 0, 0
    for seed in range(24):
        q = family(seed)
        options = {**OPTIONS, "memory_length": 3, "budget": 2000, "tolerance": 0.02, "cache": False}
        found = measure(silent(q, 3), seed=seed, **options).attrs
        truth = Goal("word_share").of(meanfield.make_policy(q, WORDS)).value
        held += found["goal_low"] - 1e-12 <= truth <= found["goal_high"] + 1e-12
        error = abs(truth - found["goal_value"])
        narrow += error <= 0.1 * max(found["goal_high"] - found["goal_value"], found["goal_value"] - found["goal_low"])
    assert held >= 19
    assert narrow < 19


def test_a_service_without_log_probabilities_is_measured(tmp_path):
    """The same answers are not asked for again; reading log-probabilities is refused."""
    pytest.importorskip("openai", reason="APIs need the extra api")
    model = KnownModel.of(("his", "her", "'", "."), spread=0.5)
    options = {"words": WORDS, "memory_length": 2, "goal": "word_share", "budget": 40, "cache": tmp_path}
    behaviour = Behaviour(model, always="no logprobs")
    with serving(behaviour) as url:
        speaking = backend(url)
        with pytest.raises(InputError, match="no logprobs"):
            measure(speaking, sampled=False, **options)
        with pytest.warns(UserWarning, match="asked for sampled answers .*no logprobs"):
            policy = measure(speaking, **options)
        asked = len(behaviour.requests)
        assert policy.identical(measure(speaking, sampled=True, **options))
    assert len(behaviour.requests) == asked
    assert policy["answers"].values.sum() == policy.attrs["prompts_used"] <= 40
    assert not any("logprobs" in each for each in behaviour.requests[2:])
    assert {each["temperature"] for each in behaviour.requests[-policy.attrs["prompts_used"] :]} == {0.5}


def test_calls_have_random_numbers_of_their_own():
    """The empty memory and one with the first word only differ by zeros."""
    seeds = []

    class Counting(Silent):
        def generate(self, prompts, *, seed, **options):
            seeds.append(seed)
            return super().generate(prompts, seed=seed, **options)

    backend = table(leaning(1), 1)
    backend.__class__ = Counting
    options = {"template": NAMING_GAME, "payoffs": Payoffs(), "temperature": 1.0, "seed": 0, "cache": False}
    ask = sampled_answers(backend, WORDS, 1, ANSWERS, **options)
    for memory in ((), ((0, 0),), ((1, 1),), ()):
        assert ask([memory]).sum() == ANSWERS
    assert len(set(seeds)) == len(seeds) == 4
