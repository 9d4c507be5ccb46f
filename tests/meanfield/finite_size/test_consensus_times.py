"""Consensus times of N agents against simulations, exact sums over rounds, and the passage by a saddle in closed form.

Error budget: a simulated distribution of n runs differs from its own law by more than 2.3/√n with a chance of 5e-5.
"""

import numpy as np
import pytest
from scipy.stats import binom

import meanfield
import validation
from _policies import majority, random_policy, relabelled
from meanfield import InputError, consensus_times
from meanfield._finite_size.consensus_windows import consensus_by
from meanfield._finite_size.course_noise import course_noise
from meanfield._finite_size.forced_course import STEP, STEPS, forced_course, linear_push, push, push_slopes
from meanfield._finite_size.group_size_law import law_path
from meanfield._finite_size.path_equations import PathEquations
from meanfield.toolbox import space_of

pytestmark = pytest.mark.usefixtures("unchecked_types")
CHANCE = 2.3  # of Kolmogorov's distribution


def distance(law, runs):
    """The largest difference of distribution functions: of all times, and of those of each word."""
    rounds = runs["consensus_round"].values - 1
    last = int(max(np.nanmax(rounds), law["consensus_time"].values[-1]))
    apart = []
    for word in law["word"].values:
        won = runs["consensus_word"].values == word
        counted = np.histogram(rounds[won], np.arange(last + 2) - 0.5)[0] / len(rounds)
        one = law.sel(word=word)
        foretold = np.nan_to_num(one["density"].values) * one["probability"].item()
        apart.append(counted - np.append(foretold, np.zeros(last + 1 - len(foretold))))
    apart = np.cumsum(apart, axis=1)
    return max(np.abs(apart).max(), np.abs(apart.sum(0)).max())


@pytest.mark.slow
def test_times_of_two_conventions_are_those_of_simulated_groups():
    policy = majority(0.53)
    law = consensus_times(policy, n_agents=[50, 100])
    runs = validation.simulate(policy, n_agents=100, runs=20_000, seed=1).sel(n_agents=100)
    assert distance(law.sel(n_agents=100), runs) < 0.01 + CHANCE / len(runs["run"]) ** 0.5
    assert distance(law.sel(n_agents=50), runs) > 0.03 + CHANCE / len(runs["run"]) ** 0.5


@pytest.mark.slow
def test_times_of_one_convention_are_those_of_simulated_groups():
    policy = meanfield.make_policy(np.array([0.6, 1, 0.7, 0.6, 0.3]), ["a", "b"])
    law = consensus_times(policy, n_agents=[100, 1000])
    runs = validation.simulate(policy, n_agents=[100, 1000], runs=10_000, seed=1)
    for n, known in ((100, 0.12), (1000, 0.035)):
        assert distance(law.sel(n_agents=n), runs.sel(n_agents=n)) < known + CHANCE / len(runs["run"]) ** 0.5
    assert distance(law.sel(n_agents=100), runs.sel(n_agents=1000)) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["African/White", "woman/man", "tall/short"])
def test_times_of_published_pairs_are_those_of_simulated_groups(published, pair):
    policy = published.sel(model="gpt-4o", pair=pair)
    law = consensus_times(policy.set_index(word="word_label"), n_agents=[100, 1000])
    runs = validation.simulate(policy, n_agents=[100, 1000], runs=100_000, seed=7)
    for n in (100, 1000):
        assert distance(law.sel(n_agents=n), runs.sel(n_agents=n)) < 0.02


@pytest.mark.slow
def test_passage_by_the_saddle_is_logarithmic_in_the_number_of_agents():
    policy = majority(0.5 + 1e-6)
    law = consensus_times(policy, n_agents=[10**4, 10**6])
    rate = law_path(policy).path.ends.growth * meanfield.TIME_PER_ROUND
    density = (law["density"] * law["probability"]).sum("word")
    mean = (density * law["consensus_time"]).sum("consensus_time")
    # t = const - log|ξ/√N|/rate for a normal ξ, rounded up to whole rounds
    assert mean.diff("n_agents").item() == pytest.approx(np.log(10) / rate, rel=0.02)
    variance = (density * (law["consensus_time"] - mean) ** 2).sum("consensus_time")
    np.testing.assert_allclose(variance, np.pi**2 / 8 / rate**2 + 1 / 12, rtol=0.05)


