"""Mean scores of forecasts, their differences, and bootstrap intervals over runs."""

from __future__ import annotations

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_level, check_memory, expect, labelled, stamp, whole_number

SCORES = ("log_score", "brier")


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
    replicates
        Number of resamplings, ≥ 100.
    seed
        Seed of the resamplings.

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
    ends = [(1 - level) / 2, (1 + level) / 2]
    columns, both = {}, ("model", "other")
    for name in SCORES:
        each, text = values[name][:, known], forecasts[name].attrs["long_name"]
        unit = forecasts[name].attrs["units"]
        again = drawn @ each.T  # (replicates, model)
        mean, gap = each.mean(axis=1), again[:, :, None] - again[:, None]
        if n_runs == 1:  # whose luck nothing tells
            again = np.full_like(again, np.nan)
            gap = again[:, :, None] - again[:, None]
        interval, gap_interval = (np.moveaxis(np.quantile(x, ends, axis=0), 0, -1) for x in (again, gap))
        words = f"{100 * level:g} % interval, bootstrap over runs"
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
