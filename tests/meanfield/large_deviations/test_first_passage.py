"""Lives on a line: matrix exponentials, and closed forms of Brownian motion."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import invgauss

from meanfield._large_deviations.first_passage import Lifetime, lifetime_on

pytestmark = pytest.mark.usefixtures("unchecked_types")

POINTS = np.linspace(0, 1, 401)
AT_END = np.where(POINTS == 1, 1e15, 0.0)


def test_chances_and_means_are_those_of_the_chain():
    random = np.random.default_rng(0)
    up, down, end = random.exponential(size=(3, 12))
    up[-1] = down[0] = 0.0
    generator = np.diag(up[:-1], 1) + np.diag(down[1:], -1) - np.diag(up + down + end)
    life, times = Lifetime(up, down, end), np.array([0.01, 0.5, 3.0, 40.0])
    exact = [1 - expm(generator * t)[0].sum() for t in times]
    np.testing.assert_allclose(life.over(times), exact, atol=2e-6)
    assert life.mean() == pytest.approx(np.linalg.solve(-generator, np.ones(12))[0], rel=1e-12)


def test_brownian_motion_from_a_wall():
    """Until 1: the mean is 1, the survival a series of cosines; the error is of order two."""
    life, times = lifetime_on(POINTS, 0 * POINTS, 1 + 0 * POINTS, AT_END), np.array([0.1, 0.5, 2.0])
    assert life.mean() == pytest.approx(1.0, rel=1e-8)
    k = np.pi * (np.arange(40)[:, None] + 0.5)
    survival = (2 * np.sin(k) / k * np.exp(-(k**2) * times / 2)).sum(0)
    np.testing.assert_allclose(life.over(times), 1 - survival, atol=1e-5)


@pytest.mark.parametrize("drift", [-30.0, 3.0])
def test_constant_drift(drift):
    """The error is of order two, also where the mean is 6e22."""
    exact, off = 1 / drift - (1 - np.exp(-2 * drift)) / (2 * drift**2), []
    for n in (400, 800):
        points = np.linspace(0, 1, n + 1)
        life = lifetime_on(points, drift + 0 * points, 1 + 0 * points, np.where(points == 1, 1e15, 0.0))
        off.append(life.mean() / exact - 1)
    assert abs(off[1]) < 1e-3
    assert off[1] == pytest.approx(off[0] / 4, rel=0.01)


@pytest.mark.parametrize("variance", [1e-2, 1e-3])
def test_narrow_laws_are_those_of_inverse_gauss(variance):
    """With a drift of 1 the time to 1 has this variance; the wall makes it shorter by half of it."""
    points, times = np.linspace(0, 1, 4001), 1 + np.sqrt(variance) * np.arange(-4.0, 5.0)
    life = lifetime_on(points, 1 + 0 * points, variance + 0 * points, np.where(points == 1, 1e15, 0.0))
    exact = invgauss(variance, scale=1 / variance).cdf(times + variance / 2)
    np.testing.assert_allclose(life.over(times), exact, atol=0.003)


def test_a_well_is_left_at_the_rate_of_kramers():
    """Mean e^{2NΔ}·2π/√|V''V''| for V = x²/2 - x³/3 from 0 to 1; relative order 1/N, and orders of magnitude that
    no difference of probabilities could see."""
    points, means = np.linspace(-0.5, 1.5, 4001), []
    for n in (400, 800):
        end = np.where(points > 1.4, 1e9, 0.0)
        life = lifetime_on(points, points**2 - points, 1 / n + 0 * points, end)
        means.append(life.mean() / (2 * np.pi * np.exp(2 * n / 6)))
    assert means[1] == pytest.approx(1, abs=0.005)
    assert abs(means[1] - 1) < 0.7 * abs(means[0] - 1)


def test_it_never_ends_without_an_end():
    life = lifetime_on(POINTS, 0 * POINTS, 1 + 0 * POINTS, 0 * POINTS)
    assert life.mean() == np.inf
    np.testing.assert_allclose(life.over(np.array([1.0, 100.0])), 0, atol=1e-7)
