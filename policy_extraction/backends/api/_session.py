"""Requests to a server: within limits, and again after a failure."""

from __future__ import annotations

import asyncio
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

from meanfield import InputError
from policy_extraction.backends.api._errors import (
    LONGEST_MESSAGE,
    ServerError,
    asked_wait,
    message_of,
    refusal,
    transient,
)
from policy_extraction.backends.api._limits import Meter, Usage
from policy_extraction.backends.api._reply import UnusableReplyError, name_of, parsed, usage_of
from policy_extraction.backends.api._request import Request
from policy_extraction.backends.api._secrets import Secrets, without_login
from policy_extraction.backends.api._wire import open_client

OPENAI = "https://api.openai.com/v1"
LONGEST_WAIT = 120.0  # seconds before another attempt
MOST_NAMES = 100  # of models that answered; a server may call itself differently each time
OTHERS_MAY_END = 0.02  # seconds between looks at what is left of the money

T = TypeVar("T")


@dataclass
class Server:
    """Where a model is asked, how patiently, and what was heard from there.

    Parameters
    ----------
    model
        Its name on the server.
    address
        Up to and including /v1; perhaps with a password, and not shown.
    api_key
        Secret; not shown.
    meter
        Counts, and keeps limits.
    max_retries
        Attempts after the first one.
    backoff
        Seconds before the second attempt, doubled for each further one up to two minutes, less a random quarter at
        most.
    timeout
        Seconds for one attempt.
    extra_body
        Fields for every request.
    """

    model: str
    address: str = field(repr=False)
    api_key: str = field(repr=False)
    meter: Meter
    max_retries: int
    backoff: float
    timeout: float
    extra_body: dict[str, Any] = field(repr=False)
    retries: int = 0
    answered: bool = False
    models_seen: set[str] = field(default_factory=set)
    fingerprints: set[str] = field(default_factory=set)
    _before: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.base_url = without_login(self.address)
        self.secrets = Secrets(self.api_key, self.address)

    def client(self) -> Any:
        """A new client of the `openai` library; it belongs to the event loop in which it is used."""
        # A proxy can't reach a server on this machine.
        proxies = not on_this_machine(self.address)
        return open_client(self.address, self.api_key, self.timeout, self.secrets, proxies=proxies)

    def begin_count(self) -> None:
        """What is counted and heard from here on is of a new measurement."""
        self._before = self._totals()
        self.models_seen.clear()
        self.fingerprints.clear()

    def count(self) -> dict[str, str | int | float]:
        """What the measurement has taken so far, and which models answered; the cost where prices are given."""
        taken = {name: total - self._before.get(name, 0) for name, total in self._totals().items()}
        limits = self.meter.limits
        priced = limits.input_price is not None and limits.output_price is not None
        return {
            "model_answering": " ".join(sorted(self.models_seen)),
            "system_fingerprint": " ".join(sorted(self.fingerprints)),
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
        """Send a request until what it answers can be read.

        Before the first answer, a server that can't be reached or answers in another form is not tried again.

        Raises
        ------
        InputError
            If the server can't be reached at all, or refuses the request for what it is.
        ServerError
            If the last attempt failed too, or the server asks for a wait of more than two minutes.
        CostLimitError
            If the money is spent.
        """
        for attempt in range(self.max_retries + 1):
            try:
                return await self._attempt(client, request, attempt, read)
            except Exception as error:
                wait, last = self._wait(error, attempt), attempt == self.max_retries
                if not (transient(error) and self._may_work(error, last)):
                    raise refusal(error, self._said(error), self.model, self.base_url, request.fields) from None
                if last or wait > LONGEST_WAIT:  # which the server asked for
                    raise ServerError(
                        f"{self.base_url} failed {attempt + 1} times in a row for {self.model}; "
                        f"the last time: {self._said(error)}"
                    ) from None
                self.retries += 1
                await asyncio.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def _said(self, error: BaseException) -> str:
        return self.secrets.hide(message_of(error))[:LONGEST_MESSAGE]

    def _wait(self, error: Exception, attempt: int) -> float:
        if isinstance(error, UnusableReplyError) and error.may_differ:
            return 0.0
        asked = asked_wait(error)
        own = min(LONGEST_WAIT, self.backoff * 2.0 ** min(attempt, 1000))  # beyond 1023 it is no float
        return own * random.uniform(0.75, 1.0) if asked is None else asked

    def _may_work(self, error: Exception, last: bool) -> bool:
        """Whether the server has ever shown that it can answer, or says itself that it is in trouble."""
        differs = isinstance(error, UnusableReplyError) and error.may_differ and not last
        return self.answered or differs or getattr(error, "status_code", None) is not None

    async def _attempt(self, client: Any, request: Request, attempt: int, read: Callable[[dict[str, Any]], T]) -> T:
        while (wait := self.meter.book(request.most)) is None:
            await asyncio.sleep(OTHERS_MAY_END)
        used: Usage | None = Usage(0, 0)
        try:
            await asyncio.sleep(wait)
            used = None  # what the server did by itself from here on is not known without an answer
            async with asyncio.timeout(self.timeout):
                body = await self._send(client, request, attempt)
            reply = parsed(body)
            used = usage_of(reply)
        except RecursionError:
            raise UnusableReplyError("the refusal has too many levels") from None
        except TimeoutError:
            raise TimeoutError(f"no answer within {self.timeout:g} s") from None
        except Exception as error:
            if getattr(error, "status_code", None):
                used = Usage(0, 0)  # a request that was refused is not charged
            if isinstance(error.__cause__, (UnusableReplyError, InputError)):  # of ours, which the library packs up
                raise error.__cause__ from None
            raise
        finally:
            self.meter.settle(request.most, used)
        for name, seen in (("model", self.models_seen), ("system_fingerprint", self.fingerprints)):
            if (its := name_of(reply, name)) is not None:
                seen.add(its if len(seen) < MOST_NAMES or its in seen else "…")
        result = read(reply)
        self.answered = True
        return result

    async def _send(self, client: Any, request: Request, attempt: int) -> bytes:
        fields = {"model": self.model, **request.fields}
        fields["extra_body"] = fields.get("extra_body", {}) | self.extra_body
        if "seed" in fields:
            fields["seed"] += attempt  # what was unusable would come again
        if request.kind == "text":
            return (await client.completions.with_raw_response.create(max_tokens=request.max_tokens, **fields)).content
        # OpenAI has given the field another name, which other servers don't all know.
        limit = "max_completion_tokens" if self.base_url.startswith(OPENAI) else "max_tokens"
        fields[limit] = request.max_tokens
        return (await client.chat.completions.with_raw_response.create(**fields)).content


def find_key(api_key: str | None, address: str) -> str:
    """The key given, or that in OPENAI_API_KEY, which a server on this machine does not get to see.

    Raises
    ------
    InputError
        If there is none, or it is one that can't be sent.
    """
    key = api_key or ("none" if on_this_machine(address) else os.environ.get("OPENAI_API_KEY"))
    if not key:
        raise InputError(f"api_key: {without_login(address)} needs one; set OPENAI_API_KEY, or pass api_key")
    if not isinstance(key, str) or not re.fullmatch("[!-~]+", key):
        raise InputError("api_key: it has a space, a line end or another sign that no key has; expected the key alone")
    return key


def on_this_machine(base_url: str) -> bool:
    """Whether the address is a loopback one."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
