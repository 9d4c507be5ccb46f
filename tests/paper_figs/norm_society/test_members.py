"""The norms of a society's agents: their order over a run, generalisation, what was told last, and other wording."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from _norm_societies import NOISE, SMOKING, databases_over_time, member_at, rules_of, table
from meanfield import InputError
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.norm_society._member import Member
from theory.norms import AGENTS, BEHAVIOURS, NormRates
from theory.norms._states import NormState

FOR = {name: one.standards["for"] for name, one in BEHAVIOURS.items()}


def qualified(row: dict) -> list[dict]:
    return [norm for norm in row["norms"] if norm["activated"] and norm["valid"]]


def believer() -> Member:
    """Holds all three standards."""
    held = NormState("ordinary", "for").at("qualified", "for")
    return member_at(dict.fromkeys(BEHAVIOURS, held), TableOperations())


def test_databases_keep_their_order() -> None:
    """Over a long run in which norms often change sides."""
    rates = NormRates(20, 10, 10, other_utility_entrepreneur=120, other_utility_ordinary=120)
    changes = {"identify_habit": 0.5, "generate_thought": 0.6, "unique": 0.9, "conflict_free": 0.9}
    fickle = TableOperations(table(**changes), rates=rates)
    kinds, last = defaultdict(int), {}
    for event, name, before, after in databases_over_time(fickle, encounters=500, seed=2, rates=rates):
        last[name] = after
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
    run = simulate_society(fickle, encounters=500, seed=2)
    assert json.loads(run.attrs["databases"]) == last


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
    loud = all_in_one.accepts(NOISE.norm("against"))
    assert loud.held == {
        ("smoking", "for"): "complying",
        ("tipping", "for"): "complying",
        ("noise", "against"): "qualified",
    }
    lost = {norm.content for norm in loud.norms if norm.state == "informed"}
    assert lost >= {"Respect others.", "Be good.", contents[1]}
    assert not any(norm.state == "superseded" or norm.parts for norm in loud.norms)
    # back by itself: planned by, and the abstract norm is still needed for the other part
    again = merged.accepts(SMOKING.norm("for"))
    assert again.held["smoking", "for"] == "complying" and again.held["noise", "for"] == "superseded"
    both = again.accepts(NOISE.norm("for"))
    assert both.held["noise", "for"] == "complying"
    assert {norm.content: norm.state for norm in both.norms}["Respect others."] == "informed"


def test_only_the_last_information_counts_until_a_norm_is_held() -> None:
    member = Member(AGENTS[0]).told_of(SMOKING.norm("for")).told_of(SMOKING.norm("against"))
    assert [norm.about for norm in member.informed] == [(("smoking", "for"),), (("smoking", "against"),)]
    again = member.told_of(SMOKING.norm("for"))
    assert again.informed[-1].content == FOR["smoking"] and len(again.norms) == 2
    holds = again.accepts(SMOKING.norm("for"))
    assert holds.informed == () and holds.upheld("smoking") == "for" and holds.upheld("noise") == ""
    assert holds.told_of(SMOKING.norm("for")) is holds


def test_norms_in_other_words_are_filed() -> None:
    def filed(content: str, *behaviours, taken_as=("for", "against", "for")) -> tuple:
        likes = dict(zip(BEHAVIOURS, taken_as, strict=True)) | {"queueing": "against"}
        rules = rules_of(TableOperations(), behaviours or BEHAVIOURS.values())
        return rules._norm({"content": content, "utility": 50, "kind": "injunctive"}, likes.__getitem__).about

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


CREATED = (
    ("Take your cigarettes outside.", "injunctive", 90),
    ("Silence is golden.", "injunctive", 70),
    ("Wash your hands.", "injunctive", 60),
    ("Leave tips.", "descriptive", 80),
    ("Greet the others.", "descriptive", 75),
)


class Wordy:
    """Norms in its own words; talks, identifies and agrees always."""

    identity = "Wordy"

    def __init__(self, merge: bool = True) -> None:
        self.merge = merge

    def __call__(self, operation, agent, given, rng):
        norms = [norm.content for norm in given.get("norms", ())]
        match operation:
            case "create":
                return [dict(zip(("content", "kind", "utility"), one, strict=True)) for one in CREATED][: given["n"]]
            case "detect_conflict":
                assert norms
                return given["shows"] == "against"
            case "talk":
                assert given["observation"].startswith(given["partner"].name) and given["partner"] != agent
                return f"Mind this: {norms[0]}"
            case "think":
                return "Tips, tips."
            case "identify" if given["source"] == "chat":
                return {"content": "Smoke outside, please.", "kind": "injunctive", "utility": 50.0}
            case "identify":
                return {"content": "They tip here.", "kind": "descriptive", "utility": 50.0}
            case "is_unique" | "is_conflict_free":
                # an abstract norm would repeat those that it replaces
                assert given["content"] != "Be considerate." or not set(norms) & {one for one, *_ in CREATED}
                return given["content"] not in norms
            case "plan":
                return {"text": "A day at the café.", "follows": norms}
            case "act":
                shows = agent.prefers[given["behaviour"].name]
                return {"text": given["behaviour"].shows[shows], "shows": shows, "normative": False}
            case "classify":
                return [["all", norms]] if self.merge else [[one, [one]] for one in norms]
            case "abstract":
                return ["Be considerate.", "injunctive", [1.0] * len(norms)]
        return True


def test_norms_in_a_models_own_words(tmp_path: Path) -> None:
    rates = NormRates(10, 2, 5, other_utility_entrepreneur=0, other_utility_ordinary=0)
    run = simulate_society(Wordy(), encounters=200, seed=1, rates=rates, log=tmp_path / "log")
    start, end = run.isel(event=0), run.isel(event=-1)
    # Bob is against tips, and so is what he says of them
    assert start["accepted"].sel(standard="for").values.tolist() == [0.3, 0.3, 0.2]
    assert float(start["accepted"].sel(standard="against", behaviour="tipping")) == 0.1
    # what is said of smoking counts where smoking was seen or the speaker holds a norm for it, but not under noise
    assert float(end["reached"].sel(standard="for", behaviour="smoking")) > 0.6
    assert float(end["reached"].sel(behaviour="noise").sum()) == pytest.approx(0.3)
    for event, *_, row in databases_over_time(Wordy(), 200, 1, rates):
        for norm in row["norms"]:
            if norm["content"] == "They tip here." and event.behaviour == "noise":
                assert norm["about"] in ([], [["tipping", "for"]], [["tipping", "against"]])
    databases = json.loads(end.attrs["databases"])
    merged = {name for name, row in databases.items() if any("parts" in norm for norm in row["norms"])}
    assert {"Bob Johnson", "Abigail Chen", "Francisco Lopez"} & merged
    for name in merged:
        general = next(norm for norm in databases[name]["norms"] if "parts" in norm)
        weighed = [norm["utility"] for norm in databases[name]["norms"] if norm["content"] in general["parts"]]
        assert len(weighed) >= 2 and general["utility"] == pytest.approx(np.mean(weighed))
    again = simulate_society(Wordy(), encounters=200, seed=1, rates=rates, log=tmp_path / "log")
    xr.testing.assert_identical(again, run)
    single = simulate_society(Wordy(merge=False), encounters=200, seed=1, rates=rates)
    xr.testing.assert_equal(single["reached"], single["accepted"])  # no theme has two norms
    assert run.attrs["option_operations"] == "Wordy"
