"""Results of the operations of a norm society."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Information:
    """Normative information: a norm found in a conversation or thought, before its check.

    Attributes
    ----------
    content, kind, utility
        As for a personal norm.
    text
        The conversation or thought.
    source
        'chat' or 'thought'.
    """

    content: str
    kind: str
    utility: float
    text: str
    source: str


@dataclass(frozen=True)
class Plan:
    """A plan, and the contents of the norms that it follows."""

    text: str
    follows: frozenset[str]


@dataclass(frozen=True)
class Action:
    """An agent's action about a behaviour.

    Attributes
    ----------
    text
        The action in the agent's words.
    shows
        The standard of the action, 'for' or 'against'.
    normative
        Whether a norm of the agent's plan asks for the action.
    """

    text: str
    shows: str
    normative: bool
