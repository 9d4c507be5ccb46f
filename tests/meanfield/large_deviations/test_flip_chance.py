"""The chance that a committed minority flips N agents in time, against simulation and in its limits."""

import numpy as np
import pytest

import meanfield
import validation
from _metastable import follower
from _policies import random_policy
from meanfield import InputError, flip_chance
from meanfield._large_deviations.pace import Courses

pytestmark = pytest.mark.usefixtures("unchecked_types")


def one_memory(*says_a):
    """H = 1: the chances to say A after AA, AB, BA and BB."""
    return meanfield.make_policy(np.array([0.5, *says_a]), ["A", "B"])


def compared(policy, n_agents, numbers, runs, rounds=30, word="B"):
    """The chances, and the fractions of simulated runs, which share no code with them."""
    options = {"n_agents": n_agents, "committed_word": word, "numbers": numbers, "rounds": rounds}
    simulated = validation.naming_game.committed_minority(policy, **options, runs=runs, seed=1)
    return flip_chance(policy, **options), simulated


def test_chances_are_those_of_simulated_groups():
    """1,500 runs: errors below 0.04 by chance at three standard errors. The control is one committed agent more."""
    numbers = [2, 3, 4, 5, 6, 7]
    ours, simulated = compared(follower(0.005, tie=0.52), 30, numbers, 1500, rounds=60)
    off = ours["flipped"].values[0] - simulated["flipped"].values
    assert np.abs(off).max() < 0.03 + 0.04
    assert np.abs(ours["flipped"].values[0, 1:] - simulated["flipped"].values[:-1]).max() > 0.3
    assert ours["mean_field"].item() == pytest.approx(simulated["mean_field"].item())


@pytest.mark.slow
def test_chances_converge_to_those_of_simulated_groups_as_agents_double():
    """4,000 runs: standard error 0.008. Numbers at which about half of the groups flip."""
    largest = []
    for n_agents, numbers in ((15, [1, 2, 3, 4]), (60, [8, 9, 10, 11, 12]), (240, [38, 39, 40, 41, 42])):
        ours, simulated = compared(follower(0.005, tie=0.52), n_agents, numbers, 4000, rounds=100)
        largest.append(np.abs(ours["flipped"].values[0] - simulated["flipped"].values).max())
    assert largest[0] < 0.12
    assert largest[1] < 0.05
    assert largest[2] < 0.03


@pytest.mark.slow
@pytest.mark.parametrize(("length", "rounds", "numbers"), [(3, 10, [58, 64]), (4, 30, [37, 40])])
def test_memories_lag_behind_a_fast_share(length, rounds, numbers, monkeypatch):
    """1,000 runs: standard error 0.016. The control is the line at its own pace."""
    policy = follower(0.005, tie=0.52, length=length)
    ours, simulated = compared(policy, 100, numbers, 1000, rounds=rounds)
    assert np.abs(ours["flipped"].values[0] - simulated["flipped"].values).max() < 0.13 + 0.05
    monkeypatch.setattr(Courses, "pace", lambda self, Q, *_: np.ones_like(Q))
    adapted = flip_chance(policy, n_agents=100, committed_word="B", numbers=numbers, rounds=rounds)
    assert (simulated["flipped"].values - adapted["flipped"].values[0]).max() > 0.4


@pytest.mark.slow
def test_mean_rounds_are_those_of_simulated_groups():
    """From 0.95 of the critical mass on, to a factor of 1.2; the standard error of 1,000 means is 3 %."""
    policy = follower(0.005, tie=0.52)
    ours, simulated = compared(policy, 100, [17, 18, 20, 24], 1000, rounds=2000)
    assert ours["mean_field"].item() == pytest.approx(17.35, abs=0.01)
    assert (simulated["flipped"] == 1).all()
    ratio = ours["mean_round"].values[0] / simulated["flip_round"].values
    assert np.abs(np.log(ratio)).max() < np.log(1.2)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "memory", "n_agents", "numbers"), [("llama3", 3, 48, [3, 4, 5, 6, 8])])
def test_policies_of_real_runs(model, memory, n_agents, numbers, data_folder):
    """2,000 runs: standard error 0.011. The runs of [001] Fig. 3B themselves lie in their 99 % bands."""
    counts = meanfield.datasets.ai_norms(data_folder).choice_counts
    own = counts[(counts["model"] == model) & (counts["memory_length"] == memory) & (counts["options"] == "M_Q")]
    policy = validation.populations.empirical_policy(own)
    ours, simulated = compared(policy, n_agents, numbers, 2000, word="Q")
    assert np.abs(ours["flipped"].values[0] - simulated["flipped"].values).max() < 0.06
    assert ours["smallest"].item() == simulated["smallest"].item() == 5


@pytest.mark.slow
def test_it_tends_to_the_critical_mass():
    """Of many agents with many rounds the fold, from which on some wait for ever, decides: the distance is of order
    N^(-2/3)."""
    policy, off = follower(0.005, tie=0.52), []
    found = flip_chance(policy, n_agents=[1000, 10_000, 100_000], committed_word="B", rounds=3000)
    off = (1 - found["smallest"] / found["mean_field"]).values
    assert (off > 0).all()
    assert off[1] < 0.4 * off[0]
    assert off[2] < 0.4 * off[1]


