"""The client of OpenAI-compatible servers, against a real one on this machine whose model is a known distribution.

Draws of the server are seeded by the number of the request or by the request's seed. What is compared with its
distribution is not drawn, but listed by the server in double precision.
"""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import numpy as np
import pytest

from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

import _openai_server
from _known_server import HIS_HER
from _openai_server import FIRST_WORDS, PREFIX, Behaviour, KnownModel, conversation_of, serving
from meanfield import InputError
from policy_extraction import extract
from policy_extraction.backends.api import _retries
from policy_extraction.backends.api._errors import ServerError, asked_wait
from policy_extraction.backends.api._limits import CostLimitError, Limits, Meter, Usage
from policy_extraction.backends.api._openai import SET_HERE, OpenAIBackend
from policy_extraction.backends.api._reply import UnusableReplyError, top_tokens_after, usage_of
from policy_extraction.backends.api._request import GO_ON
from policy_extraction.backends.api._words import TopTokens, begins_anew, measure, openings_after
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._template import Prompt

PROMPTS = [Prompt(f"Rules. Round {i}.", "Which one?", PREFIX) for i in range(6)]


def backend(url: str, **options) -> OpenAIBackend:
    return OpenAIBackend(**{"model": "known", "base_url": url, "backoff": 0.01, "concurrency": 1} | options)


def scores(model: OpenAIBackend, prompts: Sequence[Prompt] = PROMPTS, words: Sequence[str] = HIS_HER):
    """Log-probabilities and censoring of all prompts, (n, W) each."""
    portions = sorted(model.score(prompts, words), key=lambda portion: portion.numbers[0])
    assert [portion.numbers.tolist() for portion in portions] == [[i] for i in range(len(prompts))]
    return np.vstack([p.log_probability for p in portions]), np.vstack([p.censored for p in portions])


def conversation(prompt: Prompt) -> str:
    return json.dumps([["system", prompt.system], ["user", prompt.user]])


class Tailed(KnownModel):
    """One that lists a token so improbable that those it does not list can't matter."""

    def probabilities(self, conversation: str, answer: bytes) -> np.ndarray:
        p = super().probabilities(conversation, answer)
        p[-1] *= 1e-9
        return p / p.sum()


def exact(
    model: KnownModel,
    talk: str,
    words: Sequence[str],
    answer: str = PREFIX,
    said: bytes = b"",
    openings: Sequence[str] = ("", " "),
):
    """P(word) by following all token sequences, shape (W,)."""
    spelled = [[(opening + word).encode() for opening in openings] for word in words]
    total = np.zeros(len(words))
    for token, p in zip(model.vocabulary, model.probabilities(talk, answer.encode() + said), strict=True):
        text = said + token
        if any(form.startswith(text) and form != text for forms in spelled for form in forms):
            total += p * exact(model, talk, words, answer, text, openings)
        else:
            total += [p * (text.removesuffix(b"!") in forms) for forms in spelled]
    return total + [(said in forms) * (1 - total.sum()) for forms in spelled]


def expected(model: KnownModel, words: Sequence[str] = HIS_HER, prompts: Sequence[Prompt] = PROMPTS) -> np.ndarray:
    return np.array([exact(model, conversation(prompt), words) for prompt in prompts])


# --- probabilities ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefill", ["none", "assistant", "user", "text"])
def test_probabilities_of_the_servers_model_are_recovered(prefill):
    model = Tailed.of(FIRST_WORDS, obedience=float(prefill != "user"))
    behaviour = Behaviour(model)
    with serving(behaviour) as url:
        log_p, censored = scores(backend(url, prefill=prefill, top_logprobs=30))
    truth, asked = expected(model), behaviour.requests
    assert {request["temperature"] for request in asked} == {1} and len(asked) == len(PROMPTS)
    if prefill == "user":  # in a turn of its own the model may open the quotation again
        assert asked[0]["messages"][0]["content"] == PROMPTS[0].system
        assert asked[0]["messages"][1]["content"] == f"{PROMPTS[0].user}\n\n{GO_ON}\n{PREFIX}"
        talks = [conversation_of(request)[0] for request in asked]
        truth = np.array([exact(model, talk, HIS_HER, "", openings=("", " ", "'")) for talk in talks])
    if prefill == "text":
        texts = [f"{prompt.system}\n\nWhich one?\n\n{PREFIX}" for prompt in PROMPTS]
        assert [request["prompt"] for request in asked] == texts
        truth = np.array([exact(model, "", HIS_HER, text) for text in texts])
    np.testing.assert_allclose(np.exp(log_p), truth, atol=1e-6)
    assert not censored.any()
    # The control: the same words after another conversation have other probabilities.
    others = [Prompt(f"Rules. Turn {i}.", "Which one?", PREFIX) for i in range(6)]
    assert np.abs(np.exp(log_p) - expected(model, prompts=others)).max() > 0.1


