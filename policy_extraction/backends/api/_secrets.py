"""Hiding the secrets that are sent to a server."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote, urlsplit

HIDDEN = "***"
SHORTEST = 8  # characters; keys of local servers are often words, which answers may contain
# A sign plain, in an address, or in JSON within JSON; bounded repeats keep matching linear.
SIGN = r"(?:\\{{0,8}}{sign}|\\{{1,8}}u00{code:02x}|%(?:25){{0,4}}{code:02x})"
REST = r"(?:[\w.~+/=%-]|\\{1,8}u00[0-9a-f]{2})*"


class Secrets:
    """An API key, and the password in an address that has ``user:password@``.

    A secret is found in any case, as JSON and addresses write it, and cut off after its first half. Secrets of fewer
    than eight characters can't be told from words and are not hidden.
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
