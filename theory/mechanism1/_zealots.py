"""The copying process with zealots: what long runs of Mechanism 1 become where agents either copy or never change.

With α = 1 and β → ∞ an agent with |h| < J says and holds what it heard last, and one with |h| > J always its own side.
Let N agents copy each other and z_T + z_R zealots. The number k who hold the truth goes up at the rate (N - k)(k + z_T)
and down at k (N - k + z_R), up to a common factor. This one-step master equation is closed; detailed balance gives

    P(k) = C(N, k) B(k + z_T, N - k + z_R)/B(z_T, z_R),

the beta-binomial law to which long runs come, also for z_T and z_R that are no whole numbers. Source: Mobilia, Petersen
and Redner 2007, J. Stat. Mech. P08029.

As a model of measured endpoints it is not Mechanism 1 in that limit but a simpler one beside it: its runs are
infinitely long, its zealots don't vote, and N counts only those who copy. E k relaxes in N (N + z - 1)/z interactions
for z = z_T + z_R: with the 3.1 zealots that a fit to GPT-4o has at N = 128 about 41 N; Mechanism 1 plays 16 N.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import betabinom

from meanfield import InputError, stamp
from theory.mechanism1._counts import EndpointCounts, Source, read_counts
from theory.mechanism1._endpoints import ENDPOINTS
from theory.mechanism1._information import information
from theory.mechanism1._likelihood import log_likelihood
from theory.mechanism1._search import Summit, climb
from theory.mechanism1._simulated import Moments, moments_of_laws

STEP = 1e-5
STARTS = ((0.0, 0.0, 0.0), (-1.0, -1.0, 0.0), (-2.0, -2.0, 0.5), (1.0, 0.0, -0.5))
NAMES = ("zealots_T", "zealots_R", "growth")


class CopyingFit(NamedTuple):
    """ln z_T and ln z_R at N = 1, the exponent κ, and what the data say of them."""

    point: np.ndarray
    moments: Moments
    log_likelihood: float
    effective_parameters: float
    covariance: np.ndarray


def copying_law(n_agents: int, zealots_T: float, zealots_R: float) -> np.ndarray:
    """Stationary law of the number, 0 to N, of copying agents who hold the truth; shape (N + 1,).

    Parameters
    ----------
    n_agents
        N ≥ 1 agents who copy a random other agent or zealot.
    zealots_T, zealots_R
        Zealots of the truth and of the rival, above 0, whole numbers or not.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    if n_agents < 1 or not (0 < zealots_T < np.inf and 0 < zealots_R < np.inf):
        raise InputError(f"n_agents, zealots = {n_agents}, {zealots_T}, {zealots_R}: expected at least 1, and above 0")
    return betabinom.pmf(np.arange(n_agents + 1), n_agents, zealots_T, zealots_R)


def fit_copying(counts: Source) -> xr.Dataset:
    """The copying process with z_T N^κ and z_R N^κ zealots, who don't vote, after infinitely long runs.

    κ = 0 is a fixed number of zealots, κ = 1 a fixed share.

    Returns
    -------
    Dataset over `parameter` (zealots_T, zealots_R, growth) with `estimate` and `standard_error`, and over `n_agents`
    `fitted` (endpoint) and `fitted_accuracy`; attrs hold log_likelihood, effective_parameters, aic and bic.

    Raises
    ------
    InputError
        If the counts are not as `fit_mechanism1` takes them.
    """
    measured = read_counts(counts)
    fit = likeliest_copying(measured)
    estimate = np.r_[np.exp(fit.point[:2]), fit.point[2]]
    errors = np.sqrt(np.diag(fit.covariance)) * np.r_[estimate[:2], 1.0]
    columns = {
        "estimate": (("parameter",), estimate, "likeliest value"),
        "standard_error": (("parameter",), errors, "standard error, Godambe"),
        "fitted": (("n_agents", "endpoint"), fit.moments.values[:, :4], "fraction of runs, fitted"),
        "fitted_accuracy": (("n_agents",), fit.moments.values[:, 4], "collective mean accuracy, fitted"),
    }
    result = xr.Dataset(
        {name: (dims, values, {"long_name": text, "units": "1"}) for name, (dims, values, text) in columns.items()},
        {"parameter": list(NAMES), "endpoint": list(ENDPOINTS), "n_agents": measured.n_agents},
    )
    judged = judgement(fit.log_likelihood, fit.effective_parameters, measured)
    return stamp(result, "copying_fit").assign_attrs(judged)


def likeliest_copying(measured: EndpointCounts) -> CopyingFit:
    """By Fisher scoring on the exact law, from several starts."""

    def exact(point: np.ndarray) -> Moments:
        zealots = [np.exp(np.clip(point[:2] + point[2] * np.log(n), -12, 12)) for n in measured.sizes]
        return moments_of_laws([copying_law(n, *map(float, z)) for n, z in zip(measured.sizes, zealots, strict=True)])

    def slopes(point: np.ndarray, _: np.ndarray) -> np.ndarray:
        moves = STEP * np.eye(3)
        return np.stack([(exact(point + m).values - exact(point - m).values) / (2 * STEP) for m in moves], axis=-1)

    summits = [climb(lambda p: exact(p).values, slopes, np.array(start), measured) for start in STARTS]
    best: Summit = max(summits, key=lambda summit: summit.log_likelihood)
    moments, jacobian = exact(best.coordinates), slopes(best.coordinates, best.moments)
    found = information(moments, jacobian, jacobian, measured, np.inf)
    value = log_likelihood(moments.values, measured)
    return CopyingFit(best.coordinates, moments, value, found.effective_parameters, found.covariance)


def judgement(value: float, effective: float, measured: EndpointCounts) -> dict[str, float]:
    """Information criteria of a composite likelihood. Sources: Varin and Vidoni 2005; Gao and Song 2010, JASA 105."""
    return {
        "log_likelihood": value,
        "effective_parameters": effective,
        "aic": 2 * effective - 2 * value,
        "bic": float(np.log(measured.seeds.sum()) * effective - 2 * value),
    }
