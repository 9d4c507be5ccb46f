"""The log of a norm society holds what was answered: a run that was cut off goes on, and other logs are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from _norm_societies import FAST, SMOKING, Chatty, lines_of, ordinary, table
from meanfield import InputError
from theory.norms import AGENTS
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.norm_society._society import OPERATIONS

BUSY = replace(FAST, plans_per_day=20, syntheses_per_day=60)
OPTIONS = {"encounters": 30, "seed": 3, "on_unparsed": "no"}


def chatty(**options: Any) -> Chatty:
    """A table with agents who never give a usable answer about a norm that they hear of."""
    return Chatty("identify", rates=BUSY, **options)


@pytest.fixture(scope="module")
def uncut(tmp_path_factory) -> tuple[xr.Dataset, bytes, list[str]]:
    """A run that was not interrupted, its log, and all that was asked."""
    log, operations = tmp_path_factory.mktemp("society") / "log", chatty()
    run = simulate_society(operations, **OPTIONS, log=log)
    assert set(operations.asked) == set(OPERATIONS) and int(run["unparsed"].sum()) > 1
    xr.testing.assert_identical(simulate_society(chatty(), **OPTIONS), run)
    return run, log.read_bytes(), operations.asked


def goes_on(uncut: tuple[xr.Dataset, bytes, list[str]], log: Path) -> None:
    """To the same end, bit by bit, and nothing is asked again of what the log holds."""
    run, content, asked = uncut
    events = max(0, log.read_bytes().count(b"\n") - 1)
    known = sum(len(json.loads(line)["answers"]) for line in content.splitlines()[1 : events + 1])
    operations = chatty()
    xr.testing.assert_identical(simulate_society(operations, **OPTIONS, log=log), run)
    assert operations.asked == asked[known:]
    assert log.read_bytes() == content


def test_a_run_that_ends_after_so_many_answers_goes_on_to_the_same_end(uncut, tmp_path: Path) -> None:
    """After each of the first and some of the others. Control: the rest of a run with another seed has another end."""
    run, content, asked = uncut
    for lives in [*range(12), *range(12, len(asked), 60)]:
        log = tmp_path / f"{lives}"
        with pytest.raises(KeyboardInterrupt):
            simulate_society(chatty(lives=lives), **OPTIONS, log=log)
        assert content.startswith(log.read_bytes()) and log.read_bytes() != content
        goes_on(uncut, log)
    first, *lines = content.splitlines(keepends=True)
    log.write_bytes(first.replace(b'"seed": 3', b'"seed": 4') + b"".join(lines[:1]))
    assert not simulate_society(chatty(), **OPTIONS | {"seed": 4}, log=log)["accepted"].equals(run["accepted"])


def test_a_log_that_ends_within_a_line_goes_on_to_the_same_end(uncut, tmp_path: Path) -> None:
    """Within a line, as by a process that dies while it writes."""
    lines, log = uncut[1].splitlines(keepends=True), tmp_path / "log"
    for k in range(0, len(lines), 20):
        for part in (lines[k][: len(lines[k]) // 2], lines[k][:-1]):
            log.write_bytes(b"".join(lines[:k]) + part)
            goes_on(uncut, log)


def test_all_that_was_asked_is_in_the_log(uncut, tmp_path: Path) -> None:
    run, content, asked = uncut
    (tmp_path / "log").write_bytes(content)
    lines = lines_of(tmp_path / "log")
    assert len(lines) == run.sizes["event"]
    answers = [one for line in lines for one in line["answers"]]
    exchanges = [one for line in lines for one in line["exchanges"]]
    assert [name for name, *_ in answers] == asked
    assert [[one["operation"], one["agent"]] for one in exchanges] == [given[:2] for given in answers]
    assert sum(len(given) == 2 for given in answers) == int(run["unparsed"].sum())
    for name, asked_by, answer in (
        ("conflicts", "detect_conflict", [True]),
        ("chats", "talk", []),
        ("thoughts", "think", []),
    ):
        told = [given for operation, _, *given in answers if operation == asked_by and given not in ([], [None])]
        assert int(run[name].isel(event=-1).sum()) == sum(given == answer or not answer for given in told)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 2}, "a norm society with seed = 3, expected 2"),
        ({"operations": TableOperations(table(abstract=0.5), rates=BUSY)}, "with operations = table"),
        ({"operations": TableOperations(behaviours=[replace(SMOKING, utility=5)])}, "with operations = table"),
        ({"agents": AGENTS[:5]}, "with agents = "),
        ({"agents": ordinary(AGENTS)}, "with society_sha256 = "),
        ({"behaviours": ["noise"]}, "with behaviours = "),
        ({"rates": FAST}, "with rates = "),
        ({"n_created": 4}, "with n_created = 5, expected 4"),
    ],
)
def test_a_log_of_another_society_is_refused(uncut, changed: dict, message: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(uncut[1])
    with pytest.raises(InputError, match=f"^log = {re.escape(str(log))}: it holds .*{message}") as error:
        simulate_society(**{"operations": chatty(), **OPTIONS, "log": log, **changed})
    assert "\n" not in str(error.value)
    assert log.read_bytes() == uncut[1]


def test_a_log_needs_operations_that_can_be_told_apart(tmp_path: Path) -> None:
    nameless = chatty()
    nameless.identity = ""
    with pytest.raises(InputError, match="expected None, since operations without an identity"):
        simulate_society(nameless, **OPTIONS, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()


def answers(change: Callable[[list], Any]) -> Callable[[list[dict]], Any]:
    """A change of the answers of the second event, which begin with an action of Sam Moore."""
    return lambda lines: change(lines[1]["answers"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines.__setitem__(1, [1]), "line 3 is damaged, or it is no log of a norm society"),
        (lambda lines: lines.pop(1), "line 3 does not fit this norm society"),
        (lambda lines: lines[1].pop("answers"), "line 3 .*'answers'"),
        (lambda lines: lines[1].update(answers=5), "line 3"),
        (answers(lambda given: given.pop()), "line 3 .*it holds None, expected [a-z_]+ of "),
        (answers(lambda given: given.append(given[0])), r"line 3 .*it holds \['act', .*, expected no more"),
        (answers(lambda given: given.__setitem__(0, 5)), "line 3"),
        (answers(lambda given: given[0].__setitem__(0, "plan")), r"line 3 .*it holds \['plan', .*, expected act of "),
        (answers(lambda given: given[0].__setitem__(1, "Socrates")), "line 3 .*'Socrates', .*, expected act of "),
        (answers(lambda given: given[0].__setitem__(2, "smokes")), "line 3"),
        (answers(lambda given: given[0][2].update(shows="maybe")), "line 3 .*act of .* answered "),
        (answers(lambda given: given[0][2].pop("shows")), "line 3 .*act of .* answered "),
        (lambda lines: lines[0]["answers"][0][2][0].update(utility=101), "line 2 .*utility = 101"),
    ],
)
def test_answers_to_other_questions_are_refused(uncut, change: Callable, message: str, tmp_path: Path) -> None:
    first, *rest = uncut[1].decode().splitlines()
    lines, log = [json.loads(line) for line in rest], tmp_path / "log"
    change(lines)
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    written = log.read_bytes()
    with pytest.raises(InputError, match=f"^log = {re.escape(str(log))}: {message}.*; take a new file$") as error:
        simulate_society(chatty(), **OPTIONS, log=log)
    assert "\n" not in str(error.value)
    assert log.read_bytes() == written
