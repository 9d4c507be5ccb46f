"""The likelihood of the memory-conflict probe under Mechanism 2 of [002], its maximum and its profiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeResult, brentq, minimize
from scipy.special import xlogy
from scipy.stats import chi2

from theory.flag_game.mechanism2._memory_conflict import (
    N_COUNTRIES,
    RELATIONS,
    RESPONSES,
    grounded_answers,
    social_share,
)

LEAST_LEAK = 1e-6
# Keeps the search off the corners where an answer that was given has no chance.
LEAST_CHANCE = 1e-12
SMALLEST = 1e-300
AT_BOUND = 1e-6
STARTS = 4  # points of a grid from which the search starts


class Layout(NamedTuple):
    """The parameters of a condition (strength of evidence, m) in the order of a vector, and their bounds."""

    names: list[str]  # of α, or one for each model, γ of each model, log ε, log n where evidence is weak, σ
    lower: np.ndarray
    upper: np.ndarray
    n_uptakes: int


class Condition(NamedTuple):
    """The rows of one condition: r, the model's number, whether the lure is compatible, and the counts (rows, 4)."""

    evidence: str
    r: np.ndarray
    model: np.ndarray
    lure_fits: np.ndarray
    counts: np.ndarray
    n_models: int
    layout: Layout


def make_condition(
    rows: pd.DataFrame,
    models: list[str],
    evidence: str,
    similarity: float | None,
    compatible: float | None,
    shared_uptake: bool,
) -> Condition:
    uptakes = ["uptake"] if shared_uptake else [f"uptake {name}" for name in models]
    bounds = dict.fromkeys([*uptakes, *(f"rewrite {name}" for name in models)], (0.0, 1.0))
    bounds["log leak"] = (np.log(LEAST_LEAK), 0.0)
    if evidence == "weak":
        ends = (2.0, N_COUNTRIES - 1.0) if compatible is None else (compatible, compatible)
        bounds["log compatible"] = (np.log(ends[0]), np.log(ends[1]))
    bounds["similarity"] = (0.0, 1.0) if similarity is None else (similarity, similarity)
    lower, upper = np.array(list(bounds.values())).T
    return Condition(
        evidence=evidence,
        r=social_share(rows),
        model=np.array([models.index(name) for name in rows["model"]]),
        lure_fits=rows["social_evidence_relation"].to_numpy() == RELATIONS[0],
        counts=rows[list(RESPONSES)].to_numpy(dtype=np.float64),
        n_models=len(models),
        layout=Layout(list(bounds), lower, upper, len(uptakes)),
    )


def n_free(condition: Condition) -> int:
    """Number of fitted parameters."""
    return int((condition.layout.lower < condition.layout.upper).sum())


def at_bound(condition: Condition, theta: np.ndarray) -> list[str]:
    """Names of the fitted parameters at an end of their range."""
    layout = condition.layout
    on_end = (theta - layout.lower < AT_BOUND) | (layout.upper - theta < AT_BOUND)
    fitted = layout.lower < layout.upper
    return [name.removeprefix("log ") for name, here in zip(layout.names, on_end & fitted, strict=True) if here]


def parameters(condition: Condition, theta: np.ndarray) -> dict[str, np.ndarray]:
    """The parameters: α and γ by model, and the others, from a vector in the condition's layout."""
    n_uptakes, n_models = condition.layout.n_uptakes, condition.n_models
    alpha, gamma, rest = np.split(theta, [n_uptakes, n_uptakes + n_models])
    return {
        "uptake": alpha * np.ones(n_models),
        "rewrite": gamma,
        "literal": alpha * (1 - gamma),
        "leak": np.exp(rest[0]),
        "compatible": np.exp(rest[1] if condition.evidence == "weak" else np.nan),
        "similarity": rest[-1],
    }


def chances_of(condition: Condition, theta: np.ndarray) -> np.ndarray:
    """The probabilities of the answers, shape (rows, 4)."""
    values = parameters(condition, theta)
    weight, number = np.ones_like(condition.counts), np.ones_like(condition.counts)
    weight[:, 1] = np.where(condition.lure_fits, 1.0, values["leak"])
    weight[:, 3] = values["leak"]
    number[:, 2] = values["compatible"] - 1 - condition.lure_fits if condition.evidence == "weak" else 0.0
    number[:, 3] = N_COUNTRIES - 2 - number[:, 2]
    alpha, gamma = values["uptake"][condition.model], values["rewrite"][condition.model]
    return grounded_answers(condition.r, weight, number, alpha, gamma, values["similarity"])


