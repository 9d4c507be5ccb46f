"""The record of a measurement, which does not depend on the temperature, and the policy that sampling makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, validate_policy
from meanfield.toolbox import expect, labelled, stamp
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._sampling import Sampling, choose
from policy_extraction.prompts._games import Game
from policy_extraction.prompts._template import prompt_options

INTERVAL = {"q_low": "lower bound of the choice probability", "q_high": "upper bound of the choice probability"}


def make_record(
    log_probability: np.ndarray,
    words: Sequence[str],
    presented: Sequence[Sequence[str]],
    tokens: Sequence[str],
    memory_length: int,
    model: str,
    censored: np.ndarray | None = None,
    libraries: str = "",
    **options: Any,
) -> xr.Dataset:
    """The record of one set of words, from log-probabilities (order, state, word) at temperature 1.

    `censored` has the same shape, None for nowhere. `libraries` names the packages that computed the numbers here,
    separated by spaces; their versions go into the attrs, as do `options`. The record's `captured_mass` (order, state)
    is the probability of all words together, an upper bound if a word is censored.
    """
    coords = {
        "order": np.arange(len(presented)),
        "state": np.arange(log_probability.shape[1]),
        "word": np.arange(len(words)),
        "order_label": ("order", np.array([", ".join(order) for order in presented])),
        "word_label": ("word", np.array(words, dtype=str)),
        "word_tokens": ("word", np.array(tokens, dtype=str)),
        "pair": "/".join(words),
        "model": model,
    }
    if censored is None:
        censored = np.zeros(log_probability.shape, dtype=bool)
    dims, mass = ("order", "state", "word"), np.exp(log_probability).sum(-1)
    columns = {
        "log_probability": (dims, log_probability, "log-probability among all tokens, temperature 1"),
        "censored": (dims, censored, "whether the log-probability is an upper bound only"),
        "captured_mass": (dims[:2], mass, "probability of the words together, temperature 1"),
    }
    record = labelled(columns, coords)
    del record["censored"].attrs["units"]
    record = stamp(record, "record", model=model, **options)
    for name in libraries.split():
        with suppress(PackageNotFoundError):
            record.attrs[f"version_{name}"] = version(name)
    return record.assign_attrs(memory_length=memory_length)


def record_of(game: Game, backend: Backend, log_p: np.ndarray, censored: np.ndarray) -> xr.Dataset:
    """The record of a model's answers, which are in the order of presentation orders, then of memories."""
    shape = (len(game.presented), -1, len(game.words))
    return make_record(
        log_p.reshape(shape),
        game.words,
        game.presented,
        backend.tokens(game.words),
        game.memory_length,
        backend.name,
        censored.reshape(shape),
        model_identity=backend.identity,
        **prompt_options(game.template, game.payoffs),
        **backend.provenance,
    )


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

    ℓ is the log-probability of a word among all tokens; it differs from the logit by a constant, which cancels. Source:
    [004] Eq. 9, averaged over the presentation orders that the paper draws at random. Two of its four published models
    show a filter in each order before the average: Llama 3.1 top_p = 0.9 and QwQ top_p = 0.95, with floor = 2.2e-16.
    `Sampling` defines each step.

    Parameters
    ----------
    record
        A Dataset with `log_probability` (…, order, state, word): a record, or a policy from `extract`.
    temperature
        T > 0. T = 1 renormalises the model's own probabilities to the words. The limit 0 is top_k = 1.
    top_k
        Keep the words that have fewer than k ≥ 1 more probable ones; equally probable words are kept or removed
        together. None for no such filter.
    top_p
        Then keep the words whose more probable ones together have less than p, 0 < p ≤ 1. None for no such filter.
    over
        'words' filters the renormalised words, which is exact. 'vocabulary' filters all tokens, which a record
        determines only in part.
    floor
        Probability of each word that a filter removed; the kept words share the rest.
    order
        Number of the single presentation order to use; None for the mean over all.
    undecided
        Choice if censored words or a filter over the vocabulary leave a probability undetermined. 'raise', or 'bound'
        for `q` from the bounds (censored words at their bound, undecided words kept) and an interval around it.

    Returns
    -------
    The record with `q` (…, state, word) and the steps in the attrs. undecided='bound' adds the bounds `q_low` and
    `q_high`.

    Raises
    ------
    InputError
        If a parameter is out of range, the record has no log-probabilities, or they do not determine the policy.

    See Also
    --------
    extract : measures the record

    Examples
    --------
    An agent that has agreed on "his" says it again, the more surely the lower the temperature.

    >>> from policy_extraction import policy_from_record
    >>> record = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> for options in ({"temperature": 1.0}, {"temperature": 0.5}, {"top_k": 1}):
    ...     print(policy_from_record(record, **options)["q"].sel(word="his").values[1].round(3))
    0.824
    0.907
    1.0
    """
    sampling = Sampling(temperature, top_k, top_p, over, floor, order, undecided)
    expect(record, "record", "record")
    used = record
    if order is not None:
        numbers = record["order"].values.tolist()
        if order not in numbers:
            raise InputError(
                f"order = {order}: expected {', '.join(map(str, numbers))}, a presentation order of the record"
            )
        used = record.isel(order=[numbers.index(order)])
    each = used["log_probability"].transpose(..., "order", "state", "word")
    censored = used["censored"].transpose(*each.dims).values.astype(bool) if "censored" in used else None
    choice = choose(each.values, censored, sampling)
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


def stack(records: Sequence[xr.Dataset]) -> xr.Dataset:
    """Records of one model for several sets of words, over the dim `pair`.

    Attrs that differ, such as a server's counts, become texts with the values of all pairs in order.
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
