"""Derivatives with respect to the policy against central differences, symmetries, closed forms, and controls."""

import numpy as np
import pytest
import xarray as xr

import meanfield
from _labelled_calls import conformist
from _policies import random_policy, relabelled_states
from meanfield import sensitivity
from meanfield._parameters.critical_mass import critical_mass
from meanfield.toolbox import space_of


def majority(start: float, fidelity: float = 0.97, length: int = 3, seed: int = 1, scatter: float = 0.03) -> xr.Dataset:
    """Say the word heard more often, with about that fidelity; P(first word) is `start` with an empty memory."""
    space = meanfield.MemorySpace(2, length)
    heard = [sum(1 - 2 * partner for _, partner in space.memory(i)) for i in range(space.n_states)]
    first = 0.5 + (fidelity - 0.5) * np.sign(heard)
    first = first + scatter * np.random.default_rng(seed).standard_normal(space.n_states)
    first[0] = start
    return meanfield.make_policy(np.clip(first, 0.004, 0.996), ["a", "b"], model="majority")


def value_of(policy: xr.Dataset, of: str, fixed_point: int | None = None, word: str | None = None) -> float:
    if of == "kappa":
        return meanfield.group_size_law(policy, n_agents=[100])["kappa"].item()
    if of == "critical_mass":
        return critical_mass(policy, word=word)["critical_mass"].item()
    point = meanfield.fixed_points(policy).isel(fixed_point=fixed_point)
    return point["eigenvalue"].item() if of == "eigenvalue" else point["word_share"].values[0]


def slope(policy: xr.Dataset, step: float, **what) -> tuple[np.ndarray, float]:
    """A random direction, and the derivative along it by central differences, of order four where they are cheap."""
    q = policy["q"].values
    direction = q[:, 0] * q[:, 1] * np.random.default_rng(0).standard_normal(len(q))

    def at(shift: float) -> float:
        words = meanfield.toolbox.words_of(policy)
        return value_of(meanfield.make_policy(q[:, 0] + shift * direction, words), **what)

    near = (at(step) - at(-step)) / (2 * step)
    return direction, near if what["of"] == "kappa" else (4 * near - (at(2 * step) - at(-2 * step)) / (4 * step)) / 3


def along(result: xr.Dataset, direction: np.ndarray, column: str = "derivative") -> float:
    return float(result[column].values @ direction)


AT_POINTS = [{"of": of, "fixed_point": k} for of in ("word_share", "eigenvalue") for k in (0, 1, 2)]
ALWAYS_A = meanfield.make_policy(np.ones(21), ["a", "b"])
AT_FOLDS = [{"of": "critical_mass", "word": word} for word in "ab"]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("length", "dense", "what"),
    [
        (2, 100, AT_POINTS[0]),
        (3, 100, AT_FOLDS[0]),
        pytest.param(3, 10, AT_POINTS[4], marks=pytest.mark.slow),
        *(pytest.param(3, 100, what, marks=pytest.mark.slow) for what in AT_POINTS + AT_FOLDS[1:]),
        pytest.param(5, 10, AT_FOLDS[0], marks=pytest.mark.slow),
    ],
)
def test_derivatives_are_those_of_central_differences(length, dense, what, monkeypatch):
    """Eigenvectors by LAPACK and by Arnoldi iteration. Controls: the direct part alone of an eigenvalue at an
    attractor is off by a tenth at least."""
    monkeypatch.setattr("meanfield.core._spectrum.DENSE_SIZE", dense)
    policy = majority(0.55, length=length)
    result = sensitivity(policy, **what)
    assert result.attrs["value"] == pytest.approx(value_of(policy, **what), abs=1e-12)
    direction, difference = slope(policy, 1e-4, **what)
    assert along(result, direction) == pytest.approx(difference, rel=1e-6)
    if what["of"] == "eigenvalue" and what["fixed_point"] != 1:
        assert abs(along(result, direction, "direct") / difference - 1) > 0.1


@pytest.mark.slow
def test_complex_eigenvalues():
    policy, what = random_policy(42, 2, 3, 0.5), {"of": "eigenvalue", "fixed_point": 0}
    assert meanfield.fixed_points(policy)["eigenvalue_imaginary"].values[0] > 0.3
    direction, difference = slope(policy, 1e-4, **what)
    assert along(sensitivity(policy, **what), direction) == pytest.approx(difference, rel=1e-6)


def size(result: xr.Dataset, policy: xr.Dataset) -> float:
    """The derivative along one of the random directions, as it is on average."""
    return float(np.linalg.norm(result["derivative"].values * policy["q"].values.prod(1)))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "policy",
    [
        conformist(),  # H = 2
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in (majority(0.35, 0.98, seed=4), majority(0.55, length=5))
        ),
    ],
)
def test_kappa(policy):
    """By differences of order two. The control: derivatives of states in another order."""
    result = sensitivity(policy, of="kappa")
    direction, difference = slope(policy, 1e-3, of="kappa")
    assert abs(along(result, direction) - difference) < 2e-4 * size(result, policy)
    assert abs(along(result.roll(state=1), direction) - difference) > 1e-2 * size(result, policy)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["woman/man", "more/less"])
def test_kappa_of_published_policies(published, pair):
    policy = published.sel(model="gpt-4o", pair=pair)
    result = sensitivity(policy, of="kappa")
    assert result["contribution"].sum().item() == pytest.approx(result.attrs["value"], rel=0.08)
    direction, difference = slope(policy, 1e-3, of="kappa")
    assert abs(along(result, direction) - difference) < 2e-4 * size(result, policy)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("of", ["kappa", "barrier"])
