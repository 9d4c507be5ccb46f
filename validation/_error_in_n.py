"""How the difference between simulation and theory shrinks with the number of agents.

The mean over many runs differs from the rate equation by O(1/N), so that the slope of log(error) in log(N) tends to -1;
a theory that is wrong leaves an error that stays, and a slope of 0. The noise of the mean would be mistaken for an
error that shrinks like 1/√N, so it is taken out: the runs are dealt into groups, and in place of the square of the
mean difference D stand products of the differences of two groups,

    error² = mean over rounds and words of Σ_{g≠h} D_g D_h / (G(G-1)),

which no noise biases. Its standard error is the jackknife's over groups, on average not too small (Efron and Stein
1981, Ann. Stat. 9, 586).
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import ndtri

GROUPS = 40
RESOLVED = 2.0  # standard errors of error² above 0, below which its logarithm says nothing
LARGEST_SLOPE = -0.5  # half-way between a theory that is right for many agents and one that is wrong


def error_in_n(share: np.ndarray, theory: np.ndarray, n_agents: np.ndarray, level: float) -> xr.Dataset:
    """The error at each size, and its slope in log N.

    Parameters
    ----------
    share
        Simulated word share, shape (sizes, rounds, words, runs).
    theory
        Shape (rounds, words).
    n_agents
        N, shape (sizes,).
    level
        Confidence of the interval of the slope.

    Returns
    -------
    Dataset with `error` (n_agents), 0 where the estimate of its square is not positive, `error_uncertainty` (n_agents),
    NaN where the error is not resolved, `error_slope`, of the least-squares line through the sizes at which it is, its
    `error_slope_interval` (bound), and `error_vanishes`, whether all of the interval lies below -1/2. Without two
    resolved sizes the slope is NaN.
    """
    squares = np.array([_squared_error(one - theory[..., None]) for one in share])
    squared, uncertainty = squares.T
    resolved = squared > RESOLVED * uncertainty
    error = np.sqrt(np.maximum(squared, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        error_uncertainty = np.where(resolved, uncertainty / (2 * error), np.nan)
    slope, slope_uncertainty = _slope(n_agents[resolved], error[resolved], error_uncertainty[resolved])
    half = ndtri((1 + level) / 2) * slope_uncertainty
    texts = {
        "error": (error, "root mean square error of theory over rounds and words"),
        "error_uncertainty": (error_uncertainty, "standard error of that error"),
    }
    result = xr.Dataset(
        {name: ("n_agents", values, {"long_name": text, "units": "1"}) for name, (values, text) in texts.items()},
        coords={"bound": ["low", "high"]},
    )
    return result.assign(
        error_slope=((), slope, {"long_name": "slope of log(error) in log(N)", "units": "1"}),
        error_slope_interval=("bound", [slope - half, slope + half]),
        error_vanishes=bool(slope + half < LARGEST_SLOPE),
    )


def _squared_error(difference: np.ndarray) -> tuple[float, float]:
    """error² of runs of one size, shape (rounds, words, runs), and its standard error."""
    groups = min(GROUPS, difference.shape[-1])
    parts = np.array_split(difference.reshape(-1, difference.shape[-1]), groups, axis=1)
    means = np.stack([part.mean(1) for part in parts])
    products = means @ means.T / means.shape[1]
    square, total = np.diag(products), products.sum()
    estimate = (total - square.sum()) / (groups * (groups - 1))
    if groups < 3:
        return estimate, np.inf
    # Of the sum over pairs, those without group g
    without = (total - 2 * products.sum(1) + 2 * square - square.sum()) / ((groups - 1) * (groups - 2))
    variance = (groups - 1) / groups * ((without - without.mean()) ** 2).sum()
    return estimate, float(np.sqrt(variance))


def _slope(n_agents: np.ndarray, error: np.ndarray, uncertainty: np.ndarray) -> tuple[float, float]:
    """Slope of the least-squares line through log(error) over log(N), and its standard error."""
    if len(n_agents) < 2:
        return np.nan, np.nan
    distance = np.log(n_agents) - np.log(n_agents).mean()
    weight = distance / (distance**2).sum()
    return float(weight @ np.log(error)), float(np.sqrt((weight**2) @ (uncertainty / error) ** 2))
