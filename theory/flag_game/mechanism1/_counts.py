"""Measurements of populations of several sizes: endpoint counts, mean accuracies and their standard errors."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import column_numbers, number_hint, read_csv
from theory.flag_game.mechanism1._endpoints import ENDPOINTS, possible_endpoints

COUNT_COLUMNS = tuple(f"{name}_count" for name in ENDPOINTS)
INTERVAL = ("final_ci_low", "final_ci_high")
INTERVAL_LEVEL = 0.95
STANDARD_ERRORS_WIDE = 2 * 1.959963984540054  # of a 95 % interval
BY_CLASS = "endpoint_count"
# Mean accuracy and its standard error: in the published tables, and from simulated or played games.
ACCURACIES = (("final_mean", "final_standard_error"), ("collective_accuracy", "collective_accuracy_se"))
Source = str | os.PathLike | pd.DataFrame | xr.Dataset


class EndpointCounts(NamedTuple):
    """Measurements at K population sizes.

    Attributes
    ----------
    n_agents, seeds
        Numbers of agents and of runs, shape (K,).
    counts
        Numbers of runs that ended in each of ENDPOINTS, shape (K, 4).
    accuracy, standard_error
        Mean share of agents with the truth at the end, shape (K,); NaN where it was not measured.
    accuracy_interval
        Ends of its 95 % interval, shape (K, 2), if the source has them.

    See Also
    --------
    read_counts : reads them
    """

    n_agents: np.ndarray
    seeds: np.ndarray
    counts: np.ndarray
    accuracy: np.ndarray
    standard_error: np.ndarray
    accuracy_interval: np.ndarray | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.n_agents)

    @property
    def possible(self) -> np.ndarray:
        """Which classes exist at each N, shape (K, 4)."""
        return np.stack([possible_endpoints(n) for n in self.sizes])

    @property
    def precision(self) -> np.ndarray:
        """1/standard_error² of the accuracies, shape (K,); 0 without a measurement."""
        return np.where(np.isfinite(self.accuracy), self.standard_error, np.inf) ** -2.0


def read_counts(source: Source) -> EndpointCounts:
    """Measurements from a CSV file, a table or a Dataset with the same columns.

    Parameters
    ----------
    source
        The path of a CSV file, a DataFrame or a Dataset, with one row for each population size and the columns

        - `N` (in a Dataset also the coordinate `n_agents`), `seeds`, `correct_consensus_count`,
          `wrong_consensus_count`, `polarization_count`, `fragmentation_count`. A Dataset may hold `endpoint_count`
          (n_agents, endpoint) instead of the four counts, for one N or several, as from `accuracy` and `simulate` of
          `validation.flag_game`;
        - optional: `final_mean` with `final_standard_error`, or with the ends `final_ci_low` and `final_ci_high` of its
          95 % interval; or `collective_accuracy` with `collective_accuracy_se`. An accuracy of NaN was not measured. It
          has to be NaN if its error is 0 or NaN, as when all games end alike.

    Returns
    -------
    EndpointCounts

    Raises
    ------
    InputError
        If a column is missing, counts are above the trials, or a value is out of range.

    See Also
    --------
    fit : takes the same tables

    Examples
    --------
    >>> from theory.flag_game.mechanism1 import ENDPOINTS, read_counts
    >>> ends = {f"{name}_count": [count] for name, count in zip(ENDPOINTS, (17, 12, 11, 0))}
    >>> counts = read_counts(pd.DataFrame({"N": [4], "seeds": [40]} | ends))
    >>> counts.sizes, counts.counts, counts.possible
    ((4,), array([[17, 12, 11,  0]]), array([[ True,  True,  True, False]]))
    """
    table = _table(source)
    missing = [name for name in ("N", "seeds", *COUNT_COLUMNS) if name not in table.columns]
    if missing:
        raise InputError(f"counts lacks the column {', '.join(missing)}")
    if not len(table):
        raise InputError("counts has no rows: expected one for each population size")
    n_agents, seeds = _whole(table, "N", least=2), _whole(table, "seeds", least=1)
    if len(np.unique(n_agents)) < len(n_agents):
        raise InputError(f"N = {n_agents.tolist()}: expected every population size once; select one condition")
    counts = np.stack([_whole(table, name, least=0) for name in COUNT_COLUMNS], axis=-1)
    for n, trials, row in zip(n_agents, seeds, counts, strict=True):
        if row.sum() != trials:
            relation = "above" if row.sum() > trials else "below"
            raise InputError(f"the endpoint counts at N = {n} sum to {row.sum()}: {relation} the {trials} seeds")
        for name, count, possible in zip(COUNT_COLUMNS, row, possible_endpoints(int(n)), strict=True):
            if count and not possible:
                raise InputError(
                    f"{name} = {count} at N = {n}: expected 0, since {n} agents with two labels can't end so; "
                    "leave this N out, or count these runs as polarised"
                )
    return EndpointCounts(n_agents, seeds, counts, *_accuracy(table))


def _table(source: Source) -> pd.DataFrame:
    if isinstance(source, pd.DataFrame):
        return source
    if isinstance(source, xr.Dataset):
        source = _by_size(source)
        flat = source[[name for name in source.data_vars if set(source[name].dims) <= {"n_agents", "N"}]]
        table = flat.to_dataframe().reset_index()
        return table if "N" in table.columns else table.rename(columns={"n_agents": "N"})
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(f"counts = {source!r}: expected a path, a DataFrame or a Dataset")
    return read_csv(source, "counts")


def _by_size(source: xr.Dataset) -> xr.Dataset:
    """The Dataset with sizes along a dim, and a column for each class."""
    if "n_agents" in source.coords and source["n_agents"].ndim == 0:
        source = source.expand_dims("n_agents")
    if not {"n_agents", "N"} & set(source.variables):
        raise InputError("counts lacks the coordinate n_agents: expected the number of agents of each population")
    if BY_CLASS not in source:
        return source
    counts = source[BY_CLASS]
    if set(counts.dims) != {"n_agents", "endpoint"}:
        raise InputError(f"{BY_CLASS} is over {counts.dims}: expected n_agents and endpoint; select one condition")
    if sorted(map(str, counts["endpoint"].values)) != sorted(ENDPOINTS):
        raise InputError(f"{BY_CLASS} has the endpoints {counts['endpoint'].values}: expected {', '.join(ENDPOINTS)}")
    twice = [name for name in COUNT_COLUMNS if name in source]
    if twice:
        raise InputError(f"counts has {BY_CLASS} and {twice[0]}: expected one of the two forms")
    columns = {
        column: counts.sel(endpoint=name, drop=True) for column, name in zip(COUNT_COLUMNS, ENDPOINTS, strict=True)
    }
    return source.assign(columns)


def _whole(table: pd.DataFrame, name: str, least: int) -> np.ndarray:
    values = column_numbers(table[name])
    wrong = ~(values >= least) | (values != np.round(values)) | ~np.isfinite(values)
    if wrong.any():
        raise InputError(f"{name} = {table[name].to_numpy()[wrong][0]!r}: expected whole numbers of at least {least}")
    return np.asarray(values, dtype=np.int64)


def _numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    """The column's numbers, and NaN where they are missing."""
    values = column_numbers(table[name])
    wrong = np.isnan(values) & table[name].notna().to_numpy()
    if wrong.any():
        hint = number_hint(table[name].to_numpy()[wrong][0])
        raise InputError(f"{name} = {table[name].tolist()}: expected numbers{hint}, or NaN")
    return values


