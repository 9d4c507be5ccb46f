"""Messages of agents, from the files that frameworks for populations of language models write."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import pandas as pd

from meanfield.datasets._log_table import json_lines, json_of, open_text, text_of
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._files import existing_file

Message = tuple[Any, Any, Any, Any, Any]  # run, step, agent, partner, content; None where the file does not say it
SQLITE = b"SQLite format 3\0"
KINDS = "Concordia's structured log, a recording of mesa-llm, OASIS's database, messages of AutoGen or LangGraph, or "
KINDS += "actions with choices"
OTHERS = "a file with a row for each message goes to meanfield.datasets.interactions, with columns={…}"


def read_messages(path: str | os.PathLike[str], *, answer: str | None = None) -> pd.DataFrame:
    r"""The table that `interactions` takes, from a file that a framework wrote.

    The file's content says which framework it was, whatever the file is called; it may be gzipped.

    - **Concordia**: `SimulationLog.to_json()`; an action of an entity is a message.
    - **mesa-llm**: a recording saved as JSON; an event of the type 'message' is a message to each of its recipients.
    - **OASIS**: its SQLite database. The first comment of another user is a message to the author of the post, and the
      post the message back; their `step` is the number of the comment. Later comments are left out, since the author
      wrote one post and chose once. Users have their names if these differ, else their numbers and names.
    - **AutoGen**, **LangGraph**: a message a line, or a list `messages` a line, which is a run. AutoGen's have `source`
      and `content`; LangGraph's have `name` and `content`, or these in `data`. Events, answers of tools and messages
      without text are left out. `step` counts the other messages of each agent.
    - **Actions**, a line each, as in `action_events.jsonl.gz`: `action_type`, `agent_id` and `data`, with `round` and
      `choice`, and `partner_id` where it is known. Those with a choice are messages.

    Parameters
    ----------
    path
        The file.
    answer
        A regular expression that finds the word in a text, as in r"\b[QM]\b": its last matched group, or the whole
        match if it has no groups. A text in which it finds nothing, or different words, has no answer. Default: the
        text is the word.

    Returns
    -------
    DataFrame with a row for each message, in the order of the file: `run`, `step`, `agent`, `partner` and `said`, None
    without an answer. The text of a list has its blocks, one a line, and a whole number is a text. Where no
    partner is told, the two agents of a run that has only two are partners; else it is None, and to be filled in from
    elsewhere. `attrs["left_out"]` counts the records that are not messages or have no text, by type.

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
    >>> import tempfile
    >>> from pathlib import Path
    >>> lines = ['{"source": "ada", "content": "I say Q."}', '{"source": "bob", "content": "M!"}']
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = (Path(folder) / "messages.jsonl").write_text("\n".join(lines))
    ...     messages = meanfield.datasets.read_messages(f"{folder}/messages.jsonl", answer=r"\b[QM]\b")
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
    except (re.error, TypeError) as error:
        raise InputError(f"answer = {shown(answer)}: expected a regular expression ({reason(error)})") from None
    path = existing_file(path)
    left_out: dict[str, int] = {}
    rows = []
    try:
        for *who, content in _messages(path, left_out):
            text = _text(content)
            if text is None and content is not None:
                _count(left_out, f"{type(content).__name__} without text")
            else:
                rows.append((*who, _word(text, found)))
    except Exception as error:  # the file can hold anything
        raise InputError(f"path = {path}: expected {KINDS} ({reason(error)}); {OTHERS}") from None
    table = pd.DataFrame(rows, columns=["run", "step", "agent", "partner", "said"])
    table["said"] = pd.Series([word for *_, word in rows], index=table.index, dtype=object)
    if table.empty:
        raise InputError(f"path = {path}: holds no message, but {left_out}; expected {KINDS}")
    table["partner"] = table["partner"].astype(object).where(table["partner"].notna(), _only_other(table))
    table.attrs["left_out"] = left_out
    return table


