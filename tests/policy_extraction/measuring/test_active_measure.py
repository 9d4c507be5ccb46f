"""Policies from a part of their prompts: tables stand in for models, so that the whole policy is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

import meanfield
from _policies import majority, random_policy, relabelled, relabelled_states
from meanfield import InputError, MemorySpace
from policy_extraction import extract, measure, sample_policies
from policy_extraction.backends import TableBackend
from policy_extraction.measuring._active.explore import GoalExploration
from policy_extraction.measuring._active.goals import Goal, Quantity

pytestmark = pytest.mark.usefixtures("unchecked_types")  # for the time that they take
WORDS = ("his", "her")


def table(q: np.ndarray, memory_length: int, identity: str = "") -> TableBackend:
    """A back end that says the first word with probabilities q (S,)."""
    space = MemorySpace(2, memory_length)

    def law(memory, order):
        state = space.state([(WORDS.index(own), WORDS.index(partner)) for own, partner in memory])
        return {"his": q[state], "her": 1 - q[state]}

    return TableBackend(law, WORDS, memory_length, identity=identity)


def leaning(length: int, bias: float = 0.2, strength: float = 2.0) -> np.ndarray:
    """Follow what was said and heard more often."""
    space = MemorySpace(2, length)
    leads = [sum(2 - 2 * (own + partner) for own, partner in space.memory(i)) for i in range(space.n_states)]
    return expit(bias + strength * np.array(leads) / 2)


def measured(q: np.ndarray, memory_length: int = 3, **options):
    options = {"temperature": 1.0, "cache": False, **options}
    return measure(table(q, memory_length), words=WORDS, memory_length=memory_length, **options)


@pytest.mark.slow
def test_a_group_size_law_is_known_from_a_part_of_its_memories():
    q = leaning(3)
    policy = measured(q)
    law = meanfield.group_size_law(meanfield.make_policy(q, WORDS))
    assert (policy.attrs["reached"], policy.attrs["strong_word"]) == (1, "his")
    assert policy.attrs["memories_asked"] < 85
    assert policy.attrs["goal_low"] <= law["kappa"].item() <= policy.attrs["goal_high"]
    assert policy.attrs["goal_value"] == pytest.approx(law["kappa"].item(), rel=0.05)
    assert policy.attrs["goal_value"] == pytest.approx(meanfield.group_size_law(policy)["kappa"].item(), rel=1e-9)


@pytest.mark.parametrize(
    "strength", [3.0, pytest.param(1.6, marks=pytest.mark.slow)]
)  # two conventions, and two mixed attractors
def test_the_order_of_the_words_is_a_matter_of_sign(strength):
    policy = meanfield.make_policy(leaning(2, 0.05, strength), WORDS)
    one, other = (Goal("kappa").of(each) for each in (policy, relabelled(policy, [1, 0])))
    assert one.value > 0
    assert other.value == pytest.approx(-one.value, rel=1e-6)
    assert one.strong == other.strong == "his"
    slopes = Goal("kappa").derivatives(policy, one)
    exchanged = Goal("kappa").derivatives(relabelled(policy, [1, 0]), other)
    np.testing.assert_allclose(exchanged[relabelled_states(MemorySpace(2, 2), [1, 0])], slopes, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ["random", "parity", "floors"])
def test_without_a_rule_the_whole_table_is_asked(name):
    space = MemorySpace(2, 2)
    q = {
        "random": random_policy(3, memory_length=2)["q"].values[:, 0],
        "parity": np.array([0.9 if sum(map(sum, space.memory(i))) % 2 else 0.1 for i in range(space.n_states)]),
        "floors": np.where(majority(0.6, 1.0, 2)["q"].values[:, 0] > 0.55, 1.0, 2.2e-16),
    }[name]
    policy = measured(q, 2, tolerance=1e-9)
    assert policy["asked"].values.all()
    assert policy.attrs["reason"] == "every memory was asked"
    np.testing.assert_array_equal(
        policy["q"].values,
        extract(table(q, 2), words=WORDS, memory_length=2, temperature=1.0, cache=False)["q"].values,
    )


def test_the_budget_bounds_the_prompts():
    policy = measured(leaning(3, strength=0.5), tolerance=1e-9, budget=81)
    assert (policy.attrs["memories_asked"], policy.attrs["prompts_used"], policy.attrs["reached"]) == (40, 80, 0)
    level = policy["held_out_level"]
    assert level.sizes["prediction"] == policy.attrs["held_out"] > 0
    assert (level > 0.95).sum() == policy.attrs["held_out_outside"]
    assert policy.attrs["reason"].startswith("the budget is spent")


@pytest.mark.parametrize(
    ("goal", "bias", "strength"),
    [
        *((goal, 0.2, 0.3) for goal in ("strong word", "eigenvalue", "word_share")),  # one attractor, which is mixed
        ("critical_mass", 0.0, 2.0),
    ],
)
def test_each_goal_is_reached(goal, bias, strength):
    q, word = leaning(2, bias, strength), "her" if goal == "critical_mass" else None
    policy = measured(q, 2, goal=goal, word=word)
    truth = Goal(goal, word).of(meanfield.make_policy(q, WORDS))
    found, asked = policy.attrs, policy["asked"].values
    assert (found["reached"], found["goal_quantity"], found["strong_word"]) == (1, truth.name, truth.strong)
    assert found["goal_value"] == pytest.approx(truth.value, rel=0.05)
    assert found["goal_low"] - 1e-12 <= truth.value <= found["goal_high"] + 1e-12
    assert found["goal_value"] == pytest.approx(Goal(goal, word).of(policy).value, rel=1e-9)
    assert asked.sum() == found["memories_asked"]
    np.testing.assert_allclose(policy["q"].values[asked, 0], q[asked], atol=1e-12)


class Stopped(TableBackend):
    """Answers so many prompts and is interrupted."""

    left = 30

    def score(self, prompts, words):
        for scores in super().score(prompts, words):
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            yield scores


def test_an_interrupted_measurement_goes_on(tmp_path, capsys):
    options = {"words": WORDS, "memory_length": 2, "temperature": 1.0, "budget": 38, "tolerance": 1e-9}
    backend = table(leaning(2, strength=0.5), 2, "one")
    backend.__class__ = Stopped
    with pytest.raises(KeyboardInterrupt):
        measure(backend, cache=tmp_path, **options)
    assert "30 answers are kept" in capsys.readouterr().err
    backend.left = 8
    resumed = measure(backend, cache=tmp_path, **options)
    assert backend.left == 0
    assert resumed.identical(measure(backend, cache=tmp_path, **options))  # which asks nothing
    assert resumed.identical(measure(table(leaning(2, strength=0.5), 2), cache=False, **options))


def test_draws_agree_with_what_was_asked_and_spread_elsewhere():
    q = leaning(3, strength=0.5)
    policy = measured(q, budget=80)
    asked = policy["asked"].values
    draws = np.array([one["q"].sel(word="his").values for one in sample_policies(policy, 60, seed=1)])
    assert (draws[:, asked] == policy["q"].sel(word="his").values[asked]).all()
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    inside = ((low <= q) & (q <= high))[~asked]
    assert inside.mean() > 0.8  # of 45 memories, whose errors are not independent
    narrow = np.quantile(draws, [0.45, 0.55], axis=0)  # the control
    assert ((narrow[0] <= q) & (q <= narrow[1]))[~asked].mean() < 0.8


def family(seed: int) -> np.ndarray:
    """Independent choices, a rule with independent errors, the parity of what was heard, or exact zeros and ones."""
    random, space = np.random.default_rng(seed), MemorySpace(2, 3)
    if seed % 4 == 0:
        return random.random(space.n_states)
    rule = leaning(3, 0.3 * random.standard_normal(), 0.6)
    if seed % 4 == 1:
        return expit(logit(rule) + 0.5 * random.standard_normal(space.n_states))
    if seed % 4 == 2:
        odd = [sum(partner for _, partner in space.memory(i)) % 2 for i in range(space.n_states)]
        return np.where(odd, *random.uniform(0.1, 0.9, 2))
    return np.where(rule < 0.2, 0.0, np.where(rule > 0.9, 1.0, rule))


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """Fewer than 19 of 24 intervals of 95 % hold the truth in 2e-4 of cases; the control are a twentieth as wide."""
    held, narrow = 0, 0
    for seed in range(24):
        q = family(seed)
        known = measured(q, goal="word_share", budget=150, tolerance=0.02).attrs
        truth = Goal("word_share").of(meanfield.make_policy(q, WORDS)).value
        held += known["goal_low"] - 1e-12 <= truth <= known["goal_high"] + 1e-12
        error = abs(truth - known["goal_value"])
        narrow += error <= 0.05 * max(known["goal_high"] - known["goal_value"], known["goal_value"] - known["goal_low"])
    assert held >= 19
    assert narrow < 19


SPACE = MemorySpace(2, 3)
IMAGES = relabelled_states(SPACE, [1, 0])


class Shared(Goal):
    """The sum of the first word's probabilities, weighted as κ does: equally in mirror images."""

    weights = np.random.default_rng(0).random(85)
    weights = weights + weights[IMAGES]

    def of(self, policy, only=""):
        return Quantity("eigenvalue", float(self.weights @ policy["q"].values[:, 0]), "")

    def derivatives(self, policy, quantity=None):
        return self.weights


