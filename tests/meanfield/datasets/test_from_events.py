"""Runs from a table of interactions: the same tables as from archives, and every contradiction refused by name."""

from __future__ import annotations

import gzip
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from meanfield import InputError
from meanfield.datasets import from_events

EVENTS = [
    (7, 10, 1, 2, "A", "B"),
    (7, 11, 2, 3, "A", "A"),
    (7, 15, 1, 3, "A", "A"),
    (4, 0, 5, 6, "B", "B"),
]


def events(rows=EVENTS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["run", "step", "agent", "partner", "said", "heard"])


def pairs(*words) -> pd.DataFrame:
    """Meetings of agents 1 and 2 in run 0, who say these words."""
    return events([(0, step, 1, 2, *pair) for step, pair in enumerate(words)])


def counts(real) -> dict:
    return real.choice_counts.set_index(["state", "choice"])["count"].to_dict()


def test_runs_choices_and_events_are_told_whatever_the_order_of_rows():
    shuffled = events().sample(frac=1, random_state=1)
    real = from_events(shuffled, memory_length=1, model="mine")
    pd.testing.assert_frame_equal(shuffled, events().sample(frac=1, random_state=1))  # the given table stays
    assert real.runs[["run", "n_agents", "interactions", "success_last_3N"]].values.tolist() == [
        [4, 2, 1, 1.0],
        [7, 3, 3, 0.6667],
    ]
    assert set(real.runs["options"]) == {"A_B"} and set(real.choice_counts["model"]) == {"mine"}
    assert real.runs["agreed_at_end"].tolist() == [1, 2]
    assert real.events[["run", "step", "agent"]].values.tolist() == [[4, 0, 5], [7, 10, 1], [7, 11, 2], [7, 15, 1]]
    # With H = 1 the fourth choice of run 7 is made by agent 1, who remembers A,B, and agent 3, who remembers A,A.
    assert counts(real) == {("", "A"): 2, ("", "B"): 3, ("B,A", "A"): 1, ("A,B", "A"): 1, ("A,A", "A"): 1}


def test_committed_agents_and_a_consensus_at_the_start():
    table = events([(0, 0, 1, 2, "A", "B"), (0, 1, 3, 2, "A", "B")])
    for committed in ({2: "B"}, pd.DataFrame({"run": [0], "agent": [2], "word": ["B"]})):
        real = from_events(table, memory_length=2, initial="A", committed=committed, n_agents=5)
        told = ["experiment", "n_agents", "n_committed", "committed_agents", "committed_word", "initial_consensus"]
        assert real.runs[told].values.tolist() == [["committed", 5, 1, "2", "B", "A"]]
        assert counts(real) == {("A,A|A,A", "A"): 2}


def test_runs_begin_as_is_told_of_each():
    real = from_events(events(), memory_length=1, initial={4: "A"}, n_agents={7: 9})
    assert real.runs[["run", "initial_consensus", "n_agents"]].values.tolist() == [[4, "A", 2], [7, "", 9]]
    assert real.runs["agreed_at_most"].tolist() == [1, 2]


def test_memories_in_the_table_are_compared():
    table = events().assign(memory=["", "B,A", "A,B", ""])
    from_events(table, memory_length=2)
    from_events(table.assign(memory=[None, "B,A", "A,B", None], partner_memory=["", "", "A,A", ""]), memory_length=2)
    with pytest.raises(InputError, match=re.escape("memory = 'A,B|A,B' in row 2: expected 'A,B' there")):
        from_events(table.assign(memory=["", "B,A", "A,B|A,B", ""]), memory_length=2)
    with pytest.raises(InputError, match=re.escape("partner_memory = 'A,B' in row 2: expected 'A,A'")):
        from_events(table.assign(partner_memory=["", "", "A,B", ""]), memory_length=2)


