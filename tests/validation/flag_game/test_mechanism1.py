"""Mechanism 1 agent by agent, against exact limits and a plain version in Python.

Error budget: every test of a distribution is χ² at 1e-4 with a fixed seed; fewer than 15 of them fail falsely for less
than one choice of seeds in 600. Each has a control that must fail.
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2_contingency, chisquare, norm

from meanfield import InputError
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS, Mechanism1, copying_law
from theory.flag_game.mechanism1._endpoints import moments_of_laws
from theory.toolbox import endpoints_of_votes, played
from validation import flag_game

SIZES = (4, 8, 16, 32, 64, 128)
LEVEL = 1e-4


def truth_votes(parameters: Mechanism1, n_agents: int, runs: int, seed: int) -> np.ndarray:
    return played([parameters], n_agents, runs, seed).truth_votes[:, 0]


def votes(parameters: Mechanism1, n_agents: int, runs: int, seed: int) -> np.ndarray:
    """Numbers of runs that end with 0 to N votes for the truth."""
    return np.bincount(truth_votes(parameters, n_agents, runs, seed), minlength=n_agents + 1)


def agree(counts: np.ndarray, law: np.ndarray) -> float:
    """p of counts under a law, votes that are too rare taken together with their neighbours."""
    edges = [0]
    for k in range(len(law)):
        if law[edges[-1] : k + 1].sum() * counts.sum() >= 8 and law[k + 1 :].sum() * counts.sum() >= 8:
            edges.append(k + 1)
    grouped = [np.add.reduceat(values, edges) for values in (counts, law * counts.sum() / law.sum())]
    return float(chisquare(*grouped).pvalue)


def same(first: np.ndarray, second: np.ndarray) -> float:
    """p of two samples having one law."""
    table = np.stack([first, second])
    return float(chi2_contingency(table[:, table.sum(0) > 0]).pvalue)


# --- Appendix E ---


def test_weights_of_the_components() -> None:
    """By hand at N = 25.66, where the rival's weight is 0.5911 (1 - 1/e)."""
    w = APPENDIX_E.weights(25.66)
    np.testing.assert_allclose(w[:2], [0.3263 * (1 - np.exp(-25.66 / 6.185)), 0.5911 * (1 - np.exp(-1))], rtol=1e-6)
    assert APPENDIX_E.weights(SIZES).sum(-1) == pytest.approx(1)
    np.testing.assert_allclose(APPENDIX_E.weights(np.inf), [0.3263, 0.5911, 1 - 0.3263 - 0.5911])
    constant = replace(APPENDIX_E, scale_T=0.0, scale_R=0.0)
    np.testing.assert_allclose(constant.weights(2), APPENDIX_E.weights(np.inf))


def test_table_beside_the_measured_one(data_folder) -> None:
    """The intervals of GPT-4o's accuracies hold the paper's curve everywhere, those of its endpoints do not."""
    table = flag_game.compare(data_folder / "flag_game" / "population_scaling_gpt4o.csv", runs=20_000, seed=1)
    assert table["inside"].sel(quantity="accuracy").all()
    outside = {q: table["n_agents"].values[table["inside"].sel(quantity=q).values == 0].tolist() for q in ENDPOINTS}
    assert outside["polarization"] == [8, 32]
    assert outside["correct_consensus"] == [64, 128]
    assert outside["wrong_consensus"][:3] == [8, 16, 32]
    row = table.sel(n_agents=4, quantity="polarization")
    assert row["measured"] == 0.275 and row["interval"].values == pytest.approx([0.161, 0.428], abs=5e-4)


