"""The posterior of a table of choice probabilities against dense linear algebra and its own draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield import MemorySpace
from policy_extraction.measuring._active.features import features
from policy_extraction.measuring._active.held_out import HeldOut
from policy_extraction.measuring._active.kernel import Kernel
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, NOISE, SPREAD, fitted, kernel_of, loss
from policy_extraction.measuring._active.posterior import LEAST, Posterior, probits
from policy_extraction.measuring._active.tails import Tails, fitted_tails

SPACE = MemorySpace(2, 3)
EVERY = features(SPACE)


def kernel(seed: int = 0) -> Kernel:
    """A kernel with parameters of the prior."""
    return kernel_of(CENTRE + 0.5 * SPREAD * np.random.default_rng(seed).standard_normal(len(CENTRE)))


def dense(kernel: Kernel) -> np.ndarray:
    return kernel.between(EVERY, EVERY) + kernel.amplitudes.alone * np.eye(SPACE.n_states)


def mirror(space: MemorySpace) -> np.ndarray:
    return np.array([space.state([(1 - a, 1 - b) for a, b in space.memory(i)]) for i in range(space.n_states)])


def measured(kernel: Kernel, number: int = 20, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.permutation(SPACE.n_states)[:number], kernel.draw(EVERY, random)


@pytest.mark.parametrize("length", [1, 3])
def test_features_are_the_signs_of_the_memory(length):
    space = MemorySpace(2, length)
    every = features(space)
    for state in range(space.n_states):
        memory = space.memory(state)
        assert every.length[state] == len(memory)
        signs = [[1 - 2 * a, 1 - 2 * b] for a, b in memory[::-1]]
        assert every.signs[state, : len(memory)].tolist() == signs
        assert (every.signs[state, len(memory) :] == 0).all()
    np.testing.assert_array_equal(every.signs[mirror(space)], -every.signs)


@pytest.mark.parametrize("seed", range(4))
def test_a_kernel_is_a_covariance(seed):
    one = kernel(seed)
    covariance = dense(one)
    np.testing.assert_allclose(np.diag(covariance), one.variance(EVERY), rtol=1e-12)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > 0.9 * one.amplitudes.alone


def test_parts_are_odd_or_even():
    parts = kernel().parts(EVERY, EVERY)
    for part, sign in zip(parts, (1, -1, -1, 1, -1, 1), strict=True):
        np.testing.assert_allclose(part[mirror(SPACE)], sign * part, atol=1e-12)


def test_random_functions_have_the_covariance_of_the_kernel():
    """300 functions: entries have standard errors below 0.09 of the largest variance; 4 of them fail in 1e-3."""
    one, random = kernel(), np.random.default_rng(5)
    drawn = np.array([one.draw(EVERY, random) for _ in range(300)])
    scale = one.variance(EVERY).max()
    error = np.abs(drawn.T @ drawn / len(drawn) - dense(one)).max() / scale
    assert error < 0.35
    other = dense(one._replace(amplitudes=one.amplitudes._replace(smooth_odd=0.0)))  # the control
    assert np.abs(drawn.T @ drawn / len(drawn) - other).max() / scale > 0.35


def test_the_gradient_of_the_likelihood_is_its_derivative():
    states, z = measured(kernel())
    value, gradient = loss(CENTRE, EVERY.at(states), z[states])
    step = 1e-4
    for j, unit in enumerate(np.eye(len(CENTRE))):
        ahead, behind = (loss(CENTRE + sign * step * unit, EVERY.at(states), z[states])[0] for sign in (1, -1))
        assert gradient[j] == pytest.approx((ahead - behind) / (2 * step), abs=1e-3 * max(1, abs(value)))


def test_the_likelihood_is_that_of_the_gaussian():
    """Up to the prior, which is 0 at its centre, and a constant."""
    states, z = measured(kernel())
    covariance = dense(kernel_of(CENTRE))[np.ix_(states, states)] + NOISE * np.eye(len(states))
    expected = (z[states] @ np.linalg.solve(covariance, z[states]) + np.linalg.slogdet(covariance)[1]) / 2
    assert loss(CENTRE, EVERY.at(states), z[states])[0] == pytest.approx(expected, rel=1e-9)


def test_the_posterior_is_the_conditional_gaussian():
    one = kernel()
    states, z = measured(one)
    posterior = Posterior(one, EVERY, states, z[states])
    covariance = dense(one)
    gain = np.linalg.solve(covariance[np.ix_(states, states)] + NOISE * np.eye(len(states)), covariance[states]).T
    expected = covariance - gain @ covariance[states]
    np.testing.assert_allclose(posterior.mean, gain @ z[states], atol=1e-9)
    np.testing.assert_allclose(posterior.columns(np.arange(SPACE.n_states)), expected, atol=1e-9)
    np.testing.assert_allclose(posterior.variance, np.maximum(np.diag(expected), NOISE), atol=1e-9)
    vector = np.random.default_rng(2).standard_normal(SPACE.n_states)
    np.testing.assert_allclose(posterior.times(vector, SPACE.n_states), expected @ vector, atol=1e-8)
    np.testing.assert_allclose(posterior.mean[states], z[states], atol=1e-3)
    assert posterior.variance[states].max() < 2 * NOISE


def test_posterior_draws_have_its_mean_and_variance():
    """300 draws: a mean is off by 5 of its standard errors in 1e-6, a deviation by 30 % in less of all runs."""
    one = kernel()
    states, z = measured(one)
    posterior = Posterior(one, EVERY, states, z[states])
    random = np.random.default_rng(3)
    drawn = np.array([posterior.draw(random, Tails(2.0)) for _ in range(300)])
    others = np.setdiff1d(np.arange(SPACE.n_states), states)
    deviation = 2 * np.sqrt(posterior.variance[others])
    assert (np.abs(drawn.mean(0) - posterior.mean)[others] / deviation).max() < 5 / np.sqrt(300)
    np.testing.assert_allclose(drawn.std(0)[others], deviation, rtol=0.3)
    assert np.abs(drawn[:, states] - z[states]).max() < 0.02


def test_a_policy_that_treats_words_alike_is_known_in_mirror_images():
    one = kernel()
    fair = one.amplitudes._replace(level=0.0, smooth_even=0.0, rough_even=0.0, alone=0.0)
    states, z = measured(one._replace(amplitudes=fair))
    posterior = Posterior(one._replace(amplitudes=fair), EVERY, states, z[states])
    np.testing.assert_allclose(posterior.mean[mirror(SPACE)[states]], -z[states], atol=2e-3)


def test_probits_keep_the_digits_of_both_words():
    q = np.array([[0.5, 0.5], [1 - 1e-4, 1e-4], [1e-4, 1 - 1e-4], [1.0, 0.0], [0.0, 1.0]])
    z = probits(q)
    np.testing.assert_allclose(z[1:3], [-z[2], -z[1]], rtol=1e-12)
    np.testing.assert_allclose(ndtr(z), np.clip(q[:, 0], LEAST, 1 - LEAST), rtol=1e-9)


def test_fitted_parameters_predict_better_than_the_prior():
    true = kernel_of(CENTRE + np.array([0, 2, 0, -4, -4, -4, -4, *[0] * 8]))
    random = np.random.default_rng(7)
    z = true.draw(EVERY, random)
    states = random.permutation(SPACE.n_states)[:40]
    others = np.setdiff1d(np.arange(SPACE.n_states), states)
    parameters = fitted(EVERY.at(states), z[states])
    errors = [
        np.abs(Posterior(one, EVERY, states, z[states]).mean - z)[others].mean()
        for one in (kernel_of(parameters), kernel_of(CENTRE), true)
    ]
    assert errors[0] < errors[1]
    assert errors[0] < 2 * errors[2]


def test_held_out_errors_are_independent_and_of_variance_one_if_the_model_holds():
    one = kernel()
    states, z = measured(one)
    posterior = Posterior(one, EVERY, states, z[states])
    others = np.setdiff1d(np.arange(SPACE.n_states), states)
    held_out = HeldOut()
    held_out.add(z[others] - posterior.mean[others], posterior.columns(others)[others])
    assert np.mean(np.square(held_out.errors)) == pytest.approx(1, abs=0.6)  # 65 errors: 3.4 standard errors
    assert held_out.holds


@pytest.mark.parametrize(("scale", "freedom"), [(1.0, 1000.0), (2.0, 1000.0), (1.0, 3.0)])
def test_tails_are_those_of_the_errors(scale, freedom):
    """Of 2,000 errors 95 % are inside the interval, up to 1.5 %, three standard errors; the control is another law."""
    random = np.random.default_rng(2)
    errors = Tails(scale, freedom).draw(2000, random) * random.standard_normal(2000)
    found = fitted_tails(errors)
    assert np.mean(np.abs(errors) < found.quantile(0.95)) == pytest.approx(0.95, abs=0.015)
    assert found.freedom == freedom or (freedom > 100 and found.freedom >= 30)
    assert np.mean(np.abs(errors) < Tails(0.5 * scale, freedom).quantile(0.95)) < 0.9


def test_errors_with_a_few_far_outliers_do_not_pass_for_gaussian():
    held_out = HeldOut()
    held_out.errors = [*np.random.default_rng(1).standard_normal(54), -6.0, 5.0, -7.0, 6.0, 8.0, -5.0]
    assert held_out.tails.freedom < 10
    assert held_out.passed
