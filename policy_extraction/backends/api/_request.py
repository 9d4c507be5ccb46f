"""How a prompt is put to a server."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Literal

from policy_extraction.backends.api._limits import Usage
from policy_extraction.prompts._template import Prompt

Prefill = Literal["none", "assistant", "user", "text"]
CONTINUES = ("assistant", "text")  # the server takes the beginning of an answer as if the model had written it

GO_ON = "Your answer has been begun for you. Go on exactly where it stops, and do not repeat it:"
# Fields of vLLM and SGLang. llama.cpp's server goes on from a last message of the assistant without being told.
GO_ON_FIELDS = {"continue_final_message": True, "add_generation_prompt": False}

MESSAGE_TOKENS = 32  # what a chat template puts around a message, generously
IMAGE_TOKENS = 12_000  # more than the dearest known counting (2,833 and 5,667 a tile) gives a small image


@dataclass(frozen=True)
class Request:
    """One request.

    Parameters
    ----------
    kind
        Which of the two interfaces it is for.
    fields
        Its body, without the model's name.
    max_tokens
        Tokens to write, at most.
    most
        Tokens that it can use, at most. A token has at least one byte.
    """

    kind: Literal["chat", "text"]
    fields: dict[str, Any]
    max_tokens: int
    most: Usage


def request_for(prompt: Prompt, begun: str, prefill: Prefill, max_tokens: int, **fields: Any) -> Request:
    """What asks for the answer to a prompt, of which `begun` is written already, after the answer prefix.

    Where the model has to write the answer prefix itself, the tokens for it are added to `max_tokens`.
    """
    answer = prompt.answer_prefix + begun
    if prefill == "text":
        return text_request("\n\n".join([prompt.system, prompt.user, answer]), max_tokens, **fields)
    messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    if prefill == "none":
        return chat_request(messages, max_tokens + len(answer.encode()), **fields)
    if prefill == "user":
        messages[1]["content"] += f"\n\n{GO_ON}\n{answer}"
        return chat_request(messages, max_tokens, **fields)
    messages.append({"role": "assistant", "content": answer})
    return chat_request(messages, max_tokens, extra_body=GO_ON_FIELDS, **fields)


def chat_request(messages: list[dict[str, Any]], max_tokens: int, **fields: Any) -> Request:
    """A request for /chat/completions."""
    most = Usage(sum(map(_most_tokens, messages)), max_tokens)
    return Request("chat", {"messages": messages, **fields}, max_tokens, most)


def text_request(text: str, max_tokens: int, **fields: Any) -> Request:
    """A request for /completions."""
    return Request(
        "text", {"prompt": text, **fields}, max_tokens, Usage(len(text.encode()) + MESSAGE_TOKENS, max_tokens)
    )


def user_message(text: str, image_png: bytes | None) -> dict[str, Any]:
    """A message of the user, with an image or without one."""
    if image_png is None:
        return {"role": "user", "content": text}
    url = f"data:image/png;base64,{base64.b64encode(image_png).decode()}"
    image = {"type": "image_url", "image_url": {"url": url, "detail": "high"}}
    return {"role": "user", "content": [{"type": "text", "text": text}, image]}


def _most_tokens(message: dict[str, Any]) -> int:
    content = message["content"]
    if isinstance(content, str):
        return MESSAGE_TOKENS + len(content.encode())
    return MESSAGE_TOKENS + sum(len(p["text"].encode()) if p["type"] == "text" else IMAGE_TOKENS for p in content)
