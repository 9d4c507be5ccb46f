"""Policies of language models that are asked as memories occur, through to simulations.

The model here is a function of the prompt's text; nothing is left to chance but the seeded simulations.
"""

from __future__ import annotations

import re
import string
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import meanfield
import validation
from _prompt_files import SHORT
from _refusals import refused
from meanfield import InputError, MemorySpace, StorageError
from policy_extraction import check_policy, lazy_policy, policy_from_record, policy_warnings
from policy_extraction.backends import Scores
from policy_extraction.measuring._record import make_record
from policy_extraction.prompts import Payoffs, orders

LETTERS = tuple(string.ascii_uppercase[:10])
TEMPLATE = replace(SHORT, name="test/1")


class FakeModel:
    """A back end that likes what the partner said, most of all recently, and what is listed first.

    Answers come in portions, the last prompts first.
    """

    def __init__(self, *, mass=0.8, censor_below=None, wrong=None, portion=40, identity="fake:1", **provenance):
        self.name, self.identity = "fake", identity
        self.provenance = {"dtype": "float64", **provenance}
        self.mass, self.censor_below, self.portion, self.wrong = mass, censor_below, portion, wrong
        self.checked, self.asked = [], []

    def check(self, prompts, words):
        self.checked += prompts

    def tokens(self, words):
        return [f"{word}|" for word in words]

    def generate(self, prompts, *, max_tokens, temperature=1.0, seed=0):
        raise NotImplementedError

    def score(self, prompts, words):
        first = len(prompts) if self.wrong != "silent" else len(prompts) - 1
        for last in range(first, 0, -self.portion):
            numbers = np.arange(max(0, last - self.portion), last)
            self.asked += [prompts[i] for i in numbers]
            log_p = np.array([self.log_probability(prompts[i].system, words) for i in numbers])
            if self.wrong == "nan":
                log_p[0, 0] = np.nan
            censored = np.zeros(log_p.shape, dtype=bool) if self.censor_below is None else log_p < self.censor_below
            yield Scores(numbers, np.where(censored, self.censor_below or 0, log_p), censored)

    def log_probability(self, text, words):
        options = re.findall("'(.*?)'", text[: text.index("]")])
        heard = re.findall(r"^\d+ '.*?' '(.*?)'", text[text.index(":") + 2 :], re.MULTILINE)
        liked = [3.0 * heard.count(word) + 0.3 * (heard[-1:] == [word]) for word in words]
        logits = np.array(liked) - 0.2 * np.array([options.index(word) for word in words])
        return np.log(self.mass) + logits - np.logaddexp.reduce(logits)


def table(model: FakeModel, words, memory_length: int, presented, **sampling):
    """The policy by the record of all states."""
    space = MemorySpace(len(words), memory_length)
    memories = [[(words[a], words[b]) for a, b in space.memory(state)] for state in range(space.n_states)]
    texts = [[TEMPLATE.prompt(order, memory, Payoffs()).system for memory in memories] for order in presented]
    log_p = np.array([[model.log_probability(text, words) for text in row] for row in texts])
    record = make_record(log_p, words, presented, words, memory_length, model.name)
    return policy_from_record(record, **sampling)


def lazy(model: FakeModel, words=LETTERS, memory_length=5, **options):
    options = {"template": TEMPLATE, "cache": False, **options}
    return lazy_policy(model, words, memory_length, **options)


def simulated(function, **options):
    policy = validation.naming_game.LazyPolicy(function, function.words, function.memory_length, name=function.name)
    return validation.simulate(policy, **options)


# --- what it returns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "memory_length", "sampling"),
    [
        (("his", "her"), 3, {}),
        (("his", "her"), 2, {"top_k": 1}),
        (("a", "bb", "c"), 2, {"temperature": 2.0}),
        (LETTERS[:5], 1, {"top_p": 0.8, "floor": 1e-9}),
    ],
)
def test_probabilities_are_those_of_the_whole_record(words, memory_length, sampling):
    function = lazy(FakeModel(), words, memory_length, **sampling)
    policy = table(FakeModel(), words, memory_length, orders(words), **sampling)
    space = MemorySpace(len(words), memory_length)
    states = np.random.default_rng(0).permutation(np.arange(space.n_states).repeat(2))
    for part in np.array_split(states, 3):
        found = function([space.memory(int(state)) for state in part])
        np.testing.assert_allclose(found, policy["q"].values[part], atol=1e-15)
    assert function.prompts_asked == space.n_states * len(orders(words))
    assert function([]).shape == (0, len(words))


