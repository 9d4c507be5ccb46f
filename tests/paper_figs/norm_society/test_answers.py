"""Answers in a norm society: those of no use count as no, and wrong ones are named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from _norm_societies import FAST, NOISE, Chatty
from meanfield import InputError
from meanfield.toolbox import UnparsedError
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.norm_society._society import OPERATIONS
from theory.norms import AGENTS, NormAgent


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_cannot_be_parsed_is_no_and_counted(name: str) -> None:
    rates = replace(FAST, syntheses_per_day=0) if name == "plan" else FAST
    run = simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1, on_unparsed="no")
    answers = [given for text in run["answers"].values for given in json.loads(text)]
    failed = sum(given[0] == name and len(given) == 2 for given in answers)
    assert 0 < failed == int(run["unparsed"].sel(operation=name)) == int(run["unparsed"].sum())
    start, most, end = run.isel(event=0), run.max("event"), run.isel(event=-1)
    learnt = most["accepted"] - start["accepted"]
    nothing = {
        "create": end["reached"],
        "detect_conflict": end["conflicts"],
        "decide_to_talk": end["chats"],
        "talk": end["chats"],
        "think": end["thoughts"],
        "identify": most["informed"] + learnt,
        "plan": most["complying"] - start["complying"],
        "act": run["unparsed"].sel(operation="act") - (run["what"] == "encounter").sum(),
        "classify": end["reached"] - end["accepted"],
        "abstract": end["reached"] - end["accepted"],
    }
    assert float(abs(nothing.get(name, learnt)).sum()) == 0
    with pytest.raises(UnparsedError, match=f"{name}: no answer"):
        simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1)


KNOWS_NOISE = (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"agents": KNOWS_NOISE}, "Al prefers nothing in 'smoking'"),
        ({"operations": TableOperations}, "operations = <class .*: expected a function of operation, agent"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"encounters": 0}, "encounters = 0: expected a whole number of at least 1"),
        ({"n_created": 2}, "create of .* answered 3 norms: expected 2 at most"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected one of raise, no"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})


def created(utility: Any, n: int = 1) -> list[dict]:
    return [{"content": f"Be kind to {k}.", "kind": "injunctive", "utility": utility} for k in range(n)]


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("create", created(101), "utility of 'Be kind to 0.' = 101: "),
        ("create", created(50), "norm 'Be kind to 0.': expected a standard of"),
        ("create", created(50, 6), "create of .* answered 6 norms: expected 5 at most"),
        ("detect_conflict", "no", "detect_conflict of .* answered 'no': expected bool"),
        ("think", False, "think of .* answered False: expected str or NoneType"),
        ("plan", {"text": "", "follows": ["Sing."]}, "plan of .* follows 'Sing.': expected qualified norms"),
        ("classify", [["fun", ["Sing."]]], r"contents = \['Sing.'\]: expected one or more different qualified norms"),
        ("abstract", ["All.", "injunctive", [0.0]], "weights = "),
    ],
)
def test_answers_that_cannot_be_are_named(unchecked_types, name: str, answer: Any, message: str) -> None:
    decide = TableOperations(rates=FAST)

    def operations(operation, *asked):
        return answer if operation == name else decide(operation, *asked)

    with pytest.raises(InputError, match=f"^{message}"):
        simulate_society(operations, encounters=300, seed=1, rates=FAST)


def test_standards_with_the_same_text_are_refused() -> None:
    with pytest.raises(InputError, match="expected different texts"):
        TableOperations(behaviours=["noise", replace(NOISE, name="loudness")])
