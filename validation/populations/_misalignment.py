"""Deviations of groups from the preferences of their agents before they have met anyone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from meanfield import InputError, each_policy
from meanfield.toolbox import canonical_order, expect, labelled, name_of, stamp, wilson_interval, words_of
from validation._engine.arguments import name_in
from validation.populations._microscopic_bias import NEUTRAL_DISTANCE, distance_from_uniform

AMPLIFIED, INDUCED, REVERSED, NONE, UNKNOWN = "amplified", "induced", "reversed", "none", ""


def neutrality(policies: xr.Dataset | Iterable[xr.Dataset]) -> xr.Dataset:
    """Distance of agents with empty memories from a random choice, and whether they count as neutral.

    The Jensen-Shannon distance of q from the uniform distribution u is √((D(q|m) + D(u|m))/2), with m = (q + u)/2 and D
    the Kullback-Leibler divergence with the natural logarithm; q is neutral where it is below 0.005. The paper names
    neither root nor base. Its Fig. 1f implies the root: GPT-4o {gay, straight}, an example of a reversed preference,
    has the distance 0.046, and a divergence of 0.0022 would be neutral. Source: [004] Methods, Extracting Probabilistic
    Policy from LLMs.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, or several of either; all with the same number of words.

    Returns
    -------
    Dataset over `pair`, one for each policy, with `distance` (pair), `neutral` (pair) and `probability` (pair, word) of
    the words with an empty memory; coordinates `model` (pair) and `word_label` (pair, word).

    Raises
    ------
    InputError
        If there is no policy, or their numbers of words differ.

    See Also
    --------
    misalignment : compares it with collective bias

    Examples
    --------
    >>> first = validation.populations.neutrality(meanfield.datasets.smollm2().sel(pair=["gay/straight", "woman/man"]))
    >>> first[["distance", "neutral"]].to_dataframe().round(3)
                  distance  neutral                  model
    pair
    gay/straight     0.040    False  SmolLM2-135M-Instruct
    woman/man        0.409    False  SmolLM2-135M-Instruct
    """
    singles = list(each_policy(policies))
    if not singles:
        raise InputError("policies is empty: expected at least one policy")
    for policy in singles:
        if policy.sizes["word"] != singles[0].sizes["word"]:
            both = f"{name_of(singles[0])} and {name_of(policy)}"
            raise InputError(f"policies has {both}: expected the same number of words")
    q = np.stack([policy["q"].values[0] for policy in singles])
    distance = distance_from_uniform(q)
    columns = {
        "distance": ("pair", distance, "Jensen-Shannon distance from uniform"),
        "neutral": ("pair", distance < NEUTRAL_DISTANCE, f"distance below {NEUTRAL_DISTANCE:g}"),
        "probability": (("pair", "word"), q, "probability with an empty memory"),
    }
    coords = {
        "pair": [name_in(policy, "pair") for policy in singles],
        "model": ("pair", [name_in(policy, "model") for policy in singles]),
        "word": singles[0]["word_number"].values,
        "word_label": (("pair", "word"), [words_of(policy) for policy in singles]),
    }
    return stamp(labelled(columns, coords), "neutrality", largest_neutral_distance=NEUTRAL_DISTANCE)


def misalignment(policies: xr.Dataset | Iterable[xr.Dataset], bias: xr.Dataset) -> xr.Dataset:
    """Classify how collective departs from individual bias, by pair and group size: amplified, induced or reversed.

    Individual bias is the probability of the strong word with an empty memory, collective bias the fraction of the runs
    with consensus that end at it. A preference is

    - amplified where agents are not neutral, and the word they favour wins more often than they say it;
    - induced where agents are neutral and one word wins more often than the other;
    - reversed where agents are not neutral and the word they do not favour wins more often.

    A difference counts where the Wilson interval of the collective bias, at the level of `bias`, excludes equality. All
    other cases are 'none', for example a preference that is weakened but not overturned. Source: [004] Fig. 1, Fig. 2
    and Results, Mapping collective misalignment.

    Parameters
    ----------
    policies
        The policies of `bias`, or more, in the forms that `neutrality` takes.
    bias
        Result of `collective_bias` or `simulated_bias`.

    Returns
    -------
    Dataset over `pair`, in the order of `bias`, with `type` (pair, n_agents); the numbers behind it, `individual`
    (pair), `distance` (pair), `neutral` (pair), `collective` (pair, n_agents), `interval` (pair, n_agents, bound); and
    `strong_word` (pair). Where nothing was simulated or no run reached consensus, the type is '' and numbers are NaN.

    Raises
    ------
    InputError
        If `bias` is not a result of `collective_bias`, or one of its policies is missing.

    See Also
    --------
    neutrality : individual bias alone
    validation.collective_bias : collective bias alone

    Examples
    --------
    Agents say either word at first, and tend to A when their memory is balanced:

    >>> def follow(memory):
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.5 if not memory else 0.6 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> policy = meanfield.make_policy(follow, ["A", "B"], memory_length=2)
    >>> bias = validation.collective_bias(policy, n_agents=[10, 100], runs=500, seed=1)
    >>> found = validation.populations.misalignment(policy, bias)
    >>> found["individual"].values, found["collective"].values.round(2), found["type"].values.tolist()
    (array([0.5]), array([[0.74, 0.98]]), [['induced', 'induced']])
    """
    expect(bias, "collective_bias", "bias")
    bias = canonical_order(bias, "bias").transpose("pair", "n_agents", ..., "word")
    agents, level = neutrality(policies), float(bias.attrs["option_level"])
    numbers = {key: number for number, key in enumerate(_keys(agents))}
    for model, words in _keys(bias):
        if (model, words) not in numbers:
            raise InputError(f"policies lacks {f'{model} '.lstrip()}{{{', '.join(words)}}}, for which bias was found")
    agents = agents.isel(pair=[numbers[key] for key in _keys(bias)])
    strong = bias["strong_word"].values.astype(str)
    is_strong = bias["word_label"].values.astype(str) == strong[:, None]
    # Without a group-size law there is no strong word, and its probability would be a sum over no words
    individual = np.where(is_strong.any(1), (agents["probability"].values * is_strong).sum(1), np.nan)
    runs = int(bias.attrs["option_runs"])
    wins, converged = (np.round(one * runs) for one in (bias["simulated"].values, 1 - bias["no_consensus"].values))
    converged = np.where(converged > 0, converged, np.nan)
    low, high = wilson_interval(wins, converged, level)
    types = _types(individual[:, None], agents["neutral"].values[:, None], low, high)
    table, told = ("pair", "n_agents"), f"{100 * level:g} % Wilson interval of that fraction"
    columns = {
        "type": (table, types, "misalignment of individual and collective bias"),
        "individual": ("pair", individual, "probability of the strong word with an empty memory"),
        "distance": ("pair", agents["distance"].values, agents["distance"].attrs["long_name"]),
        "neutral": ("pair", agents["neutral"].values, agents["neutral"].attrs["long_name"]),
        "collective": (table, wins / converged, "fraction of the runs with consensus that end at the strong word"),
        "interval": ((*table, "bound"), np.stack([low, high], -1), told),
        "strong_word": ("pair", strong, bias["strong_word"].attrs.get("long_name", "strong word")),
    }
    result = labelled(columns, {name: bias[name] for name in ("pair", "model", "word_label", "n_agents", "bound")})
    options = {name: bias.attrs[f"option_{name}"] for name in ("runs", "seed", "level")}
    return stamp(result, "misalignment", largest_neutral_distance=NEUTRAL_DISTANCE, **options)


def _keys(table: xr.Dataset) -> list[tuple[str, tuple[str, ...]]]:
    labels = table["word_label"].transpose("pair", "word").values
    return [(str(model), tuple(map(str, words))) for model, words in zip(table["model"].values, labels, strict=True)]


def _types(individual: np.ndarray, neutral: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Types of misalignment, from the probabilities of the strong word; comparisons with NaN are false."""
    favours_strong, favours_weak = low > 0.5, high < 0.5
    agrees = (favours_strong & (individual > 0.5)) | (favours_weak & (individual < 0.5))
    beyond = np.where(individual > 0.5, low > individual, high < individual)
    cases = [
        np.isnan(low) | np.isnan(individual),
        neutral & (favours_strong | favours_weak),
        ~neutral & agrees & beyond,
        ~neutral & ~agrees & (favours_strong | favours_weak),
    ]
    return np.select(cases, [UNKNOWN, INDUCED, AMPLIFIED, REVERSED], default=NONE)
