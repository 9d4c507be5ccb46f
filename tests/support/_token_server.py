"""The paths of vLLM, SGLang and llama.cpp for the server of `_openai_server`: tokens by number in place of texts.

A prompt is rendered with a mark before each role, and read as the longest tokens of the vocabulary. Bytes without one
are numbered behind the vocabulary and have probability 0.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

TURN, SAYS = "\x01", "\x02"
LEAST = float(np.finfo(np.float32).min)
IMPOSSIBLE = {"vllm": -9999.0, "sglang": LEAST, "llamacpp": LEAST}
VERSIONS = {"vllm": ("/version", "0.32.0"), "sglang": ("/server_info", "0.5.23")}


class KnownTokenizer:
    """The tokenizer of a known model, with the part of transformers' interface that is used."""

    chat_template = "known"
    name_or_path = "known"
    unk_token_id = None
    bos_token = None

    def __init__(self, vocabulary: Sequence[bytes]) -> None:
        self.vocabulary = vocabulary

    def __call__(self, texts: Sequence[str], add_special_tokens: bool = True) -> dict[str, list[list[int]]]:
        return {"input_ids": [read(self.vocabulary, text) for text in texts]}

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        return rendered(messages) + f"{TURN}assistant{SAYS}"


def rendered(messages: Sequence[dict[str, str]]) -> str:
    return "".join(f"{TURN}{message['role']}{SAYS}{message['content']}" for message in messages)


def read(vocabulary: Sequence[bytes], text: str) -> list[int]:
    """The numbers of the longest tokens, from the beginning on."""
    numbers = {token: i for i, token in enumerate(vocabulary)}
    longest_first = b"|".join(re.escape(token) for token in sorted(vocabulary, key=len, reverse=True))
    parts = re.findall(longest_first + b"|.", text.encode(), re.DOTALL)
    return [numbers[part] if part in numbers else len(vocabulary) + part[0] for part in parts]


def conversation_of_tokens(vocabulary: Sequence[bytes], tokens: Sequence[int]) -> tuple[str, bytes]:
    """The conversation, as from `_openai_server.conversation_of`, of tokens of a rendered prompt or a plain text."""
    n = len(vocabulary)
    text = b"".join(vocabulary[i] if i < n else bytes([i - n]) for i in tokens)
    *turns, answer = text.split(TURN.encode())
    if not turns:
        return "", answer
    said = [turn.decode().split(SAYS) for turn in turns[1:]]
    return json.dumps(said), answer.partition(SAYS.encode())[2]


def about(seen: Any, path: str) -> dict[str, Any] | None:
    """The server's description of itself; None where it has no such path."""
    if path == "/v1/models":
        return {"object": "list", "data": [{"id": seen.name, "owned_by": seen.dialect or "openai"}]}
    known, version = VERSIONS.get(seen.dialect, ("", ""))
    return {"version": version} if path == known else None


def token_reply(seen: Any, body: dict[str, Any], number: int, path: str) -> dict[str, Any] | None:
    """The reply of one of these servers; None where it answers as OpenAI's does, ValueError where it refuses."""
    body = {name: value for name, value in body.items() if name not in seen.unknown}
    vocabulary = seen.model.vocabulary
    if path == "/apply-template":
        return {"prompt": rendered(body["messages"])}
    if path == "/tokenize" and seen.dialect == "llamacpp":
        return {"tokens": read(vocabulary, body["content"])}
    if path == "/completion":
        return _native_completion(seen, body)
    if path == "/tokenize":
        if "messages" in body and "conversations" in seen.refused:
            raise ValueError("prompt: field required")
        if "messages" in body and bool(body.get("add_generation_prompt", True)) == (seen.dialect == "vllm"):
            raise ValueError("add_generation_prompt and continue_final_message contradict each other")
        tokens = read(vocabulary, rendered(body["messages"]) if "messages" in body else body["prompt"])
        return {"count": len(tokens), "max_model_len": 4096, "tokens": tokens}
    if path == "/generate" and seen.dialect == "sglang":
        log_p = _log_p(seen, body["input_ids"])
        rows = [[float(log_p[i]), i, None] for i in body.get("token_ids_logprob", [])]
        told = {"prompt_tokens": len(body["input_ids"]), "completion_tokens": 1}
        return {"text": "", "meta_info": told | ({"output_token_ids_logprobs": [rows]} if rows else {})}
    if path == "/v1/completions" and isinstance(body["prompt"], list):
        return _completion(seen, body, number)
    return None


