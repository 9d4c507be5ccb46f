"""Prompts of the flag game in TOML files: those of [002] Appendix D, and a user's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from meanfield import InputError
from policy_extraction._toml import packaged_toml, read_toml
from policy_extraction.flag_game._prompts import TASKS, FlagGamePrompts, Task

TEXT, TEXTS, NUMBERS, YES_OR_NO = "text", "a list of texts", "a list of numbers", "true or false"
KINDS: dict[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str),
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    NUMBERS: lambda value: isinstance(value, list) and all(type(one) in (int, float) for one in value),
    YES_OR_NO: lambda value: isinstance(value, bool),
}
LAYOUT: dict[str, Any] = {
    "name": TEXT,
    "retry": TEXT,
    "susceptibility": {"bounds": NUMBERS, "message": TEXTS, "decision": TEXTS},
    **{task: {"lists_countries": YES_OR_NO, "system": TEXT, "user": TEXT, "schemas": TEXTS} for task in TASKS},
}


def load_flag_game_prompts(path: str | os.PathLike[str]) -> FlagGamePrompts:
    """Prompts of one's own, from a TOML file laid out as `policy_extraction/templates/flag_game_002.toml`.

    It has the texts `name` and `retry`, a table for each of `message`, `statement`, `decision`, `observer` and
    `manager`, with `system`, `user`, the list `schemas` for m = 1, 2 and 3, and `lists_countries`, and the table
    `susceptibility`: `bounds`, and the lists of lines `message` and `decision`. `FlagGamePrompts` says what they mean.
    A user message needs all of its slots: ``$memory``, ``${allowed}`` and ``$schema``, in `message` and `decision` also
    ``${susceptibility}``, in `statement` ``$model``, and in `decision` and `manager` ``$reports``; `retry` needs
    ``$problem``. A dollar sign that starts no slot is written ``$$``. Source of the game: [002] Appendix D.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    What `play_flag_game`, `probe_memory_conflict` and `StandIn` take as `prompts`.

    Raises
    ------
    InputError
        If the file can't be read, a key is missing, unknown or of a wrong type, or its texts are not as they should be:
        slots, the keys of the schemas, and the number of lines.
    """
    return _checked(read_toml(path, "the prompts"), str(path))


def _checked(table: dict[str, Any], source: str) -> FlagGamePrompts:
    _check_layout(table, LAYOUT, source)
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


def _check_layout(table: Mapping[str, Any], layout: Mapping[str, Any], source: str, within: str = "") -> None:
    missing = [within + name for name in layout if name not in table]
    if missing:
        raise InputError(f"path = {source}: the prompts lack {', '.join(missing)}")
    for name, value in table.items():
        if name not in layout:
            known = ", ".join(within + one for one in layout)
            raise InputError(f"path = {source}: {within}{name} is no part of the prompts; expected {known}")
        expected = layout[name]
        if isinstance(expected, str):
            if not KINDS[expected](value):
                raise InputError(f"path = {source}: {within}{name} = {value!r}, expected {expected}")
        elif isinstance(value, dict):
            _check_layout(value, expected, source, f"{within}{name}.")
        else:
            raise InputError(f"path = {source}: {within}{name} = {value!r}, expected a table")


PUBLISHED = "flag_game_002.toml"
FLAG_GAME_002 = _checked(packaged_toml(PUBLISHED), PUBLISHED)
"""The published prompts, 'flag-game-002/1'."""
