"""Policies of more than two words from a part of their prompts."""

from collections import Counter

import numpy as np
import pytest
from scipy.special import ndtri, softmax
from test_gaussian_process import counts, random_memories

import validation
from meanfield import InputError, MemorySpace
from policy_extraction import lazy_policy, predicted_policy
from policy_extraction.backends import TableBackend
from policy_extraction.measuring._gaussian_process import mixed
from policy_extraction.measuring._memories import NONE, codes_of, states_of
from policy_extraction.measuring._predicted.explore import (
    Game,
    ShareExploration,
    contrasts_of,
    with_answers,
    word_shares,
)


def follow(n_words, strength=1.0, seed=0):
    """A policy that says what it heard."""
    lean = np.random.default_rng(seed).normal(0, 0.4, n_words)
    return lambda codes: softmax(strength * counts(codes, n_words).sum(1) + lean, axis=1)


def parity(n_words):
    """A policy that says what it said and heard an odd number of times."""
    return lambda codes: softmax(2.0 * (counts(codes, n_words).sum(1) % 2) + np.arange(n_words) / 10, axis=1)


def lawless(n_words):
    """A policy without a rule: each memory has its own random logits."""

    def q(codes):
        states = states_of(codes, n_words).astype(np.uint64)[:, None] + np.arange(n_words, dtype=np.uint64) * 2**40
        return softmax(1.5 * ndtri((mixed(states) >> np.uint64(11)).astype(float) / 2**53 + 2.0**-54), axis=1)

    return q


def test_answers_are_given_where_memories_were_asked():
    codes = random_memories(30, 3, 2, seed=1)
    known = follow(3)(codes[:20])
    q = with_answers(codes[:20], known, lambda codes: np.zeros((len(codes), 3)))(codes)
    np.testing.assert_array_equal(q[:20], known)
    np.testing.assert_allclose(q[20:], 1 / 3)


def test_populations_are_those_of_the_exact_chain():
    """Two agents have mirrored memories; 4.5 standard errors. The control exchanges the words."""
    q, memories = follow(3, 2.0), {(NONE, NONE): 1.0}

    def spoken(codes):
        mirrored = [NONE if code == NONE else code % 3 * 3 + code // 3 for code in codes]
        return q(np.array([codes, mirrored]))

    for _ in range(6):  # interactions, of three rounds
        after = Counter()
        for (new, old), p in memories.items():
            first, second = spoken((new, old))
            for a, b in np.ndindex(3, 3):
                after[3 * a + b, new] += p * first[a] * second[b]
        memories = after
    expected = sum(p * spoken(codes).mean(0) for codes, p in memories.items())
    shares = word_shares(q, Game(2, 3, 2, 3), 4000, np.random.default_rng(1))
    noise = 4.5 * shares.std(0) / np.sqrt(4000)
    assert (abs(shares.mean(0) - expected) < noise).all()
    assert (abs(shares.mean(0) - expected[[1, 2, 0]]) > noise).any()


@pytest.mark.slow
def test_populations_are_those_of_simulate():
    """The numbers that are reported, of a policy as `simulate` takes it."""
    words, rounds = ("A", "B", "C"), 12
    options = {"words": words, "memory_length": 2, "n_agents": 8, "rounds": rounds, "temperature": 1.0, "budget": 270}
    found = predicted_policy(table(follow(3, 0.9), words, 2), **options)
    ours = word_shares(found._function, Game(8, rounds, 2, 3), 4000, np.random.default_rng(1))
    policy = validation.naming_game.LazyPolicy(found, found.words, found.memory_length, name=found.name)
    runs = validation.simulate(policy, n_agents=8, runs=4000, seed=1, max_rounds=rounds, record_rounds=rounds)
    theirs = runs["word_share"].isel(n_agents=0).sel(round=rounds).values
    noise = np.sqrt((ours.var(0) + theirs.var(0)) / 4000)
    assert (abs(ours.mean(0) - theirs.mean(0)) < 3.5 * noise + 1e-12).all()
    np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.1, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "n_words"),
    [(follow, 3), *(pytest.param(*slow, marks=pytest.mark.slow) for slow in ((parity, 4), (follow, 10)))],
)
def test_shares_are_inside_their_intervals(law, n_words):
    tolerance, game = (0.2, Game(8, 4, 2, 3)) if n_words == 3 else (0.1, Game(12, 8, 2, n_words))
    q = law(n_words)
    exploration = ShareExploration(q, tolerance, 3, game)
    *_, known = exploration.run(300)
    truth = word_shares(q, game, 4000, np.random.default_rng(1))
    assert exploration.enough(known) and known.half.max() <= tolerance
    assert (abs(known.value - truth.mean(0)) <= known.half + 3 * truth.std(0) / np.sqrt(4000)).all()


