"""Crop compatibility: the posterior of an ideal observer for each country."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import real_number
from theory.flag_game._pictures.drawing import CANVAS, CROP, SCALE, SIZES, check_layout, draw
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
    country, flags
        The country of the hidden flag, and the pool: the flags that the observer considers possible.
    noise
        ε, 0 ≤ ε < 1. Without noise p is exactly 0 for countries whose flags never show the crop; with noise it is small
        but positive, and fields are finite.
    counting
        'positions' is the posterior. 'countries' takes the largest term over j instead of the mean: at ε = 0 it is
        uniform over the countries whose flags contain the picture. Only the posterior makes Peru the strongest rival of
        France, as [002] has it; under 'countries' Italy ties with Peru.
    canvas, crop, scale
        (width, height) in cells, and pixels along a side of a cell; at 1 flags are drawn cell by cell.

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

    >>> p = theory.flag_game.crop_compatibility("France", scale=1)
    >>> p.isel(crop=0).sel(country=["France", "Ukraine", "Italy"]).values.round(2)
    array([0.09, 0.21, 0.  ])
    """
    pool = check_pool(flags)
    canvas, crop, scale = check_layout(canvas, crop, scale)
    hidden = pool.index(flag_of(country, pool))
    real_number("noise", noise, least=0, below=1)
    if counting not in get_args(Counting):
        raise InputError(f"counting = {counting!r}: expected {' or '.join(map(repr, get_args(Counting)))}")
    number, occurrences, cells, distance = _pictures(pool, canvas, crop, scale)
    own, picture = np.unique(number[hidden], return_inverse=True)
    kinds_of_both = zip(cells[own].T, cells.T, strict=True)
    differing = sum(distance[np.ix_(kinds, all_kinds)] for kinds, all_kinds in kinds_of_both)  # (own, all pictures)
    # Relative to the likelihood of a crop read without error. 0 ** 0 is 1: without noise equal pictures only.
    weight = np.power(float(noise) / (1 - float(noise)) / (len(COLOURS) - 1), differing)
    if counting == "positions":
        likelihood = weight @ occurrences
    else:
        likelihood = np.stack([weight[:, shown > 0].max(axis=1) for shown in occurrences.T], axis=1)
    p = (likelihood / likelihood.sum(axis=1, keepdims=True))[picture]
    top, left = np.mgrid[: canvas[1] - crop[1] + 1, : canvas[0] - crop[0] + 1]
    attrs = {"long_name": "crop compatibility", "units": "1", "scale": scale}
    attrs |= dict(zip(SIZES, (*canvas, *crop), strict=True))
    attrs |= {"hidden": country, "noise": float(noise), "counting": counting, "observer": "ideal"}
    coords = {
        "crop": np.arange(len(p)),
        "country": [flag.country for flag in pool],
        "left": ("crop", left.ravel(), {"units": "cells"}),
        "top": ("crop", top.ravel(), {"units": "cells"}),
        "picture": ("crop", picture, {"long_name": "equal for crops with the same pixels"}),
    }
    return xr.DataArray(p, dims=("crop", "country"), coords=coords, name="compatibility", attrs=attrs)


@lru_cache(maxsize=8)
def _pictures(
    flags: tuple[Flag, ...], canvas: tuple[int, int], crop: tuple[int, int], scale: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All crops of all flags; read-only, since the cache shares them.

    The number of the picture that a crop shows (countries, crops), row by row from the top left; the number of
    positions at which a flag shows a picture (pictures, countries); the kind of each of its cells (pictures, cells of a
    crop); and the share of pixels in which two kinds differ. Cells with the same pixels are of one kind; at scale 1 the
    kinds are the colours.
    """
    width, height = canvas
    numbers: dict[bytes, int] = {}
    kinds = np.empty((len(flags), height * width), dtype=np.int64)
    for i, flag in enumerate(flags):
        pixels = draw(flag, width * scale, height * scale)
        cells = pixels.reshape(height, scale, width, scale).swapaxes(1, 2).reshape(height * width, scale * scale)
        kinds[i] = [numbers.setdefault(cell.tobytes(), len(numbers)) for cell in cells]
    drawn = np.frombuffer(b"".join(numbers), dtype=np.uint8).reshape(len(numbers), scale * scale)
    distance = np.stack([(drawn != one).mean(axis=1) for one in drawn])
    kinds = kinds.reshape(len(flags), height, width)
    windows = np.lib.stride_tricks.sliding_window_view(kinds, crop[::-1], axis=(1, 2))
    cells, number = np.unique(windows.reshape(-1, crop[0] * crop[1]), axis=0, return_inverse=True)
    number = number.reshape(len(flags), -1)
    occurrences = np.zeros((len(cells), len(flags)), dtype=int)
    np.add.at(occurrences, (number, np.arange(len(flags))[:, None]), 1)
    found = number, occurrences, cells, distance
    for array in found:
        array.flags.writeable = False
    return found
