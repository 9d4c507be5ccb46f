"""The least-noise path: its equations in closed form, its order, its two kinds, and policies that are hard on it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield
from _battery import battery
from meanfield import _least_noise_path, group_size_law
from meanfield._anderson import anderson
from meanfield._group_size_law import law_path
from meanfield._noise import noise, noise_intensity
from meanfield._path_equations import LeadingOrder, LeastAction, PathEquations
from meanfield._rate_equation import drift
from test_group_size_law import majority


def drawn(W, H, seed=0):
    """A policy, its memories, a composition and two vectors, at random."""
    space, random = meanfield.MemorySpace(W, H), np.random.default_rng([seed, W, H])
    q, x = random.dirichlet(np.ones(W), space.n_states), random.dirichlet(np.ones(space.n_states))
    return q, space, x, *random.standard_normal((2, space.n_states))


SIZES = [(2, 1), (2, 3), (3, 2)]


@pytest.mark.parametrize("size", SIZES)
def test_closed_forms_are_those_of_automatic_differentiation(size):
    q, space, x, v, w = drawn(*size)
    equations = PathEquations(q, space)
    product, transpose = (
        jax.jvp(lambda x: drift(x, jnp.asarray(q), space), (jnp.asarray(x),), (jnp.asarray(v),))[1],
        (jax.vjp(lambda x: drift(x, jnp.asarray(q), space), jnp.asarray(x))[1](jnp.asarray(w))[0]),
    )
    np.testing.assert_allclose(equations.drift(x), drift(x, q, space), atol=1e-15)
    np.testing.assert_allclose(equations.linearised(x, v), product, atol=1e-14)
    np.testing.assert_allclose(equations.transposed(x, w), transpose, atol=1e-14)
    spread = noise(*map(jnp.asarray, (w, x, q)), space)
    np.testing.assert_allclose(equations.noise(x, w), spread, atol=1e-14)
    leading = LeadingOrder(q, space)
    moved, push = leading.forward(x, w)
    np.testing.assert_allclose(push, spread, atol=1e-14)
    np.testing.assert_allclose(moved, equations.drift(x) + spread, atol=1e-14)
    assert leading.work(x, w) == pytest.approx(float(w @ spread), rel=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_slopes_by_the_policy_are_those_of_automatic_differentiation(size):
    """Up to a number for each state, which a policy whose rows sum to 1 does not feel."""
    q, space, x, v, w = drawn(*size)
    equations = PathEquations(q, space)

    def bilinear(q):
        return (noise_intensity(v + w, x, q, space) - noise_intensity(v - w, x, q, space)) / 4

    for found, function in (
        (equations.drift_slope(x, w), lambda q: w @ drift(jnp.asarray(x), q, space)),
        (equations.noise_slope(x, v, w), bilinear),
    ):
        expected = np.asarray(jax.grad(function)(jnp.asarray(q))).T / x
        np.testing.assert_allclose(np.diff(found, axis=0), np.diff(expected, axis=0), atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_least_action_follows_its_hamiltonian(size):
    """h is the growth rate of the mean of exp(p·change), summed over who meets whom; at p = 0 it has F and D."""
    q, space, x, v, _ = drawn(*size)
    p = 0.3 * v
    action, W = LeastAction(q, space), size[0]
    after = space.successors()[:, None, None] + W * np.arange(W)[:, None] + np.arange(W)

    def h(x, p, q=q):
        met = jnp.einsum("i,ia,iab->ab", x, q, jnp.exp(p[after] - p[:, None, None]))
        return ((met * met.T).sum() / x.sum() - x.sum()) / 2

    by_x, by_p, by_q = jax.grad(h, argnums=(0, 1, 2))(jnp.asarray(x), jnp.asarray(p), jnp.asarray(q))
    np.testing.assert_allclose(action.backward(x, p), by_x, atol=1e-13)
    moved, push = action.forward(x, p)
    np.testing.assert_allclose(moved, by_p, atol=1e-14)
    np.testing.assert_allclose(push, by_p - action.drift(x), atol=1e-14)
    np.testing.assert_allclose(action.slope(x, p), by_q.T, atol=1e-13)
    assert action.work(x, p) == pytest.approx(float(p @ by_p - h(x, p)), rel=1e-12)
    small = 1e-6 * v
    np.testing.assert_allclose(action.forward(x, small)[1], action.noise(x, small), atol=1e-11)


def test_order_in_the_step(monkeypatch):
    """κ of steps 0.8, 0.4 and 0.2 differs by factors of 2⁴; from one tolerance to another by less than the first."""
    seen = {}
    solve = _least_noise_path._solve

    def spied(ends, guess, step, share):
        found = solve(ends, guess, step, share)
        seen[step] = found.kappa
        return found

    monkeypatch.setattr(_least_noise_path, "_solve", spied)
    monkeypatch.setattr(_least_noise_path, "STEP_ERROR", 1e-8)
    kappa = group_size_law(majority(0.53))["kappa"].item()
    first, second = (seen[0.4] - seen[0.8]) / (seen[0.2] - seen[0.4]), (seen[0.2] - seen[0.4]) / (seen[0.1] - seen[0.2])
    assert 10 < first < 30 and 10 < second < 30
    monkeypatch.undo()
    assert group_size_law(majority(0.53))["kappa"].item() == pytest.approx(kappa, rel=5e-6)


def test_the_end_is_far_enough(monkeypatch):
    kappa = group_size_law(majority(0.53))["kappa"].item()
    monkeypatch.setattr(_least_noise_path, "END_ERROR", 1e-10)
    assert group_size_law(majority(0.53))["kappa"].item() == pytest.approx(kappa, rel=3e-6)


def test_both_paths_agree_where_noise_is_weak(monkeypatch):
    """The action leaves nothing out; what leading order does is of relative order κ."""
    differences = []
    for start in (0.52, 0.51):
        path = law_path(majority(start)).path
        assert path.leading_order
        with monkeypatch.context() as patch:
            patch.setattr(_least_noise_path, "LeadingOrder", LeastAction)
            action = law_path(majority(start)).path
        assert isinstance(action.equations, LeastAction)
        np.testing.assert_allclose(action.x.sum(1), 1, atol=1e-12)
        differences.append(abs(action.kappa / path.kappa - 1))
    assert 0 < differences[0] < 0.2
    assert differences[0] / differences[1] == pytest.approx(2, rel=0.2)


def strongly_attracted():
    """Policies of the battery with two attractors and a saddle, first word said with a strong bias by newcomers."""
    found = []
    for family, policy in battery(14 * 7, 2, 2, seed=3):
        if family in ("noisy_majority", "nucleus_filtered"):
            q = policy["q"].values[:, 0].copy()
            q[0] = 0.9
            found.append(meanfield.make_policy(q, ["a", "b"], model=policy.attrs.get("model", family)))
    return found


def test_every_policy_of_the_battery_has_a_path():
    laws = [law_path(policy) for policy in strongly_attracted()]
    failed = [law for law in laws if isinstance(law, str) and "path to the saddle" in law]
    paths = [law.path for law in laws if not isinstance(law, str)]
    assert len(paths) >= 10 and not failed
    for path in paths:
        share = (path.p * path.x).sum(1)
        assert -share[0] * path.equations.kappa_squared == pytest.approx(path.kappa**2, rel=1e-6)


def test_where_leading_order_has_no_path_the_action_has():
    policy = majority(0.999, fidelity=0.999, length=2)
    law = group_size_law(policy)
    assert law["kappa"].item() > 0.5
    assert "κ is that of the least action" in law.attrs["reason"]


def test_anderson_solves_linear_maps_that_expand():
    """Like GMRES; where plain iteration would grow by 3 a step. NaN and too few steps give None."""
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((20, 3)))[0]
    matrix, b = basis @ np.diag([3.0, -2.0, 0.5]) @ basis.T, random.standard_normal(20)

    def done(residual):
        return bool(np.abs(residual).max() < 1e-10)

    found = anderson(lambda x: matrix @ x + b, np.zeros(20), done, 12)
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(20) - matrix, b), atol=1e-8)
    assert anderson(lambda x: matrix @ x + b, np.zeros(20), done, 3) is None
    assert anderson(lambda x: np.nan * x, np.zeros(20), done, 12) is None
