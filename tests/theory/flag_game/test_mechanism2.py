"""Mechanism 2: the probe's model against the equations label by label, its fit, and teams predicted from it.

Error budget: the stochastic tests are seeded, and each accepts a true statement with probability 1 - 1e-4 or more for
an arbitrary seed; there are fewer than 10 of them.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.optimize import minimize
from scipy.stats import binom, chi2

import meanfield
from meanfield import InputError
from policy_extraction.flag_game import StandIn, probe_memory_conflict
from theory.flag_game import crop_compatibility, flag_of, mechanism2, png, render_crop
from theory.flag_game.mechanism2 import memory_conflict_response, memory_conflict_table
from validation.flag_game import compare_composition, predict_composition, sample_crops

K = 28
SHARES = np.arange(9) / 8
COUNTS = [f"{name}_count" for name in ("private_evidence", "social_evidence")]
COUNTS += [f"other_{name}_count" for name in ("private_compatible", "incompatible")]
STRONG = "strong_private_evidence"
CELLS = [("weak", "compatible"), ("weak", "incompatible"), ("strong", "incompatible")]
TRUE = {"leak": 0.05, "compatible": 9.0, "similarity": 1.0}


def label_by_label(r, evidence, relation, uptake, rewrite, compatible, leak, similarity):
    """Eqs. 5, 6, 10, 11 with all 28 countries: 0 is the target, 1 the lure, and a whole number fits the crop."""
    p = np.full(K, leak)
    p[0] = 1
    p[1] = 1 if relation == "compatible" else leak
    others = 0 if evidence == "strong" else compatible - 1 - (relation == "compatible")
    p[2 : 2 + others] = 1
    p /= p.sum()
    C = np.diag(p) @ (similarity + (1 - similarity) * np.eye(K))
    message = (1 - r) * np.eye(K)[0] + r * np.eye(K)[1]
    heard = (1 - rewrite) * message + rewrite * C @ message / (C @ message).sum()
    x = ((1 - uptake) * p + uptake * heard) * p
    x /= x.sum()
    return p, C, np.array([x[0], x[1], x[2 : 2 + others].sum(), x[2 + others :].sum()])


# --- the model of the probe ---


@pytest.mark.parametrize(("evidence", "relation"), CELLS)
@pytest.mark.parametrize(("uptake", "rewrite", "similarity"), [(0.3, 0, 1), (0.8, 0.4, 0.2), (0.6, 0.9, 0)])
def test_four_groups_are_the_equations(evidence, relation, uptake, rewrite, similarity) -> None:
    parameters = {"uptake": uptake, "rewrite": rewrite, "compatible": 7, "leak": 0.1, "similarity": similarity}
    found = memory_conflict_response(SHARES, evidence=evidence, relation=relation, **parameters)
    expected = [label_by_label(r, evidence, relation, **parameters)[2] for r in SHARES]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-12)


def test_only_literal_uptake_matters_where_all_countries_are_alike() -> None:
    same = {"evidence": "weak", "relation": "incompatible", "leak": 0.03, "compatible": 8}
    first = memory_conflict_response(SHARES, uptake=0.9, rewrite=1 / 3, **same)
    second = memory_conflict_response(SHARES, uptake=0.6, rewrite=0.0, **same)
    np.testing.assert_allclose(first, second, rtol=1e-12)
    other_map = memory_conflict_response(SHARES, uptake=0.9, rewrite=1 / 3, similarity=0.2, **same)
    assert np.abs(other_map - second).max() > 0.05


# --- the fit ---


def table_of(gammas: dict[str, float], alpha: float, trials: int, rng: np.random.Generator | None) -> pd.DataFrame:
    """A weak probe of models with these γ, drawn, or with rounded expectations where there is no generator."""
    rows = []
    for model, gamma in gammas.items():
        for relation in ("compatible", "incompatible"):
            given = {"evidence": "weak", "relation": relation, "uptake": alpha, "rewrite": gamma, **TRUE}
            chances = memory_conflict_response(SHARES, **given)
            for k, chance in enumerate(chances):
                counts = np.round(trials * chance).astype(int) if rng is None else rng.multinomial(trials, chance)
                rows.append([model, 1, "weak_private_evidence", relation, 8 - k, k, counts.sum(), *counts])
    columns = ["model", "m", "private_evidence_strength", "social_evidence_relation"]
    columns += ["target_memory_entries", "social_memory_entries", "n_trials", *COUNTS]
    return pd.DataFrame(rows, columns=columns)


GAMMAS = {"a": 0.1, "b": 0.5}


def test_parameters_are_recovered_from_many_trials() -> None:
    fit = mechanism2.fit(table_of(GAMMAS, 0.9, 10**6, None), level=0.5).isel(evidence=0, bandwidth=0)
    np.testing.assert_allclose(fit["literal"], [0.81, 0.45], atol=1e-3)
    assert float(fit["leak"]) == pytest.approx(0.05, rel=5e-3)
    assert float(fit["compatible"]) == pytest.approx(9, rel=5e-3)
    # α is free between the largest literal uptake and 1, and γ with it.
    np.testing.assert_allclose(fit["uptake_interval"].sel(model="a"), [0.81, 1], atol=2e-3)
    np.testing.assert_allclose(fit["rewrite_interval"].sel(model="b"), [1 - 0.45 / 0.81, 1 - 0.45], atol=2e-3)
    assert fit["rewrite_interval"].sel(model="a", bound="low") == 0
    assert fit["deviance"] < 0.1 and fit["n_parameters"] == 5


@pytest.mark.slow
def test_the_number_of_compatible_countries_can_be_held() -> None:
    table = table_of(GAMMAS, 0.9, 10**4, None)
    held = mechanism2.fit(table, compatible=9, level=0.5).isel(evidence=0, bandwidth=0)
    assert float(held["compatible"]) == pytest.approx(9) and held["n_parameters"] == 4
    assert "compatible" not in held["at_bound"].item()
    np.testing.assert_allclose(held["literal"], [0.81, 0.45], atol=1e-3)
    other = mechanism2.fit(table, compatible=27, level=0.5).isel(evidence=0, bandwidth=0)
    assert other["deviance"] > held["deviance"] + 100 and float(other["compatible"]) == pytest.approx(27)
    assert held["aic_similarity_fitted"] == pytest.approx(float(held["aic"]) + 2, abs=0.1)
    told = "profile likelihood, given similarity = 1, not fitted, compatible = 9, not fitted"
    assert held.attrs["intervals"] == told


@pytest.mark.slow
def test_models_of_their_own_uptake_are_told_apart_by_literal_uptake_only() -> None:
    table = table_of(GAMMAS, 0.9, 10**5, None)
    fit = mechanism2.fit(table, shared_uptake=False, level=0.5).isel(evidence=0, bandwidth=0)
    np.testing.assert_allclose(fit["literal"], [0.81, 0.45], atol=3e-3)
    np.testing.assert_allclose(fit["rewrite_interval"], [[0, 0.19], [0, 0.55]], atol=5e-3)
    np.testing.assert_allclose(fit["uptake_interval"], [[0.81, 1], [0.45, 1]], atol=5e-3)


@pytest.mark.slow
def test_intervals_have_their_likelihood() -> None:
    """At the ends of an interval the best fit is worse by χ²/2, as found by a search of another kind."""
    table = table_of(GAMMAS, 0.9, 12, np.random.default_rng(1))
    counts = {key: rows[COUNTS].to_numpy() for key, rows in table.groupby(["model", "social_evidence_relation"])}

    def log_likelihood(literal: dict[str, float], leak: float, compatible: float) -> float:
        total = 0.0
        for (model, relation), answers in counts.items():
            condition = {"evidence": "weak", "relation": relation, "leak": leak, "compatible": compatible}
            chances = memory_conflict_response(SHARES, uptake=literal[model], rewrite=0, **condition)
            total += (answers * np.log(np.maximum(chances, 1e-12))).sum()
        return total

    def loss(theta: np.ndarray, held: float) -> float:
        """Over the literal uptake of a, the leak and n; that of b is held."""
        w, n = 1 / (1 + np.exp(-theta[0])), 2 + 25 / (1 + np.exp(-theta[2]))
        return -log_likelihood({"a": w, "b": held}, np.exp(min(theta[1], 0)), n)

    fit = mechanism2.fit(table, level=0.9).isel(evidence=0, bandwidth=0)
    for end in fit["literal_interval"].sel(model="b").values.tolist():
        best = minimize(loss, [0, -3, -1], (end,), method="Nelder-Mead", options={"maxiter": 500, "xatol": 1e-3})
        assert 2 * (float(fit["log_likelihood"]) + best.fun) == pytest.approx(chi2(1).ppf(0.9), abs=0.05)
    assert fit["log_likelihood"] >= log_likelihood({"a": 0.81, "b": 0.45}, 0.05, 9.0)


@pytest.mark.slow
def test_intervals_cover() -> None:
    """90 % intervals of literal uptake over 60 tables of the paper's size, for both models."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        fit = mechanism2.fit(table_of(GAMMAS, 0.9, 12, rng), level=0.9).isel(evidence=0, bandwidth=0)
        low, high = fit["literal_interval"].transpose("bound", "model").values
        covered += int(((low <= [0.81, 0.45]) & (high >= [0.81, 0.45])).sum())
    assert binom(120, 0.9).ppf(1e-4) <= covered <= binom(120, 0.9).isf(1e-4)


