"""Leading eigenvalues: Arnoldi against dense LAPACK, and against Eq. 38 from the dense tensor."""

import numpy as np
import pytest
import xarray as xr

import meanfield
import meanfield._fixed_points.spectrum as spectrum_module
from _battery import battery
from _policies import linearised_drift, oscillating_pair, random_composition, random_policy
from meanfield import core
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield.toolbox import space_of


def jacobian_of_eq_38(policy, n):
    """J_red = -δ_ij + 2[T_i(j, n) - T_i(n, n)] for i, j ≠ n, with T the symmetrised tensor of Eq. 26."""
    P = np.asarray(core.reaction_tensor(core.WordGame(policy["q"].values)))
    T = (P + P.transpose(0, 2, 1)) / 2
    kept = np.delete(np.arange(len(P)), n)
    return -np.eye(len(kept)) + 2 * (T[np.ix_(kept, kept, [n])][..., 0] - T[kept, n, n][:, None])


def rightmost(matrix):
    return np.linalg.eigvals(matrix).real.max()


@pytest.mark.parametrize(("n_words", "length", "word"), [(2, 1, 0), (2, 3, 1), (3, 2, 0)])
def test_candidates_have_the_eigenvalues_of_eq_38(n_words, length, word):
    policy = random_policy(7, n_words, length)
    space = space_of(policy)
    found = meanfield.spectrum(policy, meanfield.consensus(policy, meanfield.toolbox.words_of(policy)[word]), k=2)
    expected = rightmost(jacobian_of_eq_38(policy, space.consensus_state(word)))
    assert found["eigenvalue"].values[0] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("stack", [False, True])
def test_conjugate_pairs_are_whole_or_it_is_told(stack):
    """The leading mode of this policy is a pair; of some random ones the fourth and fifth are."""
    policy = oscillating_pair()
    x = meanfield.fixed_points(policy)["composition"].isel(fixed_point=0)
    one = policy if not stack else xr.concat([policy.assign_coords(pair=name) for name in "ab"], "pair")
    for k, cut in ((1, True), (2, False)):
        found = meanfield.spectrum(one, x, k=k)
        assert found.sizes["mode"] == k
        told = found["completeness"].values.tolist() if stack else [found.attrs["completeness"]]
        assert all(("k = 2 has both" in text) == cut for text in told)
    several = []
    for seed in range(8):
        policy, x = random_policy(seed, 3, 2, 0.3), random_composition(seed, 91)
        four, default = meanfield.spectrum(policy, x, k=4), meanfield.spectrum(policy, x)
        assert default.sizes["mode"] == (5 if four.attrs["completeness"] else 4)
        assert not default.attrs["completeness"] and abs(default["eigenvalue_imaginary"].sum()) < 1e-9
        several.append(bool(four.attrs["completeness"]))
    assert 0 < sum(several) < 8


def dense_reduced_jacobian(policy, x):
    """The linearised drift in an orthonormal basis of the tangent space Σε = 0."""
    space, q = space_of(policy), policy["q"].values
    basis = np.linalg.qr(np.column_stack([np.ones(space.n_states), np.eye(space.n_states)[:, 1:]]))[0][:, 1:]
    image = np.stack([linearised_drift(v, x, q) for v in basis.T], axis=1)
    return basis.T @ image


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("length", "seeds"), [(3, range(3)), pytest.param(4, range(2), marks=pytest.mark.slow)])
def test_arnoldi_finds_what_dense_finds_at_any_composition(length, seeds):
    policy = random_policy(3, 2, length, concentration=0.3)
    space = space_of(policy)
    for seed in seeds:
        x = random_composition(seed, space.n_states)
        expected = np.sort(np.linalg.eigvals(dense_reduced_jacobian(policy, x)).real)[::-1]
        found = leading_eigenvalues(meanfield.Population(policy).mixture, x[None], space, k=3).values
        np.testing.assert_allclose(found.real, expected[:3], atol=1e-9)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("length", "seed", "number", "largest_dense"),
    [(5, 3, 25, 0), (5, 3, 25, 1024), pytest.param(6, 4, 5, 0, marks=pytest.mark.slow)],
)
def test_eigenvalues_that_lie_close_together_are_found(length, seed, number, largest_dense, monkeypatch):
    """Hundreds lie within 0.1 of the leading one, where 30 Krylov vectors do not converge in 400 restarts."""
    *_, (_, policy) = battery(number + 1, 2, length, seed=seed)
    monkeypatch.setattr(spectrum_module, "LARGEST_DENSE", largest_dense)
    points = meanfield.fixed_points(policy)
    assert (points["eigenvalue_error"] < 1e-10).all()
    monkeypatch.setattr(spectrum_module, "DENSE_SIZE", 10_000)
    mixture = meanfield.Population(policy).mixture
    for x, found in zip(points["composition"].values, points["eigenvalue"].values, strict=True):
        by_lapack = leading_eigenvalues(mixture, x[None], mixture.space).values[0]
        assert found == pytest.approx(by_lapack.real, abs=1e-10)


def test_spectrum_lies_in_the_disc_that_the_tangent_space_allows():
    """|λ + 1| ≤ 2 for two words, so that the printed -8.50 of [004] Table S1 cannot be an eigenvalue."""
    for seed in range(5):
        policy, x = random_policy(seed, 2, 2, concentration=0.05), random_composition(seed, 21)
        assert np.abs(np.linalg.eigvals(dense_reduced_jacobian(policy, x)) + 1).max() <= 2 + 1e-12


@pytest.mark.parametrize(("k", "message"), [(0, "k = 0"), (5, "k = 5: expected a whole number from 1 to 4")])
def test_wrong_input_is_named(k, message):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.spectrum(random_policy(1), np.ones(5) / 5, k=k)
