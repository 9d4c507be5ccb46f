"""A log of a norm society is refused, and left as it is, if it is damaged or of another society."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from _norm_societies import FAST, SMOKING, table
from meanfield import InputError
from theory.norms import AGENTS, as_ordinary
from validation.norms._table_operations import TableOperations
from validation.norms.society._simulate import simulate_society

BOB = ("changed", "Bob Johnson")  # who starts with five norms


def test_a_log_of_something_else_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"encounters": 5, "seed": 1, "log": log}
    simulate_society(TableOperations(), **options)
    content = log.read_bytes()
    for changed, message in (
        ({"seed": 2}, "a norm society with seed = 1, expected 2"),
        ({"operations": TableOperations(table(abstract=0.5))}, "with operations = table"),
        ({"agents": AGENTS[:5]}, "with agents = "),
        ({"agents": as_ordinary(AGENTS)}, "with society_sha256 = "),
        ({"behaviours": ["noise"]}, "with behaviours = "),
        ({"rates": FAST}, "with rates = "),
    ):
        with pytest.raises(InputError, match=message) as error:
            simulate_society(**{"operations": TableOperations(), **options, **changed})
        assert "\n" not in str(error.value)
    assert log.read_bytes() == content
    lines = content.splitlines(keepends=True)
    for text in (b"a letter\n", b"[1, 2]\n", content + b"{}\n", lines[0] + lines[2], content + b'{"event": 6}\n'):
        log.write_bytes(text)
        with pytest.raises(InputError, match="it is damaged, or no log of a norm society"):
            simulate_society(TableOperations(), **options)
        assert log.read_bytes() == text


def test_a_log_needs_operations_that_can_be_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = {"behaviours": ["smoking"], "encounters": 20, "seed": 1}
    lesser = replace(SMOKING, utility=5)
    simulate_society(TableOperations(behaviours=["smoking"]), **options, log=log)
    with pytest.raises(InputError, match="with operations = table"):
        simulate_society(TableOperations(behaviours=[lesser]), **options, log=log)
    nameless = TableOperations(behaviours=["smoking"])
    nameless.identity = ""
    with pytest.raises(InputError, match="expected None, since operations without an identity"):
        simulate_society(nameless, **options, log=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    simulate_society(nameless, **options)


@pytest.mark.parametrize(
    ("number", "place", "value"),
    [
        (0, ("what",), "plan"),
        (3, ("what",), "start"),
        (3, ("what",), "plan"),
        (3, ("what",), "party"),
        (3, ("what",), ["encounter"]),
        (3, ("agents",), ["Sam Moore"]),
        (3, ("agents",), ["Sam Moore", "Sam Moore"]),
        (3, ("agents",), ["Sam Moore", "Socrates"]),
        (3, ("agents",), 5),
        (3, ("behaviour",), "queueing"),
        (3, ("behaviour",), ""),
        (3, ("seen",), 5),
        (3, ("seen",), "chat"),
        (3, ("seen",), ["quarrel"]),
        (3, ("unparsed",), 5),
        (3, ("unparsed",), ["sing"]),
        (0, ("changed",), 5),
        (0, ("changed",), {"Socrates": {"norms": [], "plan": {"text": "", "follows": []}}}),
        (0, BOB, 5),
        (0, BOB, {"norms": {}, "plan": {"text": "", "follows": []}}),
        (0, (*BOB, "norms"), 5),
        (0, (*BOB, "norms"), ["No smoking indoors."]),
        (0, (*BOB, "norms", 0, "utility"), 101),
        (0, (*BOB, "norms", 0, "content"), "Sing."),  # but it is planned by
        (0, (*BOB, "norms", 0, "content"), []),
        (0, (*BOB, "norms", 0, "about"), [["smoking", "sideways"]]),
        (0, (*BOB, "norms", 0, "about"), [["queueing", "for"]]),
        (0, (*BOB, "norms", 0, "about"), [["smoking"]]),
        (0, (*BOB, "norms", 0, "about"), ["ab"]),
        (0, (*BOB, "norms", 0, "about"), ""),
        (0, (*BOB, "norms", 0, "parts"), "No smoking indoors."),
        (0, (*BOB, "norms", 0, "parts"), ["Sing."]),
        (0, (*BOB, "plan", "text"), None),
        (0, (*BOB, "plan", "follows"), "abc"),
        (0, (*BOB, "plan", "follows"), ["Sing."]),
        (0, (*BOB, "plan"), []),
    ],
)
def test_values_of_a_log_are_checked(number: int, place: tuple, value: Any, tmp_path: Path) -> None:
    def change(lines: list[dict]) -> None:
        *path, last = place
        inner: Any = lines[number]
        for name in path:
            inner = inner[name]
        assert last == "parts" or inner[last] != value
        inner[last] = value

    check_damage(change, tmp_path / "log")


@pytest.mark.parametrize(("number", "other"), [(0, 3), (3, 0)])
def test_only_the_first_event_of_a_log_is_a_start(number: int, other: int, tmp_path: Path) -> None:
    check_damage(lambda lines: lines[number].update({**lines[other], "event": number}), tmp_path / "log")


def check_damage(change: Callable[[list[dict]], None], log: Path) -> None:
    """The lines of a log are read again, but not after the change."""
    options = {"encounters": 5, "seed": 1, "log": log}
    whole = simulate_society(TableOperations(), **options)
    first, *rest = log.read_text().splitlines()
    lines = [json.loads(line) for line in rest]
    assert lines[3]["what"] == "encounter"
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    xr.testing.assert_identical(simulate_society(TableOperations(), **options), whole)
    change(lines)
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    with pytest.raises(InputError, match="it is damaged, or no log of a norm society; take a new file") as error:
        simulate_society(TableOperations(), **options)
    assert "\n" not in str(error.value)
