"""Runs of real populations read from archives: made-up ones with every oddity, and the published ones."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import pandas as pd
import pytest

import meanfield
from meanfield import InputError
from meanfield.datasets._ai_norms import COLUMNS

PLAYED = [(1, 2, "A", "B"), (2, 3, "A", "A"), (1, 3, "A", "A")]
BASELINE = "some-model_converged_baseline_A_B_-50_100_2mem_complete_3ps_0.5tmp.pkl"


def run(played=PLAYED, *, initial="", committed=(), **changes) -> dict:
    """A run in the layout of the published files, with memories of two interactions."""
    begin = [initial] * 2 if initial else []
    agents = {
        agent: {"my_history": [*begin], "partner_history": [*begin], "committed_tag": agent in committed}
        for agent in (1, 2, 3)
    }
    for first, second, own, other in played:
        for agent, mine, partners in ((first, own, other), (second, other, own)):
            agents[agent]["my_history"].append(mine)
            agents[agent]["partner_history"].append(partners)
    tracker = {
        "players": [[first, second] for first, second, _, _ in played],
        "answers": [[own, other] for _, _, own, other in played],
        "outcome": [int(own == other) for _, _, own, other in played],
    }
    end = {"converged_index": len(played), "committed_to": None}
    return {"simulation": agents, "tracker": tracker, "convergence": end} | changes


def archive(folder: Path, files: dict[str, object], name: str = "some_data.zip") -> Path:
    with zipfile.ZipFile(folder / name, "w") as target:
        for file, content in files.items():
            target.writestr(f"some_data/{file}", pickle.dumps(content))
    return folder / name


def test_runs_are_read_as_they_happened(tmp_path):
    swapped = [(1, 2, "A", "B"), (3, 2, "A", "B")]
    path = archive(
        tmp_path,
        {
            BASELINE: {"rules": "text", 0: run()},
            "m_swap_0_1cmtd_A_B_-50_100_2mem_complete_3ps.pkl": {
                0: run(swapped, initial="A", committed=[2], convergence={"converged_index": 0})
            },
            "m_bias_test_AB_BA.pkl": {
                "simulation": {"my_history": ["A", "B"], "partner_history": ["B", "A"]},
                "tracker": {"answers": ["A", "B", "A"]},
            },
            "m_meta_test.pkl": {1: {"min": [1, 0], "round": []}, 2: {"min": [1], "round": [0]}},
        },
    )
    found = meanfield.datasets.ai_norms(path)
    assert found.events is not None and found.answers is not None
    assert found.events.to_numpy().tolist() == [
        *([0, step, *row] for step, row in enumerate(PLAYED)),
        *([1, step, *row] for step, row in enumerate(swapped)),
    ]
    first, second = found.runs.to_dict("records")
    assert first["experiment"] == "from_empty" and first["converged"] and first["success_last_3N"] == 0.6667
    assert (first["majority_word_last_3N"], first["majority_share_last_3N"]) == ("A", 0.8333)
    assert (second["experiment"], second["committed_agents"], second["converged"]) == ("committed", "2", False)
    assert (second["initial_consensus"], second["committed_word"], second["n_committed"]) == ("A", "B", 1)
    assert {first["model"]} == {"some"} and first["options"] == "A B"
    count = found.choice_counts.set_index(["state", "choice"])["count"]
    assert count.to_dict() == {
        ("", "A"): 2,
        ("", "B"): 1,
        ("A,A", "A"): 1,
        ("A,B", "A"): 1,
        ("A,A|A,A", "A"): 2,
        ("B,A", "A"): 1,
    }, "agent 2 of the second run is committed"
    assert found.answers[["state", "choice", "count"]].values.tolist() == [["A,B|B,A", "A", 2], ["A,B|B,A", "B", 1]]
    assert found.comprehension is not None
    assert found.comprehension[["question", "accuracy", "number"]].values.tolist() == [
        ["min", 2 / 3, 3],
        ["round", 0, 1],
    ]


WRONG_HISTORY = run()
WRONG_HISTORY["simulation"][1]["my_history"][0] = "B"
SHORT = run([(1, 2, "A", "A")])
SHORT["simulation"][3] |= {"my_history": ["A"], "partner_history": ["A"]}
SWAP = "m_swap_0_1cmtd_A_B_-50_100_2mem_complete_3ps_0.5tmp.pkl"
TWO_WORDS = run([(1, 2, "A", "A"), (1, 2, "B", "A")], initial="A", committed=[1])


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        (BASELINE, {0: run([])}, "no interactions"),
        (BASELINE, {0: run([(1, 2, "A", "C")])}, "the word 'C' is none of A, B"),
        (BASELINE, {0: run(tracker={"players": [[1, 9]], "answers": [["A", "B"]]})}, "agent 9 is none of the popul"),
        (BASELINE, {0: WRONG_HISTORY}, "the history of agent 1 differs from the list of interactions"),
        (BASELINE, {0: run(initial="A", committed=[2])}, "1 agents are tagged as committed: expected 0"),
        (BASELINE, {0: run(simulation=[])}, "'list' object has no attribute 'items'"),
        (BASELINE, {0: SHORT}, "agent 3 begins with 1 interactions"),
        (SWAP, {0: run(initial="A")}, "0 agents are tagged as committed: expected 1"),
        (SWAP, {0: TWO_WORDS}, "committed agents say more than one word"),
        (BASELINE.replace("-50_100", "-1_5"), {0: run()}, "payoffs = -1_5: expected -50_100"),
        ("code.pkl", {0: range(3)}, "expected a pickle of plain data"),
        ("notes.pkl", [1, 2], "expected runs, and a name with options and memory length"),
        ("large.pkl", {"question": {"mean": 10**400}}, "too large"),
        ("bias.pkl", {"tracker": {"answers": [1]}, "simulation": {}}, "expected one agent's history and a list of its"),
    ],
)
def test_what_is_no_run_is_named_and_an_archive_of_it_is_refused(file, content, reason, tmp_path):
    found = meanfield.datasets.ai_norms(archive(tmp_path, {f"good_{BASELINE}": {0: run()}, file: content}))
    assert found.skipped is not None and len(found.runs) == 1
    assert found.skipped["file"].tolist() == [file] and reason in found.skipped["reason"].item()
    with pytest.raises(InputError, match="holds no run of a population"):
        meanfield.datasets.ai_norms(archive(tmp_path, {file: content}))


def test_a_committed_agent_may_begin_with_its_own_word(tmp_path):
    played = run([(1, 2, "A", "B")], initial="A", committed=[2])
    played["simulation"][2] |= {"my_history": ["B", "B", "B"], "partner_history": ["B", "B", "A"]}
    (row,) = meanfield.datasets.ai_norms(archive(tmp_path, {SWAP: {0: played}})).runs.to_dict("records")
    assert (row["initial_consensus"], row["committed_word"]) == ("A", "B")


def test_a_folder_has_tables_or_archives(tmp_path, monkeypatch):
    for nothing in (tmp_path, tmp_path / "llama3_data.zip"):
        with pytest.raises(InputError, match=r"expected choice_counts.csv.gz, runs.csv, or archives like llama31_data"):
            meanfield.datasets.ai_norms(nothing)
    (tmp_path / "ai_norms").mkdir()
    archive(tmp_path / "ai_norms", {BASELINE: {0: run()}}, "llama3_data.zip")
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path))
    assert meanfield.datasets.ai_norms().runs["model"].tolist() == ["llama3"]
    (tmp_path / "runs.csv").write_text("model\n")
    with pytest.raises(InputError, match=r"expected choice_counts.csv.gz beside runs.csv"):
        meanfield.datasets.ai_norms()
    assert meanfield.datasets.ai_norms(ordered=True).runs["model"].tolist() == ["llama3"]
    (tmp_path / "choice_counts.csv.gz").write_text(f"{','.join(COLUMNS['choice_counts.csv.gz'])}\n")
    with pytest.raises(InputError, match=r"runs.csv lacks the column experiment, options, .*; expected model, "):
        meanfield.datasets.ai_norms()
    (tmp_path / "log.csv").write_text("run,step\n")
    with pytest.raises(InputError, match=r"expected a zip archive; meanfield\.datasets\.from_events reads logs"):
        meanfield.datasets.ai_norms(tmp_path / "log.csv")


def test_the_empty_memory_is_no_missing_value(data_folder):
    real = meanfield.datasets.ai_norms(data_folder)
    assert real.choice_counts["count"].min() > 0 and "" in set(real.choice_counts["state"])
    assert set(real.runs["experiment"]) == {"from_empty", "from_consensus", "committed"}


@pytest.mark.slow
def test_published_archives_give_the_tables_that_sum_them_up(data_folder):
    """The tables were made from the same archives by another program."""
    tables, found = (meanfield.datasets.ai_norms(data_folder, ordered=ordered) for ordered in (False, True))
    assert found.skipped is not None and found.skipped["reason"].tolist() == ["no interactions"]
    options = ["_".join(sorted(options.split("_"))) for options in tables.choice_counts["options"]]
    counts = tables.choice_counts.assign(options=options)
    for both in ((tables.runs, found.runs[tables.runs.columns]), (counts, found.choice_counts)):
        one, other = (table.sort_values([*table.columns], ignore_index=True) for table in both)
        pd.testing.assert_frame_equal(one, other)
