"""Limits of requests, tokens and money, and the meter that keeps them."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, takewhile

from meanfield import InputError, ModelError
from meanfield.toolbox import real_number, whole_number

MINUTE = 60.0  # seconds
PRICED_TOKENS = 1_000_000


class CostLimitError(ModelError):
    """The next request could cost more than is left of `max_cost`.

    `extract` keeps the answers so far, and the same call with a larger limit goes on from there.

    See Also
    --------
    policy_extraction.Limits : sets the limit

    Examples
    --------
    The most that the request can cost is known before it is sent.

    >>> from policy_extraction import Limits
    >>> from policy_extraction.backends.api import CostLimitError, OpenAIBackend
    >>> limits = Limits(max_cost=0.001, input_price=2.5, output_price=10.0)
    >>> server = OpenAIBackend("llama", base_url="http://127.0.0.1:8000/v1", limits=limits)
    >>> try:
    ...     server.complete("", "Tell me a story.")
    ... except CostLimitError as error:
    ...     print(error)
    max_cost = 0.001: 0 is spent on 0 requests, and the next one can cost 0.0052
    """


@dataclass(frozen=True)
class Limits:
    """Limits that the client keeps, besides the server's own.

    Parameters
    ----------
    requests_per_minute, tokens_per_minute
        None for no limit. Requests are spread evenly, so that no minute exceeds it.
    max_cost
        In the currency of the prices; needs both prices. No request is sent that could exceed it; an unanswered one
        counts with the most that it can cost.
    input_price, output_price
        Price of a million tokens.

    Raises
    ------
    InputError
        If a number is not positive (a price may be 0), or `max_cost` is given without prices.

    Examples
    --------
    A thousand tokens read and twenty written, at 2.50 and 10 for a million.

    >>> from policy_extraction import Limits
    >>> limits = Limits(requests_per_minute=500, max_cost=5.0, input_price=2.5, output_price=10.0)
    >>> round(limits.cost(1000, 20), 6)
    0.0027
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_cost: float | None = None
    input_price: float | None = None
    output_price: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                real_number(field.name, value, **({"least": 0} if field.name.endswith("price") else {"above": 0}))
        if self.max_cost is not None and (self.input_price is None or self.output_price is None):
            raise InputError(f"max_cost = {self.max_cost}: expected input_price and output_price of a million tokens")

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of these tokens, in the currency of the prices."""
        tokens_in, tokens_out = whole_number("tokens_in", tokens_in), whole_number("tokens_out", tokens_out)
        return ((self.input_price or 0.0) * tokens_in + (self.output_price or 0.0) * tokens_out) / PRICED_TOKENS


@dataclass(frozen=True)
class Usage:
    """Tokens of one request: the most that it can use, or what it has used."""

    tokens_in: int
    tokens_out: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)


NONE = Usage(0, 0)


class Meter:
    """Counts usage, and says when the next request may go. Threads may share it."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.requests = self.tokens_in = self.tokens_out = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._in_flight: list[Usage] = []
        self._next_request = self._next_tokens = -math.inf

    @property
    def cost(self) -> float:
        """The cost so far, in the currency of the prices."""
        return self.limits.cost(self.tokens_in, self.tokens_out)

    def book(self, most: Usage) -> float | None:
        """Book a request that uses at most this: seconds until it may go, or None while others must end first.

        Raises CostLimitError if it could cost more than is left, and no request in flight could turn out cheaper.
        """
        with self._lock:
            if not self._affordable(most):
                if self._in_flight:
                    return None
                raise self._spent(most)
            self._in_flight.append(most)
            self.requests += 1
            return self._wait(most.tokens_in + most.tokens_out)

    def affordable(self, each: Sequence[Usage]) -> int:
        """Number of these requests that can be sent together; raises like `book` if none can ever be."""
        with self._lock:
            n = sum(1 for _ in takewhile(self._affordable, accumulate(each)))
            if each and not n and not self._in_flight:
                raise self._spent(each[0])
            return n

    def hold(self, most: Usage, n_requests: int) -> None:
        """Count the requests of a batch, to which the rates a minute do not apply, as in flight."""
        with self._lock:
            self._in_flight.append(most)
            self.requests += n_requests

    def settle(self, most: Usage, used: Usage | None, *, rated: bool = True) -> None:
        """End a booked request; one of unknown usage counts with the most. `rated` is False for what was held."""
        used = used or most
        with self._lock:
            self._in_flight.remove(most)
            self.tokens_in += used.tokens_in
            self.tokens_out += used.tokens_out
            if self.limits.tokens_per_minute and rated:
                spare = most.tokens_in + most.tokens_out - used.tokens_in - used.tokens_out
                self._next_tokens -= spare * MINUTE / self.limits.tokens_per_minute

    def _affordable(self, most: Usage) -> bool:
        if self.limits.max_cost is None:
            return True
        total = sum(self._in_flight, most + Usage(self.tokens_in, self.tokens_out))
        return self.limits.cost(total.tokens_in, total.tokens_out) <= self.limits.max_cost

    def _spent(self, most: Usage) -> CostLimitError:
        return CostLimitError(
            f"max_cost = {self.limits.max_cost:g}: {self.cost:.6g} is spent on {self.requests} requests, and "
            f"the next one can cost {self.limits.cost(most.tokens_in, most.tokens_out):.2g}"
        )

    def _wait(self, tokens: int) -> float:
        now, limits = self._clock(), self.limits
        start = max(now, self._next_request, self._next_tokens)
        if limits.requests_per_minute:
            self._next_request = start + MINUTE / limits.requests_per_minute
        if limits.tokens_per_minute:
            self._next_tokens = start + tokens * MINUTE / limits.tokens_per_minute
        return start - now
