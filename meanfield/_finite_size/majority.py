"""Which word is ahead at a random moment, and for how long, where a population of two words has one attractor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.special import ndtr, owens_t

from meanfield._finite_size.majority_path import MajorityPath, majority_path
from meanfield._finite_size.word_share_correlation import Correlation, word_share_correlation
from meanfield._population.drift import TIME_PER_ROUND
from meanfield._population.population import Population

NODES = 2000  # of the integral over time
SMALLEST = 1e-300  # probability


class Majority(NamedTuple):
    """The majority word, its path to equal shares, and how long fluctuations last."""

    word: int
    path: MajorityPath
    correlation: Correlation


def majority(population: Population, point: xr.Dataset, *, with_correction: bool) -> Majority | str:
    """The law of the only attractor, `point`, or why there is none."""
    mixture, decay = population.mixture, -point["eigenvalue"].item()
    x = point["composition"].values.reshape(mixture.q.shape[:2]) * mixture.share[:, None]
    word = int(point["word_share"].values.argmax())
    correlation = word_share_correlation(mixture, x, word, decay)
    if isinstance(correlation, str):
        return correlation
    path = majority_path(mixture, x, word, decay, correlation.variance, with_correction=with_correction)
    if isinstance(path, str):
        return path
    reserve = _never_left(population, point["word_share"].values)
    return Majority(word, path._replace(reason=path.reason + reserve), correlation)


def _never_left(population: Population, share: np.ndarray) -> str:
    """A reservation for conventions, beside the attractor, that agents never leave once all of them agree."""
    space, (q, present, committed) = population.space, population.mixture
    states = [space.consensus_state(a) for a in range(len(share))]
    stays = (q[present > 0][:, states, range(len(share))] == 1).all(0) & (committed == committed.sum())
    kept = [word for word, one, x in zip(population.words, stays, share, strict=True) if one and x < 1]
    return "".join(f"; it holds until all agree on {word!r}, which they never leave" for word in kept)


def memory_rounds(z: np.ndarray, correlation: Correlation) -> np.ndarray:
    """Rounds in which the side is forgotten, for each z = κ√N - c/√N; NaN where the minority is never ahead."""
    found = np.full(len(z), np.nan)
    root = np.linspace(0.0, np.sqrt(correlation.times[-1]), NODES)  # s falls like a root of time at first
    rho = correlation.at(root**2)
    for k in np.flatnonzero(ndtr(-z) > SMALLEST):
        excess = (still_ahead(z[[k]], rho)[0] - ndtr(-z[k])) / ndtr(z[k])
        found[k] = np.trapezoid(2 * root * excess, root) / TIME_PER_ROUND
    return found


def still_ahead(z: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """The probability that a minority which is ahead is ahead later, for each z and correlation."""
    rho, behind = np.clip(correlation, -1.0, 1.0), ndtr(-z)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        still = 1 - 2 * owens_t(z[:, None], np.sqrt((1 - rho) / (1 + rho))) / behind
    return np.where(behind > SMALLEST, np.clip(still, 0.0, 1.0), np.nan)
