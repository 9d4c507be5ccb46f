"""Pair approximation: agents with a number of neighbours each, who remember each other."""

import networkx
import numpy as np
import pytest
import xarray as xr
from jax.test_util import check_grads

import meanfield
import validation
from _metastable import follower
from _policies import random_policy
from meanfield import InputError, Population, core

pytestmark = pytest.mark.usefixtures("unchecked_types")


POLICY = follower(0.02, words="ab")
HALF = meanfield.make_policy(np.array([0.5, 1.0, 0.5, 0.5, 0.0]), ["a", "b"])  # copies itself or its partner


def random_edges(game, seed=0):
    """Neighbours who know of each other."""
    n, committed = len(game.q), np.asarray(game.committed)
    free, rng = 1 - committed.sum(), np.random.default_rng(seed)
    both = rng.random((n, n))
    beside = rng.random((n, len(committed)))
    both = (both + both.T) * free**2 / (2 * both.sum())
    return np.concatenate([both, beside * free * committed / beside.sum(0)], axis=1)


@pytest.mark.parametrize(("n_words", "length"), [(2, 2), (3, 1)])
def test_drift_is_the_sum_over_both_ends_of_an_edge_and_a_third_agent(n_words, length):
    policy, degree = random_policy(1, n_words, length), 3.5
    q, n = policy["q"].values, policy.sizes["state"]
    committed = 0.1 * np.random.default_rng(2).random(n_words)
    game = core.EdgeGame(q, committed, degree)
    x = random_edges(game)
    said = np.concatenate([q, np.eye(n_words)])
    after = meanfield.MemorySpace(n_words, length).successors()[:, None, None] + np.arange(n_words**2).reshape(
        n_words, n_words
    )
    after = np.concatenate([after, np.broadcast_to(np.arange(n, n + n_words)[:, None, None], (n_words,) * 3)])
    expected = np.zeros((n + n_words, n + n_words))
    for a, b, w, v in np.ndindex(n, n + n_words, n_words, n_words):
        met = x[a, b] * said[a, w] * said[b, v] / degree
        expected[a, b] -= met
        expected[after[a, w, v], after[b, v, w]] += met
        for c in range(n + n_words):  # another neighbour of a
            met = (1 - 1 / degree) * x[a, b] * x[a, c] / x[a].sum() * said[a, w] * said[c, v]
            expected[a, b] -= met
            expected[after[a, w, v], b] += met
            if b < n:
                expected[b, a] -= met
                expected[b, after[a, w, v]] += met
    np.testing.assert_allclose(core.drift(game, x), expected[:n], atol=1e-16)


@pytest.mark.slow
def test_both_ends_of_an_edge_stay_alike():
    game = core.EdgeGame(POLICY["q"].values, np.array([0.1, 0.05]), 3.0)
    x = random_edges(game)
    trajectories = core.trajectory(game, x, np.linspace(0.0, 30.0, 16)).observed
    both = trajectories[:, :, :21]
    np.testing.assert_allclose(both, both.swapaxes(1, 2), atol=1e-14)
    np.testing.assert_allclose(both.sum((1, 2)), 0.85**2, atol=1e-13)
    np.testing.assert_allclose(trajectories[:, :, 21:].sum(1), np.broadcast_to([0.085, 0.0425], (16, 2)), atol=1e-13)
    assert trajectories.min() > -1e-12


def test_many_neighbours_are_everybody():
    """Their error is of 1/degree."""
    start = xr.concat([meanfield.consensus(POLICY, "b"), meanfield.empty_memories(POLICY)], "start")
    mixed, near, far = (
        meanfield.solve(
            Population(POLICY, committed={"a": 0.1}, degree=degree), initial=start, times=[0, 10, 300], max_time=300
        )
        for degree in (None, 1e3, 1e6)
    )
    assert (mixed.attrs["method"], far.attrs["method"]) == ("mean field", "pair approximation")
    for name in ("word_share", "composition"):
        off = [abs(one[name] - mixed[name]).max().item() for one in (near, far)]
        assert off[1] < 1e-5
        assert 300 < off[0] / off[1] < 3000
    masses = [
        meanfield.critical_mass(Population(POLICY, committed={"b": 0.02}, degree=k), word="a") for k in (None, 1e7)
    ]
    for name in ("critical_mass", "word_share", "old_word_share"):
        np.testing.assert_allclose(*(one[name] for one in masses), atol=1e-5)


