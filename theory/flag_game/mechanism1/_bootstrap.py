"""Parametric bootstrap: fits to data drawn from the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from theory.flag_game.mechanism1._counts import EndpointCounts
from theory.flag_game.mechanism1._endpoints import ENDPOINTS, endpoints_of_votes
from theory.flag_game.mechanism1._likelihood import log_likelihood
from theory.flag_game.mechanism1._search import climb, corrected, transferred
from theory.flag_game.mechanism1._simulated import Moments
from theory.flag_game.mechanism1._surrogate import LEAST_PROBABILITY, Surrogate

STEPS = 40  # at most; with 4, spreads come out up to 4 times too small


class Refits(NamedTuple):
    """Refits of data drawn from a fit."""

    points: np.ndarray  # (replicates, free)
    gains: np.ndarray  # (replicates,): in log-likelihood of the drawn data over the parameters that drew them

    @property
    def effective_parameters(self) -> float:
        """Twice the mean gain, by which a fit flatters itself; NaN with fewer than 2 refits."""
        return 2 * float(self.gains.mean()) if len(self.gains) > 1 else np.nan

    @property
    def effective_parameters_error(self) -> float:
        return 2 * float(self.gains.std(ddof=1)) / len(self.gains) ** 0.5 if len(self.gains) > 1 else np.nan


def measured_again(laws: tuple[np.ndarray, ...], measured: EndpointCounts, rng: np.random.Generator) -> EndpointCounts:
    """Counts of as many seeds at each N, drawn from distributions of votes; accuracies keep their standard errors."""
    counts, accuracy = np.empty_like(measured.counts), np.empty_like(measured.accuracy)
    for k, (law, seeds) in enumerate(zip(laws, measured.seeds, strict=True)):
        drawn = rng.multinomial(seeds, law)
        counts[k] = np.bincount(endpoints_of_votes(len(law) - 1), weights=drawn, minlength=len(ENDPOINTS))
        accuracy[k] = drawn @ np.arange(len(law)) / (seeds * (len(law) - 1))
    accuracy = np.where(np.isfinite(measured.accuracy), accuracy, np.nan)
    return measured._replace(counts=counts, accuracy=accuracy)


def bootstrap(
    surrogate: Surrogate,
    point: np.ndarray,
    moments: Moments,
    measured: EndpointCounts,
    replicates: int,
    seed: int,
    report: Callable[[int], object],
) -> Refits:
    """Refits that start at `point`, where the simulator has the `moments`.

    Refits use the surrogate, corrected to agree with the simulator at `point`. Their damping holds directions which the
    data do not determine, so the spread there is too small: see the curvature instead.
    """
    smooth = surrogate.moments(point)
    ratio = np.where(measured.possible, moments.values[:, :4] / np.maximum(smooth[:, :4], LEAST_PROBABILITY), 0.0)
    offset = moments.values[:, 4] - smooth[:, 4]

    def moments_at(points: list[np.ndarray]) -> list[np.ndarray]:
        return [corrected(surrogate.moments(at), ratio, offset) for at in points]

    def slopes_at(at: np.ndarray, values: np.ndarray) -> np.ndarray:
        smooth, jacobian = surrogate.slopes(at)
        return transferred(jacobian, smooth, values, measured.possible)

    (drawn_at,) = moments_at([point])

    found, gains = np.empty((replicates, len(point))), np.empty(replicates)
    for b in range(replicates):
        # One generator each: the first replicates are the same however many follow.
        again = measured_again(moments.laws, measured, np.random.default_rng([seed, b]))
        summit = climb(moments_at, slopes_at, point, again, STEPS)
        found[b], gains[b] = summit.coordinates, summit.log_likelihood - log_likelihood(drawn_at, again)
        report(1)
    return Refits(found, gains)
