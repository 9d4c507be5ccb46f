"""Servers that send too much, too little or secrets, or that send on to others: one line, and nothing leaks."""

from __future__ import annotations

import gzip
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import pytest

from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

import meanfield
from _known_server import GAME, HIS_HER, backend, line
from _openai_server import PREFIX
from meanfield import InputError
from policy_extraction import extract, lazy_policy
from policy_extraction.backends.api import ServerError
from policy_extraction.backends.api._reply import UnusableReplyError, parsed, top_tokens_after
from policy_extraction.backends.api._wire import MOST_BYTES, Secrets
from policy_extraction.prompts._template import Prompt

PROMPT = Prompt("Rules.", "Which one?", PREFIX)
KEY = "sk-proj-AbCd/123+xyz=98765"
PASSWORD = "hunter2/hunter2"


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[tuple[str, list[str]]]:
    """The address of a server that answers by itself, and the bodies that it was sent."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            with suppress(OSError):  # where the client has gone
                answer(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sends(status: int, headers: dict[str, str], *parts: bytes, times: int = 1) -> Callable:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        for _ in range(times):
            for part in parts:
                handler.wfile.write(part)

    return answer


def reply(**changes: Any) -> dict[str, Any]:
    """A reply that can be used, but for the changes to the token that was written."""
    listed = [{"token": word, "logprob": -0.694, "bytes": list(word.encode())} for word in HIS_HER]
    entry = {"token": "his", "logprob": -0.7, "bytes": list(b"his"), "top_logprobs": listed} | changes
    return {"choices": [{"message": {"content": "his"}, "logprobs": {"content": [entry]}}]}


# --- what replies hold -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["-0.7", True, [], 10**400, -(10**400), float("nan")])
def test_a_log_probability_that_is_no_number_is_named(value):
    listed = [{"token": "his", "logprob": -0.7}, {"token": "her", "logprob": value}]
    columns = {"tokens": ["his"], "token_logprobs": [-0.7], "top_logprobs": [{"his": -0.7, "her": value}]}
    for wrong in (reply(logprob=value), reply(top_logprobs=listed), {"choices": [{"logprobs": columns}]}):
        with refused(r"a log-probability in the reply is .*expected a number", UnusableReplyError):
            top_tokens_after(wrong, "", 20)
    assert top_tokens_after(reply(), "", 20).tokens == (b"his", b"her"), "the control can be used"


def test_large_replies_take_no_memory():
    for number in (10**10, 10**400):
        with pytest.raises(UnusableReplyError, match="bytes of a token"):
            top_tokens_after(reply(bytes=number), "", 20)
    entry = {"token": "x", "logprob": -9.0}
    with pytest.raises(UnusableReplyError, match="lists 100,000 tokens, 20 were asked for"):
        top_tokens_after(reply(top_logprobs=[entry] * 100_000), "", 20)


@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**6, b'{"a": ' + b"9" * 5000 + b"}", b'{"a": "\xff"}'])
def test_json_of_too_many_levels_or_digits_is_one_line(body):
    with refused("no whole JSON", UnusableReplyError):
        parsed(body)


# --- how much they send ----------------------------------------------------------------------------------------------

ENDLESS = 2**40
GZIP = {"Content-Encoding": "gzip"}
PACKED = gzip.compress(bytes(2**26), 9)
TOO_MUCH = {
    "a body without end": (200, {}, b" " * 2**20, ENDLESS, "larger than 32 MiB"),
    "a packed body": (200, GZIP, PACKED, 1, "larger than 32 MiB"),
    "an error without end": (500, {}, b" " * 2**20, ENDLESS, "larger than 32 MiB"),
    "a packed error": (400, GZIP, PACKED, 1, "larger than 32 MiB"),
    "packed twice": (200, {"Content-Encoding": "gzip, gzip"}, PACKED, 1, "packed in another way"),
    "what comes after gzip": (200, GZIP, gzip.compress(b"{}"), ENDLESS, "goes on after its gzip"),
    "half a gzip": (200, GZIP, gzip.compress(b"{}")[:9], 1, "no whole gzip"),
    "no gzip": (200, GZIP, b"{}", 1, "no whole gzip"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_the_size_of_a_reply_is_bounded(case):
    status, headers, part, times, match = TOO_MUCH[case]
    server = answering(sends(status, headers, part, times=times))
    with server as (url, _), refused(match, InputError, ServerError):
        backend(url, max_retries=0, timeout=60.0).check([PROMPT], HIS_HER)


def test_a_packed_reply_within_the_bound_is_read():
    body = gzip.compress(json.dumps(reply()).encode() + b" " * (MOST_BYTES // 2))
    with answering(sends(200, GZIP, body)) as (url, _):
        backend(url).check([PROMPT], HIS_HER)


def test_a_reply_in_drops_ends_with_the_time_for_it():
    def drips(handler: BaseHTTPRequestHandler) -> None:
        sends(200, {})(handler)
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.02)

    with answering(drips) as (url, _), pytest.raises(InputError, match=r"no answer within 0\.2 s"):
        backend(url, timeout=0.2).check([PROMPT], HIS_HER)


# --- secrets ---------------------------------------------------------------------------------------------------------

FORMS = {
    "as it is": KEY,
    "in capitals": KEY.upper(),
    "in JSON": "".join(f"\\u{ord(sign):04x}" for sign in KEY),
    "in JSON in JSON": json.dumps("".join(f"\\u{ord(sign):04X}" for sign in KEY))[1:-1],
    "with escaped slashes": KEY.replace("/", "\\/"),
    "in an address": quote(KEY, safe=""),
    "in an address in an address": quote(quote(KEY, safe=""), safe=""),
    "cut off": KEY[:18],
    "the password": PASSWORD,
    "the password in an address": quote(PASSWORD, safe=""),
    "the login": "dTpodW50ZXIyL2h1bnRlcjI=",
}


@pytest.mark.parametrize("form", FORMS)
def test_secrets_are_hidden_in_every_form(form):
    secrets = Secrets(KEY, f"http://u:{quote(PASSWORD, safe='')}@127.0.0.1/v1")
    assert secrets.hide(f'{{"a": "{FORMS[form]}", "b": 1}}') == '{"a": "***", "b": 1}'
    assert secrets.hide("sk-proj-other and hunters") == "sk-proj-other and hunters", "the control is no secret"
    assert Secrets("none", "http://127.0.0.1/v1").hide("none of them") == "none of them"


@pytest.mark.parametrize(
    ("status", "form"),
    [(200, "as it is"), (400, "in an address"), (500, "in JSON")],
)
def test_what_a_server_repeats_is_nowhere(status, form, tmp_path):
    """Neither in the errors nor in what is saved and cached."""
    wrong = FORMS[form]
    body = json.dumps(reply() | {"model": "MODEL", "system_fingerprint": "MODEL", "error": {"message": "bad MODEL"}})
    with answering(sends(status, {"X-Key": KEY}, body.replace("MODEL", wrong).encode())) as (url, _):
        asked = backend(url, api_key=KEY, extra_body={"token": KEY})
        found = []
        try:
            policy = extract(asked, **GAME, cache=tmp_path / "cache")
            assert policy.attrs["option_model_answering"] == "***"
            meanfield.save(policy, tmp_path / "policy.nc")
            lazy = lazy_policy(asked, HIS_HER, 1, cache=tmp_path / "cache")
            lazy([()])
            meanfield.save(lazy.record(), tmp_path / "record.nc")
            found.append(asked.complete("", "Say it."))
        except (InputError, ServerError) as error:
            assert status != 200, error
            found += [str(error), repr(error), repr(error.__cause__)]
        found += [repr(asked.provenance), asked.identity, repr(vars(asked))]
    for path in tmp_path.rglob("*"):
        found += [str(path)] + ([path.read_bytes().decode("latin-1")] if path.is_file() else [])
    if status == 200:  # the control: what is looked through holds what was measured
        (answers,) = (tmp_path / "cache").glob("*.sqlite")
        assert sqlite3.connect(answers).execute("SELECT COUNT(*) FROM answers").fetchone() == (2,)
    assert not [text for text in found if KEY.lower() in text.lower() or wrong.lower() in text.lower()]
    assert any("***" in text for text in found)


def test_a_password_in_the_address_is_sent_and_not_shown(tmp_path):
    logins = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        logins.append(handler.headers["Authorization"])
        sends(200, {}, json.dumps(reply()).encode())(handler)

    with answering(answer) as (url, _):
        secret = url.replace("//", f"//u:{quote(PASSWORD, safe='')}@")
        asked = backend(secret)
        policy = extract(asked, **GAME, cache=False)
    assert set(logins) == {"Basic dTpodW50ZXIyL2h1bnRlcjI="}
    assert policy.attrs["option_base_url"] == url.replace("//", "//***@")
    assert "hunter" not in repr(policy.attrs) + repr(vars(asked)) + asked.identity
    with pytest.raises(ServerError, match="attempts failed") as error:
        asked.check([PROMPT], HIS_HER)
    assert "hunter" not in line(error)


NO_ADDRESSES = (
    *("ftp://u:hunter2@h/v1", "http://h/v1?key=hunter2", "http://h/v1#hunter2", "http://u:hunt/er2@h/v1"),
    *("http://", "http://h:x/v1", "http://[::1/v1", "http://a b/v1", "http://a..b/v1", "http://h/v1\0"),
    *("http://h/\udc80", f"http://{'h' * 10**6}:x"),
)


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_that_is_none_is_refused_without_what_may_be_secret(address):
    with pytest.raises(InputError, match="base_url = ") as error:
        backend(address, api_key=KEY).check([PROMPT], HIS_HER)
    assert "hunt" not in line(error)


@pytest.mark.parametrize("key", ["sk-secret-key\n", "sk-sécret-key", "sk-secret key", "sk-secret\0"])
def test_a_key_that_cannot_be_sent_is_not_shown(key):
    with pytest.raises(InputError, match="api_key: ") as error:
        backend("http://127.0.0.1:1/v1", api_key=key)
    assert "secret" not in line(error)


# --- where prompts go ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 303, 307])
def test_prompts_are_sent_to_other_places_of_the_same_server_only(status):
    with (
        answering(sends(200, {}, json.dumps(reply()).encode())) as (other, asked_there),
        answering(sends(status, {"Location": f"{other}/chat/completions"})) as (url, asked_here),
        refused(f"sends prompts on to {other.removesuffix('/v1')}"),
    ):
        backend(url).check([PROMPT], HIS_HER)
    assert len(asked_here) == 1 and not asked_there

    def answer(handler: BaseHTTPRequestHandler) -> None:
        here = handler.path.startswith("/v2")
        headers = {} if here else {"Location": "/v2/chat/completions"}
        sends(200 if here else 307, headers, json.dumps(reply()).encode() if here else b"")(handler)

    with answering(answer) as (url, seen):
        backend(url).check([PROMPT], HIS_HER)
    assert len(seen) == 2 and PROMPT.user in seen[1]
