"""Policies of many words: they recover laws that made the choices, whatever the words are called."""

import numpy as np
import pytest

from _real_populations import N, counts_table, ordered_populations
from meanfield import InputError, MemorySpace, make_policy
from validation.naming_game._stopped_runs import Stop, play_real_runs, play_success_curves
from validation.populations import choice_scores, empirical_policy, success_curves, validate
from validation.populations._back_off import BackOffPolicy
from validation.populations._choices import NOTHING, Choices

WORDS = tuple("ABCDEF")


def random_memories(random: np.random.Generator, n: int, n_words: int, length: int) -> np.ndarray:
    """Some short, others full, with words that differ in frequency."""
    memory = random.choice(n_words, size=(n, length, 2), p=random.dirichlet(np.full(n_words, 2.0)))
    held = random.integers(length + 1, size=n)
    memory[np.arange(length) < length - held[:, None]] = NOTHING
    return memory


def exchangeable(memory: np.ndarray, n_words: int) -> np.ndarray:
    """A policy that knows no names: it prefers what was heard last, and what was said or heard often."""
    weights = np.ones((len(memory), n_words))
    for word in range(n_words):
        times = (memory == word).sum((1, 2))
        weights[:, word] = np.exp(0.6 * times + 1.5 * (memory[:, -1, 1] == word)) * np.where(times == 0, 0.3, 1)
    return weights / weights.sum(1, keepdims=True)


def as_tuples(memory: np.ndarray) -> list[tuple]:
    return [tuple((int(a), int(b)) for a, b in one if a != NOTHING) for one in memory]


def choices_by(q: np.ndarray, memory: np.ndarray, random: np.random.Generator) -> Choices:
    chosen = (q.cumsum(1) < random.random((len(q), 1))).sum(1).clip(max=q.shape[1] - 1)
    return as_choices(memory, chosen, WORDS[: q.shape[1]])


def as_choices(memory: np.ndarray, chosen: np.ndarray, words: tuple[str, ...]) -> Choices:
    return Choices(memory, chosen, np.ones(len(chosen)), np.zeros(len(chosen), dtype=int), words)


def few_choices(seed: int = 0, n: int = 400, n_words: int = 6, length: int = 5) -> Choices:
    random = np.random.default_rng(seed)
    memory = random_memories(random, n, n_words, length)
    return choices_by(exchangeable(memory, n_words), memory, random)


def rms_error(n: int, seed: int, *, shuffled: bool = False) -> float:
    random = np.random.default_rng(seed)
    memory = random_memories(random, n, 5, 3)
    choices = choices_by(exchangeable(memory, 5), memory, random)
    if shuffled:
        choices = choices._replace(chosen=random.permutation(choices.chosen))
    new = random_memories(random, 2000, 5, 3)
    return float(np.sqrt(np.mean((BackOffPolicy(choices).probabilities(new) - exchangeable(new, 5)) ** 2)))


@pytest.mark.slow
def test_recovers_an_exchangeable_law_with_an_error_like_one_over_the_root_of_the_choices():
    few = np.mean([rms_error(250, seed) for seed in range(3)])
    many = np.mean([rms_error(4000, seed) for seed in range(3)])
    assert many < 0.03
    assert 2.5 < few / many < 6.5  # 4, by the square root of 16; means of three vary by a fifth
    # A control: choices that have nothing to do with their memories teach nothing.
    assert rms_error(4000, 0, shuffled=True) > 0.1


def test_renamed_words_give_the_same_policy():
    """Words have their names in another order; without names no renaming of a memory makes a difference either."""
    choices, permutation = few_choices(n=1000), np.array([3, 0, 5, 1, 2, 4])

    def renamed(words: np.ndarray) -> np.ndarray:
        return np.where(words == NOTHING, NOTHING, permutation[words])

    def given(policy: BackOffPolicy, memory: np.ndarray) -> np.ndarray:
        return policy.probabilities(renamed(memory))[:, permutation]

    new = random_memories(np.random.default_rng(5), 100, 6, 5)
    named, nameless = BackOffPolicy(choices), BackOffPolicy(choices, names=False)
    other = BackOffPolicy(choices._replace(memory=renamed(choices.memory), chosen=renamed(choices.chosen)))
    np.testing.assert_allclose(given(other, new), named.probabilities(new), atol=1e-5)
    np.testing.assert_allclose(given(nameless, new), nameless.probabilities(new), rtol=0, atol=1e-12)
    assert np.abs(given(named, new) - named.probabilities(new)).max() > 1e-3
    drawn = nameless.sample(1, 3)[0].function
    expected = drawn(as_tuples(new))
    np.testing.assert_allclose(drawn(as_tuples(renamed(new)))[:, permutation], expected, rtol=0, atol=1e-12)


