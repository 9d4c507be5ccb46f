"""Fixed points against closed forms, an independent search over the simplex, and published landscapes."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit
from scipy.stats import dirichlet

import meanfield
from _battery import FAMILIES, memories, policy_of
from _policies import drift, loyal_policy, majority_policy, random_policy
from meanfield import MemorySpace, make_policy
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_distribution import StationaryDistribution
from meanfield._numerics.roots import all_roots
from meanfield.toolbox import space_of


def simplex_search(policy, starts, weights):
    """Word shares of all fixed points that Newton iteration on the full rate equation meets from random starts."""
    q = policy["q"].values

    def equations(x):
        return np.append(np.asarray(drift(x, q))[1:], x.sum() - 1)

    found = []
    for x0 in dirichlet.rvs(weights, size=starts, random_state=0):
        result = root(equations, x0, method="hybr", tol=1e-13)
        if result.x.min() > -1e-9 and np.abs(equations(result.x)).max() < 1e-11:
            found.append(result.x @ q)
    return np.unique(np.round(found, 7), axis=0)


@pytest.mark.usefixtures("unchecked_types")
def test_no_fixed_point_is_missed_that_a_search_over_the_simplex_finds():
    policy = random_policy(1, 2, 2, concentration=0.15)
    ours = meanfield.fixed_points(policy)["word_share"].values[:, 0]
    for share in simplex_search(policy, 40, np.full(policy.sizes["state"], 0.3)):
        assert np.abs(ours - share[0]).min() < 1e-6
    assert len(ours) % 2 == 1, "G(0) ≥ 0 ≥ G(1), so that roots that are crossed come in odd number"


def test_rows_are_fixed_points_of_the_rate_equation():
    policy = random_policy(1, 2, 3, concentration=0.2)
    points = meanfield.fixed_points(policy)
    assert points["residual"].max() < 1e-14
    np.testing.assert_allclose(points["composition"].sum("state"), 1, atol=1e-14)
    np.testing.assert_allclose(points["composition"].values @ policy["q"].values, points["word_share"], atol=1e-14)
    for _, point in points.groupby("fixed_point"):
        leading = meanfield.spectrum(policy, point.squeeze()["composition"], k=1)["eigenvalue"].item()
        assert leading == pytest.approx(point["eigenvalue"].item(), abs=1e-9)


def test_closed_form_of_one_remembered_word():
    """H = 1 and a policy of the partner's word only, q = α + β [heard the first]: Q = α + βQ at a fixed point."""
    alpha, beta = 0.1, 0.7
    first = np.array([0.5, alpha + beta, alpha, alpha + beta, alpha])
    point = meanfield.fixed_points(meanfield.make_policy(first, ["a", "b"]))
    assert point["word_share"].values[:, 0] == pytest.approx([alpha / (1 - beta)], abs=1e-12)
    # ε = δQ obeys dε/dt = (β - 1)ε
    assert point["eigenvalue"].values == pytest.approx([beta - 1], abs=1e-12)


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
    space = space_of(policy)
    assert len(closed_classes(policy["q"].values, space, heard=(0, 1))) == 2
    points = meanfield.fixed_points(policy)
    assert set(points["word_share"].values[:, 0].tolist()) == {0.0, 1.0}
    assert "Class 1" in points.attrs["completeness"]


@pytest.mark.parametrize(("size", "concentration"), [((2, 3), 0.03), ((3, 2), 0.03)])
def test_stationary_law_is_that_of_the_kernel(size, concentration):
    """p(Q) solves p A(Q) = p on all states, entry by entry, close to a corner too."""
    policy = random_policy(9, *size, concentration=concentration)
    q, space = policy["q"].values, space_of(policy)
    words = range(space.n_words)
    (flows,) = closed_classes(q, space, heard=tuple(words))
    law = StationaryDistribution(q, space, flows)
    for share in (0.3, 1e-12):
        Q = np.array([share, *[(1 - share) / (space.n_words - 1)] * (space.n_words - 1)])
        A = np.zeros((space.n_states,) * 2)
        for own in words:
            for partner in words:
                successors = space.successors() + space.n_words * own + partner
                A[np.arange(space.n_states), successors] += q[:, own] * Q[partner]
        p = law.composition(Q)
        np.testing.assert_allclose(p @ A, p, rtol=1e-9)
        np.testing.assert_allclose(law.word_share(Q[None])[0], p @ q, rtol=1e-12)


def test_planted_pair_of_roots_is_found():
    """Two roots 1e-4 apart, which vanish where the function is a little larger."""
    shift, breaks = 1e-4, np.array([-40.0, -6.0, 0.0, 6.0, 40.0])
    function = lambda x: (x - 0.3) * (x - 0.3 - shift) * (1 + 0.1 * np.sin(3 * x))  # noqa: E731
    assert all_roots(function, breaks).roots == pytest.approx([0.3, 0.3 + shift], rel=0, abs=1e-7)
    none = all_roots(lambda x: function(x) + shift**2, breaks)
    assert none.roots.size == 0
    assert none.closest[0] == pytest.approx(0.75 * shift**2, rel=0.2)


