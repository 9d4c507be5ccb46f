"""The power of planned runs, held against enumeration and closed forms."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import matplotlib as mpl

mpl.use("Agg")
import numpy as np
import pytest
import xarray as xr
from scipy.special import ndtr
from scipy.stats import binom, binomtest, norm

import meanfield
import validation
from _labelled_calls import conformist
from _policies import random_policy
from _refusals import refused
from meanfield.toolbox import wilson_interval
from validation.naming_game import simulated_bias
from validation.populations import power, report
from validation.populations._power import NUMBERS, fewest_runs, least_wins, power_by_runs

LEVEL = 0.95


def called(wins: int, runs: int, excluded: Fraction, level: float) -> bool:
    """Whether one of the tails beyond so many wins has a probability of (1 - level)/2 or less; exact."""
    law = [comb(runs, k) * excluded**k * (1 - excluded) ** (runs - k) for k in range(runs + 1)]
    return min(sum(law[wins:]), sum(law[: wins + 1])) <= (1 - Fraction(level)) / 2


def needed(bias: float, **options: float) -> float:
    return power(bias, n_agents=24, runs=1, **options)["runs_needed"].item()


@pytest.mark.parametrize("excluded", [Fraction(1, 2), Fraction(7, 8)])
@pytest.mark.parametrize(("level", "undecided"), [(0.5, 0.0), (0.9375, 0.3), (0.95, 0.0)])
def test_every_outcome_of_few_runs(excluded, level, undecided):
    probability = {"win": (1 - undecided) * 0.8, "loss": (1 - undecided) * 0.2, "none": undecided}
    found = power_by_runs(0.8, float(excluded), level, undecided)
    for runs in range(8):
        exact = 0.0
        for ends in product(probability, repeat=runs):
            if called(ends.count("win"), runs - ends.count("none"), excluded, level):
                exact += np.prod([probability[end] for end in ends])
        assert found[runs] == pytest.approx(exact, abs=1e-14)


def test_the_calls_of_the_exact_binomial_test():
    table = power(0.09, n_agents=24, runs=[5, 6, 10, 42])
    for row in table.itertuples():
        wins = [k for k in range(row.runs + 1) if binomtest(k, row.runs).pvalue <= 1 - LEVEL]
        assert wins == [k for k in range(row.runs + 1) if k <= row.at_most or k >= row.at_least]
    assert table[["at_most", "at_least"]].values.tolist() == [[-1, 6], [0, 6], [1, 9], [14, 28]]


def largest_size(tails: np.ndarray) -> float:
    """The largest probability of a call without bias, whose least numbers of wins to one side are these."""
    return float((2 * binom.sf(tails - 1, NUMBERS, 0.5)).max())


def test_without_a_bias_calls_are_no_likelier_than_the_level_allows():
    for level in (0.9, 0.95, 0.99):
        for excluded in (0.5, 0.2, 0.97):
            assert power_by_runs(excluded, excluded, level, 0.0).max() <= 1 - level + 1e-12
        assert power_by_runs(0.5, 0.5, level, 0.4).max() <= 1 - level + 1e-12
    assert needed(0.0) == np.inf
    # The control: the normal approximation calls too often.
    wins = np.ceil(NUMBERS / 2 + norm.isf(0.025) * np.sqrt(NUMBERS) / 2).astype(int)
    assert largest_size(least_wins(0.5, LEVEL)) <= 0.05 < largest_size(wins)


def test_power_grows_with_bias_and_group_and_treats_both_words_alike():
    kappas = np.linspace(0, 0.6, 7)
    table = power(kappas, n_agents=[10, 24, 100], runs=[10, 40])
    by_kappa = table.pivot(index="kappa", columns=["n_agents", "runs"], values="power")
    assert (np.diff(by_kappa, axis=0) >= 0).all()
    assert (np.diff([by_kappa[n] for n in (10, 24, 100)], axis=0) >= 0).all()
    mirrored = power(-kappas, n_agents=[10, 24, 100], runs=[10, 40])
    np.testing.assert_allclose(mirrored["power"], table["power"], rtol=1e-9)
    np.testing.assert_allclose(table["chance"], ndtr(table["kappa"] * np.sqrt(table["n_agents"])))


def test_the_runs_needed_are_enough_from_there_on():
    law = power_by_runs(float(ndtr(0.09 * np.sqrt(24))), 0.5, LEVEL, 0.0)
    enough = int(needed(0.09))
    assert (law[enough:] >= 0.8).all() and law[enough - 1] < 0.8
    # Of a saw-tooth, the first number of runs with that power is not enough.
    assert np.flatnonzero(law >= 0.8)[0] < enough and (np.diff(law) < 0).any()
    assert needed(0.09, wanted=0.9) > enough and needed(0.09, level=0.99) > enough
    assert enough < needed(0.09, undecided=0.3) == pytest.approx(enough / 0.7, rel=0.05)
    assert needed(0.001) == np.inf
    certain = power_by_runs(1.0, 0.5, LEVEL, 0.0)
    assert certain[:8].tolist() == [0, 0, 0, 0, 0, 0, 1, 1] and fewest_runs(certain, 0.8) == 6


def test_small_biases_need_a_number_of_agents_in_all_runs():
    """n δ² = (z_level + z_wanted)²/4 for the normal distribution, with δ = κ√(N/2π)."""
    agents = np.pi / 2 * (norm.isf(0.025) + norm.isf(0.2)) ** 2 / 0.02**2
    assert agents == pytest.approx(12.3 / 0.02**2, rel=0.01)
    for n in (10, 24, 100):
        (runs,) = power(0.02, n_agents=n, runs=1)["runs_needed"]
        assert runs * n == pytest.approx(agents, rel=0.08)


def test_a_policy_gives_its_law():
    policy = conformist()
    law = meanfield.group_size_law(policy, n_agents=[10, 24])
    table = power(policy, n_agents=[10, 24], runs=[10, 20])
    assert table["kappa"].unique().tolist() == [law["kappa"].item()]
    np.testing.assert_allclose(table["chance"], law["probability"].values.repeat(2))
    assert table[["model", "pair", "word"]].drop_duplicates().values.tolist() == [["conformist", "a/b", "a"]]
    same = power(law["kappa"].item(), n_agents=[10, 24], runs=[10, 20])
    assert same["power"].tolist() == table["power"].tolist()
    assert table.attrs["kind"] == "power" and table.attrs["option_level"] == LEVEL


def test_several_in_a_list_or_from_a_generator():
    table = power((conformist() for _ in range(2)), n_agents=24, runs=10)
    assert len(table) == 2 and table.iloc[[1]].reset_index(drop=True).equals(table.iloc[[0]])
    table = power((kappa for kappa in (0.1, 0.2)), n_agents=24, runs=iter([10, 20]))
    assert table["kappa"].tolist() == [0.1, 0.1, 0.2, 0.2] and table["runs"].tolist() == [10, 20] * 2
    assert power(np.array(0.1), n_agents=np.array(24), runs=np.array(10)).equals(power(0.1, n_agents=24, runs=10))


def test_which_of_two_policies():
    policy = conformist()
    mirrored = meanfield.make_policy(policy["q"].values[:, ::-1][turned()], ["a", "b"])
    kappa = meanfield.group_size_law(policy)["kappa"].item()
    table = power(policy, n_agents=24, runs=40, against=mirrored)
    assert table["against"].item() == pytest.approx(-kappa)
    assert table["chance"].item() + table["excluded"].item() == pytest.approx(1)
    assert power(policy, n_agents=24, runs=40, against=policy)["power"].item() <= 0.05
    assert power(0.3, n_agents=24, runs=40, against=policy)["against"].item() == kappa
    with refused("against has the words A, B: expected a/b"):
        power(policy, n_agents=24, against=meanfield.make_policy(policy["q"].values, ["A", "B"]))


def turned() -> list[int]:
    """The states of H = 2 with both words exchanged."""
    space = meanfield.MemorySpace(2, 2)
    return [space.state(tuple((1 - a, 1 - b) for a, b in space.memory(i))) for i in range(space.n_states)]


@pytest.fixture(scope="module")
def simulated() -> xr.Dataset:
    return simulated_bias(validation.simulate(conformist(), n_agents=[6, 24], runs=400, seed=1, max_rounds=10))


def test_simulated_runs_give_chances_and_undecided_runs(simulated):
    table = power(simulated, runs=20)
    decided = 1 - simulated["no_consensus"].values[0]
    assert 0 < decided[1] < 1
    np.testing.assert_allclose(table["undecided"], 1 - decided)
    np.testing.assert_allclose(table["chance"], simulated["simulated"].values[0] / decided)
    np.testing.assert_allclose(ndtr(table["kappa"] * np.sqrt([6, 24])), table["chance"])
    low, high = wilson_interval(table["chance"].to_numpy() * 400 * decided, 400 * decided, 0.9999)
    law = meanfield.group_size_law(conformist(), n_agents=[6, 24])["probability"].values
    assert (low - 0.05 < law).all() and (law < high + 0.05).all(), "the law's error is of order 1/√N"
    exact = power_by_runs(table["chance"][1], 0.5, LEVEL, table["undecided"][1])
    assert table["power"][1] == exact[20]
    assert power(simulated.isel(pair=0).sel(n_agents=24), runs=20)["power"].tolist() == [exact[20]]


@pytest.mark.parametrize(
    ("bias", "options", "told"),
    [
        (0.09, {"n_agents": None}, "n_agents = None: expected a whole number from 2"),
        ([0.09, np.nan], {}, "bias = nan: expected a number"),
        ("x", {}, "bias = 'x': expected a number"),
        ([], {}, "bias is empty: expected a number κ, or policies"),
        (0.09, {"runs": []}, r"runs = \[\]: expected one number of runs or several different ones"),
        (0.09, {"runs": [10, 10]}, r"runs = \[10, 10\]: expected one number of runs or several different ones"),
        (0.09, {"runs": [10, 10_001]}, "runs = 10001: expected"),
        (0.09, {"runs": "10"}, "runs = '10': expected"),
        (0.09, {"level": 1}, "level = 1"),
        (0.09, {"wanted": 0}, "wanted = 0"),
        (0.09, {"undecided": 1}, "undecided = 1"),
        (0.09, {"against": np.inf}, "against = inf"),
        (random_policy(1), {}, "no group-size law of two .*: expected one with a law, or validation.naming_game.sim"),
        (random_policy(1, 3), {}, "for more than two words the law needs two at least"),
    ],
)
def test_what_is_refused(bias, options, told):
    with refused(told):
        power(bias, **{"n_agents": 24} | options)


def test_what_is_refused_of_simulated_runs(simulated):
    for options in ({"n_agents": 24}, {"undecided": 0.1}):
        with refused("bias was simulated: expected neither n_agents nor undecided"):
            power(simulated, **options)
    with refused("no simulated run of a/b that agrees, N = 6"):
        power(simulated.assign(no_consensus=simulated["no_consensus"] * 0 + 1))


def test_sentences():
    lines = report(power([0.09, 0.0], n_agents=24, runs=10))
    assert lines[0] == (
        "10 runs of 24 agents call a bias κ of 0.09 (the strong word wins with chance 0.670) with probability 0.11 at "
        "95 % confidence; 72 runs are needed for 0.8"
    )
    assert lines[1].endswith("; 10,000 runs do not suffice for 0.8")
    several = report(power(0.09, n_agents=[24, 100], runs=[10, 1000, 20]))
    assert len(several) == 2 and several[0].startswith("10, 1,000 and 20 runs of 24 agents call a bias κ of 0.09 ")
    assert "with probability 0.11, 1.00 and 0.31 at 95 % confidence" in several[0]
    (line,) = report(power(conformist(), n_agents=24, runs=10, against=0.2))
    assert (
        line.startswith("conformist {a, b}: 10 runs of 24 agents call a bias κ of ") and "and not 0.2 ('a' wins" in line
    )


def test_a_line_for_each_size():
    axes = meanfield.plot(power([0.09, 0.2], n_agents=[24, 100], runs=[40, 10, 20]))
    lines = axes.get_lines()[:4]
    table = power([0.09, 0.2], n_agents=[24, 100], runs=[10, 20, 40])
    for line, (_, rows) in zip(lines, table.groupby(["kappa", "n_agents"]), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), rows[["runs", "power"]])
    assert [line.get_label() for line in lines] == [f"κ = {k}, N = {n}" for k in (0.09, 0.2) for n in (24, 100)]
    assert lines[0].get_color() == lines[2].get_color() != lines[1].get_color()
    assert axes.get_xlabel() == "number of runs" and axes.get_ylabel() == "probability of a call at 95 %"
    assert axes.get_lines()[4].get_ydata() == [0.8, 0.8]
