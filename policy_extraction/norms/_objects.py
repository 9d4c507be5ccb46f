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

    Examples
    --------
    >>> from policy_extraction.norms import Information
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
    """A plan, and the contents of the norms that it follows.

    Examples
    --------
    >>> from policy_extraction.norms import Plan
    >>> Plan("I smoke in the garden.", frozenset({"No smoking indoors."})).follows
    frozenset({'No smoking indoors.'})
    """

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

    Examples
    --------
    >>> from policy_extraction.norms import Action
    >>> Action("Sam steps outside to smoke.", "for", normative=True).shows
    'for'
    """

    text: str
    shows: str
    normative: bool
