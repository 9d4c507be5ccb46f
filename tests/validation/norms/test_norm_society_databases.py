"""The norm databases of a society: their order over a run, utilities, generalisation, and what was told last."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from _norm_societies import NOISE, SMOKING, databases_over_time, member_at, table
from meanfield import InputError
from theory.norms import AGENTS, BEHAVIOURS, NormRates, NormState
from validation.norms import TableOperations, simulate_society
from validation.norms.society._member import Member


def qualified(row: dict) -> list[dict]:
    return [norm for norm in row["norms"] if norm["activated"] and norm["valid"]]


def test_databases_keep_their_order() -> None:
    """Over a long run in which norms often change sides."""
    rates = NormRates(
        encounters_per_day=20,
        plans_per_day=10,
        syntheses_per_day=10,
        other_utility_ordinary=120,
        other_utility_entrepreneur=120,
    )
    fickle = TableOperations(
        table(identify_habit=0.5, generate_thought=0.6, unique=0.9, conflict_free=0.9), rates=rates
    )
    kinds, last = defaultdict(int), {}
    for event, name, before, after in databases_over_time(fickle, encounters=500, seed=2, rates=rates):
        last[name] = after
        contents = [norm["content"] for norm in after["norms"]]
        assert len(set(contents)) == len(contents)
        assert {norm["content"] for norm in before["norms"]} <= set(contents)  # nothing is forgotten
        upheld = {tuple(one) for norm in qualified(after) for one in norm["about"]}
        assert len({behaviour for behaviour, _ in upheld}) == len(upheld)  # no contradiction
        parts = {part for norm in qualified(after) for part in norm.get("parts", ())}
        superseded = {n["content"] for n in after["norms"] if n["valid"] and not n["activated"]}
        assert superseded <= parts  # by an abstract norm that holds
        assert set(after["plan"]["follows"]) <= {norm["content"] for norm in qualified(after)}
        if event.what == "synthesis":
            assert sum(norm["utility"] for norm in qualified(before)) + 120 > 350
            assert len(superseded) > sum(n["valid"] and not n["activated"] for n in before["norms"])
        if event.what == "plan":
            assert set(before["plan"]["follows"]) < set(after["plan"]["follows"])
        kinds[event.what] += 1
        kinds["lost"] += any(
            norm["valid"] and not other["valid"]
            for norm in before["norms"]
            for other in after["norms"]
            if norm["content"] == other["content"]
        )
    assert min(kinds[one] for one in ("encounter", "plan", "synthesis", "lost")) > 20
    run = simulate_society(fickle, encounters=500, seed=2)
    assert json.loads(run.attrs["databases"]) == last


def test_total_utility_counts_what_is_qualified() -> None:
    operations = TableOperations()
    held = NormState("ordinary", "for").at("qualified", "for")
    member = member_at({name: held for name in BEHAVIOURS}, operations)
    assert member.database.total_utility == 95 + 85 + 80
    merged = member.generalises(
        [SMOKING.standards["for"], NOISE.standards["for"]], "Respect others.", "injunctive", [1, 3]
    )
    assert merged.database.total_utility == pytest.approx(80 + (95 + 3 * 85) / 4)
    assert merged.held == {
        ("smoking", "for"): "superseded",
        ("noise", "for"): "superseded",
        ("tipping", "for"): "qualified",
    }


def test_one_norm_is_generalised_only_with_others_outside_the_database() -> None:
    member = Member(AGENTS[0]).accepts(SMOKING.norm("for"), (("smoking", "for"),))
    told = (SMOKING.standards["for"],), "Respect others.", "injunctive", [2]
    with pytest.raises(InputError, match="expected two or more"):
        member.database.synthesised(*told)
    alone = member.database.synthesised(*told, with_others=True)
    assert [norm.state for norm in alone.norms] == ["superseded", "qualified"] and alone.total_utility == 95
    with pytest.raises(InputError, match="expected one or more"):
        member.database.synthesised((), "Respect others.", "injunctive", [], with_others=True)
    assert member.generalises(*told).database == alone


def test_an_abstract_norm_that_loses_gives_its_other_parts_back() -> None:
    operations = TableOperations()
    held = NormState("ordinary", "for").at("qualified", "for")
    member = member_at({name: held for name in BEHAVIOURS}, operations)
    contents = [one.standards["for"] for one in BEHAVIOURS.values()]
    merged = member.generalises(contents[:2], "Respect others.", "injunctive", [1, 1])
    all_in_one = merged.generalises(["Respect others.", contents[2]], "Be good.", "injunctive", [1, 1])
    assert set(all_in_one.held.values()) == {"superseded"} and len(all_in_one.qualified) == 1
    loud = all_in_one.accepts(NOISE.norm("against"), (("noise", "against"),))
    assert loud.held == {
        ("smoking", "for"): "complying",
        ("tipping", "for"): "complying",
        ("noise", "against"): "qualified",
    }
    lost = {"Respect others.", "Be good.", contents[1]}
    assert {loud.database.find(content).state for content in lost} == {"informed"}
    assert not any(norm.state == "superseded" for norm in loud.database.norms)
    assert loud.parts == {}
    # back by itself: planned by, and the abstract norm is still needed for the other part
    again = merged.accepts(SMOKING.norm("for"), (("smoking", "for"),))
    assert again.held["smoking", "for"] == "complying" and again.held["noise", "for"] == "superseded"
    both = again.accepts(NOISE.norm("for"), (("noise", "for"),))
    assert both.held["noise", "for"] == "complying" and both.database.find("Respect others.").state == "informed"


def test_only_the_last_information_counts_until_a_norm_is_held() -> None:
    member = Member(AGENTS[0]).told_of(SMOKING.norm("for"), (("smoking", "for"),))
    member = member.told_of(SMOKING.norm("against"), (("smoking", "against"),))
    assert member.informed_last == {"smoking": "against"}
    again = member.told_of(SMOKING.norm("for"), (("smoking", "for"),))
    assert again.informed_last == {"smoking": "for"} and len(again.database.norms) == 2
    holds = again.accepts(SMOKING.norm("for"), (("smoking", "for"),))
    assert holds.informed == () and holds.upheld("smoking") == "for" and holds.upheld("noise") == ""
    assert holds.told_of(SMOKING.norm("for"), (("smoking", "for"),)) is holds
