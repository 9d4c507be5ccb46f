"""Roots on the simplex of word shares against closed forms, and scalar root finding."""

import itertools

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import expit, softmax

import meanfield
from _policies import loyal_policy, random_policy, relabelled
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_distribution import StationaryDistribution
from meanfield._numerics.roots import all_roots
from meanfield._numerics.simplex_roots import _plausibility, simplex_roots
from meanfield.toolbox import space_of

INTERIOR = (0, 1, 2)
BREAKS = np.array([-46.0, -23.0, -6.0, 0.0, 6.0, 23.0, 46.0])


def response_of(policy, support=INTERIOR):
    q, space = policy["q"].values, space_of(policy)
    (flows,) = closed_classes(q, space, heard=support)
    return StationaryDistribution(q, space, flows).word_share


def test_linear_response_has_the_stationary_law_as_its_root():
    """Say a word that depends on the last word heard, by a matrix: f(Q) = Q M."""
    matrix = np.random.default_rng(0).dirichlet([0.3] * 3, size=3)
    q = np.concatenate([[[1 / 3] * 3], np.tile(matrix, (3, 1))])
    found = simplex_roots(response_of(meanfield.make_policy(q, ["a", "b", "c"])), 3, INTERIOR)
    values, vectors = np.linalg.eig(matrix.T)
    law = vectors[:, np.argmax(values.real)].real
    np.testing.assert_allclose(found.roots, [law / law.sum()], rtol=1e-12)
    assert found.indices.tolist() == [1]


def multinomial_majority(p, heard=3):
    """Say the word heard most often among 3 partners, any of those tied for it alike, and with 1 - p any word."""
    draws = np.array(list(itertools.product(range(3), repeat=heard)))
    counts = np.array([np.bincount(draw, minlength=3) for draw in draws])
    winners = counts == counts.max(1, keepdims=True)
    said = p * winners / winners.sum(1, keepdims=True) + (1 - p) / 3
    return lambda Q: Q[:, draws].prod(2) @ said


@pytest.mark.parametrize("p", [0.9, 1 - 3e-12])
def test_symmetric_majority_has_orbits_of_the_roots_on_a_symmetry_line(p):
    """Roots of three equal words lie on lines of two equal shares, where one scalar equation finds them all."""
    response = multinomial_majority(p)

    def on_line(logit):
        return np.stack([expit(logit), expit(-logit) / 2, expit(-logit) / 2], axis=1)

    def mismatch(logit):
        said = response(on_line(logit))
        return np.log(said[:, 0]) - np.log(said[:, 1:].sum(1)) - logit

    line = on_line(all_roots(mismatch, BREAKS).roots)
    expected = np.array([np.roll(row, k) for row in line for k in range(3 if np.ptp(row) > 1e-6 else 1)])
    found = simplex_roots(response, 3, INTERIOR)
    assert len(found.roots) == len(expected) == 7
    for row in found.roots:
        assert np.abs(np.log(expected / row)).max(1).min() < 1e-9
    assert (np.diff(found.roots[:, 0]) < 1e-9).all(), "by falling share of the first word"
    assert found.indices.sum() == 1


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_relabelling_permutes_the_roots():
    policy, order = loyal_policy(3, 2), [2, 0, 1]
    ours = simplex_roots(response_of(policy), 3, INTERIOR)
    theirs = simplex_roots(response_of(relabelled(policy, order)), 3, INTERIOR)
    assert len(ours.roots) == len(theirs.roots) > 1
    for row, index in zip(ours.roots, ours.indices, strict=True):
        distance = np.abs(np.log(theirs.roots[:, order] / row)).max(1)
        assert distance.min() < 1e-11
        assert theirs.indices[distance.argmin()] == index


def planted(zeros):
    """log f = log Q + G with G zero where the first log-ratio is one of `zeros` and the second half of it."""
    basis = helmert(3).T

    def response(Q):
        u = np.log(Q) @ basis
        distances = u[:, :1] - zeros
        product = distances[:, 0] * np.prod(distances[:, 1:] / np.sqrt(1 + distances[:, 1:] ** 2), axis=1)
        pull = np.stack([-0.5 * product.real, 0.5 * u[:, 0] - u[:, 1]], axis=1)
        return softmax((u + pull) @ basis.T, axis=1)

    return response, [softmax(basis @ [zero, zero / 2]) for zero in np.real(zeros)]


