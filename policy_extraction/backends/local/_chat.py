"""Prompts in the chat format of a model."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, TypeAlias

from meanfield import InputError
from policy_extraction.prompts._template import Prompt

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
