"""Errors of predictions and moves of a quantity: what they say of its interval."""

from __future__ import annotations

import numpy as np
import pytest

from policy_extraction.measuring._doubt import MOVES, Doubt, Tails


def doubt(errors: np.ndarray, moves: tuple[float, ...] = ()) -> Doubt:
    return Doubt(list(np.reshape(errors, (-1, 1))), list(moves))


@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_tails_are_those_of_the_errors(scale, monkeypatch):
    """95 % of 2,000 errors are inside the interval, up to 1.5 %, three standard errors; the control is another law."""
    monkeypatch.setattr("policy_extraction.measuring._doubt.TESTS", 2000)
    errors = Tails(scale).of(np.random.default_rng(2).standard_normal(2000))
    found = doubt(errors)
    assert found.outside / 2000 == pytest.approx(0.05, abs=0.015)
    assert found.tails.scale == pytest.approx(scale, rel=0.08)
    assert np.mean(np.abs(errors) < Tails(0.5 * scale).half) < 0.9
    assert np.mean(np.abs(errors) < found.scale * Tails().half) == pytest.approx(0.95, abs=0.015)


def test_tails_are_monotone_and_odd(monkeypatch):
    at = np.linspace(-8, 8, 33)
    for tails in (Tails(), Tails(3.0)):
        errors = tails.of(at)
        assert (np.diff(errors) > 0).all()
        np.testing.assert_allclose(errors[::-1], -errors)
        assert errors[-1] > 100 * at[-1] * tails.scale
    monkeypatch.setattr("policy_extraction.measuring._doubt.FREEDOM", 1000.0)
    np.testing.assert_allclose(Tails(1.0).of(at[12:21]), at[12:21], rtol=5e-3)


def test_many_errors_outside_their_intervals_are_a_proof_against_the_model_and_a_few_far_ones_are_none():
    assert doubt(np.array([*np.random.default_rng(1).standard_normal(54), -6.0, 5.0, -7.0, 6.0, 8.0, -5.0])).holds
    found = doubt(np.array([0.01] * 30 + [50.0] * 14))
    assert found.outside == 14 and not found.holds
    assert doubt(np.full(60, 0.01)).scale == 1.0, "small errors do not narrow the posterior"


def test_large_moves_widen_the_interval_and_small_ones_do_not_narrow_it():
    none = np.empty(0)
    assert doubt(none, (0.01,) * 5).widening == doubt(none).widening == 1.0
    assert doubt(none, (4.0,) * MOVES).widening == pytest.approx(2.0)
    assert doubt(none, (100.0, *[1.0] * MOVES)).widening == 1.0  # moves of long ago do not count
    assert doubt(none, (4.0,)).half(1.0, 10) == pytest.approx(2 * doubt(none).half(1.0, 10))


@pytest.mark.parametrize(("ratio", "held"), [(1.0, True), (2.0, True), (5.0, False)])
def test_intervals_by_moves_hold_what_they_say(ratio, held):
    """3,000 quantities of so many times the expected errors, with moves as large; the control has no moves."""
    random, inside, without = np.random.default_rng(5), 0, 0
    for _ in range(3000):
        error, moves = ratio * random.standard_normal(), (ratio * random.standard_normal(MOVES)) ** 2
        inside += abs(error) <= Doubt(moves=moves.tolist()).half(1.0, 6)
        without += abs(error) <= Doubt().half(1.0, 6)
    assert inside / 3000 > 0.93
    assert (without / 3000 > 0.9) == (ratio == 1.0) or held