def test_more_noise_than_promised_ends_the_search():
    """x³ and noise of 1e-11: a thousand pieces of an interpolant do not become more accurate."""
    found = all_roots(lambda x: x**3 + 1e-11 * np.sin(1e9 * x), np.array([-3.0, 1.0, 2.0]), rounding=1e-14)
    assert found.unresolved and found.evaluations < 30_000
    assert found.roots == pytest.approx([0], abs=1e-3) and found.slopes.tolist() == [0]


def test_extremum_at_a_break_is_seen():
    found = all_roots(lambda x: x**2 + 1e-7, np.array([-1.0, 0.0, 2.0]))
    assert not len(found.roots) and not found.unresolved
    assert found.closest[:2] == (pytest.approx(1e-7), pytest.approx(0, abs=1e-9))


@pytest.mark.parametrize(("length", "oldest"), [(1, True), (3, False), (6, True)])
def test_copying_leaves_no_fixed_point_that_rounding_makes(length, oldest):
    """Say the oldest of H words heard, or one at random: f(Q) = Q, which sums over all memories give up to rounding."""
    partner = memories(2, length)[1]
    first = ((partner[:, -1:] if oldest else partner) == 0).mean(1)
    first[partner[:, -1] < 0] = 0.5
    points = meanfield.fixed_points(meanfield.make_policy(first, ["a", "b"]))
    assert points["word_share"].values[:, 0].tolist() == [1.0, 0.0]
    assert points.attrs["completeness"].count("Not resolved") == 1
    assert "every share with -46 < logit Q" in points.attrs["completeness"]


@pytest.mark.parametrize("error", [1e-6, 1e-12])
def test_almost_a_continuum_has_its_one_fixed_point(error):
    """Copies what was heard last, but for rare errors, e towards the second word and 3e towards the first: Q = 3/4."""
    copy = np.array([0.5, 1 - error, 3 * error, 1 - error, 3 * error])
    points = meanfield.fixed_points(meanfield.make_policy(copy, ["a", "b"]))
    # 1 - e is rounded to an ulp, which moves the root by as much as e is rounded
    assert points["word_share"].values[:, 0] == pytest.approx([0.75], abs=max(1e-9, 1e-16 / error))


@pytest.mark.parametrize(
    ("find", "error"),
    [
        (meanfield.fixed_points, 1e-14),
        (partial(meanfield.critical_mass, word="a"), 1e-16),
        (meanfield.stability_table, 1e-20),
    ],
)
def test_a_fixed_point_that_rounding_hides_is_not_denied(find, error):
    """Agents who say what they heard last, but for errors."""
    copy = np.array([[0.5, 0.5], *[[1 - error, error], [error, 1 - error]] * 2])
    with pytest.raises(meanfield.ConvergenceError, match=r"rounding hides at which share: .* is a fixed point"):
        find(meanfield.make_policy(copy, ["a", "b"]))


@pytest.mark.parametrize(("error", "length"), [(1e-8, 1), (1e-30, 4)])
def test_habits_that_hardly_ever_change_have_the_share_that_their_errors_give(error, length):
    """Repeat the own last word with errors e and 3e: the shares are 3 to 1 (H = 1: exactly), whatever is heard."""
    space = meanfield.MemorySpace(2, length)
    last = [memory[-1][0] if (memory := space.memory(i)) else 0 for i in range(space.n_states)]
    q = np.where(np.array(last)[:, None] == 0, [1 - error, error], [3 * error, 1 - 3 * error])
    q[0] = 0.5
    points = meanfield.fixed_points(meanfield.make_policy(q, ["a", "b"]))
    assert points["word_share"].values[:, 0] == pytest.approx([0.75], rel=max(1e-9, 4 * error))


