"""The Gaussian process of memories against dense linear algebra and its own draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from meanfield import MemorySpace
from policy_extraction.measuring._gaussian_process import (
    CENTRE,
    NOISE,
    SPREAD,
    Alike,
    Part,
    Posterior,
    basis,
    covariances,
    fitted,
    loss,
    with_errors,
)
from policy_extraction.measuring._memories import (
    NONE,
    all_codes,
    all_patterns,
    codes_of,
    memory_of,
    pattern_numbers,
    states_of,
)
from policy_extraction.measuring._predicted.explore import contrasts_of, errors_of

WORDS = pytest.mark.parametrize("n_words", [2, 4])


def random_memories(n, n_words, memory_length, seed):
    """Different rows of codes; the first is the empty memory."""
    random, space = np.random.default_rng(seed), MemorySpace(n_words, memory_length)
    states = np.append(0, 1 + random.choice(space.n_states - 1, n - 1, replace=False))
    return codes_of([space.memory(int(state)) for state in states], n_words, memory_length)


def counts(codes, n_words):
    """Counts of each word, said and heard, shape (n, 2, W)."""
    own, partner = codes // n_words, codes % n_words
    said = [(each[..., None] == np.arange(n_words)) & (codes != NONE)[..., None] for each in (own, partner)]
    return np.stack(said, axis=1).sum(2)


def parameters(seed=1):
    return CENTRE + 0.3 * SPREAD * np.random.default_rng(seed).standard_normal(len(CENTRE))


def answers(n=14, n_words=4, memory_length=3, seed=1):
    """Memories, contrasts, and covariances of their errors."""
    codes = random_memories(n, n_words, memory_length, seed)
    root = np.random.default_rng(seed).standard_normal((n, n_words - 1, n_words - 1)) / 5
    y = np.random.default_rng(seed + 1).standard_normal((n, n_words - 1))
    return codes, y, root @ root.transpose(0, 2, 1)


def test_memories_as_numbers():
    space = MemorySpace(3, 3)
    memories = [space.memory(state) for state in range(space.n_states)]
    codes = codes_of(memories, 3, 3)
    assert (states_of(codes, 3) == np.arange(space.n_states)).all()
    assert [memory_of(row, 3) for row in codes] == memories
    assert (states_of(all_codes(3), 2) == np.arange(85)).all()
    said, heard, there = np.split(all_patterns(3)[pattern_numbers(codes, 3)], 3, axis=-1)
    assert (np.stack([said.sum(-1), heard.sum(-1)], axis=1) == counts(codes, 3)).all()
    assert (there.sum(-1) == (codes != NONE).sum(1)[:, None]).all()
    newest = codes_of([((0, 0), (1, 2))], 3, 3)  # said 1 and heard 2 at last
    assert all_patterns(3)[pattern_numbers(newest, 3)[0], 0].tolist() == [0, 1, 0]


@WORDS
def test_the_likelihood_is_that_of_the_gaussian_and_has_the_gradient_of_its_differences(n_words):
    """Up to the prior, which is 0 at its centre, and a constant."""
    codes, y, errors = answers(n_words=n_words)
    K = with_errors(covariances(CENTRE, codes, codes, n_words), errors)
    expected = (y.ravel() @ np.linalg.solve(K, y.ravel()) + np.linalg.slogdet(K)[1]) / 2
    assert loss(CENTRE, codes, y, errors)[0] == pytest.approx(expected, rel=1e-9)
    at = parameters()
    differences = [
        loss(at + e, codes, y, errors)[0] - loss(at - e, codes, y, errors)[0] for e in 1e-5 * np.eye(len(at))
    ]
    np.testing.assert_allclose(loss(at, codes, y, errors)[1], np.array(differences) / 2e-5, atol=1e-5)


@WORDS
def test_covariances_are_those_of_the_definition(n_words):
    """Word by word and memory by memory, from what was said and heard."""
    codes, n, H = random_memories(5, n_words, 3, seed=1), 5, 3
    numbers, age = parameters(), np.arange(3)
    every = all_patterns(H)[pattern_numbers(codes, n_words)]

    def part(p, u, v):
        weights, theta = np.exp(-np.exp(p.recency) * age), np.exp(p.theta) * np.exp(-np.exp(p.forgetting) * age)
        (said, heard, there), (said_, heard_, there_) = np.split(u, 3), np.split(v, 3)
        away = np.array([(said - said_) @ weights, (heard - heard_) @ weights])
        turn = np.array([[np.cos(p.angle), np.sin(p.angle)], [-np.sin(p.angle), np.cos(p.angle)]])
        away = turn @ away / np.exp(p.width) / [1, np.exp(p.stretch)]
        smooth = np.exp(-(away @ away + ((there.sum() - there_.sum()) / np.exp(p.lengths)) ** 2) / 2)
        rough = np.exp(-theta @ (abs(said - said_) + np.exp(p.partner) * abs(heard - heard_)))
        linear = (said * said_ + heard * heard_) @ weights**2
        return np.exp(p.trend) * linear + np.exp(p.smooth) * smooth + np.exp(p.rough) * rough

    shared, own, a = Part(*numbers[:11]), Part(*numbers[11:22]), Alike(*np.exp(numbers[22:]))
    logits = np.zeros((n, n_words, n, n_words))
    for i, w, j, v in np.ndindex(logits.shape):
        logits[i, w, j, v] = part(shared, every[i, w], every[j, v])
        if w == v:
            near = np.exp(-((codes[i] != codes[j]) @ (a.nu * np.exp(-a.fading * age))))
            logits[i, w, j, v] += part(own, every[i, w], every[j, v]) + a.bias + a.near * near + a.alone * (i == j)
    Q = basis(n_words)
    found = covariances(numbers, codes, codes, n_words)
    np.testing.assert_allclose(found, np.einsum("wc,nwmv,vd->ncmd", Q, logits, Q), atol=1e-12)


@WORDS
@pytest.mark.parametrize("items", [2048, 10])
def test_the_posterior_is_the_conditional_gaussian(n_words, items, monkeypatch):
    """However many memories are taken at once; errors are covariances of a memory's contrasts."""
    (_, y, errors), k = answers(n_words=n_words), n_words - 1
    there = random_memories(22, n_words, 3, seed=1)
    codes = there[: len(y)]
    prior = covariances(parameters(), there, there, n_words).reshape(len(there) * k, -1)
    monkeypatch.setattr("policy_extraction.measuring._gaussian_process.MOST_ITEMS", items)
    known = prior[: y.size, : y.size] + NOISE * np.eye(y.size)
    for n, each in enumerate(errors):
        known[n * k : n * k + k, n * k : n * k + k] += each
    gain = np.linalg.solve(known, prior[: y.size]).T
    posterior = Posterior(parameters(), codes, y, errors)
    np.testing.assert_allclose(posterior.mean.contrasts(there).ravel(), gain @ y.ravel(), atol=1e-9)
    expected = prior - gain @ prior[: y.size]
    np.testing.assert_allclose(posterior.covariance(there), expected, atol=1e-9)
    np.testing.assert_allclose(posterior.variances(there).ravel(), np.diag(expected), atol=1e-9)


