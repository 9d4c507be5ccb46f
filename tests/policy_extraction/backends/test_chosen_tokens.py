"""Servers that are asked for exactly the tokens of the words, in the dialects of vLLM, SGLang and llama.cpp.

The server on this machine answers from a known distribution in double precision, so numbers agree to rounding.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest

from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

from _known_server import HIS_HER, backend
from _openai_server import FIRST_WORDS, Behaviour, KnownModel, serving
from _token_server import KnownTokenizer
from meanfield import InputError
from policy_extraction import extract
from policy_extraction.backends.api import ServerError
from policy_extraction.backends.api._dialects import VLLM, LlamaCpp, SGLang, recognised, tokenised
from policy_extraction.backends.api._reply import UnusableReplyError
from policy_extraction.backends.api._request import request_for
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._games import Game
from policy_extraction.prompts._template import Prompt

PROMPTS = Game(HIS_HER, [HIS_HER, HIS_HER[::-1]], 1, NAMING_GAME, Payoffs()).prompts()
CHOSEN = "logprob_token_ids"
OLD = {"dialect": "vllm", "unknown": [CHOSEN]}
TALKS = {
    "vllm": {"dialect": "vllm"},
    "vllm of 2025": OLD,
    "vllm, refuses": {"dialect": "vllm", "refused": [CHOSEN]},
    "sglang": {"dialect": "sglang"},
    "llamacpp": {"dialect": "llamacpp"},
}
DIALECTS = ("vllm", "sglang", "llamacpp")


def conversation(prompt: Prompt) -> str:
    return json.dumps([["system", prompt.system], ["user", prompt.user]])


def probability(model: KnownModel, prompt: Prompt, tokens: list[bytes], talk: str | None = None) -> float:
    """That the answer begins with these tokens."""
    begun, p = prompt.answer_prefix.encode(), 1.0
    for token in tokens:
        after = model.probabilities(conversation(prompt) if talk is None else talk, begun)
        p, begun = p * after[list(model.vocabulary).index(token)], begun + token
    return p


def measured(url: str, words=HIS_HER, asked=PROMPTS, **options) -> np.ndarray:
    """Log-probabilities (n, W); none of them is censored."""
    log_p = np.full((len(asked), len(words)), np.nan)
    model = backend(url, **{"exact": True, "top_logprobs": 3} | options)
    for portion in model.score(asked, words):
        assert not portion.censored.any()
        log_p[portion.numbers] = portion.log_probability
    return log_p


@pytest.mark.parametrize(
    ("talk", "own_tokenizer"), [*((talk, True) for talk in TALKS), *((dialect, False) for dialect in DIALECTS)]
)
def test_a_policy_equals_the_servers_table(talk, own_tokenizer):
    """Also of plain text, which needs no tokenizer."""
    model = KnownModel.of(FIRST_WORDS)
    behaviour = Behaviour(model, **TALKS[talk])
    tokenizer = KnownTokenizer(model.vocabulary) if own_tokenizer else None
    with serving(behaviour) as url:
        server = backend(url, exact=True, top_logprobs=3, tokenizer=tokenizer)
        policy = extract(server, words=HIS_HER, memory_length=1, temperature=1.0, cache=False)
        plain = measured(url, prefill="text", asked=PROMPTS[:2])
    for prompt, row in zip(PROMPTS, plain, strict=False):
        whole = replace(prompt, answer_prefix="\n\n".join([prompt.system, prompt.user, prompt.answer_prefix]))
        truth = [probability(model, whole, [word.encode()], "") for word in HIS_HER]
        np.testing.assert_allclose(row, np.log(truth), rtol=0, atol=1e-12)
    table = np.array([[probability(model, prompt, [word.encode()]) for word in HIS_HER] for prompt in PROMPTS])
    np.testing.assert_allclose(policy["log_probability"].values.reshape(-1, 2), np.log(table), rtol=0, atol=1e-12)
    q = (table / table.sum(-1, keepdims=True)).reshape(2, -1, 2).mean(0)
    np.testing.assert_allclose(policy["q"].values, q, rtol=0, atol=1e-12)
    assert policy["word_tokens"].values.tolist() == ["0", "1"]
    asked = policy.attrs["option_asked"].lower().replace(".", "")
    assert behaviour.dialect in asked and "listed" not in asked
    # The control: listed tokens also count the spelling with a space.
    spaced = np.array([probability(model, prompt, [b" his"]) for prompt in PROMPTS])
    assert spaced.min() > 1e-4


def test_one_request_gives_all_words_where_the_server_can():
    """Otherwise each unlisted word takes one more."""
    model, few = KnownModel.of(FIRST_WORDS), PROMPTS[:4]
    cases = [({"dialect": "sglang"}, 1, set()), ({"dialect": "vllm"}, 1, {CHOSEN}), (OLD, 30, set())]
    cases += [({"dialect": "llamacpp"}, 30, set()), ({"dialect": "llamacpp"}, 1, {"logit_bias"})]
    cases += [(OLD, 1, {"allowed_token_ids"})]
    for behaves, listed, fields in cases:
        behaviour = Behaviour(model, **behaves)
        with serving(behaviour) as url:
            server = backend(url, exact=True, top_logprobs=listed, tokenizer=KnownTokenizer(model.vocabulary))
            server.check(PROMPTS[:1], HIS_HER)
            behaviour.requests.clear()
            list(server.score(few, HIS_HER))
        ways = {CHOSEN, "allowed_token_ids", "logit_bias"}
        used = [ways & set(request) for request in behaviour.requests]
        assert set().union(*used) == fields
        one = listed > 1 or fields <= {CHOSEN}
        assert len(used) == len(few) if one else len(few) < len(used) <= 3 * len(few)


SEVERAL_TOKENS = {
    "share a token": (("h", "is", "er", "x"), ("his", "her")),
    "one continues": (("he", "r", "his", "x"), ("his", "her", "he")),
    "letters": (("h", "e", "r", "i", "x"), ("hi", "her", "he")),
}


@pytest.mark.parametrize(("case", "dialect"), zip(SEVERAL_TOKENS, DIALECTS, strict=True))
def test_words_of_several_tokens(case, dialect):
    vocabulary, words = SEVERAL_TOKENS[case]
    model, few = KnownModel.of(vocabulary), PROMPTS[:3]
    tokenizer = KnownTokenizer(model.vocabulary)
    with serving(Behaviour(model, dialect=dialect)) as url:
        log_p = measured(url, words, few, tokenizer=tokenizer)
    spelled = [[model.vocabulary[i] for i in ids] for ids in tokenizer(words)["input_ids"]]
    begins = np.array([[probability(model, prompt, tokens) for tokens in spelled] for prompt in few])
    begins[:, 2:] -= begins[:, [1]]  # 'he' that does not go on to 'her'
    np.testing.assert_allclose(np.exp(log_p), begins, rtol=1e-9, atol=1e-12)


def test_a_word_may_merge_with_the_end_of_the_prefix():
    model = KnownModel.of(("'", "'her", "his", "her", "x"))
    prompt = Prompt("Rules.", "Which one?", "I say '")
    for options in ({}, {"tokenizer": KnownTokenizer(model.vocabulary)}):
        with serving(Behaviour(model, dialect="vllm")) as url:
            log_p = measured(url, asked=[prompt] * 2, **options)
        before = replace(prompt, answer_prefix="I say ")
        truth = [probability(model, before, tokens) for tokens in ([b"'", b"his"], [b"'her"])]
        np.testing.assert_allclose(log_p, np.log([truth] * 2), rtol=0, atol=1e-12)
        assert abs(truth[1] - probability(model, prompt, [b"her"])) > 1e-4


def test_impossible_words_have_no_probability():
    model = KnownModel.of(("his", "x"), rare=("his",), rarity=0.0)
    for dialect in DIALECTS:
        with serving(Behaviour(model, dialect=dialect)) as url:
            log_p = measured(url, ("his", "x"), tokenizer=KnownTokenizer(model.vocabulary))
        assert (log_p[:, 0] == -np.inf).all() and np.isfinite(log_p[:, 1]).all()


# --- other servers, and faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "behaves"),
    [
        ("neither vLLM nor SGLang nor llama.cpp", {}),
        ("does not know logit_bias", TALKS["llamacpp"] | {"unknown": ["logit_bias"]}),
        ("or gives log-probabilities after it", TALKS["llamacpp"] | {"filtered": True}),
        ("gives no log-probabilities of chosen tokens", OLD | {"refused": ["allowed_token_ids"]}),
        ("or filtered ones", OLD | {"filtered": True}),
        ("return_tokens_as_token_ids is not supported", TALKS["vllm"] | {"refused": ["return_tokens_as_token_ids"]}),
        ("does not tell tokens by number", TALKS["vllm"] | {"unknown": ["return_tokens_as_token_ids"]}),
        ("knows no token_ids_logprob", TALKS["sglang"] | {"unknown": ["token_ids_logprob"]}),
        ("token_ids_logprob is not supported", TALKS["sglang"] | {"refused": ["token_ids_logprob"]}),
    ],
)
def test_without_the_feature_listed_tokens_are_asked_for(reason, behaves):
    model = KnownModel.of(FIRST_WORDS)
    tokenizer = KnownTokenizer(model.vocabulary)
    with serving(Behaviour(model, **behaves)) as url:
        server = backend(url, exact=True, tokenizer=tokenizer, top_logprobs=30)
        with pytest.warns(UserWarning, match=reason):
            server.check(PROMPTS[:1], HIS_HER)
        found = sorted(server.score(PROMPTS, HIS_HER), key=lambda portion: portion.numbers[0])
        listed = sorted(backend(url, top_logprobs=30).score(PROMPTS, HIS_HER), key=lambda portion: portion.numbers[0])
    for one, other in zip(found, listed, strict=True):
        np.testing.assert_array_equal(one.log_probability, other.log_probability)
    assert reason in server.provenance["asked"] and server.tokens(HIS_HER) == ["", ""]


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_a_server_that_tokenises_no_conversation_needs_the_tokenizer(dialect):
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), dialect=dialect, refused=["conversations"])
    with serving(behaviour) as url, pytest.warns(UserWarning, match="tokenizer = None: expected the model's"):
        backend(url, exact=True, top_logprobs=30).check(PROMPTS[:1], HIS_HER)


FAULTS = [(dialect, fault) for dialect in ("vllm", "sglang") for fault in ("nan", "truncated", "500")]
FAULTS += [("sglang", "missing token"), ("sglang", "sum"), ("vllm", "no tokens")]


@pytest.mark.parametrize(("dialect", "fault"), FAULTS)
def test_a_faulty_answer_is_asked_again_and_never_taken(dialect, fault):
    model = KnownModel.of(FIRST_WORDS)
    behaviour = Behaviour(model, dialect=dialect)
    tokenizer = None if fault == "no tokens" else KnownTokenizer(model.vocabulary)
    with serving(behaviour) as url:
        server = backend(url, exact=True, tokenizer=tokenizer, top_logprobs=30, concurrency=1)
        server.check(PROMPTS[:1], HIS_HER)
        (right,) = server.score(PROMPTS[:1], HIS_HER)
        behaviour.failures = [fault]
        (again,) = server.score(PROMPTS[:1], HIS_HER)
        assert server.provenance["retries"] == 1
        np.testing.assert_array_equal(again.log_probability, right.log_probability)
        behaviour.always = fault
        with refused("failed 2 times in a row", ServerError):
            list(server.score(PROMPTS, HIS_HER))


class Replying:
    """A server that always gives this reply."""

    model, base_url = "known", "http://127.0.0.1:1/v1"

    def __init__(self, reply):
        self.reply = reply

    async def ask(self, client, request, read):
        return read(self.reply)


ODD = [None, 5, "x", [], {}, [5], [[]], [None], {"0": 1}, [["x"]], [[0.5]], [[[-1.0, [7], None]]], [[["x", 7, None]]]]


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_odd_replies_are_unusable_or_refused(odd):
    """No reply leads to another error, or to a number."""
    unusable = pytest.raises((UnusableReplyError, InputError))
    for reply in ({"meta_info": odd}, {"meta_info": {"output_token_ids_logprobs": odd}}):
        with unusable:
            asyncio.run(SGLang(Replying(reply), "").after(None, (1,), [7]))
    columns = {"tokens": ["token_id:7"], "token_logprobs": [-1.0], "top_logprobs": odd}
    unread = "x" if odd is None else odd  # null is a bound
    for logprobs in (odd, {"content": odd}, columns, columns | {"top_logprobs": [{"token_id:8": unread}]}):
        vllm = VLLM(Replying({"choices": [{"logprobs": logprobs}]}), 20, "")
        vllm._chosen = True
        for asked in (vllm.after(None, (1,), [7]), vllm._list(None, (1,))):
            with unusable:
                asyncio.run(asked)
    for told in (odd, [odd], [{"id": 7, "logprob": odd, "top_logprobs": odd}], [{"id": 7, "top_logprobs": [odd]}]):
        with unusable:
            asyncio.run(LlamaCpp(Replying({"completion_probabilities": told}), 20).after(None, (1,), [7]))
    for reply in ({"data": odd}, {"data": [{"owned_by": odd}]}):
        with pytest.raises(InputError, match="neither vLLM nor SGLang"):
            asyncio.run(recognised(Replying(reply), None, 20))
    with pytest.raises(UnusableReplyError, match="no tokens"):
        told = VLLM(Replying({"tokens": [odd, -1]}), 20, "")
        asyncio.run(tokenised(None, told, request_for(PROMPTS[0], "", "text", 1)))


def test_a_filter_that_comes_later_is_seen():
    model = KnownModel.of(FIRST_WORDS)
    behaviour = Behaviour(model, **OLD)
    with serving(behaviour) as url:
        server = backend(url, exact=True, tokenizer=KnownTokenizer(model.vocabulary), top_logprobs=2)
        server.check(PROMPTS[:1], HIS_HER)
        behaviour.filtered = True
        with refused("a log-probability in the reply is 0", ServerError):
            list(server.score(PROMPTS, HIS_HER))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prefill": "none"}, "prefill = 'none': expected assistant or text for exact=True"),
        ({"tokenizer": 5}, "tokenizer = 5: expected one of transformers"),
        ({"batches": True}, "batches = True: expected exact = False"),
        ({"tokenizer": "/absent/folder"}, "/absent/folder"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with refused(message):
        backend("http://127.0.0.1:1/v1", exact=True, **options)


def test_answers_of_both_ways_are_kept_apart():
    url = "http://127.0.0.1:1/v1"
    tokenizer = KnownTokenizer([b"x"])
    servers = [backend(url), backend(url, exact=True), backend(url, exact=True, tokenizer=tokenizer)]
    assert len({server.identity for server in servers}) == 3


# --- the prefix cache ------------------------------------------------------------------------------------------------


def shared(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def test_prompts_come_in_the_order_of_the_tree():
    """The server reads what follows the last prompt's beginning: in the tree's order each beginning once."""
    model = KnownModel.of(FIRST_WORDS)
    asked = Game(HIS_HER, [HIS_HER, HIS_HER[::-1]], 2, NAMING_GAME, Payoffs()).prompts()
    mixed = [asked[i] for i in np.random.default_rng(0).permutation(len(asked))]
    behaviour = Behaviour(model, dialect="sglang")
    with serving(behaviour) as url:
        measured(url, asked=mixed, tokenizer=KnownTokenizer(model.vocabulary), concurrency=1)
    sent = [request["input_ids"] for request in behaviour.requests if "input_ids" in request][-len(asked) :]
    beginnings = {tuple(tokens[:length]) for tokens in sent for length in range(1, len(tokens) + 1)}

    def n_read(sequences: list[list[int]]) -> int:
        pairs = zip([[], *sequences[:-1]], sequences, strict=True)
        return sum(len(tokens) - shared(before, tokens) for before, tokens in pairs)

    assert n_read(sent) == len(beginnings)
    shuffled = [sent[i] for i in np.random.default_rng(1).permutation(len(sent))]
    assert n_read(shuffled) > 1.4 * len(beginnings), "any order would do"
