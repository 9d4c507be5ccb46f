"""A prompt in the form that a model was trained on."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from meanfield import InputError
from policy_extraction.prompts._template import Prompt

Tokenizer: TypeAlias = Any  # transformers.PreTrainedTokenizerBase

# How an assistant's turn can begin with thoughts, of which the answer must be no part.
THINKING = re.compile(r"<(think|thinking|thought|reasoning)>\s*$")
CHANNELS = "<|start|>assistant"  # models that open a channel first
FINAL_CHANNEL = "<|channel|>final<|message|>"

# Some templates name today's date, with which a policy would depend on the day when it was measured.
TODAY = "{%- macro strftime_now(form) -%}26 Jul 2024{%- endmacro -%}"


def render(tokenizer: Tokenizer, prompt: Prompt) -> str:
    """The text up to the word, special tokens included.

    System and user message go through the tokenizer's chat template, and the answer prefix starts the assistant's turn.
    Where a template has no system role, the system message opens the user's. Where it lets the model think first, the
    thoughts are empty: thinking is switched off, and a block that is open nevertheless is closed. A tokenizer without a
    chat template gets the three parts in a row, separated by empty lines, after its token for the beginning of a text
    if it sets one. Where a template asks for today's date it is told 26 Jul 2024, the one that Llama's use by default.

    Raises
    ------
    InputError
        If the chat template accepts the messages in neither form.
    """
    if not getattr(tokenizer, "chat_template", None):
        return _beginning(tokenizer) + "\n\n".join([prompt.system, prompt.user, prompt.answer_prefix])
    system = {"role": "system", "content": prompt.system}
    user = {"role": "user", "content": prompt.user}
    folded = {"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}
    for messages in ([system, user], [folded]):
        text = _apply(tokenizer, messages)
        # Some templates refuse a system role, others drop it in silence, and some trim what they are given.
        if text is not None and prompt.system.strip() in text:
            return _without_thoughts(text) + prompt.answer_prefix
    raise InputError(f"the chat template of {tokenizer.name_or_path or 'this tokenizer'} does not take a user message")


def _apply(tokenizer: Tokenizer, messages: list[dict[str, str]]) -> str | None:
    from jinja2 import TemplateError

    chat = tokenizer.chat_template
    if isinstance(chat, str) and "strftime_now" in chat:
        chat = TODAY + chat
    try:
        return tokenizer.apply_chat_template(
            messages, chat_template=chat, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    except TemplateError:
        return None


def _without_thoughts(text: str) -> str:
    opened = THINKING.search(text)
    if opened:
        return f"{text.rstrip()}\n\n</{opened[1]}>\n\n"
    return text + FINAL_CHANNEL if text.endswith(CHANNELS) else text


def _beginning(tokenizer: Any) -> str:
    first = tokenizer.bos_token
    return first if first and tokenizer("")["input_ids"][:1] == [tokenizer.bos_token_id] else ""
