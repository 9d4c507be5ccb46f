"""What a society of agents with norms asks whoever decides for them, and what they tell each other.

The society knows who holds which norms and who meets whom; every decision is an operation, answered by a table of
probabilities or by a language model. The contract is structural: nothing has to be inherited, and the records need only
the attributes named here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from theory.norms._personal_norm import PersonalNorm
from theory.norms._society import Behaviour, NormAgent

Norms = tuple[PersonalNorm, ...]


@dataclass(frozen=True)
class Observation:
    """What an agent sees another one do.

    Attributes
    ----------
    text
        What it sees, as in 'Sam Moore lights a cigarette at the table.'
    actor
        Name of whom it sees.
    behaviour
        Name of the behaviour.
    shows
        The standard that this follows, 'for' or 'against'.
    normative
        Whether the actor follows a norm, and not a habit.
    """

    text: str
    actor: str
    behaviour: str
    shows: str
    normative: bool


@dataclass(frozen=True)
class Information:
    """Normative information that an agent identified, before the check.

    Attributes
    ----------
    content, kind, utility
        As of a `PersonalNorm`.
    text
        What it comes from: a conversation, a thought, or the theme and contents of the norms that it is to replace.
    source
        Which of these: 'chat', 'thought' or 'synthesis'.
    """

    content: str
    kind: str
    utility: float
    text: str
    source: str


@dataclass(frozen=True)
class Plan:
    """What an agent is up to, and the contents of the norms that it keeps to in it."""

    text: str
    follows: frozenset[str]


@dataclass(frozen=True)
class Action:
    """What an agent does about a behaviour: in words, by which standard, and whether for the sake of a norm."""

    text: str
    shows: str
    normative: bool


class SocietyOperations(Protocol):
    """The operations of [003] Section 2, each asked of one agent.

    `norms` are the agent's qualified norms, `informed` those that it was told of and has not accepted, the last one
    last, except where it holds a norm about the same behaviour. All randomness comes from `rng`.

    An operation that a model never answers in a usable form raises `meanfield.UnparsedError`.

    Four attributes are used where an object has them: `exchanges`, a list of dicts for a log, which the society
    empties after each event; `identity`, text that determines the answers; `rates`, the `NormRates` they are for; and
    `created_for`, names of agents for which `create` has norms, which are to be entrepreneurs of the society.
    """

    def create(self, agent: NormAgent, n: int, rng: np.random.Generator) -> Sequence[Mapping[str, Any]]:
        """The norms that an entrepreneur starts with, n or fewer: content, kind and utility of each."""
        ...

    def detect_conflict(
        self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether what the agent sees is in conflict with its norms; asked of agents with norms."""
        ...

    def decide_to_talk(
        self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether it talks to whom it finds in conflict with its norms."""
        ...

    def talk(
        self, agent: NormAgent, partner: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> str:
        """The conversation."""
        ...

    def think(self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator) -> str | None:
        """A thought about what it sees, or None."""
        ...

    def identify(
        self,
        agent: NormAgent,
        text: str,
        source: str,
        observation: Observation,
        informed: Norms,
        rng: np.random.Generator,
    ) -> Information | None:
        """The norm that a conversation or a thought is about, or None."""
        ...

    def is_consistent(self, agent: NormAgent, information: Information, rng: np.random.Generator) -> bool:
        """Whether the information agrees with its text; the first step of the check."""
        ...

    def is_unique(self, agent: NormAgent, information: Information, norms: Norms, rng: np.random.Generator) -> bool:
        """Whether it is none of the norms."""
        ...

    def is_type_right(self, agent: NormAgent, information: Information, rng: np.random.Generator) -> bool:
        """Whether its kind is right."""
        ...

    def is_conflict_free(
        self, agent: NormAgent, information: Information, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether it opposes none of the norms, or wins against those that it opposes."""
        ...

    def plan(self, agent: NormAgent, norms: Norms, rng: np.random.Generator) -> Plan:
        """A plan, and which of the norms it keeps to."""
        ...

    def act(self, agent: NormAgent, behaviour: Behaviour, norms: Norms, plan: Plan, rng: np.random.Generator) -> Action:
        """What the agent does about the behaviour; `plan` keeps to all that it has planned by so far."""
        ...

    def classify(self, agent: NormAgent, norms: Norms, rng: np.random.Generator) -> Sequence[tuple[str, Sequence[str]]]:
        """Themes, and the contents of the norms of each; no norm is part of two."""
        ...

    def abstract(
        self, agent: NormAgent, theme: str, norms: Norms, rng: np.random.Generator
    ) -> tuple[str, str, Sequence[float]]:
        """Content and kind of a general norm for the norms of a theme, and the weights of these in its utility."""
        ...