def correlation_of_neighbours(degree, mean):
    """<s s'> - <s>² of copying agents on a random graph whose mean s of ±1 is kept, as long as no word has won.

    Both of a pair move to the mean s of their words, so that <s²> = (1 + <s s'>)/2. Correlations at the distance d are
    harmonic, A/(k - 1)^d, for d > 0, and those of neighbours balance if
    (1 - <s s'>)/2 = (k - 1)(A/(k - 1) - A/(k - 1)²).
    """
    return (1 - mean**2) / (2 * degree - 3)


@pytest.mark.parametrize(("degree", "share", "off"), [(3.0, 0.5, 0.06), (16.0, 0.3, 0.01)])
def test_copying_keeps_the_mean_and_nearly_its_interfaces(degree, share, off):
    game = core.EdgeGame(HALF["q"].values, np.zeros(2), degree)
    start = np.array([0.0, share, 0.0, 0.0, 1 - share])
    observed = core.trajectory(game, game.independent(start), np.array([0.0, 1.0, 400.0])).observed
    np.testing.assert_allclose([game.word_share(x)[0] for x in observed], share, atol=1e-9)
    s = np.array([0.0, 1.0, 0.0, 0.0, -1.0])
    found = s @ observed[-1][:, :5] @ s - (2 * share - 1) ** 2
    assert found == pytest.approx(correlation_of_neighbours(degree, 2 * share - 1), rel=off)


def test_interfaces_of_copying_are_those_of_a_graph():
    found = validation.simulate(
        HALF, n_agents=20_000, runs=2, seed=1, max_rounds=30, record_rounds=30, record=["success_rate"],
        initial=np.array([0.0, 0.5, 0.0, 0.0, 0.5]),
        topology=lambda n, seed: networkx.random_regular_graph(4, n, seed=seed),
    )["success_rate"].isel(round=slice(-10, None)).mean().item()  # fmt: skip
    assert 2 * found - 1 == pytest.approx(correlation_of_neighbours(4, 0), abs=0.02)


@pytest.mark.slow
def test_names_of_words_do_not_matter():
    policy = random_policy(3, 2, 2)
    said, heard = (policy["word"].values for _ in range(2))
    space = meanfield.MemorySpace(2, 2)
    turned = [space.state([(1 - a, 1 - b) for a, b in space.memory(i)]) for i in range(space.n_states)]
    other = meanfield.make_policy(policy["q"].values[turned][:, ::-1][:, 0], [*said[::-1]])
    ours, theirs = (
        meanfield.solve(Population(one, committed={str(heard[0]): 0.1}, degree=3), times=[0, 1, 50])["word_share"]
        for one in (policy, other)
    )
    np.testing.assert_allclose(ours, theirs.sel(word=ours.word), atol=1e-12)


@pytest.mark.slow
def test_derivatives():
    start = meanfield.consensus(POLICY, "b").values

    def share(q, committed, degree):
        game = core.EdgeGame(q, committed, degree)
        x = game.independent(start * (1 - committed.sum()))
        return core.trajectory(game, x, np.array([0.0, 3.0]), observe=game.word_share).observed[-1, 0]

    check_grads(share, (POLICY["q"].values, np.array([0.1, 0.02]), 4.0), 1, ["rev"], rtol=1e-4, atol=1e-6)


def test_critical_mass_is_where_the_old_state_ends():
    found = meanfield.critical_mass(Population(POLICY, degree=8), word="a")
    fold = found["critical_mass"].item()
    assert (found.attrs["transition"], found.attrs["method"]) == ("fold", "pair approximation")
    assert found["fold_parameter"].values == [fold]
    start = meanfield.consensus(POLICY, "b")
    below, above = (
        meanfield.solve(Population(POLICY, committed={"a": part * fold}, degree=8), initial=start)
        for part in (0.99, 1.01)
    )
    said = [(one["composition"] @ POLICY["q"]).sel(word="a").item() for one in (below, above)]
    assert said[0] < found["word_share"].sel(word="a") < 0.35 < 0.9 < said[1]
    more = meanfield.critical_mass(Population(POLICY, degree=8, committed={"a": 0.01}))
    assert (more["critical_mass"] - fold, more["already_there"]) == (pytest.approx(0, abs=1e-8), 0.01)
    swapped = meanfield.critical_mass(Population(POLICY, degree=8), word="b")
    assert swapped["critical_mass"] == pytest.approx(fold, abs=1e-8)
    np.testing.assert_allclose(swapped["word_share"], found["word_share"][::-1], atol=1e-5)


