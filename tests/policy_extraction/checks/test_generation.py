"""Words that a model writes against the probabilities that were read off it.

The tests of the law of many draws are seeded; each has at most 1 % chance to fail if its seed is changed, and a control
that must fail.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest, multinomial

import meanfield
from _fake_backend import FakeBackend
from _prompt_files import SHORT
from _refusals import refused
from meanfield import InputError, MemorySpace, make_policy
from policy_extraction.checks._exact_test import count_interval, exact_test
from policy_extraction.checks._generation import generation_test
from policy_extraction.measuring._spoken import said, speak
from policy_extraction.prompts import Payoffs
from policy_extraction.prompts._template import Prompt

WORDS = ("his", "her")


def spread_law(prompt: Prompt) -> dict[str, float]:
    """Two words with a tenth of the probability, shared by memory and order; the rest is no answer."""
    share = np.random.default_rng(zlib.crc32(prompt.system.encode())).uniform(0.2, 0.8)
    noise = {text: 0.9 / 30 for text in ("history", " his", "The", *map(str, range(27)))}
    return {"his": 0.1 * share, "her": 0.1 * (1 - share), **noise}


def policy_of(law, memory_length=3, temperature=0.5, words=WORDS):
    """Eq. 9 at this temperature, averaged over all presentation orders."""
    space = MemorySpace(len(words), memory_length)
    q = np.zeros((space.n_states, len(words)))
    orders = list(itertools.permutations(words))
    for state, order in itertools.product(range(space.n_states), orders):
        memory = [(words[a], words[b]) for a, b in space.memory(state)]
        said_by = law(SHORT.prompt(order, memory, Payoffs()))
        weights = np.array([said_by[word] for word in words]) ** (1 / temperature)
        q[state] += weights / weights.sum() / len(orders)
    return make_policy(q, words, attrs={"option_temperature": temperature, "option_template": "short"})


@pytest.fixture(scope="module")
def policy():
    return policy_of(spread_law)


def run(policy, law=spread_law, **options):
    return generation_test(FakeBackend(law), policy, **{"n": 150, "seed": 1, "template": SHORT, **options})


# --- exact tests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 60])
def test_two_words_have_the_exact_binomial_test(n):
    q = np.array([0.0, 1e-9, 0.02, 0.3, 0.5, 0.81, 1.0])
    for k in range(n + 1):
        found = exact_test(np.tile([k, n - k], (len(q), 1)), np.stack([q, 1 - q], -1), 0.05)
        expected = [binomtest(k, n, p).pvalue for p in q]
        np.testing.assert_allclose(found.p_value, expected, rtol=1e-9, atol=1e-12)


def test_three_words_have_the_exact_multinomial_test():
    q, n = np.array([0.5, 0.3, 0.2]), 6
    outcomes = [o for o in itertools.product(range(n + 1), repeat=3) if sum(o) == n]
    mass = np.array([multinomial.pmf(o, n, q) for o in outcomes])
    expected = np.array([mass[mass <= m * (1 + 1e-7)].sum() for m in mass])
    found = exact_test(np.array(outcomes), np.tile(q, (len(outcomes), 1)), 0.2)
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-9)
    np.testing.assert_allclose(found.alarm_chance, mass[expected < 0.2].sum(), rtol=1e-9)
    without_third = exact_test(np.array([[2, 4, 0]]), np.array([[0.5, 0.5, 0.0]]), 0.05)
    np.testing.assert_allclose(without_third.p_value, binomtest(2, 6, 0.5).pvalue)


def test_false_alarms_are_rarer_than_the_level_and_how_rare_is_exact():
    n, q = 40, np.linspace(0.01, 0.99, 25)
    pairs = np.stack([q, 1 - q], -1)
    chance = exact_test(np.tile([0, n], (25, 1)), pairs, 0.05).alarm_chance
    alarms = [[binomtest(k, n, p).pvalue < 0.05 for k in range(n + 1)] for p in q]
    expected = (binom.pmf(np.arange(n + 1), n, q[:, None]) * alarms).sum(-1)
    np.testing.assert_allclose(chance, expected, rtol=1e-9, atol=1e-14)
    assert chance.max() <= 0.05 and chance.mean() < 0.04


def test_the_number_of_events_has_the_binomial_interval_where_all_are_equally_likely():
    low, high = count_interval(np.full(85, 0.05), 0.99)
    assert (low, high) == binom.interval(0.99, 85, 0.05)
    assert count_interval(np.zeros(9), 0.99) == (0, 0)
    assert count_interval(np.ones(9), 0.99) == (9, 9)


# --- what is said --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("his", 0),
        ("his'; 'reason': her", 0),
        ("her", 1),
        ("hers", None),
        ("history", None),
        ("her1", None),
        (" his", None),
        ("His", None),
        ("The word his", None),
        ("", None),
        ("her own", 2),
        ("her owner", 1),
    ],
)
def test_a_word_counts_where_it_is_expected_and_whole(text, expected):
    assert said(text, ("his", "her", "her own")) == expected


def test_tries_are_bounded_and_counted():
    prompts = [SHORT.prompt(WORDS, [], Payoffs()), SHORT.prompt(WORDS, [("his", "his")], Payoffs())]
    laws = {prompts[0]: {"his": 1.0}, prompts[1]: {"The": 1.0}}
    backend = FakeBackend(laws.__getitem__)
    options = {"temperature": 1.0, "seed": 0, "max_tokens": 1}
    spoken = speak(backend, prompts, [5, 3], WORDS, max_tries=70, **options)
    assert spoken.words == [[0] * 5, []]
    assert spoken.generated.tolist() == [5, 210] and spoken.valid.tolist() == [5, 0]
    assert backend.calls == 4 and backend.asked == 215


# --- the test of a policy ------------------------------------------------------------------------------------------


def test_a_right_policy_raises_as_many_alarms_as_chance_does(policy):
    result = run(policy)
    low, high = result["alarm_interval"].values
    assert result.attrs["agrees"] == 1 and low <= result["alarms"] <= high
    assert result.sizes["state"] == 85 and result["untested"] == 0
    assert 1 < result["expected_alarms"] < 0.05 * 85
    np.testing.assert_array_equal(result["count"].sum("word"), 150)
    counts, q = result["count"].values[:, 0].tolist(), policy["q"].values[:, 0]
    binomial = [binomtest(k, 150, p).pvalue for k, p in zip(counts, q, strict=True)]
    np.testing.assert_allclose(result["p_value"], binomial, rtol=1e-9)
    deviation = result["deviation"].isel(word=0)
    assert abs(deviation.mean()) < 2.6 / np.sqrt(85) and 0.8 < deviation.std() < 1.2


def test_another_law_of_one_presentation_order_is_found_out(policy):
    def first_option(prompt: Prompt) -> dict[str, float]:
        law = spread_law(prompt)
        return {**law, "his": law["her"], "her": law["his"]} if prompt.system.startswith("['his'") else law

    assert run(policy, first_option, memory_length=2).attrs["agrees"] == 0


@pytest.mark.slow
def test_an_order_that_answers_seldom_weighs_as_much_as_the_other():
    """Discarded answers are generated again with the same presentation order."""

    def law(prompt: Prompt) -> dict[str, float]:
        his_first = prompt.system.startswith("['his'")
        return {"his": 0.8, "her": 0.1, "The": 0.1} if his_first else {"his": 0.01, "her": 0.04, "The": 0.95}

    policy = policy_of(law, memory_length=2, temperature=1.0)
    np.testing.assert_allclose(policy["q"][:, 0], (8 / 9 + 1 / 5) / 2)
    assert run(policy, law, n=400).attrs["agrees"] == 1
    weighted = make_policy(np.full(21, 0.81 / 0.95), WORDS, attrs=policy.attrs)
    assert run(weighted, law, n=400)["alarms"] == 21


def test_the_share_of_valid_answers_is_the_probability_of_the_words(policy):
    result = run(policy, temperature=1.0, memory_length=2)
    share = (result["valid"].sum() / result["generated"].sum()).item()
    assert abs(share - 0.1) < 3 * np.sqrt(0.1 * 0.9 / result["generated"].sum().item())


def test_states_of_shorter_memories_are_the_first_ones(policy):
    result = run(policy, memory_length=1)
    assert result.sizes["state"] == 5 and result.attrs["memory_length"] == 1
    assert result["memory"].values.tolist() == ["", "his-his", "his-her", "her-his", "her-her"]
    np.testing.assert_array_equal(result["q"], policy["q"][:5])


@pytest.mark.slow
def test_three_words_are_tested_too():
    def law(prompt: Prompt) -> dict[str, float]:
        rng = np.random.default_rng(zlib.crc32(prompt.system.encode()))
        return dict(zip(("a", "b", "c", "The"), rng.dirichlet([2, 2, 2, 8]), strict=True))

    policy = policy_of(law, 2, 0.5, ("a", "b", "c"))
    assert run(policy, law, n=100).attrs["agrees"] == 1
    assert run(policy, law, n=100, temperature=1.0).attrs["agrees"] == 0


def test_a_state_without_answers_is_left_out_and_counted(policy):
    empty = {SHORT.prompt(order, [], Payoffs()) for order in (WORDS, WORDS[::-1])}

    def law(prompt: Prompt) -> dict[str, float]:
        return {"The": 1.0} if prompt in empty else spread_law(prompt)

    result = run(policy, law, memory_length=1, n=20)
    assert result["untested"] == 1 and np.isnan(result["p_value"][0])
    assert result["p_value"][1:].notnull().all()
    with pytest.raises(InputError, match="take more tries"):
        run(policy, lambda prompt: {"The": 1.0}, memory_length=1, n=3)


def test_the_result_survives_a_file_and_is_reproducible(policy, tmp_path):
    result = run(policy, memory_length=1)
    assert result.attrs["kind"] == "generation_test"
    assert result["model"].item() == "fake" and result["word_label"].values.tolist() == ["his", "her"]
    assert meanfield.load(meanfield.save(result, tmp_path / "test.nc")).identical(result)
    assert run(policy, memory_length=1).identical(result)
    assert not run(policy, memory_length=1, seed=2)["count"].identical(result["count"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n = 0"),
        ({"n": 1.5}, "n = 1.5"),
        ({"n": 200_000}, "n = 200000: expected at most 199999"),
        ({"seed": -1}, "seed = -1"),
        ({"max_tries": 0}, "max_tries = 0"),
        ({"memory_length": 4}, "memory_length = 4: expected a whole number from 1 to 3"),
        ({"temperature": 0.0}, "temperature = 0.0: expected a positive number"),
        ({"template": replace(SHORT, answer_prefix="say ")}, "its answer prefix ends with a space"),
        ({"template": replace(SHORT, name="other")}, "made with template = short, and other is given"),
        ({"attrs": {"option_top_p": 0.9}}, "made with top_p = 0.9"),
        ({"attrs": {"option_payoff_success": 5}}, "made with payoff_success = 5, and 100 is given"),
        ({"attrs": {"option_temperature": "none"}}, "the policy states none"),
    ],
)
def test_wrong_input_is_one_clear_line(policy, options, message):
    made = policy.assign_attrs(options.get("attrs", {}))
    options = {name: value for name, value in options.items() if name != "attrs"}
    with refused(message):
        run(made, lambda prompt: pytest.fail("something was generated"), **options)
