"""What goes over the wire: to one server only, and back in bounded size and without secrets."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any

from meanfield import InputError
from policy_extraction.backends.api._reply import UnusableReplyError
from policy_extraction.backends.api._secrets import Secrets, without_login

MOST_BYTES = 2**25  # the whole vocabulary of 256,000 tokens, listed once, is 26 MB
GZIP = 31  # zlib's name for it


def open_client(address: str, api_key: str, timeout: float, secrets: Secrets, *, proxies: bool) -> Any:
    """A client of the `openai` library, which sends one request at a time to this server and nowhere else.

    Raises
    ------
    InputError
        If the address is none.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    async def stay(request: Any) -> None:
        if _server(request.url) != _server(client.base_url):
            other = secrets.hide(f"{request.url.scheme}://{request.url.netloc.decode()}")
            raise InputError(
                f"base_url = {without_login(address)}: it sends prompts on to {other}, expected a server that answers"
            )

    async def bound(response: Any) -> None:
        response.encoding = "utf-8"  # and not what the server says, which may be a way to pack
        packed = response.headers.get("content-encoding", "identity").strip().lower()
        if packed not in ("identity", "gzip", ""):
            raise UnusableReplyError("the reply is packed in another way than gzip")
        parts = response.aiter_raw()

        async def whole(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            text = (await _whole(parts, packed == "gzip")).decode("utf-8", "surrogateescape")
            yield secrets.hide(text).encode("utf-8", "surrogateescape")

        response.aiter_bytes = whole  # by which the library reads it, an error's text too

    try:
        http = DefaultAsyncHttpxClient(trust_env=proxies, event_hooks={"request": [stay], "response": [bound]})
        # The library's own retries would pass by the meter.
        client = AsyncOpenAI(
            api_key=api_key,
            base_url=address,
            max_retries=0,
            timeout=timeout,
            http_client=http,
            default_headers={"Accept-Encoding": "gzip"},
        )
    except Exception as error:  # the library's ways to say that an address is none
        said = " ".join(secrets.hide(str(error)).split())
        raise InputError(f"base_url = {without_login(address)}: expected an address ({said})") from None
    return client


async def _whole(parts: AsyncIterator[bytes], packed: bool) -> bytes:
    """The body; UnusableReplyError where it is larger than a reply can be."""
    body, unpack = bytearray(), zlib.decompressobj(GZIP)
    async for part in parts:
        try:
            body += unpack.decompress(part, MOST_BYTES + 1 - len(body)) if packed else part
        except zlib.error:
            raise UnusableReplyError("the reply is no whole gzip") from None
        if len(body) > MOST_BYTES:
            raise UnusableReplyError(f"the reply is larger than {MOST_BYTES // 2**20} MiB")
        if unpack.unused_data:  # which zlib would collect
            raise UnusableReplyError("the reply goes on after its gzip")
    if packed and not unpack.eof:
        raise UnusableReplyError("the reply is no whole gzip")
    return bytes(body)


def _server(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
