"""Sampled answers: what counts say of probits against quadrature, and measurements of tables that only speak."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import binom
from test_active_measure import WORDS, family, leaning, table

import meanfield
from _known_server import backend
from _openai_server import Behaviour, KnownModel, serving
from meanfield import InputError, MemorySpace, ModelError
from policy_extraction import measure, sample_policies
from policy_extraction.backends import TableBackend
from policy_extraction.measuring._active.audit import Audit, Draws
from policy_extraction.measuring._active.choice import (
    choices_at_nodes,
    expected_move,
    goal_variance,
    next_pairs,
    within,
)
from policy_extraction.measuring._active.explore import posterior_of
from policy_extraction.measuring._active.features import doubt, features, mirror_pairs
from policy_extraction.measuring._active.goals import Goal
from policy_extraction.measuring._active.kernel import EVEN, ODD
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, NOISE
from policy_extraction.measuring._active.noisy import Noisy, kernels_of, noisy_posterior, paired_counts, prior, sites_of
from policy_extraction.measuring._active.sampled import ANSWERS, quantiles
from policy_extraction.measuring._active.sites import Sites, sites
from policy_extraction.measuring._active.tails import Tails
from policy_extraction.measuring._lazy import answers_of
from policy_extraction.measuring._samples import SampledAnswers
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._orders import orders

SPACE = MemorySpace(2, 2)
PAIRS = mirror_pairs(SPACE)
EVERY = features(SPACE).at(PAIRS[:, 0])
N = len(PAIRS)
ASKED = np.array([0, 1, 3, 6])
NORMAL = (Tails(), Tails())


def parameters(scale: float = 1.0) -> np.ndarray:
    """Of a prior with variances of these sizes."""
    return np.array([CENTRE[parity] + np.array([np.log(scale)] * 4 + [0] * 8) for parity in (ODD, EVEN)])


def known(precision: float, seed: int = 0) -> Sites:
    """Probits of the asked pairs, with precisions of about this size."""
    random = np.random.default_rng(seed)
    z, size = random.standard_normal((2, len(ASKED))), precision * random.uniform(0.3, 3, (2, len(ASKED)))
    size[1, 0] = 0  # the empty memory has no mirror image
    return Sites(z, size)


def posterior(precision: float = 2.0, scale: float = 1.0) -> Noisy:
    found = noisy_posterior(parameters(scale), EVERY, ASKED, known(precision))
    return _unbent(found)


def _unbent(found: Noisy) -> Noisy:
    found.even = found.even._replace(bend=0.0)
    return found


def exact(K: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of two probits, given counts, on a grid."""
    axis = np.linspace(-9, 9, 1201)
    z = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    log = -np.einsum("...i,ij,...j->...", z, np.linalg.inv(K), z) / 2
    log += (counts[:, 0] * log_ndtr(z) + counts[:, 1] * log_ndtr(-z)).sum(-1)
    weight = np.exp(log - log.max())
    mean = np.tensordot(weight, z, 2) / weight.sum()
    return mean, np.tensordot(weight, (z - mean) ** 2, 2) / weight.sum()


def marginals(K: np.ndarray, known: Sites) -> tuple[np.ndarray, np.ndarray]:
    tau, z = known.precision.ravel(), known.z.ravel()
    covariance = np.linalg.inv(np.linalg.inv(K) + np.diag(tau))
    return covariance @ (tau * z), np.diag(covariance)


