"""Fractions of groups that end at the strong word: simulated, beside the group-size law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, each_policy, group_size_law
from meanfield.toolbox import (
    LARGEST_SEED,
    check_level,
    labelled,
    name_of,
    stamp,
    whole_number,
    words_of,
)
from validation._engine.arguments import check_ensembles, interval_column, name_in, population_sizes
from validation.naming_game._convention import Convention, convention_of
from validation.naming_game._simulate import simulate

DIGITS = 3  # of a success rate
OF_LAW = ("probability", "kappa", "correction")


def collective_bias(
    policies: xr.Dataset | Iterable[xr.Dataset],
    *,
    n_agents: int | Sequence[int],
    runs: int,
    seed: int,
    level: float = 0.99,
    order: int = 1,
    progress: bool = False,
) -> xr.Dataset:
    """The fraction of simulated runs that end at the strong word, beside the prediction Φ(κ√N), for a set of policies.

    The strong word leads where the rate equation goes from empty memories; κ²/2 is the least action of a
    fluctuation over the saddle, and Φ is the normal distribution function. A run without consensus within 1,000 rounds
    counts as not ending there. Source of the fraction: [004] Fig. 3; of the prediction: `meanfield.group_size_law`.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, or several of either; of two words each, and all different.
    n_agents
        N ≥ 2, one population size or several different ones.
    runs
        Number of simulated runs of each policy and size, ≥ 1.
    seed
        0 to 2^63 - 1, the same for all policies: the result of one does not depend on the others, and agrees
        with `simulate` with this seed.
    level
        Confidence of each single interval.
    order
        Order of the prediction, 1 or 2, as in `group_size_law`; 2 is Φ(κ√N - c/√N).
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `pair`, one for each policy even if several have words in common, with

    - `simulated` (pair, n_agents), the fraction of runs that end at the strong word, `interval` (pair, n_agents,
      bound), its Wilson interval, and `no_consensus` (pair, n_agents), the fraction of runs that end at no word;
    - `probability` (pair, n_agents) = Φ(κ√N), `kappa` (pair), `correction` (pair) = c, 0 unless `order` is 2,
      `strong_word` (pair), `applies` (pair), whether there is such a law, and `reason` (pair), why.

    A policy without a law, or with one attractor, where no group ends, has κ = NaN and the strong word '', and nothing
    is simulated; nor where agents treat both words alike. Where noise keeps the success rate of an infinite population
    below 98 %, a run ends as soon as it succeeds as often as that population.

    Raises
    ------
    InputError
        If an argument is out of range, as in `simulate`, there is no policy, two have the same model and words, or one
        has more than two words.

    See Also
    --------
    validation.naming_game.simulated_bias : from runs at hand
    meanfield.group_size_law : the prediction alone
    validation.populations.misalignment : its departure from individual bias

    Examples
    --------
    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> bias = validation.collective_bias(policy, n_agents=[10, 100], runs=1000, seed=1)
    >>> bias["simulated"].values.round(2)
    array([[0.6 , 0.74]])
    >>> bias["probability"].values.round(2)  # the group-size law
    array([[0.59, 0.76]])
    """
    sizes = population_sizes(n_agents)
    runs = whole_number("runs", runs, 1)
    seed = whole_number("seed", seed, 0, LARGEST_SEED)
    check_level(level)
    check_ensembles(sizes, runs)
    singles = list(each_policy(policies))
    if not singles:
        raise InputError("policies is empty: expected at least one policy")
    name, times = Counter(map(name_of, singles)).most_common(1)[0]
    if times > 1:
        raise InputError(f"policies holds {name} {times} times: expected policies that differ in model or words")
    laws, ends = [], []
    for policy in tqdm(singles, desc="collective bias", unit="policy", disable=not progress, leave=False):
        laws.append(_with_ends(group_size_law(policy, n_agents=sizes, order=order)))
        ends.append(_ends(policy, laws[-1], sizes, runs, seed))
    (strong, without), table = np.stack(ends, 1), ("pair", "n_agents")
    found = {name: np.stack([law[name].values for law in laws]) for name in (*OF_LAW, "strong_word")}
    columns = {
        "simulated": (table, strong / runs, "fraction of runs that end at the strong word"),
        "interval": interval_column(table, strong, runs, level),
        "no_consensus": (table, without / runs, "fraction of runs without consensus"),
        "probability": (table, found["probability"], laws[0]["probability"].attrs["long_name"]),
        "kappa": ("pair", found["kappa"], "κ of the group-size law"),
        "correction": ("pair", found["correction"], "c of the group-size law"),
    }
    result = labelled(
        columns,
        coords={
            "pair": [name_in(policy, "pair") for policy in singles],
            "model": ("pair", [name_in(policy, "model") for policy in singles]),
            "word": singles[0]["word_number"].values,
            "word_label": (("pair", "word"), [words_of(policy) for policy in singles]),
            "n_agents": laws[0]["n_agents"],
            "bound": ["low", "high"],
        },
    )
    result["strong_word"] = ("pair", found["strong_word"].astype(str), laws[0]["strong_word"].attrs)
    result["applies"] = ("pair", [bool(law.attrs["applies"]) for law in laws], {"long_name": "there is a law"})
    result["reason"] = ("pair", [law.attrs["reason"] for law in laws], {"long_name": "why there is a law, or none"})
    sizes_as_text = " ".join(map(str, sizes))
    return stamp(result, "collective_bias", n_agents=sizes_as_text, runs=runs, seed=seed, level=level, order=order)


def _with_ends(law: xr.Dataset) -> xr.Dataset:
    """The law, none where there is one attractor, or a word leads at several."""
    if 1 != law["attractors"].item() <= law.sizes["word"]:
        return law
    without: dict = {name: law[name] * np.nan for name in OF_LAW}
    how = "with one attractor" if law["attractors"].item() == 1 else "where a word leads at several attractors"
    reason = f"{law.attrs['reason']}; {how} nothing is simulated"
    law = law.assign(without | {"strong_word": ((), "", law["strong_word"].attrs)})
    return law.assign_attrs(applies=0, reason=reason)


def _ends(policy: xr.Dataset, law: xr.Dataset, sizes: list[int], runs: int, seed: int) -> np.ndarray:
    """Numbers of runs of each size that end at the strong word, and without consensus; shape (2, sizes)."""
    strong_word, agreed = str(law["strong_word"].item()), law["success_rate"].item()
    if not strong_word:
        return np.full((2, len(sizes)), np.nan)
    rule = convention_of("004")
    if agreed < rule.success_rate:
        rule = Convention(round(agreed, DIGITS))
    words = simulate(policy, n_agents=sizes, runs=runs, seed=seed, convention=rule)["consensus_word"]
    return np.stack([(words.values == strong_word).sum(1), words.isnull().values.sum(1)])
