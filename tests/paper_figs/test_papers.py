"""Items of the papers: all there, their numbers those that are printed, and nothing computed twice."""

from __future__ import annotations

import dataclasses
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from meanfield import InputError
from paper_figs import _publish
from paper_figs._item import chosen, items
from paper_figs._study import NotAtHandError, Study
from paper_figs.paper_004 import _ensembles, group_size, trajectories

SMALL = (4, 10, 24, 100, 1000)


@pytest.fixture
def study(published: xr.Dataset, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """One pair of GPT-4o in small ensembles."""
    monkeypatch.setattr(_ensembles, "SIZES", SMALL)
    monkeypatch.setattr(_ensembles, "MANY_RUNS", 3000)
    monkeypatch.setattr(_ensembles, "RUNS", 300)
    return Study(published.sel(model=["gpt-4o"], pair=["African/White"]), folder, quick=True)


TABLES_OF_000 = ["Table 1", "Table 2", *(f"Table SI{k}" for k in range(1, 7))]
NUMBERS = {
    "000": ["1", "2", "3", *(f"SI{k}" for k in range(1, 8)), *TABLES_OF_000],
    "001": ["1", "2", "3", *(f"S{k}" for k in range(2, 8)), "Table 1", *(f"Table S{k}" for k in range(1, 4))],
    "002": [*map(str, range(1, 10)), "Eq. 8", "Table 1"],
    "003": ["1", "2", "3", "4", "A1", "B1", "C1", "C2", "C3", "D1", "E1"],
    "004": [*map(str, range(1, 5)), *(f"S{k}" for k in range(1, 32)), "Table S1", "Table S2"],
}
COMMON = {"1": "1", "2": "2", "3": "3", "SI3": "S3", "SI1": "S4", "SI2": "S5", "SI4": "S6", "SI5": "S2", "SI6": "S7"}
COMMON |= {"Table 1": "Table 1", "Table SI4": "Table S1", "Table SI5": "Table S2", "Table SI6": "Table S3"}


def test_every_item_is_registered_once_and_is_drawn_or_has_a_reason():
    assert {paper: [item.number for item in items() if item.paper == paper] for paper in NUMBERS} == NUMBERS
    for item in items():
        assert (item.numbers is None) == (item.draw is None) == bool(item.reason), item.number
    by_place = {(item.paper, item.number): item for item in items()}
    for number, same in COMMON.items():
        assert by_place["001", same].numbers is by_place["000", number].numbers
    assert [by_place["002", number].name for number in ("Eq. 8", "Table 1")] == ["eq_8", "table_1"]
    with pytest.raises(InputError, match=r"paper = '005': expected .*004"):
        chosen(["005"], [])


@pytest.mark.parametrize("size", [4, 10, 100])
def test_collective_bias_of_figure_4(published: xr.Dataset, tmp_path: Path, size: int):
    """The printed digits, to four standard errors of 10,000 runs."""
    study = Study(published, tmp_path, quick=True)
    (policy,) = study.each_policy(model=trajectories.MODEL, pair=trajectories.PAIR)
    table = _ensembles.outcomes(study, policy, trajectories.OBSERVATIONS, [size])
    found = _ensembles.by_winner(table).isel(n_agents=0)
    printed = float(trajectories.PRINTED[size])
    assert float(found["collective"]) == pytest.approx(printed, abs=0.0005 + 4 * np.sqrt(printed * (1 - printed) / 1e4))
    assert not found["density"].sel(consensus_time=slice(0, 2)).any()  # the shortest time is t = 3
    assert found["density"].sum("consensus_time").values == pytest.approx([1, 1])


def test_outcomes_are_counts_of_runs(study: Study):
    (policy,) = study.each_policy(model="gpt-4o", pair="African/White")
    table = _ensembles.outcomes(study, policy)
    assert (table["count"].sum(("outcome", "consensus_time")) == table["runs"]).all()
    assert table["runs"].values.tolist() == [300, 300, 300, 300, 30]
    again = validation.simulate(policy, n_agents=24, runs=300, seed=study.seed).isel(n_agents=0)
    for word in ("African", "White"):
        count = table["count"].sel(n_agents=24, outcome=word).values
        times = again["consensus_round"].values[again["consensus_word"].values == word] - 1
        assert np.repeat(np.arange(len(count)), count).tolist() == sorted(times.tolist())
    assert _ensembles.by_winner(table)["word"].values.tolist() == ["African", "White"]


def test_numbers_are_kept_until_something_changes(study: Study, monkeypatch: pytest.MonkeyPatch):
    made = []

    def make(policies: xr.Dataset, runs: int, progress: bool) -> xr.Dataset:
        made.append(runs)
        return xr.Dataset({"value": ("x", [1.0, len(made)])})

    def again(study: Study = study, policies: xr.Dataset = study.policies, runs: int = 3) -> int:
        """The number of computations so far; asking twice computes once."""
        first = study.kept("one", make, policies, runs, progress=False)
        assert study.kept("one", make, policies, runs, progress=True).identical(first)
        return len(made)

    assert again() == 1
    assert again(runs=4) == 2
    assert again(dataclasses.replace(study, seed=2)) == 3
    assert again(policies=study.policies.assign(q=1 - study.policies["q"])) == 4
    assert again(policies=study.policies.assign_coords(model=["another"])) == 5
    monkeypatch.setattr(meanfield, "__version__", "0.0")
    assert again() == 6
    (study.folder / "one.nc").write_bytes(b"half a file")
    assert again() == 7


def test_what_is_not_at_hand_is_named(study: Study):
    with pytest.raises(NotAtHandError, match="no policy of phi_4 is in the data at hand"):
        study.each_policy(model="phi_4")
    with pytest.raises(NotAtHandError, match="no policy of gpt-4o for his/her is in the data at hand"):
        study.each_policy(model="gpt-4o", pair="his/her")


def test_the_strong_word_is_that_of_enough_runs():
    """One run of a large group that hardly ever agrees does not decide."""
    count = np.zeros((3, 3, 5), dtype=int)
    count[:, :, 3] = [[900, 100, 0], [990, 10, 0], [0, 1, 999]]
    coords = {"n_agents": [4, 10, 100], "outcome": ["A", "B", "no consensus"], "model": "m", "pair": "A/B"}
    coords["individual"] = ("outcome", [0.6, 0.4, np.nan])
    table = xr.Dataset({"count": (("n_agents", "outcome", "consensus_time"), count)}, coords)
    found = _ensembles.by_winner(table)
    assert found["word"].values.tolist() == ["A", "B"]
    assert _ensembles.by_winner(table.isel(n_agents=[2]))["word"].values.tolist() == ["B", "A"]
    assert np.isnan(found["mode"].sel(winner="weak")).values.tolist() == [False, True, True]


def test_policies_that_never_agree_are_named_and_the_rest_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_ensembles, "SIZES", SMALL)
    monkeypatch.setattr(_ensembles, "RUNS", 10)
    monkeypatch.setattr(_ensembles, "MANY_RUNS", 10)
    monkeypatch.setattr(_ensembles, "MAX_ROUNDS", 10)
    coin = meanfield.make_policy(np.full(21, 0.5), ["woman", "man"], model="google/gemma")
    study = Study(coin.expand_dims(("model", "pair")), tmp_path / "numbers")
    entries = _publish.publish(chosen(["004"], ["3", "S26", "S29"]), study, tmp_path, say=lambda line: None)
    assert [entry.reason for entry in entries[:2]] == ["no run of these policies reaches consensus"] * 2
    _publish.publish(chosen(["004"], ["S10"]), study, tmp_path, say=lambda line: None)
    assert "a tenth of the runs" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize("number", [2, 3])
