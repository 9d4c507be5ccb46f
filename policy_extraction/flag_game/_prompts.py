"""The prompts of the flag game: as data, in TOML files, and their lines about social evidence."""

from __future__ import annotations

import hashlib
import json
import os
import re
import string
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from meanfield import InputError
from policy_extraction._toolbox.texts import check_name
from policy_extraction.prompts._slots import check_slots
from policy_extraction.prompts._toml import NUMBERS, TEXT, TEXTS, YES_OR_NO, check_layout, packaged_toml, read_toml

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
LAYOUT: dict[str, Any] = {
    "name": TEXT,
    "retry": TEXT,
    "susceptibility": {"bounds": NUMBERS, "message": TEXTS, "decision": TEXTS},
    **{task: {"lists_countries": YES_OR_NO, "system": TEXT, "user": TEXT, "schemas": TEXTS} for task in TASKS},
}


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
        """The line about social evidence at α in [0, 1]; empty without α."""
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
        Broadcast protocol: before and after the agent sees the others' guesses. In `message` and `decision` the line
        about social evidence is one of five sentences, which change at α = 0.2, 0.4, 0.6 and 0.8; a bound belongs to
        the range below it ([002] Appendix D, table).
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
    >>> milder.message.line(alpha=0.2)
    'Rely mostly on your own crop and treat transcript memory as weak evidence.\\n'
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
        prompts = f"prompts {self.name}:"
        check_slots(f"{prompts} retry", [self.retry], {"problem"})
        for kind, slots in SLOTS.items():
            task: Task = getattr(self, kind)
            check_slots(f"{prompts} {kind}.user", [task.user], slots)
            in_system = slots & set(string.Template(task.system).get_identifiers())
            if in_system:
                told = f"{kind}.system has the slot ${min(in_system)}; expected none, it is sent as it is"
                raise InputError(f"{prompts} {told}")
            if len(task.schemas) != 3:
                told = f"{kind}.schemas has {len(task.schemas)} texts; expected 3, for m = 1, 2 and 3"
                raise InputError(f"{prompts} {told}")
            expected = {"country"} | OWN_KEYS.get(kind, set())
            for m in (1, 2, 3):
                keys, more = task.keys(m), int(m > 1)
                if not expected <= set(keys) or not len(set(keys)) == len(keys) == len(expected) + more:
                    raise InputError(
                        f"{prompts} {kind}.schemas, m = {m}: it has the keys {', '.join(keys) or 'none'}; expected "
                        f"{', '.join(sorted(expected))}{' and one more' * more}, each once"
                    )
            if not all(low < high for low, high in pairwise((0.0, *task.bounds, 1.0))):
                told = f"susceptibility.bounds = {list(task.bounds)}; expected rising numbers between 0 and 1"
                raise InputError(f"{prompts} {told}")
            lines = len(task.bounds) + 1 if "susceptibility" in slots else 0
            if len(task.susceptibility) != lines:
                told = f"susceptibility.{kind} has {len(task.susceptibility)} lines; expected {lines}"
                raise InputError(f"{prompts} {told}")

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


def load_prompts(path: str | os.PathLike[str]) -> FlagGamePrompts:
    """Read prompts from a TOML file with the layout of `policy_extraction/prompts/templates/flag_game_002.toml`.

    The file has the texts `name` and `retry`; a table for each of `message`, `statement`, `decision`, `observer` and
    `manager`, with `system`, `user`, `schemas` for bandwidths m = 1, 2, 3, and `lists_countries`; and the table
    `susceptibility` with `bounds` and the lists of lines `message` and `decision`. `FlagGamePrompts` explains them. A
    user message needs all its slots: ``$memory``, ``${allowed}`` and ``$schema``; ``${susceptibility}`` in `message`
    and `decision`; ``$model`` in `statement`; ``$reports`` in `decision` and `manager`. `retry` needs ``$problem``. A
    plain dollar sign is written ``$$``. Source of the game: [002] Appendix D.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    The `prompts` of `policy_extraction.flag_game.play`, `probe_memory_conflict` and `StandIn`.

    Raises
    ------
    InputError
        If the file can't be read; if a key is missing, unknown or of a wrong type; or if slots, the keys of the schemas
        or the number of lines are wrong.

    See Also
    --------
    play : a game with the prompts

    Examples
    --------
    >>> from importlib.resources import files
    >>> from policy_extraction.flag_game import FLAG_GAME_002, load_prompts
    >>> load_prompts(files("policy_extraction.prompts") / "templates" / "flag_game_002.toml") == FLAG_GAME_002
    True
    """
    return _checked(read_toml(path, "the prompts"), str(path))


def _checked(table: dict[str, Any], source: str) -> FlagGamePrompts:
    check_layout(table, LAYOUT, source)
    ladder = table["susceptibility"]
    tasks = {
        task: Task(
            system=table[task]["system"],
            user=table[task]["user"],
            schemas=tuple(table[task]["schemas"]),
            lists_countries=table[task]["lists_countries"],
            susceptibility=tuple(ladder.get(task, ())),
            bounds=tuple(ladder["bounds"]),
        )
        for task in TASKS
    }
    return FlagGamePrompts(table["name"], table["retry"], **tasks)


PUBLISHED = "flag_game_002.toml"
FLAG_GAME_002 = _checked(packaged_toml(PUBLISHED), PUBLISHED)
"""The published prompts, 'flag-game-002/1'."""
