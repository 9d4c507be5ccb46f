"""The table for the fit of Mechanism 2: made of memory-conflict probes that were played, and read."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import column_whole_numbers, expect, read_csv, shown
from theory.flag_game.mechanism2._memory_conflict import ALONE, EVIDENCE, RELATIONS, RESPONSES

WEAK, STRONG = EVIDENCE
CELLS = ["model", "m", "private_evidence_strength", "social_evidence_relation", "social_memory_entries"]
KEYS = [*CELLS[:4], "target_memory_entries", CELLS[4]]
COUNTS = [f"{name}_count" for name in RESPONSES]


def memory_conflict_table(probes: Sequence[xr.Dataset], compatibility: Sequence[xr.DataArray]) -> pd.DataFrame:
    """The table that `theory.flag_game.mechanism2.fit` takes, from probes that `policy_extraction.flag_game` played.

    A country is compatible with the shown crop if p > 0. Evidence is strong if only the target is compatible, else
    weak. Probes of the same condition are added up. Source: [002] Appendix D.

    Parameters
    ----------
    probes
        Results of `probe_memory_conflict`.
    compatibility
        For each probe p over `country` for its crop, as `crop_compatibility(target).isel(crop=…)` without noise; with
        noise every country would be compatible.

    Returns
    -------
    DataFrame, one row for each model, m, strength of evidence, relation of the lure and number of its entries, with the
    columns of the published `memory_conflict_probe.csv` that `theory.flag_game.mechanism2.fit` reads.

    Raises
    ------
    InputError
        If the numbers of probes and rows of compatibility differ, an answer is not among the countries, or the target
        is not compatible with its crop.

    See Also
    --------
    fit : takes the table

    Examples
    --------
    An agent that answers as its last memory says, which names the target or the lure. Only France fits its crop.

    >>> from policy_extraction.flag_game import StandIn, probe_memory_conflict
    >>> from theory.flag_game.mechanism2 import memory_conflict_table
    >>> crop, p = theory.flag_game.png(np.zeros((1, 1, 3), np.uint8)), [1.0, 0.0]
    >>> agent = StandIn({crop: p}, ("France", "Peru"), uptake=1.0, grounded=False)
    >>> options = {"target": "France", "lure": "Peru", "entries": 1, "trials": 10, "seed": 1}
    >>> probe = probe_memory_conflict(agent, crop, agent.countries, **options)
    >>> table = memory_conflict_table([probe], [xr.DataArray(p, coords={"country": list(agent.countries)})])
    >>> table[["social_memory_entries", "private_evidence_count", "social_evidence_count"]].values.tolist()
    [[0, 10, 0], [1, 0, 10]]
    """
    for name, given in (("probes", probes), ("compatibility", compatibility)):
        if isinstance(given, str) or not hasattr(given, "__len__") or getattr(given, "ndim", 1) == 0:
            raise InputError(f"{name} = {shown(given)}: expected a list")
    if not probes or len(probes) != len(compatibility):
        raise InputError(f"compatibility has {len(compatibility)} rows: expected {len(probes)}, one for each probe")
    rows = pd.concat([_rows(probe, p) for probe, p in zip(probes, compatibility, strict=True)])
    return rows.groupby(KEYS, sort=False).sum().reset_index()


def _rows(probe: xr.Dataset, compatibility: xr.DataArray) -> pd.DataFrame:
    expect(probe, "memory_conflict", "probes")
    if not isinstance(compatibility, xr.DataArray) or compatibility.dims != ("country",):
        raise InputError("compatibility: expected for each probe a DataArray over country, the row of its crop")
    countries, answers = (one.values.astype(str) for one in (compatibility["country"], probe["answer"]))
    target, lure = (str(probe.attrs[f"option_{name}"]) for name in ("target", "lure"))
    unknown = sorted({target, lure, *answers.ravel()} - set(countries))
    if unknown:
        raise InputError(f"compatibility lacks {unknown[0]}: expected a value for each country that is named")
    compatible = set(countries[compatibility.values > 0])
    if target not in compatible:
        raise InputError(f"compatibility of {target}, the target, is 0: expected the row of the crop that was shown")
    entries, fitting = probe["social_entries"].values, np.isin(answers, sorted(compatible))
    is_target, is_lure = answers == target, answers == lure
    other = ~is_target & ~is_lure
    counts = (is_target, is_lure, other & fitting, other & ~fitting)
    return pd.DataFrame(
        {
            "model": str(probe["model"].item()),
            "m": int(probe.attrs["option_m"]),
            "private_evidence_strength": WEAK if len(compatible) > 1 else STRONG,
            "social_evidence_relation": RELATIONS[lure not in compatible],
            "target_memory_entries": int(probe.attrs["option_entries"]) - entries,
            "social_memory_entries": entries,
            "n_trials": answers.shape[1],
        }
        | {name: which.sum(1) for name, which in zip(COUNTS, counts, strict=True)}
    )


def read_memory_conflict(probe: str | os.PathLike[str] | pd.DataFrame) -> pd.DataFrame:
    """The probe's table, with the columns of KEYS and COUNTS; InputError says why it can't be one."""
    if not isinstance(probe, (str, os.PathLike, pd.DataFrame)):
        raise InputError(f"probe is a {type(probe).__name__}: expected the table of memory_conflict_table, or its path")
    table = probe if isinstance(probe, pd.DataFrame) else read_csv(probe, "probe")
    missing = [name for name in [*KEYS, "n_trials", *COUNTS] if name not in table]
    if missing or table.empty:
        raise InputError(f"probe lacks the columns {', '.join(missing)}" if missing else "probe has no rows")
    nameless = table["model"].isna().to_numpy()
    if nameless.any():
        raise InputError(f"probe: model is missing in row {int(nameless.argmax())}")
    numbers = ["m", "target_memory_entries", "social_memory_entries", "n_trials", *COUNTS]
    table = table.assign(**{name: column_whole_numbers(table, name, int(name == "m"), "probe: ") for name in numbers})
    wrong = table[COUNTS].to_numpy().sum(1) != table["n_trials"].to_numpy()
    if wrong.any():
        raise InputError(f"probe: counts of the row {int(wrong.argmax())} do not sum to its n_trials")
    for column, known in (("private_evidence_strength", EVIDENCE), ("social_evidence_relation", RELATIONS)):
        unknown = sorted(set(table[column]) - set(known), key=str)
        if unknown:
            raise InputError(f"probe: {column} = {unknown[0]!r}, expected one of {', '.join(known)}")
    if table.duplicated(KEYS).any():
        raise InputError("probe: a condition occurs twice")
    # Results have no dim for the entries of the target.
    for rows in table.groupby(CELLS, sort=False).indices.values():
        if len(rows) > 1:
            values = table["target_memory_entries"].iloc[rows[:2]].tolist()
            raise InputError(
                f"probe: rows {rows[0]} and {rows[1]} differ in target_memory_entries = {values} alone: expected one "
                "row for each model, m, strength, relation and social_memory_entries"
            )
    if (table[["target_memory_entries", "social_memory_entries"]].to_numpy().sum(1) == 0).any():
        raise InputError("probe: expected at least one memory entry in each row")
    strong = table[table["private_evidence_strength"] == STRONG]
    if (strong["social_evidence_relation"].to_numpy() == RELATIONS[0]).any():
        raise InputError(f"probe: social_evidence_relation = 'compatible' under strong evidence: {ALONE}")
    if (strong[COUNTS[2]].to_numpy() > 0).any():
        raise InputError(f"probe: {COUNTS[2]} above 0 under strong evidence: {ALONE}")
    return table