def test_a_study_is_of_two_words_and_of_a_stack(number: int, tmp_path: Path):
    policy = meanfield.make_policy(
        np.full((5, 2), 0.5) if number == 2 else np.full((10, 3), 1 / 3), list("abc")[:number]
    )
    message = "policies have no dim model" if number == 2 else "policies have 3 words"
    policy = policy if number == 2 else policy.assign_coords(model="m").expand_dims(("model", "pair"))
    with pytest.raises(InputError, match=message):
        Study(policy, tmp_path)


FEW = ["3", "S9", "S10", "Table S1"]
MORE = ["1", "2", "3", "4", "S7", "S9", "S10", "S14", "S23", "S29", "Table S1"]


@pytest.mark.parametrize("only", [FEW, pytest.param(MORE, marks=pytest.mark.slow)])
def test_items_are_drawn_with_their_numbers_and_an_index(only, study: Study, monkeypatch, tmp_path: Path):
    out, found = tmp_path / "out", chosen(["004"], only)
    entries = _publish.publish(found, study, out, say=lambda line: None)
    assert {"S9"} <= {entry.item.number for entry in entries if entry.reason} <= {"1", "S7", "S9"}  # of Llama 3.1
    for entry in entries:
        for name in entry.files:
            assert (out / "004" / name).stat().st_size > 0
    page = (out / "index.html").read_text()
    for text in ("Fig. S10", "Table S1", "004/figure_3.png", "no policy of llama31_70B is in the data at hand"):
        assert text in page
    fraction = meanfield.load(out / "004" / "figure_3.nc")["fraction"]
    alone = study.policies["q"].isel(model=0, state=0, word=0)  # African is the strong word
    assert fraction.sel(n_agents=1).values == pytest.approx(alone.values)
    monkeypatch.setattr(validation, "simulate", None)  # nothing is computed again
    _publish.publish(chosen(["004"], ["3", "S9"]), study, out, say=lambda line: None)
    page = (out / "index.html").read_text()  # which keeps what was drawn before
    assert "Fig. S10" in page and "a tenth of the runs" in page


def test_the_command_takes_files_or_a_paper(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path):
    for arguments, message in {
        (): "results and --paper: expected files to draw, or a paper",
        ("--paper", "004", "--only", "S40"): "only = 'S40': expected one of 1, 2, 3, 4, S1",
        ("--paper", "004", "--policies", "smollm2", "--only", "S29"): "nothing can be drawn from policies = smollm2",
    }.items():
        monkeypatch.setattr(sys, "argv", ["meanfield", "figures", *arguments, "--out", str(tmp_path / "out")])
        with pytest.raises(SystemExit) as end:
            runpy.run_module("meanfield", run_name="__main__")
        assert end.value.code == 2 and message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("strong", "attractors", "expected"), [("A", 2, 0.3), ("B", 2, -0.3), ("mixed", 2, np.nan), ("A", 1, np.nan)]
)
def test_figure_3_has_the_law_of_the_strong_word(
    strong: str, attractors: int, expected: float, tmp_path: Path, monkeypatch
):
    """A law for the other word has the opposite sign; one for a mixed state, or one attractor, says nothing of ends."""
    policy = meanfield.make_policy(np.full(5, 0.5), ["A", "B"], model="m")
    study = Study(policy.expand_dims(("model", "pair")), tmp_path)
    law = xr.Dataset({"kappa": 0.3, "strong_word": strong, "attractors": attractors})
    monkeypatch.setattr(meanfield, "group_size_law", lambda *_, **__: law)
    one = xr.Dataset({"word": ("winner", ["A", "B"])}, {"model": "m", "pair": "A/B"})
    assert group_size._kappa(study, one) == pytest.approx(expected, nan_ok=True)