@pytest.mark.slow
def test_a_policy_without_a_rule_is_not_taken_as_known():
    game = Game(12, 8, 2, 5)
    exploration = ShareExploration(lawless(5), 0.02, 3, game)
    *_, known = exploration.run(125)
    assert not exploration.enough(known)
    there = random_memories(300, 5, 2, seed=8)
    there = there[~np.isin(states_of(there, 5), states_of(exploration.codes, 5))]
    deviation = exploration.doubt.scale * np.sqrt(exploration.posterior.variances(there))
    inside = abs(contrasts_of(lawless(5)(there)) - exploration.posterior.mean.contrasts(there)) < 1.96 * deviation
    assert 0.9 < inside.mean() < 0.995


def table(q, words, memory_length):
    number = {word: i for i, word in enumerate(words)}

    def law(memory, order):
        codes = codes_of([tuple((number[own], number[partner]) for own, partner in memory)], len(words), memory_length)
        return dict(zip(words, q(codes)[0].tolist(), strict=True))

    return TableBackend(law, words, memory_length)


@pytest.fixture(scope="module")
def back_end():
    return table(follow(3), ("A", "B", "C"), 2)


def test_the_policy_of_a_back_end(back_end):
    words = ("A", "B", "C")
    policy = predicted_policy(back_end, words=words, memory_length=2, n_agents=8, rounds=3, temperature=1.0, budget=270)
    result = policy.result
    assert result.attrs["prompts_used"] == 6 * result.attrs["memories_asked"] == 6 * result.sizes["state"] <= 270
    assert result.attrs["reached"] == 0 and result["word_share_low"].isnull().all()  # no 59 tests
    every = [MemorySpace(3, 2).memory(state) for state in range(91)]
    truth = lazy_policy(back_end, words, 2, temperature=1.0)(every)
    states = result["state"].values
    np.testing.assert_array_equal(policy(every)[states], truth[states])
    assert abs(policy(every) - truth).max() < 0.05
    one, again = policy.draw(2, seed=1), policy.draw(1, seed=1)
    np.testing.assert_array_equal(one[0](every), again[0](every))
    assert abs(one[0](every) - one[1](every)).max() > 1e-6
    assert (policy.words, policy.memory_length, policy.name) == (words, 2, "table")
    with pytest.raises(InputError, match=r"word in memory = 3: expected a whole number from 0 to 2"):
        policy([((0, 3),)])


def test_every_memory_of_a_sure_policy():
    words = ("A", "B", "C")
    sure = table(lambda codes: np.tile([1.0, 1e-300, 1e-300], (len(codes), 1)), words, 2)
    policy = predicted_policy(sure, words=words, memory_length=2, n_agents=4, rounds=4, temperature=1.0)
    assert policy.result.attrs["reason"] == "every memory seen in games was asked"
    np.testing.assert_allclose(policy.result["word_share"], [1, 0, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"memory_length": 6}, "memory_length = 6: expected at most 5"),
        ({"n_agents": 1}, "n_agents = 1: expected"),
        ({"n_agents": 100, "rounds": 93}, "rounds = 93: expected at most 9,259 interactions"),
        ({"words": tuple(map(str, range(51)))}, "there are 51, expected at most 50"),
        ({"tolerance": 0.001}, "tolerance = 0.001: expected a number"),
        ({"budget": 35}, "budget = 35: expected a whole number of at least 72"),
        ({"orders": 4}, "number = 4: expected a multiple of 3"),
        ({"seed": -1}, "seed = -1: expected"),
        ({"words": ("A",)}, "words"),
    ],
)
def test_wrong_arguments(back_end, wrong, message):
    with pytest.raises(InputError, match=message):
        predicted_policy(back_end, **{"words": ("A", "B", "C"), "memory_length": 2} | wrong)
