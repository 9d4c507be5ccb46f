"""Items of [000] and [001]: numbers that the papers print, from the runs and answers that they were computed from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from meanfield import InputError
from meanfield.datasets import RealPopulations
from paper_figs._study import NotAtHandError, Study
from paper_figs.paper_000 import _real, bias, committed, emergence
from paper_figs.table_s1 import equals_printed
from validation.populations import winners


def one_run(said: list[tuple[str, str]], **columns) -> tuple[dict, pd.DataFrame]:
    """A run of two agents: its row, and its interactions."""
    success = float(np.mean([one == other for one, other in said[-6:]]))
    row = {"model": "llama3", "options": "Q M", "memory_length": 5, "n_agents": 2, "n_committed": 0}
    row |= {"experiment": "from_empty", "initial_consensus": "", "committed_word": "", "converged": False}
    row |= {"success_last_3N": success, "majority_word_last_3N": said[-1][0], "majority_share_last_3N": 1.0}
    row |= {"interactions": len(said)}
    events = {"step": range(len(said)), "agent": 1, "partner": 2, "said": [one for one, _ in said]}
    return row | columns, pd.DataFrame(events | {"heard": [other for _, other in said]})


def made_up(*runs: tuple[dict, pd.DataFrame], answers: pd.DataFrame | None = None) -> RealPopulations:
    table = pd.DataFrame([row | {"run": number} for number, (row, _) in enumerate(runs)])
    events = pd.concat([one.assign(run=number) for number, (_, one) in enumerate(runs)])
    return RealPopulations(pd.DataFrame(), table, events, answers)


@pytest.fixture
def study(tmp_path) -> Study:
    return Study(None, tmp_path, quick=True)


def test_rounds_are_n_interactions_and_a_run_that_agreed_keeps_its_end():
    agreed = one_run([("Q", "M"), ("M", "M"), *[("M", "M")] * 6])
    cut = one_run([("Q", "M")] * 5)
    real = made_up(agreed, cut)
    success = _real.by_round(real, real.runs, 5)
    np.testing.assert_array_equal(success, [[0.5, 1, 1, 1, 1], [0, 0, np.nan, np.nan, np.nan]])
    shares = _real.by_round(real, real.runs, 5, ["Q", "M"])
    np.testing.assert_array_equal(shares[0, :2], [[0.25, 0.75], [0, 1]])


def test_a_run_that_the_file_calls_converged_has_agreed():
    said = [("Q", "M")] * 30 + [("M", "M")] * 72
    (curve,) = _real.by_round(real := made_up(one_run(said, n_agents=60, converged=True)), real.runs, 3)
    assert curve.tolist() == [0.5, 1, 1]
    table = winners(real.runs.assign(success_last_3N=0.7))
    assert table[["word", "wins", "undecided"]].values.tolist() == [["M", 1, 0]]


def test_answers_of_two_words_are_told_from_those_of_ten():
    rows = [("few", "M", 3), ("few", "Q", 5), *(("many", word, 2) for word in _real.TEN.split())]
    answers = pd.DataFrame([{"model": "m", "file": f, "state": "", "choice": c, "count": n} for f, c, n in rows])
    real = made_up(one_run([("Q", "Q")]), answers=answers)
    assert {*bias.asked_alone(real, "m", "Q M")["file"]} == {"few"}
    assert {*bias.asked_alone(real, "m", _real.TEN)["file"]} == {"many"}
    with pytest.raises(NotAtHandError, match="of single agents of other with Q M are at hand"):
        bias.asked_alone(real, "other", "Q M")


@pytest.mark.parametrize(
    ("flipped", "expected"),
    [([0, 0, 1, 1], 2), ([0, 0.6, 0.3, 0.5], 3), ([1, 1], 0), ([0, 0.4], np.nan), ([0, np.nan, np.nan, 0.5], 3)],
)
def test_the_critical_number_is_that_from_which_on_half_of_the_runs_flip(flipped, expected):
    one = xr.DataArray(np.array(flipped, float), {"n_committed": np.arange(len(flipped))}, "n_committed")
    assert committed.smallest(one) == pytest.approx(expected, nan_ok=True)


def test_biased_minimal_naming_games(study, monkeypatch):
    """Mirrored biases have mirrored shares; at ½ neither word is preferred; at 1 all games end at the word."""
    monkeypatch.setattr(emergence, "BIASES", np.array([0.0, 0.3, 0.5, 0.7, 1.0]))
    found = emergence.biased_games(study)  # 1,000 games
    share = found["share"].values
    assert np.abs(share + share[::-1] - 1).max() < 4.5 * np.sqrt(2 * 0.25 / 1000)
    assert (np.diff(found["won"].values) > 0).all()
    assert found["won"].values[[0, -1]] == pytest.approx([0, 1], abs=0.02)
    np.testing.assert_allclose(found["share"].sel(round=0), found["p"])  # all are empty


def test_without_runs_items_say_so(study, monkeypatch, tmp_path):
    monkeypatch.setenv("MEANFIELD_DATA", str(tmp_path / "none"))

    def refuse(*_: object) -> None:
        raise InputError("no network")

    monkeypatch.setattr("meanfield.datasets._ai_norms.download", refuse)
    with pytest.raises(NotAtHandError, match="no network"):
        emergence.emergence(study)


@pytest.fixture(scope="module")
def published(data_folder) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEANFIELD_DATA", str(data_folder))
        yield


@pytest.mark.slow
def test_biases_are_those_printed(study, published):
    found = bias.biases(study)
    for model in ("llama3", "llama31"):
        one, (strong, weak, p_value, *wins) = found.sel(model=model), bias.COUNTS.loc[model]
        asked = int(one["asked"])
        assert (round(float(one["individual"]) * asked), asked) == (strong, strong + weak)
        assert equals_printed(float(one["p_value"]), p_value)
        assert [int(one["strong_wins"]), int(one["weak_wins"])] == wins
    assert int(found["wins_of_ten"].sel(model="llama3").sum()) == 40
    table = bias.origin_table(bias.origin(study))
    for (interaction, memory), row in table.iterrows():
        printed, resampled = (bias.AGGREGATED[interaction], "") if memory == "all" else bias.P_STRONG[memory]
        assert equals_printed(row["P(M)"], printed), (interaction, memory)
        if resampled:  # 10,000 resamples of theirs, and ties
            assert row["P bootstrap"] == pytest.approx(float(resampled), abs=0.016)
    alphabet = bias.alphabet(study)
    assert int(alphabet["individual"].sum()) == 480 and int(alphabet["collective"].sel(word="A")) == 20
    ten = bias.ten_words(study)
    assert ten["count"].sum("word").values.tolist() == [15_000, 10_000] and (ten["p_value"] < 0.001).all()


@pytest.mark.slow
def test_runs_are_those_printed(study, published):
    pools = emergence.pools(dataclasses.replace(study, quick=True))
    assert pools["strong_word"].values.tolist() == ["M", "F", "X", "Alice"]
    assert pools["wins"].values.tolist() == [40, 24, 40, 40]  # [000] Fig. SI4
    found = committed.minorities(study)
    for case in range(found.sizes["case"]):
        one = found.isel(case=case)
        printed = committed.PRINTED[one["model"].item()][one["old"].item() != committed.STRONG]
        # The paper has 0 where it tried no minority: populations leave the word by themselves.
        assert committed.smallest(one["flipped"]) == max(printed, 1)
    questions = bias.comprehension(study)
    assert (questions["accuracy"] > 0.8).all()  # [000] SI 6.4.4
