"""Requests that put a prompt to a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from policy_extraction.backends.api._limits import Usage
from policy_extraction.prompts._template import Prompt

Prefill = Literal["none", "assistant", "user", "text"]
CONTINUES = ("assistant", "text")  # the server continues a given beginning of an answer

GO_ON = "Your answer has been begun for you. Go on exactly where it stops, and do not repeat it:"
# Fields of vLLM and SGLang; llama.cpp's server needs none to continue a last message of the assistant.
GO_ON_FIELDS = {"continue_final_message": True, "add_generation_prompt": False}
MESSAGE_TOKENS = 32  # upper bound of the tokens that a chat template adds to a message
IMAGE_TOKENS = 12_000  # upper bound for a small image; the dearest known price is 2,833 and 5,667 a tile


@dataclass(frozen=True)
class Request:
    """A request for /chat/completions ('chat'), /completions ('text') or another path of the server ('native')."""

    kind: Literal["chat", "text", "native"]
    fields: dict[str, Any]  # the body without the model's name
    max_tokens: int  # to write
    most: Usage  # upper bounds; a token has at least one byte
    path: str = ""  # of a native request, which asks by GET if it has no fields


def request_for(prompt: Prompt, begun: str, prefill: Prefill, max_tokens: int, **fields: Any) -> Request:
    """A request for an answer after the prefix and `begun`; a model that writes both itself gets more tokens."""
    answer = prompt.answer_prefix + begun
    if prefill == "text":
        text = "\n\n".join([prompt.system, prompt.user, answer])
        most = Usage(len(text.encode()) + MESSAGE_TOKENS, max_tokens)
        return Request("text", {"prompt": text, **fields}, max_tokens, most)
    messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    if prefill == "none":
        return chat_request(messages, max_tokens + len(answer.encode()), **fields)
    if prefill == "user":
        messages[1]["content"] += f"\n\n{GO_ON}\n{answer}"
        return chat_request(messages, max_tokens, **fields)
    messages.append({"role": "assistant", "content": answer})
    return chat_request(messages, max_tokens, **GO_ON_FIELDS, **fields)


def chat_request(messages: list[dict[str, Any]], max_tokens: int, **fields: Any) -> Request:
    """A request for /chat/completions."""
    most = Usage(sum(map(_most_tokens, messages)), max_tokens)
    return Request("chat", {"messages": messages, **fields}, max_tokens, most)


def _most_tokens(message: dict[str, Any]) -> int:
    content = message["content"]
    if isinstance(content, str):
        return MESSAGE_TOKENS + len(content.encode())
    return MESSAGE_TOKENS + sum(len(p["text"].encode()) if p["type"] == "text" else IMAGE_TOKENS for p in content)
