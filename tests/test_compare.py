"""Theory against simulation: the verdicts, their controls, and the arithmetic behind them.

Error budget: a verdict at level 1 - 1e-4 rejects a true theory for at most one seed in 10,000 (Bonferroni is
conservative for trajectories, whose rounds are correlated); with fewer than 20 such verdicts all together fail falsely
for less than one seed in 500.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from scipy.stats import binomtest

import meanfield
import validation
from meanfield import InputError

LEVEL = 1 - 1e-4
CASES = [("gpt-4o", "African/White", "African"), ("llama31_70B", "gay/straight", "gay")]
ROUNDS = 30


class Case(NamedTuple):
    solution: xr.Dataset
    small: xr.Dataset  # 2,000 runs of 24 agents
    large: xr.Dataset  # 200 runs of 20,000 agents
    word: str  # at which mean field ends


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]} {case[1]}")
def case(request: pytest.FixtureRequest, published: xr.Dataset) -> Case:
    model, pair, word = request.param
    policy = published.sel(model=model, pair=pair)
    small = validation.simulate(policy, n_agents=24, runs=2000, seed=1, record_rounds=ROUNDS)
    large = validation.simulate(policy, n_agents=20_000, runs=200, seed=1, max_rounds=ROUNDS, trajectories=True)
    return Case(meanfield.solve(policy), small, large, word)


def made_up(share: np.ndarray, words: tuple[str, ...] = ("A", "B")) -> tuple[xr.Dataset, xr.Dataset]:
    """A solution that approaches A exponentially, and runs of word share `share` (n_agents, run, round, word)."""
    n, runs, rounds = share.shape[:3]
    time = np.linspace(0, 2 * (rounds - 1), 10 * rounds)
    coords = {"word": np.arange(len(words)), "word_label": ("word", list(words))}
    first = 1 - np.exp(-time / 20) / 2
    solution = xr.Dataset(
        {"word_share": (("time", "word"), np.stack([first, 1 - first], -1)), "attractor": "A"},
        coords={"time": time, **coords},
    )
    outcome = np.full((n, runs), None, dtype=object)
    outcome[:, : runs // 2 + 1] = "A"
    simulation = xr.Dataset(
        {
            "word_share": (("n_agents", "run", "round", "word"), share),
            "consensus_word": (("n_agents", "run"), outcome, {"missing": ""}),
        },
        coords={
            "n_agents": 10 * np.arange(1, n + 1),
            "run": np.arange(runs),
            "round": np.arange(share.shape[2]),
            **coords,
        },
    )
    return solution, simulation


def noisy(rng: np.random.Generator, runs: int = 50, rounds: int = 10, noise: float = 0.02) -> np.ndarray:
    """Runs that follow the solution of `made_up` but for noise, from the very same start."""
    first = np.tile(1 - np.exp(-np.arange(rounds + 1) / 10) / 2, (1, runs, 1))
    first[..., 1:] += noise * rng.normal(size=(1, runs, rounds))
    return np.stack([first, 1 - first], -1)


# --- the published policies ---


def test_large_populations_follow_the_rate_equation(case: Case) -> None:
    comparison = validation.compare(case.solution, case.large, level=LEVEL)
    assert comparison["trajectory_agrees"].all()
    assert comparison["predicted_word"] == case.word
    assert comparison["band"].max() < 0.01  # narrow enough to mean something


def test_small_populations_do_not(case: Case) -> None:
    assert not validation.compare(case.solution, case.small, level=LEVEL)["trajectory_agrees"].any()


def test_time_that_is_not_doubled_fails(case: Case) -> None:
    comparison = validation.compare(case.solution, case.large, time_per_round=1.0, level=LEVEL)
    assert not comparison["trajectory_agrees"].any()
    assert np.abs(comparison["z"]).max() > 100


def test_consensus_of_small_populations(case: Case) -> None:
    comparison = validation.compare(case.solution, case.small).isel(n_agents=0)
    won = float((case.small["consensus_word"] == case.word).mean())
    low, high = comparison["consensus_interval"].isel(word=0).values
    assert comparison["consensus_probability"].isel(word=0) == won
    assert low < won < high and high - low < 0.06
    assert comparison["consensus_agrees"] and low > 0.5
    assert comparison["consensus_probability"].sum() + comparison["no_consensus"] == pytest.approx(1)


def test_mixed_attractor(published: xr.Dataset) -> None:
    """Llama 3.1 {more, less} stops converging at large N, as mean field says. [004] Fig. 3."""
    policy = published.sel(model="llama31_70B", pair="more/less")
    simulation = validation.simulate(policy, n_agents=[2, 2000], runs=40, seed=1, max_rounds=60, record_rounds=20)
    comparison = validation.compare(meanfield.solve(policy), simulation, level=LEVEL)
    assert comparison["predicted_word"] == "mixed"
    assert comparison["consensus_agrees"].values.tolist() == [False, True]
    assert comparison["no_consensus"].sel(n_agents=2000) == 1


def line_of(comparison: xr.Dataset) -> str:
    console = Console(width=160, record=True)
    console.print(validation.comparison_table(comparison))
    (line,) = (line for line in console.export_text().splitlines() if line.startswith("│"))
    return line


def test_table_says_it_in_words(case: Case) -> None:
    small = line_of(validation.compare(case.solution, case.small, level=LEVEL))
    large = line_of(validation.compare(case.solution, case.large, level=LEVEL))
    assert "24" in small and "leaves theory in round" in small and "most: 0." in small
    assert "20,000" in large and f"follows theory over {ROUNDS} rounds" in large


def test_saved_and_loaded(case: Case, tmp_path: Path) -> None:
    comparison = validation.compare(case.solution, case.small)
    loaded = meanfield.load(meanfield.save(comparison, tmp_path / "comparison.nc"))
    xr.testing.assert_equal(comparison, loaded)
    assert loaded.attrs["kind"] == "comparison" and loaded.attrs["option_level"] == 0.99
    assert loaded.attrs["theory_policy_sha256"] == loaded.attrs["simulation_policy_sha256"]
    assert loaded["trajectory_agrees"].dtype == bool
    validation.comparison_table(loaded)


# --- the arithmetic ---


def test_a_true_theory_is_accepted_at_the_level() -> None:
    rng = np.random.default_rng(1)
    accepted = 0
    for _ in range(400):
        accepted += bool(validation.compare(*made_up(noisy(rng)), level=0.9)["trajectory_agrees"].all())
    assert binomtest(accepted, 400, 0.9, alternative="less").pvalue > 1e-4
    assert accepted < 400  # the band is not so wide that it accepts everything


@pytest.mark.parametrize("wrong_round", [0, 5])
def test_one_wrong_round_is_found(wrong_round: int) -> None:
    share = noisy(np.random.default_rng(2), runs=200)
    share[:, :, wrong_round] += np.array([0.02, -0.02])
    comparison = validation.compare(*made_up(share), level=LEVEL)
    assert np.flatnonzero(~comparison["within_band"].values[0]).tolist() == [wrong_round]
    assert np.isfinite(comparison["z"]).all()


def test_runs_that_are_all_alike_are_no_division_by_zero() -> None:
    share = np.repeat(noisy(np.random.default_rng(0), runs=1, noise=0.0), 5, axis=1)
    comparison = validation.compare(*made_up(share))
    assert comparison["trajectory_agrees"].all()
    assert (np.abs(comparison["z"]) < 0.1).all()


def test_z_and_standard_error() -> None:
    share = noisy(np.random.default_rng(3), runs=7)
    comparison = validation.compare(*made_up(share))
    expected = share.std(1, ddof=1) / np.sqrt(7)
    np.testing.assert_allclose(comparison["standard_error"], expected, atol=1e-15)
    difference = (comparison["simulated"] - comparison["theory"]).isel(round=slice(1, None))
    np.testing.assert_allclose(comparison["z"].isel(round=slice(1, None)), difference / expected[:, 1:], rtol=1e-6)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (970, 1000), (1, 100_000)])
@pytest.mark.parametrize("level", [0.9, 0.99])
def test_wilson_interval(successes: int, trials: int, level: float) -> None:
    expected = binomtest(successes, trials).proportion_ci(level, method="wilson")
    assert validation.wilson_interval(np.array(successes), trials, level) == pytest.approx(tuple(expected), abs=1e-12)


def stacked(solution: xr.Dataset) -> xr.Dataset:
    return xr.concat([solution, solution], "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, s: ({}, s, {}), "solution: expected what meanfield.solve returns"),
        (lambda t, s: (t.drop_vars("attractor"), s, {}), "solution: expected what meanfield.solve returns"),
        (lambda t, s: (stacked(t), s, {}), "solution is one over model: select one"),
        (lambda t, s: (t, t, {}), "simulation: expected what validation.simulate returns"),
        (lambda t, s: (t, s.drop_vars("word_share"), {}), "simulation has no word_share"),
        (lambda t, s: (t, s.isel(run=[0]), {}), "simulation has 1 run"),
        (lambda t, s: (t, s.where(s["run"] > 0), {}), "simulation.word_share has missing values"),
        (lambda t, s: (t.assign(attractor="C"), s, {}), "solution.attractor = 'C'"),
        (lambda t, s: (t, s.assign_coords(word_label=("word", ["B", "A"])), {}), "solution has the words A, B"),
        (lambda t, s: (t, s, {"time_per_round": 4}), "solution covers the times 0 to 20: expected 0 to 40"),
        (lambda t, s: (t.isel(time=slice(1, None)), s, {}), "solution covers the times"),
        (lambda t, s: (t, s, {"time_per_round": 0}), "time_per_round = 0"),
        (lambda t, s: (t, s, {"level": 1}), "level = 1"),
        (lambda t, s: (t, s, {"theory_error": 0}), "theory_error = 0"),
    ],
)
def test_bad_input_is_named(change: object, message: str) -> None:
    solution, simulation, options = change(*made_up(noisy(np.random.default_rng(0))))
    with pytest.raises(InputError) as error:
        validation.compare(solution, simulation, **options)
    assert str(error.value).startswith(message)


def test_table_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match=r"expected what validation\.compare returns"):
        validation.comparison_table(xr.Dataset())
