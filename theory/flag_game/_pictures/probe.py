"""A measured probe of crops: its counts, crop compatibilities from them, and the ideal observer beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import kendalltau, spearmanr

from meanfield import InputError
from meanfield.toolbox import check_level, exact_interval, labelled, real_number, shown, stamp
from theory.flag_game._pictures.compatibility import Counting, crop_compatibility
from theory.flag_game._pictures.drawing import SCALE, SIZES, small_picture
from theory.flag_game._pictures.fields import check_country, places
from theory.flag_game._pictures.flags import FLAGS, Flag, flag_of

PSEUDO_COUNT = 0.5  # Jeffreys' prior where there are two answers; for B = 50, |h| stays below log(101) = 4.6
DIGITS = 12  # the rounding error of p is smaller; p that are equal must tie in a rank correlation
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
        If a column is missing, a count is not a whole number ≥ 0, the two do not add up to `B_valid`, a crop occurs
        twice, crops differ in size, or truth and rival are the same.

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
    corner = {name: ("crop", place[:, k], {"units": "cells"}) for k, name in enumerate(("left", "top"))}
    coords = {"crop": np.arange(len(counts)), "country": [truth, rival], **corner}
    attrs = {"long_name": "answers", "units": "1", "hidden": truth} | SIZES
    attrs |= dict(zip(("crop_width", "crop_height"), sizes[0].tolist(), strict=True))
    return xr.DataArray(counts, dims=("crop", "country"), coords=coords, name="counts", attrs=attrs)


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
        If `counts` has other dims, a count is not a whole number ≥ 0, the pseudo-count is negative, or it is 0 and a
        crop has no answer.

    See Also
    --------
    crop_compatibility : of an ideal observer
    probe_counts : the counts

    Examples
    --------
    Fifty answers to each of two crops.

    >>> counts = xr.DataArray([[50, 0], [20, 30]], dims=("crop", "country"), coords={"country": ["France", "Peru"]})
    >>> theory.flag_game.measured_compatibility(counts).values.round(3)
    array([[0.99 , 0.01 ],
           [0.402, 0.598]])
    """
    counts = _checked(counts)
    real_number("pseudo_count", pseudo_count, least=0)
    weight = counts + float(pseudo_count)
    total = weight.sum("country")
    if (total == 0).any():
        crop = counts["crop"].values[total.values == 0][0]
        raise InputError(f"counts: no answer to crop {crop}: expected at least one, or a pseudo_count above 0")
    attrs = {"long_name": "crop compatibility", "observer": "measured", "pseudo_count": float(pseudo_count)}
    return (weight / total).rename("compatibility").assign_attrs(counts.attrs | attrs)


