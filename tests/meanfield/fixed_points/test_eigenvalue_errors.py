"""Eigenvalues of almost defective Jacobians lie within the error that is reported for them."""

import itertools

import flint
import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator, eigs

import meanfield
from _battery import battery, memories
from meanfield._fixed_points.reduced_jacobian import ReducedJacobian
from meanfield._fixed_points.spectrum import leading_eigenvalues, leading_of_each
from meanfield._population.mixture import Mixture
from meanfield.toolbox import space_of


def planted(random, H):
    """A policy whose Jacobian at the consensus on 'a' has the eigenvalues μ - 1 with μ^H = Σ_j γ_j μ^{H-j}, and zeros.

    Who has said 'b' within memory says 'a'. Who has not says 'b' with probability β_j where the only 'b' was heard j
    interactions ago, so that a 'b' is answered after j interactions with probability γ_j = β_j Π_{i<j} (1 - β_i). What
    is said in memories with more of 'b' is of second order.
    """
    own, partner = memories(2, H)
    beta = 10 ** random.uniform(-16, 0, size=H) * (random.random(H) < 0.7)
    says_b = np.where((own == 1).any(1), 0.0, random.random(len(own)) * (random.random(len(own)) < 0.5))
    heard = (partner == 1).sum(1)
    says_b[heard == 0] = 0.0
    single = (heard == 1) & ~(own == 1).any(1) & (own[:, -1] >= 0)
    says_b[single] = beta[(partner[single] == 1).argmax(1)]
    exact = [flint.fmpq(*float(b).as_integer_ratio()) for b in beta]
    return meanfield.make_policy(np.column_stack([1 - says_b, says_b]), ["a", "b"]), exact


def perron_root(beta, bits=1200):
    """The positive root of μ^H = Σ_j γ_j μ^{H-j}, which leads, by bisection in exact numbers; 0 where all γ are 0."""
    gamma, left = [], flint.fmpq(1)
    for b in beta:
        gamma.append(b * left)
        left *= 1 - b
    if not any(gamma):
        return 0.0
    low, high = flint.fmpq(0), flint.fmpq(1)
    with flint.ctx.workprec(bits):
        for _ in range(400):
            middle = (low + high) / 2
            total = sum(g / middle ** (j + 1) for j, g in enumerate(gamma))
            low, high = (middle, high) if total > 1 else (low, middle)
        return float(flint.arb(low).mid())


def errors_of_planted(number, seed):
    """True and reported errors of the leading eigenvalue, for planted policies with H = 2 to 5."""
    true, reported = np.empty((2, number))
    for i in range(number):
        random = np.random.default_rng([seed, i])
        policy, beta = planted(random, 2 + i % 4)
        space = space_of(policy)
        x = meanfield.consensus(policy, "a").values[None]
        found = leading_eigenvalues(meanfield.Population(policy).mixture, x, space)
        true[i] = abs(found.values[0] + 1 - perron_root(beta))
        reported[i] = found.errors[0]
    return true, reported


@pytest.mark.slow
def test_a_thousand_planted_eigenvalues_are_within_the_reported_error():
    true, reported = errors_of_planted(1000, seed=2)
    assert (true <= reported + 4e-16).all()
    assert (reported < 1e-6).mean() >= 0.95


@pytest.mark.usefixtures("unchecked_types")
def test_float64_alone_misses_almost_defective_eigenvalues():
    """The control: Arnoldi iteration in float64 is wrong in the second or third digit for nucleus-filtered policies."""
    wrong = 0
    for family, policy in battery(35, 2, 5):
        if family != "nucleus_filtered":
            continue
        x = meanfield.consensus(policy, "a").values[None]
        mixture, space = meanfield.Population(policy).mixture, space_of(policy)
        matrix = ReducedJacobian(mixture, x, space)
        operator = LinearOperator((matrix.size, matrix.size), matvec=matrix.apply, dtype=float)
        start = np.random.default_rng(0).standard_normal(matrix.size)
        found = eigs(operator, k=1, which="LR", ncv=40, v0=start, return_eigenvectors=False)[0]
        wrong += abs(found - 1 - leading_eigenvalues(mixture, x, space).values[0]) > 1e-3
    assert wrong >= 2


def leading_in_many_bits(policy, x, bits=2000):
    """The leading eigenvalue of the whole matrix in 2,000 bits, without a Krylov space."""
    with flint.ctx.workprec(bits):
        matrix = ReducedJacobian(meanfield.Population(policy).mixture, x, space_of(policy), flint.arb)
        columns = [matrix.apply(np.array([flint.arb(int(v)) for v in e], dtype=object)) for e in np.eye(matrix.size)]
        dense = flint.acb_mat(matrix.size, matrix.size)
        for j, column in enumerate(columns):
            for i, entry in enumerate(column):
                dense[i, j] = entry.mid()
        return max(float(value.real.mid()) for value in dense.eig(algorithm="approx"))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("number", "length"), [(21, 2), pytest.param(70, 3, marks=pytest.mark.slow)])
def test_eigenvalues_of_the_battery_agree_with_the_whole_matrix_in_2000_bits(number, length):
    for family, policy in battery(number, 2, length):
        x = meanfield.consensus(policy, "a").values[None]
        found = leading_eigenvalues(meanfield.Population(policy).mixture, x, space_of(policy))
        exact = max(leading_in_many_bits(policy, x), 0.0)
        # 2,000 bits leave 1e-60 of a tenfold defective zero
        assert abs(found.values[0].real + 1 - exact) <= found.errors[0] + 1e-15, family


def test_floors_that_decide_digits_are_named():
    """μ = ε^(1/5) with a floor ε = 2e-16: without the floor λ is -1."""
    own, partner = memories(2, 5)
    only_oldest = (partner[:, 4] == 1) & (partner[:, :4] == 0).all(1) & (own == 0).all(1)
    says_b = np.where(only_oldest, 2e-16, 0.0)
    policy = meanfield.make_policy(np.column_stack([1 - says_b, says_b]), ["a", "b"])
    found = meanfield.spectrum(policy, meanfield.consensus(policy, "a"), k=1)
    assert found["eigenvalue"].item() == pytest.approx((2e-16) ** 0.2 - 1, abs=1e-9)
    assert abs(found["eigenvalue_floor_shift"].item()) > 1e-4


def test_eigenvalues_are_the_same_together_and_alone():
    """At random compositions, some of them with agents who remember little."""
    random, mixtures, compositions = np.random.default_rng(0), [], []
    for kinds, n_words, length in itertools.product((1, 2), (2, 3), (1, 2)):
        space = meanfield.MemorySpace(n_words, length)
        for short in (False, True, True):
            shares = random.dirichlet(np.ones(kinds + n_words))
            q = random.dirichlet(np.ones(n_words), (kinds, space.n_states))
            x = random.dirichlet(np.ones(space.n_states), kinds)
            if not short:
                x[:, : -space.n_full] = 0.0
                x /= x.sum(1, keepdims=True)
            mixtures.append(Mixture(q, shares[:kinds], shares[kinds:]))
            compositions.append(x)
    found = leading_of_each(mixtures, compositions, x_error=1e-12)
    for mixture, x, one in zip(mixtures, compositions, found, strict=True):
        alone = leading_eigenvalues(mixture, x, mixture.space, x_error=1e-12)
        assert one.values[0] == pytest.approx(alone.values[0], abs=1e-13)
        assert one.errors[0] == pytest.approx(alone.errors[0], rel=0.5, abs=1e-15)
