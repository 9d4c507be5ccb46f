"""Messages become interactions, by whom they go to or by a number that they share, and what does not is named."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from meanfield import InputError
from meanfield.datasets import from_events, interactions

MESSAGES = [
    ("x", 1, "ada", "bob", "A"),
    ("x", 1, "cy", "dan", "B"),
    ("x", 1, "dan", "cy", "A"),
    ("x", 1, "bob", "ada", "B"),
    ("x", 2, "bob", "ada", "A"),
    ("y", 2, "ada", "bob", "B"),
]
COLUMNS = ["run", "step", "agent", "partner", "said"]
EXPECTED = [
    ["x", 1, "ada", "bob", "A", "B"],
    ["x", 1, "cy", "dan", "B", "A"],
    ["x", 2, "bob", "ada", "A", None],
    ["y", 2, "ada", "bob", "B", None],
]


def messages(rows=MESSAGES) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=COLUMNS)


def rows(table: pd.DataFrame) -> list[list]:
    return table.astype(object).where(table.notna(), None).values.tolist()


def test_two_messages_are_an_interaction_and_a_lost_one_is_missing():
    found = interactions(messages())
    assert list(found.columns) == ["run", "step", "agent", "partner", "said", "heard"] and rows(found) == EXPECTED
    with pytest.warns(UserWarning, match="2 of 4 interactions lack an answer"):
        real = from_events(found, memory_length=1)
    assert real.choice_counts["count"].sum() == 4


def test_a_number_that_two_messages_share_says_who_met():
    table = messages(MESSAGES[:4]).assign(pair=[7, 8, 8, 7])
    assert rows(interactions(table.drop(columns="partner"))) == rows(interactions(table)) == EXPECTED[:2]


def test_without_steps_the_first_messages_belong_together_and_then_the_second():
    rounds = [("x", 0, *one) for one in (("a", "b", "A"), ("b", "c", "B"), ("a", "b", "B"), ("b", "a", "C"))]
    found = interactions(messages([*rounds, ("x", 0, "b", "a", "D"), ("x", 0, "c", "b", "E")]), columns={"step": None})
    assert rows(found.drop(columns="run")) == [
        [0, "a", "b", "A", "C"],
        [1, "b", "c", "B", "E"],
        [2, "a", "b", "B", "D"],
    ]


@pytest.mark.parametrize(
    ("said", "heard", "expected"),
    [
        (["A", "B", "A", "B"], ["B", "A", "B", "A"], ["AB", "BA"]),
        (["A", None, "na", "B"], ["", "A", None, "A"], ["AB", [None, "A"]]),  # told by the partner only
        (["A", None, "na", "B"], ["B", float("nan"), None, "A"], ["AB", [None, "na"]]),
        ([1, 2, 3, 4], [4, 3, None, 1], [[1, 4], [2, 3]]),
    ],
)
def test_a_row_for_each_player_with_both_words(said, heard, expected):
    both = messages(MESSAGES[:4]).assign(said=said, heard=heard)
    assert rows(interactions(both)[["said", "heard"]]) == [[*pair] for pair in expected]


def test_a_missing_partner_is_one_complaint():
    with pytest.raises(InputError, match=r"^partner = None in row 0: expected a name[^;]*$"):
        interactions(messages([("x", 1, "ada", None, "A")]))


FOUR = messages(MESSAGES[:4])
OTHER_PARTNERS = "partner = 'bob', 'dan' in rows 0, 1: expected who wrote the other message of the pair"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("table", "named"),
    [
        (messages([*MESSAGES, MESSAGES[0]]), "more than two messages belong together in rows 0, 3, 6"),
        (messages([MESSAGES[0], MESSAGES[0]]), "both messages are by one agent = 'ada' in rows 0, 1"),
        (messages([("x", "?", "ada", "ada", "A")]), "an agent writes to itself = 'ada' in row 0: expected another"),
        (messages([("x", None, "ada", 1.5, "A")]), "partner = 1.5 in row 0: expected a name"),
        (messages().drop(columns="partner"), "messages lacks the column pair; expected run, step, agent, said, pair"),
        (messages().drop(columns=["step", "agent"]), "messages lacks the columns step, agent; expected"),
        (messages().rename(columns={"said": " said"}), "there are 'run', 'step', 'agent', 'partner', ' said';"),
        (messages([("x", "10:15", "ada", "bob", "A")]), "or columns={'step': None} for the order of rows"),
        (FOUR[:2].assign(pair=5), OTHER_PARTNERS),
        (FOUR.drop(columns="partner").assign(pair=[7, 8, 8, 9]), "'ada', 'bob' in rows 0, 3: expected two, or the col"),
        (FOUR.assign(heard=[*"BAC", "A"]), "heard = 'C' in row 2: expected the word of the other message"),
        (FOUR.assign(heard=[np.zeros(2), *"ABA"]), "heard = array([0., 0.]) in row 0: expected the word of the other"),
    ],
)
def test_what_is_no_interaction_is_named(table, named):
    with pytest.raises(InputError, match=re.escape(named)):
        interactions(table)


@pytest.mark.usefixtures("unchecked_types")
def test_columns_are_a_mapping():
    with pytest.raises(InputError, match="columns = 5: expected a mapping"):
        interactions(messages(), columns=5)
