"""The prompts of the flag game as data: [002] Appendix D."""

from __future__ import annotations

import hashlib
import json
import re
import string
import tomllib
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files

from meanfield import InputError

ALLOWED = "Allowed countries: "


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
    """

    name: str
    retry: str
    message: Task
    statement: Task
    decision: Task
    observer: Task
    manager: Task

    @property
    def sha256(self) -> str:
        """A fingerprint of all texts."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()


TASKS = ("message", "statement", "decision", "observer", "manager")


def _published(file_name: str) -> FlagGamePrompts:
    text = (files("policy_extraction") / "templates" / file_name).read_text(encoding="utf-8")
    table = tomllib.loads(text)
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


FLAG_GAME_002 = _published("flag_game_002.toml")
"""The published prompts, 'flag-game-002/1'."""


def susceptibility_line(alpha: float, protocol: str = "pairwise", prompts: FlagGamePrompts = FLAG_GAME_002) -> str:
    """What agents are told about social evidence at α: one of five sentences, which change at 0.2, 0.4, 0.6 and 0.8.

    A boundary belongs to the range below it. Source: [002] Appendix D, table.

    Parameters
    ----------
    alpha
        Social-evidence uptake, in [0, 1].
    protocol
        'pairwise' or 'broadcast'; observers and managers are told nothing.
    prompts
        The prompts.

    Raises
    ------
    InputError
        If α or the protocol is something else.
    """
    check_alpha(alpha, protocol)
    task = prompts.message if protocol == "pairwise" else prompts.decision
    return task.line(alpha).rstrip("\n")


def check_alpha(alpha: float | None, protocol: str) -> None:
    """InputError unless α is in [0, 1] and the protocol has a line for it."""
    if alpha is None:
        return
    if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or not 0 <= alpha <= 1:
        raise InputError(f"alpha = {alpha!r}: expected a number from 0 to 1, or None")
    if protocol not in ("pairwise", "broadcast"):
        raise InputError(f"alpha = {alpha}: there is no such line in the {protocol} protocol; expected None")