@pytest.mark.parametrize(("prefix", "spellings"), [(PREFIX, 2), ("{'value': ", 4)])
def test_tokens_that_spell_the_same_word_are_added(prefix, spellings):
    """After an opening quotation mark another one closes it, so that what comes after that is not the answer."""
    model = Tailed.of(("his", " his", "'his", "\n\nhis", "her", "history", "x"))
    p = model.probabilities(conversation(PROMPTS[0]), prefix.encode())
    with serving(Behaviour(model)) as url:
        log_p, _ = scores(backend(url, prefill="assistant"), [replace(PROMPTS[0], answer_prefix=prefix)])
    np.testing.assert_allclose(np.exp(log_p[0]), [p[:spellings].sum(), p[4]], atol=1e-12)
    for others in (p[:1], p[: 6 - spellings], np.append(p[:spellings], p[5])):
        assert abs(np.exp(log_p[0, 0]) - others.sum()) > 0.001


SEVERAL_TOKENS = {
    "share a token": (("h", "is", "er", "x", "y"), ("his", "her")),
    "one and three": (("a", "h", "e", "r", "x"), ("a", "her")),
    "one continues": (("he", "r", "x", "y", "!"), ("he", "her")),
    "a tree": (("h", "e", "r", "i", "x"), ("h", "he", "her", "hi")),
    "bytes of a letter": (("é", "x"), ("né", "nà")),
}


@pytest.mark.parametrize("case", SEVERAL_TOKENS)
def test_words_of_several_tokens_are_followed_up(case):
    tokens, words = SEVERAL_TOKENS[case]
    model = Tailed.of([*tokens, "?", ";"], rare="?;")
    if case == "bytes of a letter":
        model = Tailed([b"n", b"\xc3", b"\xa9", *model.vocabulary], rare="?;")
    with serving(Behaviour(model)) as url:
        followed, censored = scores(backend(url, prefill="assistant"), words=words)
        single, all_censored = scores(backend(url), words=words)
    truth = expected(model, words)
    if case == "bytes of a letter":
        # Half a letter can't be sent back as text, so what begins with it stays a bound.
        assert censored.all() and (np.exp(followed) >= truth - 1e-12).all()
        return
    assert not censored.any()
    np.testing.assert_allclose(np.exp(followed), truth, atol=1e-6)
    # Where the server can't go on from a beginning, words with a token in common are bounded by its probability.
    assert all_censored[:, -1].all()
    assert (np.exp(single) >= truth - 1e-12).all()
    assert (np.exp(single) > truth + 0.01).any()


MANY_PROMPTS = [Prompt(f"Rules. Round {i}.", "Which one?", PREFIX) for i in range(40)]


def test_the_prefix_may_take_several_attempts():
    model = Tailed.of(FIRST_WORDS, obedience=0.7)
    behaviour = Behaviour(model)
    with serving(behaviour) as url:
        server = backend(url, top_logprobs=30, max_retries=40, backoff=1000.0)
        log_p, _ = scores(server)
    np.testing.assert_allclose(np.exp(log_p), expected(model), atol=1e-6)
    assert len(behaviour.requests) == len(PROMPTS) + server.provenance["retries"] > len(PROMPTS)


def reply_of(*positions: tuple[str, list[tuple[str, float]]]) -> dict:
    """A reply in which these tokens were written, each with what was listed in its place."""
    content = [
        {
            "token": token,
            "logprob": dict(listed)[token],
            "top_logprobs": [{"token": other, "logprob": p} for other, p in listed],
        }
        for token, listed in positions
    ]
    return {"choices": [{"logprobs": {"content": content}}]}


async def asked(words: Sequence[str], model: KnownModel, talk: str, top: int, follow_ups: int):
    """The measurement of a known distribution by lists of the `top` most probable tokens."""

    async def ask(begun: str) -> TopTokens:
        p = model.probabilities(talk, (PREFIX + begun).encode())
        listed = [(model.vocabulary[i].decode(), float(np.log(p[i]))) for i in np.argsort(-p)[:top] if p[i] > 0]
        return top_tokens_after(reply_of((listed[0][0], listed)), "", 100)

    return await measure(words, ask, follow_ups, openings_after(PREFIX))


