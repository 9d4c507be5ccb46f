"""SmolLM2-135M, a language model that runs here, its policies, and a stock of its answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
import xarray as xr

import meanfield
from meanfield import InputError
from paper_figs._study import NotAtHandError
from policy_extraction import SMOLLM2, open_backend
from policy_extraction.backends import Backend
from policy_extraction.prompts import Prompt

ANSWERS = 20_000  # to a prompt, drawn together: they share one pass of the model
MORE = 2  # factor from one draw for a prompt to the next
TOGETHER = 16  # prompts of a draw
TRIES = 20_000  # for a word, which to some memories is a rare answer


def model() -> Backend:
    """The model, loaded; NotAtHandError with what to install if it can't run here."""
    try:
        backend = open_backend(SMOLLM2)
        _ = backend.provenance  # which loads it
    except InputError as error:
        raise NotAtHandError(str(error)) from None
    return backend


def policy_of(pair: str) -> xr.Dataset:
    """The model's policy for a pair, as `meanfield.datasets.smollm2` has it."""
    return next(iter(meanfield.each_policy(meanfield.datasets.smollm2().sel(pair=[pair]))))


class Stock:
    """A back end that draws many answers to a prompt together, and gives out each of them once.

    A population asks the same prompts again and again. Answers to a prompt are independent, so those from the stock
    have the distribution of answers that are generated one by one. `seed` is that of all answers, seeds of calls are
    not used; answers of another `item` are independent.
    """

    def __init__(self, backend: Backend, seed: int, item: str) -> None:
        self.name, self.identity, self.provenance = backend.name, backend.identity, backend.provenance
        self.check, self.score, self.tokens = backend.check, backend.score, backend.tokens
        self._backend, self._seed = backend, (seed, item)
        self._left: dict[str, list[str]] = {}
        self._draws: Counter[str] = Counter()

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """See `Backend`, from the stock."""
        needed = Counter(prompts)
        keys = {prompt: _digest((prompt, max_tokens, temperature)) for prompt in needed}
        while short := [one for one, number in needed.items() if len(self._left.get(keys[one], ())) < number]:
            for first in range(0, len(short), TOGETHER):
                self._draw({keys[one]: one for one in short[first : first + TOGETHER]}, max_tokens, temperature)
        return [self._left[keys[prompt]].pop() for prompt in prompts]

    def _draw(self, prompts: dict[str, Prompt], max_tokens: int, temperature: float) -> None:
        """Add the next draw for each of these prompts."""
        names = {key: f"{key}/{self._draws[key]}" for key in prompts}
        asked = [key for key in prompts for _ in range(ANSWERS * MORE ** self._draws[key])]
        options = {"max_tokens": max_tokens, "temperature": temperature, "seed": self._number(*names.values())}
        texts = self._backend.generate([prompts[key] for key in asked], **options)
        counts = {key: Counter[str]() for key in prompts}
        for key, text in zip(asked, texts, strict=True):
            counts[key][text] += 1
        for key, count in counts.items():
            # Independent answers are equally likely in every order; this one gives the numbers of earlier releases
            drawn = np.repeat(list(count), list(count.values()))
            drawn = np.random.default_rng(self._number(names[key])).permutation(drawn)
            self._left[key] = [*drawn.tolist(), *self._left.get(key, ())]
            self._draws[key] += 1

    def _number(self, *names: str) -> int:
        """A seed for these draws."""
        return int(_digest((*self._seed, *names)), 16)


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:12]
