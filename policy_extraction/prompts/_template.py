"""Prompt templates, which turn a memory state into the text that an agent reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from types import MappingProxyType
from typing import Any

from meanfield import InputError
from meanfield.toolbox import instance, is_number, one_or_several, shown
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._slots import check_slots, fill
from policy_extraction.prompts._toml import TEXT, YES_OR_NO, check_layout, packaged_toml, read_toml

MESSAGE_SLOTS = frozenset({"options", "success", "failure", "history", "round", "score"})
LINE_SLOTS = frozenset({"round", "own", "partner", "payoff"})
MOST_POINTS = 1e12


@dataclass(frozen=True)
class Payoffs:
    """Points that both players get in a round.

    Parameters
    ----------
    success
        For equal words.
    failure
        For different ones.

    Raises
    ------
    InputError
        If one is not a finite number, or larger than 10^12.

    Examples
    --------
    >>> from policy_extraction.prompts import Payoffs
    >>> Payoffs(10, -5).of("his", "her")
    -5
    """

    success: float = 100
    failure: float = -50

    def __post_init__(self) -> None:
        for name in ("success", "failure"):
            value = getattr(self, name)
            if not is_number(value) or abs(value) > MOST_POINTS:
                raise InputError(
                    f"{name} = {shown(value)}: expected a finite number of points, {MOST_POINTS:g} at most"
                )
            # Prompts and cache keys show NumPy's numbers as Python's.
            object.__setattr__(self, name, int(value) if isinstance(value, Integral) else float(value))

    def of(self, own: str, partner: str) -> float:
        """The points of a round in which these two words were played."""
        return self.success if own == partner else self.failure


@dataclass(frozen=True)
class Prompt:
    """The messages that a model reads; its answer continues `answer_prefix`.

    See Also
    --------
    Template : makes them from memories

    Examples
    --------
    >>> from policy_extraction.prompts import NAMING_GAME, Payoffs, Prompt
    >>> Prompt("You play a game.", "Choose.", "I choose '").answer_prefix
    "I choose '"
    >>> NAMING_GAME.prompt(("his", "her"), [], Payoffs()).answer_prefix
    "{'value': '"
    """

    system: str
    user: str
    answer_prefix: str


def checked_prompts(prompts: object) -> list[Prompt]:
    """The prompts; InputError if they are anything else."""
    if not isinstance(prompts, Iterable) or isinstance(prompts, (str, bytes)) or getattr(prompts, "ndim", 1) == 0:
        raise InputError(f"prompts = {shown(prompts)}: expected a list of Prompt")
    found = [instance("prompts: an item", prompt, Prompt) for prompt in prompts]
    if not found:
        raise InputError("prompts is empty: expected one or more Prompt")
    return found


def longest(prompts: Sequence[Prompt]) -> Prompt:
    """The prompt with the most letters in its messages."""
    return max(prompts, key=lambda prompt: len(prompt.system) + len(prompt.user))


@dataclass(frozen=True)
class Template:
    """A prompt with slots in the notation of `string.Template`; a plain dollar sign is written ``$$``.

    Parameters
    ----------
    name
        Name and version, part of a policy's provenance.
    system
        System message, with slots ``$options``, ``$success``, ``$failure``, ``$history``, ``$round`` and ``$score``.
        The history is empty, or one line for each remembered round and then an empty line.
    user
        User message, with the same slots. The two messages together need ``$options`` and ``$history``.
    answer_prefix
        Beginning of the answer, up to the word. It has no slots, and a dollar sign is written once.
    option
        One word in the list of options, with the slot ``$word``.
    line
        One remembered round, with slots ``$round``, ``$own``, ``$partner`` and ``$payoff``; needs ``$own`` and
        ``$partner``.
    newest_first
        List the remembered rounds from the latest to the oldest, each with its number.

    Raises
    ------
    InputError
        If a slot is unknown, or a needed slot is missing.

    Examples
    --------
    >>> from policy_extraction.prompts import Payoffs, Template
    >>> asked = "${history}Round $round, score $score. Choose $options."
    >>> template = Template("mine/1", "You play a game.", asked, "I choose '", "'$word'", "$round: $own and $partner")
    >>> template.prompt(("his", "her"), [("his", "her")], Payoffs()).user.splitlines()
    ['1: his and her', '', "Round 2, score -50. Choose 'his', 'her'."]
    """

    name: str
    system: str
    user: str
    answer_prefix: str
    option: str
    line: str
    newest_first: bool = False

    def __post_init__(self) -> None:
        check_name("template: name", self.name)
        messages = [self.system, self.user]
        check_slots(f"template {self.name}: system and user", messages, {"options", "history"}, MESSAGE_SLOTS)
        check_slots(f"template {self.name}: option", [self.option], {"word"})
        check_slots(f"template {self.name}: line", [self.line], {"own", "partner"}, LINE_SLOTS)

    def prompt(self, options: Sequence[str], memory: Sequence[tuple[str, str]], payoffs: Payoffs) -> Prompt:
        """The prompt of an agent with this memory.

        Rounds are numbered from 1 within the memory, and the score counts remembered rounds only: the text is a
        function of the memory state.

        Parameters
        ----------
        options
            The words, in presentation order.
        memory
            Pairs (own word, partner's word), oldest first.
        payoffs
            Points of a round.
        """
        instance("payoffs", payoffs, Payoffs)
        if isinstance(options, str) or not all(isinstance(word, str) for word in one_or_several(options)):
            raise InputError(f"options = {shown(options)}: expected a sequence of words")
        options = list(options)
        try:
            memory = [(own, partner) for own, partner in memory]
        except (TypeError, ValueError):
            raise InputError(f"memory = {shown(memory)}: expected pairs of words") from None
        lines = [
            fill(self.line, {"round": i, "own": own, "partner": partner, "payoff": payoffs.of(own, partner)})
            for i, (own, partner) in enumerate(memory, start=1)
        ]
        if self.newest_first:
            lines.reverse()
        slots = {
            "options": ", ".join(fill(self.option, {"word": word}) for word in options),
            "success": payoffs.success,
            "failure": payoffs.failure,
            "history": "\n".join([*lines, "", ""]) if lines else "",
            "round": len(memory) + 1,
            "score": sum(payoffs.of(own, partner) for own, partner in memory),
        }
        return Prompt(fill(self.system, slots), fill(self.user, slots), self.answer_prefix)


def check_prompt(template: object, payoffs: object) -> None:
    """InputError unless these are a template and payoffs."""
    instance("template", template, Template)
    instance("payoffs", payoffs, Payoffs)


def prompt_options(template: Template, payoffs: Payoffs) -> dict[str, str | float]:
    """The options of a result that tell its prompt."""
    return {"template": template.name, "payoff_success": payoffs.success, "payoff_failure": payoffs.failure}


def load_template(path: str | os.PathLike[str]) -> Template:
    """Read a template from a TOML file whose keys are the parameters of `Template`.

    `newest_first` may be left out. Examples are the files in `policy_extraction/prompts/templates`.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    InputError
        If the file can't be read; if a key is missing, unknown or of a wrong type; or if slots are wrong.

    See Also
    --------
    policy_extraction.extract : takes the template

    Examples
    --------
    >>> from importlib.resources import files
    >>> from policy_extraction.prompts import NAMING_GAME, load_template
    >>> load_template(files("policy_extraction.prompts") / "templates" / "naming_game_004.toml") == NAMING_GAME
    True
    """
    return _checked(read_toml(path, "the template"), str(path))


def _checked(content: dict[str, Any], source: str) -> Template:
    layout = {field.name: YES_OR_NO if field.name == "newest_first" else TEXT for field in fields(Template)}
    check_layout({"newest_first": False} | content, layout, source)
    return Template(**content)


def _published() -> Mapping[str, Template]:
    names = ("naming_game_004.toml", "naming_game_000.toml")
    templates = [_checked(packaged_toml(name), name) for name in names]
    return MappingProxyType({template.name: template for template in templates})


TEMPLATES = _published()
"""The published prompts by name: 'naming-game-004/1' of [004], 'naming-game-000/1' of [000] and [001]."""

NAMING_GAME = TEMPLATES["naming-game-004/1"]
