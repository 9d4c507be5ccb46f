"""Secrets that are sent to a server, kept out of what is shown and kept."""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote, urlsplit

HIDDEN = "***"
SHORTEST = 8  # characters; what local servers take for a key is often a word, which answers may hold
# A sign as itself, in an address, or in JSON within JSON; bounded, so that no text takes more than one pass.
SIGN = r"(?:\\{{0,8}}{sign}|\\{{1,8}}u00{code:02x}|%(?:25){{0,4}}{code:02x})"
REST = r"(?:[\w.~+/=%-]|\\{1,8}u00[0-9a-f]{2})*"


class Secrets:
    """A key, and the password in an address.

    A secret is found in capitals and small letters, in JSON's and an address's ways to write signs, and cut off after
    its first half. One of fewer than eight characters can't be told from words, and is not hidden.

    Parameters
    ----------
    key
        The API key.
    address
        Of the server, perhaps with ``user:password@``.
    """

    def __init__(self, key: str, address: str) -> None:
        user, _, password = urlsplit(address).netloc.rpartition("@")[0].partition(":")
        login = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        known = [key, *([password, unquote(password), login] if password else [])]
        forms = [_pattern(secret) for secret in dict.fromkeys(known) if len(secret) >= SHORTEST]
        self._pattern = re.compile("|".join(forms), re.IGNORECASE) if forms else None

    def hide(self, text: str) -> str:
        """The text with `***` for each secret."""
        return self._pattern.sub(HIDDEN, text) if self._pattern else text


def without_login(address: str) -> str:
    """The address without what stands before an @ in its name of the server."""
    parts = urlsplit(address)
    user, _, server = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{HIDDEN}@{server}").geturl() if user else address


def _pattern(secret: str) -> str:
    half = secret[: max(SHORTEST, (len(secret) + 1) // 2)]
    first, *others = [SIGN.format(sign=re.escape(sign), code=ord(sign)) for sign in half]
    # A backslash before the first sign may belong to what stands before it.
    return first.replace(r"\\{0,8}", "", 1) + "".join(others) + REST