@pytest.mark.slow
def test_critical_mass_is_that_of_a_graph():
    """It is below that of strangers, 0.139."""
    fold = meanfield.critical_mass(Population(POLICY, degree=8), word="a")["critical_mass"].item()
    n, ends = 20_000, []
    for part in (0.94, 1.08):
        ends += [
            validation.simulate(
                POLICY, n_agents=n, runs=1, seed=1, max_rounds=300, record_rounds=300, initial="b",
                committed={"a": round(part * fold * n)},
                topology=lambda n, seed: networkx.random_regular_graph(8, n, seed=seed),
            )["word_share"].sel(word="a", round=300).item()
        ]  # fmt: skip
    assert ends[0] < 0.4 < 0.9 < ends[1]


def test_no_critical_mass_says_why():
    sure = follower(0.0, words="ab")
    short = follower(0.02, length=1, words="ab")
    with pytest.raises(InputError, match="old = 'a'"):
        meanfield.critical_mass(Population(POLICY, degree=4), word="a", old="a")
    for policy, degree, reason in (
        (sure, 3, "gradually and never vanishes; most others say the other word from 0.307 on"),
        (POLICY, 2, "'b' does not last"),
        (short, 4, "'b' does not last"),
        (HALF, 4, "'b' does not last"),
    ):
        found = meanfield.critical_mass(Population(policy, degree=degree), word="a")
        assert np.isnan(found["critical_mass"])
        assert found.attrs["reason"].endswith(reason)


def test_critical_mass_of_agents_who_do_not_err():
    """All others agree at the start, and memories do not occur from which Newton's method could set out."""
    sure = follower(0.0, words="ab")
    far, everybody = (meanfield.critical_mass(Population(sure, degree=k), word="a") for k in (1e7, None))
    np.testing.assert_allclose(far["critical_mass"], everybody["critical_mass"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("length", "degree", "share", "by_pairs", "rounds", "rounds_by_pairs"),
    [
        (1, 16, 0.670, 0.667, 9.5, 9.5), (1, 8, 0.657, 0.653, 10.4, 10.6), (1, 4, 0.621, 0.614, 14.8, 15.4),
        (2, 16, 0.178, 0.179, 10.4, 10.4), (2, 8, 0.199, 0.207, 11.5, 12.3), (2, 4, 0.247, 0.251, 15.7, 32.0),
        (3, 16, 0.131, 0.134, 20.1, 21.0), (3, 8, 0.141, 0.154, 22.8, 28.9), (3, 4, 0.168, 0.198, 32.3, np.nan),
    ],
)  # fmt: skip
def test_the_table_of_networks(length, degree, share, by_pairs, rounds, rounds_by_pairs):
    """With other seeds than those of the page: simulated shares and times are within four errors of two means."""
    policy = follower(0.02, length=length, words="ab")
    start, n = meanfield.consensus(policy, "b"), 20_000

    def trajectories(committed, last):
        runs = validation.simulate(
            policy, n_agents=n, runs=5, seed=2, max_rounds=last, record_rounds=last, initial="b",
            committed={"a": round(committed * n)},
            topology=lambda n, seed: networkx.random_regular_graph(degree, n, seed=seed),
        )["word_share"].sel(word="a").squeeze().values  # fmt: skip
        pairs = meanfield.solve(
            Population(policy, committed={"a": committed}, degree=degree), initial=start,
            times=np.arange(20 * last + 1) / 10, max_time=2 * last,
        )["word_share"].sel(word="a").values  # fmt: skip
        return runs, pairs

    def reached(trajectory, step):
        i = np.argmax(trajectory >= 0.9)
        return step * (i - 1 + (0.9 - trajectory[i - 1]) / (trajectory[i] - trajectory[i - 1])) if i else np.nan

    runs, pairs = trajectories(0.1, 10)
    assert runs[:, -1].mean() == pytest.approx(share, abs=0.012)
    assert pairs[-1] == pytest.approx(by_pairs, abs=6e-4)
    runs, pairs = trajectories(0.3, 60)
    assert np.mean([reached(run, 1) for run in runs]) == pytest.approx(rounds, abs=4 * np.sqrt(2) * 0.43)
    assert reached(pairs, 0.05) == pytest.approx(rounds_by_pairs, abs=0.06, nan_ok=True)
