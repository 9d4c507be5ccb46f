"""Norms in words that are not the table's: how they are filed, and a society of a model that has its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from _norm_societies import FAST, SMOKING, databases_over_time
from theory.norms import BEHAVIOURS, NormRates
from theory.norms._contract import Action, Information, Plan
from validation.norms import TableOperations, simulate_society
from validation.norms.society._filing import file_norm


def test_norms_in_other_words_are_filed() -> None:
    likes = {"smoking": "for", "noise": "against", "tipping": "for"}.__getitem__
    everything = BEHAVIOURS.values()
    assert file_norm("Anyone may smoke indoors.", everything, likes) == (("smoking", "against"),)
    assert file_norm("Take your cigarettes outside.", everything, likes) == (("smoking", "for"),)
    assert file_norm("Smoke, and be loud!", everything, likes) == (("smoking", "for"), ("noise", "against"))
    assert file_norm("Generous tips are usual.", everything, likes) == (("tipping", "for"),)
    assert file_norm("Be kind; stipulate multiple clouds.", everything, likes) == ()
    queue = replace(SMOKING, name="queueing", standards={"for": "Stand in line.", "against": "Push."})
    assert file_norm("No smoking.", [queue], lambda _: "against") == (("queueing", "against"),)
    by_name = replace(queue, mentions="")
    assert file_norm("No queueing.", [by_name], lambda _: "against") == (("queueing", "against"),)
    assert file_norm("No smoking or dequeueing.", [by_name], lambda _: "against") == ()


class Wordy:
    """Norms in its own words; talks, identifies and agrees always."""

    identity = "Wordy"

    def __init__(self, merge: bool = True) -> None:
        self.merge = merge

    def create(self, agent, n, rng):
        return [
            {"content": "Take your cigarettes outside.", "kind": "injunctive", "utility": 90},
            {"content": "Silence is golden.", "kind": "injunctive", "utility": 70},
            {"content": "Wash your hands.", "kind": "injunctive", "utility": 60},
            {"content": "Leave tips.", "kind": "descriptive", "utility": 80},
            {"content": "Greet the others.", "kind": "descriptive", "utility": 75},
        ][:n]

    def detect_conflict(self, agent, observation, norms, rng):
        assert norms
        return observation.shows == "against"

    def talk(self, agent, partner, observation, norms, rng):
        assert observation.actor == partner.name != agent.name
        return f"Mind this: {norms[0].content}"

    def think(self, agent, observation, norms, rng):
        return "Tips, tips."

    def identify(self, agent, text, source, observation, informed, rng):
        if source == "chat":
            return Information("Smoke outside, please.", "injunctive", 50.0, text, source)
        return Information("They tip here.", "descriptive", 50.0, text, source)

    def is_consistent(self, *_):
        return True

    decide_to_talk = is_type_right = is_consistent

    def is_unique(self, agent, information, norms, rng):
        if information.source == "synthesis":  # an abstract norm would repeat those that it replaces
            assert not any(norm.content in information.text for norm in norms)
        return information.content not in {norm.content for norm in norms}

    is_conflict_free = is_unique

    def plan(self, agent, norms, rng):
        return Plan("A day at the café.", frozenset(norm.content for norm in norms))

    def act(self, agent, behaviour, norms, plan, rng):
        shows = agent.prefers[behaviour.name]
        return Action(behaviour.shows[shows], shows, False)

    def classify(self, agent, norms, rng):
        if not self.merge:
            return [(norm.content, (norm.content,)) for norm in norms]
        return [("all", tuple(norm.content for norm in norms))]

    def abstract(self, agent, theme, norms, rng):
        return "Be considerate.", "injunctive", [1.0] * len(norms)


def test_norms_in_a_models_own_words(tmp_path: Path) -> None:
    rates = NormRates(
        encounters_per_day=10,
        plans_per_day=2,
        syntheses_per_day=5,
        other_utility_entrepreneur=0,
        other_utility_ordinary=0,
    )
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
    xr.testing.assert_identical(
        simulate_society(Wordy(), encounters=200, seed=1, rates=rates, log=tmp_path / "log"), run
    )
    single = simulate_society(Wordy(merge=False), encounters=200, seed=1, rates=rates)
    xr.testing.assert_equal(single["reached"], single["accepted"])  # no theme has two norms
    assert run.attrs["option_operations"] == "Wordy"


def test_rates_are_those_of_the_table_or_without_other_norms() -> None:
    assert simulate_society(TableOperations(rates=FAST), encounters=2, seed=1).attrs["option_plans_per_day"] == 6
    own = simulate_society(Wordy(), encounters=2, seed=1).attrs
    assert own["option_other_utility_ordinary"] == 0 and own["option_encounters_per_day"] == 160
    given = simulate_society(TableOperations(), encounters=2, seed=1, rates=FAST).attrs
    assert given["option_syntheses_per_day"] == 4
