"""The choice of the next memories against closed forms and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, owens_t
from scipy.stats import multivariate_normal

from meanfield import MemorySpace
from policy_extraction.measuring._active.choice import goal_variance, linearised, moments, next_pairs
from policy_extraction.measuring._active.explore import posterior_of
from policy_extraction.measuring._active.features import features, mirror_pairs
from policy_extraction.measuring._active.kernel import EVEN, ODD
from policy_extraction.measuring._active.marginal_likelihood import CENTRE, kernel_of
from policy_extraction.measuring._active.posterior import Both
from policy_extraction.measuring._active.tails import Tails
from policy_extraction.measuring._active.visits import visits

SPACE = MemorySpace(2, 2)
PAIRS = mirror_pairs(SPACE)
EVERY = features(SPACE).at(PAIRS[:, 0])
N = len(PAIRS)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def posterior(scale: float = 1.0, seed: int = 0, bend: float = 0.0) -> Both:
    """Given four pairs, of a prior with variances of these sizes."""
    random = np.random.default_rng(seed)
    parameters = [CENTRE[parity] + np.array([np.log(scale)] * 4 + [0] * 8) for parity in (ODD, EVEN)]
    states = np.array([0, 1, 3, 6])
    parts = [kernel_of(each, parity).draw(EVERY, random) for each, parity in zip(parameters, (ODD, EVEN), strict=True)]
    found = posterior_of(parameters, EVERY, states, np.array(parts)[:, states])
    found.even.bend = bend
    return found


def asked(both: Both) -> np.ndarray:
    return np.isin(np.arange(N), both.odd.asked)


def moments_of_normals(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E Φ(z), E φ(z) and E Φ(z)² for Gaussian z, with Owen's T."""
    at = mean / np.sqrt(1 + variance)
    slope = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi * (1 + variance))
    return ndtr(at), slope, ndtr(at) - 2 * owens_t(at, 1 / np.sqrt(1 + 2 * variance))


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_moments_of_choices_are_those_of_gaussian_probits(scale):
    """By Stein's lemma Cov(Φ(z), δ)/σ² = E φ(z)·dz/dδ."""
    both = posterior(scale)
    found = moments(both)
    z, variance = both.median(), both.odd.variance + both.even.variance
    first, slope, second = moments_of_normals(z, variance[:, None])
    np.testing.assert_allclose(found.shift, first - ndtr(z), atol=2e-3)
    np.testing.assert_allclose(found.slopes, [slope * [1, -1], slope], atol=5e-3)
    np.testing.assert_allclose(found.variance, second - first**2, atol=2e-3)
    for n in range(N):
        # P(x < z₁, y < z₂) with normal x and y is E Φ(z₁) Φ(z₂).
        between = both.even.variance[n] - both.odd.variance[n]
        covariance = np.eye(2) * (1 + variance[n]) + between * (1 - np.eye(2))
        joint = multivariate_normal(cov=covariance).cdf(z[n])
        assert found.covariance[n] == pytest.approx(joint - first[n].prod(), abs=2e-3)


def test_heavy_tails_leave_doubt_where_the_gaussian_is_sure():
    both = posterior()
    both.odd.mean[:], both.odd.variance[:], both.even.mean[:], both.even.variance[:] = 4.0, 0.5, 0.0, 1e-6
    light, heavy = (moments(both, (tails, Tails())) for tails in (Tails(), Tails(1.0, 3.0)))
    assert light.shift[0, 0] > -1e-3
    assert heavy.shift[0, 0] < -3e-3
    random = np.random.default_rng(0)
    z = 4 + np.sqrt(0.5) * Tails(1.0, 3.0).of(random.standard_normal(100_000))
    assert heavy.shift[0, 0] == pytest.approx(ndtr(z).mean() - ndtr(4.0), rel=0.15)


@pytest.mark.parametrize("bend", [0.0, 0.5])
def test_the_variance_of_a_goal_is_that_of_draws(bend):
    """2,000 draws at H = 2: the mean square is known to 4 %, 15 % is more than 3 standard errors."""
    both, random = posterior(0.3, bend=bend), np.random.default_rng(3)
    small = 0.05 * random.standard_normal((N, 2))
    normal = (Tails(), Tails())
    draws = np.array([ndtr(both.draw(random, normal)) for _ in range(2000)])
    expected = (((draws - ndtr(both.median())) * small).sum((1, 2)) ** 2).mean()
    assert goal_variance(both, small) == pytest.approx(expected, rel=0.15)


