"""Batches, against a service on this machine that fails in all ways, dies with its client, and keeps a bill."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _paths import ROOT
from _refusals import refused

pytest.importorskip("openai", reason="APIs need the extra api")

from _batch_server import BatchService
from _openai_server import FIRST_WORDS, PREFIX, Behaviour, KnownModel, serving
from meanfield import InputError
from policy_extraction import Limits, extract
from policy_extraction.backends.api import CostLimitError, OpenAIBackend, ServerError
from policy_extraction.prompts._template import Prompt

GAME: dict[str, Any] = {"words": ("his", "her"), "memory_length": 1, "undecided": "bound"}
PROMPTS = 10  # of the game
SUPPORT = Path(__file__).parents[2] / "support"


def backend(url: str, **options: Any) -> OpenAIBackend:
    return OpenAIBackend(
        **{"model": "known", "base_url": url, "top_logprobs": 30, "backoff": 0.01, "batches": True, "poll": 0.01}
        | options
    )


def behaviour(*failures: str, **options: Any) -> Behaviour:
    return Behaviour(KnownModel.of(FIRST_WORDS), batches=BatchService(list(failures), **options))


@pytest.fixture(scope="module")
def ordinary() -> np.ndarray:
    """Log-probabilities by the ordinary client."""
    with serving(behaviour()) as url:
        return extract(backend(url, batches=False), cache=False, **GAME)["log_probability"].values


def bill(seen: Behaviour) -> int:
    """Requests that were answered, at once and in batches."""
    assert seen.batches is not None
    return len(seen.requests) + len(seen.batches.paid)


def journals(folder: Path) -> list[Path]:
    return list(folder.glob("*.batches.sqlite"))


def test_a_batch_has_the_answers_of_the_ordinary_client(tmp_path):
    seen = behaviour(looks=3)
    with serving(seen) as url:
        batched = extract(backend(url), cache=tmp_path, **GAME)
        assert seen.batches is not None and bill(seen) == PROMPTS and seen.batches.sizes == [PROMPTS - 1]
        ordinary = extract(backend(url, batches=False), cache=False, **GAME)
        again = extract(backend(url, batches=False), cache=tmp_path, **GAME)
    np.testing.assert_array_equal(batched["log_probability"], ordinary["log_probability"])
    assert again.identical(batched) and len(seen.requests) == 1 + PROMPTS + 1  # with the check of the ordinary client
    assert not journals(tmp_path)
    assert batched.attrs["option_requests"] == ordinary.attrs["option_requests"] == PROMPTS
    assert batched.attrs["option_tokens_in"] == ordinary.attrs["option_tokens_in"]


@pytest.mark.parametrize("order", ["batches first", "batches last"])
def test_either_client_goes_on_from_the_other(order, ordinary, tmp_path):
    seen = behaviour()
    with serving(seen) as url:
        first, last = backend(url), backend(url, batches=False)
        first, last = (first, last) if order == "batches first" else (last, first)
        seen.batches.failures[:] = ["cancelled"]  # type: ignore[union-attr]
        if order == "batches last":
            first = backend(url, batches=False, max_retries=0, concurrency=1)
            seen.failures[:] = ["", "", "", "", "500"]
        with pytest.raises(ServerError):
            extract(first, cache=tmp_path, **GAME)
        seen.batches.failures[:] = []  # type: ignore[union-attr]
        finished = extract(last, cache=tmp_path, **GAME)
    np.testing.assert_array_equal(finished["log_probability"], ordinary)
    # The ordinary client asks once more to check the model; a refused request is not paid for.
    assert bill(seen) == PROMPTS + 1 + (order == "batches last")


def test_words_of_several_tokens_take_a_batch_for_each_step(tmp_path):
    words = ("he", "her")
    seen = Behaviour(KnownModel.of(("he", "r", "x", "y", "!")), batches=BatchService())
    with serving(seen) as url:
        options: dict[str, Any] = {"words": words, "memory_length": 1, "undecided": "bound", "cache": False}
        batched = extract(backend(url, prefill="assistant"), **options)
        paid = bill(seen)
        ordinary = extract(backend(url, prefill="assistant", batches=False), **options)
    np.testing.assert_array_equal(batched["log_probability"], ordinary["log_probability"])
    # The second batch has what followed from the first; the ordinary client asks once more, to check.
    assert seen.batches is not None and seen.batches.sizes == [PROMPTS, paid - PROMPTS - 1]
    assert paid == bill(seen) - paid - 1 and paid > PROMPTS + 5


LOST = {
    "": (PROMPTS, [9]),
    "expires": (PROMPTS, [9, 5]),
    "429": (PROMPTS, [9, 3]),
    "500": (PROMPTS, [9, 3]),
    "disordered": (PROMPTS, [9]),
    "twice": (PROMPTS, [9]),
    "missing": (PROMPTS, [9]),
    "truncated": (PROMPTS, [9]),
    "unheard": (PROMPTS, [9]),
}


@pytest.mark.parametrize("failure", LOST)
def test_a_failure_costs_no_answer_and_no_payment(failure, ordinary, tmp_path):
    seen = behaviour(failure)
    with serving(seen) as url:
        found = extract(backend(url), cache=tmp_path, **GAME)
    np.testing.assert_array_equal(found["log_probability"], ordinary)
    assert seen.batches is not None and (bill(seen), seen.batches.sizes) == LOST[failure]
    assert len(set(seen.batches.paid)) == PROMPTS - 1


def test_answers_that_are_gone_are_paid_again_with_a_warning(tmp_path):
    """The control of the bill: it counts what is asked twice."""
    seen = behaviour("gone")
    with serving(seen) as url, pytest.warns(UserWarning, match="4 of 9 answers are missing in the files of batch_0"):
        extract(backend(url, max_retries=2), cache=tmp_path, **GAME)
    assert bill(seen) == PROMPTS + 4


def test_an_answer_without_the_prefix_goes_into_another_batch(tmp_path):
    seen = Behaviour(KnownModel.of(FIRST_WORDS, obedience=0.9), batches=BatchService())
    with serving(seen) as url:
        found = extract(backend(url, max_retries=20), cache=tmp_path, **GAME)
    assert np.isfinite(found["log_probability"]).all()
    assert seen.batches is not None and len(seen.batches.sizes) > 1 and seen.batches.sizes[0] == PROMPTS - 1


REFUSED = {
    "rejected": (InputError, "refuses the batch (HTTP 400: Invalid input file)"),
    "fails": (InputError, "refuses batch_0 (Refused by the service)"),
    "400": (InputError, "refuses the request (HTTP 400: This request failed.)"),
    "cancelled": (ServerError, "batch_0 was cancelled; its answers are kept"),
}


@pytest.mark.parametrize("failure", REFUSED)
def test_a_refusal_says_why_and_the_same_call_goes_on(failure, tmp_path):
    """It knows the fields that the service refuses, also where the first call ended before any batch was made."""
    kind, said = REFUSED[failure]
    seen = behaviour(failure)
    seen.refused = ["top_p", "temperature"]
    with serving(seen) as url:
        with refused(re.escape(said), kind):
            extract(backend(url), cache=tmp_path, **GAME)
        found = extract(backend(url), cache=tmp_path, **GAME)
    assert bill(seen) == PROMPTS + 2 and found.attrs["option_left_out"] == "temperature top_p"
    sent = [request["body"] for file in seen.batches.files.values() for request in file if "body" in request]
    assert sent and not any({"top_p", "temperature"} & body.keys() for body in sent)


def test_batches_shrink_to_what_the_account_may_queue(tmp_path):
    seen = behaviour(most=3)
    with serving(seen) as url:
        extract(backend(url), cache=tmp_path, **GAME)
    assert seen.batches is not None and seen.batches.sizes == [9, 4, 2, 2, 2, 2, 1] and bill(seen) == PROMPTS
    with serving(behaviour(most=0)) as url, refused("refuses batch_3 .Refused by the service", ServerError):
        extract(backend(url), cache=tmp_path / "none", **GAME)


def test_no_batch_is_submitted_to_a_server_that_cannot_measure(tmp_path):
    seen = behaviour()
    with serving(seen) as url, refused("does not continue the answer prefix"):
        seen.continues = False
        extract(backend(url, prefill="assistant"), cache=tmp_path, **GAME)
    assert seen.batches is not None and not seen.batches.files and bill(seen) == 1
    with serving(behaviour(known=False)) as url, refused("has no interface for batches .HTTP 404: unknown path"):
        extract(backend(url), cache=tmp_path, **GAME)


@pytest.mark.parametrize("known", [0, 4, PROMPTS - 1])
def test_what_is_left_of_a_measurement_begins_as_a_whole_one_does(known, tmp_path):
    """Also a lone prompt: what the service refuses, and whether it can measure, is known before there is a batch."""
    seen = behaviour()
    with serving(seen) as url:
        seen.failures[:] = [""] * (known + 1) + ["500"]  # the ordinary client asks once more to check the model
        with pytest.raises(ServerError):
            extract(
                backend(url, batches=False, max_retries=0, concurrency=1, prefill="assistant"), cache=tmp_path, **GAME
            )
        seen.failures[:] = []
        seen.continues = False
        with refused("does not continue the answer prefix"):
            extract(backend(url, prefill="assistant"), cache=tmp_path, **GAME)
        seen.continues, seen.refused = True, ["top_p", "temperature"]
        assert seen.batches is not None and not seen.batches.files
        found = extract(backend(url, prefill="assistant"), cache=tmp_path, **GAME)
    assert seen.batches.sizes == [PROMPTS - known - 1][: PROMPTS - known - 1]
    assert found.attrs["option_left_out"] == "temperature top_p"


@pytest.mark.parametrize("words", [("his", "her"), [("his", "her"), ("the", "x")]], ids=["one pair", "two pairs"])
def test_no_batch_is_submitted_after_an_answer_that_decides_nothing(words, tmp_path):
    seen = Behaviour(KnownModel.of(FIRST_WORDS, rare=["his", "the"]), batches=BatchService())
    with serving(seen) as url, refused("does not determine the probabilities"):
        extract(backend(url, top_logprobs=2), cache=tmp_path, words=words, memory_length=1)
    assert seen.batches is not None and not seen.batches.files and bill(seen) == 1


def test_all_pairs_are_submitted_before_the_first_wait(tmp_path):
    seen = behaviour(looks=5)
    with serving(seen) as url:
        pairs = [("his", "her"), ("the", "x")]
        extract(backend(url), cache=tmp_path, words=pairs, memory_length=1, undecided="bound")
    assert seen.batches is not None and bill(seen) == 2 * PROMPTS
    assert [batch["left"] for batch in seen.batches.batches.values()] == [0, 0]
    assert seen.batches.sizes == [9, 9] and not journals(tmp_path)


def test_limits_of_money_bound_what_is_submitted(tmp_path):
    seen = behaviour()
    priced = Limits(max_cost=1.0, input_price=100.0, output_price=100.0)  # 2,000 bytes and 20 tokens cost 0.2
    with serving(seen) as url, pytest.raises(CostLimitError):
        extract(backend(url, limits=Limits(max_cost=1e-3, input_price=1.0, output_price=1.0)), cache=tmp_path, **GAME)
    assert bill(seen) == 0
    with serving(seen) as url:
        server = backend(url, limits=priced)
        extract(server, cache=tmp_path, **GAME)
    assert seen.batches is not None and bill(seen) == PROMPTS and len(seen.batches.sizes) > 1
    assert float(server.provenance["cost"]) < 1.0


def test_same_prompts_are_different_requests():
    """Repeated prompts that show how much answers differ must not get one answer twice."""
    seen = behaviour()
    with serving(seen) as url:
        server = backend(url)
        prompts = [Prompt("Rules.", "Which one?", PREFIX)] * 4
        for _ in range(2):
            assert sum(len(scores.numbers) for scores in server.score(prompts, ("his", "her"))) == 4
    assert bill(seen) == 8


# --- processes -------------------------------------------------------------------------------------------------------

PROCESS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from policy_extraction import extract
from policy_extraction.backends.api import OpenAIBackend
server = OpenAIBackend("known", base_url=sys.argv[1], top_logprobs=30, backoff=0.01, batches=True, poll=0.05)
extract(server, words=("his", "her"), memory_length=1, cache=sys.argv[2], undecided="bound")
"""


