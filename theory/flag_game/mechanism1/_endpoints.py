"""Endpoints of runs: their classes, measured numbers of them, and their moments under a distribution of votes.

The classes are those of [002] §2.3 for a population that votes for the truth or for one rival. Their probabilities and
the mean share of votes for the truth are the moments to which Mechanism 1 is fitted.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_memory, column_numbers, column_whole_numbers, number_hint, read_csv

ENDPOINTS = ("correct_consensus", "wrong_consensus", "polarization", "fragmentation")
CONSENSUS_PERCENT = 85
POLAR_PERCENT = 25
PSEUDO_COUNT = 0.5  # added to each possible class of a simulation, whose zeros would make log-likelihoods -inf
COUNT_COLUMNS = tuple(f"{name}_count" for name in ENDPOINTS)
INTERVAL = ("final_ci_low", "final_ci_high")
INTERVAL_LEVEL = 0.95
STANDARD_ERRORS_WIDE = 2 * 1.959963984540054  # of a 95 % interval
BY_CLASS = "endpoint_count"
# Mean accuracy and its standard error: in the published tables, and from simulated or played games.
ACCURACIES = (("final_mean", "final_standard_error"), ("collective_accuracy", "collective_accuracy_se"))
Source = str | os.PathLike | pd.DataFrame | xr.Dataset


def endpoints_of_votes(n_agents: int) -> np.ndarray:
    """The endpoint of each number of votes for the truth, 0 to N, as an index of ENDPOINTS; shape (N + 1,).

    A consensus has at least 85 % of the votes. A run without one is polarised if both labels have at least 25 %, else
    fragmented.
    """
    check_memory(16 * n_agents, f"n_agents = {n_agents}", "fewer agents")
    truth = 100 * np.arange(n_agents + 1)
    rival, most, polar = truth[::-1], CONSENSUS_PERCENT * n_agents, POLAR_PERCENT * n_agents
    return np.select([truth >= most, rival >= most, np.minimum(truth, rival) >= polar], range(3), 3)


def possible_endpoints(n_agents: int) -> np.ndarray:
    """Which classes some number of votes belongs to, shape (4,)."""
    return np.bincount(endpoints_of_votes(n_agents), minlength=len(ENDPOINTS)) > 0


class Moments(NamedTuple):
    """Moments at K population sizes."""

    values: np.ndarray  # (K, 5): probabilities of the endpoints, mean share of votes for the truth
    covariances: np.ndarray  # (K, 5, 5): of one run's indicators of endpoints and its share of votes
    laws: tuple[np.ndarray, ...]  # of the number of votes for the truth, each (N + 1,)


def moments_of_laws(laws: Sequence[np.ndarray], runs: float = np.inf) -> Moments:
    """Moments under distributions of the number of votes, each counted from `runs` runs (inf: exact distributions)."""
    values, covariances = [], []
    for law in laws:
        n_agents = len(law) - 1
        indicators = endpoints_of_votes(n_agents)[:, None] == np.arange(len(ENDPOINTS))
        seen = np.c_[indicators, np.arange(n_agents + 1) / n_agents]
        mean = law @ seen
        covariances.append((seen.T * law) @ seen - np.outer(mean, mean))
        if np.isfinite(runs):
            raised = mean[:4] * runs + PSEUDO_COUNT * possible_endpoints(n_agents)
            mean[:4] = raised / raised.sum()
        values.append(mean)
    return Moments(np.array(values), np.array(covariances), tuple(laws))


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
          (n_agents, endpoint) instead of the four counts, as from `accuracy` and `simulate` of `validation.flag_game`,
          for one N or for several joined by `xr.concat(..., "n_agents")`;
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
    n_agents, seeds = column_whole_numbers(table, "N", 2), column_whole_numbers(table, "seeds", 1)
    if len(np.unique(n_agents)) < len(n_agents):
        raise InputError(f"N = {n_agents.tolist()}: expected every population size once; select one condition")
    counts = np.stack([column_whole_numbers(table, name) for name in COUNT_COLUMNS], axis=-1)
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
    if not isinstance(source, xr.Dataset):
        if not isinstance(source, (str, os.PathLike)):
            raise InputError(f"counts = {source!r}: expected a path, a DataFrame or a Dataset")
        return read_csv(source, "counts")
    if "n_agents" in source.coords and source["n_agents"].ndim == 0:
        source = source.expand_dims("n_agents")
    if not {"n_agents", "N"} & set(source.variables):
        raise InputError("counts lacks the coordinate n_agents: expected the number of agents of each population")
    if BY_CLASS in source:
        counts = source[BY_CLASS]
        if set(counts.dims) != {"n_agents", "endpoint"}:
            raise InputError(f"{BY_CLASS} is over {counts.dims}: expected n_agents and endpoint; select one condition")
        names = counts["endpoint"].values
        if sorted(map(str, names)) != sorted(ENDPOINTS):
            raise InputError(f"{BY_CLASS} has the endpoints {names}: expected {', '.join(ENDPOINTS)}")
        twice = [name for name in COUNT_COLUMNS if name in source]
        if twice:
            raise InputError(f"counts has {BY_CLASS} and {twice[0]}: expected one of the two forms")
        source = source.assign({f"{name}_count": counts.sel(endpoint=name, drop=True) for name in ENDPOINTS})
    flat = source[[name for name in source.data_vars if set(source[name].dims) <= {"n_agents", "N"}]]
    table = flat.to_dataframe().reset_index()
    return table if "N" in table.columns else table.rename(columns={"n_agents": "N"})


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
    interval = None
    if set(INTERVAL) <= set(table.columns):
        low, high = (_numbers(table, name) for name in INTERVAL)
        outside = seen & ~((low <= mean) & (mean <= high))
        if outside.any():
            k = int(outside.argmax())
            raise InputError(
                f"final_ci_low, final_ci_high = {low[k]}, {high[k]} at N = {table['N'].iloc[k]}: expected an interval "
                f"that holds the mean, {mean[k]}"
            )
        interval = np.where(seen[:, None], np.stack([low, high], axis=-1), np.nan)
    if of_error in table.columns:
        error = _numbers(table, of_error)
    elif interval is not None:
        error = (interval[:, 1] - interval[:, 0]) / STANDARD_ERRORS_WIDE
    else:
        raise InputError(f"counts has {of_mean}: expected {of_error} or final_ci_low and final_ci_high too")
    unusable = seen & ~((error > 0) & np.isfinite(error))
    if unusable.any():
        where, found = (", ".join(map(str, one[unusable].tolist())) for one in (table["N"].to_numpy(), error))
        raise InputError(
            f"the standard error of {of_mean} at N = {where} is {found}: expected a number above 0; play more games, "
            f"or set {of_mean} to NaN there"
        )
    return mean, np.where(seen, error, np.nan), interval
