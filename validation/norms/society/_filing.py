"""Standards of norms whose texts are a model's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from theory.norms import STANDARDS, Behaviour
from validation.norms.society._member import Standard


def file_norm(content: str, behaviours: Iterable[Behaviour], taken_as: Callable[[str], str]) -> tuple[Standard, ...]:
    """The standards that a norm is about.

    The texts of the behaviours' standards are those standards. Other texts are about the behaviours that they mention,
    and uphold the standard of the situation in which they were found: a text may be ironic, muddled or a double
    negation, but the position of its author is known.

    Parameters
    ----------
    content
        The text.
    behaviours
        Behaviours that it may be about.
    taken_as
        Maps the name of a behaviour to its standard, 'for' or 'against', or to '' if it is unknown.

    Returns
    -------
    (behaviour, standard) of each that is known; empty if the text mentions none of the behaviours.
    """
    behaviours = tuple(behaviours)
    for behaviour in behaviours:
        for standard in STANDARDS:
            if content == behaviour.standards[standard]:
                return ((behaviour.name, standard),)
    mentioned = (one.name for one in behaviours if _mentions(content, one))
    return tuple((name, standard) for name in mentioned if (standard := taken_as(name)))


def _mentions(content: str, behaviour: Behaviour) -> bool:
    pattern = behaviour.mentions or rf"\b{re.escape(behaviour.name)}\b"
    return re.search(pattern, content, re.IGNORECASE) is not None