@pytest.mark.slow
def test_letters_reach_consensus():
    model = FakeModel(portion=5000)
    function = lazy(model)
    result = simulated(function, n_agents=4, runs=4, seed=2, max_rounds=20)
    assert (result["consensus_word"].astype(str) != "None").any()
    memories = result.attrs["memories_asked"]
    assert memories < 1000
    assert len(model.asked) == function.prompts_asked == memories * len(function.presented)
    assert len(function.presented) == 30


def test_orders_can_be_given_or_sampled():
    one = lazy(FakeModel(), orders=[LETTERS])
    assert one.presented == [LETTERS]
    memory = ((0, 3),) * 2
    text = TEMPLATE.prompt(LETTERS, [("A", "D")] * 2, Payoffs()).system
    expected = np.exp(FakeModel().log_probability(text, LETTERS) / 0.5)
    np.testing.assert_allclose(one([memory])[0], expected / expected.sum())
    sampled = lazy(FakeModel(), orders=20, seed=3)
    assert sampled.presented == orders(LETTERS, 20, seed=3)
    # Each word is in each position equally often, so that none is preferred but by the memory.
    np.testing.assert_allclose(sampled([()])[0], 0.1)
    assert np.ptp(one([()])[0]) > 0.1


def test_payoffs_and_template_reach_the_model():
    model = FakeModel()
    lazy(model, payoffs=Payoffs(7, -3), orders=10)([((0, 0), (1, 2))])
    assert all(" 7 -3: 1 'A' 'A' 7\n2 'B' 'C' -3\n\n3, 4." in prompt.system for prompt in model.asked)
    assert len({prompt.system for prompt in model.asked}) == 10


def test_the_longest_prompt_is_checked_before_anything_is_asked():
    model = FakeModel()
    words = ("a", "looooong", "longer", "b")
    lazy(model, words, 3)
    space = MemorySpace(4, 3)
    spoken = ([(words[a], words[b]) for a, b in space.memory(state)] for state in range(space.n_states))
    longest = max(len(TEMPLATE.prompt(words, memory, Payoffs()).system) for memory in spoken)
    assert max(len(prompt.system) for prompt in model.checked) == longest
    assert len(model.checked) < 10
    assert not model.asked
    assert {word for prompt in model.checked for word in re.findall("'(.*?)'", prompt.system)} == set(words)


def test_a_model_that_is_not_needed_is_not_loaded(tmp_path):
    lazy(FakeModel(), cache=tmp_path)(MEMORIES)
    model = FakeModel()
    function = lazy(model, cache=tmp_path)
    function(MEMORIES)
    assert not model.checked
    function([((3, 4),)])
    function([((5, 6),)])
    assert len(model.checked) == 12, "checked once, and before it is asked what it was not asked before"


# --- what is kept --------------------------------------------------------------------------------------------------

MEMORIES = [(), ((9, 1),), ((2, 2), (1, 0)), ((3, 3),) * 5]


def test_answers_are_kept_on_disk_whatever_the_sampling(tmp_path):
    first = lazy(FakeModel(), cache=tmp_path)
    q = first(MEMORIES)
    again = lazy(FakeModel(wrong="nan", requests=7), cache=tmp_path)  # a server's count is no part of its identity
    assert np.array_equal(again(MEMORIES[::-1]), q[::-1])
    warm = lazy(FakeModel(wrong="nan"), memory_length=6, cache=tmp_path, temperature=2.0, top_k=3)
    expected = lazy(FakeModel(), memory_length=6, temperature=2.0, top_k=3)(MEMORIES)
    assert np.array_equal(warm(MEMORIES), expected)
    assert (again.prompts_asked, warm.prompts_asked) == (0, 0)
    more = lazy(FakeModel(), cache=tmp_path)
    more([*MEMORIES, ((5, 5),)])
    assert more.prompts_asked == len(more.presented)


