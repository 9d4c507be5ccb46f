"""Replies that count as a norm, a list of norms, a theme or a text."""

from __future__ import annotations

import pytest

from _scripted_norms import NORM
from paper_figs.norm_society._replies import parse_abstract, parse_norm, parse_norms, parse_text, parse_themes
from policy_extraction._toolbox.json_replies import ReplyError


def test_a_norm_is_read():
    assert parse_norm(NORM) == {"content": "No smoking.", "kind": "injunctive", "utility": 60.0}
    assert parse_norm(f"\n{NORM}\nThis is the norm.") == parse_norm(NORM)
    assert parse_norm(NORM.replace("60", "1"))["utility"] == 1
    assert parse_norm(NORM.replace("60", "100.0"))["utility"] == 100


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        *(("60", n, f"utility is {n}, expected") for n in ("0.99", "100.5", "true", '"60"', "NaN", "Infinity")),
        ("60", "9" * 400, "utility is 999"),
        ("injunctive", "Injunctive", 'kind is "Injunctive", expected injunctive or descriptive'),
        ('"injunctive"', "[]", "kind is []"),
        (" No  smoking. ", " ", 'content is " ", expected text'),
        (" No  smoking. ", "\\ud800", "content is"),
        ('" No  smoking. "', "5", "content is 5"),
        (', "utility": 60', "", 'the keys are ["content", "kind"], expected ["content", "kind", "utility"]'),
        (', "utility": 60', ', "utility": 60, "note": 1', "the keys are"),
        (', "utility": 60', ', "utility": 60, "utility": 61', "it has a key twice"),
        (NORM, "[]", "[] is not a JSON object"),
        ("}", "", "it does not begin with JSON in full"),
        *((NORM, t, "it does not begin with JSON in full") for t in ("No smoking.", f"It is {NORM}", "[" * 100_000)),
    ],
)
def test_a_norm_that_is_not_as_asked_for_is_refused(old, new, problem):
    assert old in NORM
    with pytest.raises(ReplyError) as error:
        parse_norm(NORM.replace(old, new))
    assert problem in str(error.value)


def test_lists_of_norms():
    other = NORM.replace("smoking", "noise")
    assert [norm["content"] for norm in parse_norms(f"[{NORM}, {other}]", 2)] == ["No smoking.", "No noise."]
    for text, n, problem in (
        (f"[{NORM}, {other}]", 3, "it is not a JSON list of 3 norms"),
        (f"[{NORM}, {other}]", 1, "it is not a JSON list of 1 norms"),
        (NORM, 1, "it is not a JSON list"),
        (f"[{NORM}, {NORM.replace('60', '70')}]", 2, 'it has the content "No smoking." twice'),
        (f"[{NORM}, {other.replace('60', '0')}]", 2, "utility is 0"),
    ):
        with pytest.raises(ReplyError, match=problem.replace("[", "\\[")):
            parse_norms(text, n)


def test_general_norms():
    text = '{"content": "Be kind.", "kind": "descriptive", "weights": [1, 2.5]}'
    assert parse_abstract(text, 2) == {"content": "Be kind.", "kind": "descriptive", "weights": [1.0, 2.5]}
    wrong = "[1]", "[1, 2, 3]", "[1, 0]", "[1, -2]", "[1, true]", '[1, "2"]', "3", "[1, Infinity]"
    for weights in wrong:
        with pytest.raises(ReplyError, match="expected a list of 2 positive numbers"):
            parse_abstract(text.replace("[1, 2.5]", weights), 2)
    with pytest.raises(ReplyError, match="kind is"):
        parse_abstract(text.replace("descriptive", "abstract"), 2)


def test_themes():
    text = "1: Peace: and quiet\n\n 2 :money \n3:  peace:  and Quiet"
    assert parse_themes(text, 3) == [("peace: and quiet", [0, 2]), ("money", [1])]
    assert parse_themes("1: a\n2: b\n\nThese are themes: 3.", 2) == [("a", [0]), ("b", [1])]
    for text, problem in (
        ("1: a\n2: b", "it has 2 lines, expected one for each of 3 norms"),
        ("1: a\n2: b\n3: a\n4: b", "it has 4 lines, expected one for each of 3 norms"),
        ("", "it has 0 lines"),
        ("1: a\n3: b\n2: c", 'the line "3: b" is not 2, a colon and a theme'),
        ("0: a\n1: b\n2: c", 'the line "0: a" is not 1'),
        ("1: a\n2 b\n3: c", 'the line "2 b" is not 2'),
        ("1: a\n2: \n3: c", 'the line "2: " is not 2'),
        ("1: a\n2: \ud800\n3: c", 'the line "2: ?" is not 2'),
        ("Themes:\n1: a\n2: b\n3: c", 'the line "Themes:" is not 1'),
        ("1, 2: a\n3: b", 'the line "1, 2: a" is not 1'),
    ):
        with pytest.raises(ReplyError) as error:
            parse_themes(text, 3)
        assert problem in str(error.value)


def test_text_is_one_line():
    assert parse_text(" I smoke\n outside. ") == "I smoke outside."
    for text in (" \n ", "half a \udc9d"):
        with pytest.raises(ReplyError, match="it is empty, or holds something that is no character"):
            parse_text(text)
