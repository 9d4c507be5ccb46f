"""The connection to a server: prompts go to it alone, and replies come bounded and without secrets."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

from meanfield import InputError
from policy_extraction.backends.api._address import Secrets, without_login
from policy_extraction.backends.api._reply import UnusableReplyError

MOST_BYTES = 2**25  # a list of 256,000 tokens, a whole vocabulary, has 26 MB
GZIP = 31  # zlib's number of this format


def open_client(address: str, api_key: str, timeout: float, secrets: Secrets, *, proxies: bool) -> Any:
    """A client of the `openai` library that sends to this server alone; InputError for a wrong address."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    async def stay(request: Any) -> None:
        there, here = request.url, client.base_url
        if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
            other = secrets.hide(f"{there.scheme}://{there.netloc.decode()}")
            raise InputError(
                f"base_url = {without_login(address)}: it sends prompts on to {other}, expected a server that answers"
            )

    async def bound(response: Any) -> None:
        response.encoding = "utf-8"  # not the server's, which may name a compression
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", ""):
            raise UnusableReplyError("the reply is packed in another way than gzip")
        parts = _unpacked(response.aiter_raw(), packed == "gzip")

        async def lines() -> AsyncIterator[str]:
            async for line in _lines(parts):
                yield secrets.hide(line.decode("utf-8", "surrogateescape"))

        async def whole(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            body = bytearray()
            async for part in parts:
                body += part
                _check_size(body)
            yield secrets.hide(body.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

        response.aiter_bytes, response.aiter_lines = whole, lines  # the library reads replies and errors by them

    try:
        http = DefaultAsyncHttpxClient(trust_env=proxies, event_hooks={"request": [stay], "response": [bound]})
        # The meter would not see the library's own retries.
        client = AsyncOpenAI(
            api_key=api_key,
            base_url=address,
            max_retries=0,
            timeout=timeout,
            http_client=http,
            default_headers={"Accept-Encoding": "gzip"},
        )
    except Exception as error:  # the library has several errors for wrong addresses
        said = " ".join(secrets.hide(str(error)).split())
        raise InputError(f"base_url = {without_login(address)}: expected an address ({said})") from None
    return client


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The lines of a body of any size, the last one with or without an end; UnusableReplyError if one is too large."""
    begun = bytearray()
    async for part in parts:
        *whole, rest = part.split(b"\n")
        for end in whole:
            yield bytes(begun + end)
            begun.clear()
        begun += rest
        _check_size(begun)
    yield bytes(begun)


def _check_size(body: bytearray) -> None:
    if len(body) > MOST_BYTES:
        raise UnusableReplyError(f"the reply is larger than {MOST_BYTES // 2**20} MiB")


async def _unpacked(parts: AsyncIterator[bytes], packed: bool) -> AsyncIterator[bytes]:
    """The parts of a body, each of at most `MOST_BYTES` and a byte; UnusableReplyError if they are no whole gzip."""
    unpack = zlib.decompressobj(GZIP)
    async for part in parts:
        while part:
            if not packed:
                yield part
                break
            try:
                yield unpack.decompress(part, MOST_BYTES + 1)
            except zlib.error:
                raise UnusableReplyError("the reply is no whole gzip") from None
            part = unpack.unconsumed_tail
        if unpack.unused_data:  # zlib would collect it without bound
            raise UnusableReplyError("the reply goes on after its gzip")
    if packed and not unpack.eof:
        raise UnusableReplyError("the reply is no whole gzip")
