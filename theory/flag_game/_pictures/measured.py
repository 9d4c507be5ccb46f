"""Crop compatibility of an agent, measured from counts of its answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import real_number, shown
from theory.flag_game._pictures.crops import SIZES

PSEUDO_COUNT = 0.5  # Jeffreys' prior where there are two answers; for B = 50, |h| stays below log(101) = 4.6
COLUMNS = ("left", "top", "width", "height", "truth_count", "rival_count", "B_valid")


def probe_counts(table: pd.DataFrame, truth: str, rival: str) -> xr.DataArray:
    """Counts of answers from a probe of crops that allowed two countries as answers.

    Parameters
    ----------
    table
        One row per crop: `left`, `top`, `width`, `height` in cells; `truth_count` and `rival_count` of `B_valid`
        answers, as in `meanfield.datasets.flag_game("yemen_crop_probe")`.
    truth, rival
        Names of the two countries, which the table lacks.

    Returns
    -------
    DataArray `counts` (crop, country), integers, with coordinates `left` and `top` (crop).

    Raises
    ------
    InputError
        If a column is missing, a count is no whole number ≥ 0, the two do not add up to `B_valid`, a crop occurs twice,
        crops differ in size, or truth and rival are the same.

    See Also
    --------
    measured_compatibility : compatibilities from these counts

    Examples
    --------
    >>> from theory.flag_game import probe_counts
    >>> sizes = {"width": 6, "height": 4}
    >>> answers = {"truth_count": [50, 20], "rival_count": [0, 30], "B_valid": 50}
    >>> counts = probe_counts(pd.DataFrame({"left": [0, 9], "top": [0, 0]} | sizes | answers), "France", "Peru")
    >>> counts.sel(country="Peru").values
    array([ 0, 30])
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"table = {shown(table)}: expected a pandas DataFrame")
    for name, country in (("truth", truth), ("rival", rival)):
        if not isinstance(country, str):
            raise InputError(f"{name} = {shown(country)}: expected a country")
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        raise InputError(f"table lacks the column {', '.join(missing)}: expected {', '.join(COLUMNS)}")
    if truth == rival:
        raise InputError(f"rival = {rival!r}: expected another country than truth")
    if table.empty:
        raise InputError("table has no row: expected at least one crop")
    counts = _whole(table[["truth_count", "rival_count"]].to_numpy(), "truth_count and rival_count")
    trials = _whole(table["B_valid"].to_numpy(), "B_valid")
    place = _whole(table[["left", "top"]].to_numpy(), "left and top")
    wrong = np.flatnonzero(counts.sum(1) != trials)
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"table, row {row}: truth_count + rival_count = {counts[row].sum()}: expected B_valid = {trials[row]}"
        )
    repeated = table.duplicated(["left", "top"]).to_numpy()
    if repeated.any():
        left, top = place[repeated][0]
        raise InputError(f"table has the crop at left = {left}, top = {top} twice: expected one row a crop")
    sizes = np.unique(_whole(table[["width", "height"]].to_numpy(), "width and height"), axis=0)
    if len(sizes) > 1:
        raise InputError(f"table has crops of {len(sizes)} sizes: expected one")
    return xr.DataArray(
        counts,
        dims=("crop", "country"),
        coords={
            "crop": np.arange(len(counts)),
            "country": [truth, rival],
            "left": ("crop", place[:, 0], {"units": "cells"}),
            "top": ("crop", place[:, 1], {"units": "cells"}),
        },
        name="counts",
        attrs={"long_name": "answers", "units": "1", "hidden": truth}
        | SIZES
        | dict(zip(("crop_width", "crop_height"), sizes[0].tolist(), strict=True)),
    )


def measured_compatibility(counts: xr.DataArray, pseudo_count: float = PSEUDO_COUNT) -> xr.DataArray:
    """Crop compatibility p_i(k) from the number n of times that country k was the answer to crop i.

    p = (n + a) / Σ (n + a), with a pseudo-count a.

    Parameters
    ----------
    counts
        (crop, country), whole numbers ≥ 0, with zeros for countries that were offered and never named. The attrs
        `canvas_width`, `canvas_height`, `crop_width` and `crop_height`, in cells, default to the game's 24, 16, 6, 4.
    pseudo_count
        a ≥ 0, the same for each country. At 0, p is the share of answers, and a crop with only one answer has an
        infinite field; [002] Appendix E does not say how it treats such crops.

    Returns
    -------
    DataArray `compatibility` (crop, country) with the coordinates of `counts`; rows sum to 1.

    Raises
    ------
    InputError
        If `counts` has other dims, a count is no whole number ≥ 0, the pseudo-count is negative, or it is 0 and a crop
        has no answer.

    See Also
    --------
    crop_compatibility : of an ideal observer
    probe_counts : the counts

    Examples
    --------
    Fifty answers to each of two crops.

    >>> from theory.flag_game import measured_compatibility
    >>> counts = xr.DataArray([[50, 0], [20, 30]], dims=("crop", "country"), coords={"country": ["France", "Peru"]})
    >>> measured_compatibility(counts).values.round(3)
    array([[0.99 , 0.01 ],
           [0.402, 0.598]])
    """
    counts = check_counts(counts)
    real_number("pseudo_count", pseudo_count, least=0)
    weight = counts + float(pseudo_count)
    total = weight.sum("country")
    if (total == 0).any():
        crop = counts["crop"].values[total.values == 0][0]
        raise InputError(f"counts: no answer to crop {crop}: expected at least one, or a pseudo_count above 0")
    attrs = {"long_name": "crop compatibility", "observer": "measured", "pseudo_count": float(pseudo_count)}
    return (weight / total).rename("compatibility").assign_attrs(counts.attrs | attrs)


def check_counts(counts: xr.DataArray) -> xr.DataArray:
    """`counts` as integers (crop, country) with the sizes of the game in its attrs; InputError if it is not counts."""
    if not isinstance(counts, xr.DataArray) or set(counts.dims) != {"crop", "country"}:
        raise InputError("counts: expected a DataArray over crop and country")
    counts = counts.transpose("crop", "country")
    return counts.copy(data=_whole(counts.values, "counts")).assign_attrs(SIZES | counts.attrs)


def _whole(values: np.ndarray, name: str) -> np.ndarray:
    """The values as integers; InputError names the first that is no whole number ≥ 0."""
    numbers = np.asarray(pd.to_numeric(np.ravel(values), errors="coerce"), dtype=float)
    good = np.isfinite(numbers)
    good[good] = (numbers[good] >= 0) & (numbers[good] % 1 == 0)
    if not good.all():
        raise InputError(f"{name}: found {np.ravel(values)[~good][0]}, expected whole numbers ≥ 0")
    return numbers.astype(int).reshape(np.shape(values))
