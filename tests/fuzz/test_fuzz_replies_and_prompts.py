"""Answers of servers, files of prompts, and arguments on the command line, damaged in many ways."""

from __future__ import annotations

import copy
import importlib
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from _fuzz import few_and_many, fuzz, given, mutated

pytest.importorskip("openai", reason="APIs need the extra api")

import matplotlib
import openai

import meanfield
from _openai_server import FIRST_WORDS, PREFIX, Behaviour, KnownModel, _reply
from meanfield import InputError, cli
from policy_extraction import extract, flag_game, load_template, norms
from policy_extraction.backends.api import CostLimitError, Limits, OpenAIBackend, ServerError, _retries
from policy_extraction.prompts._template import Payoffs, Prompt

# The fonts that it found are kept where they were before, and not in the home of the worker.
os.environ.setdefault("MPLCONFIGDIR", matplotlib.get_cachedir())
TEMPLATES = Path(meanfield.__file__).parents[1] / "policy_extraction" / "prompts" / "templates"
DOCUMENTED = (InputError, ServerError, CostLimitError)
HUGE = "[" * 100_000
# What stands in the place of a value of a reply, as JSON.
VALUES = (
    *("null", "true", "-1", "0", "1e400", "-1e400", "NaN", "-Infinity", "10000000000", "1" + "0" * 400, "9" * 5000),
    *('""', '"\\u0000"', '"\\ud800"', '"sk-abcdefgh-secret"', '"-0.5"', f'"{"x" * 100_000}"', "[]", "{}", HUGE),
    *('{"a": [[[1]]]}', "[null]", "[256]", "[-1]", "[[104]]", '{"content": 1}', '[{"token": null}]', "0.5"),
)
STATUS = (200, 200, 200, 200, 204, 301, 304, 307, 400, 401, 403, 404, 408, 418, 429, 500, 503)
HEADERS = {
    "content-encoding": ("gzip", "br", "deflate", "identity", "", "gzip, gzip", "\xff"),
    "content-type": ("text/html", "application/json; charset=utf-16", "text/plain; charset=zlib", "x" * 5000, "\xff"),
    "retry-after": ("-1", "1e400", "nan", "9" * 5000, "Mon, 01 Jan 99999 00:00:00 GMT", "soon", "\xff"),
    "retry-after-ms": ("-1", "1e400", "nan", "", "1"),
    "location": ("http://elsewhere/v1", "/v2", "//[", "http://127.0.0.1:1\x7f", "file:///etc/passwd", "\xff", ""),
    "content-length": ("0", "7", "9" * 30),
    "x-request-id": ("sk-abcdefgh-secret", "x" * 60_000),
}


def _http() -> Any:
    """The library below openai's, whichever it is in this release."""
    return importlib.import_module(openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])


def _places(value: Any, place: tuple = ()) -> list[tuple]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(one for name, part in inner for one in _places(part, (*place, name)))]


def _changed(random: np.random.Generator, reply: dict[str, Any]) -> bytes:
    """The reply as JSON after some of its values were replaced or removed, and perhaps some bytes."""
    reply, put = copy.deepcopy(reply), {}
    for number in range(random.choice([0, 1, 1, 2, 4])):
        places = _places(reply)[1:]
        if not places:
            break
        *way, last = places[random.integers(len(places))]
        target = reply
        for name in way:
            target = target[name]
        if random.random() < 0.2:
            del target[last]
        else:
            target[last] = f"@{number}@"
            put[f'"@{number}@"'] = VALUES[random.integers(len(VALUES))]
    text = json.dumps(reply)
    for mark, value in put.items():
        text = text.replace(mark, value)
    body = text.encode(("utf-8", "utf-16", "utf-8-sig")[random.choice(3, p=[0.9, 0.05, 0.05])])
    return mutated(random, body) if random.random() < 0.3 else body


