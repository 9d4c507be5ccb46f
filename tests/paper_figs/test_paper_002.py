"""Items of [002]: printed numbers against the tables, simulated games against their rules, and what is drawn."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import InputError
from paper_figs import _publish
from paper_figs._item import chosen
from paper_figs._study import Study, part, together
from paper_figs.paper_002 import mechanism2, population
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS
from validation.flag_game import endpoints, simulate

REWRITES = {"gpt-4o": 0.02, "gpt-5.4": 0.22}  # as fitted, which takes seconds


@pytest.fixture
def study(data_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """The published tables, and a few runs."""
    monkeypatch.setenv("MEANFIELD_DATA", str(data_folder))
    monkeypatch.setattr(mechanism2, "TRIALS", 200)
    monkeypatch.setattr(mechanism2, "rewrites", lambda study: REWRITES)
    monkeypatch.setattr(population, "RUNS", 200)
    monkeypatch.setattr(population, "SEEDS", 210)
    return Study(None, folder, quick=True)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


# --- tables against the text ---


def test_protocols_are_ordered_and_managers_have_the_printed_accuracies(study: Study):
    found = mechanism2.by_protocol(study)
    accuracy = found["collective"].values
    assert (np.diff(accuracy) <= 0).all() and len(accuracy) == 12
    by_name = {
        (str(one["protocol"].values), str(one["condition"].values)): float(one["collective"])
        for one in (found.isel(condition=k) for k in range(12))
    }
    managed = {name: value for (protocol, name), value in by_name.items() if protocol == "org"}
    strong, weak = ([v for name, v in managed.items() if name.startswith(who)] for who in ("GPT-5.4", "GPT-4o"))
    assert (round(min(strong), 2), round(max(strong), 2)) == (0.57, 0.60) and sorted(accuracy)[-3:] == sorted(strong)
    assert (round(min(weak), 2), round(max(weak), 2)) == (0.46, 0.48)
    assert 0 < by_name["pairwise", "GPT-4o"] - by_name["pairwise", "GPT-5.4"] < 0.1 * found["error"].max()
    assert by_name["broadcast", "GPT-5.4"] - by_name["broadcast", "GPT-4o"] == pytest.approx(0.101, abs=5e-4)
    assert (found["trials"] == 63).all(), "the paper has 60"


def test_accuracy_peaks_at_16_agents_and_failures_are_counted(study: Study):
    sweep = part(population.sweep_and_seed(study), "sweep")
    accuracy = sweep["collective_accuracy"]
    assert int(accuracy.idxmax("n_agents")) == 16 and float(accuracy.max()) == pytest.approx(0.577, abs=5e-4)
    assert (sweep["seeds"] == 40).all() and sweep["endpoint_fraction"].sum("endpoint").values == pytest.approx(1)
    polarized = sweep["endpoint_fraction"].sel(endpoint="polarization").values
    np.testing.assert_allclose(polarized, [0.275, 0.5, 0.425, 0.55, 0.525, 0.6])
    wrong = sweep["endpoint_fraction"].sel(endpoint="wrong_consensus").values
    assert wrong[0] == 0.3 and wrong[1:].max() < 0.1 and (polarized[1:] > wrong[1:]).all()


@pytest.mark.slow
def test_the_broadcast_table_does_not_rise_to_the_printed_accuracy(study: Study):
    found = mechanism2.teams(study)
    mean = found["measured"].mean("number").values
    np.testing.assert_allclose(mean, [0.543, 0.672, 0.725, 0.800, 0.638], atol=5e-4)
    assert round(mean[0], 2) == 0.54 and mean.max() < 0.805, "the paper: from 0.54 to 0.81"
    best = found["measured"].argmax("number").values
    assert ((best > 0) & (best < 8)).all(), "mixed teams"
    gain = found["measured_mixed_gain"]
    assert ((gain > 0) & (gain < found["measured_mixed_gain_se"])).all()
    np.testing.assert_allclose(found["trials"].isel(number=0), [10, 10, 10, 10, 35])
    even = np.abs(found["mixed_gain"]) < 4 * found["mixed_gain_se"]
    assert even.all(), "the prediction is even in the number of the second model"


def test_both_sweeps_of_pairs_are_best_at_the_printed_uptake(study: Study):
    found = mechanism2.pairs(study)
    measured = part(found, "measured")
    best = measured["final_mean"].max("alpha").sel(source=list(mechanism2.LOOKS)).values
    np.testing.assert_allclose(best, [0.801, 0.643], atol=5e-4)
    assert (measured["final_mean"].idxmax("alpha") == 0.75).all()
    predicted = part(found, "predicted")["collective_accuracy"].values
    assert (np.diff(predicted) > -0.01).all() and predicted[-1] > 0.9, "no optimum inside"


# --- simulated games ---


def test_agents_keep_their_crops_in_larger_groups():
    (few, rows), (many, larger) = (population.crops_of(5, n, seed=3) for n in (4, 64))
    np.testing.assert_array_equal(few, many[:, :4])
    np.testing.assert_array_equal(rows, larger[:, :4])
    assert len(np.unique(many)) > 100


def test_the_replayed_seed_ends_as_it_is_said(study: Study):
    seed = part(population.sweep_and_seed(study), "seed")
    assert (int(part(seed, "ends")["first"]), int(part(seed, "ends")["alike"])) == (206, 1)
    ends = {}
    for n in population.SIZES:
        one = part(seed, f"N_{n}")
        assert one.sizes["agent"] == n and one["final_report"].shape == (1, n)
        ends[n] = str(endpoints(one["final_report"], "France")["endpoint"].item())
    assert ends == {4: "polarization", 16: "correct_consensus", 64: "polarization"}
    assert (part(seed, "N_64")["final_report"] == "Peru").mean() >= 0.25


def test_lean_of_large_groups_moves_on_after_the_end(study: Study, monkeypatch: pytest.MonkeyPatch):
    """Four standard errors of 200 runs; polarization passes with time, which a control without more time denies."""
    monkeypatch.setattr(population, "RUNS", 2000)
    found = population.lean(study)
    paths = np.abs(part(found, "mechanism1")["m_path"].sel(n_agents=64))
    for time, expected in ((16, 0.49), (64, 0.74)):
        one = paths.sel(round=time)
        assert abs(float(one.mean()) - expected) < 4 * float(one.std()) / np.sqrt(200)
    solutions = part(found, "m_64")["m"].values
    np.testing.assert_allclose(solutions[[0, -1]], [-0.91, 0.86], atol=6e-3)
    fraction = float(part(found, "mechanism1")["endpoint_fraction"].sel(n_agents=64, endpoint="polarization"))
    paper = simulate(n_agents=64, runs=200, seed=1)["endpoint_fraction"].sel(endpoint="polarization").item()
    assert abs(fraction - 0.10) < 0.09 and abs(paper - 0.47) < 0.15
    assert part(part(found, "gossip"), "N_16")["m_path"].notnull().all(), "gossip is played to its end"
    assert (part(found, "m_gossip")["m"] > 0.95).all()


# --- drawings ---


def made_up_fit() -> xr.Dataset:
    """The variables of a fit of Mechanism 1 that are drawn."""
    by_end = ("n_agents", "endpoint")
    columns = {name: (by_end, np.full((2, 4), 0.25)) for name in ("measured", "fitted", "paper")}
    by_size = ("measured_accuracy", "fitted_accuracy", "paper_accuracy")
    columns |= {name: (("n_agents",), np.array([0.4, 0.5])) for name in by_size}
    columns |= {"seeds": (("n_agents",), np.array([40, 40])), "measured_accuracy_error": (("n_agents",), np.ones(2))}
    coords = {"n_agents": [4, 128], "endpoint": list(ENDPOINTS)}
    return xr.Dataset(columns, coords, {"kind": "mechanism1_fit"})


def test_figure_3_draws_answers_at_their_crops(study: Study):
    found = population.sweep_and_seed(study)
    _, failures, *columns = population.draw_sweep_and_seed(found).axes
    assert failures.get_legend_handles_labels()[1] == ["wrong consensus", "polarization", "fragmentation"]
    for n, (flag, shares) in zip(population.SIZES, zip(columns[::2], columns[1::2], strict=True), strict=True):
        one = part(part(found, "seed"), f"N_{n}")
        middles = np.column_stack([one["left"] + 3, one["top"] + 2])
        np.testing.assert_allclose(flag.collections[0].get_offsets(), middles)
        lines = {line.get_label(): line for line in shares.lines}
        true = (one["report"] == "France").mean("agent").values[0]
        np.testing.assert_allclose(lines["France"].get_xydata(), np.column_stack([range(17), true]))
        assert lines["France"].get_color() == population.COUNTRIES[0]


def test_figure_5_has_both_observers_and_the_fit(study: Study, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(population, "mechanism1_fit", lambda study: made_up_fit())
    found = population.fields(study)
    titles = [axis.get_title() for axis in population.draw_fields(found).axes]
    assert [title[:3] for title in titles if title] == ["(a)", "(b)", "(c)", "(a)", "(b)", "(d)"]
    ideal, measured = part(found, "ideal"), part(found, "measured")
    assert float(ideal["surely_truth"]) == pytest.approx(8 / 19), "blue is seen from the first eight columns"
    peaks = measured["probability"].values[[0, -1]]
    assert (peaks > 0.14).all() and measured.attrs["rival"] == "Austria", "mass at both ends, as in the paper"


@pytest.mark.slow
def test_items_are_published_with_their_numbers(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All of them, with the fit of Mechanism 2."""
    monkeypatch.setattr(population, "mechanism1_fit", lambda study: made_up_fit())
    entries = _publish.publish(chosen(["002"], []), study, tmp_path / "out", say=lambda line: None)
    assert [entry.item.number for entry in entries if not entry.files] == ["7", "Table 1"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert "[002] Eq. 8. Lean" in page and "[002] Fig. 9. " in page and "[002] Table 1. " in page
    kept = part(meanfield.load(tmp_path / "out" / "002" / "eq_8.nc"), "mechanism1")
    assert kept.attrs["option_parameters"].endswith("interactions_per_agent=64)")
    assert kept["m_path"].shape == (3, 20, 65) and APPENDIX_E.interactions_per_agent == population.END


def test_without_the_tables_items_say_so(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def nothing(table: str) -> None:
        raise InputError(f"{table} is not here")

    monkeypatch.setattr(meanfield.datasets, "flag_game", nothing)
    entries = _publish.publish(chosen(["002"], ["2", "6"]), study, tmp_path, say=lambda line: None)
    assert [entry.reason for entry in entries] == ["protocols_n8 is not here", "memory_conflict_probe is not here"]


def test_parts_are_what_they_were():
    one = simulate(n_agents=[4, 8], runs=3, seed=1)
    other = xr.Dataset({"N": ("run", [1, 2])}, attrs={"kind": "x"})
    both = together(one=one, on=other)
    for name, before in (("one", one), ("on", other)):
        after = part(both, name)
        assert after.drop_attrs().identical(before.drop_attrs()) and after.attrs == before.attrs
    assert not part(both, "absent").variables