@pytest.mark.slow
def test_many_agents_agree_when_the_rate_equation_does():
    policy = majority(0.8)
    law = consensus_times(policy, n_agents=10**8)
    success = meanfield.solve(policy, times=np.arange(0, 60, 0.1))["success_rate"].values
    rounds = success[:580].reshape(29, 20).mean(1)
    agreed = np.flatnonzero(np.convolve(rounds, np.full(3, 1 / 3), "valid") >= 0.98)[0] + 2
    assert law["mode"].sel(word="a").item() == agreed
    assert law["density"].sel(word="a", consensus_time=agreed).item() == pytest.approx(1)


@pytest.mark.slow
def test_words_in_another_order_have_the_same_times():
    ours = consensus_times(majority(0.53), n_agents=60)
    theirs = consensus_times(relabelled(majority(0.53), [1, 0]), n_agents=60)
    for word in ("a", "b"):
        one, other = ours.sel(word=word), theirs.sel(word=word)
        for name in ("probability", "mean"):
            assert one[name].item() == pytest.approx(other[name].item(), abs=1e-4)


@pytest.mark.slow
def test_numbers_of_a_law_fit_together():
    law = consensus_times(majority(0.55), n_agents=[20, 100], quantiles=[0.1, 0.5])
    np.testing.assert_allclose(law["density"].sum("consensus_time"), 1, atol=1e-5)
    np.testing.assert_allclose(law["probability"].sum("word") + law["no_consensus"], 1, atol=1e-12)
    by = law["density"].cumsum("consensus_time")
    for q in (0.1, 0.5):
        at = law["quantiles"].sel(quantile=q).astype(int)
        assert (by.sel(consensus_time=at) > q - 1e-5).all()
        assert (by.sel(consensus_time=at - 1) < q).all()
    loose = consensus_times(majority(0.55), n_agents=100, success_rate=0.95, first_test=8)
    assert loose["density"].sel(consensus_time=slice(0, 6)).sum() == 0
    assert (loose["mean"] < law["mean"].sel(n_agents=100)).all()


def test_policies_without_a_law_say_why():
    mixed = consensus_times(meanfield.make_policy(np.array([0.5, 0.8, 0.5, 0.5, 0.2]), ["a", "b"]), n_agents=100)
    assert mixed.attrs["applies"] == 0
    assert "disagree in" in mixed.attrs["reason"]
    for name in ("probability", "density", "mode", "mean", "quantiles", "no_consensus"):
        assert np.isnan(mixed[name]).all()
    neutral = consensus_times(majority(0.5), n_agents=100)
    assert neutral.attrs["applies"] == 0
    assert "neither of the two attractors" in neutral.attrs["reason"]


def test_agents_who_know_one_word_agree_at_once():
    law = consensus_times(majority(1.0, fidelity=1.0), n_agents=100)
    assert law["density"].sel(word="a", consensus_time=3).item() == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_agents": 9}, "n_agents = 9: expected at least 10 agents"),
        ({"quantiles": [0.5, 0.4]}, "expected rising numbers"),
        ({"success_rate": 0}, "success_rate = 0"),
        ({"first_test": 2}, "first_test = 2"),
    ],
)
def test_wrong_input_is_named(options, message):
    with pytest.raises(InputError, match=message):
        consensus_times(majority(0.55), **({"n_agents": 20} | options))


def test_three_words_are_refused():
    with pytest.raises(InputError, match="3 words"):
        consensus_times(random_policy(1, 3, 1), n_agents=20)