@pytest.fixture(scope="module")
def probe(data_folder: Path) -> Path:
    return data_folder / "flag_game" / "memory_conflict_probe.csv"


@pytest.fixture(scope="module", params=[pytest.param(n, marks=pytest.mark.slow) for n in (1, 3)])
def measured(probe: Path, request, tmp_path_factory) -> xr.Dataset:
    """The fit of one bandwidth; conditions share nothing but the models."""
    table, path = pd.read_csv(probe), tmp_path_factory.mktemp("probe") / "probe.csv"
    table[table["m"] == request.param].to_csv(path, index=False)
    return mechanism2.fit(path)


def test_the_published_probe(measured: xr.Dataset) -> None:
    """Where the crop leaves a choice GPT-4o takes reports literally, and GPT-5.4 a fifth less of them: [002] Fig. 6."""
    weak = measured.sel(evidence="weak")
    assert (weak["literal"].sel(model="gpt-4o") > 0.97).all() and (weak["literal"].sel(model="gpt-5.4") < 0.8).all()
    low, high = weak["rewrite_interval"].sel(model="gpt-5.4").transpose("bound", ...).values
    assert (low > 0.1).all() and (high < 0.4).all()
    assert (weak["rewrite_interval"].sel(model="gpt-4o", bound="high") < 0.05).all()
    # Where it leaves none the models are not told apart.
    strong = measured.sel(evidence="strong")["literal_interval"]
    assert (strong.sel(model="gpt-4o", bound="low") < strong.sel(model="gpt-5.4", bound="high")).all()
    assert measured["count"].sum() == 12 * 9 * 3 * 2
    total = measured["predicted"].sum("response", skipna=False)
    np.testing.assert_allclose(total.values[total.notnull()], 1, rtol=1e-12)
    assert measured["compatible"].isnull().sel(evidence="strong").all()


