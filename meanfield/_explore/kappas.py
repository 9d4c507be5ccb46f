"""κ over the temperatures of the page, which takes too long to compute in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from scipy.special import expit

from meanfield._finite_size.law_path import signed_kappa
from meanfield._fixed_points.points import all_roots
from meanfield._population.policy import make_policy
from meanfield._population.population import as_population
from meanfield._population.single_policy import words_of
from meanfield.toolbox._errors import ConvergenceError

STEPS, OCTAVE = 64, 32  # of the temperature slider, to either side, and in which the temperature doubles
APART, SEEN = 16, 8  # steps between the first κ; a range of steps with two attractors that is always noticed
CLOSE, SMALL = 4e-3, 1e-2  # relative error of interpolation half way between known κ, of those above SMALL

Kappa = float | str | None  # of two attractors, or why there is none; None without two attractors and one saddle


def kappas(policy: xr.Dataset, temperature: float, log_odds: Float[np.ndarray, "orders states"]) -> list[Kappa]:
    """κ at each step of the slider, above 0 if the attractor with more of the first word is strong.

    At the measured temperature it is exact. Other κ are cubic interpolants between temperatures where κ is known, which
    are as close as it takes for CLOSE. An infinite κ is a string, as JSON has no such number.
    """

    def at(step: int) -> Kappa:
        return _kappa(_at_step(policy, temperature, log_odds, step) if step else policy)

    known = {step: at(step) for step in range(-STEPS, STEPS + 1, APART)}
    curve = _curve(known)
    pending = [*pairwise(known)]
    while pending:
        halves = []
        for left, right in pending:
            numbers = isinstance(known[left], float) and isinstance(known[right], float)
            if right - left == 1 or (not numbers and known[left] == known[right] and right - left <= SEEN):
                continue
            middle = (left + right) // 2
            now = known[middle] = at(middle)
            if not (numbers and isinstance(now, float) and abs(curve(middle) - now) < CLOSE * max(abs(now), SMALL)):
                halves += [(left, middle), (middle, right)]
        pending, curve = halves, _curve(known)
    return [*_filled(dict(sorted(known.items())), curve)]


def _kappa(policy: xr.Dataset) -> Kappa:
    try:
        ((roots, _),) = all_roots([as_population(policy).mixture], [""])
        if len(roots) != 3:  # which is told sooner than their stability
            return None
        kappa, reason = signed_kappa(policy)
    except ConvergenceError:
        return None
    return float(kappa) if not reason else str(kappa).replace("inf", "Infinity") if np.isinf(kappa) else reason


def _at_step(policy: xr.Dataset, temperature: float, log_odds: np.ndarray, step: int) -> xr.Dataset:
    """The policy at a step, as `atTemperature` of the page has it."""
    if not len(log_odds):
        q = policy["q"].transpose("state", "word").values
        with np.errstate(divide="ignore"):
            log_odds = np.log(q[None, :, 0]) - np.log(q[None, :, 1])
    odds = log_odds / (temperature * 2 ** (step / OCTAVE))
    return make_policy(expit(np.stack([odds, -odds], axis=-1)).mean(0), words_of(policy))


def _curve(known: dict[int, Kappa]) -> Callable[[Any], Any]:
    numbers = sorted((step, kappa) for step, kappa in known.items() if isinstance(kappa, float))
    return CubicSpline(*zip(*numbers, strict=True)) if len(numbers) > 1 else lambda steps: np.nan


def _filled(known: dict[int, Kappa], curve: Callable[[Any], Any]) -> Iterator[Kappa]:
    for left, right in pairwise(known):
        yield known[left]
        between = range(left + 1, right)
        yield from (
            np.round(curve(between), 8).tolist() if isinstance(known[left], float) else len(between) * [known[left]]
        )
    yield known[STEPS]