TWICE = [*EVENTS, (7, 10, 2, 1, "B", "A")]
NAMED = pd.DataFrame(
    [("x", 0, "zoe", "ada", "A", "B"), ("w", 0, "ada", "07", "B", "B")],
    columns=["run", "step", "agent", "partner", "said", "heard"],
)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("table", "options", "named"),
    [
        ([1], {}, "events is a list: expected a pandas.DataFrame or the path of a file"),
        (events(), {"columns": "said"}, "columns = 'said': expected a mapping"),
        (events(), {"columns": {"speaker": "said"}}, "columns: 'speaker': expected some of run, step"),
        (events(), {"columns": {"said": "heard"}}, "columns: said and heard are both 'heard'; expected run, step"),
        (events(), {"columns": {"agent": "x", "partner": "x"}}, "lacks the column x (for agent and partner)"),
        (events(), {"columns": {"step": "turn", "heard": "y"}}, "lacks the columns turn (for step), y (for heard)"),
        (
            events().drop(columns="heard"),
            {},
            "lacks the column heard (if each row is a message, meanfield.datasets.int",
        ),
        (
            pd.concat([events(), events()[["said", "run"]]], axis=1),
            {},
            "has the column run 2 times; events has the column said 2 times",
        ),
        (events(), {"committed": [2]}, "committed is a list: expected words by agent"),
        (events(), {"same_step": "both"}, "same_step = 'both': expected one of sequential, simultaneous, or None"),
        (events(), {"missing": "na"}, "missing = 'na': expected a list of answers"),
        (events([]), {}, "events is empty"),
        (events([(0, "soon", 1, 2, "A", "B")]), {}, "step = 'soon' in row 0: expected a number"),
        (events(), {"decimal": None}, "decimal = None: expected '.' or ','"),
        (events(), {"n_agents": {4: 5, "4": 9}}, "n_agents: run = '4': expected each run once"),
        (events(TWICE), {}, "two agents meet twice in a step in rows 0, 4: expected one row for each interaction"),
        (pairs(["A", "  "]), {}, "'Rome': 'Rome'}, and missing=[…] lists texts that are no answer"),
        (pairs(["A\0", "A"], "BA"), {}, "said = 'A\\x00' in row 0: expected a word, not all blanks, without '_'"),
        (events([(0, 0, 1, 1, "A", "A")]), {}, "expected another partner; words = ['A']: expected at least two"),
        (events(), {"words": ["A", "C"]}, "said = 'B' in row 3: expected one of A, C"),
        (events(), {"initial": "C"}, "initial = 'C': expected '' or one of A, B"),
        (events(), {"initial": {8: "A"}}, "initial: run = 8: expected one of the events, such as 4, 7"),
        (events(), {"words": 5}, "words = 5: expected a list of words, or a mapping of answers to words"),
        (events(), {"model": ["x"]}, "model = ['x']: expected its name"),
        (events().assign(said=pd.Series(["A\ud800"] * 4, dtype=object)), {}, "expected a word, not all blanks"),
        (events().assign(memory=[np.array([1, 2]), "B,A", "", ""]), {}, "memory = array([1, 2]), '' in rows 0, 2"),
        (events(), {"committed": {2: np.array(["B", "A"])}}, "committed: agent 2 has array("),
        (events(), {"committed": {2: "B"}}, "'A' in row 1: expected the word it is committed to from the step"),
        (events(), {"committed": {2: "B", 3: "A"}}, "committed: run 4 has agents committed to 'A' and another word"),
        (events(), {"committed": {"x": "A"}}, "committed: agent = 'x': expected one of the events"),
        (NAMED, {"committed": {"ad": "B"}}, "committed: agent = 'ad': expected one of the events, such as 07, ada"),
        (pairs([None, "A"]), {}, "every interaction lacks an answer: expected some with both"),
        (
            events([(0, 0, "1", "2.0", "A", "B"), (0, 1, "2", "3", "A", "B")]),
            {},
            "agent = '2' and '2.0': expected one text for each number",
        ),
    ],
)
def test_contradictions_are_refused_by_name(table, options, named):
    with pytest.raises(InputError, match=re.escape(named)):
        from_events(table, **{"memory_length": 2} | options)