def process(url: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROCESS, url, str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["file", "create", "created", "look", "content"])
def test_a_killed_process_is_paid_once(place, ordinary, tmp_path):
    seen = behaviour(stop_at=place)
    service = seen.batches
    assert service is not None
    with serving(seen) as url:
        with process(url, tmp_path) as killed:
            assert service.stopped.wait(60)
            killed.kill()
        assert len(service.batches) == (place in ("created", "look", "content"))
        service.stop_at = ""
        found = extract(backend(url), cache=tmp_path, **GAME)
    assert bill(seen) == PROMPTS and service.sizes == [9]
    np.testing.assert_array_equal(found["log_probability"], ordinary)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="this system has other signals")
def test_control_c_ends_the_wait_at_once(tmp_path):
    seen = behaviour(looks=10**9)
    service = seen.batches
    assert service is not None
    with serving(seen) as url, process(url, tmp_path) as waiting:
        while not service.batches or next(iter(service.batches.values()))["left"] > 10**9 - 3:
            time.sleep(0.05)
        begin = time.monotonic()
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(10) != 0 and time.monotonic() - begin < 4
        assert waiting.stderr is not None and "interrupted; 1 answers are kept in" in waiting.stderr.read()
        next(iter(service.batches.values()))["left"] = 1
        extract(backend(url), cache=tmp_path, **GAME)
    assert bill(seen) == PROMPTS


