"""How a model is asked: yes/no questions as probabilities, requests to write until the answer can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from tqdm.auto import tqdm

from meanfield import ModelError, UnparsedError
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
"""Tokens that an answer may have: so many, and so many more for each item of a list."""
SEEDS = 2**31 - 1000  # all servers take these
CUT = 120  # characters of an answer that an error repeats


class NeitherWordError(ModelError):
    """Neither word of a question is among the answers that a back end lists."""


class Probed(NamedTuple):
    """What was measured of a question.

    Attributes
    ----------
    p_yes
        Probability of yes, of the two words at the temperature, mean over both orders of the words.
    captured_mass
        Probability of the two words together among all answers, at temperature 1, mean over both orders.
    undecided
        Width of the interval in which `p_yes` lies, 0 unless the back end only bounds the probability of a word.
    """

    p_yes: float
    captured_mass: float
    undecided: float


def probe(
    backend: Backend,
    asked: Sequence[Asked],
    words: tuple[str, str],
    temperature: float,
    kept: RecordCache | None = None,
    progress: bool = False,
) -> Iterator[Probed]:
    """For each question what was measured; all are asked in one go, each text once, and those that are kept not again.

    Raises
    ------
    NeitherWordError
        If the back end only bounds the probabilities of both words, which then can't be compared.
    ModelError
        If it leaves a question without an answer.
    """
    prompts = list(dict.fromkeys(prompt for both in asked for prompt in both))
    place = {prompt: number for number, prompt in enumerate(prompts)}
    key = {"format": 1, "identity": backend.identity, "words": words, "prompts": list(map(asdict, prompts))}
    answers = (kept if kept and backend.identity else RecordCache(False)).answers(key)
    with tqdm(total=len(prompts), desc=backend.name, unit="prompt", disable=not progress) as bar:
        log_p, censored = answers.complete(backend, words, [((), i) for i in range(len(prompts))], prompts, bar)
    if censored.all(-1).any():
        raise NeitherWordError(
            f"backend = {backend.name}: neither {words[0]!r} nor {words[1]!r} is among its most probable answers; "
            "expected one of them, so let it list more of these or take other words in the prompts"
        )
    choice = choose(log_p, censored, Sampling(temperature, undecided="bound"))
    mass = np.exp(log_p).sum(-1)
    for both in asked:
        at = [place[prompt] for prompt in both]
        width = choice.high[at, 0] - choice.low[at, 0]
        yield Probed(float(choice.q[at, 0].mean()), float(mass[at].mean()), float(width.mean()))


@dataclass
class Asker:
    """Asks one question after the other, and keeps every prompt and answer.

    Attributes
    ----------
    temperature, writing_temperature
        Of answers to questions and of texts.
    retries
        How often a request is made again, at most.
    exchanges
        What was asked and answered, for a log.
    """

    backend: Backend
    prompts: NormPrompts
    temperature: float
    writing_temperature: float
    retries: int
    exchanges: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[Asked, Probed] = field(default_factory=dict, repr=False)

    def decide(self, operation: str, agent: Any, rng: np.random.Generator, **slots: str) -> bool:
        """Whether the operation is true, drawn with the probability that the model gives it."""
        asked = self.prompts.question(operation, agent, **slots)
        probed = self.probed(asked)
        answer = "yes" if rng.random() < probed.p_yes else "no"
        self._keep(operation, agent, asked.yes_first, answer, user_no_first=asked.no_first.user, **probed._asdict())
        return answer == self.prompts.questions[operation].true_if

    def probed(self, asked: Asked) -> Probed:
        """What is measured of a question; the same one is measured once. UnparsedError where it has no answer."""
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
        """What `parse` makes of the model's answer; UnparsedError where it refuses all of them.

        `items` is the length of the list that is asked for.
        """
        problem, text = "", ""
        fixed, each = MAX_TOKENS[operation]
        for _ in range(1 + self.retries):
            prompt = self.prompts.writing(operation, agent, problem, **slots)
            text = prompt.answer_prefix + self._written(prompt, fixed + each * items, int(rng.integers(SEEDS)))
            try:
                parsed = parse(text)
            except ReplyError as bad:
                problem = str(bad)
                self._keep(operation, agent, prompt, text, problem=problem)
            else:
                self._keep(operation, agent, prompt, text, problem="")
                return parsed
        shown = text if len(text) <= CUT else text[:CUT] + "…"
        raise UnparsedError(
            f"{operation} of {agent.name}: no answer of {1 + self.retries} can be used; the last one was {shown!r}: "
            f"{problem}"
        )

    def _written(self, prompt: Prompt, max_tokens: int, seed: int) -> str:
        (text,) = self.backend.generate(
            [prompt], max_tokens=max_tokens, temperature=self.writing_temperature, seed=seed
        )
        return text

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