@pytest.mark.parametrize(("place", "gap"), [(0.7, 1e-5), (-3.0, 1e-3), (20.0, 1e-5)])
def test_planted_pair_of_roots_is_found(place, gap):
    response, expected = planted([place, place + gap, 4.0])
    found = simplex_roots(response, 3, INTERIOR)
    assert len(found.roots) == 3
    for row in expected:
        assert np.abs(np.log(found.roots / row)).max(1).min() < 1e-3 * gap
    assert sorted(found.indices) == [-1, 1, 1]


def test_pair_that_has_just_vanished_is_a_near_miss():
    """Complex zeros 1e-3 off the real axis: the misfit is least between them, about 1e-6."""
    response, _ = planted([4.0, 0.7 + 1e-3j, 0.7 - 1e-3j])
    found = simplex_roots(response, 3, INTERIOR)
    assert len(found.roots) == 1
    assert 1e-7 < found.closest < 1e-5
    assert "as they must" in found.report


def test_missing_root_of_either_kind_is_flagged():
    index = simplex_roots(multinomial_majority(0.99), 3, INTERIOR).indices
    assert "as they must" in _plausibility(index, inward=True, n_continuum=0)
    for i in range(len(index)):
        assert "so some are missing" in _plausibility(np.delete(index, i), inward=True, n_continuum=0)


@pytest.mark.parametrize("floor", [2e-16, 1e-40])
def test_roots_next_to_corners_have_full_relative_accuracy(floor):
    """Majority rule with a floor: at leading order both minorities of a consensus are the floor."""
    space = meanfield.MemorySpace(3, 2)
    q = np.full((space.n_states, 3), floor)
    for i in range(space.n_states):
        counts = np.bincount(np.ravel(space.memory(i)).astype(int), minlength=3)
        q[i, counts == counts.max()] = 1 / (counts == counts.max()).sum()
    q /= q.sum(1, keepdims=True)
    found = simplex_roots(response_of(meanfield.make_policy(q, ["a", "b", "c"])), 3, INTERIOR)
    corners = found.roots[found.roots.max(1) > 0.999]
    assert len(corners) == 3
    for row in corners:
        np.testing.assert_allclose(np.sort(row)[:2], floor, rtol=1e-3)


def test_a_face_that_is_left_has_no_roots():
    found = simplex_roots(response_of(random_policy(1, 3, 1)), 3, (0, 1))
    assert not len(found.roots) and "other words are said" in found.report


def half_way(Q):
    """Moves the first share to 1/2 and leaves the proportion of the others: a curve of roots."""
    first = 0.5 * Q[:, :1] + 0.25
    return np.concatenate([first, (1 - first) * Q[:, 1:] / Q[:, 1:].sum(1, keepdims=True)], axis=1)


@pytest.mark.parametrize("response", [lambda Q: Q, half_way], ids=["all shares", "a curve"])
def test_a_continuum_is_said_not_sampled(response):
    found = simplex_roots(response, 3, INTERIOR)
    assert not len(found.roots) and "on a continuum of fixed points" in found.report
    np.testing.assert_allclose(response(found.continuum), found.continuum, atol=1e-9)


@pytest.mark.parametrize(("zeros", "index"), [([0.5, 0.5, 4.0], [0, 1]), ([0.5, 0.5, 0.5], [0])])
def test_degenerate_root_is_one_root(zeros, index):
    response, expected = planted(zeros)
    found = simplex_roots(response, 3, INTERIOR)
    assert sorted(found.indices) == index
    assert np.abs(np.log(found.roots / expected[0])).max(1).min() < 1e-4
    assert "a root is singular" in found.report


@pytest.mark.parametrize("error", [1e-5, 1e-7])
def test_almost_a_continuum_has_its_one_root(error):
    """Copies what was heard, but for rare errors towards words in the proportion 1 to 2 to 3."""
    target = np.array([1, 2, 3]) / 6
    found = simplex_roots(lambda Q: (1 - error) * Q + error * target, 3, INTERIOR)
    np.testing.assert_allclose(found.roots, [target], rtol=1e-6)
