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
PAIRS = ["African/White", "Mexican/American"]


@pytest.fixture
def study(published: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Two pairs of GPT-4o in small ensembles."""
    monkeypatch.setattr(_ensembles, "SIZES", SMALL)
    monkeypatch.setattr(_ensembles, "MANY_RUNS", 3000)
    monkeypatch.setattr(_ensembles, "RUNS", 300)
    return Study(published.sel(model=["gpt-4o"], pair=PAIRS), tmp_path / "numbers", quick=True)


@pytest.fixture
def nothing_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(validation, "simulate", refuse)


def test_every_item_of_004_is_registered_once():
    numbers = [item.number for item in items() if item.paper == "004"]
    expected = [*map(str, range(1, 5)), *(f"S{k}" for k in range(1, 32)), "Table S1", "Table S2"]
    assert numbers == expected


def test_an_item_is_drawn_or_has_a_reason():
    for item in items():
        assert (item.numbers is None) == (item.draw is None) == bool(item.reason), item.number


@pytest.mark.parametrize(
    ("papers", "only", "message"),
    [
        (["005"], [], "paper = '005': expected .*004"),
        (["004"], ["S40"], "only = 'S40': expected one of 1, 2, 3, 4, S1"),
    ],
)
def test_unknown_papers_and_items_are_refused(papers, only, message):
    with pytest.raises(InputError, match=message):
        chosen(papers, only)


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


def test_numbers_are_kept_and_found_again(study: Study, nothing_simulated, monkeypatch: pytest.MonkeyPatch):
    made = []

    def make(runs: int, progress: bool) -> xr.Dataset:
        made.append(runs)
        return xr.Dataset({"value": ("x", [1.0, len(made)])})

    first = study.kept("one", make, 3, progress=False)
    assert study.kept("one", make, 3, progress=True).identical(first) and made == [3]
    study.kept("one", make, 4, progress=False)  # other settings
    dataclasses.replace(study, seed=2).kept("one", make, 4, progress=False)
    assert len(made) == 3
    (study.folder / "one.nc").write_bytes(b"half a file")
    study.kept("one", make, 4, progress=False)
    assert len(made) == 4


def test_what_is_not_at_hand_is_named(study: Study):
    with pytest.raises(NotAtHandError, match="no policy of phi_4 is in the data at hand"):
        study.each_policy(model="phi_4")
    with pytest.raises(NotAtHandError, match="no policy of gpt-4o for his/her is in the data at hand"):
        study.each_policy(model="gpt-4o", pair="his/her")


@pytest.mark.parametrize("change", ["other policies", "another version", "other labels"])
def test_numbers_of_something_else_are_not_taken(study: Study, change: str, monkeypatch: pytest.MonkeyPatch):
    found = [study.kept("one", lambda _: xr.Dataset({"value": 1}), study.policies)]
    policies = study.policies
    if change == "other policies":
        policies = policies.assign(q=1 - policies["q"])
    elif change == "other labels":
        policies = policies.assign_coords(model=["another"])
    else:
        monkeypatch.setattr(meanfield, "__version__", "0.0")
    found.append(study.kept("one", lambda _: xr.Dataset({"value": 2}), policies))
    assert [int(one["value"]) for one in found] == [1, 2]


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


@pytest.fixture
def drawn(study: Study, tmp_path: Path) -> tuple[list, Path]:
    found = chosen(["004"], ["2", "3", "S9", "S10", "S23", "Table S1"])
    return _publish.publish(found, study, tmp_path / "out", say=lambda line: None), tmp_path / "out"


def test_items_are_drawn_with_their_numbers_and_an_index(drawn, study: Study, request: pytest.FixtureRequest):
    entries, out = drawn
    assert [entry.item.number for entry in entries if entry.reason] == ["S9"]
    for entry in entries:
        for name in entry.files:
            assert (out / "004" / name).stat().st_size > 0
    page = (out / "index.html").read_text()
    for text in ("Fig. S23", "Table S1", "004/figure_3.png", "no policy of llama31_70B is in the data at hand"):
        assert text in page
    fraction = meanfield.load(out / "004" / "figure_3.nc")["fraction"]
    alone = study.policies["q"].isel(model=0, state=0, word=0)  # African and Mexican are the strong words
    assert fraction.sel(n_agents=1).values == pytest.approx(alone.values)
    request.getfixturevalue("nothing_simulated")
    _publish.publish([entry.item for entry in entries[:2]], study, out, say=lambda line: None)
    page = (out / "index.html").read_text()  # which keeps what was drawn before
    assert "Fig. S23" in page and "a tenth of the runs" in page


def test_the_command_takes_files_or_a_paper(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path):
    for arguments, message in {
        (): "results and --paper: expected files to draw, or a paper",
        ("--paper", "004", "--only", "S40"): "only = 'S40': expected one of 1, 2",
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
