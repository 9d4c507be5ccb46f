"""The choice of the next memories against quadrature and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from meanfield import MemorySpace
from policy_extraction.measuring._active.choice import goal_variance, moments, next_memories
from policy_extraction.measuring._active.features import features
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, kernel_of
from policy_extraction.measuring._active.posterior import Posterior
from policy_extraction.measuring._active.tails import Tails
from policy_extraction.measuring._active.visits import visits

SPACE = MemorySpace(2, 2)
EVERY = features(SPACE)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


def posterior() -> Posterior:
    kernel = kernel_of(CENTRE)
    states = np.array([0, 1, 4, 9])
    return Posterior(kernel, EVERY, states, kernel.draw(EVERY, np.random.default_rng(0))[states])


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (1.5, 0.2), (-3.0, 4.0), (0.3, 1e-6)])
def test_moments_of_a_choice_are_those_of_quadrature(mean, variance):
    values = ndtr(mean + np.sqrt(variance) * NODES)
    weights = WEIGHTS / WEIGHTS.sum()
    effect, second, first = (one[0] for one in moments(np.array([mean]), np.array([variance])))
    assert first == pytest.approx(weights @ values, rel=1e-5)
    assert second == pytest.approx(weights @ values**2, rel=1e-4)
    assert effect == pytest.approx(weights @ (NODES * values) / np.sqrt(variance), rel=1e-3)


def test_heavy_tails_leave_doubt_where_the_gaussian_is_sure():
    mean, variance = np.array([4.0]), np.array([0.5])
    light, heavy = (moments(mean, variance, tails) for tails in (Tails(), Tails(1.0, 3.0)))
    assert 1 - light[2] < 1e-3 < 1 - heavy[2]
    random = np.random.default_rng(0)
    z = mean + np.sqrt(variance) * Tails(1.0, 3.0).draw(100_000, random) * random.standard_normal(100_000)
    # twenty quantiles leave out the furthest tail
    assert 0.5 * (1 - ndtr(z)).mean() < 1 - heavy[2][0] < (1 - ndtr(z)).mean()


def test_the_variance_of_a_goal_is_that_of_draws():
    """2,000 draws at H = 2: the mean square is known to 4 %, 15 % is more than 3 standard errors."""
    prior, random = posterior(), np.random.default_rng(3)
    small = 0.05 * random.standard_normal(SPACE.n_states) / np.sqrt(1 + prior.variance)
    draws = np.array([ndtr(prior.draw(random)) for _ in range(2000)])
    expected = (((draws - ndtr(prior.mean)) @ small) ** 2).mean()
    assert goal_variance(prior, small) == pytest.approx(expected, rel=0.15)


def expected_reduction(mean: np.ndarray, covariance: np.ndarray, goal: np.ndarray, state: int) -> float:
    """Cov(z_i, g·Φ(z))²/Var z_i plus what of g_i²·Var Φ(z_i) is not linear in z_i, by quadrature over z_i.

    The covariance of Φ(z_j) with z_i is E[z_i E[Φ(z_j) | z_i]], and z_j given z_i is Gaussian.
    """
    at = np.sqrt(covariance[state, state]) * NODES
    slope = covariance[state] / covariance[state, state]
    rest = np.diag(covariance) - slope * covariance[state]
    given = ndtr((mean + np.outer(at, slope)) / np.sqrt(1 + rest.clip(0)))
    weights = WEIGHTS / WEIGHTS.sum()
    linear = (weights * at) @ given @ goal / np.sqrt(covariance[state, state])
    own = given[:, state]
    bent = weights @ own**2 - (weights @ own) ** 2 - (weights @ (at * own)) ** 2 / covariance[state, state]
    return linear**2 + goal[state] ** 2 * bent


def test_the_first_memory_reduces_the_variance_most():
    """Without visits the choice is by the derivatives alone."""
    prior = posterior()
    asked = np.isin(np.arange(SPACE.n_states), prior.asked)
    covariance = prior.columns(np.arange(SPACE.n_states))
    for seed in range(5):
        goal = np.random.default_rng(seed).standard_normal(SPACE.n_states)
        gains = [
            -1.0 if asked[i] else expected_reduction(prior.mean, covariance, goal, i) for i in range(SPACE.n_states)
        ]
        chosen = next_memories(prior, goal[None], np.zeros(SPACE.n_states), asked, 1)
        assert gains[chosen[0]] == pytest.approx(max(gains), rel=1e-3)


def test_a_batch_takes_each_memory_once_and_none_that_is_known():
    prior = posterior()
    asked = np.isin(np.arange(SPACE.n_states), prior.asked)
    goal = np.random.default_rng(0).standard_normal((2, SPACE.n_states))
    chosen = next_memories(prior, goal, np.full(SPACE.n_states, 1 / SPACE.n_states), asked, (~asked).sum())
    assert sorted(chosen) == np.flatnonzero(~asked).tolist()


def test_without_derivatives_the_most_visited_uncertain_memories_are_taken():
    prior = posterior()
    asked = np.isin(np.arange(SPACE.n_states), prior.asked)
    seen = np.zeros(SPACE.n_states)
    seen[7] = 1.0
    assert next_memories(prior, np.empty((0, SPACE.n_states)), seen, asked, 1) == [7]


def test_a_memory_alike_to_a_chosen_one_is_not_taken_next():
    """The control: taken one by one from the same posterior, the two best memories are alike."""
    kernel = kernel_of(CENTRE)
    fair = kernel.amplitudes._replace(level=0.0, smooth_even=0.0, rough_even=0.0, alone=1e-9)
    prior = Posterior(kernel._replace(amplitudes=fair), EVERY, np.array([0]), np.zeros(1))
    one, image = SPACE.state([(0, 0), (0, 0)]), SPACE.state([(1, 1), (1, 1)])
    goal = np.zeros((1, SPACE.n_states))
    goal[0, [one, image, SPACE.state([(0, 1)])]] = [1.0, -0.9, 0.3]  # one tells all of its mirror image
    asked, seen = np.arange(SPACE.n_states) == 0, np.zeros(SPACE.n_states)
    first, second = next_memories(prior, goal, seen, asked, 2)
    assert first in (one, image)
    assert second not in (one, image)


def test_visits_are_those_of_the_chain():
    """H = 1: an agent that says the first word with chance p and hears it with chance s has four memories' product."""
    space = MemorySpace(2, 1)
    p = 0.3
    seen = visits(np.full((5, 2), [p, 1 - p]), space)
    heard = np.mean([0.02, 0.25, 0.5, 0.75, 0.98])
    expected = np.array([p * heard, p * (1 - heard), (1 - p) * heard, (1 - p) * (1 - heard)])
    np.testing.assert_allclose(seen, [1 / 4, *(3 / 4 * expected)], atol=1e-12)
