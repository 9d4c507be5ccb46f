"""The transitions of a population protocol, its states and their numbers, as users give them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from meanfield import InputError
from meanfield.toolbox import shown, whole_number
from validation.reactions._kernel import Outcomes, outcomes_of

MOST_STATES = 256  # an agent's state is kept in a byte
LARGEST_IN_BATCHES = 10**12  # the table of lengths has 8.6·sqrt(N) entries or more
ROUNDING = 1e-9  # by which probabilities that sum to 1 may miss it


class Transition(NamedTuple):
    """One outcome of a meeting: the states of the two agents (initiator, responder) before and after it.

    `marked` interactions are counted by round. A plain tuple of the first two, three or four fields does as well, and
    so does an `Interaction` from `theory.minimal_naming_game.interactions`.

    Examples
    --------
    >>> spread = validation.reactions.Transition(("S", "I"), ("I", "I"), probability=0.5)
    >>> runs = validation.reactions.simulate([spread], {"S": 99, "I": 1}, runs=5, seed=1, max_rounds=50)
    >>> runs["final_count"].sel(state="I").values
    array([100, 100, 100, 100, 100])
    """

    before: tuple[Hashable, Hashable]
    after: tuple[Hashable, Hashable]
    probability: float = 1.0
    marked: bool = False


def outcomes_of_rows(
    rows: Iterable[tuple], states: Mapping[Hashable, int], groups: np.ndarray, watched: np.ndarray
) -> Outcomes:
    """The tables of transitions between `states` {state: its place}; with the rest of the probability nothing changes.

    `groups` and `watched` are as `_kernel.outcomes_of` takes them.
    """
    if not isinstance(rows, Iterable):
        raise InputError(f"transitions = {rows!r}: expected an array or a sequence of ((i, j), (i', j'), probability)")
    known = [_checked(row, states) for row in rows]
    total = np.zeros((len(states), len(states)))
    for row in known:
        total[row.before] += row.probability
    names = list(states)
    for i, j in np.argwhere(total > 1 + ROUNDING):
        raise InputError(f"transitions of ({names[i]!r}, {names[j]!r}) have the sum {total[i, j]}: expected at most 1")
    # Less than the rounding of a sum of probabilities is not an outcome of its own.
    rest = np.argwhere(total < 1 - ROUNDING)
    known += [Transition((i, j), (i, j), 1 - total[i, j]) for i, j in rest.tolist()]
    before, after, probability, marked = map(np.array, zip(*known, strict=True))
    return outcomes_of(before, after, probability, marked.astype(np.int64), groups, watched)


def start_of(counts: Any) -> tuple[dict[Hashable, int], np.ndarray]:
    """{state: its place} and the numbers of agents, int64 of shape (K,)."""
    known = isinstance(counts, Mapping | Sequence | np.ndarray) and not isinstance(counts, str | bytes)
    if not known or getattr(counts, "ndim", 1) != 1:
        raise InputError(f"counts = {shown(counts)}: expected {{state: number of agents}} or a list of numbers")
    names = list(counts) if isinstance(counts, Mapping) else list(range(len(counts)))
    numbers = [whole_number(f"counts[{name!r}]", counts[name], 0) for name in names]
    if not 2 <= len(names) <= MOST_STATES:
        raise InputError(f"counts has {len(names)} states: expected 2 to {MOST_STATES}")
    if isinstance(counts, Mapping) and not all(isinstance(name, str) for name in names):
        raise InputError(f"counts = {shown(counts)}: expected names of states, all strings, and numbers of agents")
    if not 2 <= sum(numbers) <= LARGEST_IN_BATCHES:
        raise InputError(f"counts sum to {sum(numbers)}: expected 2 to {LARGEST_IN_BATCHES} agents")
    return {name: k for k, name in enumerate(names)}, np.array(numbers, dtype=np.int64)


def groups_of(absorbing: Mapping[str, Collection[Hashable]] | None, states: dict[Hashable, int]) -> np.ndarray:
    """Membership (groups, K), 0 or 1."""
    if absorbing is not None and not (isinstance(absorbing, Mapping) and absorbing):
        raise InputError(f"absorbing = {absorbing!r}: expected {{name: states of the group}} or None")
    member = np.zeros((len(absorbing or ()), len(states)), np.int64)
    for k, (name, group) in enumerate((absorbing or {}).items()):
        unknown = isinstance(group, str) or not group or [state for state in group if state not in states]
        if unknown:
            raise InputError(
                f"absorbing[{name!r}] = {group!r}: expected a list of one or more of the states {[*states]}"
            )
        member[k, [states[state] for state in group]] = 1
    return member


def rows_of_array(P: np.ndarray, n_states: int) -> list[Transition]:
    if P.shape != (n_states,) * 4:
        raise InputError(f"transitions has shape {P.shape}: expected {(n_states,) * 4}, for the states in counts")
    worst = np.abs(P.sum(axis=(2, 3)) - 1).max()
    if not worst <= ROUNDING:
        raise InputError(f"transitions: P[i, j] misses the sum of 1 by {worst:.3g}, expected at most {ROUNDING:g}")
    return [Transition((i, j), (k, m), P[i, j, k, m]) for i, j, k, m in np.argwhere(P != 0).tolist()]


def _checked(row: Any, states: Mapping[Hashable, int]) -> Transition:
    """The row with its states by number."""
    checked = None
    with suppress(TypeError, ValueError, KeyError):
        before, after, probability, marked = Transition(*row)
        (i, j), (k, m) = before, after
        if 0 <= float(probability) <= 1 and marked in (True, False):
            pairs = (states[i], states[j]), (states[k], states[m])
            checked = Transition(*pairs, float(probability), bool(marked))
    if checked is None:
        expected = f"((i, j), (i', j'), probability from 0 to 1, marked or not) with states of {[*states]}"
        raise InputError(f"transitions has {row!r}: expected {expected}")
    return checked
