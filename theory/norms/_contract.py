"""The contract between a society of agents with norms and the object that decides for them.

The society knows who holds which norms and who meets whom. Every decision is an operation, which a table of
probabilities or a language model answers. The contract is structural: inherit nothing, and give records the attributes
named here.
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
    """An agent's view of another one's behaviour.

    Attributes
    ----------
    text
        The scene, as in 'Sam Moore lights a cigarette at the table.'
    actor
        Name of the agent who is seen.
    behaviour
        Name of the behaviour.
    shows
        The standard that the actor follows, 'for' or 'against'.
    normative
        Whether the actor follows a norm, not a habit.

    Examples
    --------
    >>> from theory.norms import Observation
    >>> Observation("Sam Moore lights a cigarette.", "Sam Moore", "smoking", "against", normative=False).shows
    'against'
    """

    text: str
    actor: str
    behaviour: str
    shows: str
    normative: bool


@dataclass(frozen=True)
class Information:
    """Normative information that an agent identified and has not checked yet.

    Attributes
    ----------
    content, kind, utility
        As of a `PersonalNorm`.
    text
        Its origin: a conversation, a thought, or the theme and contents of the norms that it is to replace.
    source
        The kind of origin: 'chat', 'thought' or 'synthesis'.

    Examples
    --------
    >>> from theory.norms import Information
    >>> Information("No smoking indoors.", "injunctive", 90, "Bob: Please smoke outside.", "chat").source
    'chat'
    """

    content: str
    kind: str
    utility: float
    text: str
    source: str


@dataclass(frozen=True)
class Plan:
    """An agent's plan, and the contents of the norms that it follows.

    See Also
    --------
    SocietyOperations : its method `plan` returns one

    Examples
    --------
    >>> from theory.norms import Plan
    >>> Plan("I smoke in the garden.", frozenset({"No smoking indoors."})).follows
    frozenset({'No smoking indoors.'})
    """

    text: str
    follows: frozenset[str]


@dataclass(frozen=True)
class Action:
    """An agent's reaction to a behaviour: in words, by which standard, and whether by a norm.

    See Also
    --------
    SocietyOperations : its method `act` returns one

    Examples
    --------
    >>> from theory.norms import Action
    >>> Action("Sam steps outside to smoke.", "for", normative=True).shows
    'for'
    """

    text: str
    shows: str
    normative: bool


class SocietyOperations(Protocol):
    """The operations of [003] Section 2, each asked of one agent.

    `norms` are the agent's qualified norms. `informed` are norms that it was told of and has not accepted, the latest
    last, except norms about a behaviour for which it holds one. All randomness comes from `rng`.

    An operation raises `policy_extraction.UnparsedError` if its model never gives a usable answer.

    Four attributes are optional: `exchanges`, a list of dicts for a log, which the society empties after each event;
    `identity`, text that determines the answers; `rates`, the `NormRates` that they assume; and `created_for`, names of
    agents for whom `create` has norms and who have to be entrepreneurs of the society.
    """

    def create(self, agent: NormAgent, n: int, rng: np.random.Generator) -> Sequence[Mapping[str, Any]]:
        """The norms that an entrepreneur starts with, n or fewer: content, kind and utility of each."""
        ...

    def detect_conflict(
        self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether the observation conflicts with the agent's norms; asked of agents with norms."""
        ...

    def decide_to_talk(
        self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether it talks to an agent whom it finds in conflict with its norms."""
        ...

    def talk(
        self, agent: NormAgent, partner: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator
    ) -> str:
        """The conversation."""
        ...

    def think(self, agent: NormAgent, observation: Observation, norms: Norms, rng: np.random.Generator) -> str | None:
        """A thought about the observation, or None."""
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
        """Whether it differs from all the norms."""
        ...

    def is_type_right(self, agent: NormAgent, information: Information, rng: np.random.Generator) -> bool:
        """Whether its kind is right."""
        ...

    def is_conflict_free(
        self, agent: NormAgent, information: Information, norms: Norms, rng: np.random.Generator
    ) -> bool:
        """Whether it opposes none of the norms, or prevails over each that it opposes."""
        ...

    def plan(self, agent: NormAgent, norms: Norms, rng: np.random.Generator) -> Plan:
        """A plan, and the norms that it follows."""
        ...

    def act(self, agent: NormAgent, behaviour: Behaviour, norms: Norms, plan: Plan, rng: np.random.Generator) -> Action:
        """The agent's reaction to the behaviour; `plan` follows every norm that it has planned by so far."""
        ...

    def classify(self, agent: NormAgent, norms: Norms, rng: np.random.Generator) -> Sequence[tuple[str, Sequence[str]]]:
        """Themes, and the contents of the norms of each; no norm is part of two."""
        ...

    def abstract(
        self, agent: NormAgent, theme: str, norms: Norms, rng: np.random.Generator
    ) -> tuple[str, str, Sequence[float]]:
        """Content and kind of a general norm for the norms of a theme, and their weights in its utility."""
        ...