def test_names_of_words_matter_where_the_choices_say_so():
    choices = few_choices(n=1500)
    first = choices.memory[:, -1, 0] == NOTHING
    policy = BackOffPolicy(choices._replace(chosen=np.where(first, 2, choices.chosen)))
    empty = np.full((1, 5, 2), NOTHING)
    assert policy.probabilities(empty)[0, 2] > 0.98


def test_with_much_data_it_is_the_tabulated_estimate():
    random = np.random.default_rng(1)
    memory = random_memories(random, 60_000, 2, 2)
    space = MemorySpace(2, 2)
    table = random.dirichlet([1.0, 1.0], size=space.n_states)
    choices = choices_by(np.empty((60_000, 2)), memory, random)
    states = choices.states()
    choices = choices._replace(chosen=(random.random(60_000) > table[states, 0]).astype(int))
    tabulated = empirical_policy(counts_table(choices.counts()))
    number = np.bincount(states, minlength=space.n_states)
    every = np.array([[(NOTHING, NOTHING)] * (2 - len(m)) + list(m) for m in map(space.memory, range(space.n_states))])
    found = BackOffPolicy(choices).probabilities(every)[:, 0]
    often = number > 500
    assert often.sum() > 10
    np.testing.assert_allclose(found[often], tabulated["q"].values[often, 0], atol=0.01)


