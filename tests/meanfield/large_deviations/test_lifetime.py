"""Lifetimes against exact chains of N agents."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse.linalg import eigs

import meanfield
import theory
from _exact_chains import ExactChain
from _metastable import copying, counting_model, follower, most
from _policies import random_policy
from meanfield import InputError, Population, lifetime
from meanfield._large_deviations import exit_path
from meanfield._large_deviations.exit_path import agents_of, path_prefactor
from meanfield._large_deviations.exits import landscape
from meanfield._large_deviations.linearised import ends_of
from meanfield.toolbox import as_population
from validation import simulate
from validation.naming_game import Convention

pytestmark = pytest.mark.usefixtures("unchecked_types")

SIZES = [40, 80, 160]
COMMITTED = 0.05  # to A in the minimal naming game; from 0.0979 on B does not survive


def naming_game():
    return theory.minimal_naming_game.reaction_model(), [1 - COMMITTED, COMMITTED, 0.0]


@cache
def exact_lifetime(n_agents):
    """From the old state, in which most say B, until all others say A."""
    game, _ = naming_game()
    firm = round(n_agents * COMMITTED)
    chain = ExactChain(game, [n_agents - firm, firm, 0])
    return chain.first_passage(theirs()["composition"].values, chain.counts[:, 0] == n_agents - firm)


@cache
def theirs():
    """The old state."""
    game, masses = naming_game()
    found = lifetime(game, masses=masses, n_agents=SIZES)
    return found.isel(fixed_point=most(found, "B"))


def test_barrier_is_the_growth_rate_of_exact_lifetimes():
    """log(T(2N)/T(N))/N is Δ + O(1/N²); the control is the slope without extrapolation from small N."""
    times = {n: exact_lifetime(n) for n in SIZES}
    slopes = [np.log(times[2 * n] / times[n]) / n for n in (40, 80)]
    exact = (4 * slopes[1] - slopes[0]) / 3
    assert theirs()["barrier"].item() == pytest.approx(exact, abs=1e-4)
    assert abs(slopes[0] - exact) > 1e-4


def test_lifetimes_approach_exact_ones_as_agents_double():
    ratio = theirs()["lifetime"].values / [exact_lifetime(n) for n in SIZES]
    off = np.abs(ratio - 1)
    assert off[-1] < 0.01
    assert (off[1:] < 0.7 * off[:-1]).all()


@pytest.mark.slow
def test_policy_has_the_lifetime_of_its_exact_chain():
    """Two words and H = 2: conventions that are alike are left at half the rate at which the chain forgets."""
    model, sizes = counting_model(0.05), [4, 6, 8]
    exact = []
    for n in sizes:
        generator = ExactChain(model, [n]).generator
        start = np.random.default_rng(0).random(generator.shape[0])
        values = eigs(generator, k=2, which="LR", return_eigenvectors=False, ncv=40, v0=start)
        exact.append(-2 / values.real.min() / meanfield.TIME_PER_ROUND)
    found = lifetime(follower(0.05), n_agents=sizes)
    np.testing.assert_allclose(found["lifetime"].values[0], found["lifetime"].values[1], rtol=1e-4)
    off = found["lifetime"].values[0] / exact - 1
    assert 0 < off[-1] < 0.1
    assert (np.diff(off) < 0).all()


@pytest.mark.slow
def test_fields_of_words_and_of_channels_give_the_same_prefactor():
    """W² fields of words, and fields of the channels if the same agents are a reaction model."""
    game = Population(follower(0.05), committed={"A": 0.04})
    ground = landscape(game, None)
    (way,) = ground.ways_out(0)
    words, channels = (agents_of(way, mixture, ends_of(way)) for mixture in (as_population(game).mixture, None))
    one, two = (path_prefactor(exit_path.exit_path(way, agents), way, agents) for agents in (words, channels))
    assert max(one.error, two.error) < 0.01
    assert one.logarithm == pytest.approx(two.logarithm, abs=one.error + two.error)


@pytest.mark.slow
def test_lifetimes_of_longer_memories_are_those_of_simulated_populations():
    """H = 3, conventions alike: the mean lead of a word decays with twice the rate of leaving.

    Of 4,000 runs the lead at eight times has a standard error of at most 3 %, so that the rate has one of 2 %. What is
    left is of order 1/N.
    """
    policy, ratios = follower(0.1, length=3), []
    for n in (8, 12, 16):
        rounds = lifetime(policy, n_agents=[n])["lifetime"].values[0, 0]
        times = np.linspace(rounds / 3, 1.2 * rounds, 8).astype(int)
        options = {"initial": "A", "convention": Convention(1.0, first_test=int(times[-1]) + 1)}
        runs = simulate(
            policy, n_agents=n, runs=4000, seed=3, record_rounds=times[-1] + 1, max_rounds=times[-1] + 2, **options
        )
        lead = runs["word_share"].sel(word="A").isel(round=times, n_agents=0).mean("run").values - 0.5
        ratios.append(-rounds * np.polyfit(times, np.log(lead), 1)[0] / 2)
    assert abs(ratios[-1] - 1) < 0.06 < ratios[0] - 1 < 0.2


@pytest.mark.parametrize(
    ("fitness", "barrier", "reason"),
    [
        ((1.0, 0.9), [np.inf], "agents at this attractor never change"),
        ((1.0, 1.0), [], ""),
    ],
    ids=["Moran process", "voters"],
)
def test_two_states_have_no_lifetime(fitness, barrier, reason):
    """An agent copies another. Drift of two states is quadratic, so that it cannot change its sign three times."""
    found = lifetime(copying(fitness), n_agents=10)
    np.testing.assert_array_equal(found["barrier"], barrier)
    assert all(reason in one for one in found["reason"].values)


@pytest.mark.parametrize("committed", [{}, {"a": 0.05, "b": 0.2}], ids=len)
def test_memories_of_one_interaction_hold_one_convention(committed):
    """Sharp policies, which would hold two if they could, as followers with H = 2 do."""
    for seed in range(3):
        policy = random_policy(seed, concentration=0.1)
        points = meanfield.fixed_points(meanfield.Population(policy, committed=committed))
        assert points.sizes["fixed_point"] <= 2
        assert (points["stability"] == "stable").sum() <= 1
    assert (meanfield.fixed_points(follower(0.05))["stability"] == "stable").sum() == 2


@pytest.mark.slow
def test_covariances_that_take_too_much_memory_are_not_built(monkeypatch):
    """Many words would need W⁴ numbers for each two times."""
    monkeypatch.setattr(exit_path, "MOST_UNKNOWNS", 100)
    monkeypatch.setattr(exit_path.Departure, "correlations", None)
    found = lifetime(follower(0.05), n_agents=[10])
    assert np.isfinite(found["barrier"]).all() and np.isnan(found["lifetime"]).all()
    assert (found["reason"] == "the prefactor was not found").all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_agents": [1, 2]}, r"n_agents = \[1, 2\]: expected distinct whole numbers of at least 2"),
        ({"masses": [0.5, 0.5]}, r"masses is given: expected only with a ReactionModel"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        lifetime(follower(0.05), **arguments)