ROUNDS = [  # of a fully synchronous population: all meet in each round
    (1, "cy", "dan", "B", "B"),
    (1, "ada", "bob", "A", "B"),
    (2, "dan", "ada", "B", "A"),
    (2, "bob", "cy", "B", "A"),
    (3, "ada", "cy", "A", "A"),
    (3, "dan", "bob", "B", "B"),
]
NAMES = {"run": None, "step": "round", "agent": "player"}


def rounds(rows=ROUNDS) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["round", "player", "partner", "said", "heard"])


def test_pairs_of_a_round_are_numbered_and_their_order_does_not_matter():
    real = from_events(rounds(), memory_length=2, columns=NAMES)
    assert real.events is not None
    assert real.events["step"].tolist() == list(range(6)) and real.events["round"].tolist() == [1, 1, 2, 2, 3, 3]
    assert real.events["agent"].tolist() == [2, 0, 3, 1, 0, 3]
    assert real.events["agent_name"].tolist() == ["cy", "ada", "dan", "bob", "ada", "dan"]
    other = from_events(rounds([ROUNDS[k] for k in (1, 0, 3, 2, 5, 4)]), memory_length=2, columns=NAMES)
    pd.testing.assert_frame_equal(real.choice_counts, other.choice_counts)


def test_an_agent_in_two_pairs_of_a_round_is_read_as_is_told():
    twice = rounds([(1, "ada", "bob", "A", "B"), (1, "bob", "cy", "A", "B"), (2, "ada", "cy", "A", "A")])
    with pytest.raises(InputError, match=r"an agent is in several pairs of a step in rows 0, 1: .*'simultaneous'"):
        from_events(twice, memory_length=1, columns=NAMES)
    first, second = (
        from_events(twice, memory_length=1, columns=NAMES, same_step=reading)
        for reading in ("sequential", "simultaneous")
    )
    assert first.events is not None and second.events is not None
    assert "round" not in first.events and "round" in second.events
    # ada and cy remember B and A in the second round
    assert counts(first) == {("", "A"): 1, ("", "B"): 2, ("A,B", "A"): 1, ("B,A", "A"): 2}
    assert counts(second) == {("", "A"): 2, ("", "B"): 2, ("A,B", "A"): 1, ("B,A", "A"): 1}


def test_agents_have_one_numbering_in_both_columns_and_runs_have_names():
    real = from_events(NAMED, memory_length=1, initial={"x": "A"}, n_agents={"w": 4}, committed={"ada": "B"})
    assert real.events is not None
    assert real.runs[["name", "run", "n_agents", "initial_consensus", "committed_agents"]].values.tolist() == [
        ["w", 0, 4, "", "1"],
        ["x", 1, 2, "A", "1"],
    ]
    assert real.events[["agent", "partner"]].values.tolist() == [[1, 0], [2, 1]]


def test_numbers_that_texts_write_are_those_numbers():
    real = from_events(events([(0, 0, "1", "2.0", "A", "B"), (0, 1, "2.0", "3", "A", "B")]), memory_length=1)
    assert real.events is not None and real.events[["agent", "partner"]].values.tolist() == [[1, 2], [2, 3]]


def test_all_complaints_come_at_once_with_their_rows():
    rows = [(0, 0, 1, 2, "A", "B_C"), (["x"], 1, 1 + 5j, 2.5, "A", 3), (0, "x", " bob", True, ["A"], "B")]
    rows += [(None, 3, 1, 1, "A", "B"), (0, 4, 1, 2, "A", "B"), (0, 4, 2, 3, "A", "B"), (0, "y", 2, 2, "A", "B")]
    with pytest.raises(InputError) as found:
        from_events(events([*rows, (0, 6, 3, None, "A_", "B")]), memory_length=1)
    for told in (
        "run = ['x'], None in rows 1, 3: expected a name without blanks",
        "agent = (1+5j), ' bob' in rows 1, 2: expected a name without blanks",
        "partner = 2.5, True, None in rows 1, 2, 7: expected a name without blanks",
        "step = 'x', 'y' in rows 2, 6: ",
        "said = ['A'], 'A_' in rows 2, 7: ",
        "heard = 'B_C', 3 in rows 0, 1: ",
        "an agent meets itself in rows 3, 6: ",
        "an agent is in several pairs of a step in rows 4, 5: ",
        " (rows count from 0)",
    ):
        assert told in str(found.value)


