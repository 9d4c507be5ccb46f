"""Answers to a norm society that are of other classes than the table's, that can't be parsed, and that can't be."""

from __future__ import annotations

from collections import UserList
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import xarray as xr

from _norm_societies import FAST, NOISE, Chatty, lines_of, table
from meanfield import InputError
from meanfield.toolbox import UnparsedError
from theory.norms import AGENTS, NormAgent
from paper_figs.norm_society import TableOperations, simulate_society
from validation.norms._questions import plain
from paper_figs.norm_society._society import OPERATIONS


class Foreign(TableOperations):
    """The table's answers as objects of other kinds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.exchanges: list[dict] = []

    def __call__(self, operation, agent, given, rng):
        self.exchanges.append({"p_yes": np.float32(0.5), "kept": np.array([True]), "more": {1, 2}})
        return foreign(super().__call__(operation, agent, given, rng))


def foreign(answer: Any) -> Any:
    """Mappings and lists of other classes, and the numbers of NumPy."""
    if isinstance(answer, dict):
        return MappingProxyType({name: foreign(value) for name, value in answer.items()})
    if isinstance(answer, (list, tuple)):
        return UserList(map(foreign, answer))
    return answer if answer is None or isinstance(answer, str) else np.asarray(answer)[()]


def test_answers_may_be_of_any_class(tmp_path: Path) -> None:
    """The log and the end are those of the same answers as plain objects."""
    assert plain(Fraction(181, 2)) == 90.5
    assert type(foreign(True)) is np.bool_ and type(foreign(3)) is np.int64 and type(foreign(3.5)) is np.float64
    log, other = tmp_path / "log", tmp_path / "other"
    options = {"encounters": 150, "seed": 4}
    whole = simulate_society(TableOperations(rates=FAST), **options, log=log)
    assert {"identify", "plan", "act", "create", "classify", "abstract"} <= {
        name for line in lines_of(log) for name, _, answer in line["answers"] if answer
    }
    xr.testing.assert_identical(simulate_society(Foreign(rates=FAST), **options, log=other), whole)
    lines = lines_of(other)
    exchange = {"p_yes": 0.5, "kept": [True], "more": [1, 2]}
    assert all(line["exchanges"] == [exchange] * len(line["answers"]) for line in lines)
    assert [{**line, "exchanges": []} for line in lines] == lines_of(log)
    kept = other.read_bytes()
    other.write_bytes(b"".join(kept.splitlines(keepends=True)[:80]))
    xr.testing.assert_identical(simulate_society(Foreign(rates=FAST), **options, log=other), whole)
    assert other.read_bytes() == kept


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_cannot_be_parsed_is_no_and_counted(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    rates = replace(FAST, syntheses_per_day=0) if name == "plan" else FAST
    run = simulate_society(Chatty(fails=name, every=1, rates=rates), encounters=200, seed=1, on_unparsed="no", log=log)
    failed = sum(given[:1] == [name] and len(given) == 2 for line in lines_of(log) for given in line["answers"])
    assert failed == int(run["unparsed"].sel(operation=name)) == int(run["unparsed"].sum())
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
    assert failed > 0
    healthy = simulate_society(Chatty(rates=FAST), encounters=200, seed=1, on_unparsed="no")
    assert int(healthy["unparsed"].sum()) == 0
    for what in ("conflicts", "thoughts", "chats", "informed", "accepted", "complying"):
        assert float(healthy[what].max("event").sum()) > float(healthy[what].isel(event=0).sum())
    assert float((healthy["reached"] - healthy["accepted"]).max()) > 0


def test_what_cannot_be_parsed_stops_the_run_by_default_and_may_go_on_without(tmp_path: Path) -> None:
    """Or with the answers of a model that is well again."""
    options = {"encounters": 200, "seed": 1}
    for fails, on_unparsed in (("", "raise"), ("identify", "no")):
        log = tmp_path / on_unparsed
        with pytest.raises(UnparsedError, match="identify: no answer"):
            simulate_society(Chatty("identify", rates=FAST), **options, log=log)
        kept = log.read_bytes()
        resumed = simulate_society(Chatty(fails, rates=FAST), **options, on_unparsed=on_unparsed, log=log)
        assert log.read_bytes().startswith(kept) and kept.count(b"\n") > 3
        xr.testing.assert_identical(
            resumed, simulate_society(Chatty(fails, rates=FAST), **options, on_unparsed=on_unparsed)
        )
        assert (int(resumed["unparsed"].sum()) > 0) == bool(fails)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"behaviours": ["queueing"]}, "behaviour = 'queueing': expected one of smoking, noise, tipping"),
        ({"behaviours": "noise"}, "behaviours = 'noise': expected a list of names"),
        ({"behaviours": ["noise", "noise"]}, "behaviours = .*expected one or more different"),
        ({"agents": AGENTS[:1]}, "agents = \\['Isabella Rodriguez'\\]: expected two or more"),
        ({"operations": None}, "operations = None: expected a function of operation, agent"),
        ({"operations": TableOperations}, "operations = <class .*: expected a function of operation, agent"),
        ({"rates": 3}, "rates = 3: expected NormRates"),
        ({"agents": ["Bob", "Ann"]}, "agents = .*: expected one or more NormAgents"),
        ({"agents": AGENTS[:2] * 2}, "agents = .*different names"),
        ({"agents": (AGENTS[0], NormAgent("Al", "ordinary", "", {"noise": "for"}))}, "Al prefers nothing in 'smoking'"),
        ({"encounters": 0}, "encounters = 0: expected a whole number of at least 1"),
        ({"seed": -1}, "seed = -1"),
        ({"n_created": 0}, "n_created = 0"),
        ({"n_created": 2}, "n = 2: expected at least 3 norms"),
        ({"on_unparsed": "maybe"}, "on_unparsed = 'maybe': expected 'raise' or 'no'"),
    ],
)
def test_bad_input_is_named(unchecked_types, wrong: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        simulate_society(**{"operations": TableOperations(), "encounters": 5, "seed": 1, **wrong})
    assert "\n" not in str(error.value)


def created(utility: Any, contents: Sequence[str] = ("Be kind.",)) -> list[dict]:
    return [{"content": content, "kind": "injunctive", "utility": utility} for content in contents]


OUT_OF_RANGE = "utility = .* of 'Be kind.': expected a number from 1 to 100"


@pytest.mark.parametrize(
    ("name", "answer", "message"),
    [
        *(("create", created(utility), OUT_OF_RANGE) for utility in (0, 100.5, float("nan"), "high")),
        ("create", created(50), "norm 'Be kind.': expected a standard of"),
        ("create", created(50, [f"Be {k}." for k in range(6)]), "create of .* answered 6 norms: expected 5 at most"),
        ("create", [{"content": "Be kind.", "kind": "injunctive"}], "create of .* answered "),
        ("create", "text", "create of .* answered 'text': expected a list of norms"),
        ("detect_conflict", "no", "detect_conflict of .* answered 'no': expected True or False"),
        ("talk", None, "talk of .* answered None: expected text"),
        ("think", False, "think of .* answered False: expected text or None"),
        ("identify", "No smoking indoors.", "identify of .* answered "),
        ("identify", created(101)[0], OUT_OF_RANGE),
        ("plan", {"text": "", "follows": "No smoking indoors."}, "plan of .* answered "),
        ("plan", {"text": "", "follows": {"Sing."}}, "plan of .* follows 'Sing.': expected qualified norms"),
        ("act", "smokes", "act of .* answered 'smokes'"),
        ("act", {"text": "", "shows": "maybe", "normative": False}, "act of .* answered "),
        ("act", {"text": "", "shows": "for", "normative": "yes"}, "act of .* answered "),
        ("classify", "themes", "classify of .* answered 'themes'"),
        ("classify", [("fun", "Sing.")], "classify of .* answered "),
        ("classify", [("fun", ("Sing.",))], r"contents = \['Sing.'\]: expected one or more different qualified norms"),
        ("abstract", ("All.", "injunctive"), "abstract of .* answered "),
        ("abstract", ("All.", "injunctive", (0.0,)), "weights = "),
    ],
)
def test_answers_that_cannot_be_are_named(unchecked_types, name: str, answer: Any, message: str) -> None:
    decide = TableOperations(rates=FAST)

    def operations(operation, *asked):
        return answer if operation == name else decide(operation, *asked)

    with pytest.raises(InputError, match=f"^{message}") as error:
        simulate_society(operations, encounters=300, seed=1, rates=FAST)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operations": table().drop_vars("abstract")}, "abstract"),
        ({"operations": table(abstract=1.5)}, "abstract"),
        ({"behaviours": ["noise", "noise"]}, "expected one or more different"),
        ({"behaviours": ["noise", replace(NOISE, name="loudness")]}, "twice: expected different texts"),
    ],
)
def test_wrong_tables_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TableOperations(**options)
