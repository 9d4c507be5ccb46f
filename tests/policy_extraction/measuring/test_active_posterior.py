"""The posterior of a table of choice probabilities against dense linear algebra and its own draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield import MemorySpace
from policy_extraction.measuring._active.explore import posterior_of
from policy_extraction.measuring._active.features import doubt, features, mirror_pairs
from policy_extraction.measuring._active.held_out import Errors, HeldOut
from policy_extraction.measuring._active.kernel import EVEN, ODD, Kernel
from policy_extraction.measuring._active.marginal_likelihood import (
    CENTRE,
    NOISE,
    SPREAD,
    Measured,
    drawn,
    fitted,
    kernel_of,
    loss,
)
from policy_extraction.measuring._active.posterior import LEAST, Posterior, joined, odd_even, probits
from policy_extraction.measuring._active.tails import Tails, fitted_tails

SPACE = MemorySpace(2, 3)
PAIRS = mirror_pairs(SPACE)
EVERY = features(SPACE).at(PAIRS[:, 0])
N = len(PAIRS)
PARITIES = pytest.mark.parametrize("parity", [ODD, EVEN])


def kernel(parity: int = EVEN, seed: int = 0) -> Kernel:
    """A kernel with parameters of the prior."""
    random = np.random.default_rng(seed)
    return kernel_of(CENTRE[parity] + 0.5 * SPREAD * random.standard_normal(len(SPREAD)), parity)


def dense(kernel: Kernel) -> np.ndarray:
    return kernel.between(EVERY, EVERY) + np.diag(kernel.alone(EVERY))


def measured(kernel: Kernel, number: int = 15, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.permutation(N)[:number], kernel.draw(EVERY, random)


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


@pytest.mark.parametrize("length", [1, 3])
def test_pairs_are_mirror_images_and_hold_every_memory(length):
    space = MemorySpace(2, length)
    for one, image in mirror_pairs(space).tolist():
        assert space.memory(image) == tuple((1 - a, 1 - b) for a, b in space.memory(one))
    assert mirror_pairs(space)[0].tolist() == [0, 0]
    assert sorted(mirror_pairs(space)[1:].ravel()) == list(range(1, space.n_states))


@PARITIES
@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_is_a_covariance(parity, seed):
    one = kernel(parity, seed)
    covariance = dense(one)
    np.testing.assert_allclose(np.diag(covariance), one.variance(EVERY), rtol=1e-12)
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-12)
    some = slice(int(parity == ODD), None)  # the empty memory has no odd part
    assert np.linalg.eigvalsh(covariance[some, some]).min() > 0.9 * one.amplitudes.alone
    assert (covariance[0] == 0).all() == (parity == ODD)


@PARITIES
@pytest.mark.parametrize("seed", range(3))
def test_covariances_are_those_of_distances(parity, seed):
    """The definition, memory by memory; the control leaves mirror images out."""
    one = kernel(parity, seed)
    a, s = one.amplitudes, one.shape
    ages = np.arange(SPACE.memory_length)
    turn = np.array([[np.cos(s.angle), -np.sin(s.angle)], [np.sin(s.angle), np.cos(s.angle)]]) / [1, s.stretch]
    sums = np.einsum("nav,a->nv", EVERY.signs, np.exp(-s.recency * ages)) @ turn / s.width
    theta = s.theta * np.exp(-s.forgetting * ages)[:, None] * [1, s.partner]
    expected, alone = np.zeros((N, N)), np.zeros((N, N))
    for i, j in np.ndindex(N, N):
        lengths = np.exp(-(((EVERY.length[i] - EVERY.length[j]) / s.lengths) ** 2) / 2)
        near, far = (
            a.smooth * lengths * np.exp(-((sums[i] - sign * sums[j]) ** 2).sum() / 2)
            + a.rough * np.exp(-(theta * np.abs(EVERY.signs[i] - sign * EVERY.signs[j])).sum() / 2)
            for sign in (1, -1)
        )
        expected[i, j], alone[i, j] = (near + parity * far) / 2, near / 2
    found = one._replace(amplitudes=a._replace(trend=0.0)).between(EVERY, EVERY)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(found - alone).max() > 0.01


@PARITIES
def test_blocks_make_no_difference(parity, monkeypatch):
    one, some = kernel(parity), EVERY.at(np.arange(7, 20))
    expected = one.between(EVERY, some)
    monkeypatch.setattr("policy_extraction.measuring._active.kernel.BLOCK", 40)
    np.testing.assert_allclose(one.between(EVERY, some), expected, rtol=1e-12)


@PARITIES
def test_parts_are_odd_or_even(parity):
    images = features(SPACE).at(PAIRS[:, 1])
    for part, mirrored in zip(*(kernel(parity).parts(each, EVERY) for each in (EVERY, images)), strict=True):
        np.testing.assert_allclose(mirrored, parity * part, atol=1e-12)


def test_parts_add_up_to_the_probits():
    z = np.random.default_rng(0).standard_normal((N, 2))
    np.testing.assert_allclose(joined(*odd_even(z)), z, atol=1e-12)
    np.testing.assert_allclose(odd_even(z[:, ::-1])[1], odd_even(z)[1], atol=1e-12)


@PARITIES
def test_random_functions_have_the_covariance_of_the_kernel(parity):
    """300 functions: entries have standard errors below 0.09 of the largest variance; 4 of them fail in 1e-3."""
    one, random = kernel(parity), np.random.default_rng(5)
    drawn = np.array([one.draw(EVERY, random) for _ in range(300)])
    scale = one.variance(EVERY).max()
    error = np.abs(drawn.T @ drawn / len(drawn) - dense(one)).max() / scale
    assert error < 0.35
    other = dense(one._replace(amplitudes=one.amplitudes._replace(smooth=0.0)))  # the control
    assert np.abs(drawn.T @ drawn / len(drawn) - other).max() / scale > 0.35


@PARITIES
def test_the_gradient_of_the_likelihood_is_its_derivative(parity):
    states, z = measured(kernel(parity))
    centre = CENTRE[parity]
    known = Measured(EVERY.at(states), z[states])
    value, gradient = loss(centre, known, parity)
    step = 1e-4
    for j, unit in enumerate(np.eye(len(centre))):
        ahead, behind = (loss(centre + sign * step * unit, known, parity)[0] for sign in (1, -1))
        assert gradient[j] == pytest.approx((ahead - behind) / (2 * step), abs=1e-3 * max(1, abs(value)))


@PARITIES
def test_the_likelihood_is_that_of_the_gaussian(parity):
    """Up to the prior, which is 0 at its centre, and a constant."""
    states, z = measured(kernel(parity))
    covariance = dense(kernel_of(CENTRE[parity], parity))[np.ix_(states, states)] + NOISE * np.eye(len(states))
    expected = (z[states] @ np.linalg.solve(covariance, z[states]) + np.linalg.slogdet(covariance)[1]) / 2
    assert loss(CENTRE[parity], Measured(EVERY.at(states), z[states]), parity)[0] == pytest.approx(expected, rel=1e-9)


def test_the_posterior_is_the_conditional_gaussian():
    one = kernel()
    states, z = measured(one)
    posterior = Posterior(one, EVERY, states, z[states])
    covariance = dense(one)
    gain = np.linalg.solve(covariance[np.ix_(states, states)] + NOISE * np.eye(len(states)), covariance[states]).T
    expected = covariance - gain @ covariance[states]
    np.testing.assert_allclose(posterior.mean, gain @ z[states], atol=1e-9)
    np.testing.assert_allclose(posterior.columns(np.arange(N)), expected, atol=1e-9)
    np.testing.assert_allclose(posterior.variance, np.maximum(np.diag(expected), NOISE), atol=1e-9)
    vector = np.random.default_rng(2).standard_normal(N)
    np.testing.assert_allclose(posterior.times(vector, N), expected @ vector, atol=1e-8)
    np.testing.assert_allclose(posterior.mean[states], z[states], atol=1e-3)
    assert posterior.variance[states].max() < 2 * NOISE


def test_posterior_draws_have_its_mean_and_variance():
    """300 draws: a mean is off by 5 of its standard errors in 1e-6, a deviation by 30 % in less of all runs."""
    one = kernel()
    states, z = measured(one)
    posterior = Posterior(one, EVERY, states, z[states])
    random = np.random.default_rng(3)
    drawn = np.array([posterior.draw(random, Tails(2.0)) for _ in range(300)])
    others = np.setdiff1d(np.arange(N), states)
    deviation = 2 * np.sqrt(posterior.variance[others])
    assert (np.abs(drawn.mean(0) - posterior.mean)[others] / deviation).max() < 5 / np.sqrt(300)
    np.testing.assert_allclose(drawn.std(0)[others], deviation, rtol=0.3)
    assert np.abs(drawn[:, states] - z[states]).max() < 0.02


def test_probits_keep_the_digits_of_both_words():
    q = np.array([[0.5, 0.5], [1 - 1e-4, 1e-4], [1e-4, 1 - 1e-4], [1.0, 0.0], [0.0, 1.0]])
    z = probits(q)
    np.testing.assert_allclose(z[1:3], [-z[2], -z[1]], rtol=1e-12)
    np.testing.assert_allclose(ndtr(z), np.clip(q[:, 0], LEAST, 1 - LEAST), rtol=1e-9)


def test_fitted_parameters_predict_better_than_the_prior():
    true = kernel_of(CENTRE[ODD] + np.array([2, 0, -4, -4, *[0] * 8]), ODD)
    random = np.random.default_rng(7)
    z = true.draw(EVERY, random)
    states = random.permutation(N)[:20]
    others = np.setdiff1d(np.arange(N), states)
    parameters = fitted(Measured(EVERY.at(states), z[states]), ODD)
    errors = [
        np.abs(Posterior(one, EVERY, states, z[states]).mean - z)[others].mean()
        for one in (kernel_of(parameters, ODD), kernel_of(CENTRE[ODD], ODD), true)
    ]
    assert errors[0] < errors[1]
    assert errors[0] < 2 * errors[2]


def test_random_parameters_have_the_curvature_of_the_density():
    """5,000 draws: entries of a correlation matrix have standard errors below 0.015; 0.08 is more than 5 of them."""
    states, z = measured(kernel(ODD))
    known = Measured(EVERY.at(states), z[states])
    best = fitted(known, ODD)
    step = 1e-3
    hessian = np.array(
        [
            np.subtract(*(loss(best + sign * step * unit, known, ODD)[1] for sign in (1, -1)))
            for unit in np.eye(len(best))
        ]
    ) / (2 * step)
    sizes, directions = np.linalg.eigh((hessian + hessian.T) / 2 * np.outer(SPREAD, SPREAD))
    expected = directions / np.maximum(sizes, 1) @ directions.T
    found = drawn(known, ODD, best, 5000, np.random.default_rng(0))
    covariance = np.cov(((found - best) / SPREAD).T)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((covariance - expected) / scale).max() < 0.08
    assert np.abs((covariance - np.eye(len(best))) / scale).max() > 0.08  # the control: those of the prior


def test_what_is_in_doubt_may_lean_the_other_way():
    """Even parts that are -1 where the odd part is 0 and 1 where it is large."""
    odd, states = 4 * np.random.default_rng(0).random(N), np.arange(20)
    even = 1 - 2 * doubt(odd)
    parameters = np.array([CENTRE[ODD], CENTRE[EVEN]])
    found = posterior_of(parameters, EVERY, states, np.stack([odd, even])[:, states])
    assert found.even.bend < -1
    moved = found.even.every.doubt.copy()
    moved[30] += 0.1
    again = Posterior(found.even.kernel, found.even.every._replace(doubt=moved), states, even[states])
    assert again.mean[30] - found.even.mean[30] == pytest.approx(0.1 * found.even.bend, rel=1e-9)
    np.testing.assert_allclose(found.coupling(np.zeros(N), np.zeros(N)), found.even.bend)


def test_doubt_is_averaged_over_the_odd_part():
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    values = np.exp(-((1.3 + np.sqrt(0.7) * nodes) ** 2) / 2)
    assert doubt(np.array([1.3]), 0.7)[0] == pytest.approx(weights @ values / weights.sum(), rel=1e-6)


def test_held_out_errors_are_independent_and_of_variance_one_if_the_model_holds():
    one = kernel()
    states, z = measured(one, 8)
    posterior = Posterior(one, EVERY, states, z[states])
    others = np.setdiff1d(np.arange(N), states)
    errors = Errors()
    errors.add(z[others] - posterior.mean[others], posterior.columns(others)[others])
    assert np.mean(np.square(errors.every)) == pytest.approx(1, abs=0.8)  # 35 errors: 3.3 standard errors


@pytest.mark.parametrize(("scale", "freedom"), [(1.0, 1000.0), (2.0, 1000.0), (1.0, 3.0)])
def test_tails_are_those_of_the_errors(scale, freedom):
    """Of 2,000 errors 95 % are inside the interval, up to 1.5 %, three standard errors; the control is another law."""
    random = np.random.default_rng(2)
    errors = Tails(scale, freedom).of(random.standard_normal(2000))
    found = fitted_tails(errors)
    assert np.mean(np.abs(errors) < found.quantile(0.95)) == pytest.approx(0.95, abs=0.015)
    assert found.freedom == freedom or (freedom > 100 and found.freedom >= 30)
    assert np.mean(np.abs(errors) < Tails(0.5 * scale, freedom).quantile(0.95)) < 0.9


def test_tails_are_monotone_and_odd():
    at = np.linspace(-8, 8, 33)
    for tails in (Tails(), Tails(0.5, 2.5), Tails(3.0, 6.0)):
        errors = tails.of(at)
        assert (np.diff(errors) > 0).all()
        np.testing.assert_allclose(errors[::-1], -errors)
    np.testing.assert_allclose(Tails().of(at[12:21]), at[12:21], rtol=5e-3)


def test_errors_with_a_few_far_outliers_do_not_pass_for_gaussian():
    random = np.random.default_rng(1)
    held_out = HeldOut(Errors([*random.standard_normal(54), -6.0, 5.0, -7.0, 6.0, 8.0, -5.0]))
    assert held_out.odd.tails.freedom < 10
    assert held_out.even.tails.freedom > 10
    assert held_out.passed


def test_many_errors_outside_their_intervals_are_a_proof_against_the_model():
    held_out = HeldOut(even=Errors([0.01] * 30 + [5.0] * 12))
    assert held_out.recent == 42
    assert not held_out.holds or held_out.outside < 10
