"""Forecasts of runs by models that were fitted to others, their scores, and predictions for any evidence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import (
    check_level,
    check_memory,
    different,
    expect,
    labelled,
    one_or_several,
    real_number,
    shown,
    stamp,
    whole_number,
)
from theory.flag_game.evidence._fit import (
    CONSTANT,
    MODELS,
    fit,
    frequencies,
    lapse_of,
    lapsing,
    log_likelihoods,
    models_of,
    with_ends,
)
from theory.flag_game.evidence._runs import UNKNOWN, Runs, Source, read_runs
from theory.flag_game.mechanism1 import ENDPOINTS

SCORES = ("log_score", "brier")
SIZES = (16, 32, 64, 128)
EVIDENCE = tuple(np.linspace(0, 1, 11).round(9).tolist())
ANSWERS = 50


def forecast(
    train: Source | Runs, test: Source | Runs, models: Sequence[str] = MODELS, *, crops: str = "decided"
) -> xr.Dataset:
    """Fit models to some runs, predict others, and score the forecasts.

    Parameters
    ----------
    train, test, crops
        As for `read_runs`; every run of `train` needs an outcome. Runs of `test` without an outcome get no score. Runs
        may differ in N.
    models
        Names of the models that `fit` describes.

    Returns
    -------
    Dataset over (model, run) with `probability` (endpoint), `log_score`, the natural logarithm of the probability of
    the observed endpoint, and `brier` = Σ (probability - 1 if observed)², from 0 to 2; NaN without an outcome.
    Coordinates over `run`: `n_agents`, `seed`, `evidence` (the share of all answers that name the rival country), and
    `outcome`.

    Raises
    ------
    InputError
        If a run of `train` has no outcome, or an argument is not as described.

    See Also
    --------
    cross_validate : each run by all others
    score : means with intervals

    Examples
    --------
    >>> from theory.flag_game.evidence import forecast
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> later = pd.DataFrame({"N": [4], "rival_count": [0], "valid_count": [200], "outcome": ["correct_consensus"]})
    >>> forecast(runs, later, ["constant", "zealots"])["log_score"].isel(run=0).to_series().round(2).to_dict()
    {'constant': -0.88, 'zealots': -0.31}
    """
    chosen, given = models_of(models), with_ends(read_runs(train, crops=crops), "train")
    tested = read_runs(test, crops=crops)
    found = np.empty((len(chosen), len(tested), len(ENDPOINTS)))
    for law, model in zip(found, chosen, strict=True):
        fitted = fit(given, model.name)
        point = fitted["estimate"] if model.parameters else fitted["frequency"]
        law[:] = lapsing(model.at(point.values).laws(tested)[:, 0], fitted.attrs["lapse"])
    return _labelled(list(models), tested, found, crops)


def cross_validate(runs: Source | Runs, models: Sequence[str] = MODELS, *, crops: str = "decided") -> xr.Dataset:
    """Predict each run by models that were fitted to all others.

    Parameters
    ----------
    runs
        As for `read_runs`: two runs or more, each with an outcome.
    models, crops
        As for `forecast`.

    Returns
    -------
    Dataset as from `forecast`.

    Raises
    ------
    InputError
        If a run has no outcome, or an argument is not as described.

    See Also
    --------
    forecast : other runs
    score : means with intervals

    Examples
    --------
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> theory.flag_game.evidence.cross_validate(runs, ["constant", "zealots"])["brier"].values.round(2)
    array([[0.68, 0.68, 1.16, 1.16],
           [0.13, 1.32, 1.14, 0.13]])
    """
    given, chosen = with_ends(read_runs(runs, crops=crops), "runs"), models_of(models)
    if len(given) < 2:
        raise InputError("runs has 1 run: expected at least 2, to leave one out")
    lapse, found = lapse_of(len(given) - 1), np.empty((len(chosen), len(given), len(ENDPOINTS)))
    for law, model in zip(found, chosen, strict=True):
        if model.name == CONSTANT:
            law[:] = [frequencies(np.delete(given.endpoint, run)) for run in range(len(given))]
            continue
        likelihood = log_likelihoods(model, given, lapse)
        best = (likelihood.sum(axis=0) - likelihood).argmax(axis=1)
        for point in np.unique(best):
            law[best == point] = model.at(model.points[point]).laws(given.select(best == point))[:, 0]
    return _labelled(list(models), given, lapsing(found, lapse), crops)


def score(forecasts: xr.Dataset, *, level: float = 0.95, replicates: int = 2000, seed: int = 0) -> xr.Dataset:
    """Mean scores of models and their differences, with percentile intervals of a bootstrap over runs.

    All models and differences share the resampled runs. The forecasts stay as they are: intervals say how far the score
    of these forecasts depends on the luck of the predicted runs, not of the fitted ones.

    Parameters
    ----------
    forecasts
        Result of `forecast` or `cross_validate`, or runs of it.
    level
        Confidence of the intervals.
    replicates, seed
        Number of resamplings, ≥ 100, and their seed.

    Returns
    -------
    Dataset over `model` with `log_score` (nats per run, higher is better) and `brier` (lower is better), and over
    (model, other) `log_score_difference` and `brier_difference`, the model's minus the other's; each with `_interval`
    (bound). attrs hold `n_runs`, the number of runs with an outcome.

    Raises
    ------
    InputError
        If no run has an outcome, or an argument is not as described.

    See Also
    --------
    cross_validate : leave one run out

    Examples
    --------
    >>> from theory.flag_game.evidence import cross_validate, score
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> scores = score(cross_validate(runs, ["constant", "zealots"]))
    >>> scores["log_score"].to_series().round(2).to_dict()
    {'constant': -1.75, 'zealots': -1.34}
    """
    expect(forecasts, "flag_run_forecast", "forecasts")
    check_level(level)
    replicates, seed = whole_number("replicates", replicates, 100), whole_number("seed", seed, 0)
    values = {name: forecasts[name].transpose("model", "run").values for name in SCORES}
    known = np.isfinite(values["log_score"]).all(axis=0)
    n_runs = int(known.sum())
    if not n_runs:
        raise InputError("forecasts has no run with an outcome: expected at least one")
    check_memory(16 * replicates * n_runs, f"replicates = {replicates}", "fewer replicates")
    drawn = np.random.default_rng(seed).multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=replicates) / n_runs
    if n_runs == 1:  # whose luck nothing tells
        drawn = np.full_like(drawn, np.nan)
    ends, words = [(1 - level) / 2, (1 + level) / 2], f"{100 * level:g} % interval, bootstrap over runs"
    columns, both = {}, ("model", "other")
    for name in SCORES:
        each, text, unit = values[name][:, known], *(forecasts[name].attrs[one] for one in ("long_name", "units"))
        mean, again = each.mean(axis=1), drawn @ each.T  # (model,), (replicates, model)
        gap = again[:, :, None] - again[:, None]
        interval, gap_interval = (np.moveaxis(np.quantile(x, ends, axis=0), 0, -1) for x in (again, gap))
        columns |= {
            name: (("model",), mean, f"mean {text}", unit),
            f"{name}_interval": (("model", "bound"), interval, words, unit),
            f"{name}_difference": (both, mean[:, None] - mean, f"mean {text}, minus the other model's", unit),
            f"{name}_difference_interval": ((*both, "bound"), gap_interval, words, unit),
        }
    names = [str(one) for one in forecasts["model"].values]
    result = labelled(columns, {"model": names, "other": names, "bound": ["low", "high"]})
    options = {"level": level, "replicates": replicates, "seed": seed}
    return stamp(result, "flag_run_scores", None, **options).assign_attrs(n_runs=n_runs)


def against_evidence(
    train: Source | Runs,
    n_agents: Sequence[int] = SIZES,
    evidence: Sequence[float] = EVIDENCE,
    models: Sequence[str] = MODELS,
    *,
    crops: str = "decided",
) -> xr.Dataset:
    """The probability of each endpoint by evidence and number of agents, from models that were fitted to some runs.

    For N ≥ 32 the probabilities of fragmentation are too large, at the cost of polarisation: of GPT-4o's runs 1 or 2 in
    40 fragment where models fitted to N = 4 and 8 predict 8.

    Parameters
    ----------
    train, crops
        As for `read_runs`; every run needs an outcome. `crops` is the same for all runs.
    n_agents
        Population sizes N, each once.
    evidence
        Shares of the answers that name the rival, from 0 to 1, each once; every agent has 50 answers.
    models
        Names of the models that `fit` describes.

    Returns
    -------
    Dataset over (model, n_agents, evidence, endpoint) with `probability`; and of `train`, over `run`, `run_evidence`,
    `run_n_agents` and `run_endpoint`.

    Raises
    ------
    InputError
        If an argument is not as described.

    See Also
    --------
    forecast : measured runs

    Examples
    --------
    The probability of a correct consensus among 4 and 8 agents, where a quarter or half of the evidence is for the
    rival.

    >>> from theory.flag_game.evidence import against_evidence
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> chances = against_evidence(runs, n_agents=[4, 8], evidence=[0.25, 0.5], models=["zealots"])
    >>> chances["probability"].sel(model="zealots", endpoint="correct_consensus").values.round(2)
    array([[0.4 , 0.23],
           [0.39, 0.17]])
    """
    sizes = different("n_agents", [whole_number("N", n, 2) for n in one_or_several(n_agents)])
    shares = [real_number("evidence", e, least=0, most=1) for e in one_or_several(evidence)]
    different("evidence", shares)
    check_memory(64 * sum(sizes) * len(shares), f"n_agents = {shown(sizes)}", "fewer agents")
    given = read_runs(train, crops=crops)
    rows = [(n, round(ANSWERS * n * e), ANSWERS * n) for n in sizes for e in shares]
    planned = pd.DataFrame(rows, columns=["N", "rival_count", "valid_count"])
    found = forecast(given, read_runs(planned, crops=crops), models)["probability"].values
    found = found.reshape(-1, len(sizes), len(shares), len(ENDPOINTS))
    columns = {
        "probability": (("model", "n_agents", "evidence", "endpoint"), found, "probability of the endpoint"),
        "run_evidence": ("run", given.evidence, "the rival's share of all answers"),
        "run_n_agents": ("run", given.n_agents, "number of agents"),
        "run_endpoint": ("run", np.array(ENDPOINTS)[given.endpoint], "endpoint"),
    }
    coords = {"model": list(models), "n_agents": sizes, "evidence": shares, "endpoint": list(ENDPOINTS)}
    return stamp(labelled(columns, coords), "flag_run_evidence", None, crops=crops)


def _labelled(names: list[str], runs: Runs, probability: np.ndarray, crops: str) -> xr.Dataset:
    known, each, over = runs.endpoint != UNKNOWN, np.arange(len(runs)), ("model", "run")
    log_score = np.where(known, np.log(probability[:, each, runs.endpoint]), np.nan)
    happened = np.eye(len(ENDPOINTS))[runs.endpoint]
    brier = np.where(known, np.sum((probability - happened) ** 2, axis=-1), np.nan)
    columns = {
        "probability": ((*over, "endpoint"), probability, "probability of the endpoint"),
        "log_score": (over, log_score, "log-probability of the observed endpoint", "nat"),
        "brier": (over, brier, "Brier score, 0 at best and 2 at worst"),
    }
    outcome = np.array([*ENDPOINTS, ""])[runs.endpoint]
    about = {"n_agents": runs.n_agents, "seed": runs.seed, "evidence": runs.evidence, "outcome": outcome}
    coords = {"model": names, "run": each, "endpoint": list(ENDPOINTS)}
    coords |= {name: ("run", values) for name, values in about.items()}
    return stamp(labelled(columns, coords), "flag_run_forecast", None, crops=crops)