def test_what_the_published_intervals_hide_is_told(measured: xr.Dataset, probe: Path) -> None:
    """σ = 1 is rejected where evidence is strong, and n is at the end of its range where it is weak."""
    assert measured.attrs["intervals"] == "profile likelihood, given similarity = 1, not fitted"
    gain = measured["aic"] - measured["aic_similarity_fitted"]
    assert (gain.sel(evidence="strong") > 10).all()
    np.testing.assert_allclose(gain.sel(evidence="weak"), -2, atol=1e-3)
    assert all("compatible" in names.split(", ") for names in measured["at_bound"].sel(evidence="weak").values)
    assert (measured["at_bound"].sel(evidence="strong") == "").all()
    table = pd.read_csv(probe)
    rows = (table["private_evidence_strength"] == STRONG) & (table["m"] == measured["bandwidth"].item())
    strong = mechanism2.fit(table[rows], similarity=None)
    np.testing.assert_allclose(strong["aic"], measured["aic_similarity_fitted"].sel(evidence=["strong"]), atol=1e-4)
    assert strong.attrs["intervals"] == "profile likelihood"
    assert (strong["rewrite"] > 0.99).all() and (strong["similarity"] < 0.05).all()
    assert all("rewrite gpt-4o" in names for names in strong["at_bound"].values.ravel())


