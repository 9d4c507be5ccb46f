"""Random memories and moves of a goal: what they say of its error holds for any policy."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t as student

from meanfield import MemorySpace
from policy_extraction.measuring._active.audit import Audit, Draws, drawn_at_random
from policy_extraction.measuring._active.choice import expected_move, goal_variance, shares
from policy_extraction.measuring._active.explore import DRAWS, Exploration, posterior_of
from policy_extraction.measuring._active.features import features, mirror_pairs
from policy_extraction.measuring._active.goals import Goal, Quantity
from policy_extraction.measuring._active.kernel import EVEN, ODD
from policy_extraction.measuring._active.known import Known
from policy_extraction.measuring._active.marginal_likelihood import CENTRE
from policy_extraction.measuring._active.moves import BEFORE, RECENT, Moves
from policy_extraction.measuring._active.posterior import Both

SPACE = MemorySpace(2, 2)
PAIRS = mirror_pairs(SPACE)
EVERY = features(SPACE).at(PAIRS[:, 0])
N = len(PAIRS)


def chances_of(drawn: tuple[int, ...], weights: np.ndarray, gone: tuple[int, ...] = ()) -> np.ndarray:
    """Chance of each pair among those left when it was drawn."""
    found, left = [], weights.sum() - weights[list(gone)].sum()
    for i in drawn:
        found.append(weights[i] / left)
        left -= weights[i]
    return np.array(found)


def test_pairs_are_drawn_one_after_the_other():
    """5,000 draws of two of four pairs: frequencies have standard errors of at most 0.007, 5 of them are allowed."""
    weights, random = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.random.default_rng(0)
    counts, number = {}, 5000
    for _ in range(number):
        drawn, chances = drawn_at_random(weights, np.arange(5) == 4, 2, random)
        np.testing.assert_allclose(chances, chances_of(tuple(drawn), weights[:4]))
        counts[tuple(drawn)] = counts.get(tuple(drawn), 0) + 1
    for drawn in permutations(range(4), 2):
        expected = chances_of(drawn, weights[:4]).prod()
        assert counts.pop(drawn) / number == pytest.approx(expected, abs=0.035)
    assert not counts  # the fifth was asked before


def test_all_that_is_left_can_be_drawn_whatever_the_weights():
    drawn, chances = drawn_at_random(np.array([1.0, 0, 1e-12, 0]), np.zeros(4, dtype=bool), 4, np.random.default_rng(0))
    assert sorted(drawn) == [0, 1, 2, 3]
    assert chances[-1] == 1.0
    assert (chances <= 1).all()


@pytest.mark.parametrize("previous", [True, False])
def test_estimates_are_unbiased_and_uncorrelated_for_any_predictions(previous):
    """All orders of two draws in one batch and one in the next, whose predictions are made of the first ones' answers.

    The control forgets that earlier draws are gone.
    """
    random = np.random.default_rng(1)
    q, derivatives, first = random.random((4, 2)), random.standard_normal((4, 2)), random.random((4, 2))
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    found, chance, truth = [], [], []
    for drawn in permutations(range(4), 3):
        both, last = drawn[:2], drawn[2:]
        chances = chances_of(drawn, weights)
        audit = Audit()
        audit.add(Draws(np.array(both), chances[:2] if previous else weights[list(both)] / weights.sum(), first))
        second = first + 0.5 * (q - first)[list(both)].mean()
        second[list(both)] = q[list(both)]
        audit.add(Draws(np.array(last), chances[2:], second))
        best = second.copy()
        best[list(last)] = q[list(last)]
        found.append(audit.estimates(derivatives, best))
        chance.append(chances.prod())
        truth.append((derivatives * (q - best)).sum())
    off = np.array(found) - np.array(truth)[:, None]
    mean = np.array(chance) @ off
    correlation = (np.array(chance)[:, None, None] * off[:, :, None] * off[:, None, :]).sum(0)
    if previous:
        np.testing.assert_allclose(mean, 0, atol=1e-12)
        np.testing.assert_allclose(correlation[np.triu_indices(3, 1)], 0, atol=1e-12)
    else:
        assert abs(mean[1]) > 0.01


def test_the_interval_of_random_pairs_holds_whatever_was_predicted():
    """200 populations of 300 pairs, predictions off by 0.1 in all: 95 % of intervals hold, ±4.6 % is 3 standard errors.

    The control takes the predictions as they are.
    """
    held, n = 0, 300
    for seed in range(200):
        random = np.random.default_rng(seed)
        q, derivatives = random.random((n, 2)), np.abs(random.standard_normal((n, 2)))
        predicted, asked = q + 0.1 + 0.1 * random.standard_normal((n, 2)), np.zeros(n, dtype=bool)
        audit, best = Audit(), predicted.copy()
        for _ in range(6):
            drawn, chances = drawn_at_random(derivatives.sum(1), asked, 10, random)
            audit.add(Draws(drawn, chances, best.copy()))
            best[drawn], asked[drawn] = q[drawn], True
        error, half = audit.error(derivatives, best)
        truth = (derivatives * (q - best)).sum()
        held += abs(error - truth) <= half
        assert abs(truth) > half
    assert 0.904 <= held / 200 <= 0.996


def test_few_draws_bound_nothing():
    audit = Audit()
    assert audit.error(np.ones((2, 2)), np.ones((2, 2))) == (0.0, np.inf)
    audit.add(Draws(np.array([0]), np.array([0.5]), np.zeros((2, 2))))
    assert audit.error(np.ones((2, 2)), np.ones((2, 2)))[1] == np.inf


def posterior(scale: float, asked: np.ndarray, parts: np.ndarray) -> Both:
    parameters = [CENTRE[parity] + np.array([np.log(scale)] * 4 + [0] * 8) for parity in (ODD, EVEN)]
    found = posterior_of(parameters, EVERY, asked, parts)
    found.even.bend = 0.0
    return found


def test_a_goal_moves_by_what_its_variance_loses():
    """Small errors, of which a goal is linear."""
    parts, goal = np.zeros((2, N)), np.random.default_rng(2).standard_normal((N, 2))
    first, batch = np.array([0, 3]), np.array([1, 6, 8])
    every = np.concatenate([first, batch])
    before, after = (posterior(1e-3, asked, parts[:, asked]) for asked in (first, every))
    lost = goal_variance(before, goal) - goal_variance(after, goal)
    assert expected_move(before, goal, batch) == pytest.approx(lost, rel=0.02)
    assert expected_move(before, goal, np.array([1])) < 0.9 * lost


def test_the_share_of_a_pair_is_that_of_draws():
    """4,000 draws: standard deviations are known to 1.1 %, 5 % is more than 4 standard errors."""
    parts, goal, random = np.zeros((2, N)), np.random.default_rng(3).standard_normal((N, 2)), np.random.default_rng(4)
    both = posterior(0.1, np.array([0, 3]), parts[:, [0, 3]])
    o, e = (np.sqrt(part.variance) * random.standard_normal((4000, N)) + part.mean for part in both)
    drawn = goal[:, 0] * ndtr(e + o) + goal[:, 1] * ndtr(e - o)
    np.testing.assert_allclose(shares(both, goal), drawn.std(0), rtol=0.05, atol=1e-3)


def test_moves_widen_at_their_word_and_narrow_beside_others():
    moves = Moves()
    assert (moves.freedom, moves.widening) == (0, 1.0)
    moves.add(-20.0, 1.0)
    assert (moves.freedom, moves.widening) == (1, 20.0)
    for _ in range(RECENT):
        moves.add(3.0, 1.5)
    assert (moves.freedom, moves.widening) == (RECENT, 2.0)
    for _ in range(RECENT):
        moves.add(0.0, 1.0)
    assert moves.freedom == BEFORE + RECENT
    assert moves.widening == pytest.approx(np.sqrt(BEFORE / (BEFORE + RECENT)))


@pytest.mark.parametrize("number", [3, RECENT])
@pytest.mark.parametrize("ratio", [0.5, 1.0, 1.5, 3.0, 10.0])
def test_intervals_by_moves_hold_what_they_say(ratio, number):
    """Of 10,000 goals with errors `ratio` times as large as expected, like their moves; known to 0.22 %.

    The control are intervals without moves.
    """
    quantile = student.ppf(0.975, np.arange(1 + BEFORE + RECENT))
    random, held, control = np.random.default_rng(5), [], []
    for _ in range(10_000):
        moves = Moves(list(ratio * random.standard_normal(number)))
        error = abs(ratio * random.standard_normal())
        held.append(error <= quantile[moves.freedom] * moves.widening)
        control.append(error <= 1.96)
    assert np.mean(held) > 0.94
    assert (np.mean(control) > 0.94) == (ratio <= 1)


def known(low: float, high: float) -> Known:
    return Known(Quantity("word_share", 0.6, "mixed"), 0.59, 0.61, 1.0, True, low, high)


@pytest.mark.parametrize(("bounds", "enough"), [((0.5, 0.7), True), ((0.61, 0.7), False), ((-np.inf, np.inf), False)])
def test_a_measurement_goes_on_while_random_memories_say_otherwise(bounds, enough):
    exploration = Exploration(
        lambda states: np.full((len(states), 2), 0.5), SPACE, ("a", "b"), Goal("word_share"), 0.05
    )
    for part in exploration.held_out.parts:
        part.every += [0.5, -0.5] * 10
    assert exploration.enough(known(*bounds)) == enough


def test_few_random_memories_bound_no_goal():
    """With a quarter of the pairs asked, three quarters of `DRAWS` are needed."""
    space = MemorySpace(2, 3)
    exploration = Exploration(
        lambda states: np.full((len(states), 2), 0.5), space, ("a", "b"), Goal("word_share"), 0.05
    )
    exploration._measure(np.arange(len(exploration.pairs) // 4))
    exploration._fit()
    best, quantity = exploration.best()[exploration.pairs, 0], Quantity("word_share", 0.5, "mixed")
    needed = int(np.ceil(DRAWS * (1 - len(exploration.order) / len(exploration.pairs))))
    for n in (needed - 1, 1):
        exploration.audit.add(Draws(np.arange(n), np.full(n, 0.5), best))
        bounds = exploration._drawn(quantity, np.ones_like(best))
        assert np.isfinite(bounds).all() == (exploration.audit.number == needed)
    assert bounds[0] <= 0.5 <= bounds[1]


@pytest.mark.slow
def test_it_does_not_end_before_random_memories_are_enough():
    """A policy that is the same in all memories is predicted without an error from the start."""
    space = MemorySpace(2, 3)
    exploration = Exploration(
        lambda states: np.tile([0.6, 0.4], (len(states), 1)), space, ("a", "b"), Goal("word_share"), 0.05
    )
    *before, last = exploration.run(85)
    left = 1 - len(exploration.order) / len(exploration.pairs)
    assert exploration.audit.number >= DRAWS * left > 0
    assert not any(each.drawn for each in before)
    assert last.low <= 0.6 <= last.high
    assert last.drawn_low <= 0.6 <= last.drawn_high
