"""Sharpness of runs and experiments: intervals hold what they claim, and few choices are no difference."""

from __future__ import annotations

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import kstest

import meanfield
from _ordered_populations import experiments, play
from meanfield import InputError
from meanfield.datasets import RealPopulations
from validation.populations import sharpness
from validation.populations._experiment import Experiment
from validation.populations._sharpness import SPREADS, sharpness_posterior

RUNS = 4  # of each of three experiments


def of_runs(log_beta: np.ndarray, random: np.random.Generator) -> RealPopulations:
    beta = np.exp(log_beta)
    return experiments(random, lambda run, step, agent, first: (beta[run], 0.0), RUNS)


def ranks(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ranks in the posterior of log β of runs and of experiments, all drawn from the prior.

    The third are those that forget to subtract the mean over choices from the truth.
    """
    random = np.random.default_rng(seed)
    between_runs, between = random.choice(SPREADS, 2)
    centres = random.normal(0, between, 3)
    truth = np.repeat(centres, RUNS) + random.normal(0, between_runs, 3 * RUNS)
    (one,) = Experiment.all_of(of_runs(truth, random))
    share = np.bincount(one.run_of) / len(one.run_of)
    order = one.alike()[::RUNS]
    true = np.append(truth, centres[np.argsort(order)])
    posterior = sharpness_posterior(one)
    return posterior.probability(true - share @ truth), posterior.probability(true + 0.2)


def test_sharper_runs_are_found():
    log_beta = np.array([0.5, 0, 0, 0, 0, -0.5, 0, 0, 0, 0, 0, 0])
    table = sharpness(of_runs(log_beta, np.random.default_rng(2)))
    assert table["of"].tolist() == ["experiment"] * 3 + ["run"] * 12
    runs = table[table["of"] == "run"].set_index("run")
    assert runs["sharpness"].idxmax() == 0 and runs["sharpness"].idxmin() == 5
    assert runs.loc[0, "low"] > 1 > runs.loc[5, "high"]
    assert (runs["low"] < runs["sharpness"]).all() and (runs["sharpness"] < runs["high"]).all()
    assert table["choices"][:3].sum() == table["choices"][3:].sum()
    # The mean of log β over choices is 0.
    assert np.average(np.log(runs["sharpness"]), weights=runs["choices"]) == pytest.approx(0, abs=0.02)


def test_runs_of_one_policy_are_drawn_together():
    runs = sharpness(experiments(np.random.default_rng(3), runs=RUNS)).query("of == 'run'")
    assert runs["sharpness"].between(0.85, 1.18).all()
    assert ((runs["low"] < 1) & (runs["high"] > 1)).all()


def test_intervals_widen_with_their_level():
    real = play(np.random.default_rng(0), 3)
    narrow, wide = sharpness(real, level=0.5), sharpness(real)
    assert (wide["high"] - wide["low"] > narrow["high"] - narrow["low"]).all()
    assert narrow.attrs["level"] == 0.5


def test_one_run_is_as_sharp_as_itself():
    table = sharpness(play(np.random.default_rng(0), 1))
    assert table["sharpness"].tolist() == pytest.approx([1, 1], abs=0.05)
    assert table.loc[1, ["low", "high"]].tolist() == pytest.approx([1, 1], abs=1e-4)


def test_agents_without_choice_tell_nothing():
    table = sharpness(play(np.random.default_rng(0), 3, lambda *_: (1e9, 0.0), initial="B"))
    assert table["sharpness"].between(0.9, 1.1).all() and (table["low"] < 1).all() and (table["high"] > 1).all()


def test_bad_arguments():
    real = play(np.random.default_rng(0), 1)
    long = real._replace(runs=real.runs.assign(memory_length=12))
    for wrong, level, told in ((real, 0.0, "level = 0"), (long, 0.95, "memory states")):
        with pytest.raises(InputError, match=told):
            sharpness(wrong, level=level)


def test_sharpness_is_a_forest_of_intervals():
    table = sharpness(experiments(np.random.default_rng(1), runs=2))
    axes = meanfield.plot(table)
    points = np.concatenate([line.get_xydata() for line in axes.lines if line.get_marker() not in ("None", None, "")])
    np.testing.assert_allclose(np.sort(points[:, 0]), np.sort(table["sharpness"]))
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "sharpness β with 95 % interval"
    plt.close("all")


@pytest.mark.slow
def test_intervals_are_calibrated():
    """200 data sets with spreads and sharpness from the prior; 3 tests at 1e-3. The control must fail them."""
    found, control = (np.array(one) for one in zip(*(ranks(seed) for seed in range(200)), strict=True))
    runs, all_experiments = found[:, : 3 * RUNS], found[:, 3 * RUNS :]
    # Ranks of one data set are not independent of each other.
    for number in (0, RUNS, 2 * RUNS):
        assert kstest(runs[:, number], "uniform").pvalue > 1e-3
    assert np.mean((runs < 0.025) | (runs > 0.975)) == pytest.approx(0.05, abs=0.015)
    assert np.mean((all_experiments < 0.025) | (all_experiments > 0.975)) == pytest.approx(0.05, abs=0.035)
    assert kstest(control[:, 0], "uniform").pvalue < 1e-6