@pytest.mark.slow
def test_a_fit_that_is_wrong_is_told(probe: Path) -> None:
    """The published table, and the answers of other memories: r is reversed in the rows of one relation.

    Of nine tables drawn at a right fit none is worse with probability 0.1, so that the first p depends on the seed.
    """
    table = pd.read_csv(probe)
    right = table[(table["private_evidence_strength"] == "weak_private_evidence") & (table["m"] == 1)]
    wrong, columns = right.copy(), ["social_memory_entries", "target_memory_entries"]
    turned = wrong["social_evidence_relation"] == "compatible"
    wrong.loc[turned, columns] = wrong.loc[turned, columns[::-1]].to_numpy()
    accepted, refused = (mechanism2.fit(rows, bootstrap=9).squeeze() for rows in (right, wrong))
    assert accepted["deviance_p_value"] > 0.1 and accepted["deviance"] < 100
    assert refused["deviance_p_value"] == pytest.approx(0.1) and refused["deviance"] > 200


# --- probes that were played ---


@pytest.fixture(scope="module")
def played() -> tuple[list[xr.Dataset], list[xr.DataArray]]:
    """Two stand-ins, each shown a crop of France that other flags show too, and one that only France's does."""
    p = crop_compatibility("France", scale=1)
    number = (p > 0).sum("country").values
    rows = [p.isel(crop=int(np.flatnonzero(wanted)[0])) for wanted in ((number > 2) & (number < 20), number == 1)]
    flag, countries = flag_of("France"), p["country"].values.tolist()
    crops = [png(render_crop(flag, int(row["left"]), int(row["top"]))) for row in rows]
    known = dict(zip(crops, [row.values for row in rows], strict=True))
    inside = next(c for c in countries if rows[0].sel(country=c) > 0 and c != "France")
    outside = next(c for c in countries if rows[0].sel(country=c) == 0)
    probes, given = [], []
    for name, uptake in (("careful", 0.03), ("careless", 0.9)):
        agent = StandIn(known, countries, uptake=uptake, grounded=False, answers="sampled", name=name)
        for k, lure in ((0, inside), (0, outside), (1, inside), (1, outside)):
            options = {"target": "France", "lure": lure, "trials": 4, "seed": len(probes)}
            probes.append(probe_memory_conflict(agent, crops[k], countries, **options))
            given.append(rows[k].drop_vars(["left", "top"]))
    return probes, given


def test_played_probes_are_fitted(played) -> None:
    probes, rows = played
    table = memory_conflict_table(probes, rows)
    # Two lures that strong evidence rules out are one condition, of twice as many trials.
    assert len(table) == 2 * 3 * 9
    trials = table.groupby(["private_evidence_strength", "social_evidence_relation"])["n_trials"].unique().to_dict()
    weak = "weak_private_evidence"
    assert trials == {(weak, "compatible"): [4], (weak, "incompatible"): [4], (STRONG, "incompatible"): [8]}
    for answer, column in (("target_count", "private_evidence_count"), ("lure_count", "social_evidence_count")):
        assert table[column].sum() == sum(int(probe[answer].sum()) for probe in probes)
    fits = [row.sel(country=probe["answer"]).values > 0 for probe, row in zip(probes, rows, strict=True)]
    named = [(p["answer"] != "France").values & (p["answer"] != p.attrs["option_lure"]).values for p in probes]
    inside = sum(int((fit & other).sum()) for fit, other in zip(fits, named, strict=True))
    assert table["other_private_compatible_count"].sum() == inside > 0
    assert (table["target_memory_entries"] + table["social_memory_entries"] == 8).all()
    fit = mechanism2.fit(table[table["private_evidence_strength"] == weak])
    assert (fit["literal"].sel(model="careful") < fit["literal"].sel(model="careless")).all()


def test_probes_that_are_no_table_are_named(played) -> None:
    probes, rows = played
    lacking, impossible = rows[0].drop_sel(country="France"), rows[0].where(rows[0]["country"] != "France", 0.0)
    for call, message in (
        (lambda: mechanism2.fit(probes[0]), "probe is a Dataset: expected the table of memory_conflict_table"),
        (lambda: memory_conflict_table(probes[:2], rows[:1]), "compatibility has 1 rows: expected 2, one for each"),
        (lambda: memory_conflict_table(["answer"], rows[:1]), "it is a str"),
        (lambda: memory_conflict_table(probes[:1], [crop_compatibility("France")]), "a DataArray over country"),
        (lambda: memory_conflict_table(probes[:1], [lacking]), "compatibility lacks France"),
        (lambda: memory_conflict_table(probes[:1], [impossible]), "compatibility of France, the target, is 0"),
    ):
        with pytest.raises(InputError, match=message):
            call()


