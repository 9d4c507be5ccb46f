"""A measured probe of crops, compared with the ideal observer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import beta, kendalltau, spearmanr

from meanfield import InputError
from meanfield.toolbox import check_level, labelled, stamp
from theory.flag_game._arguments import check_country, places
from theory.flag_game._pictures.compatibility import Counting, crop_compatibility
from theory.flag_game._pictures.drawing import SCALE, small_picture
from theory.flag_game._pictures.flags import FLAGS, Flag, flag_of
from theory.flag_game._pictures.measured import check_counts

DIGITS = 12  # the rounding error of p is smaller; p that are equal must tie in a rank correlation


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
    truth
        The country of the hidden flag.
    flags
        The flags of these countries, among others.
    noise, counting, scale
        As for `crop_compatibility`.
    level
        Joint confidence of all intervals.

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
    counts = check_counts(counts)
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
    asked = every.isel(crop=_positions(every, counts))
    ideal = asked.sel(country=truth).values.round(DIGITS)
    right = counts.sel(country=truth).values
    low, high = _interval(right, trials, 1 - (1 - level) / len(right))
    text = f"Clopper–Pearson interval of measured, {100 * level:g} % for all crops together"
    columns = {
        "measured": ("crop", right / trials, "share of answers that are the truth"),
        "ideal": ("crop", ideal, "p(truth) of an ideal observer"),
        "difference": ("crop", right / trials - ideal, "measured - ideal"),
        "departs": ("crop", (ideal < low) | (ideal > high), "ideal lies outside the interval"),
        "interval": (("crop", "bound"), np.stack([low, high], -1), text),
    }
    coords = {name: ("crop", asked[name].values, asked[name].attrs) for name in ("left", "top", "picture")}
    result = labelled(columns, coords | {"crop": counts["crop"].values, "bound": ["low", "high"]})
    result["flag"] = small_picture(flag_of(truth, flags), *canvas)
    result = stamp(result, "flag_game_probe", noise=noise, counting=counting, level=level)
    spearman, kendall = _rank_correlations(ideal, right / trials)
    return result.assign_attrs(asked.attrs | {"truth": truth, "spearman": spearman, "kendall": kendall})


def _positions(every: xr.DataArray, counts: xr.DataArray) -> list[int]:
    """The numbers, among all crops, of the crops in `counts`."""
    number = {place: i for i, place in enumerate(places("counts", every))}
    asked = places("counts", counts)
    for left, top in asked:
        if (left, top) not in number:
            raise InputError(f"counts has a crop at left = {left}, top = {top}: expected one that lies on the canvas")
    return [number[place] for place in asked]


def _interval(successes: np.ndarray, trials: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper and Pearson's interval: it has at least its level for any probability."""
    tail, failures = (1 - level) / 2, trials - successes
    low = np.where(successes == 0, 0.0, beta.ppf(tail, np.maximum(successes, 1), failures + 1))
    high = np.where(failures == 0, 1.0, beta.isf(tail, successes + 1, np.maximum(failures, 1)))
    return low, high


def _rank_correlations(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan"), float("nan")
    return float(spearmanr(a, b).statistic), float(kendalltau(a, b).statistic)
