"""The connection to a server, which sends prompts to it alone and hides secrets: address, key and replies."""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import Any
from urllib.parse import unquote, urlsplit

from meanfield import InputError
from meanfield.toolbox import shown
from policy_extraction._toolbox.texts import can_be_kept
from policy_extraction.backends.api._reply import UnusableReplyError

OPENAI = "https://api.openai.com/v1"
ADDRESS = "an address like http://127.0.0.1:8000/v1"
HIDDEN = "***"
SHORTEST = 8  # characters; keys of local servers are often words, which answers may contain
MOST_BYTES = 2**25  # a list of 256,000 tokens, a whole vocabulary, has 26 MB
GZIP = 31  # zlib's number of this format
# A sign plain, in an address, or in JSON within JSON; bounded repeats keep matching linear.
SIGN = r"(?:\\{{0,8}}{sign}|\\{{1,8}}u00{code:02x}|%(?:25){{0,4}}{code:02x})"
REST = r"(?:[\w.~+/=%-]|\\{1,8}u00[0-9a-f]{2})*"


def checked_address(base_url: str) -> str:
    """The address without a slash at its end; InputError, which hides possible secrets, if it is not one."""
    if isinstance(base_url, str) and can_be_kept(base_url) and re.fullmatch(r"https?://[^\s\0-\x20\x7f]+", base_url):
        try:
            parts = urlsplit(base_url)
            _ = parts.port  # ValueError if it is not a number
            if parts.hostname and "?" not in base_url and "#" not in base_url:
                return base_url.rstrip("/")
        except ValueError:
            pass
    told = re.sub(r"//.*@|[?#].*", HIDDEN, str(base_url), flags=re.DOTALL)
    raise InputError(f"base_url = {shown(told)}: expected {ADDRESS}, without fields after a question mark")


def find_key(api_key: str | None, address: str) -> str:
    """The given key, or else the one in OPENAI_API_KEY, which no server on this machine gets; InputError for none."""
    key = api_key or ("none" if on_this_machine(address) else os.environ.get("OPENAI_API_KEY"))
    if not key:
        raise InputError(f"api_key: {without_login(address)} needs one; set OPENAI_API_KEY, or pass api_key")
    if not isinstance(key, str) or not re.fullmatch("[!-~]+", key):
        raise InputError("api_key: it has a space, a line end or another sign of no key; expected the key alone")
    return key


def on_this_machine(base_url: str) -> bool:
    """Whether it is a loopback address."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Secrets:
    """An API key, and the password in an address that has ``user:password@``.

    A secret is found in any case, escaped, and cut off after its first half, unless it has fewer than eight characters.
    """

    def __init__(self, key: str, address: str) -> None:
        user, _, password = urlsplit(address).netloc.rpartition("@")[0].partition(":")
        login = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        known = [key, *([password, unquote(password), login] if password else [])]
        forms = [_pattern(secret) for secret in dict.fromkeys(known) if len(secret) >= SHORTEST]
        self._pattern = re.compile("|".join(forms), re.IGNORECASE) if forms else None

    def hide(self, text: str) -> str:
        """The text with `***` in place of each secret."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def without_login(address: str) -> str:
    """The address with `***` in place of a user and password."""
    parts = urlsplit(address)
    user, _, server = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{HIDDEN}@{server}").geturl() if user else address


def _pattern(secret: str) -> str:
    half = secret[: max(SHORTEST, (len(secret) + 1) // 2)]
    first, *others = [SIGN.format(sign=re.escape(sign), code=ord(sign)) for sign in half]
    # A backslash before the first sign may belong to the text before it.
    return first.replace(r"\\{0,8}", "", 1) + "".join(others) + REST


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
        parts = _unpacked(response.aiter_raw(), packed == "gzip")  # httpx would keep what follows a gzip without bound

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
        http = DefaultAsyncHttpxClient(
            # Other addresses need no certificates, whose reading takes longer than ten requests; `stay` leaves for none
            verify=address.startswith("https"),
            trust_env=proxies,
            event_hooks={"request": [stay], "response": [bound]},
        )
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
