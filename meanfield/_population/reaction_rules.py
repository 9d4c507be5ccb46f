"""Reaction rules as text, 'S + I' → '2 I', as channels of a reaction model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from meanfield.toolbox._errors import InputError

TERM = re.compile(r"\s*(?:(\d+)\s+)?(\S(?:.*\S)?)\s*")


class Channels(NamedTuple):
    """The arguments of a `ReactionModel`."""

    states: tuple[str, ...]
    alpha: np.ndarray
    beta: np.ndarray
    first: list[csr_array | None]
    second: list[csr_array | None]
    spontaneous: csr_array
    encounter_rate: float


def channels_of(rules: Any, rates: Any, states: Sequence[str] | None) -> Channels:
    """A channel for each rule of two agents; InputError with all complaints at once."""
    pairs = list(rules.items()) if isinstance(rules, Mapping) else rules
    whole = isinstance(pairs, Iterable) and not isinstance(pairs, str)
    pairs = [rule for rule in pairs] if whole else []
    if not pairs or not all(len(rule) == 2 and all(isinstance(side, str) for side in rule) for rule in pairs):
        raise InputError(f"rules = {rules!r}: expected {{'S + I': '2 I', …}} or pairs ('S + I', '2 I')")
    sides, complaints = [[_agents(side) for side in rule] for rule in pairs], []
    for rule, (before, after) in zip(pairs, sides, strict=True):
        if not 1 <= len(before) <= 2 or len(after) != len(before):
            counts = f"{len(before)} agents become {len(after)}"
            complaints.append(f"rules has {' → '.join(rule)!r}: {counts}, expected one or two, as many as before")
    values = np.asarray(rates, dtype=object).ravel()
    if len(values) == 1 and not np.ndim(rates):
        values = np.repeat(values, len(pairs))
    if len(values) != len(pairs):
        complaints.append(f"rates has {len(values)} numbers: expected {len(pairs)}, one for each rule")
    for rule, rate in zip(pairs, values, strict=False):
        if isinstance(rate, bool | str) or not np.isreal(rate) or not 0 <= float(rate) < np.inf:
            complaints.append(f"rates has {rate!r} for {' → '.join(rule)!r}: expected a number of at least 0")
    found = tuple(dict.fromkeys(agent for rule in sides for side in rule for agent in side))
    names = found if states is None else tuple(states)
    complaints += [f"states lacks {name!r}, which a rule has" for name in found if name not in names]
    if complaints:
        raise InputError("; ".join(complaints))
    return _channels(names, sides, values.astype(float))


def _agents(side: str) -> tuple[str, ...]:
    """The agents of 'S + I' or '2 I', in order; no more than three are told."""
    agents: list[str] = []
    for term in side.split("+"):
        matched = TERM.fullmatch(term)
        if matched is None:
            raise InputError(f"rules has {side!r}: expected names of states with + between them")
        agents += [matched[2]] * min(int(matched[1] or 1), 3)
    return tuple(agents)


def _channels(names: tuple[str, ...], sides: list, rates: np.ndarray) -> Channels:
    place = {name: k for k, name in enumerate(names)}
    met = [
        ([place[a] for a in before], [place[a] for a in _in_place(before, after)], rate)
        for (before, after), rate in zip(sides, rates, strict=True)
    ]
    alone = [(before[0], after[0], rate) for before, after, rate in met if len(before) == 1 and before != after]
    both = [(before, after, rate) for before, after, rate in met if len(before) == 2 and rate > 0]
    size = len(names)
    total = np.zeros((size, size))
    for (i, j), _, rate in both:
        total[i, j] += rate
    fastest = float(total.max()) or 1.0
    unit = np.eye(size)

    def move(source: int, target: int) -> csr_array | None:
        return None if source == target else csr_array(unit + np.outer(unit[source], unit[target] - unit[source]))

    return Channels(
        names,
        np.array([unit[i] for (i, _), _, _ in both]).reshape(-1, size),
        np.array([unit[j] * min(rate / fastest, 1.0) for (_, j), _, rate in both]).reshape(-1, size),
        [move(i, k) for (i, _), (k, _), _ in both],
        [move(j, m) for (_, j), (_, m), _ in both],
        csr_array(
            coo_array(([r for *_, r in alone], ([i for i, *_ in alone], [k for _, k, _ in alone])), (size, size))
        ),
        fastest,
    )


def _in_place(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """The agents after a rule so that as many as possible stay what they are: names have no order in a rule."""
    return max(permutations(after), key=lambda order: sum(a == b for a, b in zip(before, order, strict=True)))
