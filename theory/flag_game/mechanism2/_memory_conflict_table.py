"""The table for the fit of Mechanism 2, from memory-conflict probes that were played."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import expect, shown
from theory.flag_game.mechanism2._memory_conflict import EVIDENCE, KEYS, RELATIONS, RESPONSES

WEAK, STRONG = EVIDENCE


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
    countries = compatibility["country"].values.astype(str)
    fits = compatibility.values > 0
    target, lure = (str(probe.attrs[f"option_{name}"]) for name in ("target", "lure"))
    answers = probe["answer"].values.astype(str)
    unknown = sorted(({target, lure} | set(answers.ravel())) - set(countries))
    if unknown:
        raise InputError(f"compatibility lacks {unknown[0]}: expected a value for each country that is named")
    compatible = set(countries[fits])
    if target not in compatible:
        raise InputError(f"compatibility of {target}, the target, is 0: expected the row of the crop that was shown")
    entries = probe["social_entries"].values
    fitting = np.isin(answers, sorted(compatible))
    is_target, is_lure = answers == target, answers == lure
    other = ~is_target & ~is_lure
    counts = (is_target, is_lure, other & fitting, other & ~fitting)
    return pd.DataFrame(
        {
            "model": str(probe["model"].item()),
            "m": int(probe.attrs["option_m"]),
            "private_evidence_strength": WEAK if len(compatible) > 1 else STRONG,
            "social_evidence_relation": RELATIONS[0] if lure in compatible else RELATIONS[1],
            "target_memory_entries": int(probe.attrs["option_entries"]) - entries,
            "social_memory_entries": entries,
            "n_trials": answers.shape[1],
        }
        | {f"{name}_count": which.sum(1) for name, which in zip(RESPONSES, counts, strict=True)}
    )
