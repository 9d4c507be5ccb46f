"""The posterior of Mechanism 1 against runs of the exact simulator, on a grid.

Error budget: means and standard deviations of ln J within 0.03, of which 400 draws, half of them independent, make
0.012 and 20,000 runs a point of the grid 0.004.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from meanfield import InputError
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS, PARAMETERS, posterior
from theory.flag_game.mechanism1._agents import simulated_moments
from theory.flag_game.mechanism1._coordinates import Coordinates, theta_at
from theory.flag_game.mechanism1._endpoints import read_counts
from theory.flag_game.mechanism1._likelihood import log_likelihood
from theory.flag_game.mechanism1._posterior import PRIOR
from theory.flag_game.mechanism1._surrogate import make_draws, surrogate_moments


def ends(rows: dict[int, tuple[int, ...]]) -> pd.DataFrame:
    """Counts of endpoints by N."""
    table = pd.DataFrame({f"{name}_count": [row[k] for row in rows.values()] for k, name in enumerate(ENDPOINTS)})
    return table.assign(N=list(rows), seeds=[sum(row) for row in rows.values()])


@pytest.fixture(scope="module")
def drawn() -> xr.DataTree:
    return posterior(ends({4: (17, 12, 11, 0)}), free=["J"], predict=[6, 4], draws=200, warmup=150, seed=3)


@pytest.mark.slow
def test_the_posterior_is_that_of_a_grid_over_the_simulator(drawn: xr.DataTree) -> None:
    measured, coordinates = read_counts(ends({4: (17, 12, 11, 0)})), Coordinates.of(["J"], APPENDIX_E)
    grid, (mean, sd) = np.linspace(-0.6, 2.2, 57), PRIOR["J"]
    points = [coordinates.parameters(np.array([at])) for at in grid]
    values = [log_likelihood(one.values, measured) for one in simulated_moments(points, (4,), 20_000, 1)]
    weight = np.exp(values - np.max(values) - (grid - mean) ** 2 / (2 * sd**2))
    weight /= weight.sum()
    expected = weight @ grid
    spread = np.sqrt(weight @ (grid - expected) ** 2)
    found = np.log(drawn["posterior"]["J"].values)
    assert found.mean() == pytest.approx(expected, abs=0.03)
    assert found.std() == pytest.approx(spread, abs=0.03)
    assert abs(expected - mean) > 0.05 and spread < 0.5 * sd  # of which the prior knows nothing


@pytest.mark.slow
def test_groups_are_those_of_arviz(drawn: xr.DataTree) -> None:
    assert set(drawn) == {"posterior", "posterior_predictive", "log_likelihood", "sample_stats", "observed_data"}
    assert drawn["posterior"]["J"].dims == ("chain", "draw") and drawn["posterior"].attrs["effective_share"] > 0.8
    assert not drawn["sample_stats"]["diverging"].any()
    assert float(drawn["sample_stats"]["weight"].sum()) == pytest.approx(1)
    predicted = drawn["posterior_predictive"]["probability"]
    assert predicted["n_agents"].values.tolist() == [4, 6]
    np.testing.assert_allclose(predicted.sum("endpoint"), 1, atol=1e-12)
    assert np.ptp(predicted.sel(n_agents=6, endpoint="correct_consensus").values) > 0.05
    assert drawn["log_likelihood"]["endpoint_count"].max() < 0  # logarithms of probabilities, with their constants


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws() -> None:
    options = {"free": ["J"], "draws": 20, "warmup": 20, "chains": 1}
    one, _, again, other = (
        posterior(ends({4: (4, 3, 3, 0)} | more), seed=seed, **options)["posterior"]
        for seed, more in ((1, {}), (1, {6: (4, 3, 3, 0)}), (1, {}), (2, {}))  # the second has data of another shape
    )
    assert one.identical(again) and not one.equals(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"predict": [1]}, r"predict\[0\] = 1"), ({"predict": 1}, r"predict\[0\] = 1"), ({"draws": 10**12}, "draws = ")],
)
def test_bad_input_is_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        posterior(ends({4: (4, 3, 3, 0)}), **options)


def test_every_parameter_has_a_prior() -> None:
    assert set(PRIOR) == set(PARAMETERS)
    Coordinates.of(PARAMETERS, replace(APPENDIX_E)).parameters(np.array([PRIOR[name][0] for name in PARAMETERS]))


@pytest.mark.slow
def test_derivatives_in_reverse_are_those_forward() -> None:
    """NUTS needs them; slots that no agent fills must not spoil them."""
    coordinates = Coordinates.of(["J", "mean_R"], APPENDIX_E)
    with jax.enable_x64(True):
        draws, held = make_draws((5, 8), 4, 1, 400), coordinates.held.theta
        weights = np.random.default_rng(0).standard_normal((2, 5))

        def mixed(at: jax.Array) -> jax.Array:
            return (weights * surrogate_moments(theta_at(coordinates.free, held, at), draws)).sum()

        both = [jax.jit(slope(mixed))(np.array([0.7, 0.1])) for slope in (jax.grad, jax.jacfwd)]
    np.testing.assert_allclose(*both, atol=1e-13)