def test_a_goal_that_both_words_share_hangs_on_the_even_part():
    """Equal derivatives in mirror images; the control has opposite ones."""
    both = posterior(0.1)
    for part in both:
        part.mean[:] = 0.0
    shared, opposite = (linearised(both, np.full((N, 2), [1.0, sign]), moments(both))[0] for sign in (1.0, -1.0))
    np.testing.assert_allclose(shared[0], 0, atol=1e-12)
    np.testing.assert_allclose(opposite[1], 0, atol=1e-12)
    assert (shared[1] > 0.5).all()
    assert (opposite[0] > 0.5).all()


def expected_reduction(both: Both, goal: np.ndarray, pair: int) -> float:
    """Σ Cov(δ, G)²/Var δ over the parts δ of a pair, plus what of its own share in G is not linear.

    The covariance of Φ(z_j) with δ is E[δ E[Φ(z_j) | δ]], and z_j given δ is Gaussian.
    """
    total = 0.0
    rest = sum(part.variance for part in both)
    bent = -0.0
    for part, sign in zip(both, (-1, 1), strict=True):
        column = part.columns(np.array([pair]))[:, 0]
        slope = column / np.sqrt(column[pair])
        left = (rest - slope**2).clip(0)
        shifts = np.stack([slope, sign * slope], axis=1)
        given = ndtr((both.median() + NODES[:, None, None] * shifts) / np.sqrt(1 + left[:, None]))
        covariance = np.einsum("n,npw,pw->", WEIGHTS * NODES, given, goal)
        own = np.einsum("n,nw,w->", WEIGHTS * NODES, given[:, pair], goal[pair])
        total += covariance**2
        bent -= own**2
    o, e = (part.mean[pair] + np.sqrt(part.variance[pair]) * NODES for part in both)
    share = goal[pair, 0] * ndtr(e + o[:, None]) + goal[pair, 1] * ndtr(e - o[:, None])
    mean = WEIGHTS @ share @ WEIGHTS
    return total + bent + WEIGHTS @ (share - mean) ** 2 @ WEIGHTS


def test_the_first_pair_reduces_the_variance_most():
    """Without visits the choice is by the derivatives alone."""
    for seed in range(5):
        both, goal = posterior(seed=seed), np.random.default_rng(seed).standard_normal((N, 2))
        gains = [-1.0 if asked(both)[i] else expected_reduction(both, goal, i) for i in range(N)]
        chosen = next_pairs(both, goal[None], np.zeros((N, 2)), ~asked(both), 1)
        assert gains[chosen[0]] == pytest.approx(max(gains), rel=0.02)


def test_a_batch_takes_each_pair_once_and_none_that_is_known():
    both = posterior()
    goal = np.random.default_rng(0).standard_normal((2, N, 2))
    known = asked(both)
    chosen = next_pairs(both, goal, np.full((N, 2), 1 / SPACE.n_states), ~known, (~known).sum())
    assert sorted(chosen) == np.flatnonzero(~known).tolist()


def test_without_derivatives_the_most_visited_uncertain_memories_are_taken():
    both = posterior()
    seen = np.zeros((N, 2))
    seen[7, 1] = 1.0
    assert next_pairs(both, np.empty((0, N, 2)), seen, ~asked(both), 1) == [7]


def test_a_pair_alike_to_a_chosen_one_is_not_taken_next():
    """The control: taken one by one from the same posterior, the two best pairs are alike."""
    parameters = [CENTRE[ODD].copy(), CENTRE[EVEN].copy()]
    for each in parameters:
        each[[0, 2, 3]] = np.log(1e-9)
        each[4] = np.log(1e-3)  # all ages count alike, so two pairs are the same to the smooth part
    both = posterior_of(parameters, EVERY, np.array([0]), np.zeros((2, 1)))
    here, there = (
        next(i for i, states in enumerate(PAIRS) if SPACE.state(memory) in states)
        for memory in ([(0, 0), (0, 1)], [(0, 1), (0, 0)])
    )
    goal = np.zeros((1, N, 2))
    goal[0, [here, there, 1]] = [[1.0, 1.0], [0.9, 0.9], [0.3, 0.3]]
    free, seen = np.arange(N) > 0, np.zeros((N, 2))
    first, second = next_pairs(both, goal, seen, free, 2)
    assert first in (here, there)
    assert second not in (here, there)


def test_visits_are_those_of_the_chain():
    """H = 1: an agent that says the first word with chance p and hears it with chance s has four memories' product."""
    space = MemorySpace(2, 1)
    p = 0.3
    seen = visits(np.full((5, 2), [p, 1 - p]), space)
    heard = np.mean([0.02, 0.25, 0.5, 0.75, 0.98])
    expected = np.array([p * heard, p * (1 - heard), (1 - p) * heard, (1 - p) * (1 - heard)])
    np.testing.assert_allclose(seen, [1 / 4, *(3 / 4 * expected)], atol=1e-12)
