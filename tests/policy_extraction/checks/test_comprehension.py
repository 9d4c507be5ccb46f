"""Questions about the prompt: are the right answers right, and are answers read as they are?"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

import meanfield
from _fake_backend import FakeBackend
from _prompt_files import SHORT
from _refusals import refused
from policy_extraction.checks._comprehension import KINDS, comprehension, parse, questions_about
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._template import Prompt

WORDS = ("his", "her")
PAYOFF = re.compile(r"(REWARDED|PUNISHED) with payoff (-?\d+)")
LINE = re.compile(r"'round':(\d+), 'Player 1': '(\w+)', 'Player 2': '(\w+)', 'payoff': (-?\d+)")


def reader(prompt: Prompt) -> str:
    """Answers by reading the text of the prompt alone, as a model would have to."""
    lines = [(int(i), {"Player 1": a, "Player 2": b}, int(points)) for i, a, b, points in LINE.findall(prompt.system)]
    payoffs = {kind: int(points) for kind, points in PAYOFF.findall(prompt.system)}
    ask = prompt.user
    player = (re.findall(r"Player \d", ask) or [""])[0]
    if match := re.search(r"in round (\d+)", ask):
        _, said, points = lines[int(match[1]) - 1]
        return str(points) if "points" in ask else f"'{said[player]}'"
    if match := re.search(r"choose (\w+)", ask):
        return str(sum(said[player] == match[1] for _, said, _ in lines))
    if match := re.search(r"plays (\w+) and Player \d plays (\w+)", ask):
        return str(payoffs["REWARDED" if match[1] == match[2] else "PUNISHED"])
    if "lowest" in ask or "highest" in ask:
        return str((min if "lowest" in ask else max)(payoffs.values()))
    if "actions" in ask:
        return re.search(r"values: (\[.*?\])", prompt.system)[1]
    if "current round" in ask:
        return re.search(r"It is now round (\d+)", prompt.system)[1]
    assert "total payoff" in ask
    return re.search(r"score of Player 1 is (-?\d+)", prompt.system)[1]


def answering(answer) -> FakeBackend:
    return FakeBackend(lambda prompt: {f" {answer(prompt)}; 'reason': 'so'}}": 1.0})


def test_all_kinds_of_the_table_are_asked():
    rules, time, state = ("min_max", "actions", "payoff"), ("round", "action_i", "points_i"), ("#actions", "#points")
    assert [kind.name for kind in KINDS] == [*rules, *time, *state]
    assert [kind.category for kind in KINDS] == ["Rules"] * 3 + ["Time"] * 3 + ["State"] * 2
    asked = Counter(q.kind for q in questions_about([("his", "her")] * 5, WORDS, Payoffs()))
    assert asked == dict(zip([*rules, *time, *state], (2, 1, 8, 1, 10, 10, 4, 2), strict=True))


@pytest.mark.parametrize("payoffs", [Payoffs(), Payoffs(-3, 7)])
def test_who_reads_the_prompt_answers_everything(payoffs):
    """An independent reader of the text agrees with the answers computed from memory, whatever the payoffs."""
    result = comprehension(answering(reader), WORDS, n=30, payoffs=payoffs)
    np.testing.assert_array_equal(result["accuracy"], 1)
    np.testing.assert_array_equal(result["standard_error"], 0)
    np.testing.assert_array_equal(result["malformed"], 0)


def test_who_confuses_the_players_fails_where_they_differ():
    def confused(prompt: Prompt) -> str:
        swapped = prompt.user.translate(str.maketrans("12", "21")) if "Player" in prompt.user else prompt.user
        if number := re.search(r"round \d+", prompt.user):
            swapped = re.sub(r"round \d+", number[0], swapped)
        return reader(Prompt(prompt.system, swapped, prompt.answer_prefix))

    result = comprehension(answering(confused), WORDS, n=60)
    accuracy = result["accuracy"].to_series()
    assert (accuracy.drop(["action_i", "#actions"]) == 1).all()
    assert 0.3 < accuracy["action_i"] < 0.7 and accuracy["#actions"] < 0.8
    assert result["standard_error"].sel(question="action_i") > 0.01


def test_the_standard_error_is_that_of_a_mean_over_agents():
    def coin(prompt: Prompt) -> dict[str, float]:
        return {f" {reader(prompt)};": 0.5, " nonsense;": 0.5}

    result = comprehension(FakeBackend(coin), WORDS, n=200, temperature=1.0, per_kind=1)
    # One question a kind and agent: answers are independent coins, of which a standard error is sqrt(1/4n).
    np.testing.assert_allclose(result["standard_error"], np.sqrt(0.25 / 200), rtol=0.03)
    assert (abs(result["accuracy"] - 0.5) < 4 * result["standard_error"]).all()
    numbers = ["min_max", "payoff", "round", "points_i", "#actions", "#points"]
    wrong = 1 - result["correct"].sel(question=numbers)
    np.testing.assert_array_equal(result["malformed"].sel(question=numbers), wrong)


@pytest.mark.parametrize(
    ("text", "like", "expected"),
    [
        (" 100; 'reason': 'x'}", 1, 100),
        (" '-50'}", 1, -50),
        (" 100, 'reason': 'x'}", 1, 100),
        (" 100\nbecause", 1, 100),
        (" 100 points;", 1, None),
        (" about 100;", 1, None),
        (" 100", 1, None),
        (" 1e2;", 1, None),
        (" 'his'; ", "her", "his"),
        (' "his"}', "her", "his"),
        (" his or her;", "her", "his or her"),
        (" ['his', 'her'];", frozenset(), {"his", "her"}),
        (" her, his;", frozenset(), {"his", "her"}),
        (" ['his', 'his'];", frozenset(), None),
        (" his;", frozenset(), {"his"}),
        (" '';", "her", ""),
    ],
)
def test_answers_are_read_strictly(text, like, expected):
    assert parse(text, like) == expected


def test_prompts_are_those_of_the_game_with_another_question():
    seen: list[Prompt] = []

    def record(prompt: Prompt) -> dict[str, float]:
        seen.append(prompt)
        return {"": 1.0}

    result = comprehension(FakeBackend(record), WORDS, n=40, per_kind=2, memory_length=3)
    assert (result["accuracy"] == 0).all() and (result["malformed"] == 1).all()
    lengths = Counter(len(LINE.findall(prompt.system)) for prompt in seen)
    assert set(lengths) == {1, 2, 3}
    assert {prompt.answer_prefix for prompt in seen} == {"{'value':"}
    listed = {re.search(r"values: (\[.*?\])", prompt.system)[1] for prompt in seen}
    assert listed == {"['his', 'her']", "['her', 'his']"}
    first = NAMING_GAME.prompt(WORDS, [], Payoffs()).system.partition("[")[0]
    assert all(prompt.system.startswith(first) for prompt in seen)


def test_the_result_survives_a_file(tmp_path):
    result = comprehension(answering(reader), ("a", "b", "c"), n=5, memory_length=2, per_kind=1)
    assert meanfield.load(meanfield.save(result, tmp_path / "a.nc")).identical(result)
    assert result["category"].values.tolist() == ["Rules"] * 3 + ["Time"] * 3 + ["State"] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "n = 1"),
        ({"per_kind": 0}, "per_kind = 0"),
        ({"temperature": -1.0}, "temperature = -1.0"),
        ({"seed": -1}, "seed = -1"),
        ({"words": ("his", "his")}, "words that differ"),
        ({"memory_length": 0}, "memory_length = 0: expected a whole number from 1 to"),
    ],
)
def test_wrong_input_is_one_clear_line(options, message):
    with refused(message):
        comprehension(
            FakeBackend(lambda prompt: pytest.fail("asked")), **{"words": WORDS, "template": SHORT, **options}
        )
