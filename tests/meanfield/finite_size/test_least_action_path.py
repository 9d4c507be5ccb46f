"""The path of least action: its equations in closed form, weak noise, and policies that are hard on it."""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import simpson, solve_ivp

import meanfield
from _battery import battery, counted, policy_of, softmax
from _metastable import follower
from _policies import majority
from meanfield import core, group_size_law
from meanfield._finite_size import least_action_path as _least_action
from meanfield._finite_size.law_path import NoPath, law_path, unstable_direction
from meanfield._numerics.anderson import anderson
from meanfield._numerics.trajectory import quadrature
from meanfield.core._path_search import action_rates
from meanfield.toolbox import as_population, policy_hash
from validation import simulate

# The types of all that these call are checked where weaker noise takes the same way.
UNCHECKED = pytest.mark.usefixtures("unchecked_types")


# The second has a slow saddle
@pytest.mark.parametrize(("fidelity", "end"), [(0.97, 60), pytest.param(0.838, 700, marks=pytest.mark.slow)])
def test_weak_noise_is_that_of_the_linear_theory(fidelity, end):
    """κ = d/σ: the adjoint along the way of an unbiased population to the saddle, and the noise and the lean on it."""
    lean, space = 1e-4, meanfield.MemorySpace(2, 3)
    even, uneven = (core.WordGame(majority(0.5 + by, fidelity=fidelity)["q"].values) for by in (0, lean))
    drift, noise = core.drift, core.noise_product
    start, exactly = np.eye(1, space.n_states)[0], {"method": "DOP853", "rtol": 1e-11, "atol": 1e-13}
    times = np.linspace(0, end, 20 * end + 1)
    way = solve_ivp(lambda t, x: drift(even, x), (0, end), start, dense_output=True, t_eval=times, **exactly)
    _, (left,) = unstable_direction(as_population(majority(0.5, fidelity=fidelity)).mixture, way.sol(end)[None])
    back = solve_ivp(
        lambda s, w: core.jacobian_product(even, way.sol(end - s), w, transpose=True),
        (0, end),
        left,
        t_eval=times,
        **exactly,
    )
    trajectories = list(zip(np.ascontiguousarray(way.y.T), np.ascontiguousarray(back.y.T[::-1]), strict=True))
    spread = [w @ noise(even, x, w) for x, w in trajectories]
    push = [w @ (drift(uneven, x) - drift(even, x)) for x, w in trajectories]
    expected = abs(simpson(push, x=times)) / np.sqrt(simpson(spread, x=times))
    assert expected > lean / 3
    assert law_path(majority(0.5 + lean, fidelity=fidelity)).path.kappa == pytest.approx(expected, rel=1e-4)


@UNCHECKED
def test_paths_that_end_on_the_slow_curve_are_those_to_the_saddle(monkeypatch):
    """The path followed for many times 1/eigenvalue, with finer steps."""
    policy = follower(0.12, empty=0.501)
    ours = law_path(policy).path
    for name, value in (("saddle_curve", lambda *_: None), ("SETTLED", 1e-5), ("END", 1e-4), ("FIELD_TOLERANCE", 1e-7)):
        monkeypatch.setattr(_least_action, name, value)
    whole = law_path(policy).path
    assert ours.kappa == pytest.approx(whole.kappa, rel=5e-6)
    assert len(ours.time) < len(whole.time) / 2
    for path in (ours, whole):
        assert -2 * (path.p * path.x)[0].sum() == pytest.approx(path.kappa**2, rel=1e-9)
    for one, other in zip(ours.slope(), whole.slope(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * np.abs(other).max())


def member(length, number):
    """A policy of the battery."""
    return next(itertools.islice(battery(number + 1, 2, length), number, None))[1]


def strongly_coupled(seed):
    """Agents who follow sharply what they hear, with whims, and nearly all of whom begin with the same word; H = 2."""
    random = np.random.default_rng([8, 2, 2, seed])
    age = np.arange(2)
    own = random.normal(0.3, 0.6) * random.uniform(0.3, 1.2) ** age
    partner = (1 + random.exponential(1.5)) * random.uniform(0.3, 1.2) ** age
    bias = random.normal(0, random.choice([0.1, 0.5, 1.0]), 2)
    whims = random.exponential(0.4) * random.standard_normal((21, 2))
    logits = random.uniform(0.5, 4) * counted(2, 2, own, partner) + bias + whims
    logits[0] += random.normal(0, 2) * np.array([1, -1])
    return policy_of(softmax(logits), f"coupled {seed}")


@pytest.fixture(scope="module")
def known_paths():
    """`law_path`, which finds each path once."""
    found = {}

    def known(policy):
        key = policy_hash(policy if isinstance(policy, xr.Dataset) else policy.policies[0])
        if key not in found:
            found[key] = law_path(policy)
        return found[key]

    return known


@pytest.mark.parametrize("seed", [43, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (70, 106, 115))])
@UNCHECKED
def test_strong_attraction_has_a_path(seed, known_paths):
    law = known_paths(strongly_coupled(seed))
    assert not isinstance(law, NoPath), law
    path = law.path
    assert 0.2 < path.kappa < 2
    assert -2 * (path.p * path.x)[0].sum() == pytest.approx(path.kappa**2, rel=1e-6)
    assert np.abs(path.x[-1, 0] - law.points["composition"].values[1]).max() < 2e-2, "it ends at the saddle"


