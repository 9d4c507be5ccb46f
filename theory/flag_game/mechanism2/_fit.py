"""Mechanism 2 of [002] fitted to the memory-conflict probe: uptake α and compatibility rewrite γ, with intervals."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from copy import copy

import numpy as np
import pandas as pd
import xarray as xr
from scipy.optimize import brentq, minimize
from scipy.special import xlogy
from scipy.stats import chi2
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import check_level, check_memory, real_number, stamp, whole_number
from theory.flag_game.mechanism2._memory_conflict import (
    COUNTS,
    EVIDENCE,
    N_COUNTRIES,
    RELATIONS,
    RESPONSES,
    WEAK,
    grounded_answers,
    read_memory_conflict,
)

LEAST_LEAK = 1e-6
# Keeps the search off the corners where an answer that was given has probability 0.
LEAST_CHANCE = 1e-12
SMALLEST = 1e-300
STARTS = 4  # points of a grid from which the search starts
GRID = {"uptake": (0.5, 0.95), "rewrite": (0.05, 0.5), "log leak": (-4.0, -2.3)}
GRID |= {"log compatible": (1.6, 3.0), "similarity": (0.05, 0.8)}
AT_BOUND = 1e-6
LONG_NAMES = {
    "uptake": "social-evidence uptake, α",
    "rewrite": "compatibility rewrite, γ",
    "literal": "part taken up literally, α(1 - γ)",
    "compatible": "countries compatible with a weak crop, n",
    "leak": "anchor weight of an incompatible country, ε",
    "similarity": "similarity of two countries in the map, σ",
    "aic_similarity_fitted": "AIC with the similarity fitted as well",
    "deviance_p_value": "share of tables drawn from the fit that it fits no better",
    "count": "answers",
    "predicted": "probability of the answer",
}


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
    bootstrap, seed
        Number of tables drawn from the fit and fitted again, for the p-value of the deviance, 0 for none; and their
        seed, at least 0. With counts of a dozen the deviance is not χ².
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
    memory_conflict_response : the fitted response

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
    parts = []
    groups = [rows for _, rows in table.groupby(["private_evidence_strength", "m"], sort=False)]
    for rows in tqdm(groups, desc="conditions", disable=not progress, leave=False):
        strength, m = rows["private_evidence_strength"].iloc[0], int(rows["m"].iloc[0])
        if set(rows["model"]) != set(models):
            raise InputError(f"probe: {strength} with m = {m} lacks a model of {', '.join(models)}")
        condition, free = (_Condition(rows, models, one, compatible, shared_uptake) for one in (similarity, None))
        one = _fitted(condition, rows, models, level, bootstrap, seed)
        aic = one["aic"].item() if similarity is None else free.aic(_maximum(free))
        parts.append(one.assign(aic_similarity_fitted=aic).expand_dims(evidence=[EVIDENCE[strength]], bandwidth=[m]))
    result = xr.merge(parts, join="outer", compat="no_conflicts")
    told = {"long_name": "fitted parameters at an end of their range"}
    result["at_bound"] = result["at_bound"].fillna("").astype(str).assign_attrs(told)
    for name, text in LONG_NAMES.items():
        result[name].attrs |= {"long_name": text, "units": "1"}
    held = {"similarity": similarity, "compatible": compatible}
    options = {"shared_uptake": shared_uptake, "level": level, "seed": seed, "bootstrap": bootstrap}
    result = stamp(result, "mechanism2", None, **held, **options)
    given = ", ".join(f"{name} = {value:g}, not fitted" for name, value in held.items() if value is not None)
    return result.assign_attrs(intervals="profile likelihood" + (f", given {given}" if given else ""))


def _fitted(
    condition: _Condition, rows: pd.DataFrame, models: list[str], level: float, bootstrap: int, seed: int
) -> xr.Dataset:
    best = _maximum(condition)
    values, deviance, chances = condition.parameters(best), condition.deviance(best), condition.chances(best)
    found = {name: ("model", np.array(values[name])) for name in ("uptake", "rewrite", "literal")}
    for name in list(found):
        shared = name == "uptake" and condition.n_uptakes == 1
        ends = [_profile_interval(condition, best, name, k, level) for k in range(1 if shared else len(models))]
        found[f"{name}_interval"] = (("model", "bound"), np.resize(ends, (len(models), 2)))
    single = {name: values[name] for name in ("compatible", "leak", "similarity")}
    single |= {"log_likelihood": -condition.loss(best), "deviance": deviance, "n_parameters": int(condition.free.sum())}
    on_end = condition.free & ((best - condition.lower < AT_BOUND) | (condition.upper - best < AT_BOUND))
    at_bound = [name.removeprefix("log ") for name, here in zip(condition.names, on_end, strict=True) if here]
    single |= {"aic": condition.aic(best), "at_bound": ", ".join(at_bound)}
    rng, trials, worse, drawn = np.random.default_rng(seed), condition.counts.sum(1).astype(int), 0, copy(condition)
    for _ in range(bootstrap):  # tables drawn from the fit
        drawn.counts = rng.multinomial(trials, chances).astype(np.float64)
        worse += drawn.deviance(_least(drawn.loss, best, drawn.lower, drawn.upper)) >= deviance
    single |= {"deviance_p_value": (1 + worse) / (1 + bootstrap) if bootstrap else np.nan}
    over = [rows["model"], rows["social_evidence_relation"], rows["social_memory_entries"]]
    index = pd.MultiIndex.from_arrays(over, names=["model", "relation", "social_entries"])
    columns = pd.Index(RESPONSES, name="response")
    tables = {
        name: pd.DataFrame(values, index=index, columns=columns).stack().to_xarray()
        for name, values in (("count", condition.counts), ("predicted", chances))
    }
    answers = xr.Dataset(tables).reindex(relation=list(RELATIONS), response=list(RESPONSES))
    return xr.Dataset(found | single, {"model": models, "bound": ["low", "high"]}).merge(answers)


class _Condition:
    """The rows of one condition (strength of evidence, m), and its parameters in the order of a vector.

    The parameters are α, or one for each model, γ of each model, log ε, log n where evidence is weak, and σ.
    """

    def __init__(
        self,
        rows: pd.DataFrame,
        models: list[str],
        similarity: float | None,
        compatible: float | None,
        shared_uptake: bool,
    ) -> None:
        self.weak = rows["private_evidence_strength"].iloc[0] == WEAK
        uptakes = ["uptake"] if shared_uptake else [f"uptake {name}" for name in models]
        bounds = dict.fromkeys([*uptakes, *(f"rewrite {name}" for name in models)], (0.0, 1.0))
        bounds["log leak"] = (np.log(LEAST_LEAK), 0.0)
        if self.weak:
            bounds["log compatible"] = tuple(np.log([compatible or 2.0, compatible or N_COUNTRIES - 1.0]))
        bounds["similarity"] = (0.0, 1.0) if similarity is None else (similarity, similarity)
        self.names, (self.lower, self.upper) = list(bounds), np.array(list(bounds.values())).T
        self.free = self.lower < self.upper  # the fitted ones
        self.n_uptakes, self.n_models = len(uptakes), len(models)
        social = rows["social_memory_entries"].to_numpy(dtype=np.float64)
        self.r = social / (social + rows["target_memory_entries"].to_numpy())
        self.model = np.array([models.index(name) for name in rows["model"]])
        self.lure_fits = rows["social_evidence_relation"].to_numpy() == RELATIONS[0]
        self.counts = rows[COUNTS].to_numpy(dtype=np.float64)

    def parameters(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """α, γ and α(1 - γ) by model, and the others, from a vector."""
        alpha, gamma, rest = np.split(theta, [self.n_uptakes, self.n_uptakes + self.n_models])
        by_model = {"uptake": alpha * np.ones(self.n_models), "rewrite": gamma, "literal": alpha * (1 - gamma)}
        number = np.exp(rest[1] if self.weak else np.nan)
        return by_model | {"leak": np.exp(rest[0]), "compatible": number, "similarity": rest[-1]}

    def chances(self, theta: np.ndarray) -> np.ndarray:
        """The probabilities of the answers, shape (rows, 4)."""
        values = self.parameters(theta)
        weight, number = np.ones_like(self.counts), np.ones_like(self.counts)
        weight[:, 1] = np.where(self.lure_fits, 1.0, values["leak"])
        weight[:, 3] = values["leak"]
        number[:, 2] = values["compatible"] - 1 - self.lure_fits if self.weak else 0.0
        number[:, 3] = N_COUNTRIES - 2 - number[:, 2]
        alpha, gamma = values["uptake"][self.model], values["rewrite"][self.model]
        return grounded_answers(self.r, weight, number, alpha, gamma, values["similarity"])

    def loss(self, theta: np.ndarray) -> float:
        """Minus the log-likelihood."""
        return -float(xlogy(self.counts, np.maximum(self.chances(theta), LEAST_CHANCE)).sum())

    def deviance(self, theta: np.ndarray) -> float:
        """From the saturated model."""
        return 2 * (float(xlogy(self.counts, self.counts / self.counts.sum(1, keepdims=True)).sum()) + self.loss(theta))

    def aic(self, theta: np.ndarray) -> float:
        return 2 * (int(self.free.sum()) + self.loss(theta))


def _least(loss: Callable[[np.ndarray], float], start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    bounds = list(zip(lower, upper, strict=True))
    return minimize(loss, np.clip(start, lower, upper), method="L-BFGS-B", bounds=bounds).x


def _maximum(condition: _Condition) -> np.ndarray:
    """The parameters of largest likelihood, searched from the best points of a grid."""
    # 'uptake' and 'rewrite' may be followed by the name of a model
    grid = itertools.product(*(GRID.get(name) or GRID[name.split(" ")[0]] for name in condition.names))
    starts = np.unique(np.clip(np.array(list(grid)), condition.lower, condition.upper), axis=0)
    best = starts[np.argsort([condition.loss(start) for start in starts])[:STARTS]]
    found = [_least(condition.loss, start, condition.lower, condition.upper) for start in best]
    return min(found, key=condition.loss)


def _profile_interval(condition: _Condition, best: np.ndarray, name: str, model: int, level: float) -> list[float]:
    """The values at which the likelihood, with all other parameters free, stays within the level's bound."""
    at = float(condition.parameters(best)[name][model])
    allowed = condition.loss(best) + chi2(1).ppf(level) / 2
    alpha, gamma = min(model, condition.n_uptakes - 1), condition.n_uptakes + model
    near = best

    def excess(value: float) -> float:
        """The loss above the bound with the parameter held at `value`, searched from two points."""
        nonlocal near
        lower, upper = condition.lower.copy(), condition.upper.copy()
        if name == "literal":
            lower[alpha] = value  # α(1 - γ) = value needs α ≥ value
        else:
            held = alpha if name == "uptake" else gamma
            lower[held] = upper[held] = value

        def whole(theta: np.ndarray) -> np.ndarray:
            theta = theta.copy()
            if name == "literal":
                theta[gamma] = 1 - value / max(theta[alpha], SMALLEST)
            return theta

        found = [_least(lambda theta: condition.loss(whole(theta)), start, lower, upper) for start in (near, best)]
        near = min(map(whole, found), key=condition.loss)
        return condition.loss(near) - allowed

    ends = []
    for bound in (0.0, 1.0):
        near = best
        inside = abs(at - bound) < 1e-9 or excess(bound) <= 0
        near = best
        # Where the maximum is level with its own bound there is nothing to bracket but rounding.
        ends.append(bound if inside else brentq(lambda v: excess(v) if v != at else -1.0, at, bound, xtol=1e-4))
    return ends
