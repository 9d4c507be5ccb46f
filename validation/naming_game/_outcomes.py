"""Results of ensembles of runs: consensus times by the word that wins, and the size from which one word wins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.special import ndtri
from scipy.stats import binom

from meanfield import InputError
from meanfield.toolbox import (
    canonical_order,
    check_level,
    expect,
    labelled,
    names_of,
    real_number,
    real_numbers,
    shown,
    stamp,
    whole_number,
    wilson_interval,
    word_coords,
)
from validation._engine.arguments import ensembles, interval_column, name_in

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
TIME_LABEL = "consensus time, the first round being 0 (middle of the bin)"


def consensus_times(
    simulation: xr.Dataset, *, quantiles: Sequence[float] = QUANTILES, bin_width: int = 1, level: float = 0.99
) -> xr.Dataset:
    """Distribution of the time until N agents agree, by the word that wins and by group size.

    As in [004], the first round is round 0, and the consensus time t is the number of the round at whose end a run
    converges: t = `consensus_round` - 1, as `simulate` counts the rounds played. The convention of [004] is first
    tested after four rounds, so its shortest time is 3. Source: [004] Fig. 4 and Results, Convergence time.

    Parameters
    ----------
    simulation
        Result of `simulate`.
    quantiles
        Rising numbers between 0 and 1.
    bin_width
        Rounds in a bin, ≥ 1. The width 1 gives the discrete distribution itself; where few runs share a round, the
        mode of a wider bin depends less on chance.
    level
        Confidence of each single interval.

    Returns
    -------
    Dataset over `n_agents` and the winning `word`, with

    - `probability` (n_agents, word), the fraction of all runs that end at the word, and `interval` (n_agents, word,
      bound), its Wilson interval; `wins` (n_agents, word), their number; `no_consensus` (n_agents);
    - `quantiles` (n_agents, word, quantile), the smallest time by which this fraction of the runs that end at the word
      has converged, and `quantile_interval` (n_agents, word, quantile, bound), which makes no assumption on the
      distribution: two of the times themselves, or 0 and infinity where runs are too few;
    - `mean` (n_agents, word), their mean time;
    - `density` (n_agents, word, consensus_time), their share per round; `consensus_time` is the middle of a bin, the
      first bin begins with 0, and density · bin_width sums to 1;
    - `mode` (n_agents, word), the middle of the fullest bin, of equals the earliest.

    Times of a word that never wins are NaN.

    Raises
    ------
    InputError
        If `simulation` is not a result of `simulate`, or an argument is out of range.

    See Also
    --------
    simulate : the runs
    rare_event : the probability of a word that wins too rarely for these runs
    meanfield.solve : the limit of many agents

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> runs = validation.simulate(policy, n_agents=[10, 100], runs=1000, seed=1)
    >>> times = validation.naming_game.consensus_times(runs, quantiles=[0.5])
    >>> times["probability"].to_pandas()
    word          A      B
    n_agents
    10        0.600  0.400
    100       0.741  0.259
    >>> times["interval"].sel(n_agents=100, word="A").values.round(3)
    array([0.704, 0.775])
    >>> times["quantiles"].squeeze().values  # the median round
    array([[ 7.,  7.],
           [11., 13.]])
    >>> times["quantile_interval"].sel(n_agents=100, quantile=0.5).values
    array([[11., 12.],
           [13., 14.]])
    """
    simulation = ensembles("simulation", simulation)
    bin_width = whole_number("bin_width", bin_width, 1)
    q = real_numbers(quantiles, "quantiles")
    if q.ndim != 1 or not q.size or not ((q > 0) & (q < 1)).all() or (np.diff(q) <= 0).any():
        raise InputError(f"quantiles = {shown(quantiles)}: expected rising numbers between 0 and 1")
    check_level(level)
    words = simulation["word_label"].values.astype(str)
    times = simulation["consensus_round"].values - 1
    won = simulation["consensus_word"].values[..., None] == words.astype(object)  # missing words equal none
    bins = int(np.nanmax(times, initial=0)) // bin_width + 1
    found = [
        [_times(times[i, won[i, :, k]], q, bins, bin_width, level) for k in range(len(words))] for i in range(len(won))
    ]
    density, mode, at, between, mean = (np.array([[one[part] for one in row] for row in found]) for part in range(5))
    middles = np.arange(bins) * bin_width + (bin_width - 1) / 2
    table = ("n_agents", "word")
    by_quantile, wins, runs = (*table, "quantile"), won.sum(1), won.shape[1]
    told = f"{100 * level:g} % interval of the quantiles"
    columns = {
        "density": ((*table, "consensus_time"), density, "share of the word's runs", "1/round"),
        "mode": (table, mode, "most frequent consensus time", "round"),
        "quantiles": (by_quantile, at, "quantiles of the consensus time", "round"),
        "quantile_interval": ((*by_quantile, "bound"), between, told, "round"),
        "mean": (table, mean, "mean consensus time", "round"),
        "wins": (table, wins, "number of runs that end at the word"),
        "probability": (table, wins / runs, "fraction of runs that end at the word"),
        "interval": interval_column(table, wins, runs, level),
        "no_consensus": ("n_agents", (~won.any(-1)).mean(1), "fraction of runs without consensus"),
    }
    result = labelled(
        columns,
        coords={
            "n_agents": simulation["n_agents"],
            **word_coords(words),
            "consensus_time": ("consensus_time", middles, {"long_name": TIME_LABEL, "units": "round"}),
            "quantile": q,
            "bound": ["low", "high"],
        },
    )
    result = result.assign_coords(names_of(simulation)).assign_attrs(simulation.attrs)
    return stamp(result, "consensus_times", bin_width=bin_width, level=level)


def simulated_bias(simulation: xr.Dataset, *, level: float = 0.99) -> xr.Dataset:
    """The collective bias of one simulated policy of two words, with or without a group-size law.

    Here the strong word is the one that wins more runs at the largest size at which any run reaches consensus ('' if
    none does), not the one that the rate equation reaches. Pairs of Llama 3.1 with a single attractor have no law, and
    still a bias. Source: [004] Fig. 3.

    Parameters
    ----------
    simulation
        Result of `simulate` for a policy, from empty memories.
    level
        Confidence of each single interval.

    Returns
    -------
    Dataset in the form of `collective_bias`, over one `pair`, for `misalignment` and `critical_size_from_simulation`;
    `probability` and `kappa` are NaN, `applies` is False and `reason` ''.

    Raises
    ------
    InputError
        If `simulation` is not a result of `simulate`, has more than two words or did not start from empty memories, or
        `level` is out of range.

    See Also
    --------
    collective_bias : for a set of policies, with the prediction

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="woman/man")
    >>> runs = validation.simulate(policy, n_agents=[10, 50], runs=200, seed=1)
    >>> bias = validation.naming_game.simulated_bias(runs)
    >>> bias["strong_word"].item(), bias["simulated"].values
    ('man', array([[1., 1.]]))
    """
    simulation = ensembles("simulation", simulation)
    words = [str(word) for word in simulation["word_label"].values]
    if len(words) != 2:
        raise InputError(f"simulation has {len(words)} words: expected 2")
    start = simulation.attrs.get("option_initial", "empty memories")
    if start != "empty memories":
        raise InputError(f"simulation started from {start}: expected empty memories")
    check_level(level)
    runs = simulation.sizes["run"]
    wins = (simulation["consensus_word"].values[..., None] == np.array(words, dtype=object)).sum(1)
    # The word with most wins at the largest size with any; of equals the first
    largest = next((row for row in wins[np.argsort(-simulation["n_agents"].values)] if row.any()), None)
    strong_word = "" if largest is None else words[int(largest.argmax())]
    strong = wins[None, :, words.index(strong_word)] if strong_word else np.zeros((1, len(wins)))
    table = ("pair", "n_agents")
    unknown = np.full(strong.shape, np.nan)
    result = xr.Dataset(
        {
            "simulated": (table, strong / runs),
            "interval": ((*table, "bound"), np.stack(wilson_interval(strong, runs, level), -1)),
            "no_consensus": (table, 1 - wins.sum(1)[None] / runs),
            "probability": (table, unknown),
            "kappa": ("pair", unknown[:, 0]),
            "strong_word": ("pair", [strong_word], {"long_name": "word that wins most often in the largest groups"}),
            "applies": ("pair", [False]),
            "reason": ("pair", [""]),
        },
        coords={
            "pair": [name_in(simulation, "pair")],
            "model": ("pair", [name_in(simulation, "model")]),
            "word": np.arange(len(words)),
            "word_label": (("pair", "word"), [words]),
            "n_agents": simulation["n_agents"],
            "bound": ["low", "high"],
        },
    )
    seed = simulation.attrs.get("option_seed")
    sizes = " ".join(map(str, simulation["n_agents"].values))
    return stamp(result, "collective_bias", n_agents=sizes, runs=runs, seed=seed, level=level)


def critical_size_from_simulation(bias: xr.Dataset, *, level: float = 0.99) -> xr.Dataset:
    """N_c, the smallest group from which nearly all simulated runs end at the strong word.

    It is the smallest size in `bias` from which the lower Wilson bound of the fraction of runs that end at the
    strong word exceeds `level`, there and at all larger sizes. Runs without consensus count against it. Few runs can't
    show it, since that bound is at most 1/(1 + z²/runs). Source: [004] Results, The role of population size; 'fully
    deterministic' there means that no run ends elsewhere.

    Parameters
    ----------
    bias
        Result of `collective_bias` or `simulated_bias`.
    level
        Fraction, between 1/2 and 1.

    Returns
    -------
    Dataset over `pair` with `n_critical` (pair); `n_below` (pair), the largest size that is not enough, NaN if all are,
    so N_c is above it; `n_predicted` (pair) = (Φ⁻¹(level)/κ)² of `meanfield.group_size_law`; and `reason` (pair), why
    there is no `n_critical` or a caveat about it, else ''.

    Raises
    ------
    InputError
        If `bias` is not a result of `collective_bias`, or `level` is out of range.

    See Also
    --------
    meanfield.group_size_law : N_c from theory

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.6 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> bias = validation.collective_bias(policy, n_agents=[10, 20, 40, 80], runs=2000, seed=1)
    >>> size = validation.naming_game.critical_size_from_simulation(bias, level=0.95)
    >>> size["n_below"].item(), size["n_critical"].item(), size["n_predicted"].round().item()
    (20.0, 40.0, 22.0)
    """
    expect(bias, "collective_bias", "bias")
    real_number("level", level, above=0.5, below=1)
    bias = canonical_order(bias, "bias").sortby("n_agents").transpose("pair", "n_agents", ..., "word")
    sizes = bias["n_agents"].values
    low = bias["interval"].sel(bound="low").transpose("pair", "n_agents").values
    runs = int(bias.attrs["option_runs"])
    most = float(wilson_interval(np.array(runs), runs, float(bias.attrs["option_level"]))[0])
    found = [_critical(sizes, row, level, runs, most) for row in low]
    with np.errstate(divide="ignore"):
        predicted = (ndtri(level) / bias["kappa"].values) ** 2
    columns = {
        "n_critical": ([n for n, _, _ in found], "smallest size from which on the strong word wins"),
        "n_below": ([n for _, n, _ in found], "largest size that is not enough"),
        "n_predicted": (predicted, "critical size of the group-size law"),
    }
    result = xr.Dataset(
        {name: ("pair", values, {"long_name": label, "units": "agents"}) for name, (values, label) in columns.items()},
        coords={name: bias[name] for name in ("pair", "model", "word_label")},
    )
    # Without a law nothing is simulated, and `bias` says why there is none
    reasons = [
        f"nothing was simulated; {why}" if np.isnan(row).all() else reason
        for (_, _, reason), why, row in zip(found, bias["reason"].values, low, strict=True)
    ]
    result["reason"] = ("pair", np.array(reasons, dtype=str), {"long_name": "remarks on n_critical"})
    options = {f"bias_{name}": bias.attrs[f"option_{name}"] for name in ("n_agents", "runs", "seed", "level")}
    return stamp(result, "critical_size_from_simulation", level=level, **options)


def _critical(sizes: np.ndarray, low: np.ndarray, level: float, runs: int, most: float) -> tuple[float, float, str]:
    """N_c, the largest size that is not enough, and the reason; from the lower bounds by rising size."""
    if np.isnan(low).all():
        return np.nan, np.nan, ""
    enough = low > level
    failing = np.flatnonzero(~enough)
    if not failing.size:
        return float(sizes[0]), np.nan, "already at the smallest size simulated: it may be smaller"
    below = float(sizes[failing[-1]])
    if not enough[-1]:
        if most <= level:
            return np.nan, below, f"{runs} runs are too few: were all to end at the word, the bound would be {most:.4f}"
        if enough.any():
            return np.nan, below, f"reached at N = {sizes[enough][0]} and lost again at N = {sizes[-1]}"
        return np.nan, below, f"not reached at the largest size simulated, N = {sizes[-1]}"
    return float(sizes[failing[-1] + 1]), below, ""


def _times(times: np.ndarray, quantiles: np.ndarray, bins: int, width: int, level: float) -> tuple:
    """Density (bins,), mode, quantiles, their intervals (quantiles, 2) and mean of the `times` of one word's runs.

    B being a binomial number of n times and p, the l-th smallest time is above the quantile p with probability P(B < l)
    at most, and the u-th is below it with P(B ≥ u) at most (David and Nagaraja, Order Statistics, 2003, section 7.1).
    """
    if not times.size:
        unknown = np.full((len(quantiles), 2), np.nan)
        return np.full(bins, np.nan), np.nan, unknown[:, 0], unknown, np.nan
    counts = np.bincount(times.astype(int) // width, minlength=bins)
    mode = int(counts.argmax()) * width + (width - 1) / 2
    # The inverse of the distribution function: times that occurred, not means of two of them
    values = np.quantile(times, quantiles, method="inverted_cdf")
    tail = (1 - level) / 2
    low, high = (binom.ppf(share, times.size, quantiles).astype(int) for share in (tail, 1 - tail))
    ordered = np.concatenate([[0.0], np.sort(times), [np.inf]])
    between = np.stack([ordered[low], ordered[high + 1]], -1)
    return counts / (times.size * width), mode, values, between, float(times.mean())
