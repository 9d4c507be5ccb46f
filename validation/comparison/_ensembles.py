"""Two-sample tests of two ensembles of runs: where they end, and after how many rounds."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.stats import ks_2samp

from meanfield import InputError
from meanfield.toolbox import check_level, labelled, stamp
from validation._engine.arguments import ensembles

TABLES = 99_999  # the smallest p-value is 1e-5


def compare_ensembles(first: xr.Dataset, second: xr.Dataset, *, level: float = 0.99) -> xr.Dataset:
    """Test whether two ensembles end at the same words after the same times, size by size.

    Use it for two simulators, a policy and its estimate, or generated and simulated choices. Consensus times are
    compared for each word and for all runs; runs without consensus count as later than all others. The
    Kolmogorov-Smirnov test errs towards agreement, since rounds are whole numbers and tie.

    Parameters
    ----------
    first, second
        Results of `simulate` for the same words and sizes.
    level
        Confidence of the verdict at one size, of all its tests together (Bonferroni).

    Returns
    -------
    Dataset over `n_agents` with

    - `outcome_p` (n_agents), the p-value of equal fractions of runs by word of consensus or none, 1 where all runs end
      alike. It is the p-value of χ² among sampled tables with the same margins, because rare outcomes spoil the
      asymptotic distribution;
    - `time_distance` (n_agents, winner), the Kolmogorov-Smirnov distance of the consensus times by word and for all
      runs, and `time_p` (n_agents, winner), NaN where one ensemble has no such run;
    - `agrees` (n_agents), whether no test rejects.

    Raises
    ------
    InputError
        If the words or the sizes differ, or `level` is out of range.

    See Also
    --------
    compare : a simulation and the rate equation

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> other = meanfield.make_policy(lambda memory: 0.7 if not memory else follow(memory), ["A", "B"], memory_length=2)
    >>> first, again = (validation.simulate(policy, n_agents=[10, 50], runs=500, seed=seed) for seed in (1, 2))
    >>> validation.comparison.compare_ensembles(first, again)["agrees"].values
    array([ True,  True])
    >>> second = validation.simulate(other, n_agents=[10, 50], runs=500, seed=3)
    >>> validation.comparison.compare_ensembles(first, second)["agrees"].values
    array([False, False])
    """
    first, second = ensembles("first", first), ensembles("second", second)
    words = [str(word) for word in first["word_label"].values]
    sizes = first["n_agents"].values
    for name, ours, theirs in (
        ("word_label", words, [str(word) for word in second["word_label"].values]),
        ("n_agents", sizes.tolist(), second["n_agents"].values.tolist()),
    ):
        if ours != theirs:
            raise InputError(f"second has {name} = {theirs}: expected {ours}, as the first")
    check_level(level)
    winners = [*words, "any"]
    outcome_p, times = np.empty(len(sizes)), np.empty((len(sizes), len(winners), 2))
    for n in range(len(sizes)):
        ends, rounds = (
            [one[name].isel(n_agents=n).values for one in (first, second)]
            for name in ("consensus_word", "consensus_round")
        )
        outcome_p[n] = _outcome_test(*ends, words)
        of_word = [[when[end == word] for when, end in zip(rounds, ends, strict=True)] for word in words]
        of_all = [np.nan_to_num(when, nan=np.inf) for when in rounds]
        for k, both in enumerate([*of_word, of_all]):
            times[n, k] = ks_2samp(*both) if all(when.size for when in both) else (np.nan, np.nan)
    p_values = np.column_stack([outcome_p, times[..., 1]])
    tests = np.isfinite(p_values).sum(1)
    by_winner = ("n_agents", "winner")
    columns = {
        "outcome_p": ("n_agents", outcome_p, "p-value of equal outcomes"),
        "time_distance": (by_winner, times[..., 0], "distance of times"),
        "time_p": (by_winner, times[..., 1], "p-value of equal times"),
        "agrees": ("n_agents", np.nanmin(p_values, axis=1) >= (1 - level) / tests, "no test rejects"),
    }
    result = labelled(columns, {"n_agents": first["n_agents"], "winner": winners})
    return stamp(result, "ensemble_comparison", level=level, runs=first.sizes["run"], runs_second=second.sizes["run"])


def _outcome_test(first: np.ndarray, second: np.ndarray, words: list[str]) -> float:
    counts = np.array([[(ends == word).sum() for word in words] for ends in (first, second)])
    counts = np.column_stack([counts, [len(first), len(second)] - counts.sum(1)])
    total = counts.sum(0)
    expected = len(first) * total / total.sum()
    # With fixed margins χ² is proportional to this sum over the first row; no one has outcomes that never occur.
    weight = np.divide(1, expected, out=np.zeros_like(expected), where=expected > 0)
    sampled = np.random.default_rng(0).multivariate_hypergeometric(total, len(first), size=TABLES)
    statistic, imitated = (((row - expected) ** 2) @ weight for row in (counts[0], sampled))
    return float((1 + (imitated >= statistic * (1 - 1e-9)).sum()) / (1 + TABLES))
