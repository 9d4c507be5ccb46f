"""The prompt as data: a memory state becomes the text that an agent reads."""

from __future__ import annotations

import os
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from types import MappingProxyType
from typing import Any

from meanfield import InputError
from meanfield.toolbox import is_number, shown
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._toml import packaged_toml, read_toml

MESSAGE_SLOTS = frozenset({"options", "success", "failure", "history", "round", "score"})
LINE_SLOTS = frozenset({"round", "own", "partner", "payoff"})
OPTION_SLOTS = frozenset({"word"})
MOST_POINTS = 1e12


@dataclass(frozen=True)
class Payoffs:
    """Points that both players get in a round: for the same word, and for different ones."""

    success: float = 100
    failure: float = -50

    def __post_init__(self) -> None:
        for name in ("success", "failure"):
            value = getattr(self, name)
            if not is_number(value) or abs(value) > MOST_POINTS:
                raise InputError(
                    f"{name} = {shown(value)}: expected a finite number of points, {MOST_POINTS:g} at most"
                )
            # Numbers of NumPy are written to prompts and keys as Python's.
            object.__setattr__(self, name, int(value) if isinstance(value, Integral) else float(value))

    def of(self, own: str, partner: str) -> float:
        """The points of a round in which these two words were played."""
        return self.success if own == partner else self.failure


@dataclass(frozen=True)
class Prompt:
    """What the model reads; its answer goes on from `answer_prefix`."""

    system: str
    user: str
    answer_prefix: str


@dataclass(frozen=True)
class Template:
    """A prompt with slots, in the notation of `string.Template`: a dollar sign that is none is written ``$$``.

    Parameters
    ----------
    name
        Name and version; it is part of a policy's provenance.
    system
        System message, with slots ``$options``, ``$success``, ``$failure``, ``$history``, ``$round`` and ``$score``.
        The history is empty, or its lines followed by an empty line.
    user
        User message, with the same slots. The two together need ``$options`` and ``$history``.
    answer_prefix
        How the answer starts, up to the word; it has no slots, and a dollar sign is itself.
    option
        One word in the list of options, with the slot ``$word``.
    line
        One remembered round, with slots ``$round``, ``$own``, ``$partner`` and ``$payoff``; the words of both players
        are needed.
    newest_first
        List the remembered rounds from the latest to the oldest, each with its number.

    Raises
    ------
    InputError
        If a slot is unknown or one that is needed is missing.
    """

    name: str
    system: str
    user: str
    answer_prefix: str
    option: str
    line: str
    newest_first: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("template: its name is empty; expected a name and a version, as in 'my-game/1'")
        check_name("template: its name", self.name)
        messages = self._slots("system", MESSAGE_SLOTS) | self._slots("user", MESSAGE_SLOTS)
        self._need("system and user", messages, {"options", "history"})
        self._need("option", self._slots("option", OPTION_SLOTS), {"word"})
        self._need("line", self._slots("line", LINE_SLOTS), {"own", "partner"})

    def _slots(self, field: str, known: frozenset[str]) -> set[str]:
        text = string.Template(getattr(self, field))
        if not text.is_valid():
            raise InputError(f"template {self.name}: {field} has a $ that starts no slot; a dollar sign is written $$")
        found = set(text.get_identifiers())
        if found - known:
            expected = ", ".join(f"${slot}" for slot in sorted(known))
            raise InputError(f"template {self.name}: {field} has the slot ${min(found - known)}; expected {expected}")
        return found

    def _need(self, place: str, found: set[str], needed: set[str]) -> None:
        if needed - found:
            missing = " and ".join(f"${slot}" for slot in sorted(needed - found))
            raise InputError(f"template {self.name}: {place} lacks the slot {missing}")

    def prompt(self, options: Sequence[str], memory: Sequence[tuple[str, str]], payoffs: Payoffs) -> Prompt:
        """The prompt of an agent with this memory, to whom the words are presented in the order `options`.

        Rounds are numbered from 1 within the memory, and the score counts the remembered rounds only, so that the text
        is a function of the memory state.

        Parameters
        ----------
        options
            The words, in presentation order.
        memory
            Pairs (own word, partner's word), oldest first.
        payoffs
            Points of a round.
        """
        lines = [
            _fill(self.line, round=i, own=own, partner=partner, payoff=payoffs.of(own, partner))
            for i, (own, partner) in enumerate(memory, start=1)
        ]
        if self.newest_first:
            lines.reverse()
        slots = {
            "options": ", ".join(_fill(self.option, word=word) for word in options),
            "success": payoffs.success,
            "failure": payoffs.failure,
            "history": "\n".join([*lines, "", ""]) if lines else "",
            "round": len(memory) + 1,
            "score": sum(payoffs.of(own, partner) for own, partner in memory),
        }
        return Prompt(_fill(self.system, **slots), _fill(self.user, **slots), self.answer_prefix)


def _fill(text: str, **slots: object) -> str:
    return string.Template(text).substitute(slots)


def load_template(path: str | os.PathLike[str]) -> Template:
    """A template of one's own, from a TOML file whose keys are the parameters of `Template`.

    `newest_first` may be left out. The package has such files in `policy_extraction/prompts/templates`.

    Raises
    ------
    InputError
        If the file can't be read, a key is missing, unknown or of a wrong type, or slots are wrong.
    """
    return _checked(read_toml(path, "the template"), str(path))


def _checked(content: dict[str, Any], source: str) -> Template:
    types = {field.name: bool if field.name == "newest_first" else str for field in fields(Template)}
    missing = [name for name in types if name not in content and name != "newest_first"]
    if missing:
        raise InputError(f"path = {source}: the template lacks {', '.join(missing)}")
    for name, value in content.items():
        if name not in types:
            raise InputError(f"path = {source}: {name} is no part of a template; expected {', '.join(types)}")
        if type(value) is not types[name]:
            kind = "true or false" if types[name] is bool else "text"
            raise InputError(f"path = {source}: {name} = {shown(value)}, expected {kind}")
    return Template(**content)


def _published() -> Mapping[str, Template]:
    names = ("naming_game_004.toml", "naming_game_000.toml")
    templates = [_checked(packaged_toml(name), name) for name in names]
    return MappingProxyType({template.name: template for template in templates})


TEMPLATES = _published()
"""The published prompts by name: 'naming-game-004/1' of [004], 'naming-game-000/1' of [000] and [001]."""

NAMING_GAME = TEMPLATES["naming-game-004/1"]
