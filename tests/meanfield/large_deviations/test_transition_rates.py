"""Rates between several attractors: exact chains, symmetries, words that are hardly said, and what has no rate."""

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csc_array, eye_array
from scipy.sparse.linalg import LinearOperator, eigs, splu

import meanfield
from _communities import undecided
from _exact_chains import ExactChain
from _metastable import follower
from meanfield import InputError, escape_path, lifetime, transition_rates
from meanfield._large_deviations.escape import escape
from meanfield._large_deviations.exits import landscape

pytestmark = pytest.mark.usefixtures("unchecked_types")

SIZES = [40, 80, 160]
SPOKEN = 1e-8  # how often a word is said that hardly exists


def conformist(lean, n_words=3):
    """H = 2: agents prefer words that they remember more often, and err; `lean` are preferences, in logarithms."""
    space = meanfield.MemorySpace(n_words, 2)
    counts = np.array(
        [np.bincount(np.array(space.memory(i), int).ravel(), minlength=n_words) for i in range(space.n_states)]
    )
    q = np.exp(3.0 * counts + np.array(lean))
    return meanfield.make_policy(0.94 * q / q.sum(1, keepdims=True) + 0.06 / n_words, list("ABC"[:n_words]))


@pytest.mark.slow
def test_conventions_that_are_alike_are_left_alike():
    found = transition_rates(conformist([0, 0, 0]), n_agents=[10])
    barriers = found["barrier"].values[~np.eye(3, dtype=bool)]
    np.testing.assert_allclose(barriers, barriers[0], rtol=1e-9)
    np.testing.assert_allclose(found["potential"], 0, atol=1e-9)
    assert len(np.unique(found["saddle"].values)) == 4, "three saddles, and none on the diagonal"
    np.testing.assert_allclose(found["stationary"], 1 / 3, rtol=1e-6)
    lived = lifetime(conformist([0, 0, 0]), n_agents=[10])
    np.testing.assert_allclose(lived["barrier"], barriers[0], rtol=1e-9)
    np.testing.assert_allclose(lived["lifetime"] * found["rate"].max() * 2, 1, rtol=1e-6)


@pytest.mark.slow
def test_a_word_that_is_hardly_said_changes_nothing():
    two = follower(0.05, tie=0.52)
    small, space = meanfield.MemorySpace(2, 2), meanfield.MemorySpace(3, 2)
    q = np.tile([0.5, 0.5, 0.0], (space.n_states, 1))
    memories = [space.memory(i) for i in range(space.n_states)]
    for i in range(small.n_states):
        q[memories.index(small.memory(i)), :2] = two["q"].values[i]
    three = meanfield.make_policy((1 - SPOKEN) * q + SPOKEN * np.array([0, 0, 1]), ["A", "B", "C"])
    found = transition_rates(three, n_agents=[10])
    barriers = [escape_path(two, fixed_point=k).attrs["barrier"] for k in (0, 2)]
    np.testing.assert_allclose(found["barrier"].values[[0, 1], [1, 0]], barriers, rtol=1e-4)


def three_ways():
    """H = 4: agents who remember both words about equally often toss a coin."""
    space, first = meanfield.MemorySpace(2, 4), np.array([0.99, 0.99, 0.6, 0.5, 0.5, 0.5, 0.4, 0.01, 0.01])
    count = np.array([sum(map(sum, space.memory(i))) for i in range(space.n_states)])
    full = np.array([len(space.memory(i)) == 4 for i in range(space.n_states)])
    return meanfield.make_policy(np.where(full, first[count], 0.5), ["A", "B"])


@pytest.mark.slow
def test_a_state_between_two_conventions_is_on_the_way():
    found = transition_rates(three_ways(), n_agents=[10])
    assert found.sizes["fixed_point"] == 3
    assert np.isinf(found["barrier"].values[[0, 2], [2, 0]]).all()
    assert "no saddle leads directly" in found["reason"].values[0, 2]
    assert (found["rate"].values[[0, 2], [2, 0]] == 0).all()
    out, back = found["barrier"].values[[0, 2], 1], found["barrier"].values[1, [0, 2]]
    for pair in (out, back, found["potential"].values[[0, 2]]):
        assert pair[0] == pytest.approx(pair[1], rel=1e-4, abs=1e-6)
    heights = np.maximum(0, [back[0] - out[0], out[0] - back[0], back[0] - out[0]])
    np.testing.assert_allclose(found["potential"], heights, atol=1e-6)


@pytest.mark.slow
def test_the_saddle_of_a_path_can_be_chosen():
    policy = conformist([0.0, -0.05, -0.1])
    points = meanfield.fixed_points(policy)
    lowest = escape_path(policy, fixed_point=0)
    assert points["stability"].values.tolist() == ["stable", *["unstable"] * 4, "stable", "stable"]
    other = escape_path(policy, fixed_point=0, saddle=3 - lowest.attrs["saddle"])
    assert other.attrs["barrier"] > lowest.attrs["barrier"] + 0.01
    with pytest.raises(InputError, match=r"saddle = 4: expected one next to the attractor 0: \[1, 2\]"):
        escape_path(policy, fixed_point=0, saddle=4)


@cache
def uncoupled():
    return transition_rates(undecided(communities=2, encounter_rate=2.0), masses=[0.5, 0.5], n_agents=SIZES)


