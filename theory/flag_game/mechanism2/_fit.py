"""Mechanism 2 of [002] fitted to the memory-conflict probe: uptake α and compatibility rewrite γ, with intervals."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import check_level, check_memory, real_number, stamp, whole_number
from theory.flag_game.mechanism2._likelihood import (
    Condition,
    at_bound,
    chances_of,
    deviance_p_value,
    loss_of,
    make_condition,
    maximum,
    n_free,
    parameters,
    profile_interval,
    saturated,
)
from theory.flag_game.mechanism2._memory_conflict import (
    EVIDENCE,
    N_COUNTRIES,
    RELATIONS,
    RESPONSES,
    read_memory_conflict,
)


def fit(
    probe: str | os.PathLike[str] | pd.DataFrame,
    *,
    similarity: float | None = 1.0,
    compatible: float | None = None,
    shared_uptake: bool = True,
    level: float = 0.95,
    bootstrap: int = 0,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Uptake α and compatibility rewrite γ of each model from the memory-conflict probe, by maximum likelihood.

    The answers of a row are multinomial, with the probabilities of `memory_conflict_response`. Each condition (strength
    of the private evidence, bandwidth m) has as parameters α, a γ for each model, the leak ε of the crops' anchor and,
    under weak evidence, the number n of compatible countries. Models share α, which the prompt asks for, and ε and n,
    which belong to the crops.

    The counts determine the part that each model takes up literally, α(1 - γ). Only the shared α ≤ 1 separates γ from
    it; without `shared_uptake` the intervals of α and γ run along the ridge of constant α(1 - γ). Intervals are of the
    profile likelihood, all other fitted parameters free.

    Intervals hold for the given `similarity` σ, which by default is not fitted: compare `aic` with
    `aic_similarity_fitted` before you believe one. Under strong evidence the published probe rejects σ = 1: with σ
    fitted the AIC falls from 136.5 to 121.5 at m = 1 and from 118.3 to 102.8 at m = 3, σ goes to 0.02, and γ of both
    models to 1. Under weak evidence σ stays at 1, but the interval of GPT-5.4's γ then reaches 0.6 or 0.7, not 0.3.
    There the counts do not bound n from above: it goes to the end of its range, 27 of 28 countries, see `at_bound`.
    With n held at 10.0, the mean over crops that leave more than one country, the log-likelihood falls by 2.0 and 1.5,
    and GPT-5.4's γ goes from 0.26 to 0.31 and from 0.22 to 0.25.

    Parameters
    ----------
    probe
        The table `memory_conflict_probe.csv` or its path, or the result of `memory_conflict_table`.
    similarity
        σ of the map C; None fits one for each condition.
    compatible
        n under weak evidence, from 2 to 27, such as the mean number of countries that `crop_compatibility` leaves to
        the crops of the probe; None fits it.
    shared_uptake
        One α for all models in a condition, or else one for each.
    level
        Confidence of the intervals.
    bootstrap
        Number of tables drawn from the fit and fitted again, for the p-value of the deviance; 0 for none. With counts
        of a dozen the deviance is not χ².
    seed
        Seed of these tables, at least 0.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset with

    - over (model, evidence, bandwidth): `uptake`, `rewrite` and `literal` = α(1 - γ), each with `_interval`
      (..., bound);
    - over (evidence, bandwidth): `compatible` (NaN under strong evidence), `leak`, `similarity`, `log_likelihood`
      (without the multinomial coefficients), `deviance` from the saturated model, `n_parameters`, `aic`,
      `aic_similarity_fitted` (with σ fitted too), `at_bound`, the fitted parameters at an end of their range, and
      `deviance_p_value` (NaN without bootstrap);
    - over (model, evidence, bandwidth, relation, social_entries, response): `count` and `predicted`, NaN if not tried.

    attrs["intervals"] names the parameters that the intervals hold fixed.

    Raises
    ------
    InputError
        If the table is not as described, or an argument is out of range.

    See Also
    --------
    memory_conflict_table : the table from probes
    memory_conflict_response : the fitted law

    Examples
    --------
    Counts that the mechanism would give with α(1 - γ) = 0.6 give it back.

    >>> from theory.flag_game.mechanism2 import fit, memory_conflict_response
    >>> entries, law = np.arange(9), {"evidence": "strong", "relation": "incompatible", "leak": 0.05}
    >>> counts = (1000 * memory_conflict_response(entries / 8, uptake=0.6, rewrite=0, **law)).round().astype(int)
    >>> answers = ["private_evidence", "social_evidence", "other_private_compatible", "other_incompatible"]
    >>> table = pd.DataFrame(counts, columns=[f"{answer}_count" for answer in answers]).assign(
    ...     model="a model", m=1, private_evidence_strength="strong_private_evidence", n_trials=counts.sum(1),
    ...     social_evidence_relation="incompatible", social_memory_entries=entries, target_memory_entries=8 - entries,
    ... )
    >>> fit(table)["literal"].values.round(2).tolist()
    [[[0.6]]]
    """
    for name, value, least, most in (("similarity", similarity, 0, 1), ("compatible", compatible, 2, N_COUNTRIES - 1)):
        if value is not None:
            real_number(name, value, least=least, most=most)
    check_level(level)
    bootstrap, seed = whole_number("bootstrap", bootstrap, 0), whole_number("seed", seed, 0)
    check_memory(16 * bootstrap, f"bootstrap = {bootstrap}", "fewer of them")
    table = read_memory_conflict(probe)
    models = list(dict.fromkeys(table["model"]))
    results = {}
    groups = [rows for _, rows in table.groupby(["private_evidence_strength", "m"], sort=False)]
    for rows in tqdm(groups, desc="conditions", disable=not progress, leave=False):
        strength, m = rows["private_evidence_strength"].iloc[0], int(rows["m"].iloc[0])
        if set(rows["model"]) != set(models):
            raise InputError(f"probe: {strength} with m = {m} lacks a model of {', '.join(models)}")
        parts = [
            make_condition(rows, models, EVIDENCE[strength], sigma, compatible, shared_uptake)
            for sigma in (similarity, None)
        ]
        one = _fitted(parts[0], rows, models, level, bootstrap, seed)
        with_similarity = float(one["aic"]) if similarity is None else _aic(parts[1], maximum(parts[1]))
        results[EVIDENCE[strength], m] = one.assign(aic_similarity_fitted=with_similarity)
    options = {"similarity": similarity, "compatible": compatible, "shared_uptake": shared_uptake, "level": level}
    result = stamp(_assembled(results), "mechanism2", None, seed=seed, bootstrap=bootstrap, **options)
    held = {"similarity": similarity, "compatible": compatible}
    given = ", ".join(f"{name} = {value:g}, not fitted" for name, value in held.items() if value is not None)
    return result.assign_attrs(intervals="profile likelihood" + (f", given {given}" if given else ""))


def _aic(condition: Condition, best: np.ndarray) -> float:
    return 2 * (n_free(condition) + loss_of(condition, best))


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
    deviance = 2 * (saturated(condition.counts) - log_likelihood)
    single = {
        "compatible": values["compatible"],
        "leak": values["leak"],
        "similarity": values["similarity"],
        "log_likelihood": log_likelihood,
        "deviance": deviance,
        "n_parameters": n_free(condition),
        "aic": _aic(condition, best),
        "at_bound": ", ".join(at_bound(condition, best)),
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
        "aic_similarity_fitted": "AIC with the similarity fitted as well",
        "deviance_p_value": "share of tables drawn from the fit that it fits no better",
        "count": "answers",
        "predicted": "chance of the answer",
    }
    parts = [one.expand_dims(evidence=[e], bandwidth=[m]) for (e, m), one in results.items()]
    result = xr.merge(parts, join="outer", compat="no_conflicts")
    result["at_bound"] = (
        result["at_bound"].fillna("").astype(str).assign_attrs(long_name="fitted parameters at an end of their range")
    )
    for name, text in long_names.items():
        result[name].attrs |= {"long_name": text, "units": "1"}
    return result
