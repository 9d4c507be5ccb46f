"""A norm society that was cut off goes on from its log. Answers of no use count as no, wrong ones are named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from _norm_societies import FAST, NOISE, SMOKING, Chatty, lines_of, ordinary, table
from meanfield import InputError
from meanfield.toolbox import UnparsedError
from paper_figs.norm_society import TableOperations, simulate_society
from paper_figs.norm_society._society import OPERATIONS
from theory.norms import AGENTS, NormAgent

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


def test_a_run_that_ends_after_so_many_answers_goes_on_to_the_same_end(uncut, tmp_path: Path) -> None:
    """Bit by bit, and nothing is asked again of what the log holds."""
    run, content, asked = uncut
    for lives in [*range(12), *range(12, len(asked), 60)]:
        log = tmp_path / f"{lives}"
        with pytest.raises(KeyboardInterrupt):
            simulate_society(chatty(lives=lives), **OPTIONS, log=log)
        assert content.startswith(log.read_bytes()) and log.read_bytes() != content
        known = sum(len(line["answers"]) for line in lines_of(log))
        operations = chatty()
        xr.testing.assert_identical(simulate_society(operations, **OPTIONS, log=log), run)
        assert operations.asked == asked[known:]
        assert log.read_bytes() == content


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
        ({"agents": ordinary(AGENTS)}, "with society_sha256 = "),
        ({"rates": FAST}, "with rates = "),
    ],
)
def test_a_log_of_another_society_is_refused(uncut, changed: dict, message: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(uncut[1])
    with pytest.raises(InputError, match=f"^log = {re.escape(str(log))}: it holds .*{message}"):
        simulate_society(**{"operations": chatty(), **OPTIONS, "log": log, **changed})
    assert log.read_bytes() == uncut[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda given: given.pop(), "it holds None, expected [a-z_]+ of "),
        (lambda given: given.append(given[0]), r"it holds \['act', .*, expected no more"),
        (lambda given: given[0].__setitem__(0, "plan"), r"it holds \['plan', .*, expected act of "),
        (lambda given: given[0].__setitem__(2, "smokes"), "act of .* answered 'smokes'"),
    ],
)
def test_answers_to_other_questions_are_refused(uncut, change: Callable, message: str, tmp_path: Path) -> None:
    """Here those of the second event, which begin with an action of Sam Moore."""
    first, *rest = uncut[1].decode().splitlines()
    lines, log = [json.loads(line) for line in rest], tmp_path / "log"
    change(lines[1]["answers"])
    log.write_text("".join(f"{line}\n" for line in [first, *map(json.dumps, lines)]))
    with pytest.raises(InputError, match=f"line 3 .*{message}.*; take a new file$"):
        simulate_society(chatty(), **OPTIONS, log=log)


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_cannot_be_parsed_is_no_and_counted(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    rates = replace(FAST, syntheses_per_day=0) if name == "plan" else FAST
    run = simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1, on_unparsed="no", log=log)
    failed = sum(given[:1] == [name] and len(given) == 2 for line in lines_of(log) for given in line["answers"])
    assert 0 < failed == int(run["unparsed"].sel(operation=name)) == int(run["unparsed"].sum())
    start, most, end = run.isel(event=0), run.max("event"), run.isel(event=-1)
    learnt = most["accepted"] - start["accepted"]
    nothing = {
        "create": end["reached"],
        "detect_conflict": end["conflicts"],
        "decide_to_talk": end["chats"],
        "talk": end["chats"],
        "think": end["thoughts"],
        "identify": most["informed"] + learnt,
        "plan": most["complying"] - start["complying"],
        "act": run["unparsed"].sel(operation="act") - (run["what"] == "encounter").sum(),
        "classify": end["reached"] - end["accepted"],
        "abstract": end["reached"] - end["accepted"],
    }
    assert float(abs(nothing.get(name, learnt)).sum()) == 0
    with pytest.raises(UnparsedError, match=f"{name}: no answer"):
        simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1)


NAMELESS = TableOperations().__call__
KNOWS_NOISE = (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"agents": KNOWS_NOISE}, "Al prefers nothing in 'smoking'"),
        ({"operations": TableOperations}, "operations = <class .*: expected a function of operation, agent"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"encounters": 0}, "encounters = 0: expected a whole number of at least 1"),
        ({"n_created": 2}, "create of .* answered 3 norms: expected 2 at most"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected one of raise, no"),
        ({"operations": NAMELESS, "log": "log"}, "expected None, since operations without an identity"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})


def created(utility: Any, n: int = 1) -> list[dict]:
    return [{"content": f"Be kind to {k}.", "kind": "injunctive", "utility": utility} for k in range(n)]


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        ("create", created(101), "utility = .* of 'Be kind to 0.': expected a number from 1 to 100"),
        ("create", created(50), "norm 'Be kind to 0.': expected a standard of"),
        ("create", created(50, 6), "create of .* answered 6 norms: expected 5 at most"),
        ("detect_conflict", "no", "detect_conflict of .* answered 'no': expected bool"),
        ("think", False, "think of .* answered False: expected str or NoneType"),
        ("plan", {"text": "", "follows": ["Sing."]}, "plan of .* follows 'Sing.': expected qualified norms"),
        ("classify", [["fun", ["Sing."]]], r"contents = \['Sing.'\]: expected one or more different qualified norms"),
        ("abstract", ["All.", "injunctive", [0.0]], "weights = "),
    ],
)
def test_answers_that_cannot_be_are_named(unchecked_types, name: str, answer: Any, message: str) -> None:
    decide = TableOperations(rates=FAST)

    def operations(operation, *asked):
        return answer if operation == name else decide(operation, *asked)

    with pytest.raises(InputError, match=f"^{message}"):
        simulate_society(operations, encounters=300, seed=1, rates=FAST)


def test_standards_with_the_same_text_are_refused() -> None:
    with pytest.raises(InputError, match="expected different texts"):
        TableOperations(behaviours=["noise", replace(NOISE, name="loudness")])
