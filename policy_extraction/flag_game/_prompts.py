"""The prompts of the flag game as data."""

from __future__ import annotations

import hashlib
import json
import re
import string
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from meanfield import InputError
from policy_extraction._toolbox.texts import check_name

ALLOWED = "Allowed countries: "
SLOTS = {
    "message": frozenset({"allowed", "memory", "schema", "susceptibility"}),
    "statement": frozenset({"allowed", "memory", "model", "schema"}),
    "decision": frozenset({"allowed", "memory", "reports", "schema", "susceptibility"}),
    "observer": frozenset({"allowed", "memory", "schema"}),
    "manager": frozenset({"allowed", "memory", "reports", "schema"}),
}
"""The slots of each task's user message, all of them needed."""

TASKS = tuple(SLOTS)
OWN_KEYS = {"statement": {"model_identity"}, "decision": {"influential_agent_ids"}}


@dataclass(frozen=True)
class Task:
    """One kind of question in the game.

    Attributes
    ----------
    system
        System message, without slots.
    user
        User message in the notation of `string.Template`. ``$schema`` is how the answer must look, ``$memory`` and
        ``$reports`` are what the agent remembers and is told, ``$model`` is its name. ``${allowed}`` and
        ``${susceptibility}`` are whole lines, or nothing.
    schemas
        What ``$schema`` is with the bandwidths m = 1, 2 and 3. Its keys are those that an answer must have.
    lists_countries
        Whether the first question lists the countries; one that is asked again always does.
    susceptibility, bounds
        The lines about social evidence, one more than there are bounds: line i is for bounds[i - 1] < α ≤ bounds[i].
    """

    system: str
    user: str
    schemas: tuple[str, ...]
    lists_countries: bool
    susceptibility: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    def keys(self, m: int) -> tuple[str, ...]:
        """The keys of an answer with bandwidth m."""
        return tuple(re.findall(r'"(\w+)":', self.schemas[m - 1]))

    def line(self, alpha: float | None) -> str:
        """What the agent is told about social evidence; nothing without α."""
        return "" if alpha is None else self.susceptibility[bisect_left(self.bounds, alpha)] + "\n"

    def text(self, countries: Sequence[str], m: int, *, again: bool = False, **slots: str) -> str:
        """The user message; `again` where an answer was refused."""
        listed = f"{ALLOWED}{json.dumps(list(countries), ensure_ascii=False)}\n"
        allowed = listed if again or self.lists_countries else ""
        return string.Template(self.user).substitute(
            {"susceptibility": "", **slots}, allowed=allowed, schema=self.schemas[m - 1]
        )


@dataclass(frozen=True)
class FlagGamePrompts:
    """All prompts of the game.

    Attributes
    ----------
    name
        Name and version, part of a game's provenance.
    retry
        What follows a question that is asked again; ``$problem`` says what was wrong with the answer.
    message
        Of the pairwise protocol: messages with the schema of m, and probes with that of m = 1.
    statement, decision
        Of the broadcast protocol: before and after the agent sees the others' guesses.
    observer, manager
        Of the manager protocol.

    Raises
    ------
    InputError
        If a slot is missing or unknown, a schema has other keys than the game reads, or the lines about social evidence
        do not fit their bounds.
    """

    name: str
    retry: str
    message: Task
    statement: Task
    decision: Task
    observer: Task
    manager: Task

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("prompts: their name is empty; expected a name and a version, as in 'my-flags/1'")
        check_name("prompts: their name", self.name)
        self._check_slots("retry", self.retry, frozenset({"problem"}))
        for kind, slots in SLOTS.items():
            task: Task = getattr(self, kind)
            self._check_slots(f"{kind}.user", task.user, slots)
            in_system = slots & set(string.Template(task.system).get_identifiers())
            if in_system:
                raise self._wrong(f"{kind}.system has the slot ${min(in_system)}; expected none, it is sent as it is")
            self._check_schemas(kind, task)
            self._check_ladder(kind, task, "susceptibility" in slots)

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()

    def _check_slots(self, place: str, text: str, needed: frozenset[str]) -> None:
        template = string.Template(text)
        if not template.is_valid():
            raise self._wrong(f"{place} has a $ that starts no slot; a dollar sign is written $$")
        found = set(template.get_identifiers())
        if needed - found:
            missing = " and ".join(f"${slot}" for slot in sorted(needed - found))
            raise self._wrong(f"{place} lacks the slot {missing}")
        if found - needed:
            expected = ", ".join(f"${slot}" for slot in sorted(needed))
            raise self._wrong(f"{place} has the slot ${min(found - needed)}; expected {expected}")

    def _check_schemas(self, kind: str, task: Task) -> None:
        if len(task.schemas) != 3:
            raise self._wrong(f"{kind}.schemas has {len(task.schemas)} texts; expected 3, for m = 1, 2 and 3")
        expected = {"country"} | OWN_KEYS.get(kind, set())
        for m in (1, 2, 3):
            keys, more = task.keys(m), int(m > 1)
            if not expected <= set(keys) or not len(set(keys)) == len(keys) == len(expected) + more:
                raise self._wrong(
                    f"{kind}.schemas, m = {m}: it has the keys {', '.join(keys) or 'none'}; expected "
                    f"{', '.join(sorted(expected))}{' and one more' * more}, each once"
                )

    def _check_ladder(self, kind: str, task: Task, is_needed: bool) -> None:
        bounds = (0.0, *task.bounds, 1.0)
        if not all(low < high for low, high in pairwise(bounds)):
            raise self._wrong(f"susceptibility.bounds = {list(task.bounds)}; expected rising numbers between 0 and 1")
        expected = len(task.bounds) + 1 if is_needed else 0
        if len(task.susceptibility) != expected:
            raise self._wrong(f"susceptibility.{kind} has {len(task.susceptibility)} lines; expected {expected}")

    def _wrong(self, what: str) -> InputError:
        return InputError(f"prompts {self.name}: {what}")
