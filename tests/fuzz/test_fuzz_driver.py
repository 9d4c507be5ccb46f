"""The fuzz driver finds faults, and goes on afterwards."""

import ctypes
import time
from pathlib import Path

import numpy as np
import pytest

import meanfield
from _fuzz import fuzz, given, replay
from _mutations import mutated
from meanfield import InputError


def refuses(random):
    given("input", random.bytes(10)).read_bytes()
    raise InputError("number = 3: expected another")


def raises(random):
    return [0][random.integers(1, 3)]


def raises_lines(random):
    raise ValueError("number = 3:\nexpected another")


def spins(random):
    while True:
        pass


def sleeps(random):
    time.sleep(60)


def fills(random):
    held = []
    while True:
        held.append(np.ones(2**23))


def peaks(random):
    np.ones(2**27).sum()


def computes(random):
    policy = meanfield.make_policy(random.random(5), ["a", "b"])
    assert meanfield.solve(policy)["word_share"].notnull().all()


def crashes(random):
    ctypes.string_at(0)


def writes(random):
    (Path.home() / "left").write_text("here")


def changes(random):
    given("input", b"1").write_bytes(b"2")


def writes_and_refuses(random):
    Path("left").write_text("here")
    raise InputError("number = 3: expected another")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "what", "options"),
    [
        (raises, "IndexError", {}),
        (raises_lines, "a message of 28 characters", {"allowed": (ValueError,)}),
        (spins, "more than 0.3 s", {"deadline": 0.3}),
        (sleeps, "more than 0.05 s", {"deadline": 0.05}),
        (fills, "more than 0.7 GB", {"memory": 0.7}),
        (peaks, "GB", {"memory": 1.0}),
        (crashes, "exit code -11", {}),
        (writes, "leaves or changes a file", {}),
        (changes, "leaves or changes a file", {}),
        (writes_and_refuses, "leaves or changes a file", {"may_write": True}),
    ],
)
def test_faults_are_found(case, what, options):
    (fault,) = fuzz(case, 1, **options)
    assert what in fault.what and fault.case == case.__name__
    assert fuzz(refuses, 3) == [], "the next case is not blamed"


@pytest.mark.slow
def test_what_is_allowed_is_no_fault():
    assert fuzz(computes, 3, allowed=()) == [], "compiled code runs in the worker"
    assert fuzz(raises, 3, allowed=(IndexError,)) == []
    assert fuzz(writes, 3, may_write=True) == []


def test_a_fault_can_be_replayed():
    faults = fuzz(raises, 100)
    assert [fault.number for fault in faults] == list(range(5)), "it stops after five"
    with pytest.raises(IndexError):
        replay(raises, faults[0].number)


def test_mutations_are_seeded_and_change_the_data():
    data = bytes(range(256))
    changed = [mutated(np.random.default_rng(i), data) for i in range(300)]
    assert changed == [mutated(np.random.default_rng(i), data) for i in range(300)]
    assert sum(copy != data for copy in changed) > 270 and len({len(copy) for copy in changed}) > 100
