"""A server in OpenAI's format on this machine, whose model is a known distribution, and its failures.

The model writes token by token; the probabilities of the next token are a function of the conversation and of the bytes
that its answer consists of so far.
"""

from __future__ import annotations

import json
import math
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from _batch_server import BatchService, NoReplyError, batch_reply
from _token_server import about, spoiled, token_reply

PREFIX = "{'value': '"
OPENING = ("{'", "value", "': '")  # the tokens in which the model writes the prefix
# Two of these spell 'his'; two 'her', unless a quotation mark stands before.
FIRST_WORDS = ("his", "her", " his", "'her", "the", "history", "x", "y", "z", "w", "v", "u", "!", "?", ".", ";")


@dataclass
class KnownModel:
    """A made-up language model.

    Parameters
    ----------
    vocabulary
        Its tokens; the last one ends the answer.
    obedience
        Probability that it goes on writing the prefix where its answer has begun so, or has not begun.
    spread
        Standard deviation of the logits.
    rare
        Tokens less probable than that.
    rarity
        How much less, a factor.
    """

    vocabulary: Sequence[bytes]
    obedience: float = 1.0
    spread: float = 2.0
    rare: Sequence[str] = ()
    rarity: float = 1e-6

    @classmethod
    def of(cls, words: Sequence[str], **options: Any) -> KnownModel:
        return cls([word.encode() for word in dict.fromkeys([*words, *OPENING, "<end>"])], **options)

    def probabilities(self, conversation: str, answer: bytes) -> np.ndarray:
        """Probability of each token of the vocabulary, shape (V,)."""
        seed = zlib.crc32(conversation.encode() + b"\0" + answer)
        p = np.exp(np.random.default_rng(seed).normal(0, self.spread, len(self.vocabulary)))
        p[[self.vocabulary.index(token.encode()) for token in OPENING]] = 0
        p[[self.vocabulary.index(token.encode()) for token in self.rare]] *= self.rarity
        p /= p.sum()
        for i, token in enumerate(OPENING):
            if answer == "".join(OPENING[:i]).encode():
                p *= 1 - self.obedience
                p[self.vocabulary.index(token.encode())] += self.obedience
        return p


