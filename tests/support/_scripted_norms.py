"""A scripted model for the operations of a norm society, and what it is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from paper_figs.norm_society._member import PersonalNorm
from policy_extraction.backends import Scores
from policy_extraction.norms import NORMS_003
from policy_extraction.prompts import Prompt
from theory.norms import AGENTS, BEHAVIOURS

BOB, SAM = (next(agent for agent in AGENTS if agent.name == name) for name in ("Bob Johnson", "Sam Moore"))
SMOKING, NOISE, _ = BEHAVIOURS.values()
NO_SMOKING, QUIET, TIP = (PersonalNorm.of(behaviour, "for") for behaviour in BEHAVIOURS.values())
LIGHTS = {"observation": "Sam Moore lights a cigarette at the table.", "behaviour": "smoking", "shows": "against"}
INFORMATION = {"content": "No smoking indoors.", "kind": "injunctive", "text": "Bob Johnson: No smoking here."}
CIGARETTE = "Sam Moore lights a cigarette."
NORM = '{"content": " No  smoking. ", "kind": "injunctive", "utility": 60}'


class Scripted:
    """A back end that scores the two words as `law` says and writes the next of `texts`, the last one for ever."""

    name, identity = "scripted", "scripted/1"

    def __init__(
        self, law: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.5, 0.5), texts: Sequence[str] = ()
    ) -> None:
        self.law, self.texts = law, list(texts)
        self.provenance: dict[str, str | int | float] = {}
        self.scored: list[Prompt] = []
        self.written: list[tuple[Prompt, dict]] = []

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        pass

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        assert tuple(words) == NORMS_003.words
        self.scored += prompts
        for number in reversed(range(len(prompts))):  # a back end may hand them over in any order
            with np.errstate(divide="ignore"):
                log_p = np.log([self.law(prompts[number])])
            yield Scores(np.array([number]), log_p, np.zeros((1, 2), dtype=bool))

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        (prompt,) = prompts
        self.written.append((prompt, {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}))
        return [self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]]

    def tokens(self, words: Sequence[str]) -> list[str]:
        return ["0"] * len(words)


YES: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.8, 0.0)  # noqa: E731
NO: Callable[[Prompt], tuple[float, float]] = lambda prompt: (0.0, 0.8)  # noqa: E731


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)
