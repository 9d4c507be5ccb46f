"""Endpoints and accuracies of flag games: the observables of [002] Section 2.3."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_level, expect, labelled, real_number, shown, stamp, wilson_interval
from theory.flag_game.mechanism1 import ENDPOINTS
from theory.toolbox import CONSENSUS_PERCENT, POLAR_PERCENT

CORRECT, WRONG, POLARIZED, FRAGMENTED = ENDPOINTS


def endpoints(
    reports: xr.DataArray | np.ndarray,
    truth: object,
    *,
    consensus: float = CONSENSUS_PERCENT / 100,
    faction: float = POLAR_PERCENT / 100,
    countries: Sequence[str] | None = None,
) -> xr.Dataset:
    """Classify the endpoint of each run from the answers of all its agents. Source: [002] Section 2.3.

    Let s be the share of the most frequent answer. The class is 'correct_consensus' or 'wrong_consensus' where s ≥
    0.85, by whether that answer is true; otherwise 'polarization' where two answers or more have a share of at least
    0.25 each, and 'fragmentation' elsewhere. Shares equal to a threshold reach it. Ties can't change the class, because
    two answers can't both have more than half. For the vote, where the paper's y_1 = arg max is not unique, `correct`
    is the probability that an evenly drawn one of the most frequent answers is true: 1/2 where truth and one rival are
    level.

    Parameters
    ----------
    reports
        Answers, shape (..., agents), N ≥ 1 agents in the last dim, or in the dim `agent` of a DataArray. None or '' (no
        answer) is refused.
    truth
        The true answer: one for all, or an array of the shape of `reports` without the agents. A name if answers are
        names, else a number. It need not be among the answers.
    consensus, faction
        The thresholds 0.85 and 0.25, in (0.5, 1] and (0, 0.5].
    countries
        The possible answers. Other answers and truths are refused; without it, a misspelt truth counts as one that
        nobody gave.

    Returns
    -------
    Dataset over the other dims of `reports` with `endpoint`; `majority_share`, s; `correct`, of the majority vote; and
    `truth_share`, the share of the agents who give the true answer.

    Raises
    ------
    InputError
        If an answer is missing or not among `countries`, there is no agent, a truth has the wrong shape or kind, or a
        threshold is out of range.

    See Also
    --------
    accuracy : of a whole ensemble

    Examples
    --------
    >>> answers = [["Peru"] * 5, ["Peru", "Peru", "Chad", "Chad", "Mali"], ["Peru", "Chad", "Mali", "Italy", "Austria"]]
    >>> ends = validation.flag_game.endpoints(np.array(answers), "Peru")
    >>> ends["endpoint"].values.tolist()
    ['correct_consensus', 'polarization', 'fragmentation']
    >>> ends["correct"].values  # of the vote, with even chances where answers are level
    array([1. , 0.5, 0.2])
    """
    real_number("consensus", consensus, above=0.5, most=1)
    real_number("faction", faction, above=0, most=0.5)
    answers = _with_agents_last(reports)
    like = answers.isel(agent=0, drop=True)
    true = np.asarray(truth)
    if true.shape not in ((), like.shape):
        raise InputError(f"truth has shape {true.shape}: expected one answer, or the shape {like.shape}")
    kinds = ["text" if _is_text(one) else "something else" for one in (true, answers.values)]
    if kinds[0] != kinds[1]:
        raise InputError(f"truth = {truth!r} is {kinds[0]}, and answers are {kinds[1]}: expected the same kind")
    if countries is not None:
        if not isinstance(countries, Iterable) or getattr(countries, "ndim", 1) == 0:
            raise InputError(f"countries = {shown(countries)}: expected a sequence of countries")
        for name, given in (("reports", answers.values), ("truth", true)):
            unknown = set(given.ravel().tolist()) - set(countries)
            if unknown:
                raise InputError(
                    f"{name} = {min(unknown, key=str)!r}: expected one of {', '.join(map(str, countries))}"
                )
    known, places = np.unique(answers.values, return_inverse=True)
    places = places.reshape(-1, answers.sizes["agent"])
    counts = np.zeros((len(places), len(known)), np.int64)
    np.add.at(counts, (np.arange(len(places))[:, None], places), 1)
    # Shares are quotients of whole numbers, rounded once: one that is 17/20 is the number 0.85.
    shares = (counts / answers.sizes["agent"]).reshape(*like.shape, len(known))
    truth_share = (answers.values == true[..., None]).mean(-1)
    majority_share = shares.max(-1)
    correct = (truth_share == majority_share) / (shares == majority_share[..., None]).sum(-1)
    endpoint = np.where((shares >= faction).sum(-1) >= 2, POLARIZED, FRAGMENTED)
    endpoint = np.where(majority_share >= consensus, np.where(correct == 1, CORRECT, WRONG), endpoint)
    columns = {
        "endpoint": (endpoint, "class of endpoint"),
        "majority_share": (majority_share, "share of the most frequent answer"),
        "correct": (correct, "probability that the majority vote is the true answer"),
        "truth_share": (truth_share, "share of the true answer"),
    }
    data = {name: (like.dims, values, {"long_name": text}) for name, (values, text) in columns.items()}
    return xr.Dataset(data, coords=like.coords, attrs={"consensus": consensus, "faction": faction})


def accuracy(
    initial: xr.Dataset | xr.DataArray | np.ndarray,
    final: xr.DataArray | np.ndarray | None = None,
    truth: object = None,
    *,
    level: float = 0.95,
    countries: Sequence[str] | None = None,
) -> xr.Dataset:
    """Accuracies and endpoints of an ensemble of flag games: [002] Section 2.3, Eqs. 1-3.

    Parameters
    ----------
    initial
        Result of `simulate_gossip`, with `truth`; or isolated answers, shape (runs, agents), for which `final` and
        `truth` are needed. Games with a manager are scored by its answer.
    final
        Answers at the end, shape (runs, agents).
    truth
        The true answer, one for all or one a run, as for `endpoints`.
    level
        Confidence of the intervals.
    countries
        As for `endpoints`; by default those named in the Dataset.

    Returns
    -------
    Dataset with, each with its standard error over runs in the variable of the same name and `_se` (NaN for one run),

    - `initial_accuracy`, A_i, the mean share of agents whose isolated answer is true;
    - `majority_vote_accuracy`, A_maj, of the majority vote on isolated answers, ties counted as `endpoints` does;
    - `collective_accuracy`, A_c, the mean share of true answers at the end, and `final_vote_accuracy`, their vote;
    - `social_uplift` = A_c - A_i, paired by run;

    and `endpoint_fraction` (endpoint) with its Wilson interval `endpoint_interval` (endpoint, bound), `endpoint_count`
    and `seeds`, the number of runs. The coordinate `n_agents` is N where all N agents are scored at the end, so not for
    games with a manager. `theory.fit_mechanism1` takes several N joined by `xr.concat(..., "n_agents")`.

    Raises
    ------
    InputError
        If `truth` or `final` is missing, or given with a simulation, or as for `endpoints`.

    See Also
    --------
    endpoints : run by run

    Examples
    --------
    >>> answers = np.array([["Peru"] * 4, ["Peru", "Peru", "Austria", "Austria"]])  # of four agents in two runs
    >>> final = np.array([["Peru"] * 4, ["Austria"] * 4])
    >>> found = validation.flag_game.accuracy(answers, final, "Peru")
    >>> found[["initial_accuracy", "collective_accuracy", "social_uplift"]].to_array().values
    array([ 0.75,  0.5 , -0.25])
    >>> found["endpoint_count"].to_series().to_dict()
    {'correct_consensus': 1, 'wrong_consensus': 1, 'polarization': 0, 'fragmentation': 0}
    """
    check_level(level)
    if isinstance(initial, xr.Dataset):
        given = [name for name, value in (("final", final), ("truth", truth)) if value is not None]
        if given:
            raise InputError(f"{given[0]}: the simulation has its own; expected isolated answers with it, or neither")
        if countries is None and "country" in initial.coords:
            countries = initial["country"].values.tolist()
        games = expect(initial, "gossip", "initial")
        initial, final, truth = games["initial_report"], games["final_report"], games["truth"]
        if "manager_report" in games:
            final = games["manager_report"].expand_dims(agent=["manager"], axis=-1)
    if final is None or truth is None:
        raise InputError("final and truth: expected the answers at the end and the true one, with the isolated answers")
    before, after = (endpoints(answers, truth, countries=countries) for answers in (initial, final))
    if before["correct"].ndim != 1 or before.sizes != after.sizes:
        raise InputError(f"initial is for runs of shape {before['correct'].shape}, final for {after['correct'].shape}")
    samples = {
        "initial_accuracy": ("mean accuracy of isolated answers", before["truth_share"]),
        "majority_vote_accuracy": ("accuracy of the vote on isolated answers", before["correct"]),
        "collective_accuracy": ("mean accuracy at the end", after["truth_share"]),
        "final_vote_accuracy": ("accuracy of the vote at the end", after["correct"]),
        "social_uplift": ("collective less initial accuracy", after["truth_share"] - before["truth_share"]),
    }
    runs, columns = before["correct"].size, {}
    for name, (long_name, sample) in samples.items():
        error = sample.values.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
        columns[name] = ((), sample.values.mean(), long_name)
        columns[f"{name}_se"] = ((), error, f"standard error of {name}")
    counts = np.array([(after["endpoint"].values == name).sum() for name in ENDPOINTS])
    columns |= {
        "seeds": ((), runs, "number of runs"),
        "endpoint_count": ("endpoint", counts, "runs that end so"),
        "endpoint_fraction": ("endpoint", counts / runs, "fraction of runs"),
    }
    n_agents, scored = (_with_agents_last(answers).sizes["agent"] for answers in (initial, final))
    coords = {"endpoint": list(ENDPOINTS), "bound": ["low", "high"]} | (
        {"n_agents": n_agents} if scored == n_agents else {}
    )
    result = labelled(columns, coords)
    interval = np.stack(wilson_interval(counts, runs, level), axis=-1)
    result["endpoint_interval"] = (("endpoint", "bound"), interval, {"long_name": f"Wilson interval, {level:g}"})
    return stamp(result, "flag_game_accuracy", None, level=level)


def _with_agents_last(reports: xr.DataArray | np.ndarray | Sequence) -> xr.DataArray:
    if isinstance(reports, xr.DataArray):
        if "agent" not in reports.dims:
            raise InputError(f"reports has the dims {reports.dims}: expected a dim agent")
        answers = reports.transpose(..., "agent")
    else:
        values = np.asarray(reports)
        if values.ndim == 0:
            raise InputError(f"reports = {shown(reports)}: expected an array with the agents in its last dim")
        others = ["run"] if values.ndim == 2 else [f"dim_{k}" for k in range(values.ndim - 1)]
        answers = xr.DataArray(values, dims=(*others, "agent"))
    if answers.ndim == 0 or answers.sizes["agent"] == 0:
        raise InputError(f"reports has shape {answers.shape}: expected at least one agent in its last dim")
    if (answers.values == "").any() or answers.isnull().any():
        raise InputError("reports: expected an answer from every agent, and some are missing")
    return answers


def _is_text(values: np.ndarray) -> bool:
    return values.dtype.kind == "U" or (values.dtype == object and all(isinstance(one, str) for one in values.flat))
