"""Stationary distributions from logarithms of rates."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from meanfield._fixed_points.closed_classes import never_left
from meanfield._large_deviations.birth_death import balanced


def random_rates(seed=0, size=5):
    return np.random.default_rng(seed).normal(scale=3, size=(size, size))


def test_it_balances_the_flows():
    rates = np.exp(random_rates())
    np.fill_diagonal(rates, 0)
    with np.errstate(divide="ignore"):
        law = np.exp(balanced(np.log(rates)))
    np.testing.assert_allclose(law @ rates, law * rates.sum(1), rtol=1e-13)
    assert law.sum() == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_exponents_are_those_of_large_populations(scale):
    """The control is the exponent among few agents."""
    heights = np.abs(random_rates(1))
    np.fill_diagonal(heights, np.inf)
    exponents = balanced(-heights, np.maximum)
    np.testing.assert_allclose(balanced(-scale * heights) / scale, exponents, atol=3 / scale)
    assert np.abs(balanced(-heights) - exponents).max() > 0.1


def test_places_that_are_left_for_good_are_in_no_closed_class():
    possible = np.zeros((4, 4), bool)
    possible[[0, 0, 1, 2], [1, 3, 2, 1]] = True
    assert [members.tolist() for members in sorted(never_left(csr_array(possible)), key=min)] == [[1, 2], [3]]
