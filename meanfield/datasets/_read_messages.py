"""Messages of agents, from the files that frameworks for populations of language models write."""

from __future__ import annotations

import gzip
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from meanfield.toolbox._errors import InputError, reason

Message = tuple[Any, Any, Any, Any, Any]  # run, step, agent, partner, text; None where the file does not say it
GZIP, SQLITE = b"\x1f\x8b", b"SQLite format 3\0"
KINDS = "Concordia's structured log, a recording of mesa-llm, OASIS's database, messages of AutoGen or LangGraph, or "
KINDS += "actions with choices"


def read_messages(path: str | os.PathLike[str], *, answer: str | None = None) -> pd.DataFrame:
    r"""The table that `interactions` takes, from a file that a framework wrote.

    The file's content says which framework it was, whatever the file is called; it may be gzipped.

    - **Concordia**: `SimulationLog.to_json()`; an action of an entity is a message.
    - **mesa-llm**: a recording saved as JSON; an event of the type 'message' is a message to each of its recipients.
    - **OASIS**: its SQLite database. A comment is a message to the author of the post, and the post the message back;
      their `step` is the number of the comment.
    - **AutoGen**, **LangGraph**: a message a line, or a list `messages` a line, which is a run. AutoGen's have `source`
      and `content`; LangGraph's have `name` and `content`, or these in `data`. `step` counts the messages of each
      agent.
    - **Actions**, a line each, as in `action_events.jsonl.gz`: `action_type`, `agent_id` and `data`, with `round` and
      `choice`, and `partner_id` where it is known. Those with a choice are messages.

    Parameters
    ----------
    path
        The file.
    answer
        A regular expression that finds the word in a text: its first group, or else all of it, as in r"\b[QM]\b". A
        text in which it finds nothing, or different words, has no answer. Default: the text is the word.

    Returns
    -------
    DataFrame with a row for each message, in the order of the file: `run`, `step`, `agent`, `partner` and `said`, None
    without an answer. Where no partner is told, the two agents of a run that has only two are partners; else it is
    None, and to be filled in from elsewhere. `attrs["left_out"]` counts the records that are no messages, by type.

    Raises
    ------
    InputError
        If the file is none of these or can't be read, or `answer` is no regular expression.

    See Also
    --------
    interactions : pairs of messages
    from_events : runs, from these

    Examples
    --------
    >>> from pathlib import Path
    >>> lines = ['{"source": "ada", "content": "I say Q."}', '{"source": "bob", "content": "M!"}']
    >>> written = Path("messages.jsonl").write_text("\n".join(lines))
    >>> messages = meanfield.datasets.read_messages("messages.jsonl", answer=r"\b[QM]\b")
    >>> messages
       run  step agent partner said
    0    0     0   ada     bob    Q
    1    0     0   bob     ada    M
    >>> meanfield.datasets.interactions(messages)
       run  step agent partner said heard
    0    0     0   ada     bob    Q     M
    """
    try:
        found = None if answer is None else re.compile(answer)
    except re.error as error:
        raise InputError(f"answer = {answer!r}: expected a regular expression ({reason(error)})") from None
    path = Path(path)
    if not path.is_file():
        raise InputError(f"path = {path}: there is no such file")
    left_out: dict[str, int] = {}
    try:
        rows = list(_messages(path, left_out))
    except Exception as error:  # the file can hold anything
        raise InputError(f"path = {path}: expected {KINDS} ({reason(error)})") from None
    table = pd.DataFrame(rows, columns=["run", "step", "agent", "partner", "said"])
    table["said"] = pd.Series([_word(text, found) for text in table["said"]], index=table.index, dtype=object)
    if table.empty:
        raise InputError(f"path = {path}: holds no message, but {left_out}; expected {KINDS}")
    table["partner"] = table["partner"].astype(object).where(table["partner"].notna(), _only_other(table))
    table.attrs["left_out"] = left_out
    return table


def _word(text: Any, found: re.Pattern[str] | None) -> str | None:
    if not isinstance(text, str) or found is None:
        return text if isinstance(text, str) else None
    words = {match[1] if found.groups else match[0] for match in found.finditer(text)}
    return words.pop() if len(words) == 1 else None