@dataclass
class Behaviour:
    """The behaviour of the server, and the requests it has seen."""

    model: KnownModel
    name: str = "known"
    key: str | None = None
    continues: bool = True
    returns_prefill: bool = False
    most_logprobs: int | None = None
    delay: float = 0.0
    gather: int = 0  # answer none before so many have been in flight together
    failures: list[str] = field(default_factory=list)  # one for each request to come
    always: str = ""  # and this for those after them
    usage: bool = True
    dialect: str = ""  # also the paths of 'vllm' or 'sglang'
    filtered: bool = False  # log-probabilities are those after a filter
    unknown: Sequence[str] = ()  # fields that are ignored
    refused: Sequence[str] = ()  # fields that are refused
    thinks: int = 0  # tokens that it writes and hides before an answer
    null: Sequence[str] = ()  # tokens whose log-probability is null
    cached: float = 0.0  # change of the first token's log-probability after a prompt that was read before
    batches: BatchService | None = None  # also the paths of batches
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    spent: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@contextmanager
def serving(behaviour: Behaviour) -> Iterator[str]:
    """The address of a server that behaves like this, for the time of the block."""

    class Handler(_Handler):
        server_behaviour = behaviour

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_behaviour: Behaviour

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self._batch(b""):
            return
        reply = about(self.server_behaviour, self.path)
        self._send(404 if reply is None else 200, json.dumps(reply), {})

    def do_POST(self) -> None:
        seen = self.server_behaviour
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if self._batch(sent):
            return
        body = json.loads(sent)
        with seen.lock:
            seen.requests.append(body)
            seen.paths.append(self.path)
            seen.times.append(time.monotonic())
            seen.in_flight += 1
            seen.most_in_flight = max(seen.most_in_flight, seen.in_flight)
            failure = seen.failures.pop(0) if seen.failures else seen.always
            number = len(seen.requests)
        try:
            if seen.delay:
                time.sleep(seen.delay)
            patience = time.monotonic() + 10
            while seen.most_in_flight < seen.gather and time.monotonic() < patience:
                time.sleep(0.005)
            self._answer(seen, body, failure, number)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has gone
        finally:
            with seen.lock:
                seen.in_flight -= 1

    def _batch(self, sent: bytes) -> bool:
        """Reply if this is a path of batches."""
        seen = self.server_behaviour
        if seen.batches is None or not self.path.startswith(("/v1/files", "/v1/batches")):
            return False
        try:
            with seen.lock:
                kind, paid = self.headers.get("Content-Type", ""), seen.batches.paid
                status, reply = batch_reply(
                    seen.batches, self.path, sent, kind, lambda body: _reply(seen, body, len(paid), "/chat/completions")
                )
            self._send(status, reply if isinstance(reply, str) else json.dumps(reply), {})
        except NoReplyError:
            time.sleep(30)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client has gone
        return True

    def _answer(self, seen: Behaviour, body: dict[str, Any], failure: str, number: int) -> None:
        if failure == "slow":
            time.sleep(5.0)
        if failure == "hang up":
            self.close_connection = True
            return
        refused = _refusal(seen, body, failure, self.headers.get("Authorization", ""))
        if refused:
            self._send(refused[0], json.dumps({"error": refused[1]}), refused[2])
            return
        try:
            reply = token_reply(seen, body, number, self.path) if seen.dialect else None
        except ValueError as error:
            self._send(400, json.dumps({"error": {"message": str(error)}}), {})
            return
        if reply is not None:
            text = json.dumps(spoiled(reply, failure))
            self._send(200, text[: len(text) // 2] if failure == "truncated" else text, {})
            return
        reply = _reply(seen, body, number, self.path)
        if failure == "no logprobs":
            reply["choices"][0].pop("logprobs", None)
        if failure == "empty":
            reply["choices"][0]["logprobs"]["content"][-1]["top_logprobs"] = []
        if failure == "nan":
            reply["choices"][0]["logprobs"]["content"][-1]["top_logprobs"][0]["logprob"] = math.nan
        if failure == "no choices":
            del reply["choices"]
        text = json.dumps(reply)
        self._send(200, text[: len(text) // 2] if failure == "truncated" else text, {})
        with seen.lock:
            seen.spent += reply["usage"]["total_tokens"] if "usage" in reply else 0

    def _send(self, status: int, text: str, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())


FAILED = {
    "429": (429, {"message": "Rate limit reached", "code": "rate_limit_exceeded"}, {"Retry-After": "0.15"}),
    "429 for long": (429, {"message": "Daily limit reached"}, {"Retry-After": "3600"}),
    "no credit": (429, {"message": "You exceeded your current quota", "code": "insufficient_quota"}, {}),
    "500": (500, {"message": "The server had an error"}, {}),
    "too long": (
        400,
        {"message": "This model's maximum context length is 10 tokens", "code": "context_length_exceeded"},
        {},
    ),
}


def _refusal(
    seen: Behaviour, body: dict[str, Any], failure: str, authorization: str
) -> tuple[int, dict[str, Any], dict[str, str]] | None:
    asked = body.get("top_logprobs", body.get("logprobs"))
    if seen.key and authorization != f"Bearer {seen.key}":
        return 401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}, {}
    if field := next((name for name in seen.refused if name in body), None):
        return 400, {"message": f"{field} is not supported"}, {}
    if body.get("model", seen.name) != seen.name:
        return 404, {"message": f"The model `{body['model']}` does not exist", "code": "model_not_found"}, {}
    if seen.most_logprobs is not None and isinstance(asked, int) and asked > seen.most_logprobs:
        told = f"Requested sample logprobs of {asked},\nwhich is greater than {seen.most_logprobs}"
        return 400, {"message": told}, {}
    return FAILED.get(failure)


def conversation_of(body: dict[str, Any]) -> tuple[str, bytes]:
    """The messages as text, and the given beginning of an answer; together they determine the answer."""
    messages = list(body["messages"])
    begun = messages.pop()["content"].encode() if messages[-1]["role"] == "assistant" else b""
    return json.dumps([[message["role"], message["content"]] for message in messages]), begun


def _reply(seen: Behaviour, body: dict[str, Any], number: int, path: str) -> dict[str, Any]:
    chat = path.endswith("/chat/completions")
    conversation, begun = conversation_of(body) if chat else ("", body["prompt"].encode())
    answer = begun if seen.continues else b""
    rng = np.random.default_rng([number, body.get("seed", 0)] if "seed" not in body else body["seed"])
    # An API takes at most this many tokens, under one name or the other.
    most = body["max_tokens"] if "max_tokens" in body else body["max_completion_tokens"]
    asked = (body.get("top_logprobs", 0) if body.get("logprobs") else 0) if chat else body.get("logprobs")
    positions, written = [], b""
    for _ in range(most - seen.thinks):
        p = seen.model.probabilities(conversation, answer + written)
        drawn = int(p.argmax()) if body.get("temperature") == 0 else int(rng.choice(len(p), p=p))
        positions.append(_position(seen, p, drawn, asked))
        written += seen.model.vocabulary[drawn]
        if drawn == len(p) - 1:
            break
    text = (begun if seen.returns_prefill else b"") + written
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
    if chat:
        choice["message"] = {"role": "assistant", "content": text.decode(errors="replace")}
        choice["logprobs"] = {"content": positions} if asked else None
    else:
        choice["text"] = text.decode(errors="replace")
        choice["logprobs"] = _columns(positions) if asked else None
    thought = min(seen.thinks, most)
    total = thought + len(positions)
    usage: dict[str, Any] = {"prompt_tokens": 100, "completion_tokens": total, "total_tokens": 100 + total}
    if thought:
        usage["completion_tokens_details"] = {"reasoning_tokens": thought}
    reply = {"model": f"{seen.name}-2026", "system_fingerprint": "fp_1", "choices": [choice]}
    return reply | {"usage": usage} if seen.usage else reply


def _position(seen: Behaviour, p: np.ndarray, drawn: int, asked: int) -> dict[str, Any]:
    with np.errstate(divide="ignore"):
        log_p = np.maximum(np.log(p), -9999.0)
    order = np.argsort(-p, kind="stable")[:asked]

    def entry(i: int) -> dict[str, Any]:
        token = seen.model.vocabulary[i]
        told = None if token.decode(errors="replace") in seen.null else float(log_p[i])
        return {"token": token.decode(errors="replace"), "logprob": told, "bytes": list(token)}

    return entry(drawn) | {"top_logprobs": [entry(i) for i in order]}


def _columns(positions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "tokens": [position["token"] for position in positions],
        "token_logprobs": [position["logprob"] for position in positions],
        "top_logprobs": [{e["token"]: e["logprob"] for e in position["top_logprobs"]} for position in positions],
    }
