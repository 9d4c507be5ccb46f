"""Runs from a table of interactions: the same tables as from archives, and every contradiction refused by name."""

from __future__ import annotations

import re

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
    assert set(real.runs["options"]) == {"A B"}
    assert real.runs["agreed_at_end"].tolist() == [1, 2]
    assert real.events[["run", "step", "agent"]].values.tolist() == [[4, 0, 5], [7, 10, 1], [7, 11, 2], [7, 15, 1]]
    counted = real.choice_counts.set_index(["state", "choice"])["count"].to_dict()
    # With H = 1 the fourth choice of run 7 is made by agent 1, who remembers A,B, and agent 3, who remembers A,A.
    assert counted == {("", "A"): 2, ("", "B"): 3, ("B,A", "A"): 1, ("A,B", "A"): 1, ("A,A", "A"): 1}
    assert set(real.choice_counts["model"]) == {"mine"}


def test_words_said_and_heard_can_be_compared():
    """B was heard and never said."""
    real = from_events(events(EVENTS[:3]), memory_length=1)
    assert (real.events["said"] == real.events["heard"]).tolist() == [False, True, True]


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
    with pytest.raises(InputError, match=re.escape("memory = 'A,B|A,B' of agent 1 in run 7, step 15: expected 'A,B'")):
        from_events(table.assign(memory=wrong), memory_length=2)
    with pytest.raises(InputError, match=re.escape("partner_memory = 'A,B' of agent 3")):
        from_events(table.assign(partner_memory=["", "", "A,B", ""]), memory_length=2)


TWICE = [*EVENTS, (7, 10, 2, 1, "B", "A")]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("table", "options", "named"),
    [
        (events().drop(columns="said"), {}, "events lacks the column said"),
        (events([]), {}, "events is empty"),
        (events([("one", 0, 1, 2, "A", "B")]), {}, "run = 'one': expected a whole number; pandas.factorize"),
        (events([(0, 0.5, 1, 2, "A", "B")]), {}, "step = 0.5: expected a whole number"),
        (events([(0, 0, 1, 1, "A", "B")]), {}, "agent = 1 in run 0, step 0: expected another partner"),
        (events(TWICE), {}, "step = 10 of run 7 has two rows: expected one for each interaction"),
        (events([(0, 0, 1, 2, "A", None)]), {}, "said = None: expected a word"),
        (events([(0, 0, 1, 2, "A", "b b")]), {}, "said = 'b b': expected a word without blanks"),
        (events([(0, 0, 1, 2, "A", "A")]), {}, "words = ['A']: expected at least two that differ"),
        (events(), {"words": ["A", "C"]}, "said = 'B': expected one of A, C"),
        (events(), {"words": ["A", "B", "x|y"]}, "words = 'x|y': expected words without blanks"),
        (events(), {"initial": "C"}, "initial = 'C': expected '' or one of A, B"),
        (events(), {"initial": {8: "A"}}, "initial: run = 8: expected a run of the events"),
        (events(), {"memory_length": 0}, "memory_length = 0"),
        (events(), {"n_agents": 2}, "n_agents = 2"),
        (events(), {"committed": {2: "C"}}, "committed: agent 2 has 'C': expected one of A, B"),
        (events(), {"committed": {2: "B"}}, "committed: agent 2 says 'A' in run 7: expected 'B' alone"),
        (events(), {"committed": {2: "B", 3: "A"}}, "committed: run 4 has agents committed to 'A' and another word"),
        (events(), {"committed": pd.DataFrame({"run": [7]})}, "committed lacks the column agent, word"),
        (events(), {"committed": {"x": "A"}}, "committed: agent = 'x': expected a whole number"),
        (events(), {"committed": {1.5: "A"}}, "committed: agent = 1.5: expected a whole number"),
        (
            events(),
            {"committed": pd.DataFrame({"run": [9], "agent": [1], "word": ["A"]})},
            "committed: run = 9: expected a run of the events",
        ),
    ],
)
def test_contradictions_are_refused_by_name(table, options, named):
    with pytest.raises(InputError, match=re.escape(named)):
        from_events(table, **{"memory_length": 2} | options)
