"""κ over the temperatures of the page: exact where it is measured, and close to exact in between."""

from __future__ import annotations

import pytest

import meanfield
from _policies import majority, majority_policy, random_policy
from meanfield._explore.explore import entries_of
from meanfield._explore.kappas import OCTAVE, STEPS, _kappa

pytestmark = pytest.mark.usefixtures("unchecked_types")
DIGITS = 5e-4  # of three printed digits


def tabulated(policy):
    (entry,) = entries_of(policy)
    assert len(entry["kappas"]) == 2 * STEPS + 1
    return lambda step: entry["kappas"][step + STEPS]


def sharpened(policy, step: int):
    q = policy["q"].values ** 2 ** (-step / OCTAVE)
    return meanfield.make_policy(q / q.sum(1, keepdims=True), ["a", "b"])


@pytest.mark.slow
def test_kappa_between_the_nodes_and_up_to_the_bifurcation():
    policy = majority(0.52, 0.9)
    found = tabulated(policy)
    last = max(step for step in range(-STEPS, STEPS + 1) if isinstance(found(step), float))
    assert 0 < last < STEPS, "the two attractors end at a fold"
    assert meanfield.fixed_points(sharpened(policy, last)).sizes["fixed_point"] == 3
    assert meanfield.fixed_points(sharpened(policy, last + 1)).sizes["fixed_point"] == 1
    assert all(found(step) is None for step in range(last + 1, STEPS + 1))
    law = meanfield.group_size_law(policy, n_agents=100)
    assert (found(0), law["strong_word"].item()) == (law["kappa"].item(), "a")
    for step in (-61, -42, -13, -3, 3, last - 5, last - 3, last - 2, last - 1, last):
        expected = meanfield.group_size_law(sharpened(policy, step), n_agents=100)["kappa"].item()
        assert found(step) == pytest.approx(expected, rel=DIGITS), step


@pytest.mark.slow
def test_the_sign_tells_which_attractor_is_strong():
    a, b = (_kappa(majority(lean, 0.9)) for lean in (0.52, 0.48))
    assert a == pytest.approx(-b, rel=1e-6) and a > 0


def test_one_attractor_has_no_kappa():
    found = tabulated(random_policy(1))
    assert {found(step) for step in range(-STEPS, STEPS + 1)} == {None}


def test_why_there_is_none_and_where_it_is_infinite():
    alike, never = tabulated(majority_policy(3, 0.99)), tabulated(majority_policy(3, 1.0))
    for found in (alike, never):
        assert found(0) == "agents treat both words alike, so that either wins with the same probability"
    surely = meanfield.make_policy(
        lambda memory: float(2 * sum(heard == "a" for _, heard in memory) >= len(memory)), ["a", "b"], memory_length=3
    )
    found = tabulated(surely)
    assert {found(step) for step in range(-STEPS, STEPS + 1)} == {"Infinity"}
