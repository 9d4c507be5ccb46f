"""Yes/no questions to a model as probabilities, and requests to write until an answer is usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tqdm.auto import tqdm

from meanfield import ModelError
from meanfield.toolbox import UnparsedError, shortened
from policy_extraction._toolbox.bars import hidden
from policy_extraction._toolbox.json_replies import ReplyError
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._cache import RecordCache
from policy_extraction.measuring._sampling import Sampling, choose
from policy_extraction.norms._prompts import Asked, NormPrompts
from policy_extraction.prompts._template import Prompt

Parsed = TypeVar("Parsed")

MAX_TOKENS = {
    "create": (0, 80),
    "talk": (60, 0),
    "reply": (60, 0),
    "think": (50, 0),
    "identify": (60, 0),
    "classify": (20, 12),
    "abstract": (60, 8),
    "plan": (100, 0),
    "act": (40, 0),
}
"""Most tokens of an answer: a fixed number, and more for each item of a list."""
SEEDS = 2**31 - 1000  # all servers take these
CUT = 120  # characters of an answer that an error repeats


class NeitherWordError(ModelError):
    """A back end lists neither word of a question among its answers."""


class Probed(NamedTuple):
    """The measurement of a question, as means over both orders of the words."""

    p_yes: float  # probability of yes, of the two words at the temperature
    captured_mass: float  # probability of the two words together, at temperature 1
    undecided: float  # width of the interval of `p_yes`, 0 unless the back end only bounds a probability


def probe(
    backend: Backend,
    asked: Sequence[Asked],
    words: tuple[str, str],
    temperature: float,
    kept: RecordCache | None = None,
    progress: bool | None = None,
) -> Iterator[Probed]:
    """The measurement of each question; all are asked in one call, each text once, and kept ones not again.

    Raises NeitherWordError if the back end only bounds both words of a question, and ModelError if it leaves a question
    without an answer.
    """
    prompts = list(dict.fromkeys(prompt for both in asked for prompt in both))
    place = {prompt: number for number, prompt in enumerate(prompts)}
    key = {"format": 1, "identity": backend.identity, "words": words, "prompts": list(map(asdict, prompts))}
    answers = (kept if kept and backend.identity else RecordCache(False)).answers(key)
    with tqdm(total=len(prompts), desc=backend.name, unit="prompt", disable=hidden(progress)) as bar:
        log_p, censored = answers.complete(backend, words, [((), i) for i in range(len(prompts))], prompts, bar)
    if censored.all(-1).any():
        raise NeitherWordError(
            f"backend = {backend.name}: neither {words[0]!r} nor {words[1]!r} is among its most probable answers; "
            "let it list more answers, or take other words in the prompts"
        )
    choice = choose(log_p, censored, Sampling(temperature, undecided="bound"))
    mass = np.exp(log_p).sum(-1)
    for both in asked:
        at = [place[prompt] for prompt in both]
        width = choice.high[at, 0] - choice.low[at, 0]
        yield Probed(float(choice.q[at, 0].mean()), float(mass[at].mean()), float(width.mean()))


@dataclass
class Asker:
    """Asks one question after the other, and keeps every prompt and answer in `exchanges`."""

    backend: Backend
    prompts: NormPrompts
    temperature: float  # of answers to questions
    writing_temperature: float
    retries: int  # most repetitions of a request
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[Asked, Probed] = field(default_factory=dict, repr=False)

    def decide(self, operation: str, agent: Any, rng: np.random.Generator, **slots: str) -> bool:
        """Whether the operation is true, drawn with the model's probability."""
        asked = self.prompts.question(operation, agent, **slots)
        probed = self.probed(asked)
        answer = "yes" if rng.random() < probed.p_yes else "no"
        self._keep(operation, agent, asked.yes_first, answer, user_no_first=asked.no_first.user, **probed._asdict())
        return self.prompts.is_true(operation, answer)

    def probed(self, asked: Asked) -> Probed:
        """The measurement of a question, made once; UnparsedError if it has no answer."""
        if asked not in self._known:
            try:
                (self._known[asked],) = probe(self.backend, [asked], self.prompts.words, self.temperature)
            except NeitherWordError as none:
                raise UnparsedError(str(none)) from None
        return self._known[asked]

    def write(
        self,
        operation: str,
        agent: Any,
        parse: Callable[[str], Parsed],
        rng: np.random.Generator,
        *,
        items: int = 0,
        **slots: str,
    ) -> Parsed:
        """The model's answer as `parse` reads it; UnparsedError if it refuses all. `items` is the length of a list."""
        problem, text = "", ""
        fixed, each = MAX_TOKENS[operation]
        for _ in range(1 + self.retries):
            prompt = self.prompts.writing(operation, agent, problem, **slots)
            options = {"max_tokens": fixed + each * items, "seed": int(rng.integers(SEEDS))}
            (written,) = self.backend.generate([prompt], temperature=self.writing_temperature, **options)
            text = prompt.answer_prefix + written
            try:
                parsed = parse(text)
            except ReplyError as bad:
                problem = str(bad)
                self._keep(operation, agent, prompt, text, problem=problem)
            else:
                self._keep(operation, agent, prompt, text, problem="")
                return parsed
        raise UnparsedError(
            f"{operation} of {agent.name}: none of {1 + self.retries} answers can be used; the last one was "
            f"{shortened(text, CUT)!r}: {problem}"
        )

    def _keep(self, operation: str, agent: Any, prompt: Prompt, answer: str, **more: Any) -> None:
        self.exchanges.append(
            {
                "operation": operation,
                "agent": agent.name,
                "prompt": {"system": prompt.system, "user": prompt.user, "answer_prefix": prompt.answer_prefix},
                "answer": answer,
                **more,
            }
        )