def _text(content: Any) -> str | None:
    """The text of a message; None if it has none."""
    if isinstance(content, list):
        blocks = [one.get("text") if isinstance(one, dict) and one.get("type") == "text" else one for one in content]
        return "\n".join(one for one in blocks if isinstance(one, str)) or None
    return content if isinstance(content, str) else text_of(content)


def _word(text: str | None, found: re.Pattern[str] | None) -> str | None:
    if text is None or found is None:
        return text
    words = {match[match.lastindex or 0] for match in found.finditer(text)}
    return words.pop() if len(words) == 1 else None


def _only_other(table: pd.DataFrame) -> pd.Series:
    """The other agent in runs of two, else None."""
    others: dict[tuple[Any, Any], Any] = {}
    for run, agents in table.groupby("run")["agent"]:
        names = agents.unique().tolist()
        if len(names) == 2:
            others[run, names[0]], others[run, names[1]] = names[1], names[0]
    rows = zip(table["run"], table["agent"], strict=True)
    return pd.Series([others.get(row) for row in rows], index=table.index, dtype=object)


def _messages(path: Path, left_out: dict[str, int]) -> Iterator[Message]:
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    if start == SQLITE:
        return _oasis(path, left_out)
    with open_text(path, "utf-8-sig") as file:
        text = "".join(file)
    try:
        held = json_of(text)
        held = held if isinstance(held, list) else [held]
    except JSONDecodeError:
        held = json_lines(text.split("\n"))
    if not held or not all(isinstance(one, dict) for one in held):
        raise ValueError("it holds no JSON objects, or other values beside them")
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
            if not event["content"]["recipient_ids"]:
                _count(left_out, "message without recipients")
            for recipient in event["content"]["recipient_ids"]:
                yield run, event["step"], event["agent_id"], recipient, event["content"]["message"]


def _oasis(path: Path, left_out: dict[str, int]) -> Iterator[Message]:
    query = """
        SELECT c.comment_id, p.post_id, p.user_id, c.user_id, coalesce(p.quote_content, p.content), c.content
        FROM post p LEFT JOIN comment c ON p.post_id = c.post_id
        UNION ALL SELECT comment_id, NULL, NULL, user_id, NULL, content FROM comment
        WHERE post_id NOT IN (SELECT post_id FROM post)
        ORDER BY 1
    """
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        rows = database.execute(query).fetchall()
        names = dict(database.execute("SELECT user_id, user_name FROM user"))
    users = {user for row in rows for user in row[2:4] if user is not None}
    differ = all(names.get(user) for user in users) and len({names[user] for user in users}) == len(users)
    called = {user: names[user] if differ else f"{user} {names.get(user) or ''}".strip() for user in users}
    answered = set()
    for comment, post, author, reader, written, answer in rows:
        if comment is None or post is None:
            _count(left_out, "post without a comment" if comment is None else "comment without its post")
        elif author == reader:
            _count(left_out, "comment on a post of one's own")
        elif post in answered:
            _count(left_out, "later comment on a post")
        else:
            answered.add(post)
            yield 0, comment, called[author], called[reader], written
            yield 0, comment, called[reader], called[author], answer


def _chat(held: list[dict[str, Any]], left_out: dict[str, int]) -> Iterator[Message]:
    runs = [one["messages"] for one in held] if "messages" in held[0] else [held]
    for run, messages in enumerate(runs):
        times: dict[str, int] = {}
        for message in messages:
            told = message.get("data") or message
            agent, text = message.get("source") or told.get("name"), _text(told.get("content"))
            kind = str(message.get("type") or message.get("role") or agent)
            by_tool = told.get("tool_call_id") or (told.get("tool_calls") and not text)
            if not agent or agent == "user" or by_tool or text is None or kind.endswith("Event"):
                _count(left_out, "user" if agent == "user" else kind)
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