SPELLED = (" ", *"hiser", "hi", "he", "is", "er", " h", " hi", " he", "his", "her", " his", " her", "hers", " hers")


def outcomes(n_laws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, number and censoring of all words for random models in which words begin alike or one begins another."""
    rows = []
    for seed in range(n_laws):
        rng = np.random.default_rng(seed)
        words = [("his", "her"), ("he", "her"), ("he", "hers"), ("h", "his", "hers")][seed % 4]
        tokens = rng.permutation([*rng.choice(SPELLED, 10, replace=False), *"xyz'!?", "'his"])
        model = KnownModel.of(tokens.tolist(), spread=float(rng.uniform(*[(0, 1), (4, 10)][seed // 4 % 2])))
        top, follow_ups = int(rng.integers(2, 18)), int(rng.integers(0, 12))
        log_p, censored = asyncio.run(asked(words, model, str(seed), top, follow_ups))
        rows += zip(exact(model, str(seed), words), np.exp(log_p), censored, strict=True)
    truth, p, censored = np.array(rows).T
    return truth, p, censored.astype(bool)


def test_no_bound_is_below_the_truth_and_no_measured_value_is_off_by_more_than_one_percent(monkeypatch):
    truth, p, censored = outcomes(200)
    assert (p[censored] >= truth[censored] - 1e-12).all()
    np.testing.assert_allclose(truth[~censored], p[~censored], rtol=0.01, atol=1e-12)
    assert (~censored & (p > 0.01)).sum() > 20, "nothing is shown if all is censored"
    # The controls: what one token can have is no bound of several spellings, and what is not listed is not nothing.
    monkeypatch.setattr(TopTokens, "most", lambda self, tokens: self.unlisted)
    truth, p, censored = outcomes(150)
    assert (p[censored] < truth[censored] - 1e-12).sum() > 5
    monkeypatch.setattr(TopTokens, "most", lambda self, tokens: -np.inf)
    truth, p, censored = outcomes(150)
    assert (abs(truth - p)[~censored] > 0.0101 * p[~censored]).sum() > 5


def test_an_end_of_the_answer_begins_no_word():
    async def ask(begun: str) -> TopTokens:
        assert begun == ""
        return TopTokens((b"", b"his", b"~"), tuple(np.log([0.6, 0.3, 1e-9])), np.log(1e-9), np.log(0.101))

    (log_p,), (censored,) = asyncio.run(measure(["his"], ask, 8, ("", " ")))
    assert np.exp(log_p) == pytest.approx(0.3) and not censored


def test_the_word_is_read_where_the_prefix_ends():
    def certain(token: str) -> tuple[str, list[tuple[str, float]]]:
        return token, [(token, -0.01), ("?", -5.0)]

    word = ("his", [("his", -0.7), ("her", -0.8)])
    for tokens in (["{'", "value", "': '"], ["\n\n", "{", "'value': '"], [" {'value': '"]):
        assert top_tokens_after(reply_of(*map(certain, tokens), word), PREFIX, 100).tokens == (b"his", b"her")
    with pytest.raises(UnusableReplyError, match="no token of the answer begins where"):
        top_tokens_after(reply_of(certain("{'value': "), certain("'his"), word), PREFIX, 100)
    with pytest.raises(UnusableReplyError, match="does not begin with"):
        top_tokens_after(reply_of(certain("The value is '"), word), PREFIX, 100)


def test_a_word_like_the_prefix_is_no_new_answer():
    top = TopTokens((b"{'", b" {", b"x"), (-2.0, -1.0, -3.0), -4.0, -1.0)
    assert begins_anew(top, PREFIX, HIS_HER) == pytest.approx(np.exp(-1) + np.exp(-2))
    assert begins_anew(TopTokens((b"A", b"B"), (-0.1, -3.0), -4.0, -1.0), "Answer: ", ("A", "B")) == 0


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["429", "500", "truncated", "no logprobs", "empty", "nan", "no choices", "hang up"])
def test_passing_failures_are_tried_again(failure):
    model = Tailed.of(FIRST_WORDS)
    behaviour = Behaviour(model, failures=["", failure, failure])
    with serving(behaviour) as url:
        server = backend(url, top_logprobs=30, prefill="assistant")
        log_p, _ = scores(server)
    np.testing.assert_allclose(np.exp(log_p), expected(model), atol=1e-6)
    assert len(behaviour.requests) == len(PROMPTS) + 2 == server.provenance["requests"]
    assert server.provenance["retries"] == 2
    if failure == "429":
        assert min(np.diff(behaviour.times)[1:3]) > 0.149, "Retry-After was not heeded"


@pytest.mark.parametrize("failure", ["500", "truncated", "no logprobs", "slow", "hang up"])
def test_a_server_that_goes_on_failing_is_given_up(failure):
    """After the portions that were measured before."""
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), failures=["works"] * 2, always=failure)
    with serving(behaviour) as url:
        server = backend(url, prefill="assistant", max_retries=2, timeout=0.2 if failure == "slow" else 60.0)
        done = []
        with refused("failed 3 times in a row", ServerError):
            done.extend(portion.numbers[0] for portion in server.score(PROMPTS, HIS_HER))
    assert done == [0, 1] and len(behaviour.requests) == 5


def test_answers_in_flight_come_before_the_failure():
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), failures=["", "", "too long"], delay=0.05)
    with serving(behaviour) as url:
        done = []
        with pytest.raises(InputError, match="longer than the context"):
            done.extend(backend(url, prefill="assistant", concurrency=3).score(MANY_PROMPTS, HIS_HER))
    assert 2 <= len(done) == len(behaviour.requests) - 1 < 20


def test_waiting_grows_and_no_attempt_is_lost_to_the_longest_wait(monkeypatch):
    monkeypatch.setattr(_retries, "LONGEST_WAIT", 0.04)
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), failures=["500"] * 6)
    with serving(behaviour) as url:
        server = backend(url, prefill="assistant", max_retries=6, backoff=0.01)
        scores(server, PROMPTS[:1])
        # An own wait above the longest one would have ended it all.
        assert (np.diff(behaviour.times) >= 0.75 * np.minimum(0.04, 0.01 * 2.0 ** np.arange(6))).all()
        behaviour.failures = ["429"]  # a longer wait that the server asks for ends it all
        with pytest.raises(ServerError, match="Rate limit"):
            scores(server, PROMPTS[:1])


def test_servers_say_how_long_to_wait_in_several_ways():
    def wait(**headers: str) -> float | None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        return asked_wait(SimpleNamespace(response=SimpleNamespace(headers=told)))

    assert (wait(retry_after="7"), wait(retry_after_ms="250", retry_after="7"), wait(retry_after="-3")) == (7, 0.25, 0)
    assert 20 <= wait(retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)) <= 30
    dates = "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 -9999"
    for absurd in ("soon", "1e400", "9" * 5000, *dates):
        assert (wait(retry_after=absurd) or 0.0) >= 0
    assert asked_wait(TimeoutError()) is None


ONE_LINE = {
    "key": ({"api_key": "wrong"}, {"key": "right"}, "api_key: refused by .*401.*Incorrect API key"),
    "model": ({"model": "gpt-0"}, {}, "model = gpt-0: not found at .*does not exist"),
    "too many": (
        {"top_logprobs": 20},
        {"most_logprobs": 5},
        "top_logprobs = 20: refused .* than 5.*expected fewer",
    ),
    "no logprobs": ({}, {"always": "no logprobs"}, "no logprobs"),
    "empty": ({"prefill": "assistant"}, {"always": "empty"}, "top_logprobs of the reply are empty"),
    "nan": ({"prefill": "assistant"}, {"always": "nan"}, "NaN"),
    "no credit": ({}, {"always": "no credit"}, "no credit left.*quota"),
    "context": ({}, {"always": "too long"}, "longer than the context"),
    "long wait": ({}, {"always": "429 for long"}, "asks for a wait of 3,600 s before .*Daily limit"),
    "broken": ({}, {"always": "truncated"}, "no whole JSON"),
    "hang up": ({}, {"always": "hang up"}, "base_url = .*can't be reached"),
    "slow": ({"timeout": 0.1}, {"delay": 0.5}, "no answer within 0.1 s"),
    "not there": ({"base_url": "http://127.0.0.1:1/v1"}, {}, "base_url = .*can't be reached"),
    "begins anew": ({"prefill": "assistant"}, {"continues": False}, "prefill = 'assistant': .*take 'none'"),
    "other prefix": ({"prefill": "none", "max_retries": 3}, {"model": "lazy"}, "does not begin with {'value': '"),
}


@pytest.mark.parametrize("case", ONE_LINE)
def test_what_can_not_work_is_one_line_at_the_check(case):
    """Also a wait of hours, which is not waited."""
    options, behaviour, match = ONE_LINE[case]
    model = KnownModel.of(FIRST_WORDS, obedience=float(behaviour.get("model") != "lazy"))
    seen = Behaviour(**{**behaviour, "model": model})
    with serving(seen) as url:
        begin = time.monotonic()
        with refused(match, InputError, ServerError):
            backend(url, backoff=10.0, **options).check(PROMPTS, HIS_HER)
        assert time.monotonic() - begin < 6, "it waited"
    assert len(seen.requests) == {"other prefix": 4, "not there": 0, "too many": 2}.get(case, 1)


def test_a_check_that_passes_costs_one_request():
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url:
        longest = Prompt("Rules, and many more of them.", "Which one?", PREFIX)
        backend(url, prefill="assistant").check([PROMPTS[0], longest, PROMPTS[1]], HIS_HER)
    (request,) = behaviour.requests
    assert request["messages"][0]["content"] == longest.system


def test_keys(monkeypatch):
    """The key in the environment is not sent to this machine, and no key is shown."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with refused("OPENAI_API_KEY"):
        OpenAIBackend("gpt-4o")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "secret" not in repr(vars(OpenAIBackend("gpt-4o")))
    with serving(Behaviour(KnownModel.of(FIRST_WORDS), key="secret")) as url:
        with refused("api_key"):
            backend(url).check(PROMPTS, HIS_HER)
        backend(url, api_key="secret").check(PROMPTS, HIS_HER)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("model", name) for name in ("", " ", "a\0b", "a\udc80", "x" * 1001)),
        ("poll", 0),
        ("prefill", "system"),
        *(("top_logprobs", value) for value in (0, True)),
        *(("concurrency", 0), ("max_retries", -1)),
        *(("timeout", value) for value in (0.0, "x", float("nan"))),
        *(("backoff", value) for value in (-1.0, None)),
        *(("base_url", value) for value in ("localhost:8000", 5)),
        *(("extra_body", value) for value in ([1], {1: 2})),
        *(("extra_body", {name: 1}) for name in SET_HERE),
        *(("extra_body", {"cache_prompt": value}) for value in (object(), {1, 2}, float("nan"), np.zeros((3, 3)))),
    ],
)
def test_wrong_arguments_are_refused_by_name(name, value):
    with refused(f"{name}( = |: expected what JSON can hold)"):
        backend(**{"url": "http://127.0.0.1:1/v1", name: value})


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 4])
def test_money_stops_before_it_is_exceeded(concurrency):
    # The server counts 100 tokens in and 1 out, but the client can't know that of a request in flight.
    limits = Limits(max_cost=1.0, input_price=1000.0, output_price=2000.0)
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), delay=0.01)
    with serving(behaviour) as url:
        server = backend(url, prefill="assistant", limits=limits, concurrency=concurrency)
        done = []
        with refused("max_cost = 1", CostLimitError):
            done.extend(server.score(MANY_PROMPTS, HIS_HER))
    cost = sum(1000 * 100 + 2000 * 1 for _ in behaviour.requests) / 1e6
    assert server.provenance["cost"] == pytest.approx(cost)
    assert 0.7 < cost <= 1.0
    assert len(behaviour.requests) == 9, "ten would have cost more"


