"""The sympy derivation for H = 1 against the numerical engine."""

import numpy as np
import pytest
import sympy as sp

import meanfield
import theory.naming_game as game
from _policies import linearised_drift, random_composition, random_policy
from meanfield import core


@pytest.fixture(scope="module")
def equation():
    return game.rate_equation()


def values_of(equation, policy, x):
    return dict(zip((*equation.x, *equation.q), (*x, *policy["q"].values[:, 0]), strict=True))


def test_tensor_conserves_agents():
    """Σ_k P_k(i, j) = 1 ([004] Eq. 17), which the printed last case of Eq. 16 violates."""
    q = sp.symbols("q0:5")
    P = game.reaction_tensor(q)
    assert all(sp.expand(sum(P[k][i][j] for k in range(5))) == 1 for i in range(5) for j in range(5))


def test_tensor_is_the_engine_s():
    policy = random_policy(1)
    q = [sp.Float(value, 20) for value in policy["q"].values[:, 0]]
    derived = np.array(game.reaction_tensor(tuple(q)), dtype=float)
    np.testing.assert_allclose(derived, core.reaction_tensor(core.WordGame(policy["q"].values)), atol=1e-15)


def test_derived_equation_is_that_of_eq_27(equation):
    """Half of gain minus loss is -x_k Σx + Σ_ij x_i x_j P_k(i, j); on the simplex Σx = 1."""
    P = game.reaction_tensor(equation.q)
    total = sum(equation.x)
    for k in range(5):
        gain = sum(equation.x[i] * equation.x[j] * P[k][i][j] for i in range(5) for j in range(5))
        assert sp.expand(equation.rhs[k] - (gain - equation.x[k] * total)) == 0


@pytest.mark.parametrize("eliminated", [0, 4])
def test_reduced_jacobian_is_the_engine_s(equation, eliminated):
    """Its columns are the linearised drift of e_j - e_n; its spectrum does not depend on the species eliminated."""
    policy, x = random_policy(2), random_composition(2, 5)
    derived = np.array(game.reduced_jacobian(equation, eliminated).subs(values_of(equation, policy, x)), dtype=float)
    kept = np.delete(np.arange(5), eliminated)
    q, unit = policy["q"].values, np.eye(5)
    columns = [linearised_drift(unit[j] - unit[eliminated], x, q)[kept] for j in kept]
    np.testing.assert_allclose(np.stack(columns, axis=1), derived, atol=1e-14)
    leading = meanfield.spectrum(policy, x, k=1)["eigenvalue"].values[0]
    assert leading == pytest.approx(np.linalg.eigvals(derived).real.max(), abs=1e-10)


@pytest.mark.parametrize("word", [0, 1])
def test_closed_form_at_the_candidates(word):
    values, q = game.consensus_eigenvalues(word)
    assert sum(values.values()) == 4
    policy = random_policy(11)
    numbers = dict(zip(q, policy["q"].values[:, 0], strict=True))
    leading = max(float(sp.re(value.subs(numbers))) for value in values)
    candidate = meanfield.consensus(policy, "ab"[word])
    assert meanfield.spectrum(policy, candidate, k=1)["eigenvalue"].values[0] == pytest.approx(leading, abs=1e-10)
