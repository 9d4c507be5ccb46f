"""Fixed points against closed forms, an independent search over the simplex, and published landscapes."""

import numpy as np
import pytest
from scipy.optimize import root
from scipy.stats import dirichlet

import meanfield
from conftest import random_policy, relabelled
from meanfield._closed_classes import closed_classes, flow_successors
from meanfield._stationary import StationaryLaw


def simplex_search(policy, starts, seed=0):
    """Word shares of all fixed points that Newton iteration on the full rate equation meets from random starts."""
    q, space = policy["q"].values, meanfield.space_of(policy)

    def equations(x):
        drift = np.asarray(meanfield.drift(x, q, space))
        return np.append(drift[1:], x.sum() - 1)

    found = []
    for x0 in dirichlet.rvs(np.full(space.n_states, 0.3), size=starts, random_state=seed):
        result = root(equations, x0, method="hybr", tol=1e-13)
        if result.success and result.x.min() > -1e-9 and np.abs(equations(result.x)).max() < 1e-11:
            found.append((result.x @ q)[0])
    return np.unique(np.round(found, 7))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length", [1, 2])
def test_no_fixed_point_is_missed_that_a_search_over_the_simplex_finds(seed, length):
    policy = random_policy(seed, 2, length, concentration=0.15)
    ours = meanfield.fixed_points(policy)["word_share"].values[:, 0]
    for share in simplex_search(policy, starts=40):
        assert np.abs(ours - share).min() < 1e-6
    assert len(ours) % 2 == 1, "G(0) ≥ 0 ≥ G(1), so that roots that are crossed come in odd number"


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_fixed_points_of_the_rate_equation(seed):
    policy = random_policy(seed, 2, 3, concentration=0.2)
    points = meanfield.fixed_points(policy)
    assert points["residual"].max() < 1e-14
    np.testing.assert_allclose(points["composition"].sum("state"), 1, atol=1e-14)
    np.testing.assert_allclose(points["composition"].values @ policy["q"].values, points["word_share"], atol=1e-14)
    for _, point in points.groupby("fixed_point"):
        point = point.squeeze()
        leading = meanfield.spectrum(policy, point["composition"], k=1)["eigenvalue"].values[0]
        assert leading == pytest.approx(point["eigenvalue"].item(), abs=1e-9)


def test_closed_form_of_one_remembered_word():
    """H = 1 and a policy of the partner's word only, q = α + β [heard the first]: Q = α + βQ at a fixed point."""
    alpha, beta = 0.1, 0.7
    first = np.array([0.5, alpha + beta, alpha, alpha + beta, alpha])
    point = meanfield.fixed_points(meanfield.make_policy(first, ["a", "b"]))
    assert point["word_share"].values[:, 0] == pytest.approx([alpha / (1 - beta)], abs=1e-12)
    # ε = δQ obeys dε/dt = (β - 1)ε
    assert point["eigenvalue"].values == pytest.approx([beta - 1], abs=1e-12)


def test_relabelling_mirrors_the_fixed_points():
    policy = random_policy(4, 2, 2, concentration=0.1)
    ours, theirs = meanfield.fixed_points(policy), meanfield.fixed_points(relabelled(policy, [1, 0]))
    np.testing.assert_allclose(ours["word_share"].values[::-1, ::-1], theirs["word_share"], atol=1e-12)
    np.testing.assert_allclose(ours["eigenvalue"].values[::-1], theirs["eigenvalue"], atol=1e-9)


def majority_policy(length, p):
    """Say the word that one has heard more often, with probability p; a coin where both were heard equally often."""
    space = meanfield.MemorySpace(2, length)
    heard = [sum(1 if partner == 0 else -1 for _, partner in space.memory(i)) for i in range(space.n_states)]
    return meanfield.make_policy(np.array([0.5 + (p - 0.5) * np.sign(h) for h in heard]), ["a", "b"])


def test_symmetric_policy_has_the_pitchfork_of_its_closed_form():
    """Three heard words, majority rule with error 1 - p: Q = (1 - p) + (2p - 1)(3Q² - 2Q³)."""
    p = 0.995
    points = meanfield.fixed_points(majority_policy(3, p))
    roots = np.roots([-2 * (2 * p - 1), 3 * (2 * p - 1), -1, 1 - p])
    np.testing.assert_allclose(points["word_share"].values[:, 0], np.sort(roots.real)[::-1], atol=1e-12)
    assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]
    assert points["kind"].values.tolist() == ["consensus", "mixed", "consensus"]


def test_exact_corners_are_found_exactly():
    points = meanfield.fixed_points(majority_policy(3, 1.0))
    assert points["word_share"].values[:, 0].tolist() == [1.0, pytest.approx(0.5, abs=1e-12), 0.0]
    assert points["residual"].values[[0, 2]].tolist() == [0.0, 0.0]


def test_each_closed_class_has_its_branch():
    """Agents who repeat their own last word for ever: two closed classes, and a consensus in each."""
    repeat_own = np.array([0.5, 1.0, 1.0, 0.0, 0.0])
    policy = meanfield.make_policy(repeat_own, ["a", "b"])
    space = meanfield.space_of(policy)
    assert len(closed_classes(policy["q"].values, space, heard=(0, 1))) == 2
    points = meanfield.fixed_points(policy)
    assert set(points["word_share"].values[:, 0].tolist()) == {0.0, 1.0}
    assert "2 closed class(es)" in points.attrs["completeness"]


def test_stationary_law_is_that_of_the_kernel():
    """p(Q) from the chain of flows against the eigenvector of A(Q) on all states, and close to a corner."""
    policy = random_policy(9, 2, 2, concentration=0.2)
    q, space = policy["q"].values, meanfield.space_of(policy)
    law = StationaryLaw(q, space, np.arange(len(flow_successors(space))))
    for share in (0.3, 1e-12):
        Q = np.array([share, 1 - share])
        A = np.zeros((space.n_states,) * 2)
        for own in range(2):
            for partner in range(2):
                A[np.arange(space.n_states), space.successors() + 2 * own + partner] += q[:, own] * Q[partner]
        p = law.composition(Q)
        np.testing.assert_allclose(p @ A, p, rtol=1e-12)
        np.testing.assert_allclose(law.word_share(Q), p @ q, rtol=1e-12)


def test_landscape_of_published_policies(published):
    def shares(model, pair):
        return meanfield.fixed_points(published.sel(model=model, pair=pair))

    her = shares("llama31_70B", "his/her")
    assert her["word_share"].values[:, 0] == pytest.approx([1.0, 0.310, 0.208], abs=1e-3)
    assert her["kind"].values.tolist() == ["consensus", "mixed", "mixed"]
    assert shares("llama31_70B", "more/less")["word_share"].values[:, 0] == pytest.approx([0.885], abs=1e-3)
    gpt = shares("gpt-4o", "African/White")
    assert gpt["stability"].values.tolist() == ["stable", "unstable", "stable"]
    assert gpt["word_share"].values[0, 0] == 1.0, "q = 1 exactly in the consensus memory"


def test_wrong_input_is_named():
    with pytest.raises(meanfield.InputError, match="3 words: fixed points are found for two"):
        meanfield.fixed_points(random_policy(1, 3, 1))
    with pytest.raises(meanfield.InputError, match="memory_length = 7"):
        meanfield.fixed_points(random_policy(1, 2, 7))