def test_names_of_words_do_not_matter():
    """Words exchanged in all memories and answers exchange words in all predictions."""
    codes, order = random_memories(14, 4, 3, seed=1), np.array([2, 0, 3, 1])
    q = np.random.default_rng(1).dirichlet(np.ones(4), len(codes))

    def renamed(codes):
        return np.where(codes == NONE, NONE, order[codes // 4] * 4 + order[codes % 4])

    def predicted(codes, q, there):
        return softmax(Posterior(parameters(), codes, contrasts_of(q), errors_of(q)).mean(there), axis=1)

    there = random_memories(30, 4, 3, seed=5)
    here, moved = predicted(codes, q, there), predicted(renamed(codes), q[:, np.argsort(order)], renamed(there))
    np.testing.assert_allclose(moved[:, order], here, rtol=1e-6)
    assert abs(moved - here).max() > 0.1


@pytest.mark.parametrize(
    ("n_words", "n", "tolerance"), [(2, 200, 0.3), pytest.param(4, 3000, 0.12, marks=pytest.mark.slow)]
)
def test_draws_have_the_mean_and_covariance_of_the_posterior(n_words, n, tolerance):
    """Correlations have standard errors of n^-½, 0.07 and 0.02, and random functions are no exact Gaussians."""
    codes, y, errors = answers(n_words=n_words)
    posterior, there = Posterior(parameters(), codes, y, errors), random_memories(22, n_words, 3, seed=1)[10:]
    mean, covariance = posterior.mean.contrasts(there), posterior.covariance(there)
    z = np.array([posterior.draw(np.random.default_rng(k)).contrasts(there) - mean for k in range(n)])
    deviation, z = np.sqrt(np.diag(covariance)), z.reshape(n, -1)
    assert abs(z.mean(0) / deviation).max() < 4.5 / np.sqrt(n)
    assert abs((np.cov(z.T) - covariance) / np.outer(deviation, deviation)).max() < tolerance
    assert abs((np.cov(z.T) - 1.5 * covariance) / np.outer(deviation, deviation)).max() > tolerance  # the control
    wide = posterior.draw(np.random.default_rng(0), 2.0).contrasts(there)
    np.testing.assert_allclose(wide - mean, 2 * z[0].reshape(mean.shape), atol=1e-8)


def test_fitted_parameters_predict_better_than_the_prior():
    """A policy of the linear part alone, in other memories than those asked; the control is the prior's centre."""
    codes = all_codes(3)[np.random.default_rng(7).permutation(85)]
    y = (np.array([1.0, -0.3]) @ np.array([(codes == 0).sum(1), (codes == 3).sum(1)]))[:, None]
    none = np.zeros((25, 1, 1))
    errors = [
        abs(Posterior(each, codes[:25], y[:25], none).mean.contrasts(codes[25:]) - y[25:]).mean()
        for each in (fitted(codes[:25], y[:25], none), CENTRE)
    ]
    assert errors[0] < 0.7 * errors[1]


def test_words_that_are_never_said_do_not_make_the_others_sure():
    """Seven of ten words have no chance in a memory that does not hold them, the others have random logits."""
    n_words, codes = 10, random_memories(80, 10, 2, seed=3)[1:]
    random = np.random.default_rng(4)
    said = counts(codes, n_words).sum(1) > 0
    q = softmax(np.where(said, counts(codes, n_words).sum(1) + 0.7 * random.standard_normal(said.shape), -60), axis=1)
    known = codes[:50], contrasts_of(q[:50]), errors_of(q[:50])
    posterior = Posterior(fitted(*known), *known)
    mean, covariance = posterior.mean.contrasts(codes[50:]), posterior.covariance(codes[50:])
    errors = []
    for k, (row, words) in enumerate(zip(q[50:], said[50:], strict=True)):
        pair = np.flatnonzero(words)[:2]
        if len(pair) == 2:
            direction = basis(n_words)[pair[0]] - basis(n_words)[pair[1]]
            block = covariance.reshape(29, 9, 29, 9)[k, :, k]
            errors.append((np.log(row[pair]) @ [1, -1] - mean[k] @ direction) / np.sqrt(direction @ block @ direction))
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.5  # 29 errors; it was 2 where such words counted as exact
