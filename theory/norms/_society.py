"""The agents and behaviours of [003] as data."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from meanfield import InputError
from meanfield.toolbox import different, one_of, one_or_several, real_number

TYPES = ("entrepreneur", "ordinary")
STANDARDS = ("for", "against")
KINDS = ("injunctive", "descriptive")


@dataclass(frozen=True)
class Behaviour:
    """Something that agents do or refrain from, and the two opposing standards for it.

    Attributes
    ----------
    name
        As in `BEHAVIOURS`.
    kind
        'injunctive' for norms that say what ought to be done, or 'descriptive' for what people do.
    utility
        Utility of its norms, 1 to 100.
    standards
        {'for': text of the standard that the paper follows, 'against': text of the opposite one}.
    shows
        {standard: what an agent is seen to do who acts by it}.
    mentions
        A regular expression, of any case, that finds the behaviour in the text of a norm; '' for its name.

    Examples
    --------
    >>> standards = {"for": "Stand in line.", "against": "Nobody needs to queue."}
    >>> shows = {"for": "queues", "against": "jumps the queue"}
    >>> theory.norms.Behaviour("queueing", "injunctive", 90, standards, shows).kind
    'injunctive'
    """

    name: str
    kind: str
    utility: float
    standards: Mapping[str, str]
    shows: Mapping[str, str]
    mentions: str = ""

    def __post_init__(self) -> None:
        _check_text("name", self.name)
        one_of("kind", self.kind, KINDS)
        real_number(f"utility of {self.name!r}", self.utility, least=1, most=100)
        for name, texts in (("standards", self.standards), ("shows", self.shows)):
            if not isinstance(texts, Mapping) or set(texts) != set(STANDARDS) or texts["for"] == texts["against"]:
                raise InputError(f"{name} of {self.name} = {texts!r}: expected different texts, 'for' and 'against'")
            for standard, text in texts.items():
                _check_text(f"{name}[{standard!r}] of {self.name}", text)
        try:
            re.compile(self.mentions)
        except (re.error, TypeError):
            raise InputError(f"mentions of {self.name} = {self.mentions!r}: expected a regular expression") from None


@dataclass(frozen=True)
class NormAgent:
    """An agent of a norm society.

    Attributes
    ----------
    name
        Its name.
    type
        'entrepreneur', who starts with norms and campaigns for them, or 'ordinary'.
    description
        The agent's description of itself in prompts.
    prefers
        {behaviour: 'for' or 'against'}, the standard that it likes.

    Examples
    --------
    >>> eva = theory.norms.NormAgent("Eva", "entrepreneur", "Eva runs the café.", {"smoking": "for"})
    >>> tim = theory.norms.NormAgent("Tim", "ordinary", "Tim smokes.", {"smoking": "against"})
    >>> theory.norms.initial_composition("smoking", [eva, tim]).sel(state="ordinary/against/none").item()
    0.5
    """

    name: str
    type: str
    description: str
    prefers: Mapping[str, str]

    def __post_init__(self) -> None:
        _check_text("name", self.name)
        one_of("type", self.type, TYPES)
        if not isinstance(self.description, str):
            raise InputError(f"description = {self.description!r} of {self.name}: expected text")
        if not isinstance(self.prefers, Mapping):
            raise InputError(f"prefers = {self.prefers!r} of {self.name}: expected {{behaviour: standard}}")
        for behaviour, standard in self.prefers.items():
            one_of(f"prefers[{behaviour!r}] of {self.name}", standard, STANDARDS)

    def __repr__(self) -> str:
        """Short, since lists of agents are defaults of many functions."""
        return f"NormAgent({self.name!r}, {self.type!r}, …)"


def _check_text(name: str, value: object) -> None:
    """InputError unless the value is text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name} = {value!r}: expected text")


def behaviours_of(behaviours: Iterable[str | Behaviour] | None) -> tuple[Behaviour, ...]:
    """The behaviours of these names, all for None; InputError unless they are one or more different ones."""
    if behaviours is None:
        return tuple(BEHAVIOURS.values())
    if isinstance(behaviours, str) or not isinstance(behaviours, Iterable):
        raise InputError(f"behaviours = {behaviours!r}: expected a list of names")
    chosen = tuple(map(behaviour_of, one_or_several([*behaviours])))
    different("behaviours", [one.name for one in chosen], "behaviour")
    return chosen


def behaviour_of(behaviour: str | Behaviour) -> Behaviour:
    """The behaviour of this name; a `Behaviour` as it is."""
    return behaviour if isinstance(behaviour, Behaviour) else BEHAVIOURS[one_of("behaviour", behaviour, BEHAVIOURS)]


def agents_of(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """The agents; InputError unless they are one or more `NormAgent`s with different names."""
    found = tuple(one_or_several(agents))
    if not found or not all(isinstance(one, NormAgent) for one in found):
        raise InputError(f"agents = {agents!r}: expected one or more NormAgents")
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InputError(f"agents = {names}: expected different names")
    return found


def _fixed(row: dict) -> dict:
    """A row of the file whose inner tables can't be changed, since its objects are shared by everybody."""
    return {name: MappingProxyType(value) if isinstance(value, dict) else value for name, value in row.items()}


_DATA = tomllib.loads(files("theory.norms").joinpath("society.toml").read_text(encoding="utf-8"))
BEHAVIOURS = {name: Behaviour(name, **_fixed(row)) for name, row in _DATA["behaviour"].items()}
AGENTS = tuple(NormAgent(**_fixed(row)) for row in _DATA["agent"])
