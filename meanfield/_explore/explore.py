"""A page in which a person who does not program explores policies."""

from __future__ import annotations

import base64
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._explore.kappas import kappas
from meanfield._explore.page import page_of
from meanfield._population.single_policy import each_policy, name_of, policy_hash, space_of, words_of
from meanfield.toolbox._arguments import is_number
from meanfield.toolbox._errors import InputError
from meanfield.toolbox._files import check_writable, whole_file

LONGEST_MEMORY = 6
SAME = 1e-9  # difference between probabilities that rounded log-probabilities may cause


def explore(policies: xr.Dataset | Iterable[xr.Dataset], path: str | os.PathLike[str] = "explorer.html") -> Path:
    """Write a page for a browser that shows how populations of agents with these policies behave; return its path.

    The page is one file. It needs no server and no network, and shows the flow on the line of word shares with fixed
    points and basins, the rate equation from chosen starts, N agents that are really simulated beside it, the
    group-size law and critical masses. The browser computes everything except κ of the group-size law, which this
    function computes at about 25 temperatures where there are two attractors. That takes half a minute for a policy
    with H = 5, and half a second where there is one attractor. Sliders change N, the fractions of agents committed to
    each word, and the sampling temperature. The address holds all settings, so that a view can be shared.

    Numbers on the page agree with `fixed_points`, `solve`, `basins`, `critical_mass`, `group_size_law` and, for the
    same seed, `validation.simulate`; κ at other temperatures is interpolated to three digits. At another temperature
    the page uses the measured log-probabilities, as `policy_extraction.policy_from_record` does. Without them, and for
    policies measured with a filter over the vocabulary, it takes the probabilities to the power 1/T and normalises
    them, with T in units of the measured temperature.

    Parameters
    ----------
    policies
        One policy, a stack over model and pair, or several of either; of two words each and H ≤ 6.
    path
        HTML file to write, whole or not at all.

    Returns
    -------
    Path of the file, 0.18 MB plus 0.06 MB for each policy with H = 5.

    Raises
    ------
    InputError
        If a policy does not have two words or has H > 6, there is no policy, or `path` can't be written.

    See Also
    --------
    plot : drawings of single results
    group_size_law : the numbers behind one of its pictures

    Examples
    --------
    >>> import meanfield, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = meanfield.explore(meanfield.datasets.smollm2(), f"{folder}/explorer.html")
    ...     page.stat().st_size < 2_000_000
    True
    """
    path = check_writable(path)
    entries = entries_of(policies)
    with whole_file(path) as temporary:
        temporary.write_text(page_of(entries), encoding="utf-8", newline="\n")
    return path


def entries_of(policies: xr.Dataset | Iterable[xr.Dataset]) -> list[dict[str, Any]]:
    """An entry for each policy, in types of JSON: names, words, H, probabilities, temperature, log-odds and κ.

    Policies of the same name are numbered. InputError if there is no policy.
    """
    chosen = [*each_policy(policies)]
    if not chosen:
        raise InputError("policies is empty: expected at least one policy")
    for policy in chosen:  # each of them takes seconds
        _check(policy)
    entries = [_entry(policy) for policy in tqdm(chosen, "κ by temperature", leave=False, disable=None)]
    names = Counter(entry["name"] for entry in entries)
    met: Counter[str] = Counter()
    for entry in entries:
        name = entry["name"]
        met[name] += 1
        entry["name"] = f"{name} ({met[name]})" if names[name] > 1 else name
    return entries


def _check(policy: xr.Dataset) -> None:
    words, length = words_of(policy), space_of(policy).memory_length
    if len(words) != 2:
        raise InputError(f"policies has {name_of(policy)} with {len(words)} words: expected 2 for the explorer")
    if length > LONGEST_MEMORY:
        raise InputError(
            f"policies has {name_of(policy)} with H = {length}: expected at most {LONGEST_MEMORY} for the explorer"
        )


def _entry(policy: xr.Dataset) -> dict[str, Any]:
    temperature, log_odds = _measured(policy)
    return {
        "name": name_of(policy),
        "words": words_of(policy),
        "memory_length": space_of(policy).memory_length,
        "q": _encoded(policy["q"].transpose("state", "word").values),
        "temperature": temperature,
        "log_odds": [_encoded(order) for order in log_odds],
        "kappas": kappas(policy, temperature, log_odds),
        "hash": policy_hash(policy),
    }


def _encoded(numbers: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).decode()


def _measured(policy: xr.Dataset) -> tuple[float, np.ndarray]:
    """The temperature of the policy and the log-odds behind it, by order and state.

    Without a record the temperature is 1, and there are no log-odds. The same holds for a policy measured with a
    filter, which the log-odds alone do not determine.
    """
    temperature: Any = policy.attrs.get("option_temperature")
    none = np.empty((0, 0))
    if "log_probability" not in policy or not is_number(temperature) or temperature <= 0:
        return 1.0, none
    if "censored" in policy and policy["censored"].values.any():
        return 1.0, none
    log_p = policy["log_probability"].transpose("order", "state", "word").values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        log_odds = log_p[..., 0] - log_p[..., 1]
    again = (1 / (1 + np.exp(-np.clip(log_odds / temperature, -700, 700)))).mean(0)
    if not (np.abs(again - policy["q"].values[:, 0]) <= SAME).all():
        return 1.0, none
    return float(temperature), log_odds
