"""Under which standards norms are filed whose texts are a model's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from theory.norms import STANDARDS, Behaviour
from validation.norms.society._member import Standard


def file_norm(content: str, behaviours: Iterable[Behaviour], taken_as: Callable[[str], str]) -> tuple[Standard, ...]:
    """The standards that a norm is about.

    The texts of the behaviours' standards are those standards. Other texts are about the behaviours that they mention,
    and say of each what they are taken as in the situation in which they were found: a text may be ironic, muddled or
    a double negation, but who made an agent find it upholds something that is known.

    Parameters
    ----------
    content
        The text.
    behaviours
        Behaviours that it may be about.
    taken_as
        Of the name of a behaviour: the standard for it, 'for' or 'against', or '' where nothing is known.

    Returns
    -------
    (behaviour, standard) of each that is known; empty where the text mentions none of the behaviours.
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