def test_two_processes_share_one_batch(tmp_path):
    """Two threads, each with a back end of its own, meet at the journal as processes do.

    The batch stays open until both are there: whoever is done removes the journal.
    """
    seen = behaviour(looks=60)
    found: list[Any] = []
    with serving(seen) as url:
        threads = [
            threading.Thread(target=lambda: found.append(extract(backend(url), cache=tmp_path, **GAME)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen.batches is not None and seen.batches.sizes == [9] and bill(seen) == PROMPTS and len(found) == 2
    np.testing.assert_array_equal(found[0]["log_probability"], found[1]["log_probability"])


def test_a_batch_of_another_account_is_named(tmp_path):
    seen = behaviour("cancelled")
    with serving(seen) as url:
        with pytest.raises(ServerError):
            extract(backend(url), cache=tmp_path, **GAME)
        (journal,) = journals(tmp_path)
        with sqlite3.connect(journal) as notes:
            notes.execute("UPDATE files SET batch = 'batch_77'")
        # The answers of the cancelled batch are kept; only what it left is looked for.
        with refused(f"does not know batch_77 .* without {re.escape(str(journal))} all is submitted again"):
            extract(backend(url), cache=tmp_path, **GAME)
        journal.unlink()
        extract(backend(url), cache=tmp_path, **GAME)
    assert bill(seen) == PROMPTS


def test_the_page_shows_what_it_prints(capsys, monkeypatch, tmp_path):
    """The blocks of docs/how_to/large_models.md that ask a server, the one about costs and the one about batches."""
    monkeypatch.setenv("MEANFIELD_CACHE", str(tmp_path))
    page = (ROOT / "docs" / "how_to" / "large_models.md").read_text()
    shown = re.findall(r"```python\n((?:(?!```).)+)```\n\n((?:    [^\n]*\n)+)", page, re.DOTALL)
    assert len(shown) == 4
    names = {"OpenAIBackend": OpenAIBackend, "extract": extract}
    seen = Behaviour(KnownModel.of(FIRST_WORDS), name="llama", dialect="vllm", batches=BatchService())
    with serving(seen) as url:
        paid = f'"llama", base_url="{url}", poll=0.01'
        # Fewer prompts than the page asks, of a service on this machine.
        here = {
            "http://127.0.0.1:8000/v1": url,
            "memory_length=3": "memory_length=2",
            '"gpt-4o-2024-08-06"': paid,
            "progress=True": "undecided='bound'",
        }
        for code, output in shown:
            for old, new in here.items():
                code = code.replace(old, new)
            exec(code, names)
            assert capsys.readouterr().out == textwrap.dedent(output)
