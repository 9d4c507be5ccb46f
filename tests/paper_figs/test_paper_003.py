"""Items of [003]: norms emerge as its text says, a life is what happened, and the overall score follows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
from paper_figs import _publish
from paper_figs._item import chosen, items
from paper_figs._study import Study
from paper_figs.paper_003 import emergence, society
from theory.norms import AGENTS

NUMBERS = {item.number: item.numbers for item in items() if item.paper == "003"}


@pytest.fixture
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Few runs, and a society of a quarter of a day."""
    monkeypatch.setattr(emergence, "RUNS", 300)
    monkeypatch.setattr(society, "ENCOUNTERS", 1200)
    return Study(None, folder, quick=True)


@pytest.mark.slow
def test_norms_emerge_as_the_text_says(study: Study):
    """[003] Section 3.2, by the rate equation, whose findings the tests of theory.norms check."""
    found = NUMBERS["2"](study)
    assert found["accepted"].sizes["run"] == 30
    assert found["behaviour"].values.tolist() == ["smoking", "noise", "tipping"]
    theory = found.sel(standard="for")
    assert (theory["theory_accepted"].sel(time=0.25, method="nearest") > 0.7).all()
    # A share of ten agents, at the start that of the entrepreneurs
    assert found["accepted"].isel(time=0).mean("run").values.ravel() == pytest.approx([0.3, 0.3, 0.2])


def test_a_norm_that_nobody_holds_at_the_start(study: Study):
    found = NUMBERS["D1"](study).sel(standard="for").isel(behaviour=0)
    for side in ("", "theory_"):
        assert (found[f"{side}reached"].isel(time=0) == 0).all()
    assert float(found["theory_reached"][-1]) > 0.999
    held = float((found["reached"].isel(time=-1) > 0.5).mean())
    assert 0.3 < held < 0.9  # 0.62 of 1,000 runs; 30 runs have a standard error of 0.09
    below = emergence.draw(NUMBERS["D1"](study)).axes[1]
    dashed = [line for line in below.lines if line.get_linestyle() == "--"]
    assert dashed[0].get_ydata() == pytest.approx(found["theory_accepted"].values)


def played(*events: list) -> xr.Dataset:
    texts = np.array([json.dumps(answers) for answers in events], dtype=object)
    return xr.Dataset({"day": ("event", np.arange(len(events)) / 10), "answers": ("event", texts)})


def test_a_life_is_what_happened_to_the_agent():
    norm, carlos, sam = "No smoking indoors.", "Carlos Gomez", "Sam Moore"
    smokes = {"text": "lights a cigarette at the table", "shows": "against", "normative": False}
    outside = {"text": "steps outside to smoke", "shows": "for", "normative": True}
    quiet = {"text": "speaks in a low voice", "shows": "for", "normative": True}
    found = {"content": norm}
    told = [["act", carlos, smokes], ["detect_conflict", sam, True], ["decide_to_talk", sam, True], ["talk", sam, norm]]
    refused = [["identify", carlos, found], ["is_consistent", carlos, True], ["is_unique", carlos, False]]
    passed = [["identify", carlos, found], ["is_consistent", carlos, True], ["is_conflict_free", carlos, True]]
    life = society.life(
        played(
            [*told, *refused],
            [["act", sam, outside], ["think", carlos, norm], *passed],
            [["act", carlos, quiet], ["think", sam, None]],  # another behaviour
            [["plan", carlos, {"text": "", "follows": [norm]}]],
            [["plan", sam, {"text": "", "follows": [norm]}]],
            [["act", carlos, outside], ["think", sam, None]],
            [["act", sam, smokes], ["detect_conflict", carlos, True], ["talk", carlos, norm]],
            [["classify", carlos, [["smoking", [norm]]]], ["abstract", carlos, ["…", "injunctive", [1]]]],
        ),
        carlos,
        "smoking",
    )
    assert [(moment.what, moment.other) for moment in life] == [
        ("acts against it", sam),
        ("is told of it", sam),
        ("finds it in a talk or thought", sam),
        ("finds it in a talk or thought", sam),
        ("accepts it", sam),
        ("plans by it", ""),
        ("acts by it", sam),
        ("reminds others of it", sam),
        ("makes it part of a general norm", ""),
    ]
    assert [moment.day for moment in life] == pytest.approx([0, 0, 0, 0.1, 0.1, 0.3, 0.5, 0.6, 0.7])


def test_whoever_is_told_was_reminded_by_another(study: Study):
    """In the society as a whole each talk has one listener and one speaker, and who acts by it has accepted it."""
    lives = {agent.name: society.life(society.society(study), agent.name, "noise") for agent in AGENTS}
    stages = Counter(moment.what for life in lives.values() for moment in life)
    assert stages["is told of it"] == stages["reminds others of it"] > 50
    assert 7 <= stages["accepts it"] <= stages["finds it in a talk or thought"]
    assert stages["acts by it"] + stages["acts against it"] == pytest.approx(400, abs=80)  # a third of the encounters


def test_a_timeline_has_a_stroke_for_each_moment(study: Study):
    found = society.numbers(study, "Carlos Gomez", "smoking")
    opening, days = society.draw(found).axes
    assert sum(len(row.get_positions()) for row in days.collections) == found.sizes["moment"]
    assert sum(len(row.get_positions()) for row in opening.collections) == int(
        (found["day"] <= opening.get_xlim()[1]).sum()
    )
    assert [text.get_text() for text in opening.get_yticklabels()] == list(society.STAGES)


def test_the_overall_score_follows_from_the_parts(study: Study):
    """With the weights of the questions; not with equal ones, nor if all agents had created norms."""
    found = society.printed(study)
    overall = float(found["overall"]), float(found["overall_standard_error"])
    assert tuple(round(number, 2) for number in overall) == society.OVERALL
    assert round(float(found["score"].mean()), 2) == 5.89
    assert float(found["weight"].sum()) == pytest.approx(1)
    assert (
        society.draw_scores(found).axes[0].get_title() == "mean weighted by questions 5.63 ± 0.03, printed 5.63 ± 0.03"
    )


def test_the_questionnaire_has_what_the_society_did(study: Study):
    found = society.pairs_to_judge(study)
    assert found.sizes == {"question": 17, "agent": 10} and int(found["pairs"].max()) == society.ITEMS_PER_QUESTION
    by_task = found["pairs"].groupby("task").max("question").sum("agent")
    assert int(by_task.sel(task="Creation")) == 9  # three norms of three entrepreneurs
    plans = sum(answers[0][0] == "plan" for _, answers in society.answers_of(society.society(study)))
    assert int(by_task.sel(task="Plan")) == plans
    bars = society.draw_pairs(found).axes[0].patches[:17]
    assert sorted(bar.get_width() for bar in bars) == sorted(found["pairs"].sum("agent").values)


@pytest.mark.slow
def test_items_are_drawn(study: Study, tmp_path: Path):
    entries = _publish.publish(chosen(["003"], ["1", "4", "C2", "E1"]), study, tmp_path, say=lambda line: None)
    assert [entry.item.number for entry in entries if entry.reason] == ["1"]
    for entry in entries[1:]:
        assert (tmp_path / "003" / f"{entry.item.name}.png").stat().st_size > 10_000
    assert meanfield.load(tmp_path / "003" / "figure_C2.nc")["agent"].item() == "Tom Gomez"
