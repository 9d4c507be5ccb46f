"""Answers to a norm society that are of other classes than the table's, and those that cannot be parsed."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from _norm_societies import ASKED, FAST, Chatty, lines_of
from meanfield.toolbox import UnparsedError
from validation.norms import TableOperations, simulate_society
from validation.norms.society._json import plain


class Foreign(TableOperations):
    """The table's answers as objects of other kinds that the contract allows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.exchanges: list[dict] = []
        for name in ASKED:
            setattr(self, name, self._translating(getattr(super(), name)))

    def _translating(self, answered: Callable) -> Callable:
        def ask(*asked: Any) -> Any:
            self.exchanges.append({"p_yes": np.float32(0.5), "kept": np.array([True]), "more": {1, 2}})
            return foreign(answered(*asked))

        return ask


def foreign(answer: Any) -> Any:
    """Mappings, records and lists of other classes, and the numbers of NumPy."""
    if is_dataclass(answer):
        return SimpleNamespace(note=object(), **{name: foreign(value) for name, value in vars(answer).items()})
    if isinstance(answer, dict):
        return MappingProxyType({name: foreign(value) for name, value in answer.items()})
    if isinstance(answer, (list, tuple)):
        return UserList(map(foreign, answer))
    return answer if answer is None or isinstance(answer, (str, frozenset)) else np.asarray(answer)[()]


def test_answers_may_be_of_any_class_that_keeps_the_contract(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ASKED)
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
        broken = TableOperations(rates=FAST)
        broken.identify = lambda *_: (_ for _ in ()).throw(RuntimeError("the model is gone"))  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="the model is gone"):
            simulate_society(broken, **options, on_unparsed=on_unparsed)
