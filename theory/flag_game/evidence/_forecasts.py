"""Forecasts of runs by models that were fitted to others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import expect, labelled, stamp
from theory.flag_game.evidence._fit import fit, frequencies, lapse_of, lapsing, log_likelihoods, with_ends
from theory.flag_game.evidence._models import CONSTANT, MODELS, Model, model_of, models_of
from theory.flag_game.evidence._runs import UNKNOWN, Runs, Source, read_runs
from theory.flag_game.mechanism1 import ENDPOINTS


def predict(fitted: xr.Dataset, runs: Source | Runs, *, crops: str = "decided") -> xr.Dataset:
    """Probability of each endpoint of runs, by a fit.

    Parameters
    ----------
    fitted
        Result of `fit`.
    runs
        As for `read_runs`; outcomes may be unknown.
    crops
        As for `read_runs`.

    Returns
    -------
    Dataset over `model`, one, and `run`, as from `forecast`.

    Raises
    ------
    InputError
        If `fitted` is something else, or a run is not as described.

    See Also
    --------
    forecast : several models at once

    Examples
    --------
    >>> from theory.flag_game.evidence import fit, predict
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> planned = pd.DataFrame({"N": [8], "rival_count": [100], "valid_count": [400]})
    >>> found = predict(fit(runs, "zealots"), planned)["probability"].isel(model=0, run=0)
    >>> found.to_series().round(2).to_dict()
    {'correct_consensus': 0.39, 'wrong_consensus': 0.1, 'polarization': 0.43, 'fragmentation': 0.08}
    """
    expect(fitted, "flag_run_fit", "fitted")
    name = str(fitted.attrs["option_model"])
    given = read_runs(runs, crops=crops)
    model = model_of(name).at(fitted["estimate"].sel(parameter=list(model_of(name).parameters)).values)
    shares = fitted["frequency"].sel(endpoint=list(ENDPOINTS)).values
    law = _law(model, given, shares)
    return _labelled([name], given, lapsing(law, float(fitted.attrs["lapse"]))[None], crops)


def forecast(
    train: Source | Runs, test: Source | Runs, models: Sequence[str] = MODELS, *, crops: str = "decided"
) -> xr.Dataset:
    """Fit models to some runs and predict others, and score the forecasts.

    Parameters
    ----------
    train
        As for `read_runs`, with all outcomes.
    test
        As for `read_runs`; runs without an outcome get no score. They may differ in N from `train`.
    models
        Names of the models that `fit` describes.
    crops
        As for `read_runs`.

    Returns
    -------
    Dataset over (model, run) with `probability` (endpoint), `log_score`, the natural logarithm of the probability of
    the observed endpoint, and `brier` = Σ (probability - 1 if observed)², from 0 to 2; NaN without an outcome.
    Coordinates over `run`: `n_agents`, `seed`, `evidence`, the rival's share of all answers, and `outcome`.

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
    found = [predict(fit(given, model.name), tested)["probability"].values[0] for model in chosen]
    return _labelled(list(models), tested, np.stack(found), crops)


def cross_validate(runs: Source | Runs, models: Sequence[str] = MODELS, *, crops: str = "decided") -> xr.Dataset:
    """Predict each run by models that were fitted to all others.

    Parameters
    ----------
    runs
        As for `read_runs`, two or more, with all outcomes.
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
    >>> from theory.flag_game.evidence import cross_validate
    >>> ends = ["correct_consensus", "correct_consensus", "polarization", "wrong_consensus"]
    >>> runs = pd.DataFrame({"N": 4, "rival_count": [0, 100, 100, 200], "valid_count": 200, "outcome": ends})
    >>> cross_validate(runs, ["constant", "zealots"])["brier"].values.round(2)
    array([[0.68, 0.68, 1.16, 1.16],
           [0.13, 1.32, 1.14, 0.13]])
    """
    given = with_ends(read_runs(runs, crops=crops), "runs")
    if len(given) < 2:
        raise InputError("runs has 1 run: expected at least 2, to leave one out")
    found = [_left_out(model, given) for model in models_of(models)]
    return _labelled(list(models), given, np.stack(found), crops)


def _left_out(model: Model, runs: Runs) -> np.ndarray:
    """Forecasts (R, 4) of each run by the others."""
    each, lapse = np.arange(len(runs)), lapse_of(len(runs) - 1)
    if model.name == CONSTANT:
        others = np.array([frequencies(np.delete(runs.endpoint, run)) for run in each])
        return lapsing(others, lapse)
    likelihood = log_likelihoods(model, runs, lapse)
    best, found = (likelihood.sum(axis=0) - likelihood).argmax(axis=1), np.empty((len(runs), len(ENDPOINTS)))
    for point in np.unique(best):
        chosen = best == point
        found[chosen] = model.at(model.points[point]).laws(runs.select(chosen))[:, 0]
    return lapsing(found, lapse)


def _law(model: Model, runs: Runs, shares: np.ndarray) -> np.ndarray:
    """Probabilities of endpoints (R, 4) at the model's only point."""
    return np.broadcast_to(shares, (len(runs), len(ENDPOINTS))) if model.name == CONSTANT else model.laws(runs)[:, 0]


def _labelled(names: list[str], runs: Runs, probability: np.ndarray, crops: str) -> xr.Dataset:
    known = runs.endpoint != UNKNOWN
    happened = (runs.endpoint[:, None] == np.arange(len(ENDPOINTS))).astype(float)
    log_score = np.where(known, np.log(np.sum(np.where(known[:, None], probability * happened, 0.25), axis=-1)), np.nan)
    brier = np.where(known, np.sum((probability - happened) ** 2, axis=-1), np.nan)
    over = ("model", "run")
    columns = {
        "probability": ((*over, "endpoint"), probability, "probability of the endpoint"),
        "log_score": (over, log_score, "log-probability of the observed endpoint", "nat"),
        "brier": (over, brier, "Brier score, 0 at best and 2 at worst"),
    }
    outcome = np.array([*ENDPOINTS, ""])[runs.endpoint]
    about = {"n_agents": runs.n_agents, "seed": runs.seed, "evidence": runs.evidence, "outcome": outcome}
    coords = {"model": names, "run": np.arange(len(runs)), "endpoint": list(ENDPOINTS)}
    result = labelled(columns, coords).assign_coords({name: ("run", values) for name, values in about.items()})
    return stamp(result, "flag_run_forecast", None, crops=crops)
