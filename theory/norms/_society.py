"""The agents and behaviours of [003] as data, and the norms that agents hold."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType

from meanfield import InputError
from meanfield.toolbox import is_number, one_of, one_or_several

TYPES = ("entrepreneur", "ordinary")
STANDARDS = ("for", "against")
KINDS = ("injunctive", "descriptive")
STATES = ("qualified", "informed", "superseded")


@dataclass(frozen=True)
class PersonalNorm:
    """A standard of behaviour as one agent holds it: its text, importance from 1 to 100, and kind.

    It is 'qualified', created or accepted, 'informed', without a passed check, or 'superseded' by an abstract norm. It
    is about (behaviour, standard) pairs, and an abstract one has the contents of its parts. Source: [003] Section 2.1.
    """

    content: str
    utility: float
    kind: str
    state: str = "qualified"
    about: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_text("content", self.content)
        _check_utility(self.utility, self.content)
        one_of("kind", self.kind, KINDS)
        one_of("state", self.state, STATES)


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
    >>> theory.norms.Behaviour("queueing", "injunctive", 90, standards, shows).norm("for").content
    'Stand in line.'
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
        _check_utility(self.utility, self.name)
        for name, texts in (("standards", self.standards), ("shows", self.shows)):
            named = isinstance(texts, Mapping) and set(texts) == set(STANDARDS)
            if not named or not all(map(_is_text, texts.values())) or texts["for"] == texts["against"]:
                raise InputError(f"{name} of {self.name} = {texts!r}: expected different texts, 'for' and 'against'")
        try:
            re.compile(self.mentions)
        except (re.error, TypeError):
            raise InputError(f"mentions of {self.name} = {self.mentions!r}: expected a regular expression") from None

    def norm(self, standard: str) -> PersonalNorm:
        """The personal norm of an agent who accepted `standard`."""
        content = self.standards[one_of("standard", standard, STANDARDS)]
        return PersonalNorm(content, self.utility, self.kind, about=((self.name, standard),))


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


def behaviour_of(behaviour: str | Behaviour) -> Behaviour:
    """The behaviour of this name; a `Behaviour` as it is."""
    return behaviour if isinstance(behaviour, Behaviour) else BEHAVIOURS[one_of("behaviour", behaviour, BEHAVIOURS)]


def behaviours_of(behaviours: Iterable[str | Behaviour] | None) -> tuple[Behaviour, ...]:
    """The behaviours of these names, all for None; InputError unless they are one or more different ones."""
    if behaviours is None:
        return tuple(BEHAVIOURS.values())
    if isinstance(behaviours, str) or not isinstance(behaviours, Iterable):
        raise InputError(f"behaviours = {behaviours!r}: expected a list of names")
    chosen = tuple(map(behaviour_of, one_or_several([*behaviours])))
    if not chosen or len({one.name for one in chosen}) < len(chosen):
        raise InputError(f"behaviours = {[one.name for one in chosen]}: expected one or more different ones")
    return chosen


def agents_of(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """The agents; InputError unless they are one or more `NormAgent`s with different names."""
    found = tuple(one_or_several(agents))
    if not found or not all(isinstance(one, NormAgent) for one in found):
        raise InputError(f"agents = {agents!r}: expected one or more NormAgents")
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InputError(f"agents = {names}: expected different names")
    return found


def _check_utility(utility: object, whose: str) -> None:
    if not is_number(utility) or not 1 <= utility <= 100:  # type: ignore[operator]
        raise InputError(f"utility = {utility!r} of {whose!r}: expected a number from 1 to 100")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_text(name: str, value: object) -> None:
    if not _is_text(value):
        raise InputError(f"{name} = {value!r}: expected text")


def _read() -> tuple[dict[str, Behaviour], tuple[NormAgent, ...]]:
    data = tomllib.loads(files("theory.norms").joinpath("society.toml").read_text(encoding="utf-8"))
    behaviours = {
        name: Behaviour(**row | {"name": name} | {part: MappingProxyType(row[part]) for part in ("standards", "shows")})
        for name, row in data["behaviour"].items()
    }
    return behaviours, tuple(NormAgent(**row | {"prefers": MappingProxyType(row["prefers"])}) for row in data["agent"])


BEHAVIOURS, AGENTS = _read()