def test_accuracies_are_compared_as_they_were_given(data_folder) -> None:
    given = pd.read_csv(data_folder / "flag_game" / "population_scaling_gpt4o.csv")
    ends = given[["final_ci_low", "final_ci_high"]].to_numpy()
    by_level = {level: flag_game.compare(given, runs=50, level=level) for level in (0.95, 0.9)}
    intervals = {level: one["interval"].sel(quantity="accuracy").values for level, one in by_level.items()}
    np.testing.assert_array_equal(intervals[0.95], ends)
    assert (np.diff(intervals[0.9]) < np.diff(ends)).all()
    without = flag_game.compare(given.drop(columns="final_mean"), runs=50)["inside"]
    assert without.sel(quantity="accuracy").isnull().all() and without.sel(quantity=list(ENDPOINTS)).notnull().all()


# --- exact limits ---


def plain_runs(p: Mechanism1, n: int, runs: int, rng: np.random.Generator, anchored: bool = True) -> np.ndarray:
    """Appendix E word by word."""
    ends = np.empty(runs, int)
    law = p.field_law(n)
    for run in range(runs):
        c = rng.choice(3, size=n, p=law.weights)
        h = law.means[c] + law.sds[c] * rng.standard_normal(n)
        belief = h.copy()
        for _ in range(16 * n):
            speaker = rng.integers(n)
            listener = (speaker + rng.integers(1, n)) % n
            a = 1 if rng.random() < (1 + np.tanh(p.beta * belief[speaker])) / 2 else -1
            pull = (h[listener] if anchored else 0.0) + p.J * a
            belief[listener] = (1 - p.alpha) * belief[listener] + p.alpha * pull
        ends[run] = (np.tanh(p.beta * belief) > 0).sum()
    return np.bincount(ends, minlength=n + 1)


def test_against_a_plain_version() -> None:
    rng = np.random.default_rng(1)
    fast = votes(APPENDIX_E, 5, 20_000, seed=1)
    law = fast / fast.sum()
    assert agree(plain_runs(APPENDIX_E, 5, 800, rng), law) > LEVEL
    assert agree(plain_runs(APPENDIX_E, 5, 800, rng, anchored=False), law) < LEVEL


@pytest.mark.parametrize("change", [{"J": 0.0}, {"interactions_per_agent": 0}], ids=str)
def test_without_influence_votes_are_independent(change: dict) -> None:
    deaf = replace(APPENDIX_E, **change)
    law = deaf.field_law(12)
    truth = law.weights @ norm.cdf(law.means / law.sds)
    counted = votes(deaf, 12, 20_000, seed=2)
    assert agree(counted, binom.pmf(np.arange(13), 12, truth)) > LEVEL
    assert agree(counted, binom.pmf(np.arange(13), 12, truth + 0.02)) < LEVEL


def test_truth_and_rival_exchanged() -> None:
    """With weights, means and widths exchanged the votes' distribution is mirrored; Appendix E is not symmetric."""
    p = replace(APPENDIX_E, scale_T=0.0, scale_R=0.0)
    other = replace(
        p, weight_T=p.weight_R, weight_R=p.weight_T, mean_T=-p.mean_R, mean_R=-p.mean_T, mean_0=-p.mean_0,
        sd_T=p.sd_R, sd_R=p.sd_T,
    )  # fmt: skip
    counted, mirrored = votes(p, 9, 20_000, seed=4), votes(other, 9, 20_000, seed=5)
    assert same(counted, mirrored[::-1]) > LEVEL
    assert same(counted, mirrored) < LEVEL


# --- over time ---


def test_lean_over_time_is_that_of_runs_which_end_there() -> None:
    """[002] Eq. 8 after t rounds: the ends of the same runs with t N interactions; beliefs start at the fields."""
    sizes = [4, 9]
    result = flag_game.simulate(n_agents=sizes, runs=40, seed=3, trajectories=True)
    assert result["round"].values.tolist() == list(range(17))
    for rounds in (0, 1, 5, 16):
        ended = flag_game.simulate(replace(APPENDIX_E, interactions_per_agent=rounds), n_agents=sizes, runs=40, seed=3)
        for name in ("m", "q"):
            np.testing.assert_array_equal(result[f"{name}_path"].sel(round=rounds), ended[name])
    start = flag_game.simulate(n_agents=9, runs=20_000, seed=3, trajectories=True)["m_path"].sel(round=0)
    expected = float(APPENDIX_E.field_law(9).response(0.0, APPENDIX_E.beta))
    assert abs(float(start.mean()) - expected) < 4.5 * float(start.std()) / np.sqrt(20_000)  # two-sided 7e-6


