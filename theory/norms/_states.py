"""The 36 states of an agent with respect to one behaviour."""

from __future__ import annotations

from typing import NamedTuple

from theory.norms._society import STANDARDS, TYPES

LEVELS = ("none", "informed", "qualified", "complying", "superseded")
HELD = ("none", "same", "opposed", "abstract")


class NormState(NamedTuple):
    """What an agent is, likes, and knows of a behaviour.

    Attributes
    ----------
    type
        'entrepreneur' or 'ordinary'.
    preference
        The standard that it likes, 'for' or 'against'.
    level
        'none'; 'informed' of a standard, which has not passed the check; 'qualified', its personal norm; 'complying',
        one that it plans by; 'superseded', one that is now part of an abstract norm.
    standard
        Of which standard, 'for' or 'against'; '' at level 'none'.
    """

    type: str
    preference: str
    level: str = "none"
    standard: str = ""

    @property
    def label(self) -> str:
        """The name of the state, as in 'ordinary/against/complying/for'."""
        return "/".join(part for part in self if part)

    @property
    def upheld(self) -> str:
        """The standard that it defends, by a norm of its own or an abstract one; '' where it has none."""
        return self.standard if self.level in ("qualified", "complying", "superseded") else ""

    def holds(self, standard: str) -> str:
        """What its qualified norms are to `standard`: 'none', 'same', 'opposed', or 'abstract', a norm that has it."""
        if self.level in ("none", "informed"):
            return "none"
        if self.standard != standard:
            return "opposed"
        return "abstract" if self.level == "superseded" else "same"

    def willing(self, standard: str) -> str:
        """'willing' where the standard is the one that the agent likes, else 'unwilling'."""
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
