"""Questions to an agent and its answers, from the log of a society or from other records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from meanfield import InputError
from meanfield.toolbox import existing_file, one_or_several

Record = Mapping[str, Any]


class Operation(NamedTuple):
    """One operation of an agent: its name, its input and its output."""

    name: str
    given: Any
    answer: Any


def agent_operations(records: str | os.PathLike[str] | Iterable[Record], agent: str) -> list[Operation]:
    """The operations of one agent in order, from records as `evaluation_form` describes them.

    An identified norm is the answer of 'identify/chat' or 'identify/thought'; each norm of a created list is the answer
    of a 'create'.

    Raises
    ------
    InputError
        If the records can't be read, or one of the agent's lacks its input or output.
    """
    found, source = [], ""
    for where, record in _exchanges(records):
        if record.get("agent") != agent or "operation" not in record or record.get("problem"):
            continue
        name = str(record["operation"])
        given, answer = (_either(record, names, where) for names in (("inputs", "prompt"), ("output", "answer")))
        if name in ("identify_chat", "identify_thought"):
            source = name.removeprefix("identify_")
        if name == "identify":
            name = f"identify/{record.get('source', source)}"
        found += [Operation(name, given, one) for one in (_norms(answer) if name == "create" else [answer])]
    return found


def _exchanges(records: str | os.PathLike[str] | Iterable[Record]) -> Iterator[tuple[str, Record]]:
    """Each record and its place; those of an event one by one."""
    if isinstance(records, (str, os.PathLike)):
        lines = _lines_of_file(existing_file(records, "records"))
    else:
        lines = ((f"records[{k}]", record) for k, record in enumerate(one_or_several(records)))
    for where, line in lines:
        if not isinstance(line, Mapping):
            raise InputError(f"{where} is a {type(line).__name__}, expected a record with operation, agent and so on")
        exchanges = line.get("exchanges", [line])
        if not isinstance(exchanges, (list, tuple)) or not all(isinstance(one, Mapping) for one in exchanges):
            raise InputError(f"{where} has exchanges that are no list of records")
        yield from ((where, one) for one in exchanges)


def _lines_of_file(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")  # JSON may hold what else ends a line of text
    except OSError as error:
        raise InputError(f"records = {path}: can't be read ({error.strerror})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"records = {path}: line {number}"
        try:
            value = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            if 1 < number == len(lines):  # without an end: the run was killed as it wrote it
                return
            raise InputError(f"{where} is not JSON in UTF-8") from None
        yield where, value


def _either(record: Record, names: tuple[str, str], where: str) -> Any:
    for name in names:
        if name in record:
            return record[name]
    operation, agent = record["operation"], record["agent"]
    raise InputError(f"{where}: {operation} by {agent} has neither {names[0]} nor {names[1]}")


def _norms(answer: Any) -> list[Any]:
    """The norms of a list, or of a text that begins with one; many models explain it."""
    if not isinstance(answer, str):
        return answer if isinstance(answer, list) else [answer]
    try:
        listed, _ = json.JSONDecoder().raw_decode(answer.lstrip())
    except (ValueError, RecursionError):
        return [answer]
    # not "[1] Be quiet."
    are_norms = isinstance(listed, list) and listed and all(isinstance(one, (dict, str)) for one in listed)
    return listed if are_norms else [answer]
