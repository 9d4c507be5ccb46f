"""What a norm society cannot use, be it an argument or an answer, is named with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from _norm_societies import FAST, NOISE, table
from meanfield import InputError
from theory.norms import AGENTS, Action, Information, NormAgent, Plan
from validation.norms import TableOperations, simulate_society


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"behaviours": "noise"}, "behaviours = 'noise': expected a list of names"),
        ({"behaviours": []}, "behaviours = \\[\\]: expected one or more"),
        ({"behaviours": ["noise", "noise"]}, "behaviours = .*expected one or more different"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"operations": None}, "operations = None: expected an object with a method create"),
        ({"operations": TableOperations}, "operations = <class .*: expected an object with a method create"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"agents": ["Bob", "Ann"]}, "agents = .*: expected one or more NormAgents"),
        ({"agents": AGENTS[:2] * 2}, "agents = .*different names"),
        ({"agents": (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))}, "Al prefers nothing in 'smoking'"),
        ({"encounters": 0}, "encounters = 0: expected a whole number of at least 1"),
        ({"encounters": 2.5}, "encounters = 2.5"),
        ({"seed": -1}, "seed = -1"),
        ({"n_created": 0}, "n_created = 0"),
        ({"n_created": 2}, "n = 2: expected at least 3 norms"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected 'raise' or 'no'"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})
    assert "\n" not in str(error.value)


def created(utility: Any, contents: Sequence[str] = ("Be kind.",)) -> list[dict]:
    return [{"content": content, "kind": "injunctive", "utility": utility} for content in contents]


OUT_OF_RANGE = "utility = .* of 'Be kind.': expected a number from 1 to 100"


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        *(("create", created(utility), OUT_OF_RANGE) for utility in (0, 100.5, float("nan"), "high")),
        ("create", created(50), "norm 'Be kind.': expected a standard of"),
        ("create", created(50, [f"Be {k}." for k in range(6)]), "create of .* answered 6 norms: expected 5 at most"),
        ("create", [{"content": "Be kind.", "kind": "injunctive"}], "create of .* answered "),
        ("create", "text", "create of .* answered 'text': expected a list of norms"),
        ("detect_conflict", "no", "detect_conflict of .* answered 'no': expected True or False"),
        ("decide_to_talk", 1, "decide_to_talk of .* answered 1"),
        ("is_unique", None, "is_unique of .* answered None"),
        ("talk", None, "talk of .* answered None: expected text"),
        ("think", False, "think of .* answered False: expected text or None"),
        ("identify", "No smoking indoors.", "identify of .* answered "),
        ("identify", Information("Be kind.", "injunctive", 101, "", "chat"), OUT_OF_RANGE),
        ("plan", None, "plan of .* answered None"),
        ("plan", Plan("", "No smoking indoors."), "plan of .* answered "),  # type: ignore[arg-type]
        ("plan", Plan("", frozenset({"Sing."})), "plan of .* follows 'Sing.': expected qualified norms"),
        ("act", "smokes", "act of .* answered 'smokes'"),
        ("act", Action("", "maybe", False), "act of .* answered "),
        ("act", Action("", "for", "yes"), "act of .* answered "),  # type: ignore[arg-type]
        ("classify", "themes", "classify of .* answered 'themes'"),
        ("classify", [("fun", "Sing.")], "classify of .* answered "),
        ("classify", [("fun", ("Sing.",))], "content = 'Sing.'"),
        ("abstract", ("All.", "injunctive"), "abstract of .* answered "),
        ("abstract", ("All.", "injunctive", (0.0,)), "weights = "),
    ],
)
def test_answers_that_cannot_be_are_named(unchecked_types, name: str, answer: Any, message: str) -> None:
    operations = TableOperations(rates=FAST)
    setattr(operations, name, lambda *_: answer)
    with pytest.raises(InputError, match=f"^{message}") as error:
        simulate_society(operations, encounters=300, seed=1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operations": table().drop_vars("abstract")}, "abstract"),
        ({"operations": table(abstract=1.5)}, "abstract"),
        ({"behaviours": ["noise", "noise"]}, "expected one or more different"),
        ({"behaviours": ["noise", replace(NOISE, name="loudness")]}, "twice: expected different texts"),
    ],
)
def test_wrong_tables_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableOperations(**options)
