"""The paths /files and /batches for the server of `_openai_server`, with failures and a bill."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from typing import Any

Reply = Callable[[dict[str, Any]], dict[str, Any]]  # what the model replies to the body of a request
FAILURES = {"expires": "expired", "cancelled": "cancelled", "fails": "failed", "full": "failed"}


@dataclass
class BatchService:
    """The behaviour of the service, and the requests it has seen.

    `failures` has one word for each batch to come, '' for none:

    - 'rejected': no batch is made of the file
    - 'fails', 'full': the batch ends before any answer; the account has no room for it
    - 'expires', 'cancelled': it ends with half of the answers
    - '429', '500', '400': every third request has this error in place of an answer
    - 'disordered', 'twice': lines in another order; every line twice, the first time without a usable answer
    - 'missing', 'truncated': the first download lacks lines, or ends within one; 'gone': every download lacks them
    - 'unheard': the batch is made, and the reply to its creation is an error
    """

    failures: list[str] = field(default_factory=list)
    looks: int = 1  # at which a batch has ended
    known: bool = True  # whether there is such an interface
    most: int = 10**6  # requests that have room in a batch
    stop_at: str = ""  # 'file', 'create', 'created', 'look' or 'content': no reply to this
    stopped: threading.Event = field(default_factory=threading.Event)
    files: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    downloads: dict[str, int] = field(default_factory=dict)
    paid: list[str] = field(default_factory=list)  # ids of the requests that were answered
    sizes: list[int] = field(default_factory=list)  # requests of each batch


class NoReplyError(Exception):
    """No reply is sent."""


def batch_reply(service: BatchService, path: str, sent: bytes, kind: str, reply: Reply) -> tuple[int, Any]:
    """Status and JSON, or a list of lines, of a request that is sent as this kind of content."""
    path, _, query = path.removeprefix("/v1").partition("?")
    if not service.known:
        return 404, {"error": {"message": "unknown path"}}
    if path == "/files":
        return _stop(service, "file") or (200, _file(service, sent, kind))
    if path == "/batches" and sent:
        if service.stop_at == "create":
            _stop(service, "create")
        status, batch = _create(service, json.loads(sent), reply)
        return _stop(service, "created") or (status, batch)
    if path == "/batches":
        return 200, _list(service, query)
    if path.startswith("/batches/"):
        return _stop(service, "look") or _look(service, path.removeprefix("/batches/"))
    name = path.removeprefix("/files/").removesuffix("/content")
    return _stop(service, "content") or (200, _content(service, name))


def _stop(service: BatchService, place: str) -> None:
    if service.stop_at == place:
        service.stopped.set()
        raise NoReplyError


def _file(service: BatchService, sent: bytes, kind: str) -> dict[str, Any]:
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + sent)
    parts = {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in form.get_payload()
    }
    assert parts["purpose"] == b"batch"
    name = f"file-{len(service.files)}"
    service.files[name] = [json.loads(line) for line in parts["file"].splitlines()]
    return {"id": name, "object": "file"}


def _create(service: BatchService, asked: dict[str, Any], reply: Reply) -> tuple[int, dict[str, Any]]:
    failure = service.failures.pop(0) if service.failures else ""
    if failure == "rejected":
        return 400, {"error": {"message": "Invalid input file"}}
    requests = service.files[asked["input_file_id"]]
    assert asked["endpoint"] == requests[0]["url"] and asked["completion_window"] == "24h"
    assert len({request["custom_id"] for request in requests}) == len(requests)
    if len(requests) > service.most:
        failure = "full"
    name = f"batch_{len(service.batches)}"
    answers, errors = [], []
    for i, request in enumerate(requests):
        if failure in ("fails", "full"):
            break
        if failure in ("expires", "cancelled") and i >= len(requests) // 2:
            errors.append(_error(request, 0, "batch_expired" if failure == "expires" else "batch_cancelled"))
        elif failure in ("429", "500", "400") and i % 3 == 1:
            errors.append(_error(request, int(failure), "told"))
        else:
            service.paid.append(request["custom_id"])
            answers.append(
                {"custom_id": request["custom_id"], "response": {"status_code": 200, "body": reply(request["body"])}}
            )
    random.Random(0).shuffle(answers) if failure == "disordered" else None
    if failure == "twice":
        answers = [line for answer in answers for line in (_error(answer, 500, "told"), answer, answer)]
    service.files[f"{name}-out"], service.files[f"{name}-err"] = answers, errors
    told = {"full": "token_limit_exceeded"}.get(failure, "invalid_request")
    service.batches[name] = {
        "id": name,
        "object": "batch",
        "input_file_id": asked["input_file_id"],
        "status": "validating",
        "end": FAILURES.get(failure, "completed"),
        "failure": failure,
        "left": service.looks,
        "output_file_id": f"{name}-out" if answers else None,
        "error_file_id": f"{name}-err" if errors else None,
        "request_counts": {"completed": len(answers), "failed": len(errors), "total": len(requests)},
        "errors": {"data": [{"code": told, "message": "Refused\nby the service"}]}
        if failure in ("fails", "full")
        else None,
    }
    service.sizes.append(len(requests))
    if failure == "twice":
        service.batches[name]["request_counts"]["completed"] //= 3
    return (500, {"error": {"message": "broken"}}) if failure == "unheard" else (200, service.batches[name])


def _error(request: dict[str, Any], status: int, code: str) -> dict[str, Any]:
    told = {"code": code, "message": "This request failed."}
    response = {"status_code": status, "body": {"error": told}} if status else None
    return {"custom_id": request["custom_id"], "response": response, "error": None if status else told}


def _list(service: BatchService, query: str) -> dict[str, Any]:
    """Two batches a page, the latest first."""
    names = list(service.batches)[::-1]
    after = query.partition("after=")[2]
    rest = names[names.index(after) + 1 :] if after else names
    return {"data": [service.batches[name] for name in rest[:2]], "has_more": len(rest) > 2}


def _look(service: BatchService, name: str) -> tuple[int, dict[str, Any]]:
    if name not in service.batches:
        return 404, {"error": {"message": f"No batch found with id '{name}'"}}
    batch = service.batches[name]
    batch["left"] -= 1
    batch["status"] = batch["end"] if batch["left"] <= 0 else "in_progress"
    return 200, batch


def _content(service: BatchService, name: str) -> str:
    lines = list(map(json.dumps, service.files[name]))
    first = service.downloads.get(name, 0) == 0
    service.downloads[name] = service.downloads.get(name, 0) + 1
    failure = service.batches[name.rpartition("-")[0]]["failure"]
    if failure == "gone" or (failure == "missing" and first):
        lines = lines[::2]
    text = "\n".join(lines) + "\n"
    return text[: len(text) * 2 // 3] if failure == "truncated" and first else text
