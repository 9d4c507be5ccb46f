"""Probabilities of three conventions and more, against simulations, symmetries, closed cases, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr

import validation
from _policies import relabelled
from meanfield import Population, group_size_law, make_policy
from meanfield._finite_size.sectors import RAYS
from meanfield._finite_size.several_attractors import Crossing, Several

WORDS = ["A", "B", "C"]
# Logarithms of odds of each word, of agents with empty memories besides, and how often they err
FAMILY = {
    "one leads": ([0.1, 0.25, 0.1], [-0.26, 0.18, 0.09], 0.02),
    "two nearly alike": ([0.0, 0.01, -0.2], [0.0, 0.0, 0.0], 0.0),
    "a border near the start": ([0.2, 0.22, 0.24], [-0.2, -0.05, 0.1], 0.02),
    "no path over one saddle": ([0.219, 0.294, 0.27], [0.263, 0.071, -0.242], 0.02),
}


def follow(bias, first=(0.0, 0.0, 0.0), errors=0.0, words=WORDS):
    """Logit in what agents said and, twice as much, heard."""

    def answer(memory):
        said = np.array([sum((own == word) / 2 + (heard == word) for own, heard in memory) for word in words])
        weight = np.exp(2.5 * said + np.array(bias) + (0 if memory else np.array(first)))
        return dict(zip(words, (1 - errors) * weight / weight.sum() + errors / len(words), strict=True))

    return make_policy(answer, list(words), memory_length=2)


def simulated(policy, n_agents, runs, rounds=50):
    """Share of runs in which each word leads in the end."""
    found = validation.simulate(policy, n_agents=n_agents, runs=runs, seed=1, max_rounds=rounds, record_rounds=rounds)[
        "word_share"
    ].isel(n_agents=0, round=-1)
    return np.bincount(found.values.argmax(-1), minlength=found.sizes["word"]) / runs


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
def test_chances_of_three_words_are_those_of_simulated_populations(name):
    """40,000 runs: five standard errors are 0.0125 at most, and 0.0075 is left for the order 1/√N."""
    policy = follow(*FAMILY[name])
    law = group_size_law(policy, n_agents=[24])
    runs = simulated(policy, 24, 40_000)
    assert law["attractors"].item() == 3
    chances = law["word_probability"].values[0]
    np.testing.assert_allclose(chances, runs, atol=0.02)
    assert chances.sum() == pytest.approx(1, abs=2e-3)
    if name != "one leads":
        apart = ndtr(-law["word_kappa"].values * np.sqrt(24))
        assert abs(apart.sum() - apart.max() + law["probability"].item() - 1) > 0.03, "a control: saddles on their own"
    assert ("no path over the saddle" in law.attrs["reason"]) == (name == "no path over one saddle")


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY)
def test_chances_of_three_words_in_200_000_runs(name):
    policy = follow(*FAMILY[name])
    law = group_size_law(policy, n_agents=[24, 100])["word_probability"].values
    for chances, n_agents, error in zip(law, (24, 100), (0.009, 0.007), strict=True):
        np.testing.assert_allclose(chances, simulated(policy, n_agents, 200_000), atol=error)


@pytest.mark.slow
def test_chances_of_four_words():
    policy = follow([0.1, -0.1, 0.05, 0.2], [0, 0.1, 0, -0.05], words=list("ABCD"))
    law = group_size_law(policy, n_agents=[24, 100])["word_probability"].values
    for chances, n_agents, error in zip(law, (24, 100), (0.03, 0.018), strict=True):
        np.testing.assert_allclose(chances, simulated(policy, n_agents, 100_000), atol=error)
    np.testing.assert_allclose(law.sum(1), 1, atol=0.01)


@pytest.mark.slow
def test_chances_of_a_population_with_committed_agents():
    population = Population([follow(*FAMILY["one leads"]), follow([0, 0, 0.2])], [0.6, 0.4], committed={"A": 0.05})
    law = group_size_law(population, n_agents=[100])
    np.testing.assert_allclose(law["word_probability"].values[0], simulated(population, 100, 40_000), atol=0.02)


@pytest.mark.slow
def test_words_may_come_in_any_order():
    policy = follow(*FAMILY["one leads"])
    order = [2, 0, 1]
    ours, theirs = (group_size_law(one, n_agents=[24, 400]) for one in (policy, relabelled(policy, order)))
    theirs = theirs.isel(word=order)
    np.testing.assert_allclose(theirs["word_kappa"], ours["word_kappa"], rtol=1e-4)
    np.testing.assert_allclose(theirs["word_probability"], ours["word_probability"], atol=3e-3)
    assert ours["strong_word"].item() == theirs["strong_word"].item() == "B"


@pytest.mark.slow
def test_words_that_are_alike_have_the_same_chance(monkeypatch):
    every = group_size_law(follow([0, 0, 0]), n_agents=[10, 1000])
    np.testing.assert_allclose(every["word_probability"], 1 / 3, rtol=1e-12)
    assert every["strong_word"].item() == "" and every["kappa"].item() == 0
    monkeypatch.setitem(RAYS, 2, 48)
    law = group_size_law(follow([0, 0, -0.2]), n_agents=[2, 10, 1000])
    two = law["word_probability"].values
    np.testing.assert_allclose(two[:, 0], two[:, 1], atol=3e-3)
    assert two[2, 2] < 1e-3 < 0.05 < two[1, 2]
    assert law["strong_word"].item() == "" and law["kappa"].item() == 0


def test_a_word_that_is_never_said_leaves_the_law_of_the_others():
    ours = group_size_law(follow([0, 0.1, -60]), n_agents=[10, 1000], order=2)
    theirs = group_size_law(follow([0, 0.1], [0, 0], words=["A", "B"]), n_agents=[10, 1000], order=2)
    for name in ("kappa", "correction", "probability"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=2e-3)
    assert ours["word_probability"].values[:, 2].max() == 0 and np.isnan(ours["word_kappa"].values[2])
    chances = theirs["probability"].values
    np.testing.assert_allclose(theirs["word_probability"], np.stack([1 - chances, chances], 1), rtol=1e-12)
    np.testing.assert_allclose(theirs["word_kappa"], [theirs["kappa"].item(), 0], rtol=1e-12)


@pytest.mark.slow
def test_the_next_order_of_a_small_kappa_of_three_words_is_that_of_two():
    ours = group_size_law(follow([0, 0.004, -60]), n_agents=[24], order=2)
    theirs = group_size_law(follow([0, 0.004], [0, 0], words=["A", "B"]), n_agents=[24], order=2)
    assert theirs["kappa"].item() < 0.01
    np.testing.assert_allclose(ours["correction"], theirs["correction"], rtol=1e-2, atol=1e-4)


@pytest.mark.slow
def test_large_populations_and_the_critical_size():
    policy = follow(*FAMILY["one leads"])
    law = group_size_law(policy, n_agents=[10_000], level=0.95)
    tail = log_ndtr(-100 * law["kappa"].item())
    assert law["log_weak_probability"].item() == pytest.approx(tail, rel=0.02)
    critical = int(law["n_critical"].round().item())
    assert group_size_law(policy, n_agents=[critical])["probability"].item() == pytest.approx(0.95, abs=2e-3)


@pytest.mark.slow
def test_two_words_with_a_third_attractor_between_them():
    """Agents who remember no clear majority toss a coin. 20,000 runs, where the law leaves out 0.013 at N = 24."""

    def answer(memory):
        if len(memory) < 4:
            return 0.76
        lead = sum((own == "A") + (heard == "A") - 1 for own, heard in memory) / 4
        return 0.51 if abs(lead) <= 0.6 else 0.99 if lead > 0 else 0.01

    policy = make_policy(answer, ["A", "B"], memory_length=4)
    law = group_size_law(policy, n_agents=[24])
    assert law["attractors"].item() == 3 and law["strong_word"].item() == "A"
    found = validation.simulate(policy, n_agents=24, runs=20_000, seed=1, max_rounds=20, record_rounds=20)
    share = found["word_share"].isel(n_agents=0, round=-1, word=0)
    assert law["probability"].item() == pytest.approx((share < 0.9).mean().item(), abs=0.02)
    assert (share > 0.9).mean().item() > 0.02, "there is something to foretell"


@pytest.mark.slow
def test_attractors_at_which_no_word_leads_count_for_both():
    def answer(memory):
        lead = sum((own == "A") + (heard == "A") - 1 for own, heard in memory) / 4
        return 0.5 if len(memory) < 4 or abs(lead) <= 0.6 else 0.99 if lead > 0 else 0.01

    law = group_size_law(make_policy(answer, ["A", "B"], memory_length=4), n_agents=[2, 100])
    assert law["attractors"].item() == 3 and law["strong_word"].item() == "" and law["kappa"].item() > 0.1
    np.testing.assert_allclose(law["word_probability"], 0.5, atol=1e-6)
    np.testing.assert_array_equal(law["word_kappa"], 0)


def test_order_2_of_two_attractors_that_can_be_reached():
    """The third is never reached, since nobody says its word first."""

    def answer(memory):
        said = np.array([sum((own == word) / 2 + (heard == word) for own, heard in memory) for word in WORDS])
        weight = np.exp(2.5 * said + np.array([0 if memory else 0.12, 0, 0]))
        weight[2] *= said[2] > 0
        return dict(zip(WORDS, weight / weight.sum(), strict=True))

    law = group_size_law(make_policy(answer, WORDS, memory_length=2), n_agents=[24], order=2)
    assert law["attractors"].item() == 3 and np.isposinf(law["word_kappa"].values[2])
    assert abs(law["correction"].item()) > 1e-3 and law["word_probability"].values[0, 2] == 0


def test_a_consensus_without_noise_that_a_word_would_leave_is_no_saddle():
    """Agents who remember A and C say A, and nobody says C first. The search for what lies beside C did not end."""

    def answer(memory):
        said = np.array([sum((own == word) / 2 + (heard == word) for own, heard in memory) for word in WORDS])
        weight = np.exp(2.5 * said + np.array([0 if memory else 0.12, 0, 0])) * ((said > 0) if said[2] else [1, 1, 0])
        return dict(zip(WORDS, [1, 0, 0] if said[0] * said[2] else weight / weight.sum(), strict=True))

    law = group_size_law(make_policy(answer, WORDS, memory_length=2), n_agents=[24])
    assert law["attractors"].item() == 2 and 0.04 < law["kappa"].item() < 0.05
    assert law["word_probability"].values[0, 2] == 0 and np.isnan(law["word_kappa"].values[2])


@pytest.mark.parametrize(
    "crossings",
    [
        [Crossing(0, 1, 0.1), Crossing(0, 2, 0.2), Crossing(0, 3, 0.3)],
        [Crossing(0, 1, 0.3), Crossing(1, 2, 0.1)],
        [Crossing(0, 1, np.inf), Crossing(1, 2, 0.2)],
        [Crossing(0, 1, 0.2, None, 1.0), Crossing(0, 2, 0.3), Crossing(2, 3, 0.4, None, 2.0)],
    ],
)
def test_chances_of_few_agents_add_up_to_one(crossings):
    chances, log_weak = Several(0, crossings, None).chances(np.array([2.0, 10.0, 1e4]))
    assert min(one.min() for one in chances.values()) >= 0
    np.testing.assert_allclose(sum(chances.values()), 1, rtol=1e-14)
    np.testing.assert_allclose(chances[0], 1 - np.exp(log_weak), atol=1e-14)


@pytest.mark.slow
def test_five_words_are_refused():
    law = group_size_law(follow([0, 0.1, 0.2, 0.15, 0.05], [0] * 5, words=list("ABCDE")), n_agents=[24])
    assert law.attrs["applies"] == 0 and law["word_probability"].isnull().all()
    assert "there are 5 attractors around one fixed point: the law takes at most 4" in law.attrs["reason"]
