"""The norms of a society's agents: their order over a run, generalisation, what was told last, and other wording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from _norm_societies import NOISE, SMOKING, member_at, society_of, table
from meanfield import InputError
from paper_figs.norm_society import TableOperations
from paper_figs.norm_society._member import Member, PersonalNorm
from paper_figs.norm_society._society import Event
from theory.norms import AGENTS, BEHAVIOURS, NormRates
from theory.norms._states import NormState

FOR = {name: one.standards["for"] for name, one in BEHAVIOURS.items()}


def qualified(row: dict) -> list[dict]:
    return [norm for norm in row["norms"] if norm["activated"] and norm["valid"]]


def believer() -> Member:
    """Holds all three standards."""
    held = NormState("ordinary", "for").at("qualified", "for")
    return member_at(dict.fromkeys(BEHAVIOURS, held), TableOperations())


def databases_over_time(operations: TableOperations, rates: NormRates, events: int) -> Iterator[tuple]:
    """Each change of a member of a society: (event, what it held before, and after)."""
    society, rng = society_of(operations, rates=rates), np.random.default_rng(2)
    for number in range(events):
        before = list(society.members)
        event = society.play(number, rng)
        for old, new in zip(before, society.members, strict=True):
            if old is not new:
                yield event, old.as_dict(), new.as_dict()


def test_databases_keep_their_order() -> None:
    """Over a long run in which norms often change sides."""
    rates = NormRates(20, 10, 10, other_utility_entrepreneur=120, other_utility_ordinary=120)
    changes = {"identify_habit": 0.5, "generate_thought": 0.6, "unique": 0.9, "conflict_free": 0.9}
    fickle = TableOperations(table(**changes), rates=rates)
    kinds = defaultdict(int)
    for event, before, after in databases_over_time(fickle, rates, events=1500):
        if before == after:
            continue
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
        valid = {norm["content"]: norm["valid"] for norm in after["norms"]}
        kinds["lost"] += any(norm["valid"] and not valid[norm["content"]] for norm in before["norms"])
    assert min(kinds[one] for one in ("encounter", "plan", "synthesis", "lost")) > 20


def test_general_norms_stand_for_their_parts() -> None:
    merged = believer().generalises([FOR["smoking"], FOR["noise"]], "Respect others.", "injunctive", [1, 3])
    assert merged.norms[-1].utility == pytest.approx((95 + 3 * 85) / 4)
    assert merged.held == {
        ("smoking", "for"): "superseded",
        ("noise", "for"): "superseded",
        ("tipping", "for"): "qualified",
    }
    for weight in (1e-300, 1.0, 1e308):
        assert (
            believer().generalises(list(FOR.values()), "Be.", "injunctive", [weight] * 3).norms[-1].utility == 260 / 3
        )
    for contents, weights, message in (
        ([], [], "expected one or more different qualified norms"),
        ([FOR["noise"]] * 2, [1, 1], "expected one or more different qualified norms"),
        (["Sing."], [1], "contents = "),
        ([FOR["noise"]], [0.0], "expected 1 positive numbers"),
        ([FOR["noise"]], [1, 1], "expected 1 positive numbers"),
    ):
        with pytest.raises(InputError, match=message):
            believer().generalises(contents, "Be.", "injunctive", weights)


def test_an_abstract_norm_that_loses_gives_its_other_parts_back() -> None:
    contents = list(FOR.values())
    merged = believer().generalises(contents[:2], "Respect others.", "injunctive", [1, 1])
    all_in_one = merged.generalises(["Respect others.", contents[2]], "Be good.", "injunctive", [1, 1])
    assert set(all_in_one.held.values()) == {"superseded"} and len(all_in_one.qualified) == 1
    loud = all_in_one.accepts(PersonalNorm.of(NOISE, "against"))
    assert loud.held == {
        ("smoking", "for"): "complying",
        ("tipping", "for"): "complying",
        ("noise", "against"): "qualified",
    }
    lost = {norm.content for norm in loud.norms if norm.state == "informed"}
    assert lost >= {"Respect others.", "Be good.", contents[1]}
    assert not any(norm.state == "superseded" or norm.parts for norm in loud.norms)
    # back by itself: planned by, and the abstract norm is still needed for the other part
    again = merged.accepts(PersonalNorm.of(SMOKING, "for"))
    assert again.held["smoking", "for"] == "complying" and again.held["noise", "for"] == "superseded"
    both = again.accepts(PersonalNorm.of(NOISE, "for"))
    assert both.held["noise", "for"] == "complying"
    assert {norm.content: norm.state for norm in both.norms}["Respect others."] == "informed"


def test_only_the_last_information_counts_until_a_norm_is_held() -> None:
    member = Member(AGENTS[0]).told_of(PersonalNorm.of(SMOKING, "for")).told_of(PersonalNorm.of(SMOKING, "against"))
    assert [norm.about for norm in member.informed] == [(("smoking", "for"),), (("smoking", "against"),)]
    again = member.told_of(PersonalNorm.of(SMOKING, "for"))
    assert again.informed[-1].content == FOR["smoking"] and len(again.norms) == 2
    holds = again.accepts(PersonalNorm.of(SMOKING, "for"))
    assert holds.informed == () and holds.upheld("smoking") == "for" and holds.upheld("noise") == ""
    assert holds.told_of(PersonalNorm.of(SMOKING, "for")) is holds


def test_norms_in_other_words_are_filed() -> None:
    def filed(content: str, *behaviours, taken_as=("for", "against", "for")) -> tuple:
        likes = dict(zip(BEHAVIOURS, taken_as, strict=True)) | {"queueing": "against"}
        society = society_of(TableOperations(), behaviours or BEHAVIOURS.values())
        return society.filed({"content": content, "utility": 50, "kind": "injunctive"}, likes.__getitem__).about

    assert filed("Anyone may smoke indoors.") == (("smoking", "against"),)
    assert filed("Take your cigarettes outside.") == (("smoking", "for"),)
    assert filed("Smoke, and be loud!") == (("smoking", "for"), ("noise", "against"))
    assert filed("Generous tips are usual.", taken_as=("", "", "")) == ()
    assert filed("Be kind; stipulate multiple clouds.") == ()
    queue = replace(SMOKING, name="queueing", standards={"for": "Stand in line.", "against": "Push."})
    assert filed("No smoking.", queue) == (("queueing", "against"),)
    by_name = replace(queue, mentions="")
    assert filed("No queueing.", by_name) == (("queueing", "against"),)
    assert filed("No smoking or dequeueing.", by_name) == ()


@pytest.mark.parametrize(("other", "made"), [(0, "none"), (100, "superseded")])
def test_a_theme_of_one_norm_is_general_only_beside_norms_outside_the_database(other: float, made: str) -> None:
    table_says = TableOperations(table(abstract=1))
    society = society_of(table_says, rates=NormRates(other_utility_ordinary=other, threshold=100))
    society.rng, society.event = np.random.default_rng(), Event("synthesis")
    after = society.synthesis(believer())
    assert set(after.held.values()) == ({"superseded"} if made == "superseded" else {"qualified"})
