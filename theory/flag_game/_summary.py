"""Fits of the Flag Game as tables of their parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from theory.flag_game.evidence._fit import model_of

UNKNOWN = "not determined"


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
    kind = fit.attrs.get("kind") if isinstance(fit, xr.Dataset) else None
    if kind == "copying_fit":
        return fit[["estimate", "standard_error"]].to_dataframe()
    if kind == "mechanism1_fit":
        status = np.where(fit["free"], np.where(fit["identified"], "determined", UNKNOWN), "held")
        return _table(fit).assign(status=status)
    if kind == "flag_run_fit":
        model = model_of(fit.attrs["option_model"])
        places = [model.parameters.index(name) for name in fit["parameter"].values]
        return _with_status(_table(fit), model.points.min(axis=0)[places], model.points.max(axis=0)[places])
    if kind == "mechanism2":
        parts = [
            xr.Dataset({"estimate": fit[name], "interval": fit[f"{name}_interval"]}).expand_dims(parameter=[name])
            for name in ("uptake", "rewrite", "literal")
        ]
        table = _table(xr.concat(parts, "parameter"), ["evidence", "bandwidth", "model", "parameter"])
        return _with_status(table, 0, 1)
    found = f"attrs['kind'] = {kind!r}" if isinstance(fit, xr.Dataset) else f"a {type(fit).__name__}"
    raise InputError(f"fit: expected the result of theory.fit_mechanism1 or of another fit of the Flag Game, {found}")


def _table(fit: xr.Dataset, dims: list[str] | None = None) -> pd.DataFrame:
    ends = {end: fit["interval"].sel(bound=end, drop=True) for end in ("low", "high")}
    return xr.Dataset({"estimate": fit["estimate"], **ends}).to_dataframe(dims)


def _with_status(table: pd.DataFrame, least: np.ndarray | float, most: np.ndarray | float) -> pd.DataFrame:
    """With the status of each parameter by its interval within the range from `least` to `most`."""
    below, above = table["low"] > least, table["high"] < most
    known = ["determined", "at least low", "at most high"]
    return table.assign(status=np.select([below & above, below, above], known, UNKNOWN))
