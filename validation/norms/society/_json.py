"""Members of a norm society as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from numbers import Real
from typing import Any

import numpy as np

from validation.norms.society._member import Member


def member_to_dict(member: Member) -> dict[str, Any]:
    """The norms and the plan of a member."""
    norms = [
        {**asdict(norm), "about": [list(one) for one in member.about[norm.content]]}
        | ({"parts": list(member.parts[norm.content])} if norm.content in member.parts else {})
        for norm in member.database.norms
    ]
    return plain({"norms": norms, "plan": {"text": member.plan.text, "follows": member.plan.follows}})


def plain(value: Any) -> Any:
    """The value in types that JSON has; sets are sorted."""
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
