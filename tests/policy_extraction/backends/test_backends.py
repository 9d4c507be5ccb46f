"""One battery of tests runs every back end. Tests of tables and local models alone follow.

Statistical tests are seeded. A frequency may differ from its probability by 4.5 standard errors: 7e-6 a comparison, and
there are fewer than 50.
"""

from __future__ import annotations

import importlib.util
import string
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pytest

import meanfield
from _refusals import refused
from meanfield import InputError
from policy_extraction import extract
from policy_extraction.backends._backend import Backend
from policy_extraction.backends._table import TableBackend
from policy_extraction.prompts import NAMING_GAME, Payoffs, Template
from policy_extraction.prompts._games import Game
from policy_extraction.prompts._template import Prompt

HIS_HER = ("his", "her")
PRESENTED = [HIS_HER, HIS_HER[::-1]]
N_SIGMA = 4.5


def conformist(memory, order):
    """Says what it heard, the first word of the list more often, and sometimes neither."""
    heard = sum(partner == "his" for _, partner in memory) - sum(partner == "her" for _, partner in memory)
    p = 0.9 / (1 + np.exp(-heard - 0.3 * (order[0] == "his")))
    return {"his": p, "her": 0.9 - p}


@dataclass
class Case:
    """A back end, and a game that it can play."""

    backend: Backend
    words: tuple[str, str]
    template: Template
    copies: int = 2000

    def prompts(self, memory_length: int = 1) -> list[Prompt]:
        return Game(self.words, [self.words, self.words[::-1]], memory_length, self.template, Payoffs()).prompts()


def _local(name: str) -> Case:
    pytest.importorskip("torch", reason="language models need the extra llm")
    pytest.importorskip("transformers", reason="language models need the extra llm")
    from _prompt_files import SHORT
    from _tiny_models import CHAT, architecture, letter_tokenizer
    from policy_extraction.backends.local._transformers import given

    tokenizer = letter_tokenizer(chat=CHAT)
    backend = given(architecture(name, len(tokenizer)), tokenizer)
    # Letters that this random model says often.
    prompt = SHORT.prompt(HIS_HER, [], Payoffs())
    letters = string.ascii_letters
    (scores,) = backend.score([prompt], letters)
    first, second = np.argsort(-scores.log_probability[0])[:2]
    return Case(backend, (letters[first], letters[second]), SHORT)


def _served(stack: ExitStack) -> Case:
    pytest.importorskip("openai", reason="APIs need the extra api")
    from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
    from policy_extraction.backends.api._openai import OpenAIBackend

    seen = Behaviour(KnownModel.of(FIRST_WORDS, rare=";"), returns_prefill=True)
    url = stack.enter_context(serving(seen))
    return Case(OpenAIBackend("known", base_url=url, prefill="assistant"), HIS_HER, NAMING_GAME, 150)


def _own_server(stack: ExitStack, dialect: str) -> Case:
    pytest.importorskip("openai", reason="APIs need the extra api")
    from _openai_server import Behaviour, KnownModel, serving
    from policy_extraction.backends.api._openai import OpenAIBackend

    model = KnownModel.of(("his", "her", "the", "history", "x", "y", "z"))
    url = stack.enter_context(serving(Behaviour(model, dialect=dialect)))
    server = OpenAIBackend("known", base_url=url, prefill="assistant", top_logprobs=2, exact=True)
    return Case(server, HIS_HER, NAMING_GAME, 150)


@pytest.fixture(scope="module", params=["table", "tree", "batches", "openai", "vllm", "sglang"])
def case(request):
    with ExitStack() as stack:
        if request.param == "table":
            yield Case(TableBackend(conformist, HIS_HER, 2), HIS_HER, NAMING_GAME)
        elif request.param == "openai":
            yield _served(stack)
        elif request.param in ("vllm", "sglang"):
            yield _own_server(stack, request.param)
        else:
            yield _local({"tree": "llama", "batches": "mamba"}[request.param])


def scored(backend, asked, words):
    """Log-probabilities (n, W), put together from the portions."""
    log_p = np.full((len(asked), len(words)), np.nan)
    for portion in backend.score(asked, words):
        assert portion.log_probability.shape == portion.censored.shape == (len(portion.numbers), len(words))
        assert portion.censored.dtype == bool and np.issubdtype(portion.numbers.dtype, np.integer)
        assert np.isnan(log_p[portion.numbers]).all(), "a prompt was answered twice"
        log_p[portion.numbers] = portion.log_probability
    assert not np.isnan(log_p).any(), "a prompt was not answered"
    return log_p


# --- the battery ---------------------------------------------------------------------------------------------------