def test_an_optional_column_may_have_another_use():
    renamed = events().rename(columns={"said": "memory"})
    assert from_events(renamed, memory_length=1, columns={"said": "memory"}).runs["interactions"].tolist() == [1, 3]


def test_words_are_kept_exactly_and_doubtful_ones_are_told():
    said = ["a", "чай", "A\u030a", "New York", "New York", " Rome", "?!"]
    table = pairs(*zip(said, ["A", "🫖", "Å", "Rome", "?", "new york.", "Rome\u200b"], strict=True))
    with pytest.warns(UserWarning) as told:
        real = from_events(table, memory_length=1)
    assert real.events is not None and real.events["said"].tolist() == said
    options = sorted({*table["said"], *table["heard"]})
    assert len(told) == 1 and real.runs["options"][0].split("_") == options
    for part in (
        "'A' (1), 'a' (1) differ only by case, blanks, punctuation or invisible signs",
        "'A\u030a' (1), 'Å' (1) differ",
        "' Rome' (1), 'Rome' (1), 'Rome\\u200b' (1) differ",
        "'New York' (2), 'new york.' (1) differ",
        "'?' (1), '?!' (1) are only",
    ):
        assert part in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = from_events(table, memory_length=1, words=options)
    pd.testing.assert_frame_equal(same.choice_counts, real.choice_counts)


def test_answers_are_mapped_to_words_and_the_others_are_named():
    table = pairs(("New York", "Rome."), ("Rome", "New York"), ("?", "Rome"))
    names = {"New York": "NY", "Rome": "Rome", "Rome.": "Rome"}
    with pytest.raises(InputError, match=re.escape("said = '?' in row 2: expected one of New York, Rome, Rome.")):
        from_events(table, memory_length=1, words=names)
    with pytest.warns(UserWarning, match="1 of 3 interactions lack an answer"):
        real = from_events(table, memory_length=1, words=names, missing=["?"])
    assert real.events is not None and real.events["said"].tolist() == ["NY", "Rome"]


def test_missing_answers_are_left_out_and_told():
    nothing = [None, float("nan"), pd.NA, "na", "#N/A", ""]
    rows = [(0, step, 1, 2, "A", word) for step, word in enumerate(nothing)]
    table = events([*rows, (0, 9, 1, 2, "A", "B"), (3, 0, 5, 6, "B", None), (0, 10, 1, 9, "A", None)])
    with pytest.warns(UserWarning, match=r"8 of 9 interactions lack an answer and are left out: rows 0, 1, .* 7, 8"):
        real = from_events(table, memory_length=1)
    assert real.events is not None and real.skipped is not None
    assert real.events[["run", "step", "said", "heard"]].values.tolist() == [[0, 9, "A", "B"]]
    assert real.runs["n_agents"].tolist() == [3], "agent 9 is there, although it never answered"
    assert real.skipped[["run", "reason"]].values.tolist() == [
        ["0", "7 of 8 interactions lack an answer"],
        ["3", "1 of 1 interactions lack an answer"],
    ]
    named = from_events(pairs(("na", "None")), memory_length=1, words=["na", "None"])
    assert named.skipped is None and named.choice_counts["choice"].tolist() == ["None", "na"]


def test_confederates_say_the_old_word_until_they_are_committed():
    table = rounds([*ROUNDS[:4], (3, "ada", "cy", "A", "A"), (4, "ada", "bob", "B", "B"), (5, "cy", "ada", "A", "B")])

    def read(since, *committed):
        minority = dict.fromkeys(committed, "B")
        return from_events(table, memory_length=1, columns=NAMES, committed=minority, committed_from=since)

    real = read(4, "ada")
    told = ["experiment", "committed_word", "committed_from"]
    assert real.runs[told].values.tolist() == [["committed", "B", 5]]
    assert real.choice_counts["count"].sum() == 2 * len(table) - 5, "no choice of ada is counted"
    with pytest.raises(InputError, match="said by a committed agent = 'A' in row 4: "):
        read(3, "ada")
    with pytest.raises(InputError, match="committed_from = 9: expected a step of the run, at most 5"):
        read(9, "ada")
    with pytest.raises(InputError, match="committed_from = 3: run 0 has no committed agents"):
        read(3)