@pytest.mark.parametrize("wrong", ["x", ["x"], None, {}, *({"prompt_tokens": n} for n in (-5, True, 3.5, 10**400))])
def test_a_request_is_charged_by_the_servers_count_or_the_most(wrong):
    assert usage_of({"usage": wrong}) is None
    assert usage_of({"usage": {"prompt_tokens": 5}}) == Usage(5, 0)
    limits = Limits(max_cost=1.0, input_price=1000.0, output_price=1000.0)
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), usage=False)
    with serving(behaviour) as url:
        server = backend(url, prefill="assistant", limits=limits)
        with pytest.raises(CostLimitError):
            list(server.score(PROMPTS * 3, HIS_HER))
    counted = server.provenance["tokens_in"] / len(behaviour.requests)
    assert counted >= sum(len(m["content"]) for m in behaviour.requests[0]["messages"])


@pytest.mark.parametrize(("failure", "charged"), [("500", False), ("429", False), ("slow", True), ("truncated", True)])
def test_a_failed_request_is_charged_unless_it_was_refused(failure, charged):
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), failures=["works", failure])
    with serving(behaviour) as url:
        server = backend(url, prefill="assistant", timeout=0.5 if failure == "slow" else 60.0)
        scores(server, PROMPTS[:2])
    assert server.provenance["requests"] == 3
    assert (server.provenance["tokens_in"] > 200) == charged


