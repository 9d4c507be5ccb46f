"""The slow motion beside a committed minority: spectra, dense linear algebra and exact chains."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov
from scipy.special import expit

import meanfield
from _exact_chains import ExactChain
from _metastable import follower
from _policies import random_policy
from meanfield import Population
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_law import StationaryLaw
from meanfield._large_deviations.first_passage import lifetime_on
from meanfield._large_deviations.slow_mode import Encounters
from meanfield.toolbox import space_of

pytestmark = pytest.mark.usefixtures("unchecked_types")


def encounters(policy, word=0):
    q, space = policy["q"].values, space_of(policy)
    return Encounters(StationaryLaw(q, space, closed_classes(q, space, heard=(0, 1))[0]), q, word)


@pytest.mark.parametrize("memory_length", [1, 2])
def test_the_slope_of_its_drift_is_the_eigenvalue_at_every_equilibrium(memory_length):
    policy = follower(0.05) if memory_length == 2 else random_policy(3, concentration=3.0)
    population = Population(policy, committed={policy["word"].values[0]: 0.05})
    points, at = meanfield.fixed_points(population), encounters(policy)
    assert points.sizes["fixed_point"] == (3 if memory_length == 2 else 1)
    for number, Q in enumerate(points["word_share"].values[:, 0]):
        values = meanfield.spectrum(population, points["composition"].isel(fixed_point=number))["eigenvalue"].values
        mode, near = at.slow_mode(Q), Q + 1e-4 * np.array([-1.0, 1.0])
        slope = mode.mobility * np.diff(0.95 * at.said(near) + 0.05 - near)[0] / 2e-4
        assert mode.committed == pytest.approx(0.05, abs=1e-9)
        assert mode.rate == pytest.approx(values[0].real, abs=1e-7)
        assert slope == pytest.approx(values[0].real, abs=1e-5)


@pytest.mark.parametrize("memory_length", [2, 3, 4])
def test_rounding_does_not_join_a_mode_to_the_word_share(memory_length):
    """The slowest mode of agents who repeat their last word knows nothing of what they hear. Followers have one at all
    these shares."""
    repeating = meanfield.make_policy(
        lambda memory: 0.5 if not memory else 0.99 if memory[-1][0] == "A" else 0.01,
        ["A", "B"],
        memory_length=memory_length,
    )
    for Q in expit(np.linspace(-25, 8, 14)):
        assert encounters(repeating).slow_mode(Q) == "the slowest mode does not follow the word share"
        for errs in (0.005, 0.2):
            following = follower(errs, tie=0.52, length=memory_length)
            assert not isinstance(encounters(following).slow_mode(Q), str)


def test_drift_of_order_one_over_n_stays_bounded_where_the_word_is_hardly_heard():
    """There the second derivative of p(Q) can't be told from the rounding of its differences, and is left out."""
    for errs in (0.005, 0.2):
        at = encounters(follower(errs, tie=0.52))
        for Q in 10.0 ** -np.arange(2, 12):
            assert abs(at.slow_mode(Q).others) < 3


class Dense:
    """The same from matrices, with sums over all pairs of agents; agents are in full memories."""

    def __init__(self, policy, Q, word):
        space, self.Q = space_of(policy), Q
        first = space.offset(space.memory_length)
        self.q = policy["q"].values[first:]
        self.size, self.word = len(self.q), word
        self.after = space.successors()[first:, None, None] + np.arange(4).reshape(2, 2) - first
        self.p, (low, high) = self.law(Q), (self.law(Q + h) for h in (-1e-4, 1e-4))
        self.slope, self.bend = (high - low) / 2e-4, (high - 2 * self.p + low) / 1e-8
        self.s = (1 - Q) / (1 - self.p @ self.q[:, word])
        self.jacobian = self.kernel(Q).T - np.eye(self.size) + self.s * np.outer(self.heard(self.p), self.q[:, word])

    def moves(self, b):
        A = np.zeros((self.size, self.size))
        for i in range(self.size):
            for a in range(2):
                A[i, self.after[i, a, b]] += self.q[i, a]
        return A

    def kernel(self, Q):
        return Q * self.moves(self.word) + (1 - Q) * self.moves(1 - self.word)

    def heard(self, x):
        return (self.moves(self.word) - self.moves(1 - self.word)).T @ x

    def law(self, Q):
        equations = self.kernel(Q).T - np.eye(self.size)
        equations[0] = 1
        return np.linalg.solve(equations, np.eye(self.size)[0])

    def noise(self):
        D, one = np.zeros((self.size, self.size)), np.eye(self.size)
        said = np.array([self.Q if a == self.word else 1 - self.Q for a in range(2)])
        for i in range(self.size):
            for a in range(2):
                for b in range(2):
                    step = one[self.after[i, a, b]] - one[i]
                    D += self.p[i] * self.q[i, a] * said[b] * np.outer(step, step)
                    for j in range(self.size):
                        other = one[self.after[j, b, a]] - one[j]
                        D += self.s * self.p[i] * self.p[j] * self.q[i, a] * self.q[j, b] * np.outer(step, other)
        return D

    def others(self):
        values, vectors = np.linalg.eig(self.jacobian.T - 3 * np.outer(np.ones(self.size), self.p))
        left = vectors[:, values.real.argmax()].real
        left -= left @ self.p
        left /= left @ self.slope
        fast, D, q = np.eye(self.size) - np.outer(self.slope, left), self.noise(), self.q[:, self.word]
        damped = self.jacobian - 3 * np.outer(self.slope, left) - 3 * np.outer(self.p, np.ones(self.size))
        C = solve_continuous_lyapunov(damped, -fast @ D @ fast.T)
        z = -np.linalg.solve(damped, fast @ D @ left)
        second = self.heard(C @ q) + (q @ self.slope) * self.heard(z) + (q @ z) * self.heard(self.slope)
        return self.s * left @ second - left @ self.bend / 2 * (left @ D @ left), left @ D @ left


