"""The likelihood of the memory-conflict probe under Mechanism 2 of [002], its maximum and its profiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.optimize import brentq, minimize
from scipy.special import xlogy
from scipy.stats import chi2

from theory.flag_game.mechanism2._memory_conflict import N_COUNTRIES, RELATIONS, grounded_answers
from theory.flag_game.mechanism2._memory_conflict_table import COUNTS, WEAK

LEAST_LEAK = 1e-6
# Keeps the search off the corners where an answer that was given has probability 0.
LEAST_CHANCE = 1e-12
SMALLEST = 1e-300
AT_BOUND = 1e-6
STARTS = 4  # points of a grid from which the search starts
GRID = {"uptake": (0.5, 0.95), "rewrite": (0.05, 0.5), "log leak": (-4.0, -2.3)}
GRID |= {"log compatible": (1.6, 3.0), "similarity": (0.05, 0.8)}


@dataclass(frozen=True)
class Condition:
    """The rows of one condition (strength of evidence, m), and its parameters in the order of a vector.

    The parameters are α, or one for each model, γ of each model, log ε, log n where evidence is weak, and σ.
    """

    weak: bool
    r: np.ndarray  # (rows,)
    model: np.ndarray  # (rows,), its number
    lure_fits: np.ndarray  # (rows,), whether the lure is compatible
    counts: np.ndarray  # (rows, 4)
    names: list[str]  # of the parameters
    lower: np.ndarray  # their bounds
    upper: np.ndarray
    n_uptakes: int
    n_models: int

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        models: list[str],
        similarity: float | None,
        compatible: float | None,
        shared_uptake: bool,
    ) -> Condition:
        weak = rows["private_evidence_strength"].iloc[0] == WEAK
        uptakes = ["uptake"] if shared_uptake else [f"uptake {name}" for name in models]
        bounds = dict.fromkeys([*uptakes, *(f"rewrite {name}" for name in models)], (0.0, 1.0))
        bounds["log leak"] = (np.log(LEAST_LEAK), 0.0)
        if weak:
            bounds["log compatible"] = tuple(np.log([compatible or 2.0, compatible or N_COUNTRIES - 1.0]))
        bounds["similarity"] = (0.0, 1.0) if similarity is None else (similarity, similarity)
        social = rows["social_memory_entries"].to_numpy(dtype=np.float64)
        return cls(
            weak,
            social / (social + rows["target_memory_entries"].to_numpy()),
            np.array([models.index(name) for name in rows["model"]]),
            rows["social_evidence_relation"].to_numpy() == RELATIONS[0],
            rows[COUNTS].to_numpy(dtype=np.float64),
            list(bounds),
            *np.array(list(bounds.values())).T,
            len(uptakes),
            len(models),
        )

    @property
    def free(self) -> np.ndarray:
        """Which parameters are fitted."""
        return self.lower < self.upper

    def at_bound(self, theta: np.ndarray) -> list[str]:
        """Names of the fitted parameters at an end of their range."""
        on_end = self.free & ((theta - self.lower < AT_BOUND) | (self.upper - theta < AT_BOUND))
        return [name.removeprefix("log ") for name, here in zip(self.names, on_end, strict=True) if here]

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

    def aic(self, theta: np.ndarray) -> float:
        return 2 * (int(self.free.sum()) + self.loss(theta))


def _least(loss: Callable[[np.ndarray], float], start: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    bounds = list(zip(lower, upper, strict=True))
    return minimize(loss, np.clip(start, lower, upper), method="L-BFGS-B", bounds=bounds).x


def maximum(condition: Condition) -> np.ndarray:
    """The parameters of largest likelihood, searched from the best points of a grid."""
    # 'uptake' and 'rewrite' may be followed by the name of a model
    grid = itertools.product(*(GRID.get(name) or GRID[name.split(" ")[0]] for name in condition.names))
    starts = np.unique(np.clip(np.array(list(grid)), condition.lower, condition.upper), axis=0)
    best = starts[np.argsort([condition.loss(start) for start in starts])[:STARTS]]
    found = [_least(condition.loss, start, condition.lower, condition.upper) for start in best]
    return min(found, key=condition.loss)


def profile_interval(condition: Condition, best: np.ndarray, name: str, model: int, level: float) -> list[float]:
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
        if abs(at - bound) < 1e-9 or excess(bound) <= 0:
            ends.append(bound)
        else:
            near = best
            # Where the maximum is level with its own bound there is nothing to bracket but rounding.
            ends.append(brentq(lambda v: excess(v) if v != at else -1.0, at, bound, xtol=1e-4))
    return ends


def saturated(counts: np.ndarray) -> float:
    """The largest log-likelihood of any probabilities."""
    return float(xlogy(counts, counts / counts.sum(1, keepdims=True)).sum())


def p_value(condition: Condition, best: np.ndarray, deviance: float, bootstrap: int, seed: int) -> float:
    """The share of tables drawn from the fit that it fits no better; NaN without any."""
    rng = np.random.default_rng(seed)
    chances, trials = condition.chances(best), condition.counts.sum(1).astype(int)
    worse = 0
    for _ in range(bootstrap):
        drawn = replace(condition, counts=rng.multinomial(trials, chances).astype(np.float64))
        least = drawn.loss(_least(drawn.loss, best, drawn.lower, drawn.upper))
        worse += 2 * (saturated(drawn.counts) + least) >= deviance
    return (1 + worse) / (1 + bootstrap) if bootstrap else np.nan