def compare_with_probe(
    counts: xr.DataArray,
    truth: str,
    *,
    flags: Sequence[Flag] = FLAGS,
    noise: float = 0.0,
    counting: Counting = "positions",
    level: float = 0.99,
    scale: int = SCALE,
) -> xr.Dataset:
    """The answers to each crop beside the posterior of an ideal observer, and the crops at which they differ.

    The ideal observer's pool are the countries of `counts`, which were offered as answers.

    Parameters
    ----------
    counts
        (crop, country) with coordinates `left` and `top` (crop), from `probe_counts`; sizes as for
        `measured_compatibility`.
    truth, flags
        The country of the hidden flag, and the flags of all these countries, among others.
    noise, counting, scale, level
        As for `crop_compatibility`, and the joint confidence of all intervals.

    Returns
    -------
    Dataset over `crop` (`left`, `top`, `picture`) with

    - `measured`, the share of answers that are the truth, and `interval` (crop, bound), its Clopper–Pearson interval
      with Bonferroni's correction for the number of crops;
    - `ideal`, p_i(T) of the ideal observer;
    - `difference` = measured - ideal, and `departs`, whether ideal lies outside the interval;

    and `flag` (row, column, channel), the hidden flag.

    attrs: `spearman` and `kendall` (tau-b), rank correlations of measured and ideal with mean ranks for ties; NaN if
    one of them is constant.

    Raises
    ------
    InputError
        If `counts` is something else, a country is not in the pool, or a crop is not on the canvas or has no answer.

    See Also
    --------
    crop_compatibility : the ideal observer

    Examples
    --------
    An agent calls a blue crop French, as an ideal observer does, but is too sure of a white one.

    >>> from theory.flag_game import compare_with_probe, probe_counts
    >>> crops = {"left": [0, 9], "top": [0, 0], "width": 6, "height": 4}
    >>> answers = {"truth_count": [50, 48], "rival_count": [0, 2], "B_valid": 50}
    >>> found = compare_with_probe(probe_counts(pd.DataFrame(crops | answers), "France", "Peru"), "France", scale=1)
    >>> found["measured"].values, found["ideal"].values, found["departs"].values
    (array([1.  , 0.96]), array([1. , 0.5]), array([False,  True]))
    """
    counts = _checked(counts)
    check_country("truth", truth, counts)
    check_level(level)
    trials = counts.sum("country").values
    if not trials.all():
        raise InputError(f"counts: no answer to crop {counts['crop'].values[trials == 0][0]}: expected at least one")
    offered = tuple(flag_of(str(one), flags) for one in counts["country"].values)
    canvas, crop = ((counts.attrs[f"{of}_width"], counts.attrs[f"{of}_height"]) for of in ("canvas", "crop"))
    every = crop_compatibility(
        truth, flags=offered, noise=noise, counting=counting, canvas=canvas, crop=crop, scale=scale
    )
    number = {place: i for i, place in enumerate(places("counts", every))}
    corners = places("counts", counts)
    for left, top in corners:
        if (left, top) not in number:
            raise InputError(f"counts has a crop at left = {left}, top = {top}: expected one that lies on the canvas")
    asked = every.isel(crop=[number[corner] for corner in corners])
    ideal = asked.sel(country=truth).values.round(DIGITS)
    right = counts.sel(country=truth).values
    share = right / trials
    low, high = exact_interval(right, trials, 1 - (1 - level) / len(right))  # Bonferroni
    text = f"Clopper–Pearson interval of measured, {100 * level:g} % for all crops together"
    columns = {
        "measured": ("crop", share, "share of answers that are the truth"),
        "ideal": ("crop", ideal, "p(truth) of an ideal observer"),
        "difference": ("crop", share - ideal, "measured - ideal"),
        "departs": ("crop", (ideal < low) | (ideal > high), "ideal lies outside the interval"),
        "interval": (("crop", "bound"), np.stack([low, high], -1), text),
    }
    coords = {name: ("crop", asked[name].values, asked[name].attrs) for name in ("left", "top", "picture")}
    result = labelled(columns, coords | {"crop": counts["crop"].values, "bound": ["low", "high"]})
    result["flag"] = small_picture(flag_of(truth, flags), *canvas)
    result = stamp(result, "flag_game_probe", noise=noise, counting=counting, level=level)
    ranked = np.ptp(ideal) and np.ptp(share)  # else neither has ranks
    correlations = {"spearman": spearmanr, "kendall": kendalltau}
    ranks = {name: float(of(ideal, share).statistic) if ranked else np.nan for name, of in correlations.items()}
    return result.assign_attrs(asked.attrs | {"truth": truth} | ranks)


def _checked(counts: xr.DataArray) -> xr.DataArray:
    """`counts` as integers (crop, country) with the sizes of the game in its attrs; InputError if it is not counts."""
    if not isinstance(counts, xr.DataArray) or set(counts.dims) != {"crop", "country"}:
        raise InputError("counts: expected a DataArray over crop and country")
    counts = counts.transpose("crop", "country")
    return counts.copy(data=_whole(counts.values, "counts")).assign_attrs(SIZES | counts.attrs)


def _whole(values: np.ndarray, name: str) -> np.ndarray:
    """The values as integers; InputError names the first that is not a whole number ≥ 0."""
    numbers = np.asarray(pd.to_numeric(np.ravel(values), errors="coerce"), dtype=float)
    good = np.isfinite(numbers)
    good[good] = (numbers[good] >= 0) & (numbers[good] % 1 == 0)
    if not good.all():
        raise InputError(f"{name}: found {np.ravel(values)[~good][0]}, expected whole numbers ≥ 0")
    return numbers.astype(int).reshape(np.shape(values))
