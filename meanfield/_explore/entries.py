"""Policies as the page carries them: probabilities to the last bit, as base64 of float64."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from tqdm import tqdm

from meanfield._explore.kappas import kappas
from meanfield._population.single_policy import each_policy, name_of, policy_hash, space_of, words_of
from meanfield.toolbox._arguments import is_number
from meanfield.toolbox._errors import InputError

LONGEST_MEMORY = 6
SAME = 1e-9  # of probabilities: the difference that rounded log-probabilities may make


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

    Without a record the temperature is the unit, and there are no log-odds. A filter also makes a policy that the
    log-odds alone do not give.
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