def _transport(random: np.random.Generator) -> Any:
    http = _http()
    seen = Behaviour(KnownModel.of(FIRST_WORDS))
    broken_from = int(random.integers(4))

    class Body(http.AsyncByteStream):
        def __init__(self, content: bytes) -> None:
            self.content = content

        async def __aiter__(self):
            for start in range(0, len(self.content), 50_000):
                yield self.content[start : start + 50_000]

    def answer(request: Any) -> Any:
        asked = json.loads(request.content) if request.method == "POST" else {}
        path = "/chat/completions" if "messages" in asked else "/completions"  # after a redirect too
        seen.requests.append(asked)
        if not asked or len(seen.requests) <= broken_from:
            whole = _reply(seen, asked, len(seen.requests), path) if asked else {}
            return http.Response(200, stream=Body(json.dumps(whole).encode()))
        body = _changed(random, _reply(seen, asked, len(seen.requests), path))
        headers = [
            (name.encode(), values[random.integers(len(values))].encode("latin-1"))
            for name, values in HEADERS.items()
            if random.random() < 0.1
        ]
        status = STATUS[random.integers(len(STATUS))]
        if status >= 400 and random.random() < 0.5:
            body = _changed(random, {"error": {"message": "no sk-abcdefgh-secret", "code": "c", "type": None}})
        return http.Response(status, headers=headers, stream=Body(body))

    return http.MockTransport(answer)


def server_replies(random: np.random.Generator) -> None:
    """A policy is extracted and saved, or texts are written."""
    client = partial(openai.DefaultAsyncHttpxClient, transport=_transport(random))
    with (
        mock.patch.object(openai, "DefaultAsyncHttpxClient", client),
        mock.patch.object(_retries, "LONGEST_WAIT", 0.01),
    ):
        backend = OpenAIBackend(
            "known",
            base_url="http://127.0.0.1:9/v1",
            api_key="sk-abcdefgh-secret",
            prefill=str(random.choice(["none", "assistant", "user", "text"])),
            limits=Limits(max_cost=1.0, input_price=1.0, output_price=1.0),
            concurrency=int(random.integers(1, 4)),
            max_retries=int(random.integers(3)),
            backoff=0.0,
            timeout=10.0,
        )
        with tempfile.TemporaryDirectory() as folder:
            try:
                if random.random() < 0.6:
                    policy = extract(
                        backend, words=("his", "her"), memory_length=1, cache=folder + "/cache", undecided="bound"
                    )
                    meanfield.save(policy, folder + "/policy.nc")
                else:
                    prompts = [Prompt("Rules.", "Which one?", PREFIX)] * 3
                    told = [*backend.generate(prompts, max_tokens=3), backend.complete("", "Say it.")]
                    assert "sk-abcdefgh-secret" not in json.dumps(told)
            except DOCUMENTED as error:
                assert "sk-abcdefgh-secret" not in str(error)
                raise
            finally:
                held = [path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()]
                assert not [content for content in held if b"sk-abcdefgh-secret" in content]


LOADERS = {
    "naming_game_004.toml": load_template,
    "flag_game_002.toml": flag_game.load_prompts,
    "norms_003.toml": norms.load_prompts,
}
TOML_VALUES = (
    *("true", "-1", "inf", "nan", "1e400", "9" * 5000, "0x" + "f" * 5000, "[" * 5000, "{a=" * 5000, "[[1], [[2]]]"),
    *('"$"', '"${"', '"$options $nothing"', '"\\u0000"', '""', "''", '"' + "$word " * 5000 + '"'),
    "1979-05-27T07:32:00Z",
    *("{}", "[]", '["", ""]', "[1, 2, 3]", f"[{'9' * 400}]", "[1e400, nan]", ".".join("a" * 5000) + "=1", "#"),
)