def test_defective_eigenvalue_is_not_called_oscillatory():
    """A policy without memory: every eigenvalue is -1 in one Jordan block, which rounding splits into a circle."""
    for length in (1, 3, 5):
        space = meanfield.MemorySpace(2, length)
        points = meanfield.fixed_points(meanfield.make_policy(np.full(space.n_states, 0.3), ["a", "b"]))
        assert not points["oscillatory"].any()
        assert points["eigenvalue"].values == pytest.approx([-1], abs=5e-3)


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


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("loyal", [True, False])
def test_three_words_have_the_fixed_points_that_a_search_over_the_simplex_finds(loyal, length):
    policy = loyal_policy(2, length) if loyal else random_policy(0, 3, length, 0.1)
    points = meanfield.fixed_points(policy)
    assert points["residual"].max() < 1e-12
    assert points.attrs["completeness"].startswith("Not guaranteed")
    assert "add up to 1 as they must" in points.attrs["completeness"]
    ends = simplex_search(policy, 10, np.full(policy.sizes["state"], 0.1))
    assert len(ends)
    for share in ends:
        assert np.abs(points["word_share"].values - share).max(1).min() < 1e-6


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_three_words_have_symmetric_fixed_points():
    """The word heard most in three interactions, at random where all differ: exact corners, edges, and the middle."""
    space = meanfield.MemorySpace(3, 3)
    count = np.array(
        [[sum(heard == w for _, heard in space.memory(i)) for w in range(3)] for i in range(space.n_states)]
    )
    most = (count == count.max(1, keepdims=True)).astype(float)
    policy = meanfield.make_policy(most / most.sum(1, keepdims=True), ["a", "b", "c"])
    points = meanfield.fixed_points(policy)
    expected = [[1, 0, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [1 / 3] * 3, [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    np.testing.assert_allclose(points["word_share"], expected, atol=1e-9)
    assert "does not point inwards" in points.attrs["completeness"]
    assert points["stable"].values.tolist() == [True, False, False, False, True, False, True]
    assert points["convention"].values.tolist() == ["a", "mixed", "mixed", "mixed", "b", "mixed", "c"]


@pytest.mark.parametrize("slip", [1e-15, 1e-250])
def test_consensus_that_is_hardly_ever_left_is_found(slip):
    """The other word's share there is slip/(1 - a), with a the minority choices that one of them calls forth."""
    space = MemorySpace(2, 2)
    lead = np.array([sum(1 - own - partner for own, partner in space.memory(i)) for i in range(space.n_states)])
    second = 1 / (1 + np.exp(3 * lead + 0.3))
    shares = []
    for least in (slip, 1e-12):
        second[space.consensus_state(0)] = least
        points = meanfield.fixed_points(make_policy(np.stack([1 - second, second], axis=1), ("A", "B")))
        assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]
        shares.append(points["word_share"].sel(word="B").values)
    assert shares[0][0] / slip == pytest.approx(shares[1][0] / 1e-12, rel=1e-6)
    np.testing.assert_allclose(shares[0][1:], shares[1][1:], rtol=1e-8)
    second[space.consensus_state(0)] = 1e-300
    points = meanfield.fixed_points(make_policy(np.stack([1 - second, second], axis=1), ("A", "B")))
    assert points["word_share"].sel(word="B").values[0] == pytest.approx(1e-300), "as if they never left it"


@pytest.mark.parametrize("beyond", [-1e-3, 0.0, 1e-9])
def test_roots_at_the_end_of_the_search_are_found(beyond):
    """Says a only if it heard nothing else twice: Q = c + (1 - c) Q², with c where the search for roots may stop."""
    space = meanfield.MemorySpace(2, 2)
    heard = [[b for _, b in space.memory(i)] for i in range(space.n_states)]
    policy = meanfield.make_policy(np.array([float(words == [0, 0]) for words in heard]), ["a", "b"])
    c = expit(-46 + beyond)
    points = meanfield.fixed_points(meanfield.Population(policy, committed={"a": c}))
    np.testing.assert_allclose(points["word_share"].values[-1, 0], c, rtol=1e-9)


@pytest.mark.parametrize(("length", "seed", "number"), [(3, 1, 116), (5, 0, 571)])
def test_words_that_are_never_said_make_no_fixed_points_of_rounding(length, seed, number):
    """Products of the shares of rare words, of which an agent needs many in a row here, underflow far out."""
    policy = policy_of(FAMILIES["exact_corners"](np.random.default_rng([seed, 2, length, number]), 2, length), "rare")
    points = meanfield.fixed_points(policy)
    q, space = policy["q"].values, MemorySpace(2, length)
    (closed,) = closed_classes(q, space, heard=(0, 1))
    logits = np.arange(-40, 40, 0.25)
    law, laws = StationaryDistribution(q, space, closed), np.empty((len(logits), space.n_full // 2))
    law._eliminate(expit(np.stack([logits, -logits], axis=1)), laws)
    g = np.log(laws[:, ::2].sum(1)) - np.log(laws[:, 1::2].sum(1)) - logits
    assert np.count_nonzero(np.diff(np.sign(g))) == np.count_nonzero(points["branch"] >= 0)
    assert points["residual"].max() < 1e-11


def test_iteration_that_ends_without_eigenvectors_is_replaced():
    """ARPACK can't order the Schur form of this matrix, all of whose eigenvalues but one are alike."""
    policy = policy_of(FAMILIES["constant"](np.random.default_rng([1, 2, 5, 713]), 2, 5), "constant")
    points = meanfield.fixed_points(policy)
    assert points["eigenvalue"].values == pytest.approx([-1], abs=1e-6)
