"""The cost of a measurement: counts against the prompts and tokens themselves."""

from __future__ import annotations

import numpy as np
import pytest

from _token_server import KnownTokenizer, rendered
from meanfield import InputError
from policy_extraction import Limits, cost
from policy_extraction.measuring import _cost
from policy_extraction.prompts import NAMING_GAME, Payoffs, orders
from policy_extraction.prompts._games import Game

HIS_HER = ("his", "her")
VOCABULARY = [word.encode() for word in ("his", "he", "her", "r", "the ", "value", "points", " '")]


def asked(words, memory_length):
    return Game(words, orders(words), memory_length, NAMING_GAME, Payoffs()).prompts()


def messages(prompt):
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]


@pytest.mark.parametrize(("words", "memory_length"), [(HIS_HER, 3), (("a", "b", "c"), 1)])
def test_tokens_are_those_of_all_prompts(words, memory_length):
    tokenizer = KnownTokenizer(VOCABULARY)
    found = cost((None, tokenizer), words=words, memory_length=memory_length, answer_tokens=12)
    all_prompts = asked(words, memory_length)
    texts = [rendered(messages(p)) + "\x01assistant\x02" + p.answer_prefix for p in all_prompts]
    # 'her' is one token, so is 'his': one request a prompt; a, b and c are bytes.
    assert found["prompts"] == found["requests"] == len(all_prompts)
    assert found["tokens_in"] == sum(map(len, tokenizer(texts)["input_ids"]))
    assert found["tokens_out"] == 12 * len(all_prompts)
    assert found.attrs["counted"] == "with the tokenizer" and found.attrs["kind"] == "cost"


def test_words_of_several_tokens_take_more_requests():
    tokenizer = KnownTokenizer([b"his", b"h"])  # h, e, r
    found = cost((None, tokenizer), words=HIS_HER, memory_length=1)
    single = cost((None, KnownTokenizer([b"his", b"h", b"her"])), words=("his", "his h"), memory_length=1)
    assert found["requests"] == 3 * found["prompts"] == 30
    assert single["requests"] > single["prompts"]
    texts = [rendered(messages(p)) + "\x01assistant\x02" + p.answer_prefix for p in asked(HIS_HER, 1)]
    read = sum(map(len, tokenizer(texts)["input_ids"]))
    assert found["tokens_in"] == 3 * read + (0 + 1 + 2) * len(texts)


def test_without_a_tokenizer_characters_are_counted():
    found = cost(None, words=HIS_HER, memory_length=2)
    characters = sum(len(p.system + p.user + p.answer_prefix) for p in asked(HIS_HER, 2))
    assert found["tokens_in"].item() == pytest.approx(characters / 3.3, abs=3)
    assert found.attrs["counted"].startswith("estimated, 3.3 characters a token")


def test_a_name_that_is_found_nowhere_is_estimated_and_says_so(monkeypatch):
    def absent(model):
        raise InputError(f"model = {model}: not there")

    monkeypatch.setattr(_cost, "find", absent)
    found = cost("a paid model", words=HIS_HER, memory_length=1)
    assert "model = a paid model: not there" in found.attrs["counted"]
    assert found["tokens_in"] == cost(None, words=HIS_HER, memory_length=1)["tokens_in"]


def test_a_sample_stands_for_many(monkeypatch):
    """The lengths of prompts with as many rounds hardly differ."""
    exact = cost(None, words=HIS_HER, memory_length=4)
    monkeypatch.setattr(_cost, "COUNTED", 128)
    sampled = cost(None, words=HIS_HER, memory_length=4)
    assert sampled["prompts"] == exact["prompts"] == 682
    assert sampled["tokens_in"].item() == pytest.approx(exact["tokens_in"].item(), rel=0.001)
    assert sampled["tokens_in"] != exact["tokens_in"]
    many = cost(None, words=tuple("abcdefghij"), memory_length=5)
    assert many["prompts"] == 30 * sum(100**h for h in range(6))


def test_price_and_time_follow_from_what_is_given():
    limits = Limits(requests_per_minute=60, tokens_per_minute=1e9, input_price=2.0, output_price=10.0)
    found = cost(None, words=HIS_HER, memory_length=1, answer_tokens=10, limits=limits, prompts_per_second=100)
    tokens = found["tokens_in"].item()
    assert found["price"].item() == pytest.approx((2 * tokens + 10 * 100) / 1e6)
    assert found["seconds"] == 10, "requests take the longest"
    assert cost(None, words=HIS_HER, memory_length=1, prompts_per_second=5)["seconds"] == 2
    slow = Limits(tokens_per_minute=60)
    assert cost(None, words=HIS_HER, memory_length=1, limits=slow)["seconds"] == tokens + 10
    nothing = cost(None, words=HIS_HER, memory_length=1)
    assert np.isnan([nothing["price"], nothing["seconds"]]).all()


def test_a_budget_counts_the_longest_memories():
    all_prompts = asked(HIS_HER, 2)
    characters = [len(p.system + p.user + p.answer_prefix) for p in all_prompts]
    longest = sorted(characters)[-32:]  # 16 memories in two orders
    found = cost(None, words=HIS_HER, memory_length=2, budget=32)
    assert found["prompts"] == found["requests"] == 32
    assert found["tokens_in"].item() == pytest.approx(sum(longest) / 3.3, abs=1)
    some = cost(None, words=HIS_HER, memory_length=2, budget=36)
    assert found["tokens_in"] < some["tokens_in"] < sum(sorted(characters)[-36:]) / 3.3 + 2
    whole = cost(None, words=HIS_HER, memory_length=2)
    assert cost(None, words=HIS_HER, memory_length=2, budget=10**6).drop_attrs().identical(whole.drop_attrs())
    with pytest.raises(InputError, match="budget = 0"):
        cost(None, words=HIS_HER, budget=0)


def test_several_games_are_told_apart():
    found = cost(None, words=[HIS_HER, ("woman", "man")], memory_length=1)
    assert found["pair"].values.tolist() == ["his/her", "woman/man"]
    assert found["tokens_in"].sel(pair="his/her") == cost(None, words=HIS_HER, memory_length=1)["tokens_in"]


def test_what_is_refused(monkeypatch):
    for name, value in {"answer_tokens": 0, "prompts_per_second": 0.0, "memory_length": 32}.items():
        with pytest.raises(InputError, match=f"{name} = "):
            cost(None, **{"words": HIS_HER, name: value})
    monkeypatch.setattr(_cost, "COUNTED", 1)
    with pytest.raises(InputError, match="expected fewer than 2"):
        cost(None, words=HIS_HER, memory_length=31)
    with pytest.raises(InputError, match="model = 5"):
        cost(5, words=HIS_HER)