def _log_p(seen: Any, tokens: Sequence[int]) -> np.ndarray:
    """Log-probability of each token of the vocabulary and each byte."""
    p = seen.model.probabilities(*conversation_of_tokens(seen.model.vocabulary, tokens))
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(np.append(p, np.zeros(256))), IMPOSSIBLE[seen.dialect])
    before = [request.get("input_ids", request.get("prompt")) for request in seen.requests]
    log_p[0] += seen.cached * (before.count(list(tokens)) > 1)
    return log_p


def _native_completion(seen: Any, body: dict[str, Any]) -> dict[str, Any]:
    """The completion of llama.cpp, which draws the most probable token."""
    log_p = _log_p(seen, body["prompt"])
    biased = log_p.copy()
    for token, bias in body.get("logit_bias", []):
        biased[token] += bias
    drawn = int(biased.argmax())
    if seen.filtered:
        log_p = np.where(np.arange(len(log_p)) == drawn, 0.0, LEAST)

    def entry(i: int) -> dict[str, Any]:
        return {"id": i, "token": "", "logprob": float(log_p[i])}

    listed = [entry(int(i)) for i in np.argsort(-log_p, kind="stable")[: body["n_probs"]]]
    return {"content": "", "completion_probabilities": [entry(drawn) | {"top_logprobs": listed}]}


def _completion(seen: Any, body: dict[str, Any], number: int) -> dict[str, Any]:
    log_p, tokens = _log_p(seen, body["prompt"]), body["prompt"]
    allowed = body.get("allowed_token_ids") or range(len(log_p))
    weights = np.zeros(len(log_p))
    weights[allowed] = np.exp(log_p[allowed] - log_p[allowed].max())
    weights /= weights.sum()
    drawn = int(np.random.default_rng(number).choice(len(weights), p=weights))
    if seen.filtered:
        with np.errstate(divide="ignore"):
            log_p = np.maximum(np.log(weights), IMPOSSIBLE["vllm"])
    most_probable = np.argsort(-log_p, kind="stable")[: body.get("logprobs", 0)].tolist()
    listed = dict.fromkeys([*body.get("logprob_token_ids", most_probable), drawn])

    def name(i: int) -> str:
        texts = [*seen.model.vocabulary, *(bytes([b]) for b in range(256))]
        return f"token_id:{i}" if body.get("return_tokens_as_token_ids") else texts[i].decode(errors="replace")

    columns = {
        "tokens": [name(drawn)],
        "token_logprobs": [float(log_p[drawn])],
        "top_logprobs": [{name(i): float(log_p[i]) for i in listed}],
        "text_offset": [0],
    }
    choice = {"index": 0, "text": "", "finish_reason": "length", "logprobs": columns}
    usage = {"prompt_tokens": len(tokens), "completion_tokens": 1, "total_tokens": len(tokens) + 1}
    return {"model": f"{seen.name}-2026", "choices": [choice], "usage": usage}


def spoiled(reply: dict[str, Any], failure: str) -> dict[str, Any]:
    """The reply with a fault in its log-probabilities, if it has any."""
    rows = reply.get("meta_info", {}).get("output_token_ids_logprobs", [[]])[0]
    top = reply["choices"][0]["logprobs"]["top_logprobs"][0] if "choices" in reply else {}
    if failure == "nan" and rows:
        rows[0][0] = math.nan
    if failure == "nan" and top:
        top[min(top)] = math.nan
    if failure == "missing token" and rows:
        rows.pop()
    if failure == "sum" and rows:
        rows[:] = [[-0.01, *row[1:]] for row in rows]
    if failure == "no tokens" and "tokens" in reply:
        reply["tokens"] = []
    return reply
