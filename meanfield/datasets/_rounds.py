"""Real populations round by round, for drawings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from meanfield.datasets._ai_norms import RealPopulations
from meanfield.toolbox._errors import InputError


def by_round(real: RealPopulations) -> xr.Dataset:
    """The share of each word said and the success rate in each N interactions of a run, NaN after its end.

    Dims: population (runs of one model, words, memory length and kind of start), run, round, word.
    """
    if real.events is None:
        raise InputError("result has no events: expected runs in order, as from ai_norms(ordered=True) or from_events")
    runs = real.runs.set_index("run", drop=False)
    subject = [
        f"{run.model} {', '.join(sorted(run.options.split('_' if '_' in run.options else ' ')))}, "
        f"H = {run.memory_length}, {run.experiment.replace('_', ' ')}"
        for run in runs.itertuples()
    ]
    events = real.events[["run"]].assign(
        population=real.events["run"].map(pd.Series(subject, runs.index)),
        round=1 + real.events.groupby("run").cumcount() // real.events["run"].map(runs["n_agents"]),
        success_rate=real.events["said"].astype(str) == real.events["heard"].astype(str),
    )
    index = ["population", "run", "round"]
    words = sorted({*real.events["said"].astype(str), *real.events["heard"].astype(str)})
    said = np.stack([(real.events[["said", "heard"]].astype(str) == word).mean(axis=1) for word in words], axis=1)
    shares = pd.DataFrame(said, columns=pd.Index(words, name="word")).set_index([events[one] for one in index])
    found = xr.Dataset(
        {
            "word_share": shares.groupby(index).mean().stack().to_xarray(),
            "success_rate": events.groupby(index)["success_rate"].mean().to_xarray(),
        }
    )
    return found.assign_attrs(kind="real_runs")
