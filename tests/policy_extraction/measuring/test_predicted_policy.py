"""Policies of more than two words from a part of their prompts."""

import numpy as np
import pytest
from scipy.special import ndtri, softmax

import validation
from meanfield import InputError, MemorySpace
from policy_extraction import lazy_policy, predicted_policy
from policy_extraction.backends import TableBackend
from policy_extraction.measuring._predicted.explore import Exploration
from policy_extraction.measuring._predicted.kernel import CENTRE, SPREAD, Kernel
from policy_extraction.measuring._predicted.likelihood import Covariances, basis, contrasts, contrasts_of, fitted, loss
from policy_extraction.measuring._predicted.memories import (
    NONE,
    all_patterns,
    codes_of,
    memory_of,
    pattern_numbers,
    states_of,
)
from policy_extraction.measuring._predicted.population import Game, word_shares
from policy_extraction.measuring._predicted.posterior import Answered, Posterior, Waves, mixed


def random_memories(n, n_words, memory_length, seed):
    """Different rows of codes; the first is the empty memory."""
    random, space = np.random.default_rng(seed), MemorySpace(n_words, memory_length)
    states = np.append(0, 1 + random.choice(space.n_states - 1, n - 1, replace=False))
    return codes_of([space.memory(int(state)) for state in states], n_words, memory_length)


def counts(codes, n_words):
    """How often each word was said and heard, shape (n, 2, W)."""
    own, partner = codes // n_words, codes % n_words
    said = [(each[..., None] == np.arange(n_words)) & (codes != NONE)[..., None] for each in (own, partner)]
    return np.stack(said, axis=1).sum(2)


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


def asked(n=14, n_words=4, memory_length=3, seed=1):
    codes = random_memories(n, n_words, memory_length, seed)
    q = np.random.default_rng(seed).dirichlet(np.ones(n_words), n)
    return Answered(codes, q, all_patterns(memory_length))


def kernel(seed=1):
    return CENTRE + 0.3 * SPREAD * np.random.default_rng(seed).standard_normal(len(CENTRE))


def test_memories_as_numbers():
    space = MemorySpace(3, 3)
    memories = [space.memory(state) for state in range(space.n_states)]
    codes = codes_of(memories, 3, 3)
    assert (states_of(codes, 3) == np.arange(space.n_states)).all()
    assert [memory_of(row, 3) for row in codes] == memories
    patterns, number = all_patterns(3), pattern_numbers(codes, 3)
    found = np.stack([patterns.own[number].sum(-1), patterns.partner[number].sum(-1)], axis=1)
    assert (found == counts(codes, 3)).all()
    assert (patterns.length[number] == (codes != NONE).sum(1)[:, None]).all()
    newest = codes_of([((0, 0), (1, 2))], 3, 3)  # said 1 and heard 2 at last
    assert patterns.own[pattern_numbers(newest, 3)[0]][:, 0].tolist() == [0, 1, 0]


def test_the_density_has_the_gradient_of_its_differences():
    some, parameters = asked(), kernel()
    between = Covariances(some.codes, some.codes, some.patterns, 4)
    _, gradient = loss(parameters, between, some.q)
    steps = 1e-5 * np.eye(len(parameters))
    differences = [(loss(parameters + e, between, some.q)[0] - loss(parameters - e, between, some.q)[0]) for e in steps]
    np.testing.assert_allclose(gradient, np.array(differences) / 2e-5, atol=1e-3)


def test_covariances_of_contrasts_are_those_of_logits_written_out():
    some, parameters = asked(n=5, n_words=3), kernel()
    chosen, n_words = Kernel.of(parameters), 3
    numbers, a = pattern_numbers(some.codes, n_words), chosen.sizes
    every = some.patterns.at(numbers.ravel())
    trend, smooth, rough = chosen.parts(every, every)
    same_word = np.tile(np.eye(3), (5, 5))
    memories = a.bias + a.near * chosen.near(some.codes, some.codes) + a.alone * np.eye(5)
    logits = a.trend * trend + a.smooth * smooth + a.rough * rough
    logits += same_word * (a.own * smooth + np.kron(memories, np.ones((3, 3))))
    between = Covariances(some.codes, some.codes, some.patterns, n_words)
    found = between.joined(chosen, between.parts(chosen)).reshape(10, 10)
    Q = np.kron(np.eye(5), basis(n_words))
    np.testing.assert_allclose(found, Q.T @ logits @ Q, atol=1e-12)
    np.testing.assert_allclose(contrasts(logits, n_words).reshape(10, 10), Q.T @ logits @ Q, atol=1e-12)


