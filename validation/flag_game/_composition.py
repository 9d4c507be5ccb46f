"""Teams of two models in the flag game, predicted from their rewrites γ and compared with measured teams."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError
from meanfield.toolbox import (
    LARGEST_SEED,
    check_memory,
    column_numbers,
    different,
    expect,
    one_or_several,
    read_csv,
    real_number,
    shown,
    stamp,
    whole_number,
)
from theory.flag_game import FLAGS, Flag, crop_compatibility
from theory.streams import splitmix
from theory.toolbox import check_pool
from validation.flag_game._endpoints import accuracy
from validation.flag_game._gossip import simulate_gossip
from validation.flag_game._gossip_team import SMALLEST_COMPATIBILITY

MEASURED = ("alpha", "gpt54_count", "n_trials", "initial_accuracy_mean", "final_accuracy_mean")
COUNTED = "gpt54"
ACCURACIES = ("initial_accuracy", "collective_accuracy", "majority_vote_accuracy", "social_uplift")
PREDICTED = [name for one in ACCURACIES for name in (one, f"{one}_se")]


def sample_crops(
    runs: int, n_agents: int, *, seed: int, noise: float = 0.0, flags: Sequence[Flag] = FLAGS
) -> tuple[xr.DataArray, list[str]]:
    """Draw crops of trials as the flag game does: a random flag of the pool and N random crops of it, both uniformly.

    Returns
    -------
    Compatibility (run, agent, country) of an ideal observer (`theory.flag_game.crop_compatibility`, with its `noise`),
    and the true country of each run.

    Raises
    ------
    InputError
        If an argument is out of range.

    Examples
    --------
    >>> crops, truth = validation.flag_game.sample_crops(100, 8, seed=1)
    >>> dict(crops.sizes), truth[0]
    ({'run': 100, 'agent': 8, 'country': 28}, 'Italy')
    >>> own = crops.sel(country=xr.DataArray(truth, dims="run"))
    >>> own.mean().round(2).item()  # what one crop says for the truth
    0.46
    """
    runs, n_agents = whole_number("runs", runs, 1), whole_number("n_agents", n_agents, 2)
    rng = np.random.default_rng(whole_number("seed", seed, 0, LARGEST_SEED))
    flags = check_pool(flags)
    check_memory(8 * runs * n_agents * len(flags), f"runs = {runs}, n_agents = {n_agents}", "fewer runs or agents")
    crops = {flag.country: crop_compatibility(flag.country, flags=flags, noise=noise).values for flag in flags}
    countries = list(crops)
    hidden = [countries[k] for k in rng.integers(0, len(countries), runs)]
    p = np.stack([crops[country][rng.integers(0, len(crops[country]), n_agents)] for country in hidden])
    # Many cells that differ make a likelihood that no report could ever raise again.
    p[p < SMALLEST_COMPATIBILITY * p.max(-1, keepdims=True)] = 0.0
    p /= p.sum(-1, keepdims=True)
    return xr.DataArray(p, dims=("run", "agent", "country"), coords={"country": countries}), hidden


def predict_composition(
    rewrite: Mapping[str, float],
    *,
    uptake: Sequence[float],
    n_agents: int = 8,
    runs: int = 1000,
    seed: int,
    bandwidth: float = 3,
    noise: float = 0.0,
    rewrite_map: np.ndarray | None = None,
    protocol: str = "broadcast",
    kappa: float = 1.0,
    report: str = "sampled",
    flags: Sequence[Flag] = FLAGS,
    progress: bool = False,
) -> xr.Dataset:
    """Predict the accuracy of teams of two models that differ only in γ, for every number of the second: [002] Fig. 4a.

    All agents see their crops as an ideal observer does, so compositions differ by γ alone. Nothing is fitted here:
    γ comes from `theory.flag_game.mechanism2.fit`, α from the prompt. All teams play the same trials. The default map
    is the fit's, σ = 1, which the probe rejects where evidence is strong.

    Parameters
    ----------
    rewrite
        γ of the two models, {name: γ}; the second replaces the first.
    uptake
        Values of α, all different.
    n_agents, runs, seed
        Team size, trials for each team and α, and the seed of both crops and games.
    bandwidth, protocol, kappa, report
        As for `simulate_gossip`. The paper gives no κ; here a broadcast changes little after N rounds. Answers are
        drawn from beliefs, as in the likelihood of the fit.
    noise, rewrite_map
        Noise ε of the ideal observer, and similarity of countries, shape (K, K), by default all alike, σ = 1.
    flags, progress
        The pool, and whether a progress bar is shown.

    Returns
    -------
    Dataset over (uptake, number), `number` of the second model, with `initial_accuracy`, `majority_vote_accuracy`,
    `collective_accuracy` and `social_uplift`, each with `_se`.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    compare_composition : with the measured sweep

    Examples
    --------
    >>> models = {"GPT-4o": 0.02, "GPT-5.4": 0.22}
    >>> teams = validation.flag_game.predict_composition(models, uptake=[0.9], n_agents=2, runs=300, seed=1)
    >>> teams["collective_accuracy"].values.round(2)  # with none, one and two agents that are GPT-5.4
    array([[0.74, 0.71, 0.68]])
    """
    if not isinstance(rewrite, Mapping) or len(rewrite) != 2:
        raise InputError(f"rewrite = {shown(rewrite)}: expected two models and their γ")
    alphas = [real_number("uptake", value, least=0, most=1) for value in one_or_several(uptake)]
    different("uptake", alphas)
    p, truth = sample_crops(runs, n_agents, seed=seed, noise=noise, flags=flags)
    similarity = np.ones((len(flags), len(flags))) if rewrite_map is None else rewrite_map
    first, second = rewrite.values()
    # Crops and games must not share random numbers.
    game_seed = int(splitmix(np.array([seed], np.uint64))[0] >> np.uint64(1))
    rules = {"runs": runs, "bandwidth": bandwidth, "protocol": protocol, "kappa": kappa, "report": report}
    rows = []
    for alpha in tqdm(alphas, desc="uptake", disable=not progress, leave=False):
        for number in range(n_agents + 1):
            gamma = [second] * number + [first] * (n_agents - number)
            team = {"uptake": alpha, "rewrite": gamma, "rewrite_map": similarity, "truth": truth}
            found = accuracy(simulate_gossip(p, seed=game_seed, **team, **rules))[PREDICTED]
            rows.append(found.expand_dims(uptake=[alpha], number=[number]))
    result = xr.merge(rows, join="outer", compat="no_conflicts")
    result.attrs = {"models": list(rewrite), "rewrite": list(rewrite.values())}
    result["number"].attrs = {"long_name": f"agents that are {list(rewrite)[1]}"}
    return stamp(result, "team_composition", None, n_agents=n_agents, seed=seed, noise=noise, **rules)


def compare_composition(prediction: xr.Dataset, measured: str | os.PathLike[str] | pd.DataFrame) -> xr.Dataset:
    """Compare a predicted composition sweep with the measured one.

    Parameters
    ----------
    prediction
        Result of `predict_composition` whose second model is GPT-5.4, the model that the table counts.
    measured
        The table `broadcast_alpha_composition.csv`, or its path, with all compositions at each α. It has no errors, so
        binomial ones are used, sqrt(A(1 - A)/n) with A replaced by (nA + 1)/(n + 2). This is the largest scatter
        between trials that an accuracy between 0 and 1 can have. All compositions were run on the same trials, so
        differences between them are more certain.

    Returns
    -------
    `prediction` at the measured points with, over (uptake, number), `measured`, `measured_se`, `measured_initial`,
    `trials` and `z`, the difference divided by its error. Over `uptake`, `mixed_gain` and `measured_mixed_gain`, each
    with `_se`, are the gain of mixed teams: the mean over all mixed compositions minus the mean of the two pure ones.

    Raises
    ------
    InputError
        If the table lacks a column or a composition, a number in it is out of range, a point of it was not predicted,
        or the second model is another.

    See Also
    --------
    predict_composition : the prediction

    Examples
    --------
    >>> from validation.flag_game import compare_composition, predict_composition
    >>> models = {"GPT-4o": 0.02, "GPT-5.4": 0.22}
    >>> prediction = predict_composition(models, uptake=[0.5], n_agents=2, runs=100, seed=1)
    >>> measured = pd.DataFrame({"alpha": 0.5, "gpt54_count": [0, 1, 2], "n_trials": 10})
    >>> measured = measured.assign(initial_accuracy_mean=0.4, final_accuracy_mean=[0.55, 0.6, 0.2])
    >>> comparison = compare_composition(prediction, measured)
    >>> comparison["z"].values.round(1)  # the made-up team of two GPT-5.4 does worse than predicted
    array([[-0.5, -0.1, -2.7]])
    """
    expect(prediction, "team_composition", "prediction")
    second = list(prediction.attrs["models"])[1]
    if "".join(filter(str.isalnum, second.lower())) != COUNTED:
        raise InputError(f"prediction: its second model is {second!r}: expected gpt-5.4, which gpt54_count counts")
    n_agents = int(prediction.attrs["option_n_agents"])
    table = measured if isinstance(measured, pd.DataFrame) else read_csv(measured, "measured")
    if table.empty or not set(MEASURED) <= set(table):
        raise InputError(f"measured: expected the columns {', '.join(MEASURED)} and a row for each α and composition")
    limits = zip(MEASURED, (0, 0, 1, 0, 0), (1, n_agents, np.inf, 1, 1), strict=True)
    table = pd.DataFrame({name: _in_range(name, table[name].to_numpy(), *ends) for name, *ends in limits})
    if table.duplicated(["alpha", "gpt54_count"]).any():
        raise InputError("measured: expected one row for each α and composition")
    for alpha, numbers in table.groupby("alpha")["gpt54_count"]:
        if len(numbers) != n_agents + 1:
            expected = f"all from 0 to the {n_agents} agents of the prediction"
            raise InputError(
                f"measured: gpt54_count = {sorted(numbers.tolist())} at alpha = {alpha}: expected {expected}"
            )
    cells = table.set_index(["alpha", "gpt54_count"]).to_xarray().rename(alpha="uptake", gpt54_count="number")
    unknown = [name for name in ("uptake", "number") if not np.isin(cells[name], prediction[name]).all()]
    if unknown:
        raise InputError(f"prediction: expected all values of {unknown[0]} in the table, {cells[unknown[0]].values}")
    trials, accuracy = cells["n_trials"], cells["final_accuracy_mean"]
    shrunk = (trials * accuracy + 1) / (trials + 2)
    result = prediction.sel(uptake=cells["uptake"], number=cells["number"]).assign(
        measured=accuracy,
        measured_se=np.sqrt(shrunk * (1 - shrunk) / trials),
        measured_initial=cells["initial_accuracy_mean"],
        trials=trials,
    )
    error = np.hypot(result["measured_se"], result["collective_accuracy_se"])
    result["z"] = (result["measured"] - result["collective_accuracy"]) / error
    # Mean of the mixed teams minus the mean of the two pure ones, and its error for independent teams
    weights = xr.DataArray(np.pad(np.full(n_agents - 1, 1 / (n_agents - 1)), 1, constant_values=-0.5), dims="number")
    for name, prefix in (("collective_accuracy", ""), ("measured", "measured_")):
        variance = (result[f"{name}_se"] ** 2 * weights**2).sum("number", skipna=False)
        result[f"{prefix}mixed_gain"] = (result[name] * weights).sum("number", skipna=False)
        result[f"{prefix}mixed_gain_se"] = variance**0.5
    return result.assign_attrs(prediction.attrs, kind="team_composition_comparison")


def _in_range(name: str, column: np.ndarray, least: float, most: float) -> np.ndarray:
    """The numbers of a column, with whole counts."""
    whole, values = name in ("gpt54_count", "n_trials"), column_numbers(column)
    wrong = ~(np.isfinite(values) & (values >= least) & (values <= most)) | (whole & (values != np.round(values)))
    if wrong.any():
        row, kind = int(wrong.argmax()), "a whole number" if whole else "a number"
        raise InputError(f"measured: {name} = {column[row]!s} in row {row}: expected {kind} from {least} to {most}")
    return values.astype(np.int64) if whole else values