LINES = ["round;player;partner;said;heard", "1,0;ada;Бор;na🫖;NA", "1,0;cy;dan;NA;NA", "1,5;cy;ada;NA;na🫖"]


@pytest.mark.parametrize(("ending", "encoding"), [(".csv.gz", "utf-8"), (".tsv", "utf-8-sig"), (".txt", "utf-16")])
def test_text_files_are_read_as_they_are_written(ending, encoding, tmp_path):
    path = tmp_path / f"log{ending}"
    text = "\n".join(LINES).replace(";", "\t" if ending == ".tsv" else ";")
    with gzip.open(path, "wb") if ending.endswith("gz") else path.open("wb") as file:
        file.write(text.encode(encoding))
    written = {"sep": None if ending == ".tsv" else ";", "decimal": ","}
    written |= {"encoding": encoding} if encoding == "utf-16" else {}
    real = from_events(path, memory_length=1, columns=NAMES, words=["NA", "na🫖"], **written)
    assert real.events is not None
    assert real.events[["round", "partner_name", "said"]].values.tolist() == [
        [1, "Бор", "na🫖"],
        [1, "dan", "NA"],
        [1.5, "ada", "NA"],
    ]
    assert real.runs["file"].tolist() == [path.name]


def test_json_is_read_with_objects_inside(tmp_path):
    """A list or an object a line, whatever the file is called."""
    rows = [{"round": r, "who": {"first": a, "second": b}, "said": s, "heard": h} for r, a, b, s, h in ROUNDS]
    lines = "\n".join(map(json.dumps, rows)) + "\n\n"
    names = {"run": None, "step": "round", "agent": "who.first", "partner": "who.second"}
    expected = from_events(rounds(), memory_length=2, columns=NAMES)
    for file, text in (("log.jsonl", lines), ("log.json", lines), ("list.jsonl", json.dumps(rows, indent=1))):
        (tmp_path / file).write_text(text)
        found = from_events(tmp_path / file, memory_length=2, columns=names)
        pd.testing.assert_frame_equal(found.choice_counts, expected.choice_counts)
        pd.testing.assert_frame_equal(found.events, expected.events)


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("log.csv", None, "there is no such file"),
        ("", None, "it is a folder, expected the name of a file"),
        ("log.docx", b"", "expected a file that ends in .csv"),
        (
            "log.csv",
            b"run;step\n1;2,5\n",
            "its header has ';' between fields: give sep=';', and decimal=',' if need be",
        ),
        ("log.csv", b"run,step,said\n1,2,A\n1,3\n1,4,B\n1,5\n", r"\(lines 3, 5: expected the header's 3 fields"),
        ("log.csv", b"run,said,run,said\n1,2,3,4\n", "the column said 2 times; events lacks the columns step, agent,"),
        ("log.csv", "run,step\n1,é\n".encode("latin-1"), "give its encoding, as in encoding='utf-16'"),
        ("log.jsonl", b'{"run": 1}\n{"run": \n', "line 2: Expecting value"),
        ("log.jsonl", b'{"run": 1, "said": "A", "said": "B"}', "an object has the key 'said' twice"),
        ("log.json", b'[{"d": {"c": "A"}, "d.c": "B"}]', "the object in row 0 has 'd.c' twice"),
        ("log.json", b"3", "expected a list of JSON objects, or one object a line"),
        ("log.csv.gz", b"\x1f\x8brun,step\n", "can't be read"),
    ],
)
def test_files_that_are_no_log_are_refused(file, content, named, tmp_path):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=named):
        from_events(tmp_path / file, memory_length=1)