def test_names_of_words_do_not_matter():
    """Words exchanged in all memories and answers exchange words in all predictions."""
    some, order = asked(), np.array([2, 0, 3, 1])
    new = np.where(some.codes == NONE, NONE, order[some.codes // 4] * 4 + order[some.codes % 4])
    exchanged = some._replace(codes=new, q=some.q[:, np.argsort(order)])
    there = random_memories(30, 4, 3, seed=5)
    moved = np.where(there == NONE, NONE, order[there // 4] * 4 + order[there % 4])
    q, moved_q = (Posterior(Kernel.of(kernel()), each).mean(at) for each, at in ((some, there), (exchanged, moved)))
    np.testing.assert_allclose(moved_q[:, order], q, rtol=1e-6)
    assert abs(moved_q - q).max() > 0.1


def test_draws_have_the_mean_and_covariance_of_the_posterior():
    some = asked()
    posterior, there = Posterior(Kernel.of(kernel()), some), random_memories(22, 4, 3, seed=1)[14:]
    mean, covariance = posterior.predicted(there)
    np.testing.assert_allclose(posterior.mean.logits(there) @ basis(4), mean, atol=1e-8)
    draws = [posterior.draw(np.random.default_rng(k), 1.0) for k in range(3000)]
    assert (draws[0](some.codes) == some.q).all()
    y = np.array([(each.logits(there) @ basis(4) - mean).ravel() for each in draws])
    deviation = np.sqrt(np.diag(covariance))
    assert abs(y.mean(0) / deviation).max() < 4 / np.sqrt(3000)
    assert abs(np.cov(y.T) / np.outer(deviation, deviation) - covariance / np.outer(deviation, deviation)).max() < 0.1
    wide = posterior.draw(np.random.default_rng(0), 2.0)
    np.testing.assert_allclose(wide.logits(there) @ basis(4) - mean, 2 * y[0].reshape(mean.shape), atol=1e-8)


def test_words_that_are_never_said_do_not_make_the_others_sure():
    """Seven of ten words have no chance in a memory that does not hold them, the others have random logits."""
    n_words, codes = 10, random_memories(80, 10, 2, seed=3)[1:]
    random = np.random.default_rng(4)
    said = counts(codes, n_words).sum(1) > 0
    q = softmax(np.where(said, counts(codes, n_words).sum(1) + 0.7 * random.standard_normal(said.shape), -60), axis=1)
    known, patterns = Answered(codes[:50], q[:50], all_patterns(2)), all_patterns(2)
    parameters = fitted(known.codes, known.q, patterns, CENTRE, 1, random)[0]
    mean, covariance = Posterior(Kernel.of(parameters), known).predicted(codes[50:])
    errors = []
    for k, (row, words) in enumerate(zip(q[50:], said[50:], strict=True)):
        pair = np.flatnonzero(words)[:2]
        if len(pair) == 2:
            direction = basis(n_words)[pair[0]] - basis(n_words)[pair[1]]
            block = covariance.reshape(29, 9, 29, 9)[k, :, k]
            errors.append((np.log(row[pair]) @ [1, -1] - mean[k] @ direction) / np.sqrt(direction @ block @ direction))
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.5  # 29 errors; it was 2 where such words counted as exact


def test_random_functions_of_memories_have_the_covariance_near():
    chosen, there = Kernel.of(kernel()), random_memories(6, 3, 2, seed=2)
    random = np.random.default_rng(0)
    values = np.array([Waves.drawn(chosen, 2, 3, random)(there)[:, 0] for _ in range(4000)])
    expected = chosen.sizes.near * chosen.near(there, there) + chosen.sizes.alone * np.eye(6)
    assert abs(values.T @ values / 4000 - expected).max() < 0.12 * expected.max()


@pytest.mark.parametrize(("strength", "rounds"), [(0.0, 2), (0.9, 12)])
def test_populations_are_those_of_simulate(strength, rounds):
    q, game = follow(3, strength), Game(8, rounds, 2, 3)
    ours = word_shares(q, game, 4000, np.random.default_rng(1))
    policy = validation.naming_game.LazyPolicy(lambda memories: q(codes_of(memories, 3, 2)), list("ABC"), 2)
    runs = validation.simulate(policy, n_agents=8, runs=4000, seed=1, max_rounds=rounds, record_rounds=rounds)
    theirs = runs["word_share"].isel(n_agents=0).sel(round=rounds).values
    noise = np.sqrt((ours.var(0) + theirs.var(0)) / 4000)
    assert (abs(ours.mean(0) - theirs.mean(0)) < 3.5 * noise + 1e-12).all()
    np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.1, atol=1e-12)


@pytest.mark.parametrize(
    ("law", "n_words"), [(follow, 3), (parity, 4), pytest.param(follow, 10, marks=pytest.mark.slow)]
)
def test_shares_are_inside_their_intervals(law, n_words):
    q, game = law(n_words), Game(12, 8, 2, n_words)
    exploration = Exploration(q, game, 0.1, seed=3)
    *_, known = exploration.run(300)
    truth = word_shares(q, game, 4000, np.random.default_rng(1))
    assert exploration.enough(known) and known.half.max() <= 0.1
    assert (abs(known.value - truth.mean(0)) <= known.half + 3 * truth.std(0) / np.sqrt(4000)).all()


@pytest.mark.slow
def test_a_policy_without_a_rule_is_not_taken_as_known():
    game = Game(12, 8, 2, 5)
    exploration = Exploration(lawless(5), game, 0.02, seed=3)
    *_, known = exploration.run(125)
    assert not exploration.enough(known)
    there = random_memories(300, 5, 2, seed=8)
    there = there[~np.isin(states_of(there, 5), states_of(exploration.answered.codes, 5))]
    mean, covariance = exploration.posterior.predicted(there)
    inside = abs(contrasts_of(lawless(5)(there)) - mean).ravel() < 1.96 * exploration.scale * np.sqrt(
        np.diag(covariance)
    )
    assert 0.9 < inside.mean() < 0.995


def table(q, words, memory_length):
    number = {word: i for i, word in enumerate(words)}

    def law(memory, order):
        codes = codes_of([tuple((number[own], number[partner]) for own, partner in memory)], len(words), memory_length)
        return dict(zip(words, q(codes)[0].tolist(), strict=True))

    return TableBackend(law, words, memory_length)


def test_the_policy_of_a_back_end():
    words = ("A", "B", "C")
    back_end = table(follow(3), words, 2)
    policy = predicted_policy(back_end, words=words, memory_length=2, n_agents=8, rounds=6, temperature=1.0, budget=270)
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
    runs = validation.simulate(validation.naming_game.LazyPolicy(policy, policy.words, 2), n_agents=8, runs=5, seed=1)
    assert runs["word"].values.tolist() == list(words)


def test_every_memory_of_a_sure_policy():
    words = ("A", "B", "C")
    sure = table(lambda codes: np.tile([1.0, 1e-300, 1e-300], (len(codes), 1)), words, 3)
    policy = predicted_policy(sure, words=words, temperature=1.0)
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
def test_wrong_arguments(wrong, message):
    with pytest.raises(InputError, match=message):
        predicted_policy(table(follow(3), ("A", "B", "C"), 3), **{"words": ("A", "B", "C")} | wrong)


def test_other_memories_are_refused():
    words = ("A", "B", "C")
    policy = predicted_policy(table(follow(3), words, 2), words=words, memory_length=2, temperature=1.0, budget=72)
    with pytest.raises(InputError, match=r"word in memory = 3: expected a whole number from 0 to 2"):
        policy([((0, 3),)])
