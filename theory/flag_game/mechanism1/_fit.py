"""Mechanism 1 fitted to the endpoints and accuracies of populations of several sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from scipy.stats import norm
from tqdm.auto import tqdm

from meanfield.toolbox import check_level, check_memory, labelled, stamp, whole_number
from theory.flag_game.mechanism1._agents import simulated_moments
from theory.flag_game.mechanism1._coordinates import Coordinates, describe, interval_of
from theory.flag_game.mechanism1._endpoints import (
    ENDPOINTS,
    EndpointCounts,
    Moments,
    Source,
    endpoints_of_votes,
    read_counts,
)
from theory.flag_game.mechanism1._likelihood import KNOWN, Information, climb, information, judgement, log_likelihood
from theory.flag_game.mechanism1._parameters import APPENDIX_E, PARAMETERS, Mechanism1
from theory.flag_game.mechanism1._surrogate import SLOTS, Surrogate, corrected, correction, make_draws

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
REFIT_STEPS = 40  # at most; with 4, spreads come out up to 4 times too small
STEP = 0.15  # of coordinates, over which simulated differences are taken
# Random numbers of the climb, the two Jacobians, the check and the bootstrap are unrelated.
CLIMBED, LEFT, RIGHT, CHECKED, RESAMPLED = range(5)


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
        As for `theory.flag_game.mechanism1.read_counts`: a CSV file, a table, or a Dataset over `n_agents`.
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
    theory.flag_game.mechanism1.fit_copying : a simpler model of the same data, with the same criteria
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
    measured, coordinates = read_counts(counts), Coordinates.of(free, start)
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
        surrogate, point, moments = likeliest(coordinates, measured, starts, runs, seed, bar.update)
        jacobians = []
        for numbers in (LEFT, RIGHT):
            jacobians.append(differences(coordinates, point, measured.sizes, runs, 5 * seed + numbers))
            bar.update(1)
        (paper,) = simulated_moments([APPENDIX_E], measured.sizes, CHECK * runs, 5 * seed + CHECKED)
        known = information(moments, *jacobians, measured, runs)
        refits, gains = refitted(surrogate, point, moments, measured, replicates, 5 * seed + RESAMPLED, bar.update)

    with np.errstate(divide="ignore"):
        errors = np.maximum(known.eigenvalues, 0.0) ** -0.5
    determined = errors < KNOWN
    texts = np.array([describe(row, coordinates.free) for row in known.directions], dtype=str)
    by_size = ("n_agents",)
    columns = _parameter_columns(coordinates, point, known, refits, level) | {
        "direction_error": ("direction", errors, "standard error along the direction, by curvature"),
        "direction_determined": ("direction", determined, "whether the data determine the direction"),
        "direction_text": ("direction", texts, "the direction in words"),
        "loading": (("direction", "free_parameter"), known.directions, "loading of the coordinate"),
        "seeds": (by_size, measured.seeds, "runs measured"),
        "measured_accuracy_error": (by_size, measured.standard_error, "its standard error"),
    }
    seen = np.c_[measured.counts / measured.seeds[:, None], measured.accuracy]
    sources = {"measured": ("measured", seen), "fitted": ("fitted", moments.values)}
    for name, (text, values) in (sources | {"paper": ("Appendix E", paper.values)}).items():
        columns[name] = (("n_agents", "endpoint"), values[:, :4], f"fraction of runs, {text}")
        columns[f"{name}_accuracy"] = (by_size, values[:, 4], f"collective mean accuracy, {text}")
    coords = {"parameter": list(PARAMETERS), "free_parameter": list(coordinates.free), "bound": ["low", "high"]}
    coords |= {"direction": np.arange(len(errors)), "endpoint": list(ENDPOINTS), "n_agents": measured.n_agents}
    options = {"start": str(start), "interactions_per_agent": start.interactions_per_agent, "starts": starts}
    options |= {"runs": runs, "bootstrap": replicates, "level": level, "seed": seed}
    result = stamp(labelled(columns, coords), "mechanism1_fit", None, free=" ".join(coordinates.free), **options)
    # A fit flatters itself by half the effective parameters.
    effective, luck = (2 * gains.mean(), 2 * gains.std(ddof=1) / replicates**0.5) if replicates > 1 else [np.nan] * 2
    return result.assign_attrs(
        judgement(log_likelihood(moments.values, measured), float(effective), measured),
        effective_parameters_error=float(luck),
        log_likelihood_paper=log_likelihood(paper.values, measured),
        log_likelihood_error=_monte_carlo_error(moments, measured, CHECK * runs),
        determined="; ".join(texts[determined]),
        not_determined="; ".join(texts[~determined]),
        verdict=f"the data determine {int(result['identified'].sum())} of {len(errors)} free parameters and "
        f"{determined.sum()} of {len(errors)} combinations of them",
    )


def likeliest(
    coordinates: Coordinates,
    measured: EndpointCounts,
    starts: int,
    runs: int,
    seed: int,
    report: Callable[[int], object] = lambda done: None,
) -> tuple[Surrogate, np.ndarray, Moments]:
    """A surrogate of fewer draws, the likeliest point, and its simulated moments; `report` counts the steps done."""
    rounds = coordinates.held.interactions_per_agent
    surrogate, smaller = (Surrogate(coordinates, make_draws(measured.sizes, rounds, seed, n)) for n in (SLOTS, FEWER))

    def climbed(points: list[np.ndarray]) -> list[np.ndarray]:
        each = [coordinates.parameters(point) for point in points]
        return [moments.values for moments in simulated_moments(each, measured.sizes, runs, 5 * seed + CLIMBED)]

    first = coordinates.from_parameters(coordinates.held)
    rng = np.random.default_rng(seed)
    candidates = [first]
    for k in range(starts):
        candidates.append(smaller.search(first + (SPREAD * rng.standard_normal(len(first)) if k else 0.0), measured))
        report(1)
    values = [log_likelihood(moments, measured) for moments in climbed(candidates)]
    summits = []
    for k in np.argsort(-np.array(values), kind="stable")[:CLIMBS]:
        summits.append(climb(climbed, surrogate.carried(measured), candidates[k], measured, together=TOGETHER))
        report(1)
    point = max(summits, key=lambda summit: summit.log_likelihood).coordinates
    agents = [coordinates.parameters(point)]
    return smaller, point, simulated_moments(agents, measured.sizes, CHECK * runs, 5 * seed + CHECKED)[0]


def differences(
    coordinates: Coordinates, point: np.ndarray, sizes: tuple[int, ...], runs: int, seed: int
) -> np.ndarray:
    """The Jacobian (K, 5, P) of simulated moments by central differences with common random numbers."""
    moves = STEP * np.eye(len(point))
    points = [coordinates.parameters(at) for at in (*(point + moves), *(point - moves))]
    values = np.stack([moments.values for moments in simulated_moments(points, sizes, runs, seed)], axis=-1)
    return (values[..., : len(point)] - values[..., len(point) :]) / (2 * STEP)


def refitted(
    surrogate: Surrogate,
    point: np.ndarray,
    moments: Moments,
    measured: EndpointCounts,
    replicates: int,
    seed: int,
    report: Callable[[int], object] = lambda done: None,
) -> tuple[np.ndarray, np.ndarray]:
    """Points (replicates, free) likeliest for data drawn from the `moments`, and what they gain on `point` there.

    Refits start at `point` and use the surrogate, corrected to agree with the simulator there. Their damping holds
    directions which the data do not determine, so the spread there is too small: see the curvature instead.
    """
    by = correction(surrogate.moments(point), moments.values, measured.possible)

    def moments_at(points: list[np.ndarray]) -> list[np.ndarray]:
        return [corrected(surrogate.moments(at), *by) for at in points]

    (drawn_at,) = moments_at([point])
    found, gains = np.empty((replicates, len(point))), np.empty(replicates)
    for b in range(replicates):
        # One generator each: the first replicates are the same however many follow.
        again = measured_again(moments.laws, measured, np.random.default_rng([seed, b]))
        summit = climb(moments_at, surrogate.carried(measured), point, again, REFIT_STEPS)
        found[b], gains[b] = summit.coordinates, summit.log_likelihood - log_likelihood(drawn_at, again)
        report(1)
    return found, gains


def measured_again(laws: tuple[np.ndarray, ...], measured: EndpointCounts, rng: np.random.Generator) -> EndpointCounts:
    """Counts of as many seeds at each N, drawn from distributions of votes; accuracies keep their standard errors."""
    counts, accuracy = np.empty_like(measured.counts), np.empty_like(measured.accuracy)
    for k, (law, seeds) in enumerate(zip(laws, measured.seeds, strict=True)):
        drawn = rng.multinomial(seeds, law)
        counts[k] = np.bincount(endpoints_of_votes(len(law) - 1), weights=drawn, minlength=len(ENDPOINTS))
        accuracy[k] = drawn @ np.arange(len(law)) / (seeds * (len(law) - 1))
    return measured._replace(counts=counts, accuracy=np.where(np.isfinite(measured.accuracy), accuracy, np.nan))


def _monte_carlo_error(moments: Moments, measured: EndpointCounts, runs: int) -> float:
    """Standard error of the log-likelihood from `runs` simulated runs at each N."""
    misses = np.nan_to_num((measured.accuracy - moments.values[:, 4]) / measured.standard_error**2)
    slope = np.c_[measured.counts / moments.values[:, :4].clip(1 / runs), misses]
    return float(np.sqrt(np.einsum("ki,kij,kj->", slope, moments.covariances, slope) / runs))


def _parameter_columns(
    coordinates: Coordinates, point: np.ndarray, known: Information, refits: np.ndarray, level: float
) -> dict[str, tuple]:
    """Columns over all parameters; NaN for held ones."""
    is_free, z = np.isin(PARAMETERS, coordinates.free), float(norm.ppf((1 + level) / 2))
    estimate, slope = coordinates.parameters(point).theta, coordinates.derivative(point)
    errors = np.sqrt(np.diag(slope @ known.covariance @ slope.T))
    ends = [interval_of(*one, z) for one in zip(coordinates.free, estimate[is_free], errors, strict=True)]
    again = np.full(len(point), np.nan)
    if len(refits) > 1:
        again = np.std([coordinates.parameters(one).theta[is_free] for one in refits], axis=0, ddof=1)
    identified = np.zeros(len(PARAMETERS), dtype=bool)
    identified[is_free] = np.sqrt(np.diag(known.covariance)) < KNOWN
    column = np.full((len(PARAMETERS), 4), np.nan)
    column[is_free] = np.c_[errors, ends, again]
    again = np.where(identified, column[:, 3], np.nan)
    return {
        "estimate": ("parameter", estimate, "likeliest value, or the value held"),
        "free": ("parameter", is_free, "whether it was fitted"),
        "standard_error": ("parameter", column[:, 0], "standard error, Godambe"),
        "interval": (("parameter", "bound"), column[:, 1:3], f"{100 * level:g} % interval, Godambe"),
        "identified": ("parameter", identified, "whether it is known within a factor of e, or a nat"),
        "bootstrap_standard_error": ("parameter", again, "standard deviation of bootstrap replicates"),
    }
