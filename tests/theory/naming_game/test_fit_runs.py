"""Parameters of a rule are recovered from what populations say, with intervals that cover them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

import meanfield
import validation
from _policies import random_policy
from theory.naming_game import fit_runs, rule_policy, summary
from theory.naming_game._fit_runs import Group, Likelihood
from theory.naming_game._rules import RULES

pytestmark = pytest.mark.usefixtures("unchecked_types")
WORDS = ["A", "B"]
RANGES = {"empty": (-1, 1), "bias": (-0.5, 0.5), "strength": (1, 2), "recency": (0.4, 0.9)}
IMITATION = {"empty": 0.3, "bias": 0.2, "strength": 1.5}


def played(rule, parameters, memory_length, seed=1, n_agents=50, runs=60, rounds=12):
    policy = rule_policy(rule, parameters, WORDS, memory_length=memory_length)
    recorded = {"max_rounds": rounds, "record_rounds": rounds, "record": ["said"]}
    return validation.simulate(policy, n_agents=n_agents, runs=runs, seed=seed, **recorded)


@pytest.mark.slow
@pytest.mark.parametrize("rule, memory_length, sets", [("imitation", 1, 60), ("majority", 2, 30)])
def test_intervals_cover(rule, memory_length, sets):
    """Intervals of 95 % cover; it fails by chance once in 10,000. The control are intervals of a third of the width."""
    seed, covered, narrow = 700, [], []
    random = np.random.default_rng(seed)
    for number in range(sets):
        parameters = {name: random.uniform(*RANGES[name]) for name in RULES[rule].parameters}
        fit = fit_runs(played(rule, parameters, memory_length, seed + number), rule=rule, memory_length=memory_length)
        (low, high), values = fit["interval"].values.T, np.array([*parameters.values()])
        best = fit["estimate"].values
        assert (low <= best).all() and (best <= high).all()
        covered += [*((low <= values) & (values <= high))]
        narrow += [*((best - (best - low) / 3 <= values) & (values <= best + (high - best) / 3))]
    least, most = binom.ppf([5e-5, 1 - 5e-5], len(covered), 0.95)
    assert sum(narrow) < least <= sum(covered) <= most


def test_moments_are_those_of_simulations():
    """Means within five standard errors, covariances within 8 %, six standard errors of variances."""
    likelihood = Likelihood([Group(50, np.empty((0, 12)))], "imitation", 1)
    mean, covariance, *_ = likelihood.predicted(np.array([*IMITATION.values()]))[0]
    mean, covariance = mean[:6], 50 * covariance[:6, :6]
    shares = played("imitation", IMITATION, 1, runs=12_000, rounds=6)["said"].sel(word="A").values[0, :, 1:]
    error = shares.std(0) / np.sqrt(len(shares))
    assert (np.abs(shares.mean(0) - mean) < 5 * error).all()
    size = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    off = np.abs(50 * np.cov(shares.T) - covariance)
    assert (off < 0.08 * size).all()
    independent = np.diag(mean * (1 - mean)) / 2  # the control: 2N words that know nothing of each other
    assert (np.abs(covariance - independent) > 0.08 * size).any(axis=1).all()


def test_another_rule_is_told_by_its_residuals():
    """The rule that was played is rejected at 0.001 once in 1,000 seeds."""
    other = {"empty": 0.3, "bias": 0.2, "stay": 2.0, "shift": 0.5}
    assert fit_runs(played("imitation", IMITATION, 1), rule="imitation", memory_length=1)["p_value"] > 1e-3
    fit = fit_runs(played("win_stay_lose_shift", other, 1, runs=120), rule="imitation", memory_length=1)
    assert fit["p_value"] < 1e-3


def test_labels_count_and_sizes_are_fitted_together():
    runs = played("imitation", IMITATION, 1, n_agents=[30, 100])
    fit = fit_runs(runs, rule="imitation", memory_length=1)
    turned = runs["said"].isel(word=[1, 0], n_agents=[1, 0], round=slice(None, None, -1)).transpose("word", ...)
    again = fit_runs(turned, rule="imitation", memory_length=1)
    xr.testing.assert_allclose(again.sortby("n_agents"), fit, rtol=1e-3)
    each = [fit_runs(runs.sel(n_agents=n), rule="imitation", memory_length=1) for n in (30, 100)]
    array = runs["said"].sel(word="A", n_agents=30).values[:, 1:]
    same = fit_runs(array, rule="imitation", memory_length=1, n_agents=30)
    np.testing.assert_allclose(same["interval"], each[0]["interval"])
    widths = [np.diff(one["interval"])[:, 0] for one in (fit, *each)]
    assert (widths[0] < widths[1]).all() and (widths[0] < widths[2]).all()


@pytest.mark.slow
def test_rounds_are_used_until_runs_spread():
    """Two conventions: runs divide between them, and shares of late rounds have two peaks."""
    parameters = {"empty": 0.0, "bias": 0.0, "strength": 6.0, "recency": 0.7}
    runs = played("majority", parameters, 2, n_agents=30, rounds=16)
    wide = np.nonzero(runs["said"].sel(word="A").values[0, :, 1:].std(0) > 0.15)[0][0]
    fit = fit_runs(runs, rule="imitation", memory_length=1)
    assert 2 <= wide < 12 and fit.sizes["round"] == wide
    assert fit_runs(runs, rule="imitation", memory_length=1, rounds=12).sizes["round"] == 12


def test_what_runs_cannot_tell_is_not_determined():
    """With memories of one interaction recency weighs nothing, so the likelihood does not fall with it."""
    fit = fit_runs(played("imitation", IMITATION, 1), rule="majority", memory_length=1)
    assert summary(fit)["status"].to_dict() == dict.fromkeys(IMITATION, "determined") | {"recency": "not determined"}
    np.testing.assert_array_equal(fit["interval"].sel(parameter="recency"), [0, np.inf])
    known = fit_runs(played("imitation", IMITATION, 1), rule="imitation", memory_length=1)
    np.testing.assert_allclose(fit["interval"].sel(parameter=[*IMITATION]), known["interval"], atol=0.02)


def test_wrong_input_is_refused_in_one_message():
    said = np.full((5, 4), 0.5)
    with pytest.raises(meanfield.InputError) as told:
        fit_runs(said, rule="vote", memory_length=4, n_agents=1, level=1.5, seed=-1)
    parts = ("n_agents = 1", "rule = 'vote': expected one of constant", "memory_length = 4", "level = 1.5", "seed = -1")
    assert str(told.value).count("; ") == 4
    for part in parts:
        assert part in str(told.value)
    labelled = xr.DataArray(said, dims=("run", "round"))
    simulated = labelled.to_dataset(name="said")
    wrong = {
        "expected the number of agents": {"said": said, "n_agents": None},
        "None, as said has it": {"said": labelled.assign_coords(n_agents=20)},
        "Dataset without said": {"said": random_policy(1)},
        "shares from 0 to 1 of at least 2 runs": {"said": said + 1},
        "expected run and round": {"said": said[0]},
        "of at least 2 runs in 2 rounds": {"said": said[:1]},
        "rounds = 5: expected a whole number from 2 to 4": {"said": said, "rounds": 5},
        "expected all from 1 on": {"said": labelled.assign_coords(round=[2, 3, 4, 5])},
        "expected larger groups": {"said": np.tile([[0.0], [1.0]], (4, 6))},
        "said has dtype <U1": {"said": np.array([["A"]])},
        "said has dtype object": {"said": labelled.astype(object)},
        "round of said has dtype": {"said": labelled.assign_coords(round=[*"abcd"])},
        "said = array.*nan": {"said": labelled.where(labelled.run > 0)},
        "in 2 rounds": {"said": labelled.expand_dims(n_agents=[]), "n_agents": None},
        "n_agents = 20.0: expected a whole number": {"said": labelled, "n_agents": 20.0},
        "simulated with .*'A:5'": {"said": simulated.assign_attrs(option_committed="A:5")},
        "simulated with .*'B'": {"said": simulated.assign_attrs(option_initial="B")},
    }
    for message, arguments in wrong.items():
        with pytest.raises(meanfield.InputError, match=message):
            fit_runs(**({"rule": "imitation", "memory_length": 1, "n_agents": 20} | arguments))