def exactly(failures, n_agents, allowed, first):
    """The chance of consensus by each round if rounds fail independently."""
    p = [binom.pmf(np.arange(allowed + 2), n_agents, f) for f in failures]
    for one in p:
        one[-1] = 1 - one[:-1].sum()  # more than are allowed
    recent, by = np.outer(p[first - 2], p[first - 1]), np.zeros(len(failures))
    number = np.arange(allowed + 2)
    for k in range(first, len(failures)):
        joint = recent[:, :, None] * p[k]
        passes = number[:, None, None] + number[:, None] + number <= allowed
        recent = np.where(passes, 0.0, joint).sum(0)
        by[k] = 1 - recent.sum()
    return by


@pytest.mark.parametrize(("n_agents", "allowed", "error"), [(24, 1, 0.014), (100, 6, 2e-3), (400, 24, 1e-3)])
def test_windows_of_independent_rounds_are_summed_exactly_but_for_the_rounds_before(n_agents, allowed, error):
    failures = 0.3 * np.exp(-0.5 * np.arange(15))
    by = consensus_by(failures[None], np.zeros((1, 15)), n_agents, allowed, 3)[0]
    np.testing.assert_allclose(by, exactly(failures, n_agents, allowed, 3), atol=error)
    one = binom.cdf(allowed, 3 * n_agents, 0.01)
    alike = consensus_by(np.full((1, 4), 0.01), np.zeros((1, 4)), n_agents, allowed, 3)[0]
    assert alike[3] == pytest.approx(one, abs=1e-5)


def test_many_failures_are_as_good_as_normal():
    failures, excess = 0.3 * np.exp(-0.5 * np.arange(15))[None], np.full((1, 15), 1e-3)
    few, many = (consensus_by(failures, excess, 5000, allowed, 3) for allowed in (300, 301))
    np.testing.assert_allclose(few, many, atol=0.02)


def test_failures_without_a_direction_are_those_of_the_linear_noise():
    policy = random_policy(2, 2, 2)
    equations = PathEquations(policy["q"].values, space_of(policy))
    found = course_noise(equations, None, 0.0)
    n_rounds = 6
    times = STEP * np.arange(n_rounds * STEPS + 1)
    moments = meanfield.finite_size(policy, times=times)
    Q, dQ, variance = (moments[name].values for name in ("word_share", "word_share_correction", "word_share_variance"))
    q = policy["q"].values
    x = forced_course(equations, None, 0.0).x[: len(times)]
    correction = -2 * (Q * dQ).sum(1) - variance.sum(1) - ((Q**2).sum(1) - x @ (q**2).sum(1))
    rounds = (correction[1:] + correction[:-1]).reshape(n_rounds, STEPS).mean(1) / 2
    np.testing.assert_allclose(found.correction[:n_rounds], rounds, rtol=0.01, atol=2e-3)


def test_spread_of_failures_is_that_of_simulated_groups():
    policy, n = majority(0.8), 2000
    found = course_noise(PathEquations(policy["q"].values, space_of(policy)), None, 0.0)
    runs = validation.simulate(policy, n_agents=n, runs=4000, seed=1, record_rounds=8, record=["success_rate"])
    window = 1 - runs["success_rate"].sel(round=slice(1, None)).squeeze().rolling(round=3).mean()
    for k in range(4, 8):
        # four standard errors of a variance, and the next order in 1/N
        assert n * window.isel(round=k).var("run").item() == pytest.approx(found.spread[k], rel=0.12)


def test_push_is_that_of_tilted_interactions():
    policy = random_policy(3, 2, 2)
    equations, rng = PathEquations(policy["q"].values, space_of(policy)), np.random.default_rng(1)
    x, momentum = rng.dirichlet(np.ones(len(equations.q))), rng.standard_normal(len(equations.q))
    first, second = push_slopes(equations, x, momentum)
    np.testing.assert_allclose(first, linear_push(equations, x, momentum), atol=1e-14)
    assert push(equations, x, momentum).sum() == pytest.approx(0, abs=1e-12)
    for size in (1e-3, 1e-4):
        rest = push(equations, x, size * momentum) - size * first
        np.testing.assert_allclose(rest, size**2 * second, atol=3 * size**3)
