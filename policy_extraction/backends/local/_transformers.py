"""Local language models, run by transformers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from meanfield import InputError, ModelError
from policy_extraction.backends._backend import Scores
from policy_extraction.backends.local._attention import UnsupportedError, branching
from policy_extraction.backends.local._batches import batch_scores, repeatable
from policy_extraction.backends.local._decode import continuations
from policy_extraction.backends.local._memory_budget import DEFAULT_BUDGET, MOST_TOKENS_CPU, Footprint, footprint
from policy_extraction.backends.local._packed import packed_linears
from policy_extraction.backends.local._parallel import in_order
from policy_extraction.backends.local._passes import Beginning, Room, tree_scores
from policy_extraction.backends.local._source import LIBRARIES, LanguageModel, require_libraries
from policy_extraction.backends.local._tokens import Question, disjoint, questions, render, spelled
from policy_extraction.prompts._template import Prompt

# Most neighbours in the tree that are measured together. Their number depends on the model and not on a clock: an
# interrupted measurement goes on with the same portions, so its numbers are the same to the last bit.
PORTION = 128
# Prompts times weights of a portion on a CPU: about four seconds of a core. Smaller portions take longer in all.
WORK = 2.2e9


class TransformersBackend:
    """A causal language model of transformers.

    Parameters
    ----------
    open_model
        Function that loads the model when it is first needed.
    name
        Name for people.
    identity
        Key of kept answers; it changes with weights, tokenizer and number format. Empty to keep none.
    memory_budget
        Bytes for key-value caches and activations, besides the weights; None for 1 GiB.

    Raises
    ------
    InputError
        If `memory_budget` is not a whole number above 0. The methods raise it if the tokenizer can't tell the words
        apart or a prompt is too long.

    See Also
    --------
    policy_extraction.open_backend : makes one from a model's name

    Examples
    --------
    >>> from policy_extraction import extract, open_backend
    >>> backend = open_backend("HuggingFaceTB/SmolLM2-360M-Instruct", dtype="bfloat16")  # doctest: +SKIP
    >>> policy = extract(backend, words=("his", "her"), memory_length=1)  # doctest: +SKIP
    """

    def __init__(
        self, open_model: Callable[[], LanguageModel], name: str, identity: str = "", memory_budget: int | None = None
    ) -> None:
        if memory_budget is not None and (type(memory_budget) is not int or memory_budget < 1):
            raise InputError(f"memory_budget = {memory_budget!r}: expected a number of bytes, as in 2 * 1024**3")
        self.name, self.identity = name, identity
        self._open = open_model
        self._budget = DEFAULT_BUDGET if memory_budget is None else memory_budget
        self._example = ""
        self._exact_up_to = 0

    @cached_property
    def language_model(self) -> LanguageModel:
        """The model and its tokenizer."""
        return self._open()

    @cached_property
    def _footprint(self) -> Footprint:
        return footprint(self.language_model.model)

    @property
    def provenance(self) -> dict[str, str | int | float]:
        """Number format of the weights, and the libraries that run the model."""
        model = self.language_model.model
        quantized = getattr(model.config, "quantization_config", None) or {}
        named = quantized.get if isinstance(quantized, dict) else lambda name: getattr(quantized, name, None)
        method = named("quant_method")
        quantization = {"quantization": str(getattr(method, "value", method))} if method else {}
        return {"libraries": " ".join(LIBRARIES), "dtype": str(model.dtype).removeprefix("torch."), **quantization}

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        """See `Backend`: check words, lengths and memory, and that the model's predictions are numbers."""
        asked = self._questions(prompts, words)
        self._tokens_of_a_pass(asked)
        longest = max(asked, key=lambda question: len(question.context))
        self._finite(batch_scores(self.language_model.model, [longest], 1))

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        """See `Backend`, in portions of neighbours in the tree of all prompts."""
        if not prompts:
            return
        asked = self._questions(prompts, words)
        import torch

        model = self.language_model.model
        order = sorted(range(len(asked)), key=lambda number: asked[number].context)
        with packed_linears(model):
            exact, size, workers = self._exact(asked), PORTION, 1
            if exact and model.device.type == "cpu":  # without the tree, each portion runs its shared beginning again
                size = max(4, min(PORTION, int(WORK / sum(weights.numel() for weights in model.parameters()))))
                # As many passes at a time as fit the budget and have a thread each, whatever is left to do: the last
                # bits of numbers depend on the threads of a pass.
                workers = min(self._footprint.passes(self._budget, _longest(asked)), torch.get_num_threads())
            numbers = [order[first : first + size] for first in range(0, len(order), size)]
            portions = [[asked[number] for number in some] for some in numbers]
            work = in_order(self._method(asked, exact), portions, workers)
            # The attention is replaced once around all passes, which run concurrently and end before it is put back.
            with branching(model) if exact else nullcontext(), closing(work) as measured:
                for some, portion, begun in zip(numbers, portions, measured, strict=True):
                    rows = zip(self._finite(begun), portion, strict=True)
                    log_p = np.stack([disjoint(row, question.answers) for row, question in rows])
                    yield Scores(np.array(some), log_p, np.zeros(log_p.shape, dtype=bool))

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """See `Backend`. Copies of a prompt share forward passes as long as their texts are equal."""
        if not prompts:
            return []
        model, tokenizer = self.language_model.model, self.language_model.tokenizer
        texts = {prompt: render(tokenizer, prompt) for prompt in dict.fromkeys(prompts)}
        encoded = tokenizer(list(texts.values()), add_special_tokens=False)["input_ids"]
        tokens = dict(zip(texts, map(tuple, encoded), strict=True))
        contexts = [tokens[prompt] for prompt in prompts]
        self._example, longest = texts[prompts[-1]], max(map(len, contexts))
        self._check_length(longest)
        most = max(1, self._footprint.tokens(self._budget, longest + max_tokens))
        # The tokens that end an answer, by the model and by the tokenizer.
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
        draws = np.random.default_rng(seed).random((len(prompts), max_tokens))
        with packed_linears(model):
            written = continuations(
                model,
                contexts,
                draws,
                temperature,
                frozenset(token for token in ends if token is not None),
                lambda length: max(1, most // length),
                repeatable(model),
            )
        return tokenizer.batch_decode([list(tokens) for tokens in written], skip_special_tokens=True)

    def tokens(self, words: Sequence[str]) -> list[str]:
        """The token numbers of each word as an answer to the last prompt that was asked."""
        (question,) = spelled(self.language_model.tokenizer, [self._example], words)
        return [" ".join(map(str, answer)) for answer in question.answers]

    def _questions(self, prompts: Sequence[Prompt], words: Sequence[str]) -> list[Question]:
        tokenizer = self.language_model.tokenizer
        texts = [render(tokenizer, prompt) for prompt in prompts]
        self._example = texts[-1]
        asked = questions(tokenizer, texts, words)
        self._check_length(_longest(asked))
        return asked

    def _check_length(self, longest: int) -> None:
        config = self.language_model.model.config.get_text_config()
        limit = getattr(config, "max_position_embeddings", None)  # some configurations do not say
        if limit is not None and longest > limit:
            raise InputError(
                f"memory_length: the longest prompt has {longest} tokens, and the context of {self.name} has {limit}; "
                "take a shorter memory"
            )

    def _finite(self, log_p: np.ndarray) -> np.ndarray:
        if np.isnan(log_p).any():
            raise ModelError(f"model = {self.name}: it returned logits that are not numbers (NaN); try dtype='float32'")
        return log_p

    def _tokens_of_a_pass(self, asked: Sequence[Question]) -> int:
        model = self.language_model.model
        most = self._footprint.tokens(self._budget, _longest(asked))
        return min(most, MOST_TOKENS_CPU) if model.device.type == "cpu" else most

    def _method(self, asked: Sequence[Question], exact: bool) -> Callable[[Sequence[Question]], np.ndarray]:
        """The function that scores a portion: by the tree if that is exact, else by batches."""
        model, tokens = self.language_model.model, self._tokens_of_a_pass(asked)
        if exact:
            room, here = Room(tokens, self._footprint.wanted), threading.local()

            def scores(portion: Sequence[Question]) -> np.ndarray:
                if not hasattr(here, "beginning"):
                    here.beginning = Beginning(_longest(asked) - 1)  # an answer's last token is never read
                return tree_scores(model, portion, room, here.beginning)

            return scores
        return lambda portion: batch_scores(model, portion, tokens)

    def _exact(self, asked: Sequence[Question]) -> bool:
        """Whether the tree is exact for prompts of this length; tested once."""
        longest = _longest(asked)
        if longest > self._exact_up_to and self._tree_is_exact(asked):
            self._exact_up_to = longest
        return longest <= self._exact_up_to

    def _tree_is_exact(self, asked: Sequence[Question]) -> bool:
        import torch

        model = self.language_model.model
        by_length = sorted(asked, key=lambda question: len(question.context))
        few = [by_length[0], by_length[-1]]
        small = Room(max(8, len(few[-1].context) // 4), 0)  # small, so that passes have a prefix
        plain = np.concatenate([batch_scores(model, [question], 1) for question in few])
        try:
            branched = tree_scores(model, few, small)
        # Not only attention that is refused: models whose code needs another attention fail in their own ways.
        except (UnsupportedError, AttributeError, TypeError, ValueError, KeyError, RuntimeError):
            return False
        return bool(np.allclose(branched, plain, rtol=0, atol=3 * torch.finfo(model.dtype).eps ** 0.5))


def given(model: Any, tokenizer: Any, memory_budget: int | None = None) -> TransformersBackend:
    """The back end of a model that the caller has loaded."""
    require_libraries()
    name = Path(getattr(model.config, "_name_or_path", "") or "unnamed").name
    language_model = LanguageModel(model.eval(), tokenizer)
    return TransformersBackend(lambda: language_model, name, "", memory_budget)


def _longest(asked: Sequence[Question]) -> int:
    return max(len(question.context) + max(map(len, question.answers)) for question in asked)
