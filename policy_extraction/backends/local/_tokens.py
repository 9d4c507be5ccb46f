"""Prompts in the chat format of a model, and their tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from meanfield import InputError
from policy_extraction.prompts._template import Prompt

Tokens = tuple[int, ...]
Tokenizer: TypeAlias = Any  # transformers.PreTrainedTokenizerBase

# Beginnings of an assistant's turn that open a block of thoughts.
THINKING = re.compile(r"<(think|thinking|thought|reasoning)>\s*$")
CHANNELS = "<|start|>assistant"  # models that open a channel first
FINAL_CHANNEL = "<|channel|>final<|message|>"

# Some templates print today's date, and a policy would depend on the day of its measurement.
TODAY = "{%- macro strftime_now(form) -%}26 Jul 2024{%- endmacro -%}"


def render(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """The text up to the word, special tokens included.

    System and user message go through the tokenizer's chat template, and the answer prefix starts the assistant's turn.
    Without a system role, the system message begins the user message. Thinking is switched off, and a block of thoughts
    that is open nevertheless is closed. A template that asks for today's date gets 26 Jul 2024, the default of Llama's
    templates. Without a chat template, the text is the three parts, separated by empty lines, behind the token for the
    beginning of a text if the tokenizer sets one.

    Raises InputError if the chat template accepts the messages in neither form.
    """
    if not getattr(tokenizer, "chat_template", None):
        return plain(tokenizer, prompt)
    from jinja2 import TemplateError

    chat = tokenizer.chat_template
    if isinstance(chat, str) and "strftime_now" in chat:
        chat = TODAY + chat
    options = {"chat_template": chat, "tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    system = {"role": "system", "content": prompt.system}
    user = {"role": "user", "content": prompt.user}
    folded = {"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}
    for messages in ([system, user], [folded]):
        # Some templates refuse a system role, some drop it silently, and some trim messages.
        with suppress(TemplateError):
            text = tokenizer.apply_chat_template(messages, **options)
            if prompt.system.strip() in text:
                if opened := THINKING.search(text):
                    text = f"{text.rstrip()}\n\n</{opened[1]}>\n\n"
                elif text.endswith(CHANNELS):
                    text += FINAL_CHANNEL
                return text + prompt.answer_prefix
    raise InputError(f"the chat template of {tokenizer.name_or_path or 'this tokenizer'} does not take a user message")


def plain(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """The three parts, separated by empty lines, behind the token for the beginning of a text if there is one."""
    first = tokenizer.bos_token
    begins = first and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id]
    return (first if begins else "") + "\n\n".join([prompt.system, prompt.user, prompt.answer_prefix])


@dataclass(frozen=True)
class Question:
    """The tokens that a model reads (`context`), and the tokens of each word as an answer."""

    context: Tokens
    answers: tuple[Tokens, ...]


def questions(tokenizer: Tokenizer, texts: Sequence[str], words: Sequence[str]) -> list[Question]:
    """The tokens of each text, and of each word as its continuation; InputError if words can't be told apart.

    Text and word are encoded together, because a word after a quotation mark and a word after a space are different
    tokens. Answers start after the last token that all encodings share.
    """
    result = spelled(tokenizer, texts, words)
    # The answers depend only on the end of the text, which all memory states share.
    for answers in {question.answers for question in result}:
        check_answers(answers, words, tokenizer.unk_token_id)
    return result


def spelled(tokenizer: Tokenizer, texts: Sequence[str], words: Sequence[str]) -> list[Question]:
    """The same without checks of the words."""
    endings = ("", *words)
    encoded = tokenizer([text + end for text in texts for end in endings], add_special_tokens=False)["input_ids"]
    each = [encoded[i : i + len(endings)] for i in range(0, len(encoded), len(endings))]
    return [question_of([tuple(tokens) for tokens in one]) for one in each]


def question_of(sequences: Sequence[Tokens]) -> Question:
    """The question of the tokens of a text, and of the text with each word behind it."""
    shared = shared_length(sequences)
    return Question(sequences[0][:shared], tuple(tokens[shared:] for tokens in sequences[1:]))


def shared_length(sequences: Iterable[Tokens]) -> int:
    """The number of tokens that all sequences share at their start."""
    sequences = list(sequences)
    first, last = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def check_answers(answers: Sequence[Tokens], words: Sequence[str], unknown: int | None = None) -> None:
    """InputError if a word has no tokens, the token `unknown`, or the same tokens as another."""
    for i, (word, tokens) in enumerate(zip(words, answers, strict=True)):
        if not tokens or unknown in tokens:
            raise InputError(f"words: the tokenizer of this model does not know {word!r}")
        if tokens in answers[:i]:
            other = words[answers.index(tokens)]
            raise InputError(f"words: the tokenizer of this model can't tell {word!r} from {other!r}")


def disjoint(log_p: np.ndarray, answers: Sequence[Tokens]) -> np.ndarray:
    """log P(word, not continued to another word) from log P(text begins with the word), shape (W,)."""
    result = log_p.copy()
    for i, word in enumerate(answers):
        longer = [j for j, other in enumerate(answers) if _continues(other, word)]
        nearest = [j for j in longer if not any(_continues(answers[j], answers[k]) for k in longer)]
        if nearest:
            with np.errstate(divide="ignore"):
                result[i] += np.log(max(0.0, -np.expm1(np.logaddexp.reduce(log_p[nearest]) - log_p[i])))
    return result


def _continues(longer: Tokens, shorter: Tokens) -> bool:
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter
