"""The record of a measurement, and the policy that is made of it.

What is measured does not depend on the temperature, so it is stored as it is; sampling is a transform applied later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, validate_policy
from meanfield.toolbox import expect, stamp
from policy_extraction.measuring._sampling import Choice, Sampling, choose
from policy_extraction.measuring._sampling import check_temperature as check_temperature

INTERVAL = {"q_low": "lower bound of the choice probability", "q_high": "upper bound of the choice probability"}


def make_record(
    log_probability: np.ndarray,
    words: Sequence[str],
    presented: Sequence[Sequence[str]],
    tokens: Sequence[Sequence[int]] | Sequence[str],
    memory_length: int,
    model: str,
    censored: np.ndarray | None = None,
    libraries: str = "",
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
        Each word as an answer: token numbers, or a text.
    memory_length
        H, in interactions.
    model
        Name of the language model.
    censored
        Where the log-probability is an upper bound only, shape (order, state, word); None for nowhere.
    libraries
        The packages that computed the log-probabilities here, with spaces between them; their versions go into the
        attrs. A back end that had them computed elsewhere names none.
    options
        Numbers and strings for the attrs.

    Returns
    -------
    Dataset with `log_probability` (order, state, word), `censored` (order, state, word) and `captured_mass` (order,
    state), the probability of the words together; an upper bound where a word is censored.
    """
    coords = {
        "order": np.arange(len(presented)),
        "state": np.arange(log_probability.shape[1]),
        "word": np.arange(len(words)),
        "order_label": ("order", np.array([", ".join(order) for order in presented])),
        "word_label": ("word", np.array(words, dtype=str)),
        "word_tokens": ("word", np.array([t if isinstance(t, str) else " ".join(map(str, t)) for t in tokens])),
        "pair": "/".join(words),
        "model": model,
    }
    if censored is None:
        censored = np.zeros(log_probability.shape, dtype=bool)
    record = xr.Dataset(
        {
            "log_probability": (("order", "state", "word"), log_probability),
            "censored": (("order", "state", "word"), censored),
            "captured_mass": (("order", "state"), np.exp(log_probability).sum(-1)),
        },
        coords=coords,
    )
    record["log_probability"].attrs = {"long_name": "log-probability among all tokens, temperature 1", "units": "1"}
    record["censored"].attrs = {"long_name": "whether the log-probability is an upper bound only"}
    record["captured_mass"].attrs = {"long_name": "probability of the words together, temperature 1", "units": "1"}
    record = stamp(record, "record", model=model, **options)
    return record.assign_attrs(_versions(*libraries.split()), memory_length=memory_length)


def policy_from_record(
    record: xr.Dataset,
    temperature: float = 0.5,
    *,
    top_k: int | None = None,
    top_p: float | None = None,
    over: str = "words",
    floor: float = 0.0,
    order: int | None = None,
    undecided: str = "raise",
) -> xr.Dataset:
    """The policy of a way of sampling: q_w = mean over orders of exp(ℓ_w / T) / Σ_v exp(ℓ_v / T), filtered.

    ℓ is the log-probability of a word among all tokens; it differs from its logit by a constant, which cancels. Source:
    [004] Eq. 9, averaged over the presentation orders that the paper draws at random. Of the four models published with
    it, Llama 3.1 and QwQ bear the mark of top_p = 0.9 and 0.95 with floor = 2.2e-16, in each order before the average.
    `Sampling` defines each step.

    Parameters
    ----------
    record
        A Dataset with `log_probability` (…, order, state, word): a record, or a policy that `extract` made.
    temperature
        T > 0. At 1 the model's own probabilities are renormalised to the words. The limit 0 is top_k = 1.
    top_k
        Of the words those with fewer than k more probable ones are kept; equally probable ones share their fate.
    top_p
        Then those such that the more probable ones together have less than p.
    over
        'words': the filters act on the words renormalised, which is exact. 'vocabulary': on all tokens, which a record
        determines only where the words decide alone.
    floor
        Probability of each word that a filter removed.
    order
        Number of the one presentation order to use, in place of the mean.
    undecided
        Where censored words or a filter over the vocabulary leave a probability undetermined: 'raise', or 'bound', for
        `q` from the bounds (censored words as probable as they can be, undecided ones kept) and an interval around it.

    Returns
    -------
    The record with `q` (…, state, word) and the steps in the attrs; with undecided='bound' also `q_low` and `q_high`,
    between which the probabilities lie.

    Raises
    ------
    InputError
        If a parameter is out of range, the record has no log-probabilities, or they do not determine the policy.

    See Also
    --------
    extract : measures the record
    """
    sampling = Sampling(temperature, top_k, top_p, over, floor, order, undecided)
    expect(record, "record", "record")
    used = record if order is None else record.isel(order=[_place(order, record)])
    choice = _choose(used, sampling)
    if undecided == "raise" and not choice.decided.all():
        raise InputError(
            f"record: {(~choice.decided).sum()} of {choice.decided.size} prompts do not determine the probabilities of "
            "the words (censored words, or a filter over the vocabulary); undecided='bound' gives intervals"
        )
    log_p = used["log_probability"].isel(order=0, drop=True).transpose(..., "state", "word")
    means = {name: log_p.copy(data=getattr(choice, name).mean(-3)) for name in ("q", "low", "high")}
    for name, long_name in zip(means, ("choice probability", *INTERVAL.values()), strict=True):
        means[name].attrs = {"long_name": long_name, "units": "1"}
    policy = record.drop_vars(INTERVAL, errors="ignore").assign(q=means["q"])
    if undecided == "bound":
        policy = policy.assign(q_low=means["low"], q_high=means["high"])
    return validate_policy(stamp(policy, "policy", sampling=str(sampling), **asdict(sampling)))


def _choose(record: xr.Dataset, sampling: Sampling) -> Choice:
    log_p = record["log_probability"].transpose(..., "order", "state", "word")
    censored = record["censored"].transpose(*log_p.dims).values.astype(bool) if "censored" in record else None
    return choose(log_p.values, censored, sampling)


def _place(order: int, record: xr.Dataset) -> int:
    """Where the record has this presentation order."""
    numbers = record["order"].values.tolist()
    if order not in numbers:
        raise InputError(
            f"order = {order}: expected {', '.join(map(str, numbers))}, a presentation order of the record"
        )
    return numbers.index(order)


def _versions(*packages: str) -> dict[str, str]:
    """Attrs with the versions of those that are installed."""
    found = {}
    for name in packages:
        try:
            found[f"version_{name}"] = version(name)
        except PackageNotFoundError:
            continue
    return found


def stack(records: Sequence[xr.Dataset]) -> xr.Dataset:
    """Records of one model for several sets of words, over the dim `pair`.

    Attrs in which they differ, such as what a server counted, become texts with the values in the order of the pairs.
    """
    return xr.concat(
        records,
        dim="pair",
        data_vars="all",
        coords=["order_label", "word_label", "word_tokens"],
        compat="override",
        join="exact",
        combine_attrs=_of_all,
    )


def _of_all(attrs: Sequence[Mapping[str, Any]], context: object = None) -> dict[str, Any]:
    names = dict.fromkeys(name for one in attrs for name in one)
    values = {name: [one.get(name, "") for one in attrs] for name in names}
    return {
        name: each[0] if len(set(map(str, each))) == 1 else "; ".join(map(str, each)) for name, each in values.items()
    }
