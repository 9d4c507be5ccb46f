"""Stiff reaction models: Robertson's reactions against SciPy's Radau, and networks of known equilibrium."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield
from meanfield import ReactionModel


def robertson():
    """A → B at 0.04, B + B → C + B at 3e7 and B + C → A + C at 1e4."""
    to_a, to_c = np.eye(3)[[0, 0, 2]], np.eye(3)[[0, 2, 2]]
    decay = np.zeros((3, 3))
    decay[0, 1] = 0.04
    alpha, beta = [[0, 1, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1e4 / 3e7]]
    return ReactionModel(["A", "B", "C"], alpha, beta, [to_c, to_a], None, decay, encounter_rate=3e7)


def robertson_rates(_, x):
    a, b, c = x
    return np.array([-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b**2, 3e7 * b**2])


def stiff_chain(seed, size=6):
    """States in a row with rates of 1e-2 … 1e8 both ways, and its exact equilibrium.

    Half of the steps are also catalysed by agents in a random state, both ways alike, so that each step balances alone:
    x_k+1 / x_k is the ratio of its rates, as in exact fractions.
    """
    rng = np.random.default_rng(seed)
    rates = 10 ** rng.uniform(-2, 8, (size - 1, 2))
    alone, alpha, beta, first = np.zeros((size, size)), [], [], []
    for k, both in enumerate(rates):
        catalyst = rng.integers(size) if rng.random() < 0.5 else None
        for source, target, rate in ((k, k + 1, both[0]), (k + 1, k, both[1])):
            alone[source, target] = rate
            if catalyst is not None:
                alpha.append(np.eye(size)[source])
                beta.append(np.eye(size)[catalyst] * rate / 1e9)
                first.append(np.eye(size)[[target if i == source else i for i in range(size)]])
    factors = np.reshape(alpha, (-1, size)), np.reshape(beta, (-1, size))
    model = ReactionModel([f"{k}" for k in range(size)], *factors, first, None, alone, encounter_rate=1e9)
    weights = [Fraction(1)]
    for up, down in rates:
        weights.append(weights[-1] * Fraction(up) / Fraction(down))
    return model, np.array([float(weight / sum(weights)) for weight in weights]), rates.max() / rates.min()


def test_robertsons_solution_is_known():
    """The values in print, Radau with tolerances of its own, and the mass, which both steps conserve."""
    model, start, times = robertson(), np.array([1.0, 0, 0]), np.array([0.4, 40, 4e3, 4e5])
    x = np.array([0.7, 1e-5, 0.3 - 1e-5])
    np.testing.assert_allclose(model.drift(x), robertson_rates(0, x), rtol=1e-14)
    found = meanfield.solve(model, initial=start, times=times)["composition"].values
    np.testing.assert_allclose(found[:, 0], [0.98517, 0.71583, 0.18320, 0.0049383], rtol=2e-5)
    other = solve_ivp(robertson_rates, (0, 4e5), start, "Radau", times, rtol=1e-9, atol=1e-14).y.T
    np.testing.assert_allclose(found, other, rtol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=2e-14)


def test_a_slow_manifold_is_no_fixed_point():
    """All turn into C. Control: max|dx/dt| is below 1e-11 of the fastest rate at a point whose A halves in time."""
    model, a = robertson(), 2e-4
    b = 0.04 * a / 1e4  # what is left of B balances to first order
    slow = np.array([a, b, 1 - a - b])
    assert np.abs(model.drift(slow)).max() < 1e-11 * model.fastest
    later = meanfield.solve(model, initial=slow, times=[1e7])["composition"].sel(state="A").item()
    assert later == pytest.approx(a / 2, rel=0.05)  # dA/dt = -3e7 (4e-6 A)²
    points = meanfield.fixed_points(model, initial=slow, starts=2)
    assert points["composition"].values.tolist() == [[0, 0, 1]]
    assert points["stability"].item() == "marginal" and points["zero_modes"] == 1 and not points["continuum"]


@pytest.mark.parametrize("seed", range(2))
def test_equilibria_of_stiff_chains_are_those_of_exact_fractions(seed):
    """Fractions down to 1e-26, to what rounding of the fastest flux makes of the slowest step."""
    model, exact, spread = stiff_chain(seed)
    points = meanfield.fixed_points(model, starts=2)
    assert points.sizes["fixed_point"] == 1
    np.testing.assert_allclose(points["composition"][0], exact, rtol=1e-12 + 4 * np.finfo(float).eps * spread)
    assert points["stability"].item() != "unstable"
