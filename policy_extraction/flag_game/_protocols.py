"""The three protocols of [002] Section 2.2: the questions of a game, and who remembers the answers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from policy_extraction.flag_game._asking import Asker, Question

NOTHING = "[]"


class Probe(NamedTuple):
    """The countries that all agents say at a step, and the manager's decision."""

    step: int
    reports: list[str]
    decision: str | None = None

    def unanimous(self) -> bool:
        """Whether all, the manager included, say the same."""
        decided = [] if self.decision is None else [self.decision]
        return len({*self.reports, *decided}) == 1


@dataclass
class Game:
    """The rules of a game, and its counts of links between agents."""

    asker: Asker
    n_agents: int  # with crops; a manager follows them in `asker.agents`
    m: int
    alpha: float | None
    rounds: int  # of N interactions in the pairwise protocol, of one exchange in the others
    probe_every: int
    memory_length: int
    links: np.ndarray  # (agents, agents): messages of a row's agent from another, or its decisions that name another

    def __post_init__(self) -> None:
        # Memories drop their oldest entry when they are full; all remember the same of a manager.
        self.memory: list[deque[str]] = [deque(maxlen=self.memory_length) for _ in range(self.n_agents)]


def pairwise(game: Game) -> Iterator[Probe]:
    """At each step one agent speaks to another, who remembers the message."""
    task = game.asker.prompts.message

    def question(role: str, step: int, agent: int, m: int) -> Question:
        slots = {"memory": _listed(game.memory[agent]), "susceptibility": task.line(game.alpha)}
        return Question(role, step, agent, task, m, slots)

    def probe(step: int) -> Probe:
        answers = game.asker.ask(question("probe", step, agent, 1) for agent in range(game.n_agents))
        return Probe(step, _countries(answers))

    yield probe(0)
    last = game.rounds * game.n_agents
    for step in range(1, last + 1):
        # A function of the seed and the step alone, so that a continued game equals an uninterrupted one.
        rng = np.random.default_rng([game.asker.seed, step])
        speaker, shift = int(rng.integers(game.n_agents)), int(rng.integers(1, game.n_agents))
        listener = (speaker + shift) % game.n_agents
        (message,) = game.asker.ask([question("message", step, speaker, game.m)])
        game.memory[listener].append(_json(message))
        game.links[listener, speaker] += 1
        if step % game.probe_every == 0 or step == last:
            yield probe(step)


def broadcast(game: Game) -> Iterator[Probe]:
    """In each round all state a country, see the others' statements, and decide."""
    everyone, asker = range(game.n_agents), game.asker
    names = [agent.name for agent in asker.agents]
    stating, deciding = asker.prompts.statement, asker.prompts.decision
    for step in range(1, game.rounds + 1):
        remembered = [{"memory": _listed(memory)} for memory in game.memory]
        slots = [remembered[i] | {"model": names[i]} for i in everyone]
        statements = asker.ask(Question("statement", step, i, stating, game.m, slots[i]) for i in everyone)
        if step == 1:
            yield Probe(0, _countries(statements))
        # The country and the clue or reason, each on one line
        said = [[str(one[key]) for key in one if key != "model_identity"] for one in statements]
        lines = [" | ".join([str(i), names[i], *(" ".join(text.split()) for text in said[i])]) for i in everyone]
        slots = [
            remembered[i]
            | {"reports": _listed(lines[:i] + lines[i + 1 :]), "susceptibility": deciding.line(game.alpha)}
            for i in everyone
        ]
        others = [frozenset(everyone) - {i} for i in everyone]
        decisions = asker.ask(Question("decision", step, i, deciding, game.m, slots[i], others[i]) for i in everyone)
        for i, decision in enumerate(decisions):
            game.memory[i].append(decision["country"])
            game.links[i, decision["influential_agent_ids"]] += 1
        yield Probe(step, _countries(decisions))


def manager(game: Game) -> Iterator[Probe]:
    """In each round all report to a manager without a crop, whose decision they remember."""
    decided, prompts = game.memory[0], game.asker.prompts
    for step in range(1, game.rounds + 1):
        remembered = {"memory": _listed(decided)}
        reports = game.asker.ask(
            Question("observer", step, i, prompts.observer, game.m, remembered) for i in range(game.n_agents)
        )
        if step == 1:
            yield Probe(0, _countries(reports))
        told = remembered | {"reports": "[" + ",\n".join(map(_json, reports)) + "]"}
        (decision,) = game.asker.ask([Question("manager", step, game.n_agents, prompts.manager, game.m, told)])
        decided.append(decision["country"])
        yield Probe(step, _countries(reports), decision["country"])


PROTOCOLS = {"pairwise": pairwise, "broadcast": broadcast, "manager": manager}


def _countries(answers: list[dict[str, Any]]) -> list[str]:
    return [answer["country"] for answer in answers]


def _json(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)


def _listed(lines: deque[str] | list[str]) -> str:
    return "\n".join(lines) or NOTHING
