"""Mechanism 1 fitted to the endpoints and accuracies of populations of several sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import norm
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import check_level, check_memory, labelled, stamp, whole_number
from theory.flag_game.mechanism1._bootstrap import Refits
from theory.flag_game.mechanism1._bootstrap import bootstrap as bootstrap_refits
from theory.flag_game.mechanism1._coordinates import Coordinates, interval_of, theta_of
from theory.flag_game.mechanism1._counts import EndpointCounts, Source, read_counts
from theory.flag_game.mechanism1._endpoints import ENDPOINTS
from theory.flag_game.mechanism1._information import KNOWN, Information, describe, differences, information, scale_of
from theory.flag_game.mechanism1._likelihood import log_likelihood
from theory.flag_game.mechanism1._parameters import APPENDIX_E, PARAMETERS, Mechanism1
from theory.flag_game.mechanism1._search import Summit, climb, transferred
from theory.flag_game.mechanism1._simulated import Moments, simulated_moments
from theory.flag_game.mechanism1._surrogate import SLOTS, Surrogate, make_draws
from theory.flag_game.mechanism1._zealots import judgement

LEAST_RUNS = 4000  # as in [002] Appendix E
FEW_RUNS = 1000
RUNS_A_SEED = 3  # simulated; estimates are then 1 + 1/3 times as variable as with infinitely many
CHECK = 5  # times as many runs, with other random numbers, for the likelihood of the outcome
SPREAD = 0.7  # of the starts, in coordinates
CLIMBS = 2
# Agents drawn for each N, for the surrogate of the search and of the refits. Going from 2¹⁴ to 2¹² changes the refits'
# gain by as much as other draws of 2¹⁴ do, a fifth of its Monte-Carlo error with 20 replicates.
FEWER = 2**12
TOGETHER = 6  # steps tried in one call of the simulator, which takes hardly longer than a single step
LARGEST_SEED = 2**61 - 1  # the simulator takes 64 bits, and five seeds are made of one
# Random numbers of the climb, the two Jacobians, the check and the bootstrap are unrelated.
CLIMBED, LEFT, RIGHT, CHECKED, RESAMPLED = range(5)


class Fit(NamedTuple):
    """A fit without labels."""

    coordinates: Coordinates
    point: np.ndarray  # (free,)
    moments: Moments
    information: Information
    refits: Refits


def fit(
    counts: Source,
    *,
    free: Sequence[str] = PARAMETERS,
    start: Mechanism1 = APPENDIX_E,
    starts: int = 3,
    runs: int | None = None,
    bootstrap: int = 20,
    level: float = 0.95,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """The likeliest parameters of Mechanism 1, with standard errors, and a comparison with the paper's parameters.

    Endpoints are multinomial, mean accuracies normal with their measured standard errors. Adam follows the gradient of
    a smooth surrogate in JAX from several starts. Then damped Fisher scoring with the surrogate's derivatives climbs on
    the exact simulator, with the same random numbers for all parameters. Standard errors are Godambe's, since endpoints
    and accuracies come from the same seeds, and include the simulator's own luck. Source: [002] Section 4, Appendix E.

    The published sweep of GPT-4o determines none of the 14 parameters, only some of their combinations. Nor do they
    forecast well. Fitted to five of its six sizes, the mechanism gives the sixth lower log scores than the frequencies
    of the five do for N = 8, 32, 64 and 128, by 0.04 to 0.15 nats a run, and higher ones for N = 4 and 16. Of single
    runs with measured evidence, for N = 8 after N = 4, Appendix E loses 0.4 nats a run (-0.3 to 1.1) against constant
    frequencies, where the biased copying of `theory.flag_game.evidence` gains 0.4 (0.3 to 0.5).

    Parameters
    ----------
    counts
        A CSV file or a table with the columns N, seeds, correct_consensus_count, wrong_consensus_count,
        polarization_count, fragmentation_count and, optionally, final_mean with final_standard_error or with the ends
        final_ci_low and final_ci_high of its 95 % interval; an accuracy that was not measured is NaN. Or a Dataset over
        `n_agents` from `validation.flag_game.simulate` or `validation.flag_game.accuracy`, for one N or for several
        joined by `xr.concat(..., "n_agents")`.
    free
        Names of the parameters to fit; the others stay at the values of `start`.
    start
        Start of the first search; a free parameter must not be at an end of its range.
    starts
        Number of searches on the surrogate; all but the first start at random around `start`. With 0 the climb on the
        simulator starts at `start`.
    runs
        Runs of the simulator at each N. Default: 4,000, or three times the seeds if that is more. Fewer than 1,000 give
        a warning: the list of determined directions is then noisy.
    bootstrap
        Number of parametric bootstrap replicates, 0 for none. Each draws as many seeds from the fit and refits them on
        the corrected surrogate until the climb has converged. They also give `effective_parameters`.
    level
        Level of the intervals.
    seed
        Seed of all random numbers, 0 to 2^61 - 1; the same seed gives the same result.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset with

    - over `parameter`: `estimate`, `free`, `standard_error`, `interval` (bound; symmetric in means, in logits of the
      weights and of alpha, and in logarithms of all else), `identified` (known within a factor of e, or one nat for
      means), and `bootstrap_standard_error` from `bootstrap` refits, NaN if a parameter is not identified: its refits
      would stay at their start, the fit;
    - over `direction`, combinations of the free parameters from the best to the least known: `direction_error`, the
      standard error along it by curvature alone, `loading` (free_parameter), `direction_determined`, `direction_text`.
      The coordinates are ln(w/w_0) of a weight w, with w_0 = 1 - weight_T - weight_R (weight_0 in the text), the logit
      of alpha, means as they are, and logarithms of all else;
    - over `n_agents`: `measured`, `fitted` and `paper` (endpoint), fractions of runs, and `measured_accuracy`,
      `measured_accuracy_error`, `fitted_accuracy`, `paper_accuracy`.

    `Mechanism1.of` returns its parameters. The attrs are

    - `log_likelihood` and `log_likelihood_paper`, from fresh simulations with the same random numbers, and
      `log_likelihood_error`, the Monte-Carlo standard error at the fit;
    - `effective_parameters`, twice the mean gain of bootstrap refits in log-likelihood, and its Monte-Carlo error
      `effective_parameters_error`; a complete and regular likelihood gives the number of free parameters;
    - `aic` and `bic`, with `effective_parameters` as the number of parameters; all NaN with fewer than 2 replicates;
    - `determined` and `not_determined`, the directions in words, and `verdict`, how many parameters and directions the
      data determine.

    Raises
    ------
    InputError
        If the counts or an argument are not as described.

    See Also
    --------
    theory.flag_game.summary : the parameters as a table
    theory.flag_game.evidence.fit : copying among anchored agents, which forecasts runs that it has not seen
    theory.flag_game.mechanism1.compare_models : comparison with simpler models
    validation.flag_game.simulate : runs with the result

    Examples
    --------
    J alone, from the ends of 40 runs; the other parameters stay as in Appendix E.

    >>> from theory.flag_game.mechanism1 import ENDPOINTS, fit
    >>> ends = {f"{name}_count": [count] for name, count in zip(ENDPOINTS, (17, 12, 11, 0))}
    >>> counts = pd.DataFrame({"N": [4], "seeds": [40]} | ends)
    >>> fitted = fit(counts, free=["J"], starts=0, runs=1000, bootstrap=0).sel(parameter="J")
    >>> round(fitted["estimate"].item(), 1), fitted.attrs["determined"]
    (1.9, '1.00 ln J')
    """
    measured = read_counts(counts)
    if not isinstance(start, Mechanism1):
        raise InputError(f"start = {start!r}: expected a Mechanism1, such as dataclasses.replace(APPENDIX_E, J=2.0)")
    coordinates = Coordinates.of(free, start)
    runs = whole_number("runs", max(LEAST_RUNS, RUNS_A_SEED * int(measured.seeds.max())) if runs is None else runs, 100)
    if runs < FEW_RUNS:
        warnings.warn(
            f"runs = {runs}: with fewer than {FEW_RUNS} the curvature is noisy, and so are standard errors and the "
            "list of determined directions",
            stacklevel=2,
        )
    starts, replicates = whole_number("starts", starts), whole_number("bootstrap", bootstrap)
    asked = f"runs = {runs}, starts = {starts}, bootstrap = {replicates}"
    check_memory(8 * len(coordinates.free) * (starts + replicates) + 16 * runs, asked, "fewer of them")
    whole_number("seed", seed, 0, LARGEST_SEED)
    check_level(level)
    total = starts + min(CLIMBS, starts + 1) + 2 + replicates
    with tqdm(total=total, desc="Mechanism 1", disable=not progress, leave=False) as bar:
        fit = likeliest(coordinates, measured, start, starts, runs, replicates, seed, bar.update)
    (paper,) = simulated_moments([APPENDIX_E], measured.sizes, CHECK * runs, 5 * seed + CHECKED)
    result = _label(fit, paper, measured, level)
    options = {"start": str(start), "interactions_per_agent": start.interactions_per_agent, "starts": starts}
    options |= {"runs": runs, "bootstrap": replicates, "level": level, "seed": seed}
    result = stamp(result, "mechanism1_fit", None, free=" ".join(coordinates.free), **options)
    known = result["direction_determined"].values
    number, all_of_them = int(result["identified"].sum()), len(coordinates.free)
    verdict = (
        f"the data determine {number} of {all_of_them} free parameters and {known.sum()} of {all_of_them} combinations "
        "of them"
    )
    return result.assign_attrs(
        judgement(log_likelihood(fit.moments.values, measured), fit.refits.effective_parameters, measured),
        effective_parameters_error=fit.refits.effective_parameters_error,
        log_likelihood_paper=log_likelihood(paper.values, measured),
        log_likelihood_error=_monte_carlo_error(fit.moments, measured, CHECK * runs),
        determined="; ".join(result["direction_text"].values[known]),
        not_determined="; ".join(result["direction_text"].values[~known]),
        verdict=verdict,
    )


def likeliest(
    coordinates: Coordinates,
    measured: EndpointCounts,
    start: Mechanism1,
    starts: int,
    runs: int,
    replicates: int,
    seed: int,
    report: Callable[[int], object],
) -> Fit:
    """The fit without labels; `report` is called with the number of steps done."""
    sizes = measured.sizes
    surrogate, smaller = (
        Surrogate(coordinates, make_draws(sizes, start.interactions_per_agent, seed, slots)) for slots in (SLOTS, FEWER)
    )

    def simulate(points: list[np.ndarray], numbers: int) -> list[Moments]:
        return simulated_moments([coordinates.parameters(point) for point in points], sizes, runs, numbers)

    def climbed(points: list[np.ndarray]) -> list[np.ndarray]:
        return [moments.values for moments in simulate(points, 5 * seed + CLIMBED)]

    def slopes(point: np.ndarray, moments: np.ndarray) -> np.ndarray:
        smooth, jacobian = surrogate.slopes(point)
        return transferred(jacobian, smooth, moments, measured.possible)

    first = coordinates.from_parameters(start)
    rng = np.random.default_rng(seed)
    away = [SPREAD * rng.standard_normal(len(first)) if k else np.zeros(len(first)) for k in range(starts)]
    candidates = [first]
    for move in away:
        candidates.append(smaller.search(first + move, measured))
        report(1)
    values = [log_likelihood(moments, measured) for moments in climbed(candidates)]
    candidates = [candidates[k] for k in np.argsort(-np.array(values), kind="stable")]
    summits: list[Summit] = []
    for point in candidates[:CLIMBS]:
        summits.append(climb(climbed, slopes, point, measured, together=TOGETHER))
        report(1)
    point = max(summits, key=lambda summit: summit.log_likelihood).coordinates
    jacobians = []
    for numbers in (LEFT, RIGHT):
        jacobians.append(differences(simulate, point, 5 * seed + numbers))
        report(1)
    (moments,) = simulated_moments([coordinates.parameters(point)], sizes, CHECK * runs, 5 * seed + CHECKED)
    known = information(moments, *jacobians, measured, runs)
    again = bootstrap_refits(smaller, point, moments, measured, replicates, 5 * seed + RESAMPLED, report)
    return Fit(coordinates, point, moments, known, again)


def _monte_carlo_error(moments: Moments, measured: EndpointCounts, runs: int) -> float:
    """Standard error of the log-likelihood from `runs` simulated runs at each N."""
    misses = np.nan_to_num((measured.accuracy - moments.values[:, 4]) / measured.standard_error**2)
    slope = np.c_[measured.counts / moments.values[:, :4].clip(1 / runs), misses]
    return float(np.sqrt(np.einsum("ki,kij,kj->", slope, moments.covariances, slope) / runs))


def _label(fit: Fit, paper: Moments, measured: EndpointCounts, level: float) -> xr.Dataset:
    found, names = fit.information, fit.coordinates.free
    with np.errstate(divide="ignore"):
        errors = np.maximum(found.eigenvalues, 0.0) ** -0.5
    texts = np.array([describe(row, names, tuple(map(scale_of, names))) for row in found.directions], dtype=str)
    seen = measured.counts / measured.seeds[:, None]
    columns = {
        **_parameter_columns(fit, level),
        "direction_error": (("direction",), errors, "standard error along the direction, by curvature", "1"),
        "direction_determined": (("direction",), errors < KNOWN, "whether the data determine the direction", "1"),
        "direction_text": (("direction",), texts, "the direction in words", "1"),
        "loading": (("direction", "free_parameter"), found.directions, "loading of the coordinate", "1"),
        "measured": (("n_agents", "endpoint"), seen, "fraction of runs, measured", "1"),
        "fitted": (("n_agents", "endpoint"), fit.moments.values[:, :4], "fraction of runs, fitted", "1"),
        "paper": (("n_agents", "endpoint"), paper.values[:, :4], "fraction of runs, Appendix E", "1"),
        "seeds": (("n_agents",), measured.seeds, "runs measured", "1"),
        "measured_accuracy": (("n_agents",), measured.accuracy, "collective mean accuracy, measured", "1"),
        "measured_accuracy_error": (("n_agents",), measured.standard_error, "its standard error", "1"),
        "fitted_accuracy": (("n_agents",), fit.moments.values[:, 4], "collective mean accuracy, fitted", "1"),
        "paper_accuracy": (("n_agents",), paper.values[:, 4], "collective mean accuracy, Appendix E", "1"),
    }
    coords = {
        "parameter": list(PARAMETERS),
        "free_parameter": list(names),
        "bound": ["low", "high"],
        "direction": np.arange(len(names)),
        "endpoint": list(ENDPOINTS),
        "n_agents": measured.n_agents,
    }
    return labelled(columns, coords)


def _parameter_columns(fit: Fit, level: float) -> dict[str, tuple]:
    """Columns over all parameters; NaN for held ones."""
    places = [PARAMETERS.index(name) for name in fit.coordinates.free]
    estimate = theta_of(fit.coordinates.parameters(fit.point))
    slope = fit.coordinates.derivative(fit.point)
    errors = np.sqrt(np.diag(slope @ fit.information.covariance @ slope.T))
    z = float(norm.ppf((1 + level) / 2))
    column = np.full((len(PARAMETERS), 4), np.nan)
    column[places, 0] = errors
    for place, name, error in zip(places, fit.coordinates.free, errors, strict=True):
        column[place, 1:3] = interval_of(name, estimate[place], error, z)
    is_free = np.isin(np.arange(len(PARAMETERS)), places)
    identified = np.zeros(len(PARAMETERS), dtype=bool)
    identified[places] = np.sqrt(np.diag(fit.information.covariance)) < KNOWN
    if len(fit.refits.points) > 1:
        again = np.array([theta_of(fit.coordinates.parameters(point)) for point in fit.refits.points])
        column[:, 3] = np.where(identified, again.std(axis=0, ddof=1), np.nan)
    over, bounds = ("parameter",), ("parameter", "bound")
    return {
        "estimate": (over, estimate, "likeliest value, or the value held", "1"),
        "free": (over, is_free, "whether it was fitted", "1"),
        "standard_error": (over, column[:, 0], "standard error, Godambe", "1"),
        "interval": (bounds, column[:, 1:3], f"{100 * level:g} % interval, Godambe", "1"),
        "identified": (over, identified, "whether it is known within a factor of e, or a nat", "1"),
        "bootstrap_standard_error": (over, column[:, 3], "standard deviation of bootstrap replicates", "1"),
    }
