"""Signed crop fields: how much a crop favours the truth over its strongest rival."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_memory, real_numbers, stamp, whole_number
from theory.flag_game._pictures.drawing import SIZES, small_picture
from theory.flag_game._pictures.flags import FLAGS, Flag, check_pool

TIE = 1e-9  # means of up to thousands of posteriors differ by rounding, 1e-13, where they are equal


class Rival(NamedTuple):
    """The country, other than the truth, with the largest mean compatibility over the crops of the truth.

    Attributes
    ----------
    country
        Its name; the first in the pool of several that are equally strong.
    mean_compatibility
        The mean of p_i(country) over the crops.
    tied
        The other equally strong countries.

    See Also
    --------
    strongest_rival : finds it
    """

    country: str
    mean_compatibility: float
    tied: tuple[str, ...]


def strongest_rival(compatibility: xr.DataArray, truth: str) -> Rival:
    """The strongest rival R of the truth: the other country with the largest mean p_i over the crops.

    For France an ideal observer finds Peru, as [002] Appendix E has it.

    Parameters
    ----------
    compatibility, truth
        (crop, country), from `crop_compatibility` or `measured_compatibility`, and T.

    Raises
    ------
    InputError
        If `compatibility` is something else, or lacks the truth or any other country.

    See Also
    --------
    signed_field : the field against it

    Examples
    --------
    >>> from theory.flag_game import crop_compatibility, strongest_rival
    >>> strongest_rival(crop_compatibility("France", scale=1), "France").country
    'Peru'
    """
    compatibility = _checked(compatibility)
    check_country("truth", truth, compatibility)
    if compatibility.sizes["country"] == 1:
        raise InputError(f"compatibility has no country but {truth}: expected a rival")
    means = compatibility.mean("crop").drop_sel(country=truth)
    best = float(means.max())
    first, *tied = (str(one) for one in means["country"].values[means.values >= best * (1 - TIE)])
    return Rival(first, best, tuple(tied))


def signed_field(compatibility: xr.DataArray, truth: str, rival: str) -> xr.DataArray:
    """The signed crop field h_i = log(p_i(T) / p_i(R)) of each crop ([002] Eq. 7).

    Parameters
    ----------
    compatibility, truth, rival
        (crop, country), from `crop_compatibility` or `measured_compatibility`, and T and R, two of its countries.

    Returns
    -------
    DataArray `field` (crop). It is +inf if R is impossible and -inf if T is, which happens without noise or
    pseudo-count; attrs `infinite` counts these crops.

    Raises
    ------
    InputError
        If a country is missing, the two are the same, or both are impossible for a crop.

    See Also
    --------
    crop_fields : place by place

    Examples
    --------
    Blue speaks for France against Peru, white for neither, and red a little for Peru, which has more of it.

    >>> from theory.flag_game import crop_compatibility, signed_field
    >>> h = signed_field(crop_compatibility("France", scale=1, noise=0.01), "France", "Peru")
    >>> h.isel(crop=[0, 9, 18]).values.round(1).tolist()
    [155.1, 0.0, -0.7]
    """
    compatibility = _checked(compatibility)
    check_country("truth", truth, compatibility)
    check_country("rival", rival, compatibility)
    if truth == rival:
        raise InputError(f"rival = {rival!r}: expected another country than truth")
    for_truth, for_rival = (compatibility.sel(country=one, drop=True) for one in (truth, rival))
    neither = (for_truth.values == 0) & (for_rival.values == 0)
    if neither.any():
        crop = compatibility["crop"].values[neither][0]
        raise InputError(
            f"compatibility: neither {truth} nor {rival} is compatible with crop {crop}, so its field has no value: "
            "expected noise or a pseudo-count above 0, or other countries"
        )
    with np.errstate(divide="ignore"):  # infinite fields are meant, and counted
        field = np.log(for_truth) - np.log(for_rival)
    attrs = {"long_name": "signed crop field", "truth": truth, "rival": rival, "infinite": int(np.isinf(field).sum())}
    return field.rename("field").assign_attrs(compatibility.attrs | attrs)


def crop_fields(
    compatibility: xr.DataArray,
    truth: str,
    rival: str,
    *,
    bins: int | Sequence[float] = 21,
    flags: Sequence[Flag] = FLAGS,
) -> xr.Dataset:
    """The field at each place of the flag, and its distribution P(h) over crops ([002] Fig. 5a and b).

    Parameters
    ----------
    compatibility, truth, rival
        As for `signed_field`.
    bins
        Number of equal bins, ≥ 1, from -max|h| to max|h| over finite h; an odd number has 0 in the middle of a bin. Or
        rising borders between which all finite h lie.
    flags
        The pool with the hidden flag, whose picture `meanfield.plot` draws behind the fields.

    Returns
    -------
    Dataset with

    - `field` (top, left), h of the crop with this corner, in cells; NaN without a crop, ±inf as in `signed_field`;
    - `probability` (bin), the fraction of crops in each bin from `low` to `high` (bin); a bin includes its lower
      border, the last one also its upper border;
    - `surely_truth` and `surely_rival`, the fractions of crops with h = +inf and -inf. All fractions sum to 1;
    - `flag` (row, column, channel), the hidden flag, if the pool has it.

    Raises
    ------
    InputError
        As for `signed_field`; or if a field lies outside the bins, or places of crops are missing or repeat.

    See Also
    --------
    signed_field : crop by crop

    Examples
    --------
    >>> from theory.flag_game import crop_compatibility, crop_fields
    >>> fields = crop_fields(crop_compatibility("France", scale=1), "France", "Peru", bins=3)
    >>> fields["field"].shape, float(fields["surely_truth"].round(3)), fields["probability"].values.round(3)
    ((13, 19), 0.421, array([0.158, 0.421, 0.   ]))
    """
    field = signed_field(compatibility, truth, rival)
    values, finite = field.values, field.values[np.isfinite(field.values)]
    borders = _borders(finite, bins)
    left, top = np.array(places("compatibility", field)).T
    columns, rows = np.arange(left.min(), left.max() + 1), np.arange(top.min(), top.max() + 1)
    over_places = np.full((len(rows), len(columns)), np.nan)
    over_places[top - rows[0], left - columns[0]] = values
    fraction, cells = {"long_name": "fraction of crops", "units": "1"}, {"units": "cells"}
    result = xr.Dataset(
        {
            "field": (("top", "left"), over_places, field.attrs),
            "probability": ("bin", np.histogram(finite, borders)[0] / values.size, fraction),
            "surely_truth": ((), (values == np.inf).mean(), fraction | {"long_name": "fraction of crops with h = +∞"}),
            "surely_rival": ((), (values == -np.inf).mean(), fraction | {"long_name": "fraction of crops with h = -∞"}),
        },
        {
            "top": ("top", rows, cells),
            "left": ("left", columns, cells),
            "low": ("bin", borders[:-1]),
            "high": ("bin", borders[1:]),
        },
    )
    for flag in check_pool(flags):
        if flag.country == field.attrs.get("hidden", truth):
            result["flag"] = small_picture(flag, field.attrs["canvas_width"], field.attrs["canvas_height"])
    return stamp(result, "flag_game_fields", truth=truth, rival=rival).assign_attrs(field.attrs)


def _borders(finite: np.ndarray, bins: int | Sequence[float]) -> np.ndarray:
    if isinstance(bins, (str, bytes)) or np.ndim(bins) > 1:
        raise InputError(f"bins = {bins!r}: expected a number of bins or their borders")
    if np.ndim(bins) == 0:
        most = float(np.abs(finite).max()) if finite.any() else 1.0
        number = whole_number("bins", bins.item() if isinstance(bins, np.ndarray) else bins, 1)
        check_memory(24 * number, f"bins = {number}", "fewer bins")
        return np.linspace(-most, most, number + 1)
    borders = real_numbers(bins, "bins")
    if len(borders) < 2 or not np.isfinite(borders).all() or not (np.diff(borders) > 0).all():
        raise InputError(f"bins = {bins!r}: expected at least two borders, rising")
    outside = finite[(finite < borders[0]) | (finite > borders[-1])]
    if outside.size:
        raise InputError(f"bins reach from {borders[0]:g} to {borders[-1]:g}: expected bins that hold {outside[0]:g}")
    return borders


def _checked(compatibility: xr.DataArray) -> xr.DataArray:
    """The compatibility as (crop, country); InputError if it is something else."""
    if not isinstance(compatibility, xr.DataArray) or set(compatibility.dims) != {"crop", "country"}:
        raise InputError("compatibility: expected a DataArray over crop and country, as crop_compatibility returns it")
    values = compatibility.transpose("crop", "country")
    if not (values.values >= 0).all() or not np.allclose(values.sum("country"), 1, rtol=0, atol=1e-9):
        sums = values.sum("country").values
        found = f"found sums from {sums.min():.12g} to {sums.max():.12g}, the smallest entry {values.values.min():.3g}"
        raise InputError(f"compatibility: expected probabilities, in rows that sum to 1; {found}")
    return values.assign_attrs(SIZES | values.attrs)


def check_country(name: str, country: str, compatibility: xr.DataArray) -> str:
    """`country`; InputError if it is not in `compatibility`."""
    known = [str(one) for one in compatibility["country"].values]
    if country not in known:
        raise InputError(f"{name} = {country!r}: expected one of {', '.join(known)}")
    return country


def places(name: str, over_crops: xr.DataArray) -> list[tuple[int, int]]:
    """(left, top) of each crop; InputError if they are missing or two are the same."""
    if not {"left", "top"} <= set(over_crops.coords):
        raise InputError(f"{name}: expected coordinates left and top over crop")
    found = list(zip(*(over_crops[c].values.astype(int).tolist() for c in ("left", "top")), strict=True))
    (left, top), times = Counter(found).most_common(1)[0]
    if times > 1:
        raise InputError(f"{name} has {times} crops at left = {left}, top = {top}: expected one")
    return found
