"""What members of a norm society hold and what operations answer, of parts that JSON has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from numbers import Real
from typing import Any

import numpy as np

from theory.norms import STANDARDS, Action, Information, NormAgent, NormDatabase, PersonalNorm, Plan
from validation.norms.society._member import Member, Standard

RECORDS = {"identify": Information, "plan": Plan, "act": Action}


def member_to_dict(member: Member) -> dict[str, Any]:
    """What a member holds."""
    norms = [
        {**asdict(norm), "about": [list(one) for one in member.about[norm.content]]}
        | ({"parts": list(member.parts[norm.content])} if norm.content in member.parts else {})
        for norm in member.database.norms
    ]
    return plain({"norms": norms, "plan": {"text": member.plan.text, "follows": member.plan.follows}})


def member_from_dict(agent: NormAgent, row: Mapping[str, Any], behaviours: Collection[str]) -> Member:
    """The member that holds this; ValueError, KeyError or TypeError where nobody can."""
    norms, about, parts = [], {}, {}
    for norm in list_of(row["norms"], dict):
        content = norm["content"]
        norms.append(PersonalNorm(content, norm["utility"], norm["kind"], norm["activated"], norm["valid"]))
        about[content] = tuple(_standard(one, behaviours) for one in list_of(norm["about"], list))
        if "parts" in norm:
            parts[content] = norm["parts"]
    database = NormDatabase(tuple(norms))
    parts = {content: tuple(names_of(replaced, about)) for content, replaced in parts.items()}
    qualified = [norm.content for norm in database.qualified]
    (text,) = list_of([row["plan"]["text"]], str)
    plan = Plan(text, frozenset(names_of(row["plan"]["follows"], qualified)))
    return Member(agent, database, plan, about, parts)


def answer_to_json(operation: str, answer: Any) -> Any:
    """An answer; of a record, which may be of any class, what the contract names."""
    if operation in RECORDS and answer is not None:
        answer = {one.name: getattr(answer, one.name) for one in fields(RECORDS[operation])}
    return plain(answer)


def plain(value: Any) -> Any:
    """The same of parts that JSON has; sets are sorted."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Real) and not isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(part) for part in value]
    return value


def list_of(values: Any, kind: type) -> list[Any]:
    """`values`, a list of such; ValueError for anything else."""
    if not isinstance(values, list) or not all(isinstance(one, kind) for one in values):
        raise ValueError(f"{values!r}: expected a list of {kind.__name__}")
    return values


def names_of(values: Any, known: Collection[str]) -> list[str]:
    """`values`, a list of such names; ValueError for anything else."""
    for one in list_of(values, str):
        if one not in known:
            raise ValueError(f"{one!r}: expected one of {', '.join(known)}")
    return values


def _standard(pair: list[Any], behaviours: Collection[str]) -> Standard:
    behaviour, standard = pair
    names_of([behaviour], behaviours)
    names_of([standard], STANDARDS)
    return behaviour, standard
