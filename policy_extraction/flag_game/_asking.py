"""Agents of the flag game, asked until their answers are valid."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from meanfield.toolbox import LARGEST_SEED, UnparsedError, real_number, shortened, whole_number
from policy_extraction._toolbox.json_replies import ReplyError
from policy_extraction._toolbox.texts import MANY
from policy_extraction.flag_game._log import Call, CallLog
from policy_extraction.flag_game._prompts import FlagGamePrompts, Task
from policy_extraction.flag_game._replies import Expected, parse_reply
from policy_extraction.measuring._spoken import derived_seed
from policy_extraction.prompts._slots import fill

ROLES = ("probe", "message", "statement", "decision", "observer", "manager")
SEEDS = 2**31 - 1000  # all servers take these


class Agent(Protocol):
    """A player, which answers questions about a picture, such as `OpenAIBackend` and `StandIn`."""

    name: str

    def complete(
        self, system: str, user: str, *, image_png: bytes | None, max_tokens: int, temperature: float, seed: int
    ) -> str:
        """The whole answer to a system and a user message, and an optional image (PNG)."""
        ...


class Question(NamedTuple):
    """One question: its kind, the step of the game, the agent, and the slots of its prompt."""

    role: str
    step: int
    agent: int
    task: Task
    m: int
    slots: dict[str, str]
    others: frozenset[int] = frozenset()


@dataclass
class Asker:
    """Asks agents, and asks again after an invalid answer. `rules` are the rest of the key of the log."""

    agents: Sequence[Agent]
    crops: Sequence[bytes | None]  # PNG files that the agents see
    countries: tuple[str, ...]
    prompts: FlagGamePrompts
    seed: int
    temperature: float
    max_tokens: int
    max_tries: int
    concurrency: int
    log_file: str | os.PathLike[str] | None
    rules: dict[str, Any]
    calls: int = 0  # questions so far, with those in the log
    retries: int = 0  # repeated ones among them
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_tries", "concurrency"):
            whole_number(name, getattr(self, name), 1, MANY)
        whole_number("seed", self.seed, 0, LARGEST_SEED)
        self.temperature = real_number("temperature", self.temperature, least=0)
        key = {
            **self.rules,
            "agents": [str(getattr(agent, "identity", agent.name)) for agent in self.agents],
            "crops": [hashlib.sha256(crop).hexdigest() for crop in self.crops if crop is not None],
            "countries": list(self.countries),
            "temperature": self.temperature,
            "max_tokens": int(self.max_tokens),
            "prompts": self.prompts.name,
            "prompts_sha256": self.prompts.sha256,
            "seed": int(self.seed),
        }
        self._log = CallLog(self.log_file, key)

    def ask(self, questions: Iterable[Question]) -> list[dict[str, Any]]:
        """The answers, in the order of the questions, which must not depend on each other's answers."""
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
                user += "\n" + fill(self.prompts.retry, {"problem": problem})
            text = self._complete(Call(role, step, number, attempt), task.system, user)
            try:
                return parse_reply(text, expected)
            except ReplyError as bad:
                problem = str(bad)
        raise UnparsedError(
            f"max_tries = {self.max_tries}: {agent.name}, agent {number}, gave no valid answer ({role}, step {step}); "
            f"its last one was {shortened(text, 200)!r}: {problem}"
        )

    def _complete(self, call: Call, system: str, user: str) -> str:
        with self._lock:
            self.calls += 1
            self.retries += call.attempt > 0
        text = self._log.recall(call, system, user)
        if text is None:
            text = self.agents[call.agent].complete(
                system,
                user,
                image_png=self.crops[call.agent],
                max_tokens=self.max_tokens,
                temperature=self.temperature,
                # A function of the call alone, so that a continued game asks as an uninterrupted one.
                seed=derived_seed(self.seed, ROLES.index(call.role), *call[1:]) % SEEDS,
            )
            self._log.append(call, system, user, text)
        return text