def loss_of(condition: Condition, theta: np.ndarray) -> float:
    """Minus the log-likelihood."""
    return -float(xlogy(condition.counts, np.maximum(chances_of(condition, theta), LEAST_CHANCE)).sum())


def _search(loss: Callable[[np.ndarray], float], start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    found: OptimizeResult = minimize(
        loss, np.clip(start, lower, upper), method="L-BFGS-B", bounds=list(zip(lower, upper, strict=True))
    )
    return found.x


def maximum(condition: Condition) -> np.ndarray:
    """The parameters of largest likelihood, searched from the best points of a grid."""
    layout = condition.layout
    tried = {"uptake": (0.5, 0.95), "rewrite": (0.05, 0.5), "log leak": (-4.0, -2.3)}
    tried |= {"log compatible": (1.6, 3.0), "similarity": (0.05, 0.8)}
    # 'uptake' and 'rewrite' may be followed by the name of a model
    grid = itertools.product(*(tried.get(name) or tried[name.split(" ")[0]] for name in layout.names))
    starts = np.unique(np.clip(np.array(list(grid)), layout.lower, layout.upper), axis=0)
    losses = np.array([loss_of(condition, start) for start in starts])
    best = starts[np.argsort(losses)[:STARTS]]
    found = [_search(lambda theta: loss_of(condition, theta), start, layout.lower, layout.upper) for start in best]
    return min(found, key=lambda theta: loss_of(condition, theta))


def profile_interval(
    condition: Condition, best: np.ndarray, name: str, model: int, level: float
) -> tuple[float, float]:
    """The values at which the likelihood, with all other parameters free, stays within the level's bound."""
    at = float(parameters(condition, best)[name][model])
    allowed = loss_of(condition, best) + chi2(1).ppf(level) / 2
    latest = {"theta": best}

    def excess(value: float) -> float:
        latest["theta"], loss = _held(condition, latest["theta"], best, name, model, value)
        return loss - allowed

    ends = []
    for bound in (0.0, 1.0):
        latest["theta"] = best
        if abs(at - bound) < 1e-9 or excess(bound) <= 0:
            ends.append(bound)
        else:
            latest["theta"] = best
            # Where the maximum is level with its own bound there is nothing to bracket but rounding.
            ends.append(brentq(lambda v: excess(v) if v != at else -1.0, at, bound, xtol=1e-4))
    return ends[0], ends[1]


def _held(
    condition: Condition, near: np.ndarray, best: np.ndarray, name: str, model: int, value: float
) -> tuple[np.ndarray, float]:
    """The best parameters with one of a model held at `value`, and their loss; searched from two points."""
    layout = condition.layout
    alpha, gamma = min(model, layout.n_uptakes - 1), layout.n_uptakes + model
    lower, upper = layout.lower.copy(), layout.upper.copy()

    def whole(theta: np.ndarray) -> np.ndarray:
        theta = theta.copy()
        if name == "literal":
            theta[gamma] = 1 - value / max(theta[alpha], SMALLEST)
        return theta

    held = {"uptake": alpha, "rewrite": gamma, "literal": gamma}[name]
    if name == "literal":
        lower[alpha] = value  # α(1 - γ) = value needs α ≥ value
    else:
        lower[held] = upper[held] = value
    found = [_search(lambda theta: loss_of(condition, whole(theta)), start, lower, upper) for start in (near, best)]
    full = min((whole(theta) for theta in found), key=lambda theta: loss_of(condition, theta))
    return full, loss_of(condition, full)


def saturated(counts: np.ndarray) -> float:
    return float(xlogy(counts, counts / counts.sum(1, keepdims=True)).sum())


def deviance_p_value(condition: Condition, best: np.ndarray, deviance: float, bootstrap: int, seed: int) -> float:
    """The share of tables drawn from the fit that it fits no better."""
    if bootstrap == 0:
        return np.nan
    rng = np.random.default_rng(seed)
    layout = condition.layout
    chances, trials = chances_of(condition, best), condition.counts.sum(1).astype(int)
    worse = 0
    for _ in range(bootstrap):
        drawn = condition._replace(counts=rng.multinomial(trials, chances).astype(np.float64))
        theta = _search(lambda theta, drawn=drawn: loss_of(drawn, theta), best, layout.lower, layout.upper)
        worse += 2 * (saturated(drawn.counts) + loss_of(drawn, theta)) >= deviance
    return (1 + worse) / (1 + bootstrap)
