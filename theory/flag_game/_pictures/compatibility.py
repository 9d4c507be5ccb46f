"""Crop compatibility: the posterior of an ideal observer for each country."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import real_number
from theory.flag_game._pictures.crops import CANVAS, CROP, SIZES, Layout, Pictures, check_layout, pictures
from theory.flag_game._pictures.drawing import SCALE
from theory.flag_game._pictures.flags import COLOURS, FLAGS, Flag, check_pool, flag_of

Counting = Literal["positions", "countries"]


def crop_compatibility(
    country: str,
    *,
    flags: Sequence[Flag] = FLAGS,
    noise: float = 0.0,
    counting: Counting = "positions",
    canvas: tuple[int, int] = CANVAS,
    crop: tuple[int, int] = CROP,
    scale: int = SCALE,
) -> xr.DataArray:
    """Crop compatibility p_i(k) of an ideal observer, for every crop i of a country's flag.

    p_i(k) is the posterior probability of country k. The observer knows the pool and sees the crop, but not its
    position. The likelihood of country k is

        L_i(k) = mean over j of (1 - ε)^(n - d(i, j)) (ε / (C - 1))^d(i, j),

    for n cells in a crop and C colours; d(i, j) is the number of cells in which crop i differs from the crop at
    position j of k's flag. Each cell is misread with probability ε, as any other colour with equal probability; a cell
    that differs in a part of its pixels adds this part to d. p_i = L_i / Σ_k L_i has equal priors for countries and
    positions. At ε = 0 it counts the positions at which k's flag shows exactly this picture, and its largest entry
    bounds the accuracy of any guess from the crop. Source: [002] Sec. 4, which only says that p_i(k) is large if k is
    compatible with the crop; likelihood and noise are ours.

    Parameters
    ----------
    country
        The country of the hidden flag.
    flags
        The pool: the flags that the observer considers possible.
    noise
        ε, 0 ≤ ε < 1. Without noise p is exactly 0 for countries whose flags never show the crop; with noise it is small
        but positive, and fields are finite.
    counting
        'positions' is the posterior. 'countries' takes the largest term over j instead of the mean: at ε = 0 it is
        uniform over the countries whose flags contain the picture. Only the posterior makes Peru the strongest rival of
        France, as [002] has it; under 'countries' Italy ties with Peru.
    canvas, crop
        (width, height) in cells.
    scale
        Pixels along a side of a cell; at 1 flags are drawn cell by cell.

    Returns
    -------
    DataArray `compatibility` (crop, country); rows sum to 1. Coordinates over `crop`: `left` and `top`, in cells, and
    `picture`, equal for crops with the same pixels.

    Raises
    ------
    InputError
        If the country is not in the pool, the crop is larger than the canvas, or an argument is out of range.

    See Also
    --------
    measured_compatibility : from answers instead
    crop_fields : the fields that follow from it

    Examples
    --------
    A blue crop of France's flag is more likely to be Ukraine's, which has more of them, and can't be Italy's.

    >>> from theory.flag_game import crop_compatibility
    >>> p = crop_compatibility("France", scale=1)
    >>> p.isel(crop=0).sel(country=["France", "Ukraine", "Italy"]).values.round(2)
    array([0.09, 0.21, 0.  ])
    """
    pool = check_pool(flags)
    layout = check_layout(canvas, crop, scale)
    hidden = pool.index(flag_of(country, pool))
    real_number("noise", noise, least=0, below=1)
    if counting not in get_args(Counting):
        raise InputError(f"counting = {counting!r}: expected {' or '.join(map(repr, get_args(Counting)))}")
    seen = pictures(pool, layout)
    own, picture = np.unique(seen.number[hidden], return_inverse=True)
    p = _compatibility(seen, own, float(noise), counting)[picture]
    attrs = {"hidden": country, "noise": float(noise), "counting": counting, "observer": "ideal"}
    return _labelled(p, [flag.country for flag in pool], layout, picture, attrs)


def _compatibility(seen: Pictures, own: np.ndarray, noise: float, counting: Counting) -> np.ndarray:
    """p, shape (own pictures, countries). Likelihoods are relative to the likelihood of a crop read without error."""
    odds = noise / (1 - noise) / (len(COLOURS) - 1)
    weight = odds ** _distances(seen, own)  # 0 ** 0 is 1: without noise equal pictures only
    if counting == "positions":
        likelihood = weight @ seen.occurrences
    else:
        likelihood = np.stack([weight[:, shown > 0].max(axis=1) for shown in seen.occurrences.T], axis=1)
    return likelihood / likelihood.sum(axis=1, keepdims=True)


def _distances(seen: Pictures, some: np.ndarray) -> np.ndarray:
    """The number of cells in which each of some pictures differs from each of all."""
    total = np.zeros((len(some), len(seen.cells)))
    for kinds, all_kinds in zip(seen.cells[some].T, seen.cells.T, strict=True):
        total += seen.distance[np.ix_(kinds, all_kinds)]
    return total


def _labelled(
    p: np.ndarray, countries: list[str], layout: Layout, picture: np.ndarray, attrs: dict[str, str | float]
) -> xr.DataArray:
    left, top = layout.positions.T
    sizes = dict(zip(SIZES, (*layout.canvas, *layout.crop), strict=True))
    return xr.DataArray(
        p,
        dims=("crop", "country"),
        coords={
            "crop": np.arange(len(p)),
            "country": countries,
            "left": ("crop", left, {"units": "cells"}),
            "top": ("crop", top, {"units": "cells"}),
            "picture": ("crop", picture, {"long_name": "equal for crops with the same pixels"}),
        },
        name="compatibility",
        attrs={"long_name": "crop compatibility", "units": "1", "scale": layout.scale} | sizes | attrs,
    )