# --- random numbers ---


def test_common_random_numbers() -> None:
    """Larger fields can't cost the truth a vote in any run: they make every message likelier to be for it."""
    raised = replace(APPENDIX_E, mean_T=0.637, mean_R=-0.201, mean_0=0.03)
    lower, higher = (truth_votes(p, 16, 3000, seed=6) for p in (APPENDIX_E, raised))
    assert (higher >= lower).all() and (higher > lower).any()
    assert not (truth_votes(raised, 16, 3000, seed=7) >= lower).all()


def test_runs_depend_on_nothing_else() -> None:
    few, many = (played([APPENDIX_E], 8, runs, 8, times=1) for runs in (50, 300))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    alone = played([APPENDIX_E], 8, 300, 8, times=1)
    numba.set_num_threads(threads)
    for a, b, c in zip(few, many, alone, strict=True):
        np.testing.assert_array_equal(a, b[:50])
        np.testing.assert_array_equal(b, c)


# --- endpoints ---


def test_classes_by_hand() -> None:
    """17 of 20 is 85 % exactly, 1 of 4 is 25 %; 3 of 16 is neither consensus nor polarised."""
    right, wrong, polar, fragmented = range(4)
    assert endpoints_of_votes(4).tolist() == [wrong, polar, polar, polar, right]
    mirrored = [wrong, fragmented, polar, polar, fragmented, right]
    assert endpoints_of_votes(20)[[3, 4, 5, 15, 16, 17]].tolist() == mirrored
    assert endpoints_of_votes(16)[[2, 3, 4, 12, 13, 14]].tolist() == mirrored


def test_moments_of_a_law() -> None:
    moments = moments_of_laws([np.array([0.1, 0.0, 0.3, 0.0, 0.6])])
    np.testing.assert_allclose(moments.values[0], [0.6, 0.1, 0.3, 0, 0.75])
    covariance = moments.covariances[0]
    assert covariance[4, 4] == pytest.approx(0.6 + 0.3 / 4 - 0.75**2)
    assert covariance[0, 4] == pytest.approx(0.6 - 0.6 * 0.75)
    np.testing.assert_allclose(covariance[:4].sum(0), 0, atol=1e-15)


def test_simulation_is_labelled() -> None:
    data = flag_game.simulate(n_agents=[4, 16], runs=200, seed=0)
    assert data["truth_share"].dims == ("n_agents", "run")
    counts = data["endpoint_count"]
    np.testing.assert_array_equal(counts / 200, data["endpoint_fraction"])
    assert (counts.sum("endpoint") == data["seeds"]).all()
    assert ((data["run_endpoint"] == data["endpoint"]).sum("run") == counts).all()
    assert (np.abs(data["m"]) <= 1).all() and (data["q"] >= data["m"] ** 2).all()
    np.testing.assert_allclose(data["collective_accuracy"], data["truth_share"].mean("run"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: replace(APPENDIX_E, weight_T=0.5), "weight_T, weight_R = (0.5, 0.5911): weights above 1"),
        (lambda: replace(APPENDIX_E, alpha=1.5), "alpha = 1.5"),
        (lambda: flag_game.simulate({"J": 1}, n_agents=4, seed=0), "parameters = {'J': 1}: expected a Mechanism1"),
        (lambda: APPENDIX_E.weights(-3), "n_agents = -3"),
        (lambda: copying_law(4, 0.0, 1.0), "zealots_T = 0.0: expected a number above 0"),
    ],
)
def test_bad_input_is_named(call, message: str, unchecked_types) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value).startswith(message)
