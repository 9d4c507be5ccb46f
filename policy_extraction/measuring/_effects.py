"""Effects of the factors of an experiment that has every combination of their levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SAME = 1e-6  # relative; solvers agree to less


class Effects(NamedTuple):
    """Effects of the factors on a number.

    Parameters
    ----------
    levels
        For each factor, the mean over all combinations with each of its levels less the mean over all, shape (n,).
    explained
        The part of the variance over all combinations that the effects of each factor have, and last that of the
        interactions, (k + 1,). All are 0 for a number that does not change.
    """

    levels: list[np.ndarray]
    explained: np.ndarray


def effects(grid: np.ndarray) -> Effects:
    """Main effects of the factors on a number (n_1, …, n_k); NaN if it is missing somewhere.

    With every combination once, the effects of different factors are orthogonal: y = mean + Σ_f effect_f + rest, and
    the variance is Σ_f mean(effect_f²) + mean(rest²).
    """
    axes = range(grid.ndim)
    means = [grid.mean(tuple(other for other in axes if other != axis)) for axis in axes]
    levels = [mean - grid.mean() for mean in means]
    spread = grid - grid.mean()
    if abs(spread).max() <= SAME * abs(grid).max():
        return Effects([np.zeros(n) for n in grid.shape], np.zeros(grid.ndim + 1))
    explained = np.array([(level**2).mean() for level in levels]) / (spread**2).mean()
    return Effects(levels, np.append(explained, np.maximum(0.0, 1 - explained.sum())))
