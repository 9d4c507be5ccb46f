"""Predictions of fitted models for any evidence and number of agents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_memory, labelled, one_or_several, real_number, shown, stamp, whole_number
from theory.flag_game.evidence._forecasts import forecast
from theory.flag_game.evidence._models import MODELS
from theory.flag_game.evidence._runs import Runs, Source, read_runs
from theory.flag_game.mechanism1 import ENDPOINTS

SIZES = (16, 32, 64, 128)
EVIDENCE = tuple(np.linspace(0, 1, 11).round(9).tolist())
ANSWERS = 50


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
    train
        As for `read_runs`, with all outcomes.
    n_agents
        Population sizes N, each once.
    evidence
        Shares of the answers that name the rival, from 0 to 1, each once; every agent has 50 answers.
    models
        Names of the models that `fit` describes.
    crops
        As for `read_runs`, for all runs.

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
    sizes = [whole_number("N", n, 2) for n in one_or_several(n_agents)]
    shares = [real_number("evidence", e, least=0, most=1) for e in one_or_several(evidence)]
    for name, values in (("n_agents", sizes), ("evidence", shares)):
        if not values or len(set(values)) < len(values):
            raise InputError(f"{name} = {shown(values)}: expected different values, at least one")
    check_memory(64 * sum(sizes) * len(shares), f"n_agents = {shown(sizes)}", "fewer agents")
    given = read_runs(train, crops=crops)
    rows = [(n, round(ANSWERS * n * e), ANSWERS * n) for n in sizes for e in shares]
    planned = pd.DataFrame(rows, columns=["N", "rival_count", "valid_count"])
    found = forecast(given, read_runs(planned, crops=crops), models)["probability"].values
    over = ("model", "n_agents", "evidence", "endpoint")
    columns = {
        "probability": (
            over,
            found.reshape(-1, len(sizes), len(shares), len(ENDPOINTS)),
            "probability of the endpoint",
        ),
        "run_evidence": ("run", given.evidence, "the rival's share of all answers"),
        "run_n_agents": ("run", given.n_agents, "number of agents"),
        "run_endpoint": ("run", np.array(ENDPOINTS)[given.endpoint], "endpoint"),
    }
    coords = {"model": list(models), "n_agents": sizes, "evidence": shares, "endpoint": list(ENDPOINTS)}
    return stamp(labelled(columns, coords), "flag_run_evidence", None, crops=crops)
