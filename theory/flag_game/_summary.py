"""Fits of the Flag Game as tables of their parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from theory.flag_game.evidence._models import model_of

HELD, KNOWN, UNKNOWN = "held", "determined", "not determined"


def summary(fit: xr.Dataset) -> pd.DataFrame:
    """A fit as a table: each parameter's estimate, its interval, and whether the data determine it.

    Parameters
    ----------
    fit
        Result of `theory.fit_mechanism1`, `theory.flag_game.mechanism1.fit_copying`, `theory.flag_game.mechanism2.fit`
        or `theory.flag_game.evidence.fit`.

    Returns
    -------
    DataFrame with a row for each parameter, for Mechanism 2 for each evidence, bandwidth, model and parameter, and

    - `estimate`, the likeliest value, and `low` and `high`, the ends of its interval, or for `fit_copying`
      `standard_error`;
    - `status`: 'held' at its start; 'determined'; 'not determined', for Mechanism 1 where it is not known within a
      factor of e (a mean within one nat), else where the interval is all of its range; 'at most high' or 'at least low'
      where the interval ends with the range on the other side.

    Raises
    ------
    InputError
        If `fit` is something else.

    See Also
    --------
    meanfield.plot : the same as a picture

    Examples
    --------
    >>> from theory.flag_game import evidence, summary
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> summary(evidence.fit(pd.concat([runs] * 20), "biased_copying")).round(2)
               estimate   low  high        status
    parameter
    anchored       0.29  0.19  0.41    determined
    bias           3.00  1.89  3.00  at least low
    """
    made = {
        "mechanism1_fit": _mechanism1,
        "copying_fit": _copying,
        "flag_run_fit": _runs,
        "mechanism2": _mechanism2,
    }
    kind = fit.attrs.get("kind") if isinstance(fit, xr.Dataset) else None
    if kind not in made:
        found = f"attrs['kind'] = {kind!r}" if isinstance(fit, xr.Dataset) else f"a {type(fit).__name__}"
        raise InputError(
            f"fit: expected the result of theory.fit_mechanism1 or of another fit of the Flag Game, {found}"
        )
    return made[kind](fit)


def _mechanism1(fit: xr.Dataset) -> pd.DataFrame:
    determined = np.where(fit["identified"], KNOWN, UNKNOWN)
    return _table(fit, np.where(fit["free"], determined, HELD))


def _copying(fit: xr.Dataset) -> pd.DataFrame:
    return fit[["estimate", "standard_error"]].to_dataframe()


def _runs(fit: xr.Dataset) -> pd.DataFrame:
    grid = model_of(str(fit.attrs["option_model"]))
    ranges = dict(zip(grid.parameters, zip(grid.points.min(0), grid.points.max(0), strict=True), strict=True))
    intervals = fit["interval"].transpose("parameter", "bound").sel(bound=["low", "high"]).values
    names = fit["parameter"].values.tolist()
    return _table(fit, [_status(*ends, *ranges[name]) for name, ends in zip(names, intervals, strict=True)])


def _mechanism2(fit: xr.Dataset) -> pd.DataFrame:
    parts = [
        xr.Dataset({"estimate": fit[name], "interval": fit[f"{name}_interval"]}).expand_dims(parameter=[name])
        for name in ("uptake", "rewrite", "literal")
    ]
    rows = xr.concat(parts, "parameter").stack(row=("evidence", "bandwidth", "model", "parameter"))
    intervals = rows["interval"].transpose("row", "bound").sel(bound=["low", "high"]).values
    table = _table(
        rows.drop_vars(["evidence", "bandwidth", "model", "parameter", "row"]),
        [_status(*ends, 0, 1) for ends in intervals],
    )
    return table.set_index(rows.indexes["row"])


def _table(fit: xr.Dataset, status: object) -> pd.DataFrame:
    ends = {end: fit["interval"].sel(bound=end, drop=True) for end in ("low", "high")}
    return xr.Dataset({"estimate": fit["estimate"], **ends}).to_dataframe().assign(status=status)


def _status(low: float, high: float, least: float, most: float) -> str:
    """Status of a parameter by its interval within a range."""
    below, above = low > least, high < most
    return (
        KNOWN if below and above else UNKNOWN if not (below or above) else "at least low" if below else "at most high"
    )
