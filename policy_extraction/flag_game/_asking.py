"""Agents of the flag game, asked until their answers are valid, with a log from which an interrupted game goes on."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from meanfield import InputError
from meanfield.toolbox import LARGEST_SEED, ResumableLog, UnparsedError, real_number, shortened, shown, whole_number
from policy_extraction._toolbox.json_replies import DECODER, ReplyError, is_text
from policy_extraction._toolbox.json_replies import shown as as_json
from policy_extraction._toolbox.texts import MANY, check_kept, check_name
from policy_extraction.flag_game._prompts import FlagGamePrompts, Task
from policy_extraction.measuring._spoken import derived_seed
from policy_extraction.prompts._slots import fill

ROLES = ("probe", "message", "statement", "decision", "observer", "manager")
SEEDS = 2**31 - 1000  # all servers take these
FORMAT = 1  # of logs
MOST_INFLUENTIAL = 3
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
NO_OBJECT = "it is not one JSON object and nothing else"


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


class Call(NamedTuple):
    """The kind of a question, the step of the game, the agent, and how often it was asked before."""

    role: str
    step: int
    agent: int
    attempt: int


@dataclass
class Asker:
    """Asks agents, and asks again after an invalid answer. `rules` are the rest of the key of the log.

    A game is a function of its answers, so it goes on by being played again with the answers in the log, a line a call.
    """

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
            "flag_game": FORMAT,
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
        self._log = ResumableLog(self.log_file, key, "flag game")
        self._known: dict[Call, tuple[str, str, str]] = {}  # system message, user message and answer
        for number in range(len(self._log.lines)):
            with self._log.answers(number) as line:
                call = Call(*(line[name] for name in Call._fields))
                self._known[call] = line["system"], line["user"], line["answer"]

    def ask(self, questions: Iterable[Question]) -> list[dict[str, Any]]:
        """The answers, in the order of the questions, which must not depend on each other's answers."""
        if self.concurrency == 1:
            return [self._answer(question) for question in questions]
        with ThreadPoolExecutor(self.concurrency) as pool:
            return list(pool.map(self._answer, questions))

    def _answer(self, question: Question) -> dict[str, Any]:
        role, step, number, task, m, slots, others = question
        agent, text, problem = self.agents[number], "", ""
        for attempt in range(self.max_tries):
            user = task.text(self.countries, m, again=attempt > 0, **slots)
            user += "\n" + fill(self.prompts.retry, {"problem": problem}) if attempt else ""
            call = Call(role, step, number, attempt)
            with self._lock:
                self.calls += 1
                self.retries += attempt > 0
            *asked, text = self._known.get(call, (task.system, user, None))
            if asked != [task.system, user]:
                raise InputError(
                    f"log = {self._log.path}: {role} of agent {number} at step {step} was asked something else; the "
                    "file was changed, take a new one"
                )
            if text is None:
                text = agent.complete(
                    task.system,
                    user,
                    image_png=self.crops[number],
                    max_tokens=self.max_tokens,
                    temperature=self.temperature,
                    # A function of the call alone, so that a continued game asks as an uninterrupted one.
                    seed=derived_seed(self.seed, ROLES.index(role), *call[1:]) % SEEDS,
                )
                self._log.append(call._asdict() | {"system": task.system, "user": user, "answer": text})
            try:
                return parse_reply(text, task.keys(m), self.countries, agent.name, others)
            except ReplyError as bad:
                problem = str(bad)
        raise UnparsedError(
            f"max_tries = {self.max_tries}: {agent.name}, agent {number}, gave no valid answer ({role}, step {step}); "
            f"its last one was {shortened(text, 200)!r}: {problem}"
        )


def parse_reply(
    text: str, keys: Sequence[str], countries: Sequence[str], model: str = "", others: frozenset[int] = frozenset()
) -> dict[str, Any]:
    """The answer as a dict in the order of `keys`; ReplyError names the mistake.

    Nothing is repaired: no text around the object, no other key, no key twice, no other spelling of a country.
    `model_identity` is `model`, and `influential_agent_ids` names up to three of `others`.
    """
    try:
        reply = DECODER.decode(text)
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError(NO_OBJECT) from None
    if not isinstance(reply, dict):
        raise ReplyError(NO_OBJECT)
    if set(reply) != set(keys):
        raise ReplyError(f"its keys are {as_json(list(reply))}, expected {as_json(list(keys))}")
    for key, value in reply.items():
        if key != "influential_agent_ids":
            if not is_text(value):
                raise ReplyError(f"{key} is {as_json(value)}, expected text")
            continue
        whole = isinstance(value, list) and all(type(one) is int for one in value)
        if not whole or len(set(value)) < len(value) or len(value) > MOST_INFLUENTIAL or not set(value) <= others:
            raise ReplyError(
                f"influential_agent_ids is {as_json(value)}, expected a list of at most {MOST_INFLUENTIAL} different "
                "ids of the other agents, as numbers"
            )
    if reply["country"] not in countries:
        raise ReplyError(f"{as_json(reply['country'])} is not one of the allowed countries")
    if reply.get("model_identity", model) != model:
        raise ReplyError(f"model_identity is {as_json(reply['model_identity'])}, expected {as_json(model)}")
    # The messages to others must not depend on the order in which a model writes.
    return {key: reply[key] for key in keys}


def check_agent(name: str, agent: object) -> None:
    """InputError unless the agent has a name and can answer."""
    if not callable(getattr(agent, "complete", None)) or not isinstance(getattr(agent, "name", None), str):
        raise InputError(f"{name} = {shown(agent)}: expected a name and a method complete, as OpenAIBackend has them")
    check_kept({f"{name}: its name": agent.name})


def check_crop(name: str, crop: object) -> None:
    """InputError unless the crop is a PNG file."""
    if not isinstance(crop, bytes) or not crop.startswith(PNG_SIGNATURE):
        raise InputError(f"{name}: expected the bytes of a PNG file")


def check_countries(countries: Sequence[str]) -> None:
    """InputError unless there are at least two countries, each once."""
    if not all(isinstance(country, str) and country.strip() and "\n" not in country for country in countries):
        raise InputError(f"countries = {shown(list(countries))}: expected names on one line each")
    for country in countries:
        check_name("countries", country)
    twice = [country for i, country in enumerate(countries) if country in countries[:i]]
    if twice:
        raise InputError(f"countries holds {twice[0]} twice: expected each country once")
    if len(countries) < 2:
        raise InputError(f"countries = {shown(list(countries))}: expected at least two")