def test_lazy_runs_are_those_of_a_table():
    policy = BackOffPolicy(few_choices(n=1000, n_words=3, length=2))
    space = MemorySpace(3, 2)
    for lazy in (policy.lazy(), *policy.sample(1, 3)):
        table = make_policy(lazy.function([space.memory(state) for state in range(space.n_states)]), WORDS[:3])
        where = 12, {"B": 3}, "A", Stop(36, 33, 700), 5, np.arange(8)
        for found, expected in zip(play_real_runs(lazy, *where), play_real_runs(table, *where), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_success_curves_are_of_the_same_runs():
    lazy = BackOffPolicy(few_choices()).lazy()
    stop, runs = Stop(36, 36, 600), np.arange(10)
    ends, curves = play_success_curves(lazy, 12, stop, 3, runs, 50)
    np.testing.assert_array_equal(ends.interactions, play_real_runs(lazy, 12, {}, None, stop, 3, runs).interactions)
    for run in range(10):
        finished = ends.interactions[run] // 12
        assert np.isfinite(curves[run, :finished]).all()
        assert np.isnan(curves[run, finished:]).all()
        if ends.interactions[run] % 12 == 0:
            assert curves[run, finished - 3 : finished].mean() == pytest.approx(ends.success_rate[run])


def test_draws_are_policies_that_remember_their_answers():
    policy = BackOffPolicy(few_choices())
    memories = [((0, 1),) * held for held in range(6)] + [((4, 2), (3, 3), (5, 1), (0, 2))]
    first, second = policy.sample(2, 7)
    together = first.function(memories)
    np.testing.assert_allclose(together, [first.function([memory])[0] for memory in memories], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(together, policy.sample(1, 7)[0].function(memories))
    assert np.abs(second.function(memories) - together).max() > 0.01


def test_draws_lie_around_the_truth_as_they_should():
    inside = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        memory = random_memories(random, 600, 4, 3)
        policy = BackOffPolicy(choices_by(exchangeable(memory, 4), memory, random))
        new = random_memories(random, 200, 4, 3)
        drawn = np.stack([one.function(as_tuples(new))[:, 0] for one in policy.sample(19, seed)])
        rank = (drawn < exchangeable(new, 4)[:, 0]).sum(0)
        inside.append(np.mean((rank > 0) & (rank < 19)))
    # 18 of 20 ranks. Memories share parameters, so that six sets are worth about 100 independent ones.
    assert 0.8 < np.mean(inside) <= 1


def test_one_choice_leaves_everything_open():
    policy = BackOffPolicy(few_choices(n=1))
    new = random_memories(np.random.default_rng(2), 40, 6, 5)
    q = policy.probabilities(new)
    np.testing.assert_allclose(q.sum(1), 1)
    assert q.min() > 0.005
    assert np.std([one.function(as_tuples(new))[:, 0] for one in policy.sample(8, 0)], axis=0).mean() > 0.1


@pytest.mark.parametrize("errors", [pytest.param(0, marks=pytest.mark.slow), 3])
def test_rare_choices_keep_the_probability_that_their_number_leaves_open(errors):
    choices = few_choices(n=4000)
    agreed = np.zeros((3000, 5, 2), dtype=choices.memory.dtype)
    chosen = np.where(np.arange(3000) < errors, 1 + np.arange(3000) % 5, 0)
    memory, chosen = np.concatenate([choices.memory, agreed]), np.concatenate([choices.chosen, chosen])
    policy = BackOffPolicy(as_choices(memory, chosen, WORDS))
    drawn = [1 - one.function([((0, 0),) * 5])[0, 0] for one in policy.sample(40, 0)]
    # 0 or 3 of 3,000: 99 % of Poisson's means are below 0.0018 or 0.0037.
    assert 1e-7 < np.median(drawn) < 0.0037
    assert errors == 0 or np.median(drawn) > 0.0002
    assert 1e-5 < np.max(drawn) < 0.01


def test_words_that_were_never_said_stay_possible():
    choices = few_choices(n=1000)
    policy = BackOffPolicy(choices.of(choices.chosen != 4))
    empty = np.full((1, 5, 2), NOTHING)
    assert 0 < policy.probabilities(empty)[0, 4] < 0.05
    assert np.isfinite(policy.log_probabilities(empty, np.array([4]))).all()


@pytest.mark.parametrize(("n_words", "length"), [(26, 6), pytest.param(2, 31, marks=pytest.mark.slow)])
def test_any_space_that_can_be_numbered(n_words, length):
    random = np.random.default_rng(0)
    memory = random_memories(random, 300, n_words, length)
    choices = choices_by(exchangeable(memory, n_words), memory, random)
    choices = choices._replace(words=tuple(map(str, range(n_words))))
    q = BackOffPolicy(choices).probabilities(memory)
    np.testing.assert_allclose(q.sum(1), 1)
    assert np.log(q[np.arange(300), choices.chosen]).mean() > -np.log(n_words)


def test_refuses_what_it_cannot_do():
    choices = few_choices()
    for wrong, told in (
        (choices.of(np.zeros(400, dtype=bool)), "at least one"),
        (choices._replace(words=tuple(map(str, range(100)))), "2\\^63"),
    ):
        with pytest.raises(InputError, match=told):
            BackOffPolicy(wrong)
    policy = BackOffPolicy(choices)
    gap = [(0, 0), (NOTHING, NOTHING), (0, 0), (0, 0), (0, 0)]
    for memory, told in (([[(0, 0)] * 4], "shape"), ([[(6, 6)] * 5], "from 0 to 5"), ([gap], "before the first")):
        with pytest.raises(InputError, match=told):
            policy.probabilities(np.array(memory))


# Populations whose memories are too many for a table


@pytest.fixture
def no_tables(monkeypatch):
    monkeypatch.setattr("validation.populations._empirical_policy.MOST_STATES", 1)


@pytest.mark.usefixtures("no_tables")
def test_right_policies_agree_with_their_runs_and_a_wrong_one_is_noticed():
    real = ordered_populations(runs=12, committed=())
    counts = real.choice_counts
    planted = counts.assign(choice=np.where(counts["state"] == "", "B", counts["choice"]))
    right, wrong = (
        validate(real._replace(choice_counts=one), draws=4, runs=40).set_index("quantity")["verdict"]
        for one in (counts, planted)
    )
    assert right.to_dict() == {"majority word": "agrees", "time": "agrees"}
    assert "disagrees" in set(wrong)
    scores = choice_scores(real).set_index("law")
    assert (scores["gain"].drop("policy") > 0).all()


def test_success_curves_are_means_by_round_of_the_runs_that_have_not_stopped():
    real = ordered_populations(runs=12, committed=())
    curves = success_curves(real, rounds=4, draws=5, runs=40)
    assert (curves["low"] <= curves["predicted"]).all() and (curves["predicted"] <= curves["high"]).all()
    assert curves["p_value"].min() > 0.01 and set(curves["fold"]) == {"1 of 2", "2 of 2"}
    events = real.events.assign(success=real.events["said"].astype(str) == real.events["heard"].astype(str))
    events["round"] = 1 + events["step"] // N
    full = events.groupby(["run", "round"])["success"].agg(["mean", "size"]).query(f"size == {N}")["mean"]
    for number, rows in curves.groupby("round"):
        assert rows["runs"].sum() == len(full.xs(number, level="round"))
        assert np.average(rows["observed"], weights=rows["runs"]) == pytest.approx(
            full.xs(number, level="round").mean()
        )