# --- teams ---


def test_crops_are_those_of_the_game() -> None:
    p, truth = sample_crops(3000, 8, seed=0)
    assert p.dims == ("run", "agent", "country") and p.sizes["country"] == K
    np.testing.assert_allclose(p.sum("country"), 1)
    own = np.stack([p.sel(run=k, country=truth[k]).values for k in range(3000)])
    assert own.min() > 0  # without noise the truth is never excluded
    counts = pd.Series(truth).value_counts()
    assert len(counts) == K and abs(counts - 3000 / K).max() < 4.9 * math.sqrt(3000 / K)


def test_composition_acts_through_the_rewrite_only() -> None:
    options = {"uptake": [0.0, 0.8], "n_agents": 3, "runs": 100, "seed": 1}
    alike = predict_composition({"a": 0.3, "b": 0.3}, **options)
    assert (alike["collective_accuracy"] == alike["collective_accuracy"].isel(number=0)).all()
    other = predict_composition({"a": 0.0, "b": 0.9}, **options)
    accuracy = other["collective_accuracy"]
    assert (accuracy.sel(uptake=0.0) == accuracy.sel(uptake=0.0, number=0)).all()
    assert len(np.unique(accuracy.sel(uptake=0.8))) == 4
    turned = predict_composition({"b": 0.9, "a": 0.0}, **options)["collective_accuracy"]
    assert (turned.sel(number=0) == accuracy.sel(number=3)).all()


TEAM = {"gpt-4o": 0.1, "gpt-5.4": 0.5}


def made_up(final: list[float], trials: int = 20) -> pd.DataFrame:
    rows = [[0.5, k, trials, 0.4, accuracy] for k, accuracy in enumerate(final)]
    return pd.DataFrame(
        rows, columns=["alpha", "gpt54_count", "n_trials", "initial_accuracy_mean", "final_accuracy_mean"]
    )


def test_comparison_by_hand(tmp_path: Path) -> None:
    prediction = predict_composition({"a": 0.0, "GPT-5.4": 0.5}, uptake=[0.5], n_agents=3, runs=50, seed=1)
    comparison = compare_composition(prediction, made_up([0.4, 0.9, 0.8, 0.5]))
    shuffled = made_up([0.4, 0.9, 0.8, 0.5]).iloc[[2, 0, 3, 1]]
    xr.testing.assert_identical(compare_composition(prediction, shuffled), comparison)
    assert comparison["measured_mixed_gain"] == pytest.approx(0.85 - 0.45)
    at = comparison.sel(uptake=0.5, number=1)
    assert float(at["measured_se"]) == pytest.approx(math.sqrt(19 / 22 * 3 / 22 / 20))
    difference = 0.9 - float(prediction["collective_accuracy"].sel(uptake=0.5, number=1))
    error = math.hypot(float(at["measured_se"]), float(prediction["collective_accuracy_se"].sel(uptake=0.5, number=1)))
    assert float(at["z"]) == pytest.approx(difference / error)
    xr.testing.assert_equal(meanfield.load(meanfield.save(comparison, tmp_path / "c.nc")), comparison)
    prediction["collective_accuracy"] = prediction["collective_accuracy"].where(prediction["number"] != 1)
    partly = compare_composition(prediction, made_up([0.4, 0.9, 0.8, 0.5]))
    assert partly["mixed_gain"].isnull().all() and partly["measured_mixed_gain"].notnull().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[t["gpt54_count"] != 2], r"gpt54_count = \[0, 1, 3\] at alpha = 0.5: expected all from 0"),
        (lambda t: t.assign(gpt54_count=t["gpt54_count"] + 1), "gpt54_count = 4 in row 3: expected a whole number"),
        (lambda t: t.assign(final_accuracy_mean=[0.5, 1.4, 0.5, 0.5]), "final_accuracy_mean = 1.4 in row 1"),
        (lambda t: t.assign(gpt54_count=[0, 1, "1", 3]), "one row for each"),
        (lambda t: t.assign(alpha=0.75), "expected all values of uptake in the table"),
        (lambda t: t[["alpha"]], "expected the columns"),
    ],
)
def test_measured_teams_that_cannot_be_are_refused(change, message: str) -> None:
    prediction = predict_composition(TEAM, uptake=[0.25, 0.5], n_agents=3, runs=5, seed=0)
    table = made_up([0.4, 0.9, 0.8, 0.5])
    compare_composition(prediction, table)
    with pytest.raises(InputError, match=message):
        compare_composition(prediction, change(table))