def _accuracy(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    given = [names for names in ACCURACIES if set(names) & set(table.columns)]
    if len(given) > 1:
        raise InputError(f"counts has {given[0][0]} and {given[1][0]}: expected one of them")
    if not given:
        return np.full(len(table), np.nan), np.full(len(table), np.nan), None
    ((of_mean, of_error),) = given
    if of_mean not in table.columns:
        raise InputError(f"counts has {of_error}: expected {of_mean} too")
    mean = _numbers(table, of_mean)
    seen = ~np.isnan(mean)
    if not ((mean >= 0) & (mean <= 1))[seen].all():
        raise InputError(f"{of_mean} = {table[of_mean].tolist()}: expected shares from 0 to 1, or NaN")
    interval = _interval(table, mean) if set(INTERVAL) <= set(table.columns) else None
    if of_error in table.columns:
        error = _numbers(table, of_error)
    elif interval is not None:
        error = (interval[:, 1] - interval[:, 0]) / STANDARD_ERRORS_WIDE
    else:
        raise InputError(f"counts has {of_mean}: expected {of_error} or final_ci_low and final_ci_high too")
    unusable = seen & ~((error > 0) & np.isfinite(error))
    if unusable.any():
        where = table["N"].to_numpy()[unusable].tolist()
        raise InputError(
            f"the standard error of {of_mean} at N = {', '.join(map(str, where))} is "
            f"{', '.join(map(str, error[unusable].tolist()))}: expected a number above 0; play more games, or set "
            f"{of_mean} to NaN there"
        )
    return mean, np.where(seen, error, np.nan), interval


def _interval(table: pd.DataFrame, mean: np.ndarray) -> np.ndarray:
    """The ends (K, 2) of the interval of each mean; NaN without a mean, InputError if the mean lies outside."""
    low, high = (_numbers(table, name) for name in INTERVAL)
    outside = ~np.isnan(mean) & ~((low <= mean) & (mean <= high))
    if outside.any():
        k = int(outside.argmax())
        raise InputError(
            f"final_ci_low, final_ci_high = {low[k]}, {high[k]} at N = {table['N'].iloc[k]}: expected an interval that "
            f"holds the mean, {mean[k]}"
        )
    return np.where(np.isnan(mean)[:, None], np.nan, np.stack([low, high], axis=-1))
