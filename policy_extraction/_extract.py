"""The public function: a model and words in, a policy out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from tqdm.auto import tqdm

from meanfield import InputError, MemorySpace
from policy_extraction._arguments import Words, check_games, games_of
from policy_extraction._cache import RecordCache
from policy_extraction._load import LanguageModel, dtype_name, given, load
from policy_extraction._packed import packed_linears
from policy_extraction._questions import all_memories, ask, long_memories, orders
from policy_extraction._record import check_temperature, make_record, policy_from_record, stack
from policy_extraction._score import score
from policy_extraction._source import SMOLLM2, find
from policy_extraction._template import NAMING_GAME, Payoffs, Template


def extract(
    model: str | os.PathLike[str] | tuple[Any, Any] = SMOLLM2,
    *,
    words: Sequence[str] | Sequence[Sequence[str]],
    memory_length: int = 5,
    temperature: float = 0.5,
    device_map: Any = None,
    dtype: Any = None,
    gguf_file: str | None = None,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
    batch_size: int = 16,
    progress: bool = False,
    cache: bool | str | os.PathLike[str] = True,
) -> xr.Dataset:
    """The policy of a language model in the naming game: P(word) in every memory state.

    In every memory state, and for every order in which the words can be presented, the log-probability of each word is
    read off the model over its whole vocabulary. Of this record the softmax over the words at temperature T, averaged
    over the orders, is the policy ([004] Eq. 9).

    Parameters
    ----------
    model
        `SMOLLM2` (embedded), a name on the Hugging Face hub, a folder, a .gguf file, or a pair (model, tokenizer) that
        is loaded already.
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
        The file in the folder or repository `model` that holds the weights in GGUF format.
    template
        The prompt.
    payoffs
        Points of a round.
    batch_size
        Prompts in a forward pass.
    progress
        Show a progress bar.
    cache
        True to keep records in `cache_folder` and to take from there what was measured before, False not to, or a
        folder for them. Models given as objects are never cached.

    Returns
    -------
    Policy with `q` (state, word), and beside it the record: `log_probability` (order, state, word), `captured_mass`
    (order, state), the probability of the words together among all tokens, coordinates `order_label` and `word_tokens`.
    For several sets of words, everything over a first dim `pair`.

    Raises
    ------
    InputError
        If an argument is wrong, the model can't be loaded, its tokenizer can't tell the words apart, its context is too
        short, or it returns NaN. Words and lengths are checked before anything is measured.
    """
    games, stacked = games_of(words)
    check_games(games, memory_length)
    check_temperature(temperature)
    if batch_size < 1:
        raise InputError(f"batch_size = {batch_size}: expected at least 1")
    if isinstance(model, tuple):
        language_model, identity, kept = _given(model), "given", RecordCache(False)
    else:
        source = find(model if isinstance(model, str) else Path(model), gguf_file)
        language_model, identity, kept = None, source.identity, RecordCache(cache)
    number_format = dtype_name(dtype, device_map)

    def key(game: Words) -> dict[str, object]:
        return {
            "format": 1,
            "identity": identity,
            "dtype": number_format,
            "words": game,
            "memory_length": int(memory_length),
            "template": asdict(template),
            "payoffs": asdict(payoffs),
        }

    records = {game: kept.get(key(game)) for game in games}
    missing = [game for game, record in records.items() if record is None]
    if missing:
        kept.prepare()
        if language_model is None:
            language_model = load(source, number_format, device_map)
        for game in missing:
            ask(language_model, game, long_memories(game, memory_length), template, payoffs)
        n_prompts = sum(MemorySpace(len(g), memory_length).n_states * len(orders(g)) for g in missing)
        with (
            packed_linears(language_model.model),
            tqdm(total=n_prompts, desc=language_model.name, unit="prompt", disable=not progress) as bar,
        ):
            for game in missing:
                record = _measure(language_model, game, memory_length, template, payoffs, batch_size, bar, identity)
                kept.put(key(game), record)
                records[game] = record
    found = [record for record in records.values() if record is not None]
    return policy_from_record(stack(found) if stacked else found[0], temperature)


def _measure(
    language_model: LanguageModel,
    words: Words,
    memory_length: int,
    template: Template,
    payoffs: Payoffs,
    batch_size: int,
    bar: tqdm,
    identity: str,
) -> xr.Dataset:
    asked = ask(language_model, words, all_memories(words, memory_length), template, payoffs)
    log_p = np.stack([score(language_model.model, row, batch_size, bar.update) for row in asked])
    return make_record(
        log_p,
        words,
        orders(words),
        asked[0][0].answers,
        memory_length,
        language_model.name,
        model_identity=identity,
        template=template.name,
        payoff_success=payoffs.success,
        payoff_failure=payoffs.failure,
        dtype=str(language_model.model.dtype).removeprefix("torch."),
    )


def _given(model: tuple[Any, ...]) -> LanguageModel:
    if len(model) != 2 or not callable(model[0]) or not callable(model[1]):
        raise InputError("model: expected a name, a path, or a pair (model, tokenizer) of transformers")
    return given(*model)