@pytest.mark.parametrize(
    "change",
    [
        {"model": FakeModel(identity="fake:2")},
        {"words": LETTERS[::-1]},
        {"template": replace(SHORT, user="speak")},
        {"payoffs": Payoffs(1, 0)},
        {"orders": 20},
        {"seed": 1},
        {"cache": False},
        {"model": FakeModel(identity="")},
    ],
    ids=["identity", "words", "template", "payoffs", "orders", "seed", "cache", "no identity"],
)
def test_whatever_changes_the_answers_is_asked_anew(tmp_path, change):
    model = change.get("model", FakeModel())
    lazy(model if model.identity == "" else FakeModel(), cache=tmp_path)(MEMORIES)
    other = lazy(**{"model": model, "cache": tmp_path, **change})
    other(MEMORIES)
    assert other.prompts_asked == len(MEMORIES) * len(other.presented)


def test_the_record_of_what_was_asked(tmp_path):
    function = lazy(FakeModel(mass=0.3), cache=tmp_path)
    with pytest.raises(InputError, match="nothing was asked yet"):
        function.record()
    q = function(MEMORIES)
    record = function.record()
    space = MemorySpace(10, 5)
    assert record["state"].values.tolist() == sorted(space.state(memory) for memory in MEMORIES)
    weight = np.exp(2 * record["log_probability"])
    again = (weight / weight.sum("word")).mean("order")
    np.testing.assert_allclose(again.sel(state=[space.state(memory) for memory in MEMORIES]), q)
    np.testing.assert_allclose(record["captured_mass"], 0.3)
    assert record["word_tokens"].values[0] == "A|"
    assert (record.attrs["option_template"], record.attrs["option_dtype"]) == ("test/1", "float64")
    assert meanfield.load(meanfield.save(record, tmp_path / "record.nc")).identical(record)
    (warning,) = policy_warnings(check_policy(record))
    assert "in 120 of 120 prompts the words together have a probability below 0.5" in warning
    shorter = lazy(FakeModel(mass=0.3), memory_length=2, cache=tmp_path)
    assert shorter.record().sizes["state"] == 3


def test_progress_counts_prompts(capsys):
    lazy(FakeModel(), progress=True, orders=10)(MEMORIES)
    assert "40/40" in capsys.readouterr().err


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_censored_answers_are_not_silently_used():
    with pytest.raises(InputError, match=r"fake: an answer does not determine .*undecided='bound' "):
        lazy(FakeModel(censor_below=-6.0))(MEMORIES)
    function = lazy(FakeModel(censor_below=-6.0), undecided="bound")
    np.testing.assert_allclose(function(MEMORIES).sum(1), 1)
    assert 0 < function.record()["censored"].mean() < 1
    np.testing.assert_allclose(lazy(FakeModel(censor_below=-6.0))(MEMORIES[:1]), 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": ("A", "yes, sir")}, "'yes, sir' is no word"),
        ({"words": (("A", "B"), ("C", "D"))}, "expected the words of one game"),
        ({"words": tuple(f"w{i}" for i in range(300)), "memory_length": 1}, "there are 300, expected .* at most 255"),
        ({"memory_length": 10}, "memory_length = 10 with 10 words: expected fewer than"),
        ({"orders": 25}, "number = 25: expected a multiple of 10"),
        *(({"orders": wrong}, "different orders of the words") for wrong in ([LETTERS] * 2, [LETTERS[:9]], [])),
        ({"temperature": 0}, "temperature = 0"),
        ({"top_p": 2.0}, r"top_p = 2\.0"),
        ({"cache": 3}, "cache = 3"),
        ({"cache": Path(__file__) / "asked"}, "can't be read and written"),
    ],
)
def test_wrong_input_is_one_clear_line(arguments, message):
    model = FakeModel()
    with refused(message, StorageError if "can't be" in message else InputError):
        lazy(model, **arguments)
    assert not model.asked


@pytest.mark.parametrize("memory", [((0, 10),), ((0, 0),) * 6, ((-1, 0),)])
def test_what_is_no_memory_is_refused(memory):
    model = FakeModel()
    with pytest.raises(InputError, match="memory"):
        lazy(model)([(), memory])
    assert not model.asked
