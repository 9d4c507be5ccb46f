"""Probabilities of the agents' operations, as one labelled table."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import xarray as xr

from meanfield import InputError
from meanfield.toolbox import in_order, real_numbers
from theory.norms._society import KINDS, TYPES
from theory.norms._states import HELD, NormState

LABELS = {
    "type": TYPES,
    "willing": ("willing", "unwilling"),
    "kind": KINDS,
    "held": HELD,
    "reminded": ("first", "reminded"),
}


class Operation(NamedTuple):
    """The dims of an operation's probability, its meaning, and its default along `dims`."""

    dims: tuple[str, ...]
    text: str
    default: float | list


OPERATIONS: dict[str, Operation] = {
    "detect_conflict": Operation(("kind",), "an agent finds an observation in conflict with its norm", [0.95, 0.8]),
    "detect_abstract": Operation((), "an agent still finds a conflict if its norm is part of an abstract one", 0.9),
    "false_conflict": Operation((), "an agent finds a conflict in an act that follows its norm", 0.003),
    "decide_to_talk": Operation(
        ("type", "willing"), "an agent talks to another in conflict with its norm", [[1.0, 0.1], [0.4, 0.05]]
    ),
    "generate_thought": Operation(("held",), "an agent has a thought about an observation", [0.5, 0.1, 0.5, 0.15]),
    "identify_chat": Operation(("kind", "reminded"), "an agent finds the norm in a talk", [[0.6, 0.85], [0.5, 0.7]]),
    "identify_thought": Operation(("kind",), "an agent finds a norm in a thought about a norm", [0.6, 0.5]),
    "identify_habit": Operation(("kind",), "an agent finds a norm in a thought about a habit", [0.002, 0.002]),
    "consistent": Operation((), "the norm agrees with the talk or thought", 0.95),
    "unique": Operation(("held",), "the norm differs from all norms of the agent", [0.98, 0.05, 0.95, 0.5]),
    "correct_type": Operation(("kind",), "the kind of the norm is right", [0.97, 0.9]),
    "conflict_free": Operation(
        ("willing", "held"),
        "the norm opposes no norm of the agent, or prevails over it",
        [[0.97, 0.98, 0.7, 0.97], [0.75, 0.95, 0.65, 0.85]],
    ),
    "comply_in_plan": Operation(("willing",), "an agent plans by its norm", [0.95, 0.7]),
    "comply_in_action": Operation(("willing",), "an agent acts by a norm that it plans by", [0.995, 0.985]),
    "comply_abstract": Operation(("willing",), "an agent acts by a norm that is part of an abstract one", [0.99, 0.97]),
    "abstract": Operation((), "the abstract norm covers this one and passes the check", 0.6),
}


def default_operations() -> xr.Dataset:
    """Operation probabilities under which norms emerge as [003] describes.

    The paper publishes no probabilities. We chose these by hand so that the model has the paper's qualitative findings;
    no number that depends on them is a result of the paper.

    Three choices depart from the paper. An agent, even an entrepreneur, seldom talks for a norm that it does not like;
    in the paper entrepreneurs always talk, but here the norm of a small minority would then win, since holders of the
    opposite norm see no act that they could correct. The check often lets a norm replace its opposite; in the paper
    such a norm fails, but here an evenly split behaviour would then stay split. And agents act by a norm only after
    they have planned by it.

    Returns
    -------
    Dataset with one variable for each operation, over some of the dims

    - `type`: entrepreneur, ordinary;
    - `willing`: whether the agent likes the standard ('willing') or its opposite ('unwilling');
    - `kind` of the norm: injunctive, descriptive;
    - `held`, how the agent's qualified norms relate to the standard: 'none' is about the behaviour, one is the 'same',
      one is 'opposed', or an 'abstract' one contains it;
    - `reminded`: 'reminded' if the standard is the last one that the agent was informed of and it has not accepted it,
      else 'first'.

    The check of the 'same' norm has no effect, since its agent holds it already.

    See Also
    --------
    policy_extraction.norms.operation_probabilities : probabilities of a language model

    Examples
    --------
    >>> talk = theory.norms.default_operations()["decide_to_talk"]
    >>> float(talk.sel(type="entrepreneur", willing="willing")), float(talk.sel(type="ordinary", willing="willing"))
    (1.0, 0.4)
    """
    return checked_operations(
        xr.Dataset(
            {name: (one.dims, one.default) for name, one in OPERATIONS.items()},
            coords={dim: list(labels) for dim, labels in LABELS.items()},
        )
    )


