"""The agents and behaviours of [003] as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from types import MappingProxyType

from meanfield import InputError
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
        {'for': what the standard that the paper follows says, 'against': what the opposite one says}.
    shows
        {standard: what someone is seen to do who acts by it}.
    """

    name: str
    kind: str
    utility: float
    standards: Mapping[str, str]
    shows: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"kind = {self.kind!r} of {self.name}: expected one of {', '.join(KINDS)}")
        if not is_utility(self.utility):
            raise InputError(f"utility = {self.utility!r} of {self.name}: expected a number from 1 to 100")
        for name, texts in (("standards", self.standards), ("shows", self.shows)):
            if set(texts) != set(STANDARDS):
                raise InputError(f"{name} of {self.name} = {dict(texts)!r}: expected texts for {', '.join(STANDARDS)}")

    def norm(self, standard: str) -> PersonalNorm:
        """The personal norm of someone who accepted `standard`."""
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
        What it is told about itself.
    prefers
        {behaviour: 'for' or 'against'}, the standard that it likes.
    """

    name: str
    type: str
    description: str
    prefers: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.type not in TYPES:
            raise InputError(f"type = {self.type!r} of {self.name}: expected one of {', '.join(TYPES)}")
        for behaviour, standard in self.prefers.items():
            check_standard(f"prefers[{behaviour!r}] of {self.name}", standard)


def behaviour_of(behaviour: str | Behaviour) -> Behaviour:
    """The behaviour of this name; InputError where there is none."""
    if isinstance(behaviour, Behaviour):
        return behaviour
    if behaviour not in BEHAVIOURS:
        raise InputError(f"behaviour = {behaviour!r}: expected one of {', '.join(BEHAVIOURS)}")
    return BEHAVIOURS[behaviour]


def as_ordinary(agents: tuple[NormAgent, ...]) -> tuple[NormAgent, ...]:
    """The same agents, none of them an entrepreneur."""
    return tuple(replace(agent, type="ordinary") for agent in agents)


def check_standard(name: str, standard: str) -> None:
    """InputError unless `standard` is 'for' or 'against'."""
    if standard not in STANDARDS:
        raise InputError(f"{name} = {standard!r}: expected one of {', '.join(STANDARDS)}")


def _read() -> tuple[dict[str, Behaviour], tuple[NormAgent, ...]]:
    data = tomllib.loads(files("theory.norms").joinpath("society.toml").read_text(encoding="utf-8"))
    behaviours = {
        name: Behaviour(
            name=name,
            kind=row["kind"],
            utility=row["utility"],
            standards=MappingProxyType({s: row[s] for s in STANDARDS}),
            shows=MappingProxyType({s: row[f"shows_{s}"] for s in STANDARDS}),
        )
        for name, row in data["behaviour"].items()
    }
    agents = [NormAgent(**row | {"prefers": MappingProxyType(row["prefers"])}) for row in data["agent"]]
    return behaviours, tuple(agents)


BEHAVIOURS, AGENTS = _read()
