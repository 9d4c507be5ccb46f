"""Requests to a server, kept within limits and repeated after failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from meanfield import InputError
from meanfield.toolbox import shortened
from policy_extraction.backends.api._errors import (
    LONGEST_MESSAGE,
    ServerError,
    asked_wait,
    message_of,
    named_in,
    refusal,
    transient,
)
from policy_extraction.backends.api._limits import NONE, Meter, Usage
from policy_extraction.backends.api._reply import (
    CutOffError,
    NoLogprobsError,
    UnusableReplyError,
    name_of,
    parsed,
    usage_of,
)
from policy_extraction.backends.api._request import Request
from policy_extraction.backends.api._wire import OPENAI, Secrets, on_this_machine, open_client, without_login

LONGEST_WAIT = 120.0  # seconds before another attempt
MOST_NAMES = 100  # kept names of answering models; a server may give another name each time
PAUSE = 0.02  # seconds until requests in flight may have freed some money
LEAST_THOUGHT, MOST_THOUGHT = 1024, 16_384  # tokens; between them the budget grows fourfold at a time
# A server that refuses one of these fields does the same without it; only an answer's seed is lost.
SERVERS_OWN = {"temperature": 1, "top_p": 1, "continue_final_message": True, "add_generation_prompt": False}
NAMES_OF_LIMIT = ("max_tokens", "max_completion_tokens")

T = TypeVar("T")


@dataclass
class Server:
    """The server of a model: how it is asked, and what it said of itself. The options are as for `OpenAIBackend`."""

    model: str
    address: str = field(repr=False)  # may hold a password
    api_key: str = field(repr=False)
    meter: Meter
    max_retries: int
    backoff: float
    timeout: float
    extra_body: dict[str, Any] = field(repr=False)
    reasoning_tokens: int | None = None
    left_out: frozenset[str] = frozenset()  # fields that the server refuses
    retries: int = 0
    answered: bool = False
    listed: bool = False  # whether it gave log-probabilities
    models_seen: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    _before: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.base_url = without_login(self.address)
        self.secrets = Secrets(self.api_key, self.address)
        self._thought = self.reasoning_tokens or 0  # tokens for thoughts before an answer

    def client(self) -> Any:
        """A new client of the `openai` library, for use in one event loop."""
        # A proxy can't reach a server on this machine.
        proxies = not on_this_machine(self.address)
        return open_client(self.address, self.api_key, self.timeout, self.secrets, proxies=proxies)

    def begin_count(self) -> None:
        """Start a new measurement: `count` begins here."""
        self._before = self._totals()
        self.models_seen.clear()
        self.fingerprints.clear()

    def count(self) -> dict[str, str | int | float]:
        """Requests, retries, tokens and models of this measurement, and its cost if prices are given."""
        taken = {name: total - self._before.get(name, 0) for name, total in self._totals().items()}
        limits = self.meter.limits
        priced = limits.input_price is not None and limits.output_price is not None
        return {
            "model_answering": " ".join(sorted(self.models_seen)),
            "system_fingerprint": " ".join(sorted(self.fingerprints)),
            "left_out": " ".join(sorted(self.left_out)),
            **taken,
            **({"cost": limits.cost(taken["tokens_in"], taken["tokens_out"])} if priced else {}),
        }

    def _totals(self) -> dict[str, int]:
        meter = self.meter
        return {
            "requests": meter.requests,
            "retries": self.retries,
            "tokens_in": meter.tokens_in,
            "tokens_out": meter.tokens_out,
        }

    async def ask(self, client: Any, request: Request, read: Callable[[dict[str, Any]], T]) -> T:
        """Send a request until `read` can use the reply; raises like `OpenAIBackend.score`.

        A field that the server refuses is left out where its value is the usual default; an answer that ends within the
        thoughts before it gets more tokens. Both hold for later requests, and neither counts as a failure.
        A server that never answered is not tried again if it can't be reached or replies in another form.
        """

        async def act(attempt: int) -> T:
            while True:
                before = self.left_out, self._thought
                try:
                    result = await self._attempt(client, request, attempt, read)
                    self.listed |= "logprobs" in request.fields
                    return result
                except Exception as error:
                    if not self._adapted(error, request, *before):
                        raise

        return await self.tried(act, request.fields)

    def _adapted(self, error: Exception, request: Request, left_out: frozenset[str], thought: int) -> bool:
        """Whether another request, without a field that was refused or with more tokens, differs from the one before.

        `left_out` and `thought` belong to the one before; requests at the same time may have changed them.
        """
        if isinstance(error, CutOffError) and self.reasoning_tokens is None and thought < MOST_THOUGHT:
            self._thought = max(self._thought, min(MOST_THOUGHT, max(LEAST_THOUGHT, 4 * thought)))
            return True
        if request.kind == "native":
            return False
        _, sent = self.body(request, left_out=left_out)
        spare = {name for name in SERVERS_OWN if sent.get(name) == SERVERS_OWN[name]} | {"seed", *NAMES_OF_LIMIT}
        refused = named_in(error, (spare & sent.keys()) - self.extra_body.keys()) - left_out
        self.left_out |= refused
        return bool(refused)

    async def tried(self, act: Callable[[int], Awaitable[T]], fields: dict[str, Any] | None = None) -> T:
        """The result of `act(attempt)`, with further attempts and errors as in `ask`; `fields` are named in errors."""
        for attempt in range(self.max_retries + 1):
            try:
                result = await act(attempt)
                self.answered = True
                return result
            except Exception as raised:
                # The library may have wrapped an error of ours.
                cause = raised.__cause__
                error = cause if isinstance(cause, (UnusableReplyError, InputError)) else raised
                wait, last = self._wait(error, attempt), attempt == self.max_retries
                if not (transient(error) and self._may_work(error, last)):
                    raise refusal(error, self.said(error), self.model, self.base_url, fields or {}) from None
                if wait > LONGEST_WAIT:  # only a server asks for more
                    raise ServerError(
                        f"{self.base_url} asks for a wait of {wait:,.0f} s before the next request to {self.model} "
                        f"({self.said(error)}); call again after it"
                    ) from None
                if last:
                    raise ServerError(
                        f"{self.base_url} failed {attempt + 1} times in a row for {self.model}; "
                        f"the last time: {self.said(error)}"
                    ) from None
                self.retries += 1
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def said(self, error: BaseException) -> str:
        return shortened(self.secrets.hide(message_of(error)), LONGEST_MESSAGE)

    def _wait(self, error: Exception, attempt: int) -> float:
        if isinstance(error, UnusableReplyError) and error.may_differ:
            return 0.0
        asked = asked_wait(error)
        own = min(LONGEST_WAIT, self.backoff * 2.0 ** min(attempt, 1000))  # 2.0**1024 overflows
        return own * random.uniform(0.75, 1.0) if asked is None else asked

    def _may_work(self, error: Exception, last: bool) -> bool:
        """Whether the server has answered before, or reports trouble itself."""
        differs = isinstance(error, UnusableReplyError) and error.may_differ and not last
        answered = self.listed if isinstance(error, NoLogprobsError) else self.answered
        return answered or differs or getattr(error, "status_code", None) is not None

    async def _attempt(self, client: Any, request: Request, attempt: int, read: Callable[[dict[str, Any]], T]) -> T:
        most = request.most + Usage(0, self._thought)
        while (wait := self.meter.book(most)) is None:
            await asyncio.sleep(PAUSE)
        used: Usage | None = NONE
        try:
            await asyncio.sleep(wait)
            used = None  # from here on only an answer tells what the server has done
            async with asyncio.timeout(self.timeout):
                path, body = self.body(request, attempt)
                address = self.address.removesuffix("/v1") + path if request.kind == "native" else path
                sent = client.post(address, cast_to=bytes, body=body) if body else client.get(address, cast_to=bytes)
                answer = await sent
            reply = parsed(answer)
            used = usage_of(reply)
        except TimeoutError:
            raise TimeoutError(f"no answer within {self.timeout:g} s") from None
        except Exception as error:
            if getattr(error, "status_code", None):
                used = NONE  # a request that was refused is not charged
            raise
        finally:
            self.meter.settle(most, used)
        return self.accepted(reply, read)

    def accepted(self, reply: dict[str, Any], read: Callable[[dict[str, Any]], T]) -> T:
        """A reply through `read`; its model and fingerprint are noted."""
        for name, seen in (("model", self.models_seen), ("system_fingerprint", self.fingerprints)):
            if (its := name_of(reply, name)) is not None:
                seen.add(its if len(seen) < MOST_NAMES or its in seen else "…")
        return read(reply)

    def body(
        self, request: Request, attempt: int = 0, left_out: frozenset[str] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """The path, below ``/v1`` but for a native request, and the fields of a request for words or texts.

        `left_out` are fields to leave out; None for those that the server is known to refuse.
        """
        if request.kind == "native":
            return request.path, request.fields | (self.extra_body if request.fields else {})
        left_out = self.left_out if left_out is None else left_out
        fields = {"model": self.model, **request.fields}
        fields = {name: value for name, value in (fields | self.extra_body).items() if name not in left_out}
        if "seed" in fields:
            fields["seed"] += attempt  # the same seed would repeat an unusable answer
        if request.kind == "text":
            return "/completions", fields | {"max_tokens": request.max_tokens}
        # OpenAI renamed the field, and not all servers know the new name.
        old, new = NAMES_OF_LIMIT
        limit = new if (self.base_url.startswith(OPENAI) or old in left_out) and new not in left_out else old
        return "/chat/completions", fields | {limit: request.max_tokens + self._thought}
