"""The log of a norm society: everything is in it, and a run that was interrupted or killed goes on to the same end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import xarray as xr

from _norm_societies import ASKED, FAST, Chatty, lines_of
from validation.norms._table_operations import TableOperations
from validation.norms.society._simulate import simulate_society


def test_everything_is_in_the_log(tmp_path: Path) -> None:
    log, operations = tmp_path / "log", Chatty(rates=FAST)
    run = simulate_society(operations, encounters=150, seed=4, log=log)
    lines = lines_of(log)
    assert [line["event"] for line in lines] == list(range(run.sizes["event"]))
    assert [line["what"] for line in lines] == run["what"].values.tolist()
    asked = [(name, agent) for line in lines for name, agent, _ in line["asked"]]
    kept = [(one["operation"], one["agent"]) for line in lines for one in line["exchanges"]]
    assert asked == kept and [name for name, _ in asked] == operations.asked
    assert set(operations.asked) == set(run["operation"].values) == set(ASKED)
    assert operations.exchanges == []
    for name, answer in (("conflicts", ["detect_conflict", True]), ("chats", ["talk"]), ("thoughts", ["think"])):
        told = sum(
            [one[0], one[2]][: len(answer)] == answer for line in lines for one in line["asked"] if one[2] is not None
        )
        assert told == int(run[name].isel(event=-1).sum())
    silent = simulate_society(TableOperations(rates=FAST), encounters=150, seed=4)
    xr.testing.assert_identical(run, silent)


def test_an_interrupted_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    """Cut after each of its lines, and within some; nothing is asked again."""
    log, options = tmp_path / "log", {"encounters": 25, "seed": 6}
    whole = simulate_society(Chatty(rates=FAST), **options)
    assert (whole["what"] == "synthesis").any() and (whole["what"] == "plan").any()
    written = Chatty(rates=FAST)
    xr.testing.assert_identical(simulate_society(written, **options, log=log), whole)
    content = log.read_bytes()
    lines = content.splitlines(keepends=True)
    for k in range(len(lines) + 1):
        left = sum(len(json.loads(line)["asked"]) for line in lines[max(k, 1) :])
        within = [lines[k][: len(lines[k]) // 2]] if k < len(lines) and k % 4 == 0 else []
        for part in (b"", *within):
            log.write_bytes(b"".join(lines[:k]) + part)
            operations = Chatty(rates=FAST)
            xr.testing.assert_identical(simulate_society(operations, **options, log=log), whole)
            assert operations.asked == written.asked[len(written.asked) - left :]
            assert log.read_bytes() == content
    longer = simulate_society(Chatty(rates=FAST), encounters=40, seed=6, log=log)
    xr.testing.assert_identical(longer, simulate_society(Chatty(rates=FAST), encounters=40, seed=6))
    shorter = simulate_society(Chatty(rates=FAST), encounters=25, seed=6, log=log)
    xr.testing.assert_identical(shorter, whole)


# Writes each event to the log and then tells of it.
PLAY = """
import sys, time
from validation import TableOperations, simulate_society
from validation.norms.society._log import EventLog

append = EventLog.append

def slow_append(self, number, event):
    append(self, number, event)
    print(number, flush=True)
    time.sleep(0.02)

EventLog.append = slow_append
simulate_society(TableOperations(), encounters=10**6, seed=3, log=sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_killed_run_goes_on_to_the_same_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-c", PLAY, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(30)]
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert told == [str(number) for number in range(30)], errors
    kept = log.read_bytes()
    assert process.returncode == -signal.SIGKILL and kept.count(b"\n") >= 31, "what it told of is in the log"
    run = simulate_society(TableOperations(), encounters=100, seed=3, log=log)
    assert log.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    xr.testing.assert_identical(run, simulate_society(TableOperations(), encounters=100, seed=3))