def test_requests_a_minute_are_spread():
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url:
        begin = time.monotonic()
        scores(backend(url, prefill="assistant", concurrency=4, limits=Limits(requests_per_minute=60 / 0.03)))
    assert behaviour.times[-1] - begin >= 5 * 0.03


def test_tokens_a_minute_are_spread_by_what_was_used():
    clock = [0.0]
    meter = Meter(Limits(tokens_per_minute=6000), clock=lambda: clock[0])  # 100 a second
    assert meter.book(Usage(300, 10)) == 0
    assert meter.book(Usage(100, 0)) == pytest.approx(3.1)
    meter.settle(Usage(300, 10), Usage(100, 10))  # two seconds less than was thought
    assert meter.book(Usage(50, 0)) == pytest.approx(2.1)
    meter.settle(Usage(50, 0), None)
    clock[0] = 2.6
    assert meter.book(Usage(1, 0)) == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute", "max_cost", "input_price"])
def test_wrong_limits_are_refused_by_name(name):
    for value in (-1.0, float("nan"), "1"):
        with pytest.raises(InputError, match=f"{name} = "):
            Limits(**{name: value})
    with pytest.raises(InputError, match="max_cost = 1: expected input_price and output_price"):
        Limits(max_cost=1)


def test_requests_overlap_and_threads_may_share_a_server():
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url, ThreadPoolExecutor(4) as pool:
        server = backend(url, prefill="assistant", concurrency=5)
        scores(server, PROMPTS[:1])  # the first prompt of a measurement is alone
        assert behaviour.most_in_flight == 1
        behaviour.gather = 5
        scores(server)
        assert behaviour.most_in_flight == 5
        behaviour.gather, behaviour.most_in_flight = 4, 0
        texts = list(pool.map(lambda text: server.complete("", text, max_tokens=3), "abcd"))
    assert len(texts) == behaviour.most_in_flight == 4


