"""What a norm society cannot use, be it an argument or an answer, is named with what was expected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from _norm_societies import FAST, NOISE, table
from meanfield import InputError
from theory.norms import AGENTS, NormAgent
from theory.norms._contract import Action, Plan
from validation.norms._table_operations import TableOperations
from validation.norms.society._simulate import simulate_society


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


def test_impossible_answers_are_named() -> None:
    def run(**answers: Callable) -> None:
        operations = TableOperations(rates=FAST)
        for name, answer in answers.items():
            setattr(operations, name, answer)
        simulate_society(operations, encounters=300, seed=1)

    def bad(utility: Any) -> list[dict]:
        return [{"content": "Be kind.", "kind": "injunctive", "utility": utility}]

    for utility in (0, 100.5, float("nan"), "high"):
        with pytest.raises(InputError, match=r"utility = .* of 'Be kind.': expected a number from 1 to 100"):
            run(create=lambda *_, utility=utility: bad(utility))
    told = TableOperations(rates=FAST).identify

    def exaggerate(*asked: Any) -> Any:
        found = told(*asked)
        return found and replace(found, utility=101)

    with pytest.raises(InputError, match="utility = 101"):
        run(identify=exaggerate)
    with pytest.raises(InputError, match=r"plan of .* follows 'Sing.': expected qualified norms"):
        run(plan=lambda *_: Plan("", frozenset({"Sing."})))
    with pytest.raises(InputError, match=r"content = 'Sing.'"):
        run(classify=lambda *_: [("fun", ("Sing.",))])
    with pytest.raises(InputError, match="weights = "):
        run(abstract=lambda *_: ("All.", "injunctive", (0.0,)))
    with pytest.raises(InputError, match=r"norm 'Be kind.': expected a standard of"):
        run(create=lambda *_: bad(50))
    for wrong in (table().drop_vars("abstract"), table(abstract=1.5)):
        with pytest.raises(InputError, match="abstract"):
            TableOperations(wrong)
    with pytest.raises(InputError, match="expected one or more different"):
        TableOperations(behaviours=["noise", "noise"])
    with pytest.raises(InputError, match="twice: expected different texts"):
        TableOperations(behaviours=["noise", replace(NOISE, name="loudness")])


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("detect_conflict", "no"),
        ("decide_to_talk", 1),
        ("is_unique", None),
        ("create", "text"),
        ("create", [{"content": "Be kind.", "kind": "injunctive"}]),
        ("create", [{"content": f"Be {k}.", "kind": "injunctive", "utility": 50} for k in range(6)]),
        ("talk", None),
        ("think", False),
        ("identify", "No smoking indoors."),
        ("plan", None),
        ("plan", Plan("", "No smoking indoors.")),  # type: ignore[arg-type]
        ("act", "smokes"),
        ("act", Action("", "maybe", False)),
        ("act", Action("", "for", "yes")),  # type: ignore[arg-type]
        ("classify", "themes"),
        ("classify", [("fun", "Sing.")]),
        ("abstract", ("All.", "injunctive")),
    ],
)
def test_answers_of_another_kind_are_named(unchecked_types, name: str, answer: Any) -> None:
    operations = TableOperations(rates=FAST)
    setattr(operations, name, lambda *_: answer)
    with pytest.raises(InputError, match=rf"^{name} of .* answered ") as error:
        simulate_society(operations, encounters=300, seed=1)
    assert "\n" not in str(error.value)
