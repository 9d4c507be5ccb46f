"""Runs from a table of interactions: the same tables as from archives, and every contradiction refused by name."""

from __future__ import annotations

import gzip
import json
import re
import sys
import warnings
import zipfile

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


def test_runs_choices_and_events_are_told():
    real = from_events(events(), memory_length=1, model="mine")
    assert real.runs[["run", "n_agents", "interactions", "success_last_3N"]].values.tolist() == [
        [4, 2, 1, 1.0],
        [7, 3, 3, 0.6667],
    ]
    assert set(real.runs["options"]) == {"A_B"}
    assert real.runs["agreed_at_end"].tolist() == [1, 2]
    assert real.events[["run", "step", "agent"]].values.tolist() == [[4, 0, 5], [7, 10, 1], [7, 11, 2], [7, 15, 1]]
    counted = real.choice_counts.set_index(["state", "choice"])["count"].to_dict()
    # With H = 1 the fourth choice of run 7 is made by agent 1, who remembers A,B, and agent 3, who remembers A,A.
    assert counted == {("", "A"): 2, ("", "B"): 3, ("B,A", "A"): 1, ("A,B", "A"): 1, ("A,A", "A"): 1}
    assert set(real.choice_counts["model"]) == {"mine"}


def test_order_of_rows_says_nothing_and_the_given_table_stays():
    table = events().sample(frac=1, random_state=1)
    before = table.copy()
    pd.testing.assert_frame_equal(
        from_events(table, memory_length=2).events, from_events(events(), memory_length=2).events
    )
    pd.testing.assert_frame_equal(table, before)


def test_committed_agents_and_a_consensus_at_the_start():
    table = events([(0, 0, 1, 2, "A", "B"), (0, 1, 3, 2, "A", "B")])
    for committed in ({2: "B"}, pd.DataFrame({"run": [0], "agent": [2], "word": ["B"]})):
        real = from_events(table, memory_length=2, initial="A", committed=committed, n_agents=5)
        row = real.runs.iloc[0]
        assert (row["experiment"], row["n_agents"], row["n_committed"], row["committed_agents"]) == (
            "committed",
            5,
            1,
            "2",
        )
        assert (row["committed_word"], row["initial_consensus"]) == ("B", "A")
        assert real.choice_counts[["state", "choice", "count"]].values.tolist() == [["A,A|A,A", "A", 2]]


def test_runs_begin_as_is_told_of_each():
    real = from_events(events(), memory_length=1, initial={4: "A"}, n_agents={7: 9})
    assert real.runs[["run", "initial_consensus", "n_agents"]].values.tolist() == [[4, "A", 2], [7, "", 9]]
    assert real.runs["agreed_at_most"].tolist() == [1, 2]


def test_memories_in_the_table_are_compared():
    told = ["", "B,A", "A,B|A,A", ""]
    wrong = [*told[:2], "A,B|A,B", ""]
    table = events().assign(memory=["", "B,A", "A,B", ""])
    from_events(table, memory_length=2)
    from_events(table.assign(memory=[None, "B,A", "A,B", None]), memory_length=2)
    from_events(table.assign(partner_memory=["", "", "A,A", ""]), memory_length=2)
    with pytest.raises(InputError, match=re.escape("memory = 'A,B|A,B' in row 2: expected 'A,B' there")):
        from_events(table.assign(memory=wrong), memory_length=2)
    with pytest.raises(InputError, match=re.escape("partner_memory = 'A,B' in row 2: expected 'A,A'")):
        from_events(table.assign(partner_memory=["", "", "A,B", ""]), memory_length=2)