def test_an_interrupt_leaves_no_thread_and_sends_nothing_more():
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), failures=["", "", "", *["500"] * 50])
    with serving(behaviour) as url:
        portions = backend(url, prefill="assistant", concurrency=2, backoff=100.0).score(PROMPTS * 5, HIS_HER)
        next(portions), next(portions)  # the first prompt is alone
        assert "requests" in [thread.name for thread in threading.enumerate()]
        begin = time.monotonic()
        portions.close()
        assert time.monotonic() - begin < 6
        assert "requests" not in [thread.name for thread in threading.enumerate()]
        time.sleep(0.2)  # until the server has noted what was on its way
        sent = len(behaviour.requests)
        time.sleep(0.1)
        assert len(behaviour.requests) == sent


def test_an_interrupt_while_the_thread_starts_leaves_none(monkeypatch):
    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            if self.name == "requests":
                raise KeyboardInterrupt

    behaviour = Behaviour(KnownModel.of(FIRST_WORDS), always="slow")
    with serving(behaviour) as url:
        portions = backend(url, prefill="assistant").score(PROMPTS, HIS_HER)
        monkeypatch.setattr(threading, "Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(portions)
    assert "requests" not in [thread.name for thread in threading.enumerate()]


# --- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefill", ["none", "assistant", "text"])
def test_fields_of_the_servers_own_are_sent(prefill):
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url:
        list(backend(url, prefill=prefill, extra_body={"cache_prompt": False}).score(PROMPTS[:1], HIS_HER))
    (request,) = behaviour.requests
    assert request["cache_prompt"] is False
    assert request.get("continue_final_message", False) == (prefill == "assistant")


def test_an_image_travels_with_the_message_unless_it_is_too_dear():
    image = bytes(range(256))
    behaviour = Behaviour(KnownModel.of(FIRST_WORDS))
    with serving(behaviour) as url:
        text = backend(url).complete("Rules.", "What is it?", image_png=image, max_tokens=5, temperature=0.2, seed=1)
        poor = backend(url, limits=Limits(max_cost=0.005, input_price=1.0, output_price=1.0))
        poor.complete("", "Plain.", max_tokens=1)
        with pytest.raises(CostLimitError):
            poor.complete("", "Plain.", image_png=image, max_tokens=1)
    first, second = behaviour.requests
    assert text.startswith(PREFIX)
    assert first["messages"][0] == {"role": "system", "content": "Rules."}
    words, picture = first["messages"][1]["content"]
    assert words == {"type": "text", "text": "What is it?"}
    kind, data = picture["image_url"]["url"].split(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", image)
    assert (first["seed"], first["temperature"], first["max_tokens"]) == (1, 0.2, 5)
    assert second["messages"] == [{"role": "user", "content": "Plain."}]


# --- the whole way ---------------------------------------------------------------------------------------------------


def test_a_policy_stopped_by_its_cost_goes_on_where_it_stopped(tmp_path):
    model = Tailed.of(FIRST_WORDS)
    behaviour = Behaviour(model)
    how = {"words": HIS_HER, "memory_length": 1, "cache": tmp_path}
    with serving(behaviour) as url:
        few = Limits(max_cost=0.002, input_price=1.0, output_price=1.0)  # a prompt may cost 0.0013
        with pytest.raises(CostLimitError):
            extract(backend(url, prefill="assistant", top_logprobs=30, limits=few), **how)
        sent = len(behaviour.requests)
        policy = extract(backend(url, prefill="assistant", top_logprobs=30), **how)
        assert len(behaviour.requests) == 12, "ten prompts, and one for the check of each session"
        assert extract(backend(url, prefill="assistant", top_logprobs=30), **how).identical(policy)
        assert len(behaviour.requests) == 12
    assert 1 < sent < 11
    for order, options in enumerate([("his", "her"), ("her", "his")]):
        for state, memory in enumerate([[], *([(own, partner)] for own in HIS_HER for partner in HIS_HER)]):
            truth = exact(model, conversation(NAMING_GAME.prompt(options, memory, Payoffs())), HIS_HER)
            measured = policy["log_probability"].isel(order=order, state=state)
            np.testing.assert_allclose(np.exp(measured), truth, atol=1e-6)
    assert policy.attrs["option_top_logprobs"] == 30
    assert not {"version_torch", "version_transformers"} & set(policy.attrs), "nothing was computed here"


def test_provenance_and_identity_are_those_of_each_measurement(monkeypatch, tmp_path):
    """The server's model changes after the check and the first game."""
    reply = _openai_server._reply

    def changing(seen, body, number, path):
        return reply(seen, body, number, path) | {"system_fingerprint": f"fp_{1 + (number > 12)}"}

    monkeypatch.setattr(_openai_server, "_reply", changing)
    with serving(Behaviour(Tailed.of(FIRST_WORDS))) as url:
        server = backend(url, top_logprobs=30, prefill="assistant", limits=Limits(input_price=2.0, output_price=4.0))
        assert (server.provenance["requests"], server.provenance["cost"]) == (0, 0)
        policy = extract(server, words=[HIS_HER, ("x", "y")], memory_length=1, cache=False)
        for requests in (6, 12):  # parts of a measurement are counted together
            scores(server)
            assert server.provenance["requests"] == requests
        scores(server, words=("x", "y"))
        server.check(PROMPTS, ("x", "y"))
        scores(server, words=("x", "y"))
        assert server.provenance["requests"] == 6
    assert policy.attrs["option_system_fingerprint"] == "fp_1; fp_2"
    assert policy.attrs["option_model_answering"] == "known-2026"
    assert policy.attrs["option_requests"] == 10, "of each game, and not of the back end's whole life"
    assert policy.attrs["option_cost"] == pytest.approx((10 * 100 * 2 + 10 * 4) / 1e6)
    policy.to_netcdf(tmp_path / "policy.nc", engine="h5netcdf")
    asked = {"top_logprobs": 30, "prefill": "assistant"}
    assert backend(url, **asked).identity == server.identity and url in server.identity and "known" in server.identity
    others = [{"prefill": "user"}, {"top_logprobs": 5}, {"model": "other"}, {"extra_body": {"cache_prompt": False}}]
    assert len({server.identity, *(backend(url, **asked | other).identity for other in others)}) == 5
    assert server.name == "known" and server.tokens(HIS_HER) == ["", ""]