def test_it_says_what_it_is_and_how_it_spells_words(case):
    assert isinstance(case.backend, Backend)
    assert case.backend.name and isinstance(case.backend.identity, str)
    assert all(isinstance(value, (str, int, float)) for value in case.backend.provenance.values())
    case.backend.check(case.prompts(), case.words)
    spelled = case.backend.tokens(case.words)
    assert len(spelled) == 2 and all(isinstance(one, str) for one in spelled)


def test_each_prompt_is_answered_once_with_probabilities(case):
    log_p = scored(case.backend, case.prompts(), case.words)
    assert (log_p <= 0).all()
    assert (np.exp(log_p).sum(-1) <= 1 + 1e-9).all()
    assert log_p.std(0).min() > 0.01, "a model that does not read its memory shows nothing"
    assert list(case.backend.score([], case.words)) == []


def test_the_answer_to_a_prompt_depends_on_nothing_else(case):
    asked = case.prompts()
    log_p = scored(case.backend, asked, case.words)
    np.testing.assert_allclose(scored(case.backend, asked[3:5], case.words), log_p[3:5], atol=2e-5)
    np.testing.assert_allclose(scored(case.backend, asked[::-1], case.words), log_p[::-1], atol=2e-5)
    np.testing.assert_allclose(scored(case.backend, [asked[2]] * 3, case.words), log_p[[2, 2, 2]], atol=2e-5)
    np.testing.assert_allclose(scored(case.backend, asked, case.words[::-1]), log_p[:, ::-1], atol=2e-5)


@pytest.mark.slow
def test_what_is_generated_has_the_probabilities_that_are_scored(case):
    asked = case.prompts()[:3]
    probability = np.exp(scored(case.backend, asked, case.words))
    texts = case.backend.generate(asked * case.copies, max_tokens=1, seed=1)
    assert len(texts) == 3 * case.copies
    spoken = [[text.lstrip(" ") for text in texts[i::3]] for i in range(3)]
    shares = np.array([[np.mean([text == word for text in said]) for word in case.words] for said in spoken])

    def off(p):
        return np.abs((shares - p) / np.sqrt(p * (1 - p) / case.copies)).max()

    assert off(probability) < N_SIGMA
    assert off(probability / 2) > N_SIGMA, "the comparison sees nothing"


def test_seeds_and_temperature_zero(case):
    asked = case.prompts()[:2] * 4
    first = case.backend.generate(asked, max_tokens=2, seed=3)
    assert case.backend.generate(asked, max_tokens=2, seed=3) == first
    assert case.backend.generate(asked, max_tokens=2, seed=4) != first
    greedy = case.backend.generate(asked, max_tokens=2, temperature=0)
    assert greedy == greedy[:2] * 4
    assert case.backend.generate([], max_tokens=2) == []


def test_a_policy_of_it(case):
    policy = extract(case.backend, words=case.words, memory_length=1, template=case.template, cache=False)
    log_p = scored(case.backend, case.prompts(), case.words).reshape(2, 5, 2)
    np.testing.assert_allclose(policy["log_probability"].values, log_p, atol=2e-5)
    assert policy["model"].item() == case.backend.name
    assert meanfield.toolbox.words_of(policy) == case.words


# --- tables --------------------------------------------------------------------------------------------------------


def test_a_table_becomes_its_policy():
    policy = extract(TableBackend(conformist, HIS_HER, 2), words=HIS_HER, memory_length=2, temperature=1)
    space = meanfield.MemorySpace(2, 2)
    for state in range(space.n_states):
        memory = [(HIS_HER[own], HIS_HER[partner]) for own, partner in space.memory(state)]
        p = np.mean([conformist(memory, order)["his"] / 0.9 for order in PRESENTED])
        assert policy["q"].values[state, 0] == pytest.approx(p, rel=1e-12)
    np.testing.assert_allclose(policy["captured_mass"].values, 0.9)


def test_a_table_may_leave_a_word_without_probability():
    certain = TableBackend(lambda memory, order: {"his": 1.0}, HIS_HER, 1)
    policy = extract(certain, words=HIS_HER, memory_length=1)
    assert (policy["q"].values == [1, 0]).all()
    asked = Game(HIS_HER, [HIS_HER], 1, NAMING_GAME, Payoffs()).prompts()
    assert set(certain.generate(asked, max_tokens=1, seed=0)) == {"his"}


@pytest.mark.parametrize(
    ("answers", "game", "message"),
    [
        *(({"his": p}, {}, "expected probabilities") for p in (1.2, -0.1, np.nan)),
        ({"his": 1.0}, {"memory_length": 2}, "of another game"),
        ({"his": 1.0}, {"payoffs": Payoffs(1, 0)}, "of another game"),
    ],
)
def test_a_table_that_gives_no_probabilities_of_a_prompt_is_refused(answers, game, message):
    table = TableBackend(lambda memory, order: answers, HIS_HER, 1)
    with refused(message):
        extract(table, **{"words": HIS_HER, "memory_length": 1, **game})


