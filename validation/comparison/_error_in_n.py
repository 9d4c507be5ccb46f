"""Decrease of the difference D_N between simulation and theory with the number of agents, and its limit.

The mean over many runs differs from the rate equation by O(1/N).

- Its size at each N: the noise of the mean would look like an error that shrinks like 1/√N. So the runs are dealt into
  G groups, and products of the differences of two groups replace the squared mean difference,

      error² = mean over rounds and words of Σ_{g≠h} D_g D_h / (G(G-1)),

  which no noise biases. Its standard error is the jackknife's over groups, on average not too small (Efron and Stein
  1981, Ann. Stat. 9, 586).
- Its limit for N → ∞: a slope can't show it, since a small constant error hides below a large one that falls. So the
  line D = a + b/N goes through the two largest sizes, and a is compared with its uncertainty in each round: its
  standard error and, from three sizes on, the effect of a term c/N². The series in 1/N exists if all runs follow one
  path; their variance then falls as 1/N. Where runs still choose between two words the difference falls exponentially,
  and no limit can be given.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.special import ndtri
from scipy.stats import t as student

from meanfield.toolbox import labelled

GROUPS = 40
RESOLVED = 2.0  # standard errors of error² above 0, below which its logarithm says nothing
# N·variance at the largest size over that at the next, or its inverse. Of 22 published policies at 400 and 1,600 agents
# those whose runs still end at both words have at most 0.43 or 2.1, the others 0.80 to 1.15.
SETTLED = 0.6
LIMIT_AGREES, LIMIT_DIFFERS = "agrees", "differs"
LIMIT_TOO_SMALL, LIMIT_UNKNOWN = "sizes too small", "one size only"


def error_in_n(share: xr.DataArray, theory: np.ndarray, level: float, theory_error: float) -> xr.Dataset:
    """The variables of `compare` from `error` to `limit_verdict`.

    `share` has the dims (n_agents, round, word, run), or others with other names for the middle two, and `theory`
    (round, word). An error smaller than `theory_error` counts as none.
    """
    sizes = share["n_agents"].values
    differences = share.values - theory[..., None]
    squared, uncertainty = np.array([_squared_error(one) for one in differences]).T
    resolved = squared > np.maximum(RESOLVED * uncertainty, theory_error**2)
    error = np.sqrt(np.maximum(squared, 0))
    error_uncertainty = np.full(len(sizes), np.nan)
    error_uncertainty[resolved] = uncertainty[resolved] / (2 * error[resolved])
    slope = half = np.nan
    if resolved.sum() >= 2:  # least squares of log(error) over log(N)
        logs = np.log(sizes[resolved])
        weight = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
        slope = float(weight @ np.log(error[resolved]))
        variance = (weight**2) @ (error_uncertainty[resolved] / error[resolved]) ** 2
        half = ndtri((1 + level) / 2) * float(np.sqrt(variance))
    limit, band = _limit(sizes, differences, level, theory_error)
    compared = tuple(map(str, share.dims[1:3]))
    columns = {
        "error": (("n_agents",), error, f"root mean square error of theory over {compared[0]}s and {compared[1]}s"),
        "error_uncertainty": (("n_agents",), error_uncertainty, "standard error of that error"),
        "error_slope": ((), slope, "slope of log(error) in log(N)"),
        "error_slope_interval": (("bound",), np.array([slope - half, slope + half]), "interval of that slope"),
        "limit": (compared, limit, "simulated minus theory, extrapolated to 1/N = 0"),
        "limit_band": (compared, band, "half-width of its confidence band"),
    }
    verdict = _verdict(sizes, share.values, limit, band)
    return labelled(columns, {"bound": ["low", "high"]}).assign(limit_verdict=verdict)


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


def _limit(
    sizes: np.ndarray, differences: np.ndarray, level: float, theory_error: float
) -> tuple[np.ndarray, np.ndarray]:
    """The difference at 1/N = 0 and the half-width of its band; shape (rounds, words)."""
    runs = differences.shape[-1]
    if len(sizes) < 2:
        unknown = np.full(differences.shape[1:3], np.nan)
        return unknown, unknown
    largest = np.argsort(sizes)[-3:]
    line, parabola = _weights_at_zero(1 / sizes[largest[-2:]]), _weights_at_zero(1 / sizes[largest])
    means = differences[largest].mean(-1)
    limit = np.einsum("n,nrw->rw", line, means[-2:])
    next_order = abs(np.einsum("n,nrw->rw", parabola, means) - limit)
    variance = np.einsum("n,nrw->rw", line**2, differences[largest[-2:]].var(-1, ddof=1) / runs)
    # Fewer degrees of freedom than there are: only one size's
    quantile = student.ppf(1 - (1 - level) / (2 * variance.size), runs - 1)
    return limit, quantile * np.hypot(np.sqrt(variance), theory_error) + next_order


def _verdict(sizes: np.ndarray, share: np.ndarray, limit: np.ndarray, band: np.ndarray) -> str:
    if len(sizes) < 2:
        return LIMIT_UNKNOWN
    smaller, larger = np.argsort(sizes)[-2:]
    spread = [sizes[n] * share[n].var(-1, ddof=1).mean() for n in (smaller, larger)]
    if min(spread) < SETTLED * max(spread):
        return LIMIT_TOO_SMALL
    return LIMIT_AGREES if (abs(limit) <= band).all() else LIMIT_DIFFERS


def _weights_at_zero(points: np.ndarray) -> np.ndarray:
    """Weights of the values at these points in the value at 0 of the polynomial through them."""
    return np.linalg.solve(np.vander(points, increasing=True).T, np.eye(len(points))[0])