@pytest.mark.slow
def test_more_committed_agents_and_more_rounds_flip_more():
    policy = follower(0.02)
    options = {"n_agents": [10, 40], "committed_word": "A", "numbers": [1, 2, 3, 6]}
    short, long = (flip_chance(policy, **options, rounds=rounds) for rounds in (10, 100))
    assert (short["flipped"] <= long["flipped"] + 1e-9).all()
    for found in (short, long):
        assert (found["flipped"].diff("n_committed") >= -1e-9).all()
        assert (found["mean_round"].diff("n_committed") < 0).all()
    strict = flip_chance(policy, **options, rounds=100, success_rate=1.0)
    assert (strict["flipped"] <= long["flipped"] + 1e-9).all()


def test_groups_do_not_depend_on_larger_ones():
    options = {"committed_word": "B", "numbers": [1, 3]}
    alone, beside = (flip_chance(follower(0.05), n_agents=sizes, **options) for sizes in (12, [12, 500]))
    for name in ("flipped", "mean_round", "smallest"):
        np.testing.assert_allclose(beside[name].values[0], alone[name].values[0], rtol=1e-12)


def test_groups_with_few_slow_modes_have_no_chances():
    """Agents who hardly ever stop to say their last word."""
    policy = meanfield.make_policy(
        lambda memory: 0.5 if not memory else 0.999 if memory[-1][0] == "A" else 0.001, ["A", "B"], memory_length=2
    )
    found = flip_chance(policy, n_agents=24, committed_word="B", numbers=[1])
    assert np.isnan(found["flipped"]).all() and found.attrs["reason"]


def test_words_that_are_alike_flip_alike():
    one, two = (flip_chance(follower(0.05), n_agents=20, committed_word=w, numbers=[1, 2, 3]) for w in "AB")
    np.testing.assert_allclose(one["flipped"], two["flipped"], rtol=1e-6)


def test_the_smallest_number_has_the_chance_and_one_less_has_not():
    options = {"n_agents": 40, "committed_word": "B", "chance": 0.9}
    smallest = int(flip_chance(follower(0.02), **options)["smallest"].item())
    chances = flip_chance(follower(0.02), **options, numbers=[smallest - 1, smallest])["flipped"].values[0]
    assert chances[0] < 0.9 <= chances[1]


@pytest.mark.slow
def test_many_agents_flip_where_infinitely_many_do():
    """With a deadline of 30 rounds more than the critical mass is needed, and N decides how sharply."""
    options = {"committed_word": "B", "numbers": np.arange(1800, 2201, 50)}
    found = flip_chance(follower(0.005, tie=0.52), n_agents=10_000, **options)
    chances = found["flipped"].values[0]
    assert (np.diff(chances) >= -1e-6).all()
    assert chances[0] < 1e-6 and chances[-1] > 0.999
    assert chances[4] < 0.5 <= chances[5] and 2000 < found["smallest"].item() <= 2050


@pytest.mark.slow
def test_agents_who_never_err_are_the_limit_of_those_who_hardly_do():
    found = flip_chance(follower(0.0), n_agents=24, committed_word="B", numbers=[1, 7])
    assert found["flipped"].values[0, 0] < 0.01 and found["flipped"].values[0, 1] > 0.99
    with_floor = flip_chance(follower(1e-16), n_agents=24, committed_word="B", numbers=[1, 7])
    np.testing.assert_allclose(with_floor["flipped"], found["flipped"], atol=1e-9)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (one_memory(1, 1, 0, 0), "2 sets"),  # says its own word
        (one_memory(0.3, 0.3, 0.3, 0.3), "does not follow the word share"),
        (one_memory(0.2, 0.8, 0.2, 0.8), "for 2.5 rounds"),  # mostly the word that it has not heard
        (meanfield.make_policy(random_policy(3, 2, 2, 0.3)["q"].values, ["A", "B"]), "oscillates"),
    ],
)
def test_policies_without_a_slow_mode_say_why(policy, reason):
    found = flip_chance(policy, n_agents=24, committed_word="A", numbers=[1, 5])
    assert np.isnan(found["flipped"]).all()
    assert np.isnan(found["smallest"]).all()
    assert reason in found.attrs["reason"]


def test_numbers_beyond_a_group_have_no_chance():
    found = flip_chance(follower(0.05), n_agents=[5, 20], committed_word="A", numbers=[2, 12])
    assert np.isnan(found["flipped"]).values.tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_agents": 1}, r"n_agents = 1: expected distinct whole numbers"),
        ({"n_agents": 10**6}, r"largest of n_agents = 1000000: expected a whole number from 2 to 100000"),
        ({"numbers": [24]}, r"numbers = 24: expected a whole number from 1 to 23"),
        ({"numbers": [0]}, r"numbers = 0: expected a whole number from 1 to 23"),
        ({"numbers": [2, 2]}, r"numbers = \[2, 2\]: expected different"),
        ({"committed_word": "C"}, r"word = 'C': expected one of A, B"),
        ({"rounds": 2}, r"rounds = 2: expected a whole number of at least 3"),
        ({"success_rate": 0}, r"success_rate = 0: expected"),
        ({"chance": 1}, r"chance = 1: expected"),
        ({"policy": random_policy(0, 3)}, r"policy has 3 words: expected 2"),
    ],
)
def test_wrong_input_is_named(arguments, message):
    given = {"policy": follower(0.05), "n_agents": 24, "committed_word": "a" if "policy" in arguments else "A"}
    with pytest.raises(InputError, match=message):
        flip_chance(**given | arguments)
