"""Prompts of the flag game in TOML files: from [002] Appendix D, and a user's own."""

from __future__ import annotations

import os
from typing import Any

from policy_extraction.flag_game._prompts import TASKS, FlagGamePrompts, Task
from policy_extraction.prompts._toml import NUMBERS, TEXT, TEXTS, YES_OR_NO, check_layout, packaged_toml, read_toml

LAYOUT: dict[str, Any] = {
    "name": TEXT,
    "retry": TEXT,
    "susceptibility": {"bounds": NUMBERS, "message": TEXTS, "decision": TEXTS},
    **{task: {"lists_countries": YES_OR_NO, "system": TEXT, "user": TEXT, "schemas": TEXTS} for task in TASKS},
}


def load_prompts(path: str | os.PathLike[str]) -> FlagGamePrompts:
    """Read prompts from a TOML file with the layout of `policy_extraction/prompts/templates/flag_game_002.toml`.

    The file has the texts `name` and `retry`; a table for each of `message`, `statement`, `decision`, `observer` and
    `manager`, with `system`, `user`, the list `schemas` for m = 1, 2 and 3, and `lists_countries`; and the table
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