def checked_operations(operations: xr.Dataset | None) -> xr.Dataset:
    """The table with dims and labels in the order of `default_operations`, which it is for None; else InputError."""
    if operations is None:
        return default_operations()
    if not isinstance(operations, xr.Dataset):
        kind = type(operations).__name__
        raise InputError(f"operations is a {kind}: expected a Dataset as default_operations returns it")
    names = {str(name) for name in operations.data_vars}
    for name in [*(one for one in OPERATIONS if one not in names), *sorted(names - set(OPERATIONS))]:
        problem = "lack" if name in OPERATIONS else "have the unknown"
        raise InputError(f"operations {problem} {name!r}: expected {', '.join(OPERATIONS)}")
    checked = {name: _checked(name, operations[name], one) for name, one in OPERATIONS.items()}
    return xr.Dataset(checked, coords={dim: list(labels) for dim, labels in LABELS.items()}, attrs=operations.attrs)


def _checked(name: str, values: xr.DataArray, operation: Operation) -> xr.DataArray:
    if set(values.dims) != set(operation.dims):
        raise InputError(f"operations[{name!r}] has dims {values.dims}: expected {operation.dims}")
    ordered = in_order(values, LABELS, f"operations[{name!r}]").transpose(*operation.dims)
    numbers = real_numbers(ordered.values, f"operations[{name!r}]")
    wrong = numbers[~((numbers >= 0) & (numbers <= 1))]
    if wrong.size:
        raise InputError(f"operations[{name!r}] has the value {wrong[0]}: expected probabilities, 0 to 1")
    text = {"long_name": f"probability that {operation.text}", "units": "1"}
    return xr.DataArray(numbers, dims=operation.dims, attrs=text | values.attrs)


class Chances:
    """The table as plain numbers: `chances('unique', 'held' label)`, labels in the order of the operation's dims."""

    def __init__(self, operations: xr.Dataset | None) -> None:
        checked = checked_operations(operations)
        self.known = {
            (name, *labels): float(chance)
            for name, one in OPERATIONS.items()
            for labels, chance in zip(
                product(*(LABELS[dim] for dim in one.dims)), checked[name].values.flat, strict=True
            )
        }

    def __call__(self, name: str, *labels: str) -> float:
        return self.known[name, *labels]

    def conflict(self, state: NormState, shown: str, kind: str) -> float:
        """The probability that an agent finds an act by a standard in conflict with its norm."""
        if not state.upheld:
            return 0.0
        seen = self("detect_abstract") if state.level == "superseded" else 1.0
        return seen * (self("false_conflict") if state.upheld == shown else self("detect_conflict", kind))

    def talks(self, state: NormState) -> float:
        """The probability that it talks about a conflict."""
        return self("decide_to_talk", state.type, state.willing(state.upheld))

    def thinks(self, state: NormState, shown: str) -> float:
        """The probability of a thought about an act by a standard."""
        return self("generate_thought", state.holds(shown))

    def acts(self, state: NormState) -> float:
        """The probability that it acts by its norm."""
        operation = {"complying": "comply_in_action", "superseded": "comply_abstract"}.get(state.level)
        return self(operation, state.willing(state.standard)) if operation else 0.0

    def identifies(self, source: str, kind: str, told: bool) -> float:
        """The probability of a norm found in a 'chat', or in a thought about 'normative' behaviour or a 'habit'."""
        if source == "chat":
            return self("identify_chat", kind, "reminded" if told else "first")
        return self("identify_thought" if source == "normative" else "identify_habit", kind)

    def steps(self, state: NormState, standard: str, kind: str) -> dict[str, float]:
        """The probability that a norm passes each step of the check."""
        held = state.holds(standard)
        return {
            "is_consistent": self("consistent"),
            "is_unique": self("unique", held),
            "is_type_right": self("correct_type", kind),
            "is_conflict_free": self("conflict_free", state.willing(standard), held),
        }
