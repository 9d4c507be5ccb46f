"""The policy of a language model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import xarray as xr
from tqdm.auto import tqdm

from policy_extraction._toolbox.bars import hidden
from policy_extraction.backends._backend import Backend, Submitting
from policy_extraction.backends._open import open_backend
from policy_extraction.backends.local._source import SMOLLM2
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._record import policy_from_record, record_of, stack
from policy_extraction.measuring._sampling import Sampling
from policy_extraction.prompts._games import Game, check_games, check_tabulable, check_text, games_of
from policy_extraction.prompts._orders import orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Template, check_prompt


def extract(
    model: str | os.PathLike[str] | tuple[Any, Any] | Backend = SMOLLM2,
    *,
    words: Sequence[str] | Sequence[Sequence[str]],
    memory_length: int = 5,
    temperature: float = 0.5,
    device_map: Any = None,
    dtype: Any = None,
    gguf_file: str | None = None,
    quantization_config: Any = None,
    memory_budget: int | None = None,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    progress: bool | None = None,
    cache: bool | str | os.PathLike[str] = True,
    undecided: str = "raise",
) -> xr.Dataset:
    """The policy of a language model in the naming game: P(word) in every memory state.

    The record holds the log-probability of each word over the model's whole vocabulary, in every memory state and for
    every presentation order of the words. The policy is the softmax over the words at temperature T, averaged over the
    orders ([004] Eq. 9). For more than three words a balanced sample replaces all orders; see `orders`. A cached
    measurement that was interrupted goes on where it stopped.

    Parameters
    ----------
    model
        `SMOLLM2` (embedded), a name on the Hugging Face hub, a folder, a .gguf file, a loaded pair (model, tokenizer),
        or any `Backend`.
    words
        The words of one game, as in ``("his", "her")``, or a sequence of such sequences of equal length.
    memory_length
        H, in interactions.
    temperature
        T of Eq. 9.
    device_map
        As in transformers; None for the CPU.
    dtype
        Number format of the weights, as in transformers; None for float32 on the CPU, else the checkpoint's own.
    gguf_file
        File of the weights in GGUF format, in the folder or repository `model`.
    quantization_config
        As in transformers, for weights of 4 or 8 bits.
    memory_budget
        Bytes for key-value caches and activations, besides the weights; None for 1 GiB. It sets the size of passes.
    template
        The prompt.
    payoffs
        Points of a round.
    progress
        Show a progress bar. Default: on a terminal.
    cache
        True to keep records in `cache_folder` and reuse them, False for no cache, or a folder. Records of models given
        as objects are never kept, and of back ends only if they have an identity.
    undecided
        As in `policy_from_record`, for words that a server did not list: 'raise' at the first such prompt, or 'bound'
        for intervals of q. Answers are kept in either case.

    Returns
    -------
    Policy with `q` (state, word), and the record: `log_probability` (order, state, word); `captured_mass` (order,
    state), the probability of all words together among all tokens; coordinates `order_label` and `word_tokens`.
    Several sets of words add a first dim `pair`.

    Raises
    ------
    InputError
        If an argument is wrong, the model can't be loaded, its tokenizer can't tell the words apart, or its context is
        too short. Words and lengths are checked before the measurement.
    ModelError
        If the model returns NaN or leaves prompts without an answer.
    StorageError
        If the cache can't be written. Answers so far are kept.
    KeyboardInterrupt
        After Ctrl-C. A line on stderr says how many answers are kept; the same call goes on from there.

    See Also
    --------
    lazy_policy : for state spaces that are too large to measure whole
    policy_from_record : another temperature or filter, without asking again
    policy_extraction.check_policy : warnings about the result

    Examples
    --------
    A table stands in for a model. It says "his" more often if this is listed first, and q is the mean over the orders.

    >>> from policy_extraction import extract
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     return {"his": 0.6, "her": 0.2} if order[0] == "his" else {"his": 0.4, "her": 0.4}
    >>> policy = extract(TableBackend(law, ("his", "her"), 1), words=("his", "her"), memory_length=1, temperature=1.0)
    >>> policy["q"].sel(word="his").values, policy["captured_mass"].isel(state=0).values.round(3)
    (array([0.625, 0.625, 0.625, 0.625, 0.625]), array([0.8, 0.8]))
    """
    games, stacked = games_of(words)
    check_games(games, memory_length)
    check_prompt(template, payoffs)
    check_tabulable(games, memory_length)
    sampling = Sampling(temperature, undecided=undecided)
    kept = RecordCache(cache)
    backend = open_backend(
        model,
        device_map=device_map,
        dtype=dtype,
        gguf_file=gguf_file,
        quantization_config=quantization_config,
        memory_budget=memory_budget,
    )
    if not backend.identity:
        kept = RecordCache(False)
    plans = {words: Game(words, orders(words), int(memory_length), template, payoffs) for words in games}
    records = {words: kept.get(_key(backend, plan)) for words, plan in plans.items()}
    missing = [plans[words] for words, record in records.items() if record is None]
    if missing:
        kept.prepare()
        for plan in missing:
            check_text(plan.words, memory_length, plan.trial())
            plan.check(backend)
        # A service that answers within a day has all pairs before the first wait.
        asked = {plan.words: plan.every() for plan in missing}
        for plan in missing if len(missing) > 1 and isinstance(backend, Submitting) and kept.folder else []:
            answers, no_bar = kept.answers(_key(backend, plan)), tqdm(disable=True)
            answers.complete(backend, plan.words, asked[plan.words], plan.prompt, no_bar, sampling, wait=False)
        total = sum(map(len, asked.values()))
        with tqdm(total=total, desc=backend.name, unit="prompt", disable=hidden(progress)) as bar:
            for plan in missing:
                key = _key(backend, plan)
                # While others were measured, which takes days in batches, another process may have finished this one.
                if (finished := kept.get(key)) is None:
                    answers = kept.answers(key)
                    found = answers.complete(backend, plan.words, asked[plan.words], plan.prompt, bar, sampling)
                    finished = record_of(plan, backend, *found)
                    kept.put(key, finished)
                else:
                    bar.total -= len(asked[plan.words])
                    bar.refresh()
                records[plan.words] = finished
    found = [record for record in records.values() if record is not None]
    return policy_from_record(stack(found) if stacked else found[0], temperature, undecided=undecided)


def _key(backend: Backend, plan: Game) -> dict[str, object]:
    """Everything that determines a record."""
    return {"format": 4, "identity": backend.identity, **asdict(plan)}
