"""The record of a measurement, and the policy that is made of it.

What is measured does not depend on the temperature, so it is stored as it is; sampling is a transform applied later.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, stamp, validate_policy


def make_record(
    log_probability: np.ndarray,
    words: Sequence[str],
    presented: Sequence[Sequence[str]],
    tokens: Sequence[Sequence[int]],
    memory_length: int,
    model: str,
    **options: Any,
) -> xr.Dataset:
    """Label what was measured for one set of words.

    Parameters
    ----------
    log_probability
        Shape (order, state, word), over the whole vocabulary, at temperature 1.
    words
        The W words.
    presented
        The words in each presentation order.
    tokens
        Token numbers of each word as an answer.
    memory_length
        H, in interactions.
    model
        Name of the language model.
    options
        Numbers and strings for the attrs.

    Returns
    -------
    Dataset with `log_probability` (order, state, word) and `captured_mass` (order, state).
    """
    coords = {
        "order": np.arange(len(presented)),
        "state": np.arange(log_probability.shape[1]),
        "word": np.arange(len(words)),
        "order_label": ("order", np.array([", ".join(order) for order in presented])),
        "word_label": ("word", np.array(words, dtype=str)),
        "word_tokens": ("word", np.array([" ".join(map(str, numbers)) for numbers in tokens])),
        "pair": "/".join(words),
        "model": model,
    }
    record = xr.Dataset(
        {
            "log_probability": (("order", "state", "word"), log_probability),
            "captured_mass": (("order", "state"), np.exp(log_probability).sum(-1)),
        },
        coords=coords,
    )
    record["log_probability"].attrs = {"long_name": "log-probability among all tokens, temperature 1", "units": "1"}
    record["captured_mass"].attrs = {"long_name": "probability of the words together, temperature 1", "units": "1"}
    record = stamp(record, "record", model=model, **options)
    versions = {f"version_{name}": version(name) for name in ("torch", "transformers")}
    return record.assign_attrs(versions, memory_length=memory_length)


def policy_from_record(record: xr.Dataset, temperature: float = 0.5) -> xr.Dataset:
    """The policy at a temperature: q_w = mean over orders of exp(ℓ_w / T) / Σ_v exp(ℓ_v / T).

    ℓ is the log-probability of a word among all tokens; it differs from its logit by a constant, which cancels. Source:
    [004] Eq. 9, averaged over the presentation orders that the paper draws at random.

    Parameters
    ----------
    record
        A Dataset with `log_probability` (…, order, state, word): a record, or a policy that `extract` made.
    temperature
        T > 0. At 1 the model's own probabilities are renormalised to the words.

    Returns
    -------
    The record with `q` (…, state, word).

    Raises
    ------
    InputError
        If the temperature is not a positive number, or the record has no log-probabilities.
    """
    check_temperature(temperature)
    if "log_probability" not in record:
        raise InputError(f"record has the variables {sorted(map(str, record.data_vars))}: expected log_probability")
    log_p = record["log_probability"]
    weight = np.exp((log_p - log_p.max("word")) / temperature)
    q = (weight / weight.sum("word")).mean("order")
    q.attrs = {"long_name": "choice probability", "units": "1"}
    policy = record.assign(q=q.transpose(..., "state", "word"))
    return validate_policy(stamp(policy, "policy", temperature=float(temperature)))


def check_temperature(temperature: float) -> None:
    """InputError unless it is a positive, finite number."""
    if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 < temperature < np.inf:
        raise InputError(f"temperature = {temperature!r}: expected a positive number")


def stack(records: Sequence[xr.Dataset]) -> xr.Dataset:
    """Records of one model for several sets of words, over the dim `pair`."""
    return xr.concat(
        records,
        dim="pair",
        data_vars="all",
        coords=["order_label", "word_label", "word_tokens"],
        compat="override",
        join="exact",
        combine_attrs="drop_conflicts",
    )
