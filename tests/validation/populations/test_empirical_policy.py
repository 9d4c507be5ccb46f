"""Policies estimated from choice counts: they recover what made the counts, with honest uncertainty."""

import numpy as np
import pytest
from scipy.stats import beta, binom, kstest

import meanfield
from _real_populations import counts_table
from meanfield import InputError, MemorySpace
from meanfield.toolbox import policy_hash
from validation.populations import empirical_policy, sample_policies
from validation.populations._empirical_policy import why_not_tabulable


def hierarchical_truth(seed: int, memory_length: int = 3, n_words: int = 2, concentration: float = 3.0) -> np.ndarray:
    """A policy drawn from the prior of the estimator: each state is like the memory without its oldest interaction."""
    random = np.random.default_rng(seed)
    space = MemorySpace(n_words, memory_length)
    q = random.dirichlet(np.ones(n_words), size=1)
    for length in range(1, memory_length + 1):
        size = space.offset(length) - space.offset(length - 1)
        parents = np.tile(q[-size:], (n_words**2, 1))
        q = np.concatenate([q, [random.dirichlet(concentration * p + 1e-3) for p in parents]])
    return q


def heavy_tailed_visits(seed: int, n_states: int, total: int) -> np.ndarray:
    """Numbers of visits of states: a few have very many, many have none, as in runs that reach consensus."""
    random = np.random.default_rng(seed)
    return random.multinomial(total, random.dirichlet(np.full(n_states, 0.3)))


def drawn_counts(seed: int, q: np.ndarray, visits: np.ndarray) -> np.ndarray:
    return np.random.default_rng(seed).multinomial(visits, q)


FEW = counts_table(np.array([[5, 3], [2, 0], [0, 0], [0, 7], [1, 1]]))


def test_state_seen_often_keeps_its_frequencies():
    n = np.zeros((85, 2))
    n[0], n[84], n[50] = (600, 400), (70_000, 30_000), (0, 50_000)
    policy = empirical_policy(counts_table(n))
    np.testing.assert_allclose(policy["q"].values[[0, 84, 50], 0], [0.6, 0.7, 0.0], atol=2e-3)
    assert policy["observed"].values[[0, 84, 50, 1]].tolist() == [1000, 100_000, 50_000, 0]
    assert policy.attrs["choices"] == 151_000
    assert policy.attrs["states_seen"] == 3
    meanfield.validate_policy(policy)


def test_unseen_state_has_the_policy_of_the_memories_like_it():
    space = MemorySpace(2, 2)
    n = np.zeros((space.n_states, 2))
    for oldest in ((0, 0), (0, 1), (1, 0)):  # all but (1, 1)
        n[space.state([oldest, (0, 1)])] = (1, 99)
        n[space.state([oldest, (1, 1)])] = (90, 10)
    policy = empirical_policy(counts_table(n))
    q = policy["q"].values[:, 0]
    assert q[space.state([(1, 1), (0, 1)])] == pytest.approx(0.01, abs=0.02)
    assert q[space.state([(1, 1), (1, 1)])] == pytest.approx(0.9, abs=0.02)
    seen, unseen = space.state([(0, 0), (1, 1)]), space.state([(1, 1), (1, 1)])
    assert policy["alpha"].values[seen].sum() > policy["alpha"].values[unseen].sum() + 90


@pytest.mark.parametrize("seed", range(2))
def test_back_off_predicts_held_out_choices_better_than_frequencies(seed):
    q = hierarchical_truth(seed)
    # Other runs visit other states: what was seen rarely here may be frequent there.
    seen = drawn_counts(seed + 20, q, heavy_tailed_visits(seed + 10, len(q), 3000))
    held_out = drawn_counts(seed + 30, q, heavy_tailed_visits(seed + 11, len(q), 3000))
    estimated = empirical_policy(counts_table(seen))["q"].values
    # Each of these has no zeros, where the plain frequencies would have a likelihood of 0.
    rivals = [(seen + c) / (seen.sum(1, keepdims=True) + 2 * c) for c in (0.5, 1.0)]
    ours = (held_out * np.log(estimated)).sum()
    assert all(ours > (held_out * np.log(rival)).sum() + 20 for rival in rivals)


def test_ninety_percent_intervals_of_the_posterior_hold_the_truth_as_often():
    covered = trials = 0
    for seed in range(8):
        q = hierarchical_truth(seed, concentration=4.0)
        visits = heavy_tailed_visits(seed + 50, len(q), 4000)
        policy = empirical_policy(counts_table(drawn_counts(seed + 90, q, visits)))
        low, high = (beta.ppf(level, *policy["alpha"].values.T) for level in (0.05, 0.95))
        inside = (low - 1e-9 <= q[:, 0]) & (q[:, 0] <= high + 1e-9)
        covered, trials = covered + inside.sum(), trials + inside.size
    # The posterior takes the concentrations as known, and states share their centres: 0.9 may lose a little. Were the
    # coverage 0.87, or 0.93, one of these would fail once in 10,000 times.
    assert covered > binom.ppf(1e-4, trials, 0.87)
    assert covered < binom.ppf(1 - 1e-4, trials, 0.93)


