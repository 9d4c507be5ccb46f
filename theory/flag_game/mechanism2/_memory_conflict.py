"""The memory-conflict probe of [002]: its answers under Mechanism 2, and the table for the fit."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from meanfield import InputError
from meanfield.toolbox import column_whole_numbers, expect, one_of, read_csv, real_numbers, shown, whole_number

RESPONSES = ("private_evidence", "social_evidence", "other_private_compatible", "other_incompatible")
WEAK, STRONG = EVIDENCE = {"weak_private_evidence": "weak", "strong_private_evidence": "strong"}
RELATIONS = ("compatible", "incompatible")
N_COUNTRIES = 28
CELLS = ["model", "m", "private_evidence_strength", "social_evidence_relation", "social_memory_entries"]
KEYS = [*CELLS[:4], "target_memory_entries", CELLS[4]]
COUNTS = [f"{name}_count" for name in RESPONSES]
ALONE = "where evidence is strong nothing but the target fits the crop"


def memory_conflict_response(
    social_share: float | np.ndarray,
    *,
    evidence: str,
    relation: str,
    uptake: float,
    rewrite: float,
    compatible: float = 1.0,
    leak: float,
    similarity: float = 1.0,
    n_countries: int = N_COUNTRIES,
) -> Float[np.ndarray, "*share 4"]:
    """The probabilities of the four answers in the memory-conflict probe, from [002] Eqs. 5, 6, 10 and 11.

    An agent sees a crop and a memory of eight entries, a share r of them for a lure S and the others for the target T.
    In the equations it holds x = p, hears one message M = (1 - r) e_T + r e_S, and draws its answer from its new
    belief. The countries form four groups of equal labels, on which the equations close:

    - p has the weight 1 in T and the other countries compatible with the crop, and ε elsewhere. Under weak evidence
      there are n - 1 others, S among them if `relation` is 'compatible'; under strong evidence there are none.
    - C[k, l] = p[k] s[k, l], with s = 1 for k = l and σ otherwise. With σ = 1 a report only says to look at the crop
      again: C M is p, and v in Eq. 6 is (1 - α(1 - γ)) p + α(1 - γ) M, where α(1 - γ) is the part taken up literally.
      With σ = 0 a report stays as it is, and γ has no effect on a compatible one.

    Parameters
    ----------
    social_share
        r in [0, 1], any shape.
    evidence, relation
        'weak' or 'strong'; of the lure, 'compatible' or 'incompatible'.
    uptake, rewrite
        α and γ, in [0, 1].
    compatible
        n, the number of countries compatible with the crop under weak evidence, T among them; at least 2 with a
        compatible lure, at most `n_countries` - 1 with an incompatible one. A mean over trials need not be whole.
    leak
        ε in (0, 1], the weight of a country that does not fit the crop.
    similarity, n_countries
        σ in [0, 1], and K.

    Returns
    -------
    Probabilities of T, of S, of any other compatible and of any other incompatible country, in the last dim.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    fit : the parameters from a probe

    Examples
    --------
    An agent takes up half of what it is told. It rewrites nothing, or it fits every report to what it sees.

    >>> from theory.flag_game.mechanism2 import memory_conflict_response
    >>> given = {"evidence": "strong", "relation": "incompatible", "uptake": 0.5, "leak": 0.1}
    >>> memory_conflict_response(1.0, rewrite=0.0, **given).round(2)
    array([0.61, 0.23, 0.  , 0.16])
    >>> memory_conflict_response(1.0, rewrite=1.0, **given).round(2)
    array([0.79, 0.01, 0.  , 0.2 ])
    """
    shares = {"social_share": social_share, "uptake": uptake, "rewrite": rewrite, "similarity": similarity}
    for name, value in (shares | {"leak": leak, "compatible": compatible}).items():
        if not real_numbers(value, name).size:
            raise InputError(f"{name} = {shown(value)}: expected numbers")
        if name != "compatible" and not ((np.asarray(value) >= 0) & (np.asarray(value) <= 1)).all():
            raise InputError(f"{name} = {value!r}: expected from 0 to 1")
    whole_number("n_countries", n_countries, 2)
    for name, value, known in (("evidence", evidence, EVIDENCE.values()), ("relation", relation, RELATIONS)):
        one_of(name, value, known)
    if leak == 0:
        raise InputError("leak = 0: expected a number above 0, so that every answer is possible")
    least, most = (2, n_countries) if relation == "compatible" else (1, n_countries - 1)
    if evidence == "weak" and not least <= compatible <= most:
        raise InputError(f"compatible = {compatible}: expected from {least} to {most}")
    if evidence == "strong" and relation == "compatible":
        raise InputError(f"relation = 'compatible': {ALONE}")
    r = np.asarray(social_share, dtype=np.float64)
    others = 0.0 if evidence == "strong" else compatible - (2 if relation == "compatible" else 1)
    number = np.array([1.0, 1.0, others, n_countries - 2 - others])
    weight = np.array([1.0, 1.0 if relation == "compatible" else leak, 1.0, leak])
    return grounded_answers(r, weight, number, uptake, rewrite, similarity)


def grounded_answers(
    r: np.ndarray,
    weight: np.ndarray,
    number: np.ndarray,
    uptake: float | np.ndarray,
    rewrite: float | np.ndarray,
    similarity: float,
) -> np.ndarray:
    """Answer probabilities of four groups, each of `number` labels of anchor `weight`; the first are T and S.

    `weight` and `number` have shape (4,) or (..., 4); others are scalars or shaped like `r`.
    """
    alpha, gamma = np.asarray(uptake)[..., None], np.asarray(rewrite)[..., None]
    p = weight / (weight * number).sum(-1, keepdims=True)  # of one label
    message = np.zeros((*r.shape, 4))
    message[..., 0], message[..., 1] = 1 - r, r
    supported = p * (similarity + (1 - similarity) * message)
    # Positive, because the anchor leaks.
    rewritten = supported / (supported * number).sum(-1, keepdims=True)
    moved = (1 - alpha) * p + alpha * ((1 - gamma) * message + gamma * rewritten)
    grounded = moved * p * number
    return grounded / grounded.sum(-1, keepdims=True)


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
