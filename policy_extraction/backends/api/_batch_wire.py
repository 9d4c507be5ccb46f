"""OpenAI's Batch API: files of requests, the batches made of them, and the lines of their answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from meanfield import InputError
from meanfield.toolbox import shown
from policy_extraction.backends.api._errors import message_of
from policy_extraction.backends.api._reply import UnusableReplyError, dict_of, dicts_of, parsed
from policy_extraction.backends.api._retries import Server

MOST_PAGES = 100  # of a hundred batches each, the latest first
FULL = ("token_limit_exceeded", "request_limit_exceeded")  # an account may queue no more for now
ENDED = ("completed", "failed", "expired", "cancelled")


class Status(NamedTuple):
    """A server's state of a batch."""

    status: str
    files: tuple[str, ...]  # of answers, and of errors
    answered: int
    total: int
    said: str  # why it was refused
    full: bool  # whether that was for want of room


class RefusedFileError(InputError):
    """The server makes no batch of a file."""


async def upload(server: Server, client: Any, path: str, requests: Mapping[str, dict[str, Any]]) -> str:
    """The name of a new file of these bodies by key, for a path such as /chat/completions; nothing is paid for it."""
    lines = [{"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body} for key, body in requests.items()]
    content = "\n".join(map(json.dumps, lines)).encode()

    async def act(attempt: int) -> str:
        import openai

        try:
            reply = await client.files.with_raw_response.create(file=("requests.jsonl", content), purpose="batch")
        except openai.NotFoundError as error:
            said = server.said(error)
            raise InputError(f"batches = True: {server.base_url} has no interface for batches ({said})") from None
        return _name(parsed(reply.content), "id")

    return await server.tried(act)


async def begin(server: Server, client: Any, path: str, file: str, wait: float | None) -> str:
    """The batch of a file, which is created unless there is one.

    `wait` is None for a new file. Otherwise a killed process may have asked for its batch just now, so that it is
    looked for again after these seconds. Raises RefusedFileError if the server makes none.
    """
    body = {"input_file_id": file, "endpoint": f"/v1{path}", "completion_window": "24h"}

    async def act(attempt: int) -> str:
        import openai

        for pause in (0.0,) * bool(attempt) if wait is None else (0.0, wait):
            await asyncio.sleep(pause)
            found = await _found(client, file)  # an attempt without an answer may have made it
            if found is not None:
                return found
        try:
            return _name(parsed(await client.post("/batches", cast_to=bytes, body=body)), "id")
        except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
            said = server.said(error)
            raise RefusedFileError(f"model = {server.model}: {server.base_url} refuses the batch ({said})") from None

    return await server.tried(act)


async def look(server: Server, client: Any, batch: str, journal: str) -> Status:
    """The status of a batch; InputError, which names its journal, if the server does not know it."""

    async def act(attempt: int) -> Status:
        import openai

        try:
            return _status(parsed(await client.get(f"/batches/{batch}", cast_to=bytes)))
        except openai.NotFoundError as error:
            raise InputError(
                f"api_key: {server.base_url} does not know {batch} ({server.said(error)}), expected the key of its "
                f"account; without {journal or 'it'} all is submitted again"
            ) from None

    return await server.tried(act)


async def fetch(server: Server, client: Any, status: Status, take: Callable[[dict[str, Any]], bool]) -> int:
    """The number of answers that the files of a batch lack, after all lines that are JSON objects went to `take`.

    `take` tells whether a line holds an answer. Files that lack some are read again; one that is gone has no lines.
    """
    answered: set[str] = set()

    async def act(attempt: int) -> int:
        for file in status.files:
            async for line in _lines(client, file):
                if take(line):
                    answered.add(line["custom_id"])
        missing = max(0, status.answered - len(answered))
        if missing and attempt < server.max_retries:
            raise UnusableReplyError(f"{missing} answers are missing")
        return missing

    return await server.tried(act)


async def _lines(client: Any, file: str) -> AsyncIterator[dict[str, Any]]:
    import openai

    try:
        async with client.files.with_streaming_response.content(file) as response:
            async for line in response.iter_lines():
                with suppress(UnusableReplyError):  # of a line that is not a JSON object
                    yield parsed(line.encode("utf-8", "surrogateescape"))
    except openai.NotFoundError:
        return
    except (openai.OpenAIError, UnusableReplyError, InputError):
        raise
    except Exception as error:  # the library does not wrap errors of a stream
        raise UnusableReplyError(f"{file} was not read to its end ({message_of(error)})") from None


async def _found(client: Any, file: str) -> str | None:
    """The batch of a file among the account's."""
    after = ""
    for _ in range(MOST_PAGES):
        reply = parsed(await client.get(f"/batches?limit=100{after}", cast_to=bytes))
        known = dicts_of(reply.get("data"))
        for batch in known:
            if batch.get("input_file_id") == file:
                return _name(batch, "id")
        if not known or not reply.get("has_more"):
            return None
        after = f"&after={_name(known[-1], 'id')}"
    return None


def _status(reply: Mapping[str, Any]) -> Status:
    status = reply.get("status")
    if not isinstance(status, str):
        raise UnusableReplyError("the reply has no status of a batch")
    files = [_name(reply, name) for name in ("output_file_id", "error_file_id") if reply.get(name)]
    counts = [dict_of(reply.get("request_counts")).get(name) for name in ("completed", "total")]
    answered, total = (n if type(n) is int and n > 0 else 0 for n in counts)
    told = dicts_of(dict_of(reply.get("errors")).get("data"))
    said = "; ".join(dict.fromkeys(str(error.get("message")) for error in told[:3]))
    spelled = status.lower().replace("canceled", "cancelled")  # as other services write it
    return Status(spelled, tuple(files), answered, total, said, any(error.get("code") in FULL for error in told))


def _name(reply: Mapping[str, Any], field: str) -> str:
    """The name of a file or batch, which becomes a part of addresses."""
    name = reply.get(field)
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.:-]{0,199}", name):
        raise UnusableReplyError(f"{field} in the reply is {shown(name)}, which is no name of a file or batch")
    return name
