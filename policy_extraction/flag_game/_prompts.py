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
from policy_extraction.prompts._slots import check_slots

ALLOWED = "Allowed countries: "
SLOTS = {
    "message": frozenset({"allowed", "memory", "schema", "susceptibility"}),
    "statement": frozenset({"allowed", "memory", "model", "schema"}),
    "decision": frozenset({"allowed", "memory", "reports", "schema", "susceptibility"}),
    "observer": frozenset({"allowed", "memory", "schema"}),
    "manager": frozenset({"allowed", "memory", "reports", "schema"}),
}
"""The slots that each task's user message needs."""

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
        User message in the notation of `string.Template`. ``$schema`` is the form of the answer, ``$memory`` what the
        agent remembers, ``$reports`` what others told it, and ``$model`` its name. ``${allowed}`` and
        ``${susceptibility}`` are whole lines, or nothing.
    schemas
        Text of ``$schema`` for the bandwidths m = 1, 2 and 3; an answer needs exactly its keys.
    lists_countries
        Whether the first question lists the countries; a repeated question always does.
    susceptibility, bounds
        The lines about social evidence, one more than bounds: line i is for bounds[i - 1] < α ≤ bounds[i].
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
        """The line about social evidence; empty without α."""
        return "" if alpha is None else self.susceptibility[bisect_left(self.bounds, alpha)] + "\n"

    def text(self, countries: Sequence[str], m: int, *, again: bool = False, **slots: str) -> str:
        """The user message; `again` after a refused answer."""
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
        Text after a repeated question; ``$problem`` says what was wrong with the answer.
    message
        Pairwise protocol: messages with the schema of m, and probes with the schema of m = 1.
    statement, decision
        Broadcast protocol: before and after the agent sees the others' guesses.
    observer, manager
        Manager protocol.

    Raises
    ------
    InputError
        If a slot is missing or unknown, a schema has other keys than the game reads, or lines do not fit bounds.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from policy_extraction.flag_game import FLAG_GAME_002
    >>> milder = replace(FLAG_GAME_002, name="milder", retry="Please try again: $problem.")
    >>> print(milder.message.text(("France", "Peru"), m=1, memory='{"country": "Peru"}'))
    All players are identifying the same underlying flag.
    You always see the same private crop.
    Transcript memory shows messages you observed from previous interactions with other players.
    Allowed countries: ["France", "Peru"]
    Transcript memory (oldest -> newest):
    {"country": "Peru"}
    Output JSON exactly:
    {"country": "<one allowed country>"}
    """

    name: str
    retry: str
    message: Task
    statement: Task
    decision: Task
    observer: Task
    manager: Task

    def __post_init__(self) -> None:
        check_name("prompts: name", self.name)
        check_slots(f"prompts {self.name}: retry", [self.retry], {"problem"})
        for kind, slots in SLOTS.items():
            task: Task = getattr(self, kind)
            check_slots(f"prompts {self.name}: {kind}.user", [task.user], slots)
            in_system = slots & set(string.Template(task.system).get_identifiers())
            if in_system:
                raise self._wrong(f"{kind}.system has the slot ${min(in_system)}; expected none, it is sent as it is")
            self._check_schemas(kind, task)
            self._check_ladder(kind, task, "susceptibility" in slots)

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()

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
