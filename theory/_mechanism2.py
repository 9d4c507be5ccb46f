"""Mechanism 2 of [002] fitted to the memory-conflict probe: uptake α and compatibility rewrite γ, with intervals."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, stamp
from theory._mechanism2_likelihood import (
    Condition,
    chances_of,
    deviance_p_value,
    loss_of,
    make_condition,
    maximum,
    parameters,
    profile_interval,
    saturated,
)
from theory._memory_conflict import EVIDENCE, RELATIONS, RESPONSES, read_memory_conflict
from theory.flag_game._arguments import whole_number


def fit_mechanism2(
    probe: str | os.PathLike[str] | pd.DataFrame,
    *,
    similarity: float | None = 1.0,
    shared_uptake: bool = True,
    level: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Uptake and compatibility rewrite of each model from the memory-conflict probe, by maximum likelihood.

    The answers of a row are multinomial, with the chances of `memory_conflict_response`. In each condition (strength of
    the private evidence, bandwidth m) the parameters are α, γ by model, the leak ε of the crops' anchor and, where the
    evidence is weak, the number n of compatible countries: α is what a prompt asks for and n and ε are of the crops, so
    that models share them, and differ in γ.

    What the counts determine is the part that each model takes up literally, α(1 - γ). That α is shared and at most 1
    is what tells γ from it, as far as it is told: with `shared_uptake` off the intervals of α and γ run along the ridge
    where α(1 - γ) stays the same. Intervals are those of the profile likelihood, all other parameters free.

    Parameters
    ----------
    probe
        The table `memory_conflict_probe.csv`, or its path.
    similarity
        σ of the map C, or None to fit it as well, one for each condition.
    shared_uptake
        One α for all models in a condition; or one for each.
    level
        Confidence of the intervals.
    bootstrap
        Number of tables drawn from the fit and fitted again, for the p-value of the deviance; 0 for none. With counts
        of a dozen the deviance is not χ².
    seed
        Of these tables, at least 0.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over (model, evidence, bandwidth): `uptake`, `rewrite` and `literal` = α(1 - γ), each with `_interval`
    (..., bound); over (evidence, bandwidth): `compatible` (NaN where evidence is strong), `leak`, `similarity`,
    `log_likelihood` (without the multinomial coefficients), `deviance` from the saturated model, `n_parameters`, `aic`
    and `deviance_p_value` (NaN without bootstrap); and `count` and `predicted` over (model, evidence, bandwidth,
    relation, social_entries, response), NaN where there was no trial.

    Raises
    ------
    InputError
        If the table is not what it should be, or an argument is out of range.
    """
    if similarity is not None and not 0 <= similarity <= 1:
        raise InputError(f"similarity = {similarity}: expected a number from 0 to 1, or None")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: expected a number between 0 and 1")
    bootstrap, seed = whole_number("bootstrap", bootstrap, 0), whole_number("seed", seed, 0)
    table = read_memory_conflict(probe)
    models = list(dict.fromkeys(table["model"]))
    results = {}
    groups = [rows for _, rows in table.groupby(["private_evidence_strength", "m"], sort=False)]
    for rows in tqdm(groups, desc="conditions", disable=not progress, leave=False):
        strength, m = rows["private_evidence_strength"].iloc[0], int(rows["m"].iloc[0])
        if set(rows["model"]) != set(models):
            raise InputError(f"probe: {strength} with m = {m} lacks a model of {', '.join(models)}")
        condition = make_condition(rows, models, EVIDENCE[strength], similarity, shared_uptake)
        results[EVIDENCE[strength], m] = _fitted(condition, rows, models, level, bootstrap, seed)
    options = {"similarity": similarity, "shared_uptake": shared_uptake, "level": level, "bootstrap": bootstrap}
    return stamp(_assembled(results), "mechanism2", None, seed=seed, **options)


def _fitted(
    condition: Condition, rows: pd.DataFrame, models: list[str], level: float, bootstrap: int, seed: int
) -> xr.Dataset:
    best = maximum(condition)
    values = parameters(condition, best)
    by_model = {name: ("model", np.array(values[name])) for name in ("uptake", "rewrite", "literal")}
    for name in list(by_model):
        shared = name == "uptake" and condition.layout.names[0] == "uptake"
        ends = [profile_interval(condition, best, name, k, level) for k in range(1 if shared else len(models))]
        by_model[f"{name}_interval"] = (("model", "bound"), np.resize(ends, (len(models), 2)))
    log_likelihood = -loss_of(condition, best)
    free = int((condition.layout.lower < condition.layout.upper).sum())
    deviance = 2 * (saturated(condition.counts) - log_likelihood)
    single = {
        "compatible": values["compatible"],
        "leak": values["leak"],
        "similarity": values["similarity"],
        "log_likelihood": log_likelihood,
        "deviance": deviance,
        "n_parameters": free,
        "aic": 2 * (free - log_likelihood),
        "deviance_p_value": deviance_p_value(condition, best, deviance, bootstrap, seed),
    }
    result = xr.Dataset({**by_model, **{name: ((), value) for name, value in single.items()}})
    result = result.assign_coords(model=models, bound=["low", "high"])
    return result.merge(_table(condition, rows, best))


def _table(condition: Condition, rows: pd.DataFrame, best: np.ndarray) -> xr.Dataset:
    index = pd.MultiIndex.from_arrays(
        [rows["model"], rows["social_evidence_relation"], rows["social_memory_entries"]],
        names=["model", "relation", "social_entries"],
    )
    tables = {
        name: pd.DataFrame(values, index=index, columns=pd.Index(RESPONSES, name="response")).stack().to_xarray()
        for name, values in (("count", condition.counts), ("predicted", chances_of(condition, best)))
    }
    return xr.Dataset(tables).reindex(relation=list(RELATIONS), response=list(RESPONSES))


def _assembled(results: dict[tuple[str, int], xr.Dataset]) -> xr.Dataset:
    long_names = {
        "uptake": "social-evidence uptake, α",
        "rewrite": "compatibility rewrite, γ",
        "literal": "part taken up literally, α(1 - γ)",
        "compatible": "countries compatible with a weak crop, n",
        "leak": "anchor weight of an incompatible country, ε",
        "similarity": "similarity of two countries in the map, σ",
        "deviance_p_value": "share of tables drawn from the fit that it fits no better",
        "count": "answers",
        "predicted": "chance of the answer",
    }
    parts = [one.expand_dims(evidence=[e], bandwidth=[m]) for (e, m), one in results.items()]
    result = xr.merge(parts, join="outer", compat="no_conflicts")
    for name, text in long_names.items():
        result[name].attrs |= {"long_name": text, "units": "1"}
    return result