def exact_lifetimes(n_agents):
    """Lifetimes of one community of two whose members find partners among all agents."""
    half = n_agents // 2
    chain = ExactChain(undecided(encounter_rate=2 * (half - 1) / (n_agents - 1)), [half])
    places = 2 * uncoupled()["composition"].values[[0, -1], :3]
    near = [np.abs(chain.counts / half - x).sum(1) < 0.1 + 1 / half for x in places]
    return [chain.first_passage(places[i], near[1 - i]) for i in range(2)]


@pytest.mark.slow
def test_communities_apart_change_one_by_one():
    """Rates tend to the exact ones of one community, with errors that halve as N doubles."""
    found, off = uncoupled(), []
    assert found.sizes["fixed_point"] == 4 and found.attrs["reason"] == ""
    for n in SIZES:
        rate, lived = found["rate"].sel(n_agents=n).values, exact_lifetimes(n)
        off.append([rate[0, 1] * lived[0] - 1, rate[3, 1] * lived[1] - 1])
        np.testing.assert_allclose(rate[1:3, 3], rate[0, 1], rtol=1e-4)
        np.testing.assert_allclose(rate[1:3, 0], rate[3, 1], rtol=1e-4)
        assert rate[0, 3] == rate[3, 0] == 0
        np.testing.assert_allclose(found["lifetime"].sel(n_agents=n), 1 / rate.sum(1), rtol=1e-12)
        first, _, _, last = law = found["stationary"].sel(n_agents=n).values
        np.testing.assert_allclose(law, np.outer(*2 * [np.sqrt([first, last])]).ravel(), rtol=1e-4)
    off = np.array(off)
    assert (np.abs(off[-1]) < 0.02).all()
    np.testing.assert_allclose(off[:-1] / off[1:], 2, rtol=0.1)


@pytest.mark.slow
def test_coupled_communities_have_the_slow_modes_and_the_law_of_their_exact_chain():
    """The three slow eigenvalues and the law; the control is the law without coupling."""
    model, sizes = undecided(communities=2, encounter_rate=2.0, coupling=0.05), [12, 24]
    found, off = transition_rates(model, masses=[0.5, 0.5], n_agents=sizes), []
    x = found["composition"].values
    for n in sizes:
        chain = ExactChain(model, [n // 2, n // 2])
        exact, law = slow_modes(chain.generator)
        nearest = np.abs(chain.counts[:, None] / n - x).sum(2).argmin(1)
        at = np.bincount(nearest, law)
        rate = found["rate"].sel(n_agents=n).values
        modes = np.sort(np.linalg.eigvals(rate - np.diag(rate.sum(1))).real)[:3]
        off.append([*modes / exact - 1, *found["stationary"].sel(n_agents=n).values / at - 1])
    assert np.abs(off[-1]).max() < 0.07
    assert np.abs(off[-1][:2]).max() < 0.4 * np.abs(off[0][:2]).max()
    alone = uncoupled()["potential"].values
    assert np.abs(alone - found["potential"].values).max() > 0.05


def slow_modes(generator):
    """The three eigenvalues next to 0, and the stationary distribution."""
    matrix, shift = csc_array(generator), 1e-4 * eye_array(generator.shape[0])
    inverse = splu(csc_array(matrix + shift))
    operator = LinearOperator(matrix.shape, matvec=inverse.solve, dtype=float)
    start = np.random.default_rng(0).random(matrix.shape[0])
    values = eigs(operator, k=4, which="LM", return_eigenvectors=False, v0=start)
    law = np.ones(len(start))
    nearly = splu(csc_array(matrix.T - 1e-7 * shift))
    for _ in range(3):
        law = np.abs(nearly.solve(law))
        law /= law.sum()
    return np.sort((1 / np.asarray(values)).real - 1e-4)[:3], law


@pytest.mark.slow
def test_a_path_that_reaches_its_saddle_sideways_has_no_prefactor():
    """Three opinions: the saddle between two of them attracts more slowly than it repels."""
    model = three_opinions(0.13)
    ground = landscape(model, None)
    found = escape(ground, ground.ways_out(0)[0], with_prefactor=True)
    assert found.barrier == pytest.approx(0.18949744, abs=1e-7)
    assert found.prefactor is None and "sideways" in found.reason


def three_opinions(errs):
    names, one, moves = ["A", "B", "C", "?"], np.eye(4), []
    for heard in range(3):
        move = np.eye(4)
        move[:3] = one[3]
        move[heard] = move[3] = one[heard]
        moves.append(move)
    alone = errs * np.array([[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], [1 / 3, 1 / 3, 1 / 3, 0]])
    return meanfield.ReactionModel(names, np.ones((3, 4)), np.eye(4)[:3], moves, None, alone)


def test_conventions_that_are_never_left_have_no_law():
    found = transition_rates(follower(0.0), n_agents=[10])
    assert (found["rate"] == 0).all() and np.isinf(found["lifetime"]).all()
    assert found["stationary"].isnull().all()
    assert found.attrs["reason"] == "2 sets of attractors are never left: the start decides"


def test_agents_are_at_the_only_attractor_all_the_time():
    found = transition_rates(follower(0.4), n_agents=[10, 1000])
    assert found.sizes["fixed_point"] == found.sizes["next_fixed_point"] == 1
    assert (found["stationary"] == 1).all() and found["potential"].item() == 0
    assert found.attrs["reason"] == ""
