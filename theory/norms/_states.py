"""The 36 states of an agent with respect to one behaviour."""

from __future__ import annotations

from typing import NamedTuple

from theory.norms._society import STANDARDS, TYPES

LEVELS = ("none", "informed", "qualified", "complying", "superseded")
HELD = ("none", "same", "opposed", "abstract")


class NormState(NamedTuple):
    """An agent's type, preference and knowledge of a behaviour.

    Attributes
    ----------
    type
        'entrepreneur' or 'ordinary'.
    preference
        The standard that it likes, 'for' or 'against'.
    level
        'none'; 'informed' of a standard that has not passed the check; 'qualified', a personal norm; 'complying', a
        norm that it plans by; 'superseded', a norm that is now part of an abstract one.
    standard
        The standard of this norm or information, 'for' or 'against'; '' at level 'none'.

    Examples
    --------
    >>> from theory.norms import NormState
    >>> state = NormState("ordinary", "against", "complying", "for")
    >>> state.label, state.holds("for"), state.willing("for")
    ('ordinary/against/complying/for', 'same', 'unwilling')
    """

    type: str
    preference: str
    level: str = "none"
    standard: str = ""

    @property
    def label(self) -> str:
        """The name of the state, such as 'ordinary/against/complying/for'."""
        return "/".join(part for part in self if part)

    @property
    def upheld(self) -> str:
        """The standard that it defends, by its own norm or an abstract one; '' without a norm."""
        return self.standard if self.level in ("qualified", "complying", "superseded") else ""

    def holds(self, standard: str) -> str:
        """How its qualified norms relate to `standard`: 'none', 'same', 'opposed', or 'abstract', which contains it."""
        if self.level in ("none", "informed"):
            return "none"
        if self.standard != standard:
            return "opposed"
        return "abstract" if self.level == "superseded" else "same"

    def willing(self, standard: str) -> str:
        """'willing' if the agent likes the standard, else 'unwilling'."""
        return "willing" if standard == self.preference else "unwilling"

    def at(self, level: str, standard: str) -> NormState:
        """The same agent at another level."""
        return self._replace(level=level, standard=standard)


NORM_STATES = tuple(
    NormState(kind, preference, level, standard)
    for kind in TYPES
    for preference in STANDARDS
    for level in LEVELS
    for standard in (STANDARDS if level != "none" else ("",))
)
INDEX = {state: k for k, state in enumerate(NORM_STATES)}