TWICE = [*EVENTS, (7, 10, 2, 1, "B", "A")]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("table", "options", "named"),
    [
        ([1], {}, "events is a list: expected a pandas.DataFrame or the path of a file"),
        (events(), {"columns": "said"}, "columns = 'said': expected a mapping"),
        (events(), {"committed": [2]}, "committed is a list: expected words by agent"),
        (events(), {"same_step": "both"}, "same_step = 'both': expected one of sequential, simultaneous, or None"),
        (events(), {"missing": "na"}, "missing = 'na': expected a list of answers"),
        (events().drop(columns="said"), {}, "events lacks the column said"),
        (events([]), {}, "events is empty"),
        (events([(0, "soon", 1, 2, "A", "B")]), {}, "step = 'soon' in row 0: expected a number"),
        (events(), {"decimal": None}, "decimal = None: expected '.' or ','"),
        (events(), {"n_agents": {4: 5, "4": 9}}, "n_agents: run = '4': expected each run once"),
        (events([(0, 0, 1, 1, "A", "B")]), {}, "an agent meets itself in row 0: expected another partner"),
        (events(TWICE), {}, "two agents meet twice in a step in rows 0, 4: expected one row for each interaction"),
        (
            events([(0, 0, 1, 2, "A", "b_b")]),
            {},
            "heard = 'b_b' in row 0: expected a word, not all blanks, without '_'",
        ),
        (events([(0, 0, 1, 2, "A", "  ")]), {}, "'Rome': 'Rome'}, and missing=[…] lists texts that are no answer"),
        (events([(0, 0, 1, 1, "A", "A")]), {}, "expected another partner; words = ['A']: expected at least two"),
        (events(), {"words": ["A", "C"]}, "said = 'B' in row 3: expected one of A, C"),
        (events(), {"initial": "C"}, "initial = 'C': expected '' or one of A, B"),
        (events(), {"initial": {8: "A"}}, "initial: run = 8: expected one of the events, such as 4, 7"),
        (events(), {"words": 5}, "words = 5: expected a list of words, or a mapping of answers to words"),
        (events(), {"model": ["x"]}, "model = ['x']: expected its name"),
        (events().assign(said=pd.Series(["A\ud800"] * 4, dtype=object)), {}, "expected a word, not all blanks"),
        (events().assign(memory=[np.array([1, 2]), "B,A", "", ""]), {}, "memory = array([1, 2]), '' in rows 0, 2"),
        (events(), {"committed": {2: np.array(["B", "A"])}}, "committed: agent 2 has array("),
        (events(), {"committed": {2: "C"}}, "committed: agent 2 has 'C': expected one of A, B"),
        (events(), {"committed": {2: "B"}}, "'A' in row 1: expected the word it is committed to from the step"),
        (events(), {"committed": {2: "B", 3: "A"}}, "committed: run 4 has agents committed to 'A' and another word"),
        (events(), {"committed": {"x": "A"}}, "committed: agent = 'x': expected one of the events"),
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
    counts = {}
    for reading in ("sequential", "simultaneous"):
        real = from_events(twice, memory_length=1, columns=NAMES, same_step=reading)
        counts[reading] = real.choice_counts.set_index(["state", "choice"])["count"].to_dict()
        assert real.events is not None and ("round" in real.events) == (reading == "simultaneous")
    after = {("A,B", "A"): 1, ("B,A", "A"): 1}  # what ada and cy remember in the second round
    assert counts["sequential"] == {("", "A"): 1, ("", "B"): 2} | after | {("B,A", "A"): 2}
    assert counts["simultaneous"] == {("", "A"): 2, ("", "B"): 2} | after


def test_agents_have_one_numbering_in_both_columns_and_runs_have_names():
    table = pd.DataFrame(
        [("x", 0, "zoe", "ada", "A", "B"), ("w", 0, "ada", "07", "B", "B")],
        columns=["run", "step", "agent", "partner", "said", "heard"],
    )
    real = from_events(table, memory_length=1, initial={"x": "A"}, n_agents={"w": 4}, committed={"ada": "B"})
    assert real.events is not None
    assert real.runs[["name", "run", "n_agents", "initial_consensus", "committed_agents"]].values.tolist() == [
        ["w", 0, 4, "", "1"],
        ["x", 1, 2, "A", "1"],
    ]
    assert real.events[["agent", "partner"]].values.tolist() == [[1, 0], [2, 1]]
    with pytest.raises(InputError, match="committed: agent = 'ad': expected one of the events, such as 07, ada"):
        from_events(table, memory_length=1, committed={"ad": "B"})


def test_numbers_that_texts_write_are_those_numbers_and_never_two_agents():
    table = events([(0, 0, "1", "2.0", "A", "B"), (0, 1, "2.0", "3", "A", "B")])
    real = from_events(table, memory_length=1)
    assert real.events is not None and real.events[["agent", "partner"]].values.tolist() == [[1, 2], [2, 3]]
    with pytest.raises(InputError, match=r"agent = '2' and '2\.0': expected one text for each number"):
        from_events(events([(0, 0, "1", "2.0", "A", "B"), (0, 1, "2", "3", "A", "B")]), memory_length=1)


@pytest.mark.parametrize(
    ("column", "cell"),
    [("agent", 1 + 5j), ("agent", True), ("partner", 2.5), ("partner", None), ("run", ["x"]), ("agent", " bob")],
)
def test_cells_that_are_no_names_are_refused(column, cell):
    table = events().astype(object)
    table.at[1, column] = cell
    with pytest.raises(InputError, match=re.escape(f"{column} = {cell!r} in row 1: expected a name without blanks")):
        from_events(table, memory_length=1)


def test_all_complaints_come_at_once_with_their_rows():
    table = events([(0, 0, 1, 2, "A", "B_C"), (None, 1, 2, 3, "A", 3), (0, "x", 2, True, ["A"], "B")])
    table = pd.concat([table, events([(0, 3, 1, 1, "A", "B"), (0, 4, 1, 2, "A", "B"), (0, 4, 2, 3, "A", "B")])])
    table = pd.concat([table, events([(0, "y", 2, 2, "A", "B"), (0, 6, 3, 3, "A_", "B")])])
    with pytest.raises(InputError) as found:
        from_events(table, memory_length=1)
    for told in (
        "run = nan in row 1: ",
        "partner = True in row 2: ",
        "step = 'x', 'y' in rows 2, 6: ",
        "said = ['A'], 'A_' in rows 2, 7: ",
        "heard = 'B_C', 3 in rows 0, 1: ",
        "an agent meets itself in rows 3, 6, 7: ",
        "an agent is in several pairs of a step in rows 4, 5: ",
        " (rows count from 0)",
    ):
        assert told in str(found.value)


def test_columns_that_lack_or_are_there_twice_are_all_named():
    table = events().rename(columns={"said": "answer", "step": "turn"})
    with pytest.raises(InputError, match=r"lacks the column heard \(if each row is a message, .*interactions makes"):
        from_events(events().drop(columns="heard"), memory_length=1)
    with pytest.raises(InputError, match=r"lacks the columns step, reply \(for heard\).*answer"):
        from_events(table, memory_length=1, columns={"said": "answer", "heard": "reply"})
    twice = pd.concat([events(), events()[["said", "run"]]], axis=1)
    with pytest.raises(InputError, match="has the column run 2 times; events has the column said 2 times"):
        from_events(twice, memory_length=1)
    with pytest.raises(InputError, match="columns: 'speaker': expected some of run, step"):
        from_events(table, memory_length=1, columns={"speaker": "answer"})


def test_words_are_kept_exactly():
    words = ["a", "A", "чай", "🫖", "Å", "A\u030a"]
    rows = [(0, step, 1, 2, word, other) for step, (word, other) in enumerate(zip(words, words[::-1], strict=True))]
    alike = r"'A' \(2\), 'a' \(2\) differ only by case, .*; 'A\u030a' \(2\), 'Å' \(2\) differ .*: words=\{"
    with pytest.warns(UserWarning, match=alike):
        real = from_events(events(rows), memory_length=1)
    assert real.events is not None
    assert real.events["said"].tolist() == words and real.runs["options"][0].split("_") == sorted(words)
    with pytest.raises(InputError, match=re.escape("said = 'A\\x00' in row 0: expected a word, not all")):
        from_events(events([(0, 0, 1, 2, "A\0", "A"), (0, 1, 1, 2, "B", "A")]), memory_length=1)


def test_words_may_have_blanks_and_doubtful_ones_are_told_and_kept():
    rows = [("New York", "Rome"), ("New York", "?"), (" Rome", "new york."), ("?!", "Rome\u200b")]
    table = events([(0, step, 1, 2, *pair) for step, pair in enumerate(rows)])
    with pytest.warns(UserWarning) as told:
        real = from_events(table, memory_length=1)
    assert len(told) == 1
    for part in (
        "' Rome' (1), 'Rome' (1), 'Rome\\u200b' (1) differ",
        "'New York' (2), 'new york.' (1) differ",
        "'?' (1), '?!' (1) are only",
    ):
        assert part in str(told[0].message)
    assert real.runs["options"].tolist() == [" Rome_?_?!_New York_Rome_Rome\u200b_new york."]
    listed = ["Rome", "Rome\u200b", " Rome", "New York", "new york.", "?", "?!"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = from_events(table, memory_length=1, words=listed)
    assert set(same.choice_counts["choice"]) == {*listed}


def test_a_column_stands_for_one_thing():
    table = events()
    with pytest.raises(InputError, match="columns: said and heard are both 'heard'; expected run, step"):
        from_events(table, memory_length=1, columns={"said": "heard"})
    with pytest.raises(InputError, match=r"lacks the column x \(for agent and partner\)"):
        from_events(table, memory_length=1, columns={"agent": "x", "partner": "x"})
    twice = pd.concat([table, table[["said"]]], axis=1)
    with pytest.raises(InputError) as found:
        from_events(twice, memory_length=1, columns={"heard": "said"})
    assert str(found.value).count("the column said 2 times") == 1
    renamed = table.rename(columns={"said": "memory"})  # an optional column that has another use
    assert from_events(renamed, memory_length=1, columns={"said": "memory"}).runs["interactions"].tolist() == [1, 3]


def test_answers_are_mapped_to_words_and_the_others_are_named():
    table = events([(0, 0, 1, 2, "New York", "Rome."), (0, 1, 1, 2, "Rome", "New York"), (0, 2, 1, 2, "?", "Rome")])
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
    with pytest.raises(InputError, match="every interaction lacks an answer: expected some with both"):
        from_events(table.drop(6), memory_length=1)
    named = from_events(events([(0, 0, 1, 2, "na", "None")]), memory_length=1, words=["na", "None"])
    assert named.skipped is None and named.choice_counts["choice"].tolist() == ["None", "na"]


def test_confederates_say_the_old_word_until_they_are_committed():
    table = rounds([*ROUNDS[:4], (3, "ada", "cy", "A", "A"), (4, "ada", "bob", "B", "B"), (5, "cy", "ada", "A", "B")])
    real = from_events(table, memory_length=1, columns=NAMES, committed={"ada": "B"}, committed_from=4)
    row = real.runs.iloc[0]
    assert (row["experiment"], row["committed_word"], row["committed_from"]) == ("committed", "B", 5)
    assert real.choice_counts["count"].sum() == 2 * len(table) - 5, "no choice of ada is counted"
    with pytest.raises(InputError, match="said by a committed agent = 'A' in row 4: "):
        from_events(table, memory_length=1, columns=NAMES, committed={"ada": "B"}, committed_from=3)
    with pytest.raises(InputError, match="committed_from = 9: expected a step of the run, at most 5"):
        from_events(table, memory_length=1, columns=NAMES, committed={"ada": "B"}, committed_from=9)
    with pytest.raises(InputError, match="committed_from = 3: run 0 has no committed agents"):
        from_events(table, memory_length=1, columns=NAMES, committed_from=3)


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
    assert real.events["round"].tolist() == [1, 1, 1.5] and real.events["partner_name"].tolist() == [
        "Бор",
        "dan",
        "ada",
    ]
    assert real.events["said"].tolist() == ["na🫖", "NA", "NA"] and real.runs["file"].tolist() == [path.name]


def test_json_is_read_with_objects_inside(tmp_path):
    rows = [{"round": r, "who": {"first": a, "second": b}, "said": s, "heard": h} for r, a, b, s, h in ROUNDS]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    (tmp_path / "log.json").write_text(json.dumps(rows))
    names = {"run": None, "step": "round", "agent": "who.first", "partner": "who.second"}
    expected = from_events(rounds(), memory_length=2, columns=NAMES)
    (tmp_path / "lines.json").write_text((tmp_path / "log.jsonl").read_text())
    (tmp_path / "list.jsonl").write_text(json.dumps(rows, indent=1))
    for file in ("log.jsonl", "log.json", "lines.json", "list.jsonl"):
        found = from_events(tmp_path / file, memory_length=2, columns=names)
        pd.testing.assert_frame_equal(found.choice_counts, expected.choice_counts)
        pd.testing.assert_frame_equal(found.events, expected.events)


@pytest.mark.parametrize(("ending", "library"), [("parquet", "pyarrow"), ("xlsx", "openpyxl")])
def test_binary_tables_are_read_as_text_files_are(ending, library, tmp_path, monkeypatch):
    path = tmp_path / f"log.{ending}"
    path.write_bytes(b"")
    if ending == "xlsx":
        with zipfile.ZipFile(path, "w") as workbook:  # as much of one as pandas looks at
            workbook.writestr("xl/workbook.xml", "")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, library, None)
        without.setitem(sys.modules, "fastparquet", None)
        with pytest.raises(InputError, match=f"pip install -U {library}$"):
            from_events(path, memory_length=2, columns=NAMES)
    pytest.importorskip(library)
    table = rounds()
    table.to_parquet(path) if ending == "parquet" else table.to_excel(path, index=False)
    found = from_events(path, memory_length=2, columns=NAMES)
    expected = from_events(table, memory_length=2, columns=NAMES)
    pd.testing.assert_frame_equal(found.choice_counts, expected.choice_counts)
    pd.testing.assert_frame_equal(found.events, expected.events)


@pytest.mark.parametrize(
    ("file", "content", "named"),
    [
        ("log.csv", None, "there is no such file"),
        ("log.docx", b"", "expected a file that ends in .csv"),
        (
            "log.csv",
            b"run;step\n1;2,5\n",
            "its header has ';' between fields: give sep=';', and decimal=',' if need be",
        ),
        (
            "log.csv",
            b"run,step,said\n1,2,A\n1,3\n1,4,B\n1,5\n",
            r"can't be read \(lines 3, 5: expected the header's 3 fields",
        ),
        ("log.csv", b"run,said,run,said\n1,2,3,4\n", "the column said 2 times; events lacks the columns step, agent,"),
        ("log.csv", "run,step\n1,é\n".encode("latin-1"), "give its encoding, as in encoding='utf-16'"),
        ("log.jsonl", b'{"run": 1}\n{"run": \n', "line 2: Expecting value"),
        ("log.jsonl", b'{"run": 1, "said": "A", "said": "B"}', "an object has the key 'said' twice"),
        ("log.json", b'[{"d": {"c": "A"}, "d.c": "B"}]', "the object in row 0 has 'd.c' twice"),
        ("log.json", b"3", "expected a list of JSON objects, or one object a line"),
        ("log.csv.gz", b"\x1f\x8brun,step\n", "can't be read"),
        ("log.parquet", b"PAR1", "can't be read|pip install -U pyarrow"),
        ("log.xlsx", b"PK", "can't be read|pip install -U openpyxl"),
    ],
)
def test_files_that_are_no_log_are_refused(file, content, named, tmp_path):
    if content is not None:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=named):
        from_events(tmp_path / file, memory_length=1)
    with pytest.raises(InputError, match="it is a folder, expected the name of a file"):
        from_events(tmp_path, memory_length=1)
