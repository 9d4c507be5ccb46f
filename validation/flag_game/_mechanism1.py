"""Mechanism 1 of [002] in finite populations, and its endpoints compared with measured ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr
from scipy.stats import norm
from tqdm.auto import tqdm

from meanfield.toolbox import (
    LARGEST_SEED,
    check_level,
    check_memory,
    instance,
    labelled,
    stamp,
    whole_number,
    wilson_interval,
)
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS, Mechanism1, Source, read_counts
from theory.toolbox import INTERVAL_LEVEL, endpoints_of_votes, played
from validation._engine.arguments import BYTES_A_RUN, population_sizes


def simulate(
    parameters: Mechanism1 = APPENDIX_E,
    *,
    n_agents: int | Iterable[int],
    runs: int = 4000,
    seed: int,
    level: float = 0.95,
    trajectories: bool = False,
    progress: bool = False,
) -> xr.Dataset:
    """Simulate Mechanism 1 of [002] Appendix E exactly.

    Parameters
    ----------
    parameters
        By default the paper's.
    n_agents
        N ≥ 2, one population size or several different ones.
    runs
        Number of runs of each size.
    seed
        0 to 2^63 - 1. A run depends only on (parameters, seed, its N, its number). Its random numbers are the same for
        all parameters, so runs under two sets of parameters differ by the parameters, not by luck.
    level
        Confidence of the intervals.
    trajectories
        Also return m and q over time.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over (n_agents, run): `truth_share`, the share of votes for the truth in the end, `run_endpoint` (its class,
    of [002] §2.3), `m` and `q` ([002] Eq. 8, of s_i = tanh(βℓ_i)). Over n_agents, under the names of `accuracy`, which
    `theory.fit_mechanism1` reads: `seeds`, the number of runs; `endpoint_count` and `endpoint_fraction` (endpoint) with
    Wilson's `endpoint_interval` (endpoint, bound); `collective_accuracy` and `collective_accuracy_se`. On request over
    (n_agents, run, round) `m_path` and `q_path`, m and q at the start and after every N interactions.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    compare : with measured endpoints
    theory.fit_mechanism1 : parameters from endpoints

    Examples
    --------
    >>> runs = validation.flag_game.simulate(n_agents=[4, 64], runs=1000, seed=1)
    >>> runs["endpoint_fraction"].to_series().unstack().round(2)
    endpoint  correct_consensus  wrong_consensus  polarization  fragmentation
    n_agents
    4                      0.43             0.37          0.20            0.0
    64                     0.19             0.16          0.45            0.2
    """
    instance("parameters", parameters, Mechanism1)
    sizes = population_sizes(n_agents)
    runs, seed = whole_number("runs", runs, 1), whole_number("seed", seed, 0, LARGEST_SEED)
    times = parameters.interactions_per_agent + 1 if trajectories else 1
    needed = (BYTES_A_RUN + 16 * times) * len(sizes) * runs + 8 * max(sizes)
    check_memory(needed, f"runs = {runs}, n_agents = {sizes}", "fewer of both")
    check_level(level)
    with tqdm(total=len(sizes) * runs, desc="Mechanism 1", disable=not progress, leave=False) as bar:
        ends = [played([parameters], n, runs, seed, times=times, report=bar.update) for n in sizes]
    votes, m, q = (np.stack([values[:, 0] for values in each]) for each in zip(*ends, strict=True))
    share = votes / np.array(sizes)[:, None]
    classes = np.stack([endpoints_of_votes(n)[one] for n, one in zip(sizes, votes, strict=True)])
    counts = np.stack([(classes == c).sum(1) for c in range(len(ENDPOINTS))], axis=-1)
    interval = np.stack(wilson_interval(counts, runs, level), axis=-1)
    error = share.std(axis=1, ddof=1) / np.sqrt(runs) if runs > 1 else np.full(len(sizes), np.nan)
    each, by_class, coords = ("n_agents", "run"), ("n_agents", "endpoint"), {"n_agents": sizes, "run": np.arange(runs)}
    columns = {
        "truth_share": (each, share, "share of votes for the truth"),
        "run_endpoint": (each, np.array(ENDPOINTS)[classes], "class of the endpoint"),
        "m": (each, m[..., -1], "truth minus rival, [002] Eq. 8"),
        "q": (each, q[..., -1], "commitment, [002] Eq. 8"),
        "seeds": ("n_agents", np.full(len(sizes), runs), "number of runs"),
        "collective_accuracy": ("n_agents", share.mean(axis=1), "collective mean accuracy"),
        "collective_accuracy_se": ("n_agents", error, "its standard error"),
        "endpoint_count": (by_class, counts, "number of runs"),
        "endpoint_fraction": (by_class, counts / runs, "fraction of runs"),
        "endpoint_interval": ((*by_class, "bound"), interval, f"its {100 * level:g} % interval, Wilson"),
    }
    if trajectories:
        columns |= {
            "m_path": ((*each, "round"), m, "truth minus rival over time, [002] Eq. 8"),
            "q_path": ((*each, "round"), q, "commitment over time, [002] Eq. 8"),
        }
        coords["round"] = np.arange(m.shape[-1])
    result = labelled(columns, coords | {"endpoint": list(ENDPOINTS), "bound": ["low", "high"]})
    return stamp(result, "mechanism1_simulation", None, runs=runs, seed=seed, level=level, parameters=str(parameters))


def compare(
    measured: Source,
    parameters: Mechanism1 = APPENDIX_E,
    *,
    runs: int = 4000,
    seed: int = 0,
    level: float = 0.95,
    progress: bool = False,
) -> xr.Dataset:
    """Compare simulated endpoints and accuracies with measured ones.

    Parameters
    ----------
    measured
        As for `theory.fit_mechanism1`.
    parameters, runs, seed, level, progress
        As for `validation.flag_game.simulate`.

    Returns
    -------
    Dataset over `n_agents` and `quantity`, the four classes of endpoints and 'accuracy', with

    - `measured` and its `interval` (bound). The interval of a fraction is Wilson's; that of the accuracy is the given
      95 % interval if `level` is 0.95, else a normal one;
    - `simulated` with its Monte-Carlo `simulated_error`;
    - `inside`: 1 if the simulated value is in the interval, 0 if not, NaN without a measurement.

    Raises
    ------
    InputError
        If the measurements or an argument are not as described.

    See Also
    --------
    simulate : the runs
    theory.fit_mechanism1 : parameters from the measurement

    Examples
    --------
    Forty published runs of eight agents, compared with simulations for the parameters of the paper:

    >>> measured = pd.DataFrame({"N": [8], "seeds": 40, "correct_consensus_count": 17, "wrong_consensus_count": 3})
    >>> measured = measured.assign(polarization_count=20, fragmentation_count=0)
    >>> comparison = validation.flag_game.compare(measured, runs=1000, seed=1).sel(n_agents=8, drop=True)
    >>> comparison[["measured", "simulated", "inside"]].to_dataframe().round(2)
                       measured  simulated  inside
    quantity
    correct_consensus      0.42       0.42     1.0
    wrong_consensus        0.08       0.31     0.0
    polarization           0.50       0.28     0.0
    fragmentation          0.00       0.00     1.0
    accuracy                NaN       0.55     NaN
    """
    data = read_counts(measured)
    simulated = simulate(parameters, n_agents=data.sizes, runs=runs, seed=seed, level=level, progress=progress)
    accuracy = data.accuracy[:, None] + norm.ppf((1 + level) / 2) * np.outer(data.standard_error, [-1, 1])
    if level == INTERVAL_LEVEL and data.accuracy_interval is not None:
        accuracy = data.accuracy_interval
    fractions = np.stack(wilson_interval(data.counts, data.seeds[:, None], level), axis=-1)
    interval = np.concatenate([fractions, accuracy[:, None]], axis=1)
    seen = np.c_[data.counts / data.seeds[:, None], data.accuracy]
    value = np.c_[simulated["endpoint_fraction"].values, simulated["collective_accuracy"].values]
    error = np.c_[np.sqrt(value[:, :4] * (1 - value[:, :4]) / runs), simulated["collective_accuracy_se"].values]
    inside = np.where(np.isnan(seen), np.nan, (interval[..., 0] <= value) & (value <= interval[..., 1]))
    over = ("n_agents", "quantity")
    columns = {
        "measured": (over, seen, "measured"),
        "interval": ((*over, "bound"), interval, f"its {100 * level:g} % interval"),
        "simulated": (over, value, "simulated"),
        "simulated_error": (over, error, "its Monte-Carlo standard error"),
        "inside": (over, inside, "1 where the simulated value is in the measured interval"),
    }
    coords = {"n_agents": data.n_agents, "quantity": [*ENDPOINTS, "accuracy"], "bound": ["low", "high"]}
    options = {"runs": runs, "seed": seed, "level": level, "parameters": str(parameters)}
    return stamp(labelled(columns, coords), "mechanism1_comparison", None, **options)