@pytest.mark.parametrize("Q", [0.1, 0.3])
@pytest.mark.parametrize("word", [0, 1])
def test_its_noise_and_drift_are_those_of_dense_algebra(word, Q):
    policy = follower(0.03, tie=0.45)
    found, dense = encounters(policy, word).slow_mode(Q), Dense(policy, Q, word)
    assert 0 < found.committed < 1
    others, noise = dense.others()
    assert found.noise == pytest.approx(noise, rel=1e-6)
    assert found.others == pytest.approx(others, rel=1e-4)


def copying(errs):
    """H = 1: repeats the own or the partner's word, each with half the chance, and errs."""
    return meanfield.make_policy(np.array([0.5, 1 - errs, 0.5, 0.5, errs]), ["A", "B"])


def copying_model(errs):
    """The same agents, without those of empty memory, and one kind that always says A."""
    first = np.array([1 - errs, 0.5, 0.5, errs, 1.0])
    said, sides = [first, 1 - first], []
    for side in range(2):
        moves = []
        for pair in ((a, b) for a in range(2) for b in range(2)):
            own, partner = pair if side == 0 else pair[::-1]
            matrix = np.zeros((5, 5))
            matrix[:4, 2 * own + partner] = matrix[4, 4] = 1
            moves.append(matrix)
        sides.append(moves)
    alpha, beta = [said[a] for a in range(2) for _ in range(2)], [said[b] for _ in range(2) for b in range(2)]
    return meanfield.ReactionModel(["AA", "AB", "BA", "BB", "A committed"], alpha, beta, *sides, encounter_rate=0.5)


def mean_times(n_agents):
    """Until Q = 1/2 beside one agent who always says A: exactly, by the slow mode, and without its terms of order 1/N.

    These agents say each of their two words half the time, so Q is the mean of both, A counting twice where it was
    heard first: the combination that no encounter changes on average.
    """
    errs, free = 0.002, n_agents - 1
    chain, at = ExactChain(copying_model(errs), [free, 1]), encounters(copying(errs))
    Q = np.linspace(1e-5, 0.6, 601)
    grid = np.linspace(0.001, 0.6, 20)
    modes = np.array([at.slow_mode(one)[:4] for one in grid])
    mobility, itself, others, noise = (np.interp(Q, grid, column) for column in modes.T)
    slow = chain.counts[:, :4] @ np.array([2, 1, 1, 0]) / 2 / free
    exact = chain.first_passage(np.array([0, 0, 0, free, 1]) / n_agents, slow >= 0.5 - 1e-9)
    end = np.where(Q >= 0.5, 1e6, 0.0)
    heard = (1 + free * at.said(Q)) / np.array([[n_agents - 1], [n_agents]])
    drift = mobility * (heard - Q) + np.outer([1, 0], others / free - itself / (n_agents - 1))
    return exact, *(lifetime_on(Q, one, noise / free, end).mean() for one in drift)


def test_mean_times_are_those_of_the_exact_chain():
    """The control is the diffusion without terms of order 1/N."""
    exact, ours, leading = np.array([mean_times(n) for n in (8, 16)]).T
    off = np.abs(np.array([ours, leading]) / exact - 1)
    assert off[0].max() < 0.015
    assert off[1].min() > 0.03
