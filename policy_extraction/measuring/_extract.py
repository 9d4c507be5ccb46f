"""The policy of a language model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr
from tqdm.auto import tqdm

from meanfield import MemorySpace
from policy_extraction._toolbox.bars import hidden
from policy_extraction._toolbox.texts import check_kept
from policy_extraction.backends._backend import Backend, Submitting
from policy_extraction.backends._open import open_backend
from policy_extraction.backends.local._source import SMOLLM2
from policy_extraction.measuring._answers import Asked
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._record import make_record, policy_from_record, stack
from policy_extraction.measuring._sampling import Sampling
from policy_extraction.prompts._games import Words, check_games, check_tabulable, check_text, games_of
from policy_extraction.prompts._orders import Order, orders
from policy_extraction.prompts._questions import all_memories, prompts, trial_prompts
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Prompt, Template, check_prompt, prompt_options


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
    plans = {game: _Plan(game, tuple(orders(game)), memory_length, template, payoffs) for game in games}
    records = {game: kept.get(plan.key(backend)) for game, plan in plans.items()}
    missing = [plans[game] for game, record in records.items() if record is None]
    if missing:
        kept.prepare()
        for plan in missing:
            trial = trial_prompts(plan.words, plan.presented, memory_length, template, payoffs)
            check_text(plan.words, memory_length, trial)
            backend.check(trial, plan.words)
            check_kept({"model": backend.name, "identity": backend.identity, **backend.provenance})
        # A service that answers within a day has all pairs before the first wait.
        for plan in missing if len(missing) > 1 and isinstance(backend, Submitting) else []:
            kept.answers(plan.key(backend)).submit(backend, plan.words, *plan.questions(), sampling)
        total = sum(plan.n_prompts for plan in missing)
        with tqdm(total=total, desc=backend.name, unit="prompt", disable=hidden(progress)) as bar:
            for plan in missing:
                records[plan.words] = _measure(backend, plan, kept, bar, sampling)
    found = [record for record in records.values() if record is not None]
    return policy_from_record(stack(found) if stacked else found[0], temperature, undecided=undecided)


@dataclass(frozen=True)
class _Plan:
    """One record to measure."""

    words: Words
    presented: tuple[Order, ...]
    memory_length: int
    template: Template
    payoffs: Payoffs

    @property
    def n_prompts(self) -> int:
        return MemorySpace(len(self.words), self.memory_length).n_states * len(self.presented)

    def questions(self) -> tuple[list[Asked], list[Prompt]]:
        """Every memory in every order, and its prompt."""
        memories = all_memories(len(self.words), self.memory_length)
        wanted = [(tuple(memory), place) for place in range(len(self.presented)) for memory in memories]
        return wanted, prompts(self.words, self.presented, memories, self.template, self.payoffs)

    def key(self, backend: Backend) -> dict[str, object]:
        """Everything that determines the record."""
        return {"format": 4, "identity": backend.identity, **asdict(self), "memory_length": int(self.memory_length)}


def _measure(backend: Backend, plan: _Plan, kept: RecordCache, bar: tqdm, sampling: Sampling) -> xr.Dataset:
    """Measure the unknown answers, and keep the record."""
    # While other plans were measured, which takes days in batches, another process may have finished this one.
    if (finished := kept.get(plan.key(backend))) is not None:
        bar.total -= plan.n_prompts
        bar.refresh()
        return finished
    log_p, censored = kept.answers(plan.key(backend)).complete(backend, plan.words, *plan.questions(), bar, sampling)
    shape = (len(plan.presented), -1, len(plan.words))
    record = make_record(
        log_p.reshape(shape),
        plan.words,
        plan.presented,
        backend.tokens(plan.words),
        plan.memory_length,
        backend.name,
        censored.reshape(shape),
        model_identity=backend.identity,
        **prompt_options(plan.template, plan.payoffs),
        **backend.provenance,
    )
    kept.put(plan.key(backend), record)
    return record