@pytest.mark.parametrize("counts", [(0, 4), (4, 0), (2, 2), (200, 300), (0, 4000), (0, 0)])
def test_a_single_memory_is_known_as_by_quadrature(counts):
    K, both = np.diag([2.0, 0.5]), np.array([counts, (0, 0)], dtype=float)
    for found, expected in zip(marginals(K, sites(K, both)), exact(K, both), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("counts", [((0, 4), (1, 3)), ((4, 0), (0, 4)), ((30, 10), (0, 1))])
def test_related_memories_are_known_nearly_as_by_quadrature(counts):
    """The approximation is known to be close; the control takes the counts of the first memory alone."""
    K, both = np.array([[2.0, 1.2], [1.2, 1.5]]), np.array(counts, dtype=float)
    (mean, variance), (true, spread) = marginals(K, sites(K, both)), exact(K, both)
    assert (np.abs(mean - true) < 0.02 * np.sqrt(spread)).all()
    np.testing.assert_allclose(variance, spread, rtol=0.03)
    alone, _ = marginals(K, sites(K, both * [[1.0], [0.0]]))
    assert np.abs(alone - true)[1] > 0.2 * np.sqrt(spread)[1]


def test_the_posterior_is_the_conditional_gaussian_of_both_parts():
    found, given = posterior(), known(2.0)
    dense = [
        prior(k, f, np.arange(N)) for k, f in zip(kernels_of(parameters()), (EVERY, found.even.every), strict=True)
    ]
    K = np.block([[dense[0], np.zeros((N, N))], [np.zeros((N, N)), dense[1]]])
    seen = np.zeros((2, len(ASKED), 2 * N))
    for m, pair in enumerate(ASKED):
        seen[0, m, [pair, N + pair]] = 1
        seen[1, m, [pair, N + pair]] = -1, 1
    some = given.precision.ravel() > 0
    A, z, errors = seen.reshape(-1, 2 * N)[some], given.z.ravel()[some], 1 / given.precision.ravel()[some]
    gain = K @ A.T @ np.linalg.inv(A @ K @ A.T + np.diag(errors))
    covariance = K - gain @ A @ K
    np.testing.assert_allclose(np.concatenate([part.mean for part in found]), gain @ z, atol=1e-9)
    np.testing.assert_allclose(found.columns(np.arange(N)).reshape(2 * N, 2 * N), covariance, atol=1e-9)
    np.testing.assert_allclose(within(found)[:, 0, 1], np.diag(covariance[:N, N:]), atol=1e-9)
    np.testing.assert_allclose(within(found)[:, 0, 0], np.maximum(np.diag(covariance)[:N], NOISE), atol=1e-9)
    assert np.abs(found.between).max() > 0.01
    vectors = np.random.default_rng(1).standard_normal((2, N))
    np.testing.assert_allclose(found.times(vectors, N).ravel(), covariance @ vectors.ravel(), atol=1e-8)


def test_precise_probits_are_those_of_log_probabilities():
    z = known(1.0).z
    z[1, 0] = z[0, 0]
    precise = noisy_posterior(parameters(), EVERY, ASKED, Sites(z, np.full(z.shape, 0.5 / NOISE)))
    parts = np.stack([z[0] - z[1], z[0] + z[1]]) / 2
    for mine, other in zip(precise, posterior_of(parameters(), EVERY, ASKED, parts), strict=True):
        np.testing.assert_allclose(mine.mean, other.mean, atol=2e-3)
        np.testing.assert_allclose(mine.variance, other.variance, atol=1e-3)
    assert np.abs(precise.between).max() < 1e-3


def test_draws_have_the_moments_of_the_posterior():
    """3,000 draws: correlations have standard errors of 0.02, and random functions are no exact Gaussians."""
    found, random = posterior(), np.random.default_rng(2)
    z = np.array([found.draw(random, NORMAL) for _ in range(3000)])
    odd, even = (z[..., 0] - z[..., 1]) / 2, (z[..., 0] + z[..., 1]) / 2
    for drawn, part in zip((odd, even), found, strict=True):
        assert (np.abs(drawn.mean(0) - part.mean) / np.sqrt(part.variance)).max() < 5 / np.sqrt(3000)
        np.testing.assert_allclose(drawn.var(0), part.variance, rtol=0.2, atol=1e-6)
    pair = int(np.argmax(np.abs(found.between)))
    assert np.cov(odd[:, pair], even[:, pair])[0, 1] == pytest.approx(found.between[pair], rel=0.3)


def noise(precision: float) -> np.ndarray:
    """Errors of the parts in each pair if both memories are measured with this precision."""
    return np.broadcast_to(np.eye(2) / (2 * precision), (N, 2, 2))


def test_answers_take_off_a_goal_what_is_expected_of_them():
    """Small errors, of which a goal is linear. A pair is asked again; the control expects no errors."""
    goal, batch = np.random.default_rng(2).standard_normal((N, 2)), np.array([1, 5, 5])
    precision, scale = 300.0, 1e-3
    before = posterior(100.0, scale)
    z, size = np.zeros((2, 2, N))
    size[:, ASKED] = known(100.0).precision
    np.add.at(size, (slice(None), batch), precision)
    asked = np.union1d(ASKED, batch)
    after = _unbent(noisy_posterior(parameters(scale), EVERY, asked, Sites(z[:, asked], size[:, asked])))
    same = _unbent(noisy_posterior(parameters(scale), EVERY, ASKED, Sites(np.zeros((2, 4)), known(100.0).precision)))
    lost = goal_variance(same, goal) - goal_variance(after, goal)
    assert expected_move(same, goal, batch, NORMAL, noise(precision)) == pytest.approx(lost, rel=0.03)
    assert expected_move(same, goal, np.array([1, 5])) > 1.3 * lost
    assert before.between.any()


def test_the_pair_that_tells_most_is_chosen_again_and_again():
    """Only one pair matters, and its neighbours say little of it; without errors it is chosen once."""
    found = posterior(0.5)
    goal = np.zeros((1, N, 2))
    goal[0, 6] = 1.0, -0.5
    free, seen = np.ones(N, dtype=bool), np.zeros((N, 2))
    assert (next_pairs(found, goal, seen, free, 3, noise=noise(0.2)) == 6).all()
    assert (next_pairs(found, goal, seen, free, 3) == 6).sum() == 1


def test_errors_of_predicted_counts_are_normal_and_independent():
    """1,000 counts: means have standard errors of 0.032, deviations 0.022. The control has thrice the errors."""
    found, random = posterior(1.0), np.random.default_rng(3)
    wide = posterior(1.0)
    wide.odd, wide.even = (part._replace(variance=9 * part.variance) for part in wide)
    of_wide = choices_at_nodes(wide, np.array([4]))[0]
    (pair,), q = [4], choices_at_nodes(found, np.array([4]))[0]
    (C,) = within(found)[[pair]]
    parts = random.multivariate_normal([part.mean[pair] for part in found], C, 1000)
    errors, others = np.empty((2, 1000, 2))
    for i, (o, e) in enumerate(parts):
        k = random.binomial([20, 15], ndtr([e + o, e - o]))
        counts = np.stack([k, np.array([20, 15]) - k], axis=1)
        errors[i] = quantiles(counts, q, random)
        others[i] = quantiles(counts, of_wide, random)
    assert np.abs(errors.mean(0)).max() < 0.15
    assert np.abs(errors.std(0) - 1).max() < 0.1
    assert abs(np.corrcoef(errors.T)[0, 1]) < 0.15
    assert others.std(0).min() < 0.8


def test_random_answers_tell_a_goals_error_without_bias():
    """The mean over all pairs and counts of two answers to each memory; frequencies are those of new answers."""
    random = np.random.default_rng(4)
    q, derivatives, predicted = random.random((3, 2)), random.standard_normal((3, 2)), random.random((3, 2))
    best, chances = random.random((3, 2)), np.array([0.2, 0.3, 0.5])
    mean = 0.0
    for pair in range(3):
        for k in np.ndindex(3, 3):
            audit = Audit()
            audit.add(Draws(np.array([pair]), chances[[pair]], predicted, np.array([k]) / 2))
            chance = chances[pair] * binom.pmf(k, 2, q[pair]).prod()
            mean += chance * audit.estimates(derivatives, best)[0]
    assert mean == pytest.approx((derivatives * (q - best)).sum())


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
    policy = measure(silent(q, 2), memory_length=2, tolerance=0.2, budget=4000, cache=False, **OPTIONS)
    share = meanfield.fixed_points(meanfield.make_policy(q, WORDS))["word_share"].values[0, 0]
    assert policy.attrs["reached"] == 1
    assert policy.attrs["goal_low"] <= share <= policy.attrs["goal_high"]
    assert policy["answers"].values.sum() == policy.attrs["prompts_used"] < 4000
    np.testing.assert_array_equal(policy["answers"].values.sum(1) > 0, policy["asked"].values)
    assert (policy["answers"].values.sum(1) % ANSWERS == 0).all()
    meanfield.validate_policy(policy)
    draws = np.array([one["q"].sel(word="his").values for one in sample_policies(policy, 100, seed=1)])
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    assert ((low <= q) & (q <= high)).mean() > 0.7  # of 21 memories, whose errors are not independent
    narrow = np.quantile(draws, [0.45, 0.55], axis=0)  # the control
    assert ((narrow[0] <= q) & (q <= narrow[1])).mean() < 0.7


def test_answers_are_kept_and_asked_once(tmp_path, capsys):
    q, options = leaning(1, strength=0.5), {**OPTIONS, "memory_length": 1, "budget": 200, "tolerance": 1e-9}
    backend = silent(q, 1, "one", left=100)
    with pytest.raises(KeyboardInterrupt):
        measure(backend, cache=tmp_path, **options)
    assert "answers are kept in" in capsys.readouterr().err
    backend.left = 200 - 100 + 64  # an interrupt loses up to 64 answers
    resumed = measure(backend, cache=tmp_path, **options)
    left = backend.left
    assert resumed.identical(measure(backend, cache=tmp_path, **options))
    assert backend.left == left
    assert 180 <= resumed.attrs["prompts_used"] <= 200
    assert resumed.attrs["reason"].startswith("the budget is spent")
    backend.left = 100
    other = measure(backend, cache=tmp_path, **{**options, "budget": 100, "temperature": 0.5})
    assert other.attrs["prompts_used"] == 100 - backend.left  # another temperature has answers of its own


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
    """Of 24 intervals of 95 % fewer than 19 hold the truth in 2e-4 of cases; the control are those a tenth as wide."""
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


def test_the_doubt_that_counts_leave_is_that_of_their_odd_parts():
    """Many answers in all pairs: odd parts are known."""
    q = ndtr(np.random.default_rng(5).standard_normal((2, N)))
    q[1, 0] = q[0, 0]
    counts = np.round(1e5 * np.stack([q, 1 - q], axis=-1))
    found = noisy_posterior(parameters(), EVERY, np.arange(N), sites_of(parameters(), EVERY, np.arange(N), counts))
    np.testing.assert_allclose(found.even.every.doubt[1:], doubt(found.odd.mean[1:]), atol=0.02)
    np.testing.assert_allclose(ndtr(found.median()).T, q, atol=0.02)


def test_a_service_without_log_probabilities_is_measured(tmp_path):
    """The same answers are not asked for again; reading log-probabilities is refused."""
    pytest.importorskip("openai", reason="APIs need the extra api")
    model = KnownModel.of(("his", "her", "'", "."), spread=0.5)
    options = {"words": WORDS, "memory_length": 1, "goal": "word_share", "budget": 40, "cache": tmp_path}
    behaviour = Behaviour(model, always="no logprobs")
    with serving(behaviour) as url:
        speaking = backend(url)
        with pytest.raises(InputError, match="no logprobs"):
            measure(speaking, sampled=False, **options)
        policy = measure(speaking, sampled=True, **options)
        asked = len(behaviour.requests)
        assert policy.identical(measure(speaking, sampled=True, **options))
    assert len(behaviour.requests) == asked
    assert policy["answers"].values.sum() == policy.attrs["prompts_used"] <= 40
    assert not any("logprobs" in each for each in behaviour.requests[1:])
    assert {each["temperature"] for each in behaviour.requests[-policy.attrs["prompts_used"] :]} == {0.5}


def test_the_empty_memory_has_no_odd_part():
    """100,000 answers: its probability is known, in the policy and in draws."""
    q = ndtr(np.random.default_rng(6).standard_normal((SPACE.n_states, 1)))
    q[0] = 0.9
    counts = paired_counts(np.round(1e5 * np.hstack([q, 1 - q])).astype(int), PAIRS, ASKED)
    found = noisy_posterior(parameters(), EVERY, ASKED, sites_of(parameters(), EVERY, ASKED, counts))
    np.testing.assert_allclose(ndtr(found.median()[0]), 0.9, atol=0.005)
    drawn = [ndtr(found.draw(np.random.default_rng(seed), NORMAL)[0]) for seed in range(20)]
    np.testing.assert_allclose(drawn, 0.9, atol=0.01)
    assert abs(found.between[0]) < 1e-5


@pytest.mark.parametrize("q", [0.5, 0.998])
def test_random_answers_bound_a_goals_error_where_a_word_is_rare(q):
    """400 populations that were predicted rightly: 95 % of intervals hold, and none is far too narrow."""
    random, n, draws = np.random.default_rng(7), 200, 60
    held, derivatives, predicted = 0, np.ones((n, 2)), np.full((n, 2), q)
    for _ in range(400):
        audit, pairs = Audit(), random.integers(n, size=draws)
        counts = random.binomial(ANSWERS, q, (draws, 2))
        audit.add(Draws(pairs, np.full(draws, 1 / n), predicted, counts / ANSWERS, ANSWERS))
        error, half = audit.error(derivatives, predicted)
        held += abs(error) <= half
    assert held >= 0.9 * 400


def test_a_pair_asked_often_tells_no_more_than_there_is_to_know():
    found, goal = posterior(), np.zeros((N, 2))
    goal[4] = 1.0, 0.7
    once, four, many = (expected_move(found, goal, np.full(n, 4), NORMAL, noise(1.0)) for n in (1, 4, 1000))
    assert four == pytest.approx(expected_move(found, goal, np.array([4]), NORMAL, noise(4.0)))
    assert once < four < many <= goal_variance(found, goal)


def test_calls_have_random_numbers_of_their_own():
    """The empty memory and one with the first word only differ by zeros."""
    seeds = []

    class Counting(Silent):
        def generate(self, prompts, *, seed, **options):
            seeds.append(seed)
            return super().generate(prompts, seed=seed, **options)

    backend = table(leaning(1), 1)
    backend.__class__ = Counting
    kept = answers_of(backend, WORDS, orders(WORDS), NAMING_GAME, Payoffs(), False)
    ask = SampledAnswers(backend, WORDS, NAMING_GAME, Payoffs(), orders(WORDS), 1.0, 0, kept)
    for memory in ((), ((0, 0),), ((1, 1),), ()):
        assert ask([memory], ANSWERS).sum() == ANSWERS
    assert len(set(seeds)) == len(seeds) == 4