def test_a_template_that_hides_the_memory_is_refused():
    blind = Template("blind", "[$options] ${history}", "say", "'", "'$word'", "${own}${partner}")
    assert TableBackend(conformist, HIS_HER, 2, template=blind)
    with pytest.raises(InputError, match="two memories have the same prompt"):
        TableBackend(conformist, ("a", "aa"), 1, template=blind)


# --- local models --------------------------------------------------------------------------------------------------

needs_libraries = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")),
    reason="language models need the extra llm",
)


@pytest.fixture
def continued():
    """A model of five tokens, of which 4 ends a text, and P(continuation) of up to three tokens after a context."""
    import torch

    from _tiny_models import random_model

    model, context = random_model(5, seed=2), (1, 2, 0)
    expected: dict[tuple[int, ...], float] = {}

    def follow(said: tuple[int, ...], p: float) -> None:
        if len(said) == 3:
            expected[said] = p
            return
        with torch.no_grad():
            after = model(torch.tensor([[*context, *said]])).logits[0, -1].double().softmax(-1).tolist()
        expected[said] = p * after[4]
        for token in range(4):
            follow((*said, token), p * after[token])

    follow((), 1.0)
    assert sum(expected.values()) == pytest.approx(1)
    return model, context, expected


@needs_libraries
def test_continuations_have_the_law_of_the_model(continued):
    from policy_extraction.backends.local._decode import continuations

    model, context, expected = continued
    draws = np.random.default_rng(0).random((4000, 3))
    for temperature, right in ((1.0, True), (1.5, False)):
        said = Counter(
            continuations(model, [context] * len(draws), draws, temperature, frozenset({4}), lambda length: 16, True)
        )
        assert set(said) <= set(expected)
        off = [(said[c] - len(draws) * p) / np.sqrt(len(draws) * p * (1 - p)) for c, p in expected.items() if p > 0.005]
        assert bool(np.abs(off).max() < N_SIGMA) is right


@needs_libraries
def test_batches_and_caches_do_not_change_what_is_said(continued):
    import torch

    from policy_extraction.backends.local._decode import continuations

    model, context, _ = continued
    contexts = [context, (1, 3), context, (0, 0, 0, 1)] * 20
    draws = np.random.default_rng(1).random((len(contexts), 6))
    said = continuations(model, contexts, draws, 1.0, frozenset({4}), lambda length: 1000, True)
    assert len(set(said)) > 20
    for rows, cache in ((1, True), (3, True), (1000, False)):
        assert continuations(model, contexts, draws, 1.0, frozenset({4}), lambda _, n=rows: n, cache) == said
    (alone,) = continuations(model, [context], draws[:1], 1.0, frozenset({4}), lambda length: 1, True)
    assert alone == said[0]
    (greedy,) = continuations(model, [context], draws[:1, :4], 0.0, frozenset(), lambda length: 1, True)
    for i, token in enumerate(greedy):
        assert model(torch.tensor([[*context, *greedy[:i]]])).logits[0, -1].argmax() == token


@needs_libraries
def test_copies_share_forward_passes(continued, monkeypatch):
    from policy_extraction.backends.local import _decode

    model, context, _ = continued
    rows = []
    read = _decode.read

    def counted(model, sequences, *others):
        rows.append((len(sequences), len(sequences[0])))
        return read(model, sequences, *others)

    monkeypatch.setattr(_decode, "read", counted)
    draws = np.random.default_rng(0).random((500, 2))
    _decode.continuations(model, [context] * 500, draws, 1.0, frozenset(), lambda _: 64, True)
    assert sum(n * length for n, length in rows) == len(context) + 5


@needs_libraries
def test_generation_stops_at_the_tokens_of_model_and_tokenizer():
    from _tiny_models import CHAT, architecture, letter_tokenizer
    from policy_extraction.backends.local._transformers import given

    tokenizer = letter_tokenizer(chat=CHAT)
    model = architecture("llama", len(tokenizer))
    backend = given(model, tokenizer)
    prompt = Prompt("rules", "say", "'")
    text = backend.generate([prompt], max_tokens=6, temperature=0)[0]
    assert len(text) == 6
    model.generation_config.eos_token_id = [tokenizer.convert_tokens_to_ids(text[4])]
    assert backend.generate([prompt], max_tokens=6, temperature=0)[0] == text[: text.index(text[4])]
    tokenizer.eos_token = text[2]
    shorter = text[: min(text.index(text[i]) for i in (2, 4))]
    assert backend.generate([prompt], max_tokens=6, temperature=0)[0] == shorter