def test_paths_of_populations(of):
    """Two kinds and committed agents: central differences along a random direction of one kind's probabilities."""
    other = majority(0.57, 0.99, length=2, seed=2, scatter=0.003)

    def population(q):
        first = meanfield.make_policy(q, ["a", "b"])
        return meanfield.Population([first, other], fractions=[0.6, 0.4], committed={"b": 0.02})

    def value(q):
        if of == "kappa":
            return meanfield.group_size_law(population(q), n_agents=[100])["kappa"].item()
        return meanfield.escape_path(population(q), fixed_point=0).attrs["barrier"]

    q = conformist()["q"].values[:, 0]
    result = sensitivity(population(q), of=of, fixed_point=0 if of == "barrier" else None)
    assert result.attrs["value"] == value(q)
    assert result["weight"].sum("state").values == pytest.approx([0.6, 0.4], rel=0.1)
    direction, step = q * (1 - q) * np.random.default_rng(3).standard_normal(len(q)), 1e-3
    exact = (value(q + step * direction) - value(q - step * direction)) / (2 * step)
    found = float(result["derivative"].isel(component=0).values @ direction)
    assert found == pytest.approx(exact, rel=2e-3)
    assert abs(float(result["derivative"].isel(component=1).values @ direction) / exact - 1) > 0.1, "the control"


def test_memories_that_never_occur_do_not_matter():
    """Who never says b without memories never remembers it as the only word. The control: who says it now and then."""
    found = []
    for chance in (0.0, 0.05):
        q = conformist()["q"].values[:, 0].copy()
        q[0] = 1 - chance
        result = sensitivity(meanfield.make_policy(q, ["a", "b"]), of="kappa")
        unseen = [meanfield.MemorySpace(2, 2).state([(1, heard)]) for heard in range(2)]
        found.append(np.abs(result["derivative"].values[unseen]).max())
    assert found[0] < 1e-9 < 1e-3 < found[1]


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_contributions_of_small_biases_sum_to_kappa():
    """Up to the cube of the bias: at a fifth of it the sum is 25 times closer."""
    errors = []
    for size in (1.0, 0.2):
        q = majority(0.5, scatter=0.0)["q"].values[:, 0]
        space = meanfield.MemorySpace(2, 3)
        bias = size * np.random.default_rng(3).uniform(0, 0.02, len(q))
        mirrored = relabelled_states(space, [1, 0])
        policy = meanfield.make_policy(q + (bias + bias[mirrored]) / 2, ["a", "b"])
        result = sensitivity(policy, of="kappa")
        np.testing.assert_allclose(result["bias"], (bias + bias[mirrored]) / 2, atol=1e-15)
        errors.append(abs(result["contribution"].sum().item() / result.attrs["value"] - 1))
    assert errors[0] < 2e-2
    assert errors[1] < max(errors[0] / 15, 1e-4)


def test_where_memory_does_not_matter_the_derivative_is_the_weight():
    policy = meanfield.make_policy(np.full(21, 0.3), ["a", "b"])
    result = sensitivity(policy, of="word_share", fixed_point=0)
    np.testing.assert_allclose(result["derivative"], result["weight"], atol=1e-14)


def test_memories_are_labelled_oldest_first():
    policy = majority(0.6, length=2)
    result = sensitivity(policy, of="word_share", fixed_point=0)
    space = space_of(policy)
    assert result["memory"].values[0] == "empty"
    assert result["memory"].values[space.state([(0, 1), (1, 1)])] == "a/b b/b"
    assert result["weight"].sum().item() == pytest.approx(1)
    assert result.attrs["option_fixed_point"] == 0


@pytest.mark.parametrize(
    ("policy", "arguments", "message"),
    [
        (
            majority(0.6),
            {"of": "bias"},
            "of = 'bias': expected one of kappa, eigenvalue, word_share, barrier, critical_mass",
        ),
        (majority(0.6), {"of": "kappa", "word": "a"}, "word = 'a': expected None for of = 'kappa'"),
        (majority(0.6), {"of": "eigenvalue"}, "fixed_point = None: expected a value for of = 'eigenvalue'"),
        (majority(0.6), {"of": "critical_mass", "word": "c"}, "word = 'c': expected one of a, b"),
        (
            ALWAYS_A,
            {"of": "critical_mass", "word": "a"},
            "word = 'a': expected one with a fold, but for {a, b} the old state is",
        ),
        # Who always says a has forgotten everything else after H interactions: λ = -1 in a Jordan block
        (ALWAYS_A, {"of": "eigenvalue", "fixed_point": 0}, "defective or degenerate leading eigenvalue -1"),
        (ALWAYS_A, {"of": "kappa"}, "has one attractor, .*: the consensus on 'b' is no fixed point.* fixed_point = 0"),
    ],
)
def test_wrong_input_is_named(policy, arguments, message):
    with pytest.raises(meanfield.InputError, match=message):
        sensitivity(policy, **arguments)


def test_published_policy(published):
    """GPT-4o {African, White}: the saddle, and an exact consensus, which has derivatives on one side."""
    policy = published.sel(model="gpt-4o", pair="African/White")
    what = {"of": "word_share", "fixed_point": 1}
    direction, difference = slope(policy, 1e-4, **what)
    assert along(sensitivity(policy, **what), direction) == pytest.approx(difference, rel=1e-6)
    at_consensus = sensitivity(policy, of="word_share", fixed_point=0)
    q = policy["q"].values[:, 0].copy()
    state = space_of(policy).consensus_state(0)
    assert q[state] == 1
    q[state] -= 1e-6
    moved = value_of(meanfield.make_policy(q, ["African", "White"]), "word_share", 0)
    assert at_consensus["derivative"].values[state] == pytest.approx((1 - moved) / 1e-6, rel=1e-4)
