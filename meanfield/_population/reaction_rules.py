"""Reaction rules as text, 'S + I' → '2 I', as channels of a reaction model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from meanfield.toolbox._arguments import real_number
from meanfield.toolbox._errors import InputError

LARGEST_RATE = 1e100  # so that sums of rates are numbers

TERM = re.compile(r"\s*(?:([1-9]\d?)\s+)?([^\d\s](?:.*\S)?)\s*")


def channels_of(rules: Any, rates: Any, states: Sequence[str] | None) -> dict[str, Any]:
    """Arguments of a `ReactionModel` with a channel for each rule of two agents; InputError with all complaints."""
    pairs = list(rules.items() if isinstance(rules, Mapping) else rules) if _several(rules) else []
    if not pairs or not all(_several(rule) and len(rule) == 2 and {*map(type, rule)} == {str} for rule in pairs):
        raise InputError(f"rules = {pairs or rules!r}: expected {{'S + I': '2 I', …}} or pairs ('S + I', '2 I')")
    sides, complaints = [[_agents(side) for side in rule] for rule in pairs], []
    for rule, (before, after) in zip(pairs, sides, strict=True):
        text = " → ".join(rule)
        if not before or not after:
            complaints.append(
                f"rules has {text!r}: expected names of states and + between them, as in '2 I' or 'S + I'"
            )
        elif len(before) > 2 or len(after) != len(before):
            counts = f"{len(before)} and {len(after)} agents"
            complaints.append(f"rules has {text!r}, {counts}: expected one or two, as many on both sides")
    values, wrong = _rates(rates, pairs)
    complaints += [
        f"rates of {' → '.join(rule)!r} is a function, and two agents meet: expected a number, or a rule of one agent, "
        "whose rate counts its partners"
        for rule, (before, _), rate in zip(pairs, sides, values, strict=False)
        if callable(rate) and len(before) == 2
    ]
    found = tuple(dict.fromkeys(agent for rule in sides for side in rule for agent in side))
    if states is not None and not _several(states):
        raise InputError(f"states = {states!r}: expected a sequence of labels")
    names = found if states is None else tuple(states)
    complaints += [*wrong, *(f"states lacks {name!r}, which a rule has" for name in found if name not in names)]
    if complaints:
        raise InputError("; ".join(complaints))
    return _channels(names, sides, values)


def _several(values: Any) -> bool:
    return isinstance(values, Iterable) and not isinstance(values, str | bytes)


def _rates(rates: Any, pairs: list) -> tuple[list[Any], list[str]]:
    """A number or a function for each rule, and complaints."""
    if isinstance(rates, Mapping | Set):
        return [], [f"rates = {rates!r}: expected numbers in the order of the rules, or one number"]
    given = list(rates) if _several(rates) and np.ndim(rates) else [rates] * len(pairs)
    if len(given) != len(pairs):
        return [], [f"rates = {given}: expected {len(pairs)} numbers, one for each rule"]
    values, complaints = [], []
    for rule, rate in zip(pairs, given, strict=True):
        if callable(rate):
            values.append(rate)
            continue
        try:
            values.append(real_number(f"rates of {' → '.join(rule)!r}", rate, least=0, most=LARGEST_RATE))
        except InputError as error:
            values.append(None)
            complaints.append(str(error))
    return values, complaints


@lru_cache(1024)
def _agents(side: str) -> tuple[str, ...]:
    """The agents of 'S + I' or '2 I', in order; none where the text is wrong."""
    terms = [TERM.fullmatch(term) for term in side.split("+")]
    if not all(terms):
        return ()
    return tuple(term[2] for term in terms if term for _ in range(int(term[1] or 1)))


def _channels(names: tuple[str, ...], sides: list, rates: list[Any]) -> dict[str, Any]:
    place = {name: k for k, name in enumerate(names)}
    met = [
        ([place[a] for a in before], [place[a] for a in _in_place(before, after)], rate)
        for (before, after), rate in zip(sides, rates, strict=True)
    ]
    single = [(before[0], after[0], rate) for before, after, rate in met if len(before) == 1 and before != after]
    alone = [move for move in single if not callable(move[2])]
    both = [(before, after, rate) for before, after, rate in met if len(before) == 2 and rate > 0 and before != after]
    size = len(names)
    total = np.zeros((size, size))
    for (i, j), _, rate in both:
        total[i, j] += rate
    fastest = float(total.max()) or 1.0
    unit = np.eye(size)
    sources, targets, rates = ([move[k] for move in alone] for k in range(3))
    return {
        "states": names,
        "alpha": np.array([unit[i] for (i, _), _, _ in both]).reshape(-1, size),
        "beta": np.array([unit[j] * min(rate / fastest, 1.0) for (_, j), _, rate in both]).reshape(-1, size),
        "first": [_move(size, i, k) for (i, _), (k, _), _ in both],
        "second": [_move(size, j, m) for (_, j), (_, m), _ in both],
        "spontaneous": csr_array(coo_array((rates, (sources, targets)), (size, size))),
        "encounter_rate": fastest,
        "changes": [(names[i], names[k], rate) for i, k, rate in single if callable(rate)],
    }


@lru_cache(1024)  # models along a parameter have the same rules
def _move(size: int, source: int, target: int) -> csr_array | None:
    to = np.arange(size)
    to[source] = target
    return None if source == target else csr_array((np.ones(size), to, np.arange(size + 1)), (size, size))


def _in_place(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """The agents after a rule so that as many as possible stay what they are: names have no order in a rule."""
    return max(permutations(after), key=lambda order: sum(a == b for a, b in zip(before, order, strict=True)))
