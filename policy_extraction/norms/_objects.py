"""What operations of a norm society return."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Information:
    """Normative information: a norm that was found in what was said or thought, and has not been checked yet.

    Attributes
    ----------
    content, kind, utility
        As of a personal norm.
    text
        The conversation or thought that it was found in.
    source
        Which of them, 'chat' or 'thought'.
    """

    content: str
    kind: str
    utility: float
    text: str
    source: str


@dataclass(frozen=True)
class Plan:
    """A plan, and the contents of the norms that it keeps to."""

    text: str
    follows: frozenset[str]


@dataclass(frozen=True)
class Action:
    """What an agent does about a behaviour.

    Attributes
    ----------
    text
        In its own words.
    shows
        The standard that it acts by, 'for' or 'against'.
    normative
        Whether a norm that it plans by asks for this.
    """

    text: str
    shows: str
    normative: bool
