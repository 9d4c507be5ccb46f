"""Two ensembles of runs against each other: do they end alike, and after as many rounds?"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import chi2_contingency, ks_2samp

from meanfield import InputError, stamp


def compare_ensembles(first: xr.Dataset, second: xr.Dataset, *, level: float = 0.99) -> xr.Dataset:
    """Two-sample tests of how runs end, and of their consensus times, size by size.

    Two engines, a policy and its estimate, or generated and simulated choices should agree. Consensus times are
    compared word by word and over all runs, those that never converge counted as later than any that does
    (Kolmogorov-Smirnov; rounds are whole numbers, whose ties make the test err on the side of agreement).

    Parameters
    ----------
    first, second
        What `simulate` returns, for the same words and sizes.
    level
        Confidence of the verdict at one size: it is that of all its tests together (Bonferroni).

    Returns
    -------
    Dataset over `n_agents` with

    - `outcome_p` (n_agents), the p-value of equal fractions of runs by word of consensus or none: the G-test; 1 where
      all runs end alike;
    - `time_distance` (n_agents, winner), the Kolmogorov-Smirnov distance of the consensus rounds of the runs that end
      at a word, and of all, and `time_p` (n_agents, winner), NaN where one of the two has no such run;
    - `agrees` (n_agents), whether no test rejects.

    Raises
    ------
    InputError
        If the two do not have the same words and sizes, or `level` is out of range.
    """
    for name, runs in (("first", first), ("second", second)):
        if not isinstance(runs, xr.Dataset) or not {"consensus_word", "consensus_round"} <= set(runs.variables):
            raise InputError(f"{name}: expected what validation.simulate returns, with consensus_word and _round")
    words = [str(word) for word in first["word_label"].values]
    sizes = first["n_agents"].values
    for name, ours, theirs in (
        ("word_label", words, [str(word) for word in second["word_label"].values]),
        ("n_agents", sizes.tolist(), second["n_agents"].values.tolist()),
    ):
        if ours != theirs:
            raise InputError(f"second has {name} = {theirs}: expected {ours}, as the first")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: expected a number between 0 and 1")
    outcome_p = np.array([_outcome_test(*_pair(first, second, "consensus_word", n), words) for n in range(len(sizes))])
    winners = [*words, "any"]
    times = np.array([[_time_test(first, second, n, winner) for winner in winners] for n in range(len(sizes))])
    p_values = np.column_stack([outcome_p, times[..., 1]])
    tests = np.isfinite(p_values).sum(1)
    result = xr.Dataset(
        {
            "outcome_p": ("n_agents", outcome_p, {"long_name": "p-value of equal outcomes", "units": "1"}),
            "time_distance": (("n_agents", "winner"), times[..., 0], {"long_name": "distance of times", "units": "1"}),
            "time_p": (("n_agents", "winner"), times[..., 1], {"long_name": "p-value of equal times", "units": "1"}),
            "agrees": ("n_agents", np.nanmin(p_values, axis=1) >= (1 - level) / tests),
        },
        coords={"n_agents": first["n_agents"], "winner": winners},
    )
    return stamp(result, "ensemble_comparison", level=level, runs=first.sizes["run"], runs_second=second.sizes["run"])


def _pair(first: xr.Dataset, second: xr.Dataset, name: str, size: int) -> tuple[np.ndarray, np.ndarray]:
    return first[name].isel(n_agents=size).values, second[name].isel(n_agents=size).values


def _outcome_test(first: np.ndarray, second: np.ndarray, words: list[str]) -> float:
    counts = np.array([[(ends == word).sum() for word in words] for ends in (first, second)])
    counts = np.column_stack([counts, [len(first), len(second)] - counts.sum(1)])
    counts = counts[:, counts.any(0)]
    if counts.shape[1] < 2:
        return 1.0
    return float(chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue)


def _time_test(first: xr.Dataset, second: xr.Dataset, size: int, winner: str) -> tuple[float, float]:
    times = _pair(first, second, "consensus_round", size)
    if winner == "any":
        times = tuple(np.nan_to_num(rounds, nan=np.inf) for rounds in times)
    else:
        ends = _pair(first, second, "consensus_word", size)
        times = tuple(rounds[end == winner] for rounds, end in zip(times, ends, strict=True))
    if not all(rounds.size for rounds in times):
        return np.nan, np.nan
    test = ks_2samp(*times)
    return float(test.statistic), float(test.pvalue)
