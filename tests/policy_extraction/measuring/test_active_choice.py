"""The choice of the next memories against closed forms and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, owens_t

from meanfield import MemorySpace
from policy_extraction.measuring._active.choice import Candidates, moments, visits
from policy_extraction.measuring._doubt import Tails

N = 12
NONE = np.full(N, 1e-9)


def candidates(seed: int = 0, seen: int | None = None, goal: bool = True, rest: float = 0.1) -> Candidates:
    """Random ones, of which one is visited."""
    random = np.random.default_rng(seed)
    root = random.standard_normal((N, N))
    about = np.zeros(N)
    if seen is not None:
        about[seen] = 1.0
    linear = goal * random.standard_normal(N)
    return Candidates(np.arange(N), root @ root.T / N, linear, goal * rest * random.random(N), about)


def left(c: Candidates, batch: np.ndarray, noise: np.ndarray) -> float:
    """The variance of the linear part, given these memories with their errors."""
    gain = c.covariance[:, batch] @ np.linalg.inv(c.covariance[np.ix_(batch, batch)] + np.diag(noise[batch]))
    return float(c.linear @ (c.covariance - gain @ c.covariance[batch]) @ c.linear)


@pytest.mark.parametrize("variance", [0.1, 1.0])
def test_moments_of_choices_are_those_of_gaussian_probits(variance, monkeypatch):
    """By Stein's lemma Cov(Φ(z), δ)/σ² = E φ(z); E Φ(z)² is Owen's T."""
    mean = np.linspace(-3, 3, 7)
    monkeypatch.setattr("policy_extraction.measuring._doubt.FREEDOM", 1e6)
    found, rest = moments(mean, np.full(7, variance), Tails(1.0))
    at = mean / np.sqrt(1 + variance)
    slope = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi * (1 + variance))
    spread = ndtr(at) - 2 * owens_t(at, 1 / np.sqrt(1 + 2 * variance)) - ndtr(at) ** 2
    np.testing.assert_allclose(found, slope, atol=5e-3)
    np.testing.assert_allclose(rest, spread - slope**2 * variance, atol=2e-3)


def test_heavy_tails_leave_doubt_where_the_gaussian_is_sure(monkeypatch):
    mean, variance, tails = np.array([4.0]), np.array([0.5]), Tails(1.0)
    _, heavy = moments(mean, variance, tails)
    q = ndtr(4 + np.sqrt(0.5) * tails.of(np.random.default_rng(0).standard_normal(400_000)))
    assert heavy == pytest.approx(q.var(), rel=0.3)
    monkeypatch.setattr("policy_extraction.measuring._doubt.FREEDOM", 1e6)
    assert heavy > 10 * moments(mean, variance, tails)[1]


def test_what_a_batch_tells_is_what_the_variance_loses():
    c, batch, noise = candidates(rest=0.0), np.array([1, 5, 5]), np.full(N, 0.3)
    same = noise.copy()
    same[5] /= 2
    expected = c.variance - left(c, np.array([1, 5]), same)
    assert c.told(batch, noise) == pytest.approx(expected)
    assert c.told(np.array([1, 5]), NONE) > 1.05 * expected  # the control: without errors


@pytest.mark.parametrize("seed", range(5))
def test_the_first_memory_reduces_the_variance_most(seed):
    """Without visits the choice is by the derivatives alone; what is not linear goes with the memory."""
    c = candidates(seed)
    gains = [c.told(np.array([i]), NONE) for i in range(N)]
    assert c.next(1, NONE)[0] == np.argmax(gains)


def test_each_next_memory_reduces_what_is_left():
    c = candidates(rest=0.0)
    chosen = c.next(4, NONE, 1)
    assert chosen[0] == 0
    for n in range(1, 4):
        others = np.setdiff1d(np.arange(N), chosen[:n])
        best = min(others, key=lambda i, n=n: left(c, np.append(chosen[:n], i), NONE))
        assert chosen[n] == best


def test_without_derivatives_the_most_visited_uncertain_memories_are_taken():
    assert candidates(seen=7, goal=False).next(1, NONE) == [7]


def test_a_memory_that_tells_most_is_chosen_again_and_again():
    """Only one memory matters; without errors it is chosen once."""
    one = candidates()._replace(covariance=np.eye(N), linear=1.0 * (np.arange(N) == 6), rest=np.zeros(N))
    assert (one.next(3, np.full(N, 5.0), once=False) == 6).all()
    assert (one.next(3, NONE) == 6).sum() == 1


def test_visits_are_those_of_the_chain():
    """H = 1: an agent that says the first word with chance p and hears it with chance s has four memories' product."""
    space = MemorySpace(2, 1)
    p = 0.3
    seen = visits(np.full((5, 2), [p, 1 - p]), space)
    heard = np.mean([0.02, 0.25, 0.5, 0.75, 0.98])
    expected = np.array([p * heard, p * (1 - heard), (1 - p) * heard, (1 - p) * (1 - heard)])
    np.testing.assert_allclose(seen, [1 / 4, *(3 / 4 * expected)], atol=1e-12)
