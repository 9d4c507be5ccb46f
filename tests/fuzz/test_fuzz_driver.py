"""The fuzz driver finds faults, and goes on afterwards."""

import ctypes
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _fuzz import fuzz, given, mutated, replay
from meanfield import InputError

KNOWN = {one.__name__: one for one in (ctypes, time, Path, meanfield, given, InputError)} | {"np": np}


def does(code, random):
    exec(code, {**KNOWN, "random": random})


def refuses(random):
    given("input", random.bytes(10)).read_bytes()
    raise InputError("number = 3: expected another")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "what", "options"),
    [
        ("[0][1]", "IndexError", {}),
        ("raise ValueError('number = 3:\\nexpected another')", "of 28 characters", {"allowed": (ValueError,)}),
        ("while True: pass", "SIGPROF", {"deadline": 0.3}),
        ("time.sleep(60)", "SIGALRM", {"deadline": 0.05}),
        ("held = []\nwhile True: held.append(np.ones(2**23))", "more than 0.7 GB", {"memory": 0.7}),
        ("np.ones(2**27).sum()", "GB", {"memory": 1.0}),
        ("ctypes.string_at(0)", "SIGSEGV", {}),
        ("(Path.home() / 'left').write_text('here')", "leaves or changes a file", {}),
        ("given('input', b'1').write_bytes(b'2')", "leaves or changes a file", {}),
        ("Path('left').touch()\nraise InputError('n = 3')", "leaves or changes a file", {"may_write": True}),
    ],
)
def test_faults_are_found(code, what, options):
    case = partial(does, code)
    (fault,) = fuzz(case, 1, **options)
    assert what in fault.what and fault.case == f"does{(code,)}"
    assert fuzz(refuses, 3) == [], "the next case is not blamed"


@pytest.mark.slow
def test_what_is_allowed_is_no_fault():
    computes = "assert (meanfield.solve(meanfield.make_policy([0.5] * 5, ['a', 'b']))['word_share'] > 0).all()"
    assert fuzz(partial(does, computes), 3, allowed=()) == [], "compiled code runs in the worker"
    assert fuzz(partial(does, "[0][1]"), 3, allowed=(IndexError,)) == []
    assert fuzz(partial(does, "Path('left').touch()"), 3, may_write=True) == []


@pytest.mark.slow
def test_a_fault_can_be_replayed():
    case = partial(does, "[0][random.integers(1, 3)]")
    faults = fuzz(case, 100)
    assert [fault.number for fault in faults] == list(range(5)), "it stops after five"
    with pytest.raises(IndexError):
        replay(case, faults[0].number)


def test_mutations_are_seeded_and_change_the_data():
    data = bytes(range(256))
    changed, again = ([mutated(np.random.default_rng(i), data) for i in range(300)] for _ in range(2))
    assert changed == again
    assert sum(copy != data for copy in changed) > 270 and len({len(copy) for copy in changed}) > 80
