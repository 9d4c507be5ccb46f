"""The agents and behaviours of [003] as data."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType

from meanfield import InputError
from meanfield.toolbox import one_of, one_or_several
from theory.norms._personal_norm import KINDS, PersonalNorm, is_utility

TYPES = ("entrepreneur", "ordinary")
STANDARDS = ("for", "against")


@dataclass(frozen=True)
class Behaviour:
    """Something that agents do or refrain from, and the two opposing standards for it.

    Attributes
    ----------
    name
        As in `BEHAVIOURS`.
    kind
        Kind of its norms, 'injunctive' or 'descriptive'.
    utility
        Utility of its norms, 1 to 100.
    standards
        {'for': text of the standard that the paper follows, 'against': text of the opposite one}.
    shows
        {standard: what an agent is seen to do who acts by it}.
    mentions
        A regular expression, of any case, that finds the behaviour in the text of a norm; '' for its name.

    Raises
    ------
    InputError
        If a value is not as described.

    Examples
    --------
    >>> from theory.norms import Behaviour
    >>> standards = {"for": "Stand in line.", "against": "Nobody needs to queue."}
    >>> queueing = Behaviour("queueing", "injunctive", 90, standards, {"for": "queues", "against": "jumps the queue"})
    >>> queueing.norm("for")
    PersonalNorm(content='Stand in line.', utility=90, kind='injunctive', activated=True, valid=True)
    """

    name: str
    kind: str
    utility: float
    standards: Mapping[str, str]
    shows: Mapping[str, str]
    mentions: str = ""

    def __post_init__(self) -> None:
        if not _is_text(self.name):
            raise InputError(f"name = {self.name!r}: expected the name of a behaviour")
        one_of("kind", self.kind, KINDS)
        if not is_utility(self.utility):
            raise InputError(f"utility = {self.utility!r} of {self.name}: expected a number from 1 to 100")
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
        check_standard("standard", standard)
        return PersonalNorm(self.standards[standard], self.utility, self.kind)


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

    Raises
    ------
    InputError
        If a value is not as described.

    Examples
    --------
    >>> from theory.norms import NormAgent, starting_fractions
    >>> eva = NormAgent("Eva", "entrepreneur", "Eva runs the café.", {"smoking": "for"})
    >>> tim = NormAgent("Tim", "ordinary", "Tim smokes.", {"smoking": "against"})
    >>> starting_fractions("smoking", [eva, tim])["ordinary", "against"]
    0.5
    """

    name: str
    type: str
    description: str
    prefers: Mapping[str, str]

    def __post_init__(self) -> None:
        if not _is_text(self.name):
            raise InputError(f"name = {self.name!r}: expected the name of an agent")
        one_of("type", self.type, TYPES)
        if not isinstance(self.description, str):
            raise InputError(f"description = {self.description!r} of {self.name}: expected text")
        if not isinstance(self.prefers, Mapping):
            raise InputError(f"prefers = {self.prefers!r} of {self.name}: expected {{behaviour: standard}}")
        for behaviour, standard in self.prefers.items():
            check_standard(f"prefers[{behaviour!r}] of {self.name}", standard)

    def __repr__(self) -> str:
        """Short, since lists of agents are defaults of many functions."""
        return f"NormAgent({self.name!r}, {self.type!r}, …)"


def behaviour_of(behaviour: str | Behaviour) -> Behaviour:
    """The behaviour of this name.

    Parameters
    ----------
    behaviour
        A name of `BEHAVIOURS`; a `Behaviour` is returned as it is.

    Raises
    ------
    InputError
        If there is none.

    See Also
    --------
    starting_fractions : who likes which of its standards

    Examples
    --------
    >>> from theory.norms import behaviour_of
    >>> behaviour_of("tipping").standards["for"]
    'People leave a tip after a meal.'
    """
    if isinstance(behaviour, Behaviour):
        return behaviour
    return BEHAVIOURS[one_of("behaviour", behaviour, BEHAVIOURS)]


def behaviours_of(behaviours: Iterable[str | Behaviour]) -> tuple[Behaviour, ...]:
    """The behaviours of these names; InputError unless they are one or more different ones."""
    if isinstance(behaviours, str) or not isinstance(behaviours, Iterable):
        raise InputError(f"behaviours = {behaviours!r}: expected a list of names")
    listed = [*behaviours] if isinstance(behaviours, Mapping) else one_or_several(behaviours)
    chosen = tuple(map(behaviour_of, listed))
    if not chosen or len({one.name for one in chosen}) < len(chosen):
        raise InputError(f"behaviours = {[one.name for one in chosen]}: expected one or more different ones")
    return chosen


def behaviours_sha256(behaviours: Iterable[Behaviour]) -> str:
    """A hash of the behaviours with all their texts, for the provenance of results."""
    plain = [[b.name, b.kind, float(b.utility), dict(b.standards), dict(b.shows), b.mentions] for b in behaviours]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def agents_of(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """The agents; InputError unless they are one or more `NormAgent`s with different names."""
    found = tuple(one_or_several(agents))
    if not found or not all(isinstance(one, NormAgent) for one in found):
        raise InputError(f"agents = {agents!r}: expected one or more NormAgents")
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise InputError(f"agents = {names}: expected different names")
    return found


def as_ordinary(agents: Iterable[NormAgent]) -> tuple[NormAgent, ...]:
    """The same agents, all of them ordinary: a society without entrepreneurs.

    Parameters
    ----------
    agents
        One or more agents with different names.

    Raises
    ------
    InputError
        If `agents` holds anything else.

    See Also
    --------
    emergence : takes agents

    Examples
    --------
    >>> from theory.norms import AGENTS, as_ordinary
    >>> [sum(agent.type == "entrepreneur" for agent in agents) for agents in (AGENTS, as_ordinary(AGENTS))]
    [3, 0]
    """
    return tuple(replace(agent, type="ordinary") for agent in agents_of(agents))


def check_standard(name: str, standard: str) -> None:
    """InputError unless `standard` is 'for' or 'against'."""
    one_of(name, standard, STANDARDS)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _read() -> tuple[dict[str, Behaviour], tuple[NormAgent, ...]]:
    data = tomllib.loads(files("theory.norms").joinpath("society.toml").read_text(encoding="utf-8"))
    behaviours = {
        name: Behaviour(
            name=name,
            kind=row["kind"],
            utility=row["utility"],
            standards=MappingProxyType({s: row[s] for s in STANDARDS}),
            shows=MappingProxyType({s: row[f"shows_{s}"] for s in STANDARDS}),
            mentions=row["mentions"],
        )
        for name, row in data["behaviour"].items()
    }
    agents = [NormAgent(**row | {"prefers": MappingProxyType(row["prefers"])}) for row in data["agent"]]
    return behaviours, tuple(agents)


BEHAVIOURS, AGENTS = _read()