# Newton's method finds the path of the first at once, those of the others by way of agents who answer at random,
# and that of the last waits near an attractor, with a slow saddle.
@pytest.mark.slow
@UNCHECKED
@pytest.mark.parametrize(("length", "number"), [(2, 29), (4, 46), (2, 15), (3, 57), (5, 57), (2, 67)])
def test_the_least_action_of_agents_who_hardly_ever_slip(length, number, known_paths):
    """h is 0, and κ²/2 the integral of p·dx/dt - h, by which it is not computed. Tilts are of up to e³⁴."""
    law = known_paths(member(length, number))
    assert not isinstance(law, NoPath), law
    path = law.path
    done, energy = action_rates(tuple(path.mixture), path.x, path.p)
    assert np.abs(energy).max() < 1e-3
    total = quadrature(path.mesh.pace[::2]) @ done + done[-1] / (2 * path.ends.growth)
    assert 2 * total == pytest.approx(path.kappa**2, rel=5e-4)  # of first order in what fields are off, κ of second
    np.testing.assert_allclose(path.x.sum((1, 2)), 1, atol=1e-9)
    assert path.x.min() >= 0 and np.ptp(path.p) > 1
    np.testing.assert_allclose(path.x[-1, 0], law.points["composition"].values[1], atol=1e-2)


@pytest.mark.slow
@UNCHECKED
def test_paths_that_stop_at_the_attractor_are_none():
    """They meet the end condition with a strong momentum, which has no noise to work with there."""
    q = 0.99 * member(2, 67)["q"].values + 0.01 * np.array([1.0, 0.0])
    law = law_path(policy_of(q, "mixed"))
    if isinstance(law, NoPath):
        assert "no path to the saddle was found" in law.reason
    else:
        assert law.path.kappa == pytest.approx(0.986, abs=2e-3)


@pytest.mark.parametrize(
    ("number", "kappa"), [(18, np.inf), (29, 1.6132), pytest.param(67, 0.8161, marks=pytest.mark.slow)]
)
@UNCHECKED
def test_agents_who_hardly_ever_slip_have_a_kappa(number, kappa):
    """Those who can't say the weak word at all an infinite one."""
    policy = member(2, number)
    law, saddle = group_size_law(policy, n_agents=[12]), meanfield.fixed_points(policy)["word_share"].values[1, 0]
    assert law.attrs["applies"] == 1 and law["kappa"].item() == pytest.approx(kappa, rel=2e-4)
    strong_first = meanfield.solve(policy)["word_share"].isel(word=0, time=-1).item() > saddle
    runs = simulate(policy, n_agents=12, runs=4000, seed=1, max_rounds=60, record_rounds=60)["word_share"]
    first = (runs.isel(word=0, round=-1) > saddle).mean().item()
    assert abs((first if strong_first else 1 - first) - law["probability"].item()) < 0.03


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
