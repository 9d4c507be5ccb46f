"""Made-up files as frameworks write them become messages, interactions and runs, whatever the files are called."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing

import pytest

from meanfield import InputError
from meanfield.datasets import interactions, read_messages

LONG = "After all that I have heard from the others so far,\u2028I say M."  # one line of JSON
ANSWER = r"\b[QM]\b"
EXPECTED = [["ada", "bob", "Q", "M"], ["bob", "ada", "M", "Q"]]  # of all files here


def concordia() -> str:
    def entity(step, name, value):
        data = {"key": f"Entity [{name}]", "value": {"__act__": {"Key": "action", "Value": value}}}
        told = {"step": step, "timestamp": "", "entity_name": name, "component_name": "entity_action"}
        return told | {"entry_type": "entity", "summary": f"Step {step}", "deduplicated_data": data}

    master = entity(1, "game master", "") | {"entry_type": "step", "deduplicated_data": {}}
    entries = [entity(1, "ada", "ada: Q"), entity(1, "bob", {"_ref": "1f"}), master]
    entries += [entity(2, "bob", "M it is"), entity(2, "ada", "Q")]
    return json.dumps({"content_store": {"1f": LONG}, "entries": entries, "entity_memories": {}}, indent=2)


def mesa_llm() -> str:
    def event(step, agent, kind, content):
        told = {"event_id": "", "timestamp": "", "step": step, "agent_id": agent}
        return told | {"event_type": kind, "content": content}

    said = [(1, "ada", "bob", "Q."), (1, "bob", "ada", LONG), (2, "bob", "ada", "M"), (2, "ada", "bob", "Q!")]
    told = [event(step, a, "message", {"message": text, "recipient_ids": [b]}) for step, a, b, text in said]
    told.insert(1, event(1, "ada", "plan", {"data": "win"}))
    told.insert(1, event(1, "ada", "message", {"message": "M", "recipient_ids": []}))
    return json.dumps({"metadata": {}, "events": told, "agent_summaries": {}})


def lines(rows: list[dict]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


SAID = [("ada", "Q"), ("bob", LONG), ("bob", "M"), ("ada", "I stay with Q")]


def autogen() -> str:
    start = {"source": "user", "content": "Name a word.", "type": "TextMessage"}
    return lines([start, *({"source": name, "content": text, "type": "TextMessage"} for name, text in SAID)])


def langgraph() -> str:
    told = [{"type": "ai", "data": {"name": name, "content": text}} for name, text in SAID]
    return lines([{"messages": [{"type": "human", "data": {"content": "Name a word."}}, *told]}])


def actions() -> str:
    told = [("ada", "bob", 1, "Q"), ("bob", "ada", 1, "M"), ("bob", "ada", 2, "M"), ("ada", "bob", 2, "Q")]
    rows = [
        {"action_type": "choose", "agent_id": a, "data": {"round": turn, "choice": word, "partner_id": b}}
        for a, b, turn, word in told
    ]
    return lines([{"action_type": "observe", "agent_id": "ada", "data": {"round": 1}}, *rows])


@pytest.mark.parametrize(
    ("content", "left_out"),
    [
        (concordia(), {"step": 1}),
        (mesa_llm(), {"message without recipients": 1, "plan": 1}),
        (autogen(), {"user": 1}),
        (langgraph(), {"human": 1}),
        (actions(), {"observe": 1}),
    ],
    ids=["concordia", "mesa-llm", "autogen", "langgraph", "actions"],
)
def test_text_files_of_frameworks_become_runs(content, left_out, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(content.encode()) if content == autogen() else content.encode())
    messages = read_messages(path, answer=ANSWER)
    assert messages.attrs["left_out"] == left_out
    assert interactions(messages)[["agent", "partner", "said", "heard"]].values.tolist() == EXPECTED


@pytest.fixture
def oasis(tmp_path):
    with closing(sqlite3.connect(tmp_path / "simulation.db")) as database:
        database.executescript(
            """
            CREATE TABLE user (user_id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id INTEGER, user_name TEXT, name TEXT);
            CREATE TABLE post (post_id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER, original_post_id INTEGER,
                content TEXT DEFAULT '', quote_content TEXT);
            CREATE TABLE comment (comment_id INTEGER PRIMARY KEY AUTOINCREMENT, post_id INTEGER, user_id INTEGER,
                content TEXT);
            INSERT INTO user (agent_id, user_name) VALUES (0, 'ada'), (1, 'bob');
            INSERT INTO post (user_id, content) VALUES (1, 'Q!'), (2, 'I like M');
            INSERT INTO comment (post_id, user_id, content) VALUES (1, 2, 'no, M'), (2, 1, 'Q');
            """
        )
        database.commit()
    return tmp_path / "simulation.db"


def test_comments_of_oasis_answer_posts(oasis):
    found = interactions(read_messages(oasis, answer=ANSWER))
    assert found[["agent", "partner", "said", "heard"]].values.tolist() == EXPECTED and found["step"].tolist() == [1, 2]


def test_answers_that_are_none_are_missing_and_partners_are_not_guessed(tmp_path):
    said = [("ada", "Q or M"), ("bob", "?"), ("cy", "Q, yes Q"), ("dan", ["Q"])]
    (tmp_path / "log").write_text(lines([{"source": name, "content": text} for name, text in said]))
    messages = read_messages(tmp_path / "log", answer=ANSWER)
    assert [word if isinstance(word, str) else None for word in messages["said"]] == [None, None, "Q", "Q"]
    assert messages["partner"].isna().all()
    with pytest.raises(InputError, match="partner = None in rows 0, 1, 2, 3: expected a name"):
        interactions(messages)


@pytest.mark.parametrize("answer", ["(Q)|(M)", "say (Q)|M|Q", "((Q)|(M))"])
def test_the_group_that_matched_is_the_word(answer, tmp_path):
    (tmp_path / "log").write_text(autogen())
    assert read_messages(tmp_path / "log", answer=answer)["said"].tolist() == ["Q", "M", "M", "Q"]


def test_events_and_tools_are_no_messages(tmp_path):
    autogen_rows = [
        {"source": "ada", "type": "ToolCallRequestEvent", "content": [{"id": "1", "name": "look", "arguments": "{}"}]},
        {"source": "ada", "type": "ThoughtEvent", "content": "Q or rather M?"},
        {"source": "ada", "type": "TextMessage", "content": "Q"},
        {"source": "bob", "type": "TextMessage", "content": LONG},
    ]
    langgraph_rows = [
        {"type": "ai", "data": {"name": "ada", "content": "", "tool_calls": [{"name": "look", "id": "1"}]}},
        {"type": "tool", "data": {"name": "look", "content": "M", "tool_call_id": "1"}},
        {"type": "ai", "data": {"name": "ada", "content": [{"type": "text", "text": "Q"}, {"type": "tool_use"}]}},
        {"type": "ai", "data": {"name": "bob", "content": LONG, "tool_calls": []}},
    ]
    told = {"ToolCallRequestEvent": 1, "ThoughtEvent": 1}
    for rows, left_out in ((autogen_rows, told), (langgraph_rows, {"ai": 1, "tool": 1})):
        (tmp_path / "log").write_text(lines(rows))
        messages = read_messages(tmp_path / "log", answer=ANSWER)
        expected = [[0, "ada", "bob", "Q"], [0, "bob", "ada", "M"]]
        assert messages[["step", "agent", "partner", "said"]].values.tolist() == expected
        assert messages.attrs["left_out"] == left_out


def test_answers_that_are_whole_numbers_or_nothing_that_is_text(tmp_path):
    told = [{"round": 1, "choice": choice} for choice in (3, "4", None, {"word": "Q"}, [{"type": "image"}])]
    (tmp_path / "log").write_text(lines([{"action_type": "choose", "agent_id": 1, "data": data} for data in told]))
    messages = read_messages(tmp_path / "log")
    assert messages["said"].tolist() == ["3", "4", None]
    assert messages.attrs["left_out"] == {"dict without text": 1, "list without text": 1}


def test_a_post_of_oasis_is_one_choice_of_its_author(oasis):
    with closing(sqlite3.connect(oasis)) as database:
        database.executescript(
            """
            INSERT INTO comment (post_id, user_id, content) VALUES (1, 1, 'Q again'), (1, 3, 'M'), (9, 1, 'M');
            INSERT INTO post (user_id, content) VALUES (2, 'who reads this?');
            """
        )
        database.commit()
    messages = read_messages(oasis, answer=ANSWER)
    assert messages["said"].tolist() == ["Q", "M", "M", "Q"]
    assert messages.attrs["left_out"] == {
        "post without a comment": 1,
        "comment on a post of one's own": 1,
        "later comment on a post": 1,
        "comment without its post": 1,
    }


def test_users_of_oasis_with_one_name_are_two(oasis):
    with closing(sqlite3.connect(oasis)) as database:
        database.execute("UPDATE user SET user_name = 'ada'")
        database.commit()
    assert read_messages(oasis)["agent"].tolist() == ["1 ada", "2 ada", "2 ada", "1 ada"]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "it holds no JSON objects"),
        (b'[{"source": "ada", "content": "Q"}, 5]', "it holds no JSON objects, or other values beside them"),
        (b'{"source": "ada", "content": "Q", "content": "M"}', "an object has the key 'content' twice"),
        (b"no json", "expected Concordia's structured log"),
        (b'{"speaker": "ada"}', r"\(its first record has speaker\); a file with .*datasets.interactions"),
        (b'{"action_type": "observe"}', r"holds no message, but \{'observe': 1\}"),
        (None, "there is no such file"),
    ],
)
def test_other_files_are_refused(content, named, tmp_path):
    if content is not None:
        (tmp_path / "log").write_bytes(content)
    with pytest.raises(InputError, match=named):
        read_messages(tmp_path / "log")


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("answer", ["(", 5])
def test_an_answer_is_a_regular_expression(answer, tmp_path):
    with pytest.raises(InputError, match=re.escape(f"answer = {answer!r}: expected a regular expression")):
        read_messages(tmp_path, answer=answer)
