"""A back end whose answers have a known law, for tests of everything that asks one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from policy_extraction.backends._backend import Scores
from policy_extraction.prompts._template import Prompt

Law = Callable[[Prompt], dict[str, float]]


class FakeBackend:
    """Answers each prompt with a text drawn from `law(prompt)`, {text: probability at temperature 1}."""

    def __init__(self, law: Law, name: str = "fake") -> None:
        self.law, self.name, self.identity = law, name, f"{name}/1"
        self.provenance: dict[str, str | int | float] = {}
        self.asked = 0
        self.calls = 0

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        pass

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        laws = [self.law(prompt) for prompt in prompts]
        log_p = np.log([[law[word] for word in words] for law in laws])
        yield Scores(np.arange(len(prompts)), log_p, np.zeros_like(log_p, dtype=bool))

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        self.asked += len(prompts)
        self.calls += 1
        rng = np.random.default_rng(seed)
        laws: dict[Prompt, tuple[list[str], np.ndarray]] = {}
        texts = []
        for prompt, u in zip(prompts, rng.random(len(prompts)), strict=True):
            if prompt not in laws:
                laws[prompt] = _cumulated(self.law(prompt), temperature)
            answers, cumulated = laws[prompt]
            texts.append(answers[min(int(np.searchsorted(cumulated, u)), len(answers) - 1)])
        return texts

    def tokens(self, words: Sequence[str]) -> list[str]:
        return ["0"] * len(words)


def _cumulated(law: dict[str, float], temperature: float) -> tuple[list[str], np.ndarray]:
    p = np.array(list(law.values()))
    p = (p == p.max()).astype(float) if temperature == 0 else p ** (1 / temperature)
    return list(law), np.cumsum(p / p.sum())
