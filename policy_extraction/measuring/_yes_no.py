"""Questions that a model answers with one of two words, offered in both orders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tqdm.auto import tqdm

from meanfield import ModelError
from policy_extraction._toolbox.bars import hidden
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._sampling import Sampling, choose
from policy_extraction.prompts._template import Prompt, longest


class Asked(NamedTuple):
    """The two prompts of a question: 'yes' offered first, and 'no' offered first."""

    yes_first: Prompt
    no_first: Prompt


class NeitherWordError(ModelError):
    """A back end lists neither word of a question among its answers."""


class Probed(NamedTuple):
    """The measurement of n questions, as means over both orders of the words; shapes (n,)."""

    p_yes: np.ndarray  # probability of yes, of the two words at the temperature
    captured_mass: np.ndarray  # probability of the two words together, at temperature 1
    undecided: np.ndarray  # width of the interval of `p_yes`, 0 unless the back end only bounds a probability


def probe(
    backend: Backend,
    asked: Sequence[Asked],
    words: tuple[str, str],
    temperature: float,
    kept: RecordCache | None = None,
    progress: bool | None = None,
) -> Probed:
    """The measurement of the questions; all are asked in one call, each text once, and kept ones not again.

    With `kept` the back end is checked first. Raises NeitherWordError if it only bounds both words of a question, and
    ModelError if it leaves a question without an answer.
    """
    prompts = list(dict.fromkeys(prompt for both in asked for prompt in both))
    place = {prompt: number for number, prompt in enumerate(prompts)}
    if kept is not None:
        backend.check([longest(prompts)], words)
        kept.prepare()
    key = {"format": 1, "identity": backend.identity, "words": words, "prompts": [vars(prompt) for prompt in prompts]}
    answers = (kept if kept and backend.identity else RecordCache(False)).answers(key)
    with tqdm(total=len(prompts), desc=backend.name, unit="prompt", disable=hidden(progress)) as bar:
        log_p, censored = answers.complete(
            backend, words, [((), i) for i in place.values()], lambda one: prompts[one[1]], bar
        )
    if censored.all(-1).any():
        raise NeitherWordError(
            f"backend = {backend.name}: neither {words[0]!r} nor {words[1]!r} is among its most probable answers; "
            "let it list more answers, or take other words in the prompts"
        )
    choice = choose(log_p, censored, Sampling(temperature, undecided="bound"))
    at = [[place[prompt] for prompt in both] for both in asked]
    each = choice.q[:, 0], np.exp(log_p).sum(-1), choice.high[:, 0] - choice.low[:, 0]
    return Probed(*(column[at].mean(1) for column in each))