def _only_other(table: pd.DataFrame) -> pd.Series:
    """The other agent in runs of two, else None."""
    two = {run: names for run, part in table.groupby("run")["agent"] if len(names := part.unique().tolist()) == 2}
    rows = zip(table["run"], table["agent"], strict=True)
    others = [two[run][two[run][0] == agent] if run in two else None for run, agent in rows]
    return pd.Series(others, index=table.index, dtype=object)


def _messages(path: Path, left_out: dict[str, int]) -> Iterator[Message]:
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    if start == SQLITE:
        return _oasis(path)
    with (
        gzip.open(path, "rt", encoding="utf-8-sig")
        if start.startswith(GZIP)
        else path.open(encoding="utf-8-sig") as file
    ):
        text = file.read()
    try:
        held = [json.loads(text)]
    except ValueError:
        held = [json.loads(line) for line in text.splitlines() if line.strip()]
    if len(held) == 1 and isinstance(held[0], list):
        held = held[0]
    reader = next((read for key, read in READERS.items() if key in held[0]), None)
    if reader is None:
        raise ValueError(f"its first record has {', '.join(held[0])}")
    return reader(held, left_out)


def _count(left_out: dict[str, int], what: object) -> None:
    left_out[str(what)] = left_out.get(str(what), 0) + 1


def _concordia(held: list[dict[str, Any]], left_out: dict[str, int]) -> Iterator[Message]:
    for run, log in enumerate(held):
        for entry in log["entries"]:
            acted = (entry["deduplicated_data"].get("value") or {}).get("__act__")
            if entry["entry_type"] != "entity" or not acted:
                _count(left_out, entry["entry_type"])
                continue
            text = acted["Value"]
            if isinstance(text, dict):  # long texts are stored once
                text = log["content_store"][text["_ref"]]
            yield run, entry["step"], entry["entity_name"], None, text


def _mesa(held: list[dict[str, Any]], left_out: dict[str, int]) -> Iterator[Message]:
    for run, recording in enumerate(held):
        for event in recording["events"]:
            if event["event_type"] != "message":
                _count(left_out, event["event_type"])
                continue
            for recipient in event["content"]["recipient_ids"]:
                yield run, event["step"], event["agent_id"], recipient, event["content"]["message"]


def _oasis(path: Path) -> Iterator[Message]:
    query = """
        SELECT c.comment_id, coalesce(a.user_name, p.user_id), coalesce(b.user_name, c.user_id),
            coalesce(p.quote_content, p.content), c.content
        FROM comment c JOIN post p ON p.post_id = c.post_id LEFT JOIN user a ON a.user_id = p.user_id
            LEFT JOIN user b ON b.user_id = c.user_id
        ORDER BY c.comment_id
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        for number, author, reader, post, comment in database.execute(query):
            yield 0, number, author, reader, post
            yield 0, number, reader, author, comment


def _chat(held: list[dict[str, Any]], left_out: dict[str, int]) -> Iterator[Message]:
    runs = [one["messages"] for one in held] if "messages" in held[0] else [held]
    for run, messages in enumerate(runs):
        times: dict[str, int] = {}
        for message in messages:
            told = message.get("data") or message
            agent, text = message.get("source") or told.get("name"), told.get("content")
            if not agent or agent == "user":
                _count(left_out, agent or message.get("type") or message.get("role"))
                continue
            yield run, times.get(agent, 0), agent, None, text
            times[agent] = times.get(agent, 0) + 1


def _actions(held: list[dict[str, Any]], left_out: dict[str, int]) -> Iterator[Message]:
    for event in held:
        data = event.get("data") or {}
        if "choice" not in data:
            _count(left_out, event["action_type"])
            continue
        partner = data.get("partner_id", event.get("partner_id"))
        yield event.get("run_id", 0), data["round"], event["agent_id"], partner, data["choice"]


READERS: dict[str, Callable[[list[dict[str, Any]], dict[str, int]], Iterator[Message]]] = {
    "entries": _concordia,
    "events": _mesa,
    "action_type": _actions,
    "messages": _chat,
    "content": _chat,
    "data": _chat,
}