@pytest.mark.slow
def test_intervals_of_the_difference_between_the_words_cover_the_truth():
    """Fewer than 19 of 24 intervals of 95 % hold the truth in 2e-4 of cases; the control are those a tenth as wide."""
    held, narrow = 0, 0
    for seed in range(24):
        q = np.stack([family(seed), 1 - family(seed)], axis=1)
        exploration = GoalExploration(lambda states, q=q: q[states], 1e-9, seed, SPACE, WORDS, Shared("eigenvalue"))
        *_, known = exploration.run(75)
        truth, value = Shared("eigenvalue").of(meanfield.make_policy(q, WORDS)).value, known.quantity.value
        held += known.low <= truth <= known.high
        narrow += abs(truth - value) <= 0.1 * (known.high - value)
    assert held >= 19
    assert narrow < 19


def test_draws_do_not_depend_on_positions():
    policy = measured(leaning(2, strength=0.5), 2, budget=24)
    shuffled = policy.isel(state=np.random.default_rng(0).permutation(21), word=[1, 0])
    for one, other in zip(sample_policies(policy, 3, seed=1), sample_policies(shuffled, 2, seed=1), strict=False):
        assert one.identical(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": "beauty"}, "goal = 'beauty': expected one of kappa"),
        ({"tolerance": 0}, "tolerance = 0: expected a number above 0"),
        ({"budget": 9}, "budget = 9: expected a whole number of at least 10"),
        ({"memory_length": 8}, "memory_length = 8: expected at most 7"),
        ({"words": ("a", "b", "c")}, "words: there are 3, expected 2"),
        ({"goal": "critical_mass"}, "word = None: expected one of his, her"),
        ({"word": "his"}, "word = 'his': expected None"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    with pytest.raises(InputError) as caught:
        measure(table(leaning(1), 1), **{"words": WORDS, "memory_length": 1, **options})
    assert message in str(caught.value)


def test_draws_take_the_result_of_a_measurement():
    with pytest.raises(InputError, match="expected the result of policy_extraction"):
        sample_policies(random_policy(1), 2, seed=1)
