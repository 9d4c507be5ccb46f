"""Servers that refuse fields, think before they answer, or tell few log-probabilities: measured, or refused at once."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

from _known_server import GAME, HIS_HER, backend
from _openai_server import FIRST_WORDS, PREFIX, Behaviour, KnownModel, serving
from meanfield import InputError
from policy_extraction import extract, lazy_policy, measure
from policy_extraction.backends.api import ServerError
from policy_extraction.backends.api._reply import top_tokens_after
from policy_extraction.prompts._template import Prompt

PROMPTS = [Prompt(f"Rules. Round {i}.", "Which one?", PREFIX) for i in range(3)]
MANY = 30  # tokens: more than the model has
OWN = ("temperature", "top_p", "seed")


class Sure(KnownModel):
    """One that says one of the words."""

    def probabilities(self, conversation: str, answer: bytes) -> np.ndarray:
        p = super().probabilities(conversation, answer)
        if answer.endswith(PREFIX.encode()):
            p[[i for i, token in enumerate(self.vocabulary) if token.decode() not in HIS_HER]] *= 1e-9
        return p / p.sum()


def model() -> KnownModel:
    return Sure.of(FIRST_WORDS)


# --- fields that are refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "left_out"),
    [
        (["top_p"], "top_p"),
        (["top_p", "temperature"], "temperature top_p"),
        (["max_tokens"], "max_tokens"),
        (["continue_final_message", "add_generation_prompt"], "add_generation_prompt continue_final_message"),
    ],
)
def test_what_a_server_refuses_is_left_out_and_said(fields: Sequence[str], left_out: str):
    plain, seen = Behaviour(model()), Behaviour(model(), refused=fields)
    with serving(plain) as url:
        truth = extract(backend(url, top_logprobs=MANY), **GAME, cache=False)
    with serving(seen) as url:
        policy = extract(backend(url, top_logprobs=MANY, concurrency=4), **GAME, cache=False)
    np.testing.assert_array_equal(policy["q"], truth["q"])
    assert (truth.attrs["option_left_out"], policy.attrs["option_left_out"]) == ("", left_out)
    # The check finds out, and no request of the measurement has the field.
    assert len(seen.requests) == len(plain.requests) + len(fields) <= len(plain.requests) + 4
    assert not any(set(fields) & request.keys() for request in seen.requests[-10:])
    assert not plain.requests[0].keys() & {"max_completion_tokens"}
    limits = [request.get("max_tokens", request.get("max_completion_tokens")) for request in seen.requests[-10:]]
    assert limits == [1] * 10


def test_an_option_that_is_not_the_servers_own_is_refused_by_name():
    with serving(Behaviour(model(), refused=OWN)) as url:
        asked = backend(url)
        asked.generate(PROMPTS[:1], max_tokens=1)
        assert asked._server.left_out == {"temperature", "top_p", "seed"}
        with refused("temperature = 0.5: refused .*expected its own, 1.0"):
            backend(url).generate(PROMPTS[:1], max_tokens=1, temperature=0.5)


def test_a_field_that_a_user_gave_is_not_left_out():
    seen = Behaviour(model(), refused=["reasoning_effort"])
    with serving(seen) as url, refused("reasoning_effort is not supported"):
        backend(url, extra_body={"reasoning_effort": "low"}).check(PROMPTS, HIS_HER)
    assert len(seen.requests) == 1


def test_a_service_names_the_field_apart_from_its_message():
    """The message may name another one, as in 'use max_completion_tokens in place of max_tokens'."""
    from openai import BadRequestError

    from policy_extraction.backends.api._errors import named_in

    def error(**told: str) -> BadRequestError:
        response: Any = SimpleNamespace(status_code=400, request=None, headers={})
        return BadRequestError(told["message"], response=response, body=told)

    fields = ["max_tokens", "max_completion_tokens", "top_p"]
    told = {"message": "'max_tokens' is not supported, use 'max_completion_tokens'", "param": "max_tokens"}
    assert named_in(error(**told), fields) == {"max_tokens"}
    assert named_in(error(message="top_p: extra inputs"), fields) == {"top_p"}
    assert named_in(error(message="top_program: extra inputs"), fields) == set()


# --- no log-probabilities --------------------------------------------------------------------------------------------

WITHOUT = {
    "refuses logprobs": (Behaviour(model(), refused=["logprobs", "top_p"]), "top_logprobs = 20: refused", 3),
    "ignores logprobs": (Behaviour(model(), always="no logprobs"), "the reply has no logprobs", 1),
    "thinks": (Behaviour(model(), thinks=300, refused=["top_p", "temperature", "max_tokens"]), "thinks before", 4),
}


@pytest.mark.parametrize("case", WITHOUT)
def test_a_policy_that_can_not_be_read_is_refused_after_a_few_prompts(case):
    seen, said, most = WITHOUT[case]
    seen.requests.clear()
    with serving(seen) as url:
        server = backend(url, prefill="none", max_retries=20, concurrency=8)
        with refused(said):
            extract(server, **GAME, cache=False)
        assert len(seen.requests) <= most
        with refused("budget = None: expected a number of answers to sample"):
            measure(server, **GAME, goal="word_share", cache=False)


def test_thoughts_get_tokens_until_an_answer_comes():
    seen = Behaviour(model(), thinks=3000)
    with serving(seen) as url:
        (text,) = backend(url, prefill="none").generate(PROMPTS[:1], max_tokens=2, seed=1)
        assert [request["max_tokens"] for request in seen.requests] == [13, 1024 + 13, 4096 + 13]
        seen.thinks = 0
        (short,) = backend(url, prefill="none").generate(PROMPTS[:1], max_tokens=2, seed=1)
        assert text.startswith(short) and short
        seen.requests.clear()
        seen.thinks = 20_000
        with refused("reasoning_tokens: known at .* ends within its thoughts"):
            backend(url, prefill="none").generate(PROMPTS[:1], max_tokens=2)
        assert len(seen.requests) == 4
        enough = backend(url, prefill="none", reasoning_tokens=20_000, extra_body={"reasoning_effort": "low"})
        assert enough.generate(PROMPTS[:1], max_tokens=2, seed=1) == [short]
        assert seen.requests[-1]["reasoning_effort"] == "low" and len(seen.requests) == 5
        with refused("ends within its thoughts"):
            backend(url, prefill="none", reasoning_tokens=10).generate(PROMPTS[:1], max_tokens=2)
        assert len(seen.requests) == 6, "a number that was given is kept to"


# --- null ------------------------------------------------------------------------------------------------------------


def listed(p: float | None) -> dict:
    tokens = [("his", -0.1), ("her", -3.0), ("him", -4.0), ("a", p)]
    content = [{"token": t, "logprob": p, "bytes": None} for t, p in tokens]
    return {"choices": [{"logprobs": {"content": [content[0] | {"top_logprobs": content}]}}]}


def test_null_is_a_bound_like_other_marks_for_very_improbable_tokens():
    marked = [top_tokens_after(listed(mark), "", 20) for mark in (-9999.0, -1e30, -100.0, -np.inf)]
    null = top_tokens_after(listed(None), "", 20)
    assert all(top == marked[0] for top in marked)
    for top in (null, marked[0]):
        assert top.tokens == (b"his", b"her", b"him") and top.unlisted == -4.0
    # Such a mark says that the token is less probable than the others; null may have any place.
    assert (marked[0].most({b"a"}), null.most({b"a"}), null.most({b"b"})) == (-4.0, null.left, -4.0)
    measured = top_tokens_after(listed(-101.0), "", 20)
    assert measured.tokens[-1] == b"a" and measured.unlisted == -101.0, "the control is a number"
    assert np.exp(null.left) == pytest.approx(1 - np.exp([-0.1, -3.0, -4.0]).sum() + 0.001)
    drawn = listed(-101.0)  # which some servers list although it is not among the most probable ones
    drawn["choices"][0]["logprobs"]["content"][0]["token"] = "a"
    assert top_tokens_after(drawn, "", 20).unlisted == -4.0


@pytest.mark.parametrize("prefill", ["assistant", "text"])
def test_null_for_a_token_that_nobody_asked_for_ends_no_measurement(prefill):
    seen = Behaviour(model(), null=["x", "y"])
    with serving(seen) as url:
        policy = extract(backend(url, prefill=prefill, top_logprobs=MANY), **GAME, cache=False)
    assert not policy["censored"].any() and len(seen.requests) == 11
    with serving(Behaviour(model(), null=["his"])) as url:
        bounds = extract(backend(url, prefill=prefill, top_logprobs=MANY), **GAME, cache=False, undecided="bound")
    assert bounds["censored"].isel(word=0).all() and not bounds["censored"].isel(word=1).any()
    assert (bounds["log_probability"].values >= policy["log_probability"].values - 1e-9).all()


# --- too few listed tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", [1, 16])
def test_too_few_listed_tokens_are_told_at_the_first_prompts(concurrency, tmp_path):
    seen = Behaviour(KnownModel.of(FIRST_WORDS, rare=["his"]))
    game = {"words": HIS_HER, "memory_length": 2, "cache": tmp_path}
    with serving(seen) as url:
        few = backend(url, top_logprobs=2, concurrency=concurrency)
        with refused("does not determine the probabilities .*top_logprobs.*answers are kept in"):
            extract(few, **game)
        assert len(seen.requests) <= 4
        with refused("does not determine the probabilities"):
            extract(few, **game)  # known answers are looked at before others are asked for
        with pytest.raises(InputError, match="does not determine"):
            lazy_policy(few, HIS_HER, 2, cache=tmp_path)([(), ((0, 0),)])
        before = len(seen.requests)
        bounds = extract(few, **game, undecided="bound")
        assert len(seen.requests) - before < 42 + 1, "what was answered is not asked again"
    assert (bounds["q_low"] < bounds["q_high"]).any()


# --- what is kept, and how long to wait ------------------------------------------------------------------------------


def test_an_error_says_what_is_kept_and_that_the_call_goes_on(tmp_path):
    seen = Behaviour(model(), failures=["works"] * 4, always="500")
    with serving(seen) as url:
        server = backend(url, top_logprobs=MANY, concurrency=1)
        with refused("failed 2 times .*; 3 answers are kept in .*, from which the same call goes on", ServerError):
            extract(server, **GAME, cache=tmp_path)
        seen.always = ""
        extract(server, **GAME, cache=tmp_path)
        seen.failures, seen.always = ["works"] * 4, "too long"
        with refused("longer than the context.*; no answer is kept on disk"):
            extract(server, **GAME, cache=False)