def test_drawn_policies_have_the_law_of_the_posterior():
    """p of quantiles under the drawn law; the controls have counted what was said half as much again, or less."""
    n = drawn_counts(1, hierarchical_truth(1, 2), heavy_tailed_visits(2, 21, 500))
    policy = empirical_policy(counts_table(n))
    drawn = np.stack([p["q"].values for p in sample_policies(policy, 400, seed=5)])
    levels = (beta.cdf(drawn[..., 0], *(k * policy["alpha"].values.T)) for k in (1, 1.5, 0.67))
    p = [kstest(np.ravel(level), "uniform").pvalue for level in levels]
    assert p[0] > 1e-4 and max(p[1:]) < 1e-10


def test_drawn_policies_are_those_of_the_seed_however_many_are_drawn(tmp_path):
    policy = empirical_policy(FEW)
    few, many, other = sample_policies(policy, 2, 9), sample_policies(policy, 4, 9), sample_policies(policy, 1, 8)
    loaded = meanfield.load(meanfield.save(policy, tmp_path / "policy.nc"))
    hashes = [policy_hash(p) for p in many]
    assert len({*hashes}) == 4 and policy_hash(other[0]) not in hashes
    assert [policy_hash(p) for p in few] == [policy_hash(p) for p in sample_policies(loaded, 2, 9)] == hashes[:2]


def test_posterior_counts_too_small_for_gamma_variates_are_drawn():
    policy = empirical_policy(FEW)
    policy["alpha"] = policy["alpha"] * 0 + 1e-4
    drawn = sample_policies(policy, 200, seed=0)
    assert np.mean([p["q"].values[:, 0] for p in drawn]) == pytest.approx(0.5, abs=0.1)


def test_words_can_be_named_in_another_order():
    n = drawn_counts(1, hierarchical_truth(1, 2), np.full(21, 30))
    first, second = empirical_policy(counts_table(n)), empirical_policy(counts_table(n), words=("B", "A"))
    assert meanfield.toolbox.words_of(second) == ("B", "A")
    swapped = [0, 4, 3, 2, 1]
    np.testing.assert_allclose(second["q"].values[:5, ::-1], first["q"].values[swapped], rtol=1e-6)


def test_three_words():
    q = hierarchical_truth(4, 2, n_words=3)
    n = drawn_counts(6, q, np.full(len(q), 2000))
    policy = empirical_policy(counts_table(n, ("a", "b", "c")))
    np.testing.assert_allclose(policy["q"].values, q, atol=0.06)


def edited(column, value):
    table = FEW.astype({column: object})
    table.loc[2, column] = value
    return table


@pytest.mark.parametrize(
    ("counts", "named"),
    [
        (edited("count", -1), "count = -1: expected a whole number"),
        (edited("count", 1.5), "count = 1.5"),
        (edited("count", "many"), "count = 'many'"),
        (edited("choice", "C"), "choice = 'C': expected one of A, B"),
        (edited("state", "A,C"), "state = 'A,C'"),
        (edited("state", "A"), "state = 'A'"),
        (edited("state", "A,A|B,A"), "at most memory_length = 1"),
        (edited("model", "n"), "2 values of model"),
        (edited("options", "A_C"), "2 values of options"),
        (FEW.drop(columns="state"), "lacks the column state"),
        (FEW.iloc[:0], "counts is empty"),
        ([1], "counts is a list"),
    ],
)
def test_wrong_counts_are_refused_by_name(counts, named):
    with pytest.raises(InputError, match=named.replace("|", r"\|")):
        empirical_policy(counts)


def test_wrong_arguments_are_refused_by_name():
    with pytest.raises(InputError, match=r"words = \['A', 'C'\]"):
        empirical_policy(FEW, words=("A", "C"))
    policy = empirical_policy(FEW)
    for wrong, n, told in ((policy.drop_vars("alpha"), 1, "alpha"), (policy, 0, "n = 0")):
        with pytest.raises(InputError, match=told):
            sample_policies(wrong, n, 0)


def test_ten_words_and_five_interactions_cannot_be_tabulated():
    assert why_not_tabulable(10, 4) and not why_not_tabulable(2, 9)
    table = FEW.assign(options="_".join("ABCDEFGHIJ"), memory_length=5)
    with pytest.raises(InputError, match=r"10,101,010,101 memory states.*cannot be tabulated"):
        empirical_policy(table)
