"""Parametric bootstrap: what the fit would have found, had the same populations been run again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory.mechanism1._coordinates import Coordinates
from theory.mechanism1._counts import EndpointCounts
from theory.mechanism1._endpoints import ENDPOINTS, endpoints_of_votes
from theory.mechanism1._search import climb, corrected, surrogate_jacobian, surrogate_values, transferred
from theory.mechanism1._simulated import Moments
from theory.mechanism1._surrogate import LEAST_PROBABILITY, Draws

STEPS = 4


def measured_again(laws: tuple[np.ndarray, ...], measured: EndpointCounts, rng: np.random.Generator) -> EndpointCounts:
    """As many seeds at each N, drawn from laws of the number of votes; accuracies keep their standard errors."""
    counts, accuracy = np.empty_like(measured.counts), np.empty_like(measured.accuracy)
    for k, (law, seeds) in enumerate(zip(laws, measured.seeds, strict=True)):
        drawn = rng.multinomial(seeds, law)
        counts[k] = np.bincount(endpoints_of_votes(len(law) - 1), weights=drawn, minlength=len(ENDPOINTS))
        accuracy[k] = drawn @ np.arange(len(law)) / (seeds * (len(law) - 1))
    accuracy = np.where(np.isfinite(measured.accuracy), accuracy, np.nan)
    return measured._replace(counts=counts, accuracy=accuracy)


def bootstrap(
    coordinates: Coordinates,
    point: np.ndarray,
    moments: Moments,
    draws: Draws,
    measured: EndpointCounts,
    replicates: int,
    seed: int,
    report: Callable[[int], object],
) -> np.ndarray:
    """Coordinates (replicates, free) of refits, from `point`, whose moments on the simulator are `moments`.

    Refits use the surrogate, corrected so that at `point` it agrees with the simulator. Their damping holds what the
    data don't determine, so that there the spread is too small: see the curvature.
    """
    evaluate, differentiate = (make(coordinates) for make in (surrogate_values, surrogate_jacobian))
    surrogate = evaluate(point, draws)
    ratio = np.where(measured.possible, moments.values[:, :4] / np.maximum(surrogate[:, :4], LEAST_PROBABILITY), 0.0)
    offset = moments.values[:, 4] - surrogate[:, 4]

    def moments_at(at: np.ndarray) -> np.ndarray:
        return corrected(evaluate(at, draws), ratio, offset)

    def slopes_at(at: np.ndarray, values: np.ndarray) -> np.ndarray:
        surrogate, jacobian = differentiate(at, draws)
        return transferred(jacobian, surrogate, values, measured.possible)

    rng = np.random.default_rng([seed, replicates])
    found = np.empty((replicates, len(point)))
    for b in range(replicates):
        again = measured_again(moments.laws, measured, rng)
        found[b] = climb(moments_at, slopes_at, point, again, STEPS).coordinates
        report(1)
    return found