def prompt_files(name: str, random: np.random.Generator) -> None:
    """Lines are given other values, removed, doubled and swapped; then perhaps some bytes change."""
    lines = (TEMPLATES / name).read_text(encoding="utf-8").split("\n")
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        i, j = random.integers(len(lines), size=2)
        change = random.integers(5)
        if change == 0:
            lines[i] = f"{lines[i].partition('=')[0]}= {TOML_VALUES[random.integers(len(TOML_VALUES))]}"
        elif change == 1:
            del lines[i]
        elif change == 2:
            lines.insert(j, lines[i])
        elif change == 3:
            lines[i], lines[j] = lines[j], lines[i]
        else:
            lines.insert(i, TOML_VALUES[random.integers(len(TOML_VALUES))])
        lines = lines or [""]
    content = "\n".join(lines).encode()
    loaded = LOADERS[name](given("prompts.toml", mutated(random, content) if random.random() < 0.4 else content))
    if name == "naming_game_004.toml":
        loaded.prompt(("a", "b"), [("a", "b")], Payoffs())


NAMES = [command.name or command.callback.__name__ for command in cli.app.registered_commands]
# The demo measures a language model, for minutes and with more than 2 GB.
COMMANDS = (*(name for name in NAMES if name != "demo"), "nothing", "--help", "")
OPTIONS = (
    *("--out", "-o", "--model", "--pair", "-n", "--n-agents", "--runs", "--seed", "--max-rounds", "--record-rounds"),
    *("--rounds", "--csv", "--latex", "--all-criteria", "--words", "-H", "--memory-length", "--temperature", "--path"),
    *("--real-populations", "--gguf-file", "--help", "--", "-x", "--install-completion-of-nothing"),
)
ARGUMENTS = (
    *("policy.nc", "text.nc", "absent.nc", ".", "", "/dev/null", "/dev/full", "absent/o.nc", "o.nc", "o.csv", "-"),
    *("\0", "0", "1", "2", "3", "-1", "1.5", "nan", "inf", "1e400", "9" * 30, "9" * 5000, "x" * 5000, "a/b", "his/her"),
    *("a\nb", "\udc80", "[red]", "smollm2", "random", "$HOME", "a/b/c", "/", "his/his", "o.csv", "a\nb"),
)


def command_lines(random: np.random.Generator) -> None:
    """A command with a policy in the folder; some arguments are right, so that it gets further."""
    policy = meanfield.make_policy(np.full(5, 0.5), ["a", "b"], model="random")
    given("policy.nc", meanfield.save(policy, "policy.nc").read_bytes())
    given("text.nc", b"no NetCDF")
    command = COMMANDS[random.integers(len(COMMANDS))]
    vector = [command, "policy.nc"] if random.random() < 0.7 else [command]
    if random.random() < 0.5:
        vector += ["--out", "o.nc"]
    if command in ("simulate", "validate") and random.random() < 0.7:
        vector += ["-n", "4", "--runs", "3", "--max-rounds", "40"]
    for _ in range(random.integers(5)):
        pool = OPTIONS if random.random() < 0.5 else ARGUMENTS
        vector.insert(int(random.integers(1, len(vector) + 1)), pool[random.integers(len(pool))])
    # What a hub or a site would be asked for is not there, and nothing is downloaded.
    offline = {"HF_HUB_OFFLINE": "1", "MEANFIELD_DATA": os.devnull, "MEANFIELD_TRACEBACK": "1"}
    with mock.patch.object(sys, "argv", ["meanfield", *vector]), mock.patch.dict(os.environ, offline):
        try:
            cli.main()
        except SystemExit as end:
            if end.code not in (0, 1, 2, None):
                raise
            if end.code:
                raise InputError(f"exit code {end.code}") from None


COMPILING = 120.0  # seconds; of a first command, on a machine that is busy otherwise


@pytest.mark.slow
@few_and_many((case, 40, 8000) for case in (server_replies, *(partial(prompt_files, name) for name in LOADERS)))
def test_replies_and_prompts(case, number, seed):
    assert fuzz(case, number, allowed=DOCUMENTED, seed=seed) == []


@pytest.mark.slow
@few_and_many([(command_lines, 40, 8000)])
def test_command_lines(case, number, seed):
    assert fuzz(case, number, may_write=True, deadline=COMPILING, seed=seed) == []
