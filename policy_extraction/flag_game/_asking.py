"""Agents of the flag game, and how they are asked until they answer as they should."""

from __future__ import annotations

import string
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from meanfield import UnparsedError
from policy_extraction._toolbox.json_replies import ReplyError
from policy_extraction.checks._spoken import derived_seed
from policy_extraction.flag_game._log import Call, CallLog
from policy_extraction.flag_game._prompts import Task
from policy_extraction.flag_game._replies import Expected, parse_reply

ROLES = ("probe", "message", "statement", "decision", "observer", "manager")
SEEDS = 2**31 - 1000  # all servers take these


class Agent(Protocol):
    """Who can play: anything that answers a question about a picture. `OpenAIBackend` and `StandIn` do."""

    name: str

    def complete(
        self, system: str, user: str, *, image_png: bytes | None, max_tokens: int, temperature: float, seed: int
    ) -> str:
        """The whole answer to a system and a user message, with an image (PNG) or without one."""
        ...


class Question(NamedTuple):
    """One question: of what kind, at which step of the game, to whom, and what fills the slots of its prompt."""

    role: str
    step: int
    agent: int
    task: Task
    m: int
    slots: dict[str, str]
    others: frozenset[int] = frozenset()


@dataclass
class Asker:
    """Asks agents, and asks again where an answer is not as it should be.

    Attributes
    ----------
    agents, crops
        Who plays, and what each of them sees (PNG; None for nothing).
    countries
        The allowed answers.
    retry
        What follows a question that is asked again.
    calls, retries
        Questions so far, those found in the log included, and how many of them were asked again.
    """

    agents: Sequence[Agent]
    crops: Sequence[bytes | None]
    countries: tuple[str, ...]
    retry: str
    seed: int
    temperature: float
    max_tokens: int
    max_tries: int
    concurrency: int
    log: CallLog
    calls: int = 0
    retries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def ask(self, questions: Iterable[Question]) -> list[dict[str, Any]]:
        """The answers, in the order of the questions, none of which may depend on another one's answer."""
        if self.concurrency == 1:
            return [self._answer(question) for question in questions]
        with ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(self._answer, questions))

    def _answer(self, question: Question) -> dict[str, Any]:
        role, step, number, task, m, slots, others = question
        agent = self.agents[number]
        expected = Expected(task.keys(m), self.countries, agent.name, others)
        user, text, problem = task.text(self.countries, m, **slots), "", ""
        for attempt in range(self.max_tries):
            if attempt:
                user = task.text(self.countries, m, again=True, **slots)
                user += "\n" + string.Template(self.retry).substitute(problem=problem)
            text = self._complete(Call(role, step, number, attempt), task.system, user)
            try:
                return parse_reply(text, expected)
            except ReplyError as bad:
                problem = str(bad)
        raise UnparsedError(
            f"max_tries = {self.max_tries}: {agent.name}, agent {number}, gave no valid answer ({role}, step {step}); "
            f"its last one was {text[:200]!r}: {problem}"
        )

    def _complete(self, call: Call, system: str, user: str) -> str:
        with self._lock:
            self.calls += 1
            self.retries += call.attempt > 0
        text = self.log.recall(call, system, user)
        if text is None:
            text = self.agents[call.agent].complete(
                system,
                user,
                image_png=self.crops[call.agent],
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                # Of the call alone, so that an interrupted game asks as it would have.
                seed=derived_seed(self.seed, ROLES.index(call.role), *call[1:]) % SEEDS,
            )
            self.log.append(call, system, user, text)
        return text
