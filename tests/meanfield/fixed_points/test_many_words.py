"""Fixed points of many words: only faces to which agents can keep are searched, and what is too large is refused."""

import itertools

import numpy as np
import pytest

import meanfield
from _policies import random_policy
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.response import supports
from meanfield.toolbox import space_of


def words_of_classes(policy, support):
    """Words that agents may say for good, for each closed class of agents who hear the words of the support."""
    space, q = space_of(policy), policy["q"].values
    return [set((flows % space.n_words).tolist()) for flows in closed_classes(q, space, heard=support)]


@pytest.mark.parametrize("seed", range(2))
def test_supports_are_those_that_visiting_every_face_finds(seed):
    """Exact zeros at random: which faces can hold a fixed point is known by looking at all 15."""
    random = np.random.default_rng(seed)
    space = meanfield.MemorySpace(4, 1)
    q = random.random((space.n_states, 4)) * (random.random((space.n_states, 4)) < random.choice([0.3, 0.5, 0.8]))
    q[q.sum(1) == 0, 0] = 1.0
    policy = meanfield.make_policy(q / q.sum(1, keepdims=True), list("abcd"))
    every = [face for size in (4, 3, 2, 1) for face in itertools.combinations(range(4), size)]
    expected = {face for face in every if any(said <= set(face) for said in words_of_classes(policy, face))}
    found = set(supports(meanfield.Population(policy).mixture, 15))
    # A face on which fewer words are said than heard holds no root; it may be missing
    held = {face for face in expected if any(said == set(face) for said in words_of_classes(policy, face))}
    assert held <= found <= expected


def test_eight_words_that_all_may_be_said_have_one_face():
    policy = random_policy(1, n_words=8, memory_length=1)
    assert supports(meanfield.Population(policy).mixture, 1) == [tuple(range(8))]
    points = meanfield.fixed_points(policy)
    assert points["residual"].values.max() < 1e-9
    assert "add up to 1" in points.attrs["completeness"]


def test_words_that_are_repeated_have_too_many_faces():
    """Who says what was heard last keeps to any set of words: 2^26 faces, none of which is visited."""
    own_or_heard = meanfield.MemorySpace(26, 1)
    q = np.full((own_or_heard.n_states, 26), 1 / 26)
    q[1:] = np.tile(np.eye(26), (26, 1))
    policy = meanfield.make_policy(q, [chr(ord("a") + w) for w in range(26)])
    with pytest.raises(meanfield.InputError, match="more than 64 sets of words"):
        meanfield.fixed_points(policy)


def test_a_search_of_hours_is_refused():
    space = meanfield.MemorySpace(10, 3)
    policy = meanfield.make_policy(np.full((space.n_states, 10), 0.1), list("abcdefghij"))
    with pytest.raises(meanfield.InputError, match="10 words and H = 3"):
        meanfield.fixed_points(policy)