def test_the_published_teams(data_folder: Path) -> None:
    """Up to α = 0.75 the rewrites of the probe predict the accuracies; at α = 1 they are far too confident."""
    prediction = predict_composition(
        {"gpt-4o": 0.017, "gpt-5.4": 0.221}, uptake=[0, 0.25, 0.5, 0.75, 1], runs=200, seed=1
    )
    comparison = compare_composition(prediction, data_folder / "flag_game" / "broadcast_alpha_composition.csv")
    squares = (comparison["z"] ** 2).sum("number")
    assert (squares.sel(uptake=[0, 0.25, 0.5, 0.75]) < chi2(9).isf(1e-3)).all()
    assert squares.sel(uptake=1) > chi2(9).isf(1e-6)
    # More of GPT-5.4 is predicted to do worse throughout, which is not what was measured at α = 1.
    slope = [np.polyfit(range(9), comparison[name].sel(uptake=1), 1)[0] for name in ("collective_accuracy", "measured")]
    assert slope[0] < -0.01 and slope[1] > 0.01


# --- input ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"social_share": 1.2}, "social_share = 1.2: expected from 0 to 1"),
        ({"social_share": []}, r"social_share = \[\]: expected numbers"),
        ({"relation": "none"}, "relation = 'none'"),
        ({"leak": 0}, "leak = 0: expected a number above 0"),
        ({"compatible": 1.5}, "compatible = 1.5"),
        ({"evidence": "strong"}, "nothing but the target"),
    ],
)
def test_bad_probes_are_named(change: dict, message: str) -> None:
    arguments = {"social_share": 0.5, "evidence": "weak", "relation": "compatible", "uptake": 0.5, "rewrite": 0.5}
    arguments |= {"leak": 0.1, "compatible": 4, **change}
    with pytest.raises(InputError, match=message):
        memory_conflict_response(arguments.pop("social_share"), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="m"), "lacks the columns m"),
        (lambda t: t[:0], "probe has no rows"),
        (lambda t: t.assign(m=1.5), "m = 1.5 in row 0: expected whole numbers of at least 1"),
        (lambda t: t.assign(model=[*t["model"][:-1], None]), "model is missing in row 35"),
        (lambda t: t.assign(n_trials=11), "do not sum to its n_trials"),
        (lambda t: pd.concat([t, t]), "occurs twice"),
        (lambda t: pd.concat([t, t[4:5].assign(target_memory_entries=9)]), r"rows 4 and 36 differ .* = \[4, 9\] alone"),
        (lambda t: t.assign(social_evidence_relation="vague"), "social_evidence_relation = 'vague'"),
        (lambda t: t[:1].assign(target_memory_entries=0), "at least one memory entry"),
        (lambda t: t.assign(private_evidence_strength=STRONG), "relation = 'compatible' under strong evidence"),
        (lambda t: t[9:18].assign(private_evidence_strength=STRONG), "private_compatible_count above 0 under strong"),
        (lambda t: pd.concat([t, t[:1].assign(model="c", m=3)]), "lacks a model of"),
    ],
)
def test_bad_tables_are_named(change, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mechanism2.fit(change(table_of(GAMMAS, 0.9, 12, np.random.default_rng(0))))


def test_bad_options_are_named() -> None:
    table = table_of(GAMMAS, 0.9, 12, np.random.default_rng(0))
    turned = predict_composition(dict(reversed(TEAM.items())), uptake=[0.5], n_agents=3, runs=5, seed=0)
    for call, message in (
        (lambda: mechanism2.fit(table, compatible=28), "compatible = 28"),
        (lambda: predict_composition({"a": 0.1}, uptake=[0.5], seed=0), "expected two models"),
        (lambda: predict_composition(GAMMAS, uptake=[0.5, 0.5], seed=0), "uptake ="),
        (lambda: compare_composition(turned, made_up([0.4, 0.9, 0.8, 0.5])), "its second model is 'gpt-4o'"),
    ):
        with pytest.raises(InputError, match=message):
            call()
