"""Stationary distributions of the battery: iteration between aggregates against elimination on all flows."""

import numpy as np
import pytest
from scipy.special import expit

import meanfield
from _battery import battery, memories
from meanfield._fixed_points import stationary_distribution as _stationary
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_distribution import StationaryDistribution
from meanfield._fixed_points.stationary_kernel import eliminate, iterate, sweep
from meanfield._population.mixture import Mixture
from meanfield.toolbox import space_of

LOGITS = np.array([-60.0, -30.0, -12.0, -5.0, -2.0, -0.5, 0.0, 0.3, 1.0, 3.0, 8.0, 20.0, 40.0])
SHARES = np.stack([expit(LOGITS), expit(-LOGITS)], axis=1)


@pytest.fixture
def iterated(monkeypatch):
    """Small chains are iterated too. Returns whether each law converged, and was not eliminated in the end."""
    converged = []

    def counted(*arguments):
        converged.append(iterate(*arguments))
        return converged[-1]

    monkeypatch.setattr(_stationary, "iterate", counted)
    monkeypatch.setattr(_stationary, "ELIMINATED_FLOWS", 0)
    monkeypatch.setattr(_stationary, "FEWEST_CYCLES", 100)
    return converged


def laws_of(policy, Q=SHARES):
    """For each closed class the iterated and the eliminated distributions of flows, shape (classes, 2, laws, flows)."""
    q, space = policy["q"].values, space_of(policy)
    classes = closed_classes(q, space, heard=tuple(range(space.n_words)))
    laws = [StationaryDistribution(q, space, flows) for flows in classes]
    return np.array([(law.flow_law(Q), eliminated(law, Q)) for law in laws])


def eliminated(law, Q):
    """Laws by elimination on all flows."""
    laws = np.empty((len(Q), len(law._said)))
    law._eliminate(Q, laws)
    return laws


def largest_error(pairs):
    """The larger of the relative error of the word shares and the error Σ|δf| of the distributions."""
    shares = pairs.reshape(*pairs.shape[:-1], -1, 2).sum(-2)
    said = np.abs(shares[:, 0] - shares[:, 1]) / np.where(shares[:, 1] > 0, shares[:, 1], 1)
    return max(said.max(), np.abs(pairs[:, 0] - pairs[:, 1]).sum(-1).max())


@pytest.mark.parametrize("length", [2, *(pytest.param(length, marks=pytest.mark.slow) for length in (3, 4))])
def test_laws_of_the_battery_are_those_of_elimination(length, iterated):
    for family, policy in battery(35, 2, length):
        assert largest_error(laws_of(policy)) < 1e-10, family
    assert np.concatenate(iterated).mean() > 0.98


def test_laws_of_three_words_are_those_of_elimination(iterated):
    Q = np.random.default_rng(0).dirichlet([0.1] * 3, size=12)
    for family, policy in battery(14, 3, 2):
        classes = laws_of(policy, Q)
        assert np.abs(classes[:, 0] - classes[:, 1]).sum(-1).max() < 1e-10, family
    assert np.concatenate(iterated).mean() > 0.98


def hidden_bit(length, leak):
    """Agents who keep a bit, own word + what was heard before (mod 2), that neither words nor counts show.

    It is lost with probability `leak`, twice as easily from 0 as from 1. Where both words are heard alike, both are
    said alike whatever it is.
    """
    own, partner = memories(2, length)
    bit = (own[:, 0] + partner[:, 1]) % 2
    says = (bit + partner[:, 0]) % 2
    chance = np.where(bit == 0, 2 * leak, leak)
    first = np.where(says == 0, 1 - chance, chance)
    first[own[:, 1] < 0] = 0.5
    return meanfield.make_policy(first, ["a", "b"])


@pytest.mark.parametrize("leak", [1e-2, 1e-15])
def test_what_agents_hardly_ever_leave_is_found_though_own_words_do_not_show_it(leak, iterated):
    assert largest_error(laws_of(hidden_bit(3, leak))) < 1e-9


def test_own_words_alone_would_miss_a_hidden_bit(iterated, monkeypatch):
    """The control: aggregates of own words only leave the hidden bit where the iteration starts."""
    monkeypatch.setattr(_stationary, "LEAKS", ())
    assert largest_error(laws_of(hidden_bit(3, 1e-15))) > 1e-3


def rarely_lost_bit():
    """Three words: a bit is kept as in `hidden_bit`, until the third word is heard, after which it is 0 more often."""
    own, partner = memories(3, 3)
    says = ((own[:, 0] + partner[:, 1]) % 2 + partner[:, 0]) % 2
    kept = (own[:, 2] >= 0) & (own != 2).all(1) & (partner != 2).all(1)
    q = np.where(kept[:, None], np.eye(3)[says], [0.7, 0.3, 0.0])
    return meanfield.make_policy(q, ["a", "b", "c"])


@pytest.mark.parametrize(("rare", "eliminated"), [(1e-14, True), (1e-20, False)])
def test_what_only_a_rare_word_ends_is_found(rare, eliminated, monkeypatch):
    """By elimination or, where there are too many flows, by aggregates for those who never hear it."""
    policy, Q = rarely_lost_bit(), np.array([[0.3, 0.7 - rare, rare]])
    expected = laws_of(policy, Q)[:, 1]
    if not eliminated:
        monkeypatch.setattr(_stationary, "LAST_RESORT_FLOWS", 0)
    assert np.abs(laws_of(policy, Q)[:, 0] - expected).sum() < 1e-9


def test_aggregates_for_what_all_words_leave_alone_would_miss_what_a_rare_one_ends(monkeypatch):
    """The control."""
    monkeypatch.setattr(_stationary, "RARE", 0.0)
    laws = laws_of(rarely_lost_bit(), np.array([[0.3, 0.7, 1e-15]]))
    assert np.abs(np.diff(laws, axis=1)).sum() > 1e-2


def test_elimination_keeps_relative_accuracy():
    """A ring of states left with probabilities from 1 to 1e-30, whose inverse is the stationary distribution."""
    chance = 10.0 ** -np.linspace(0, 30, 70)
    chain, law = np.zeros((70, 70)), np.empty(70)
    chain[np.arange(70), (np.arange(70) + 1) % 70] = chance
    eliminate(chain, law, 0)
    expected = 1 / chance / (1 / chance).sum()
    np.testing.assert_allclose(law, expected, rtol=1e-13)
    with_transient = np.array([[0.0, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0.2, 0.8, 0], [0, 0.1, 0, 0.9]])
    law = np.empty(4)
    eliminate(with_transient, law, 1)
    np.testing.assert_allclose(law, [0, 2 / 7, 5 / 7, 0], atol=1e-15)


def test_a_long_memory_and_a_strong_bond_have_a_law():
    """q = σ(b Σ (1 - own - partner) + 0.2) at H = 6: laws of consensus that lasts e^b and more."""
    own, partner = memories(2, 6)
    remembered = own >= 0
    for b in (0.7, 3.0):
        first = expit(b * np.where(remembered, 1 - own - partner, 0).sum(1) + 0.2)
        policy = meanfield.make_policy(first, ["a", "b"])
        law = StationaryDistribution(policy["q"].values, space_of(policy), np.arange(2048))
        laws = law.flow_law(SHARES[4:8])
        for found, Q in zip(laws, SHARES[4:8], strict=True):
            moved = found.copy()
            sweep(moved, Mixture.heard_from(Q), law._said, np.empty_like(moved))
            assert np.abs(moved - found).sum() < 1e-11
