"""The least-noise path: its equations in closed form, its order, its two kinds, and policies that are hard on it."""

import itertools

import numpy as np
import pytest

import meanfield
from _battery import battery, counted, policy_of, softmax
from _policies import drift, majority
from meanfield import group_size_law, make_policy, sensitivity
from meanfield._finite_size import group_size_law as _group_size_law
from meanfield._finite_size import least_action_path as _least_action
from meanfield._finite_size import least_noise_path as _least_noise_path
from meanfield._finite_size import message_kernel as _message_kernel
from meanfield._finite_size import sensitivity as _sensitivity
from meanfield._finite_size.law_path import NoPath, law_path
from meanfield._finite_size.least_action_path import LeastActionPath
from meanfield._finite_size.least_noise_path import LeastNoisePath
from meanfield._finite_size.messages import Ending, Mesh
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.anderson import anderson
from meanfield.toolbox import policy_hash
from validation import simulate


def drawn(W, H):
    """A policy, its memories, a composition and two vectors, at random."""
    space, random = meanfield.MemorySpace(W, H), np.random.default_rng([0, W, H])
    q, x = random.dirichlet(np.ones(W), space.n_states), random.dirichlet(np.ones(space.n_states))
    return q, space, x, *random.standard_normal((2, space.n_states))


def gradient(function, x):
    """By imaginary steps, which have no rounding errors of differences."""
    steps = 1e-30j * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([function(x + step).imag for step in steps]).reshape(x.shape) / 1e-30


def outcome(space):
    """Γ(i, a, b), shape (S, W, W)."""
    words = np.arange(space.n_words)
    return space.successors()[:, None, None] + space.n_words * words[:, None] + words


def slope_along(w, x, q, space):
    """w·F(x) for word shares of those present, as in the rate equation off the simplex."""
    return np.einsum("i,ia,b,iab->", x, q, x @ q / x.sum(), w[outcome(space)]) - w @ x


def covariance(v, w, x, q, space):
    """vᵀD(x)w: moves of single agents, and the correlation of the two who meet."""
    moves_v, moves_w = (y[outcome(space)] - y[:, None, None] for y in (v, w))
    jointly_v, jointly_w = (np.einsum("i,ia,iab->ab", x, q, moves) for moves in (moves_v, moves_w))
    return np.einsum("i,ia,b,iab,iab->", x, q, x @ q, moves_v, moves_w) + (jointly_v * jointly_w.T).sum()


SIZES = [(2, 1), (2, 3), (3, 2)]


@pytest.mark.parametrize("size", SIZES)
def test_compiled_products_are_derivatives_of_the_rate_equation_and_of_its_noise(size):
    q, space, x, v, w = drawn(*size)
    equations = PathEquations(q, space)
    transposed = gradient(lambda x: slope_along(w, x, q, space), x)
    np.testing.assert_allclose(equations.drift(x), drift(x, q, space), atol=1e-15)
    np.testing.assert_allclose(equations.transposed(x, w), transposed, atol=1e-13)
    assert w @ equations.linearised(x, v) == pytest.approx(transposed @ v, rel=1e-11)
    np.testing.assert_allclose(equations.noise(x, w), gradient(lambda v: covariance(v, w, x, q, space), v), atol=1e-13)
    assert equations.work(x, w) == pytest.approx(covariance(w, w, x, q, space), rel=1e-12)
    # By the policy, up to a number for each state, which a policy whose rows sum to 1 does not feel
    for found, function in (
        (equations.drift_slope(x, w), lambda q: slope_along(w, x, q, space)),
        (equations.noise_slope(x, v, w), lambda q: covariance(v, w, x, q, space)),
    ):
        np.testing.assert_allclose(np.diff(found, axis=0), np.diff(gradient(function, q).T / x, axis=0), atol=1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_least_action_follows_its_hamiltonian(size):
    """h is the growth rate of the mean of exp(p·change), summed over who meets whom."""
    q, space, x, v, _ = drawn(*size)
    p, equations = 0.3 * v, PathEquations(q, space)

    def h(x, p, q):
        met = np.einsum("i,ia,iab->ab", x, q, np.exp(p[outcome(space)] - p[:, None, None]))
        return ((met * met.T).sum() / x.sum() - x.sum()) / 2

    by_x, by_p = gradient(lambda x: h(x, p, q), x), gradient(lambda p: h(x, p, q), p)
    u, v = x * np.exp(-p), np.exp(p)
    policy = equations.q, equations.memory
    (g,) = _message_kernel.messages_of(u[None], v[None], *policy, equations.n_kept)
    du, dv = _message_kernel.forwards(u, g, *policy, equations.n_kept), -_message_kernel.backwards(v, g, *policy)
    np.testing.assert_allclose(v * du + u * dv, by_p, atol=1e-13)
    np.testing.assert_allclose(dv / v, -by_x, atol=1e-13)
    mesh, ends = Mesh(np.zeros(1), np.ones(1)), Ending(p, np.inf, 0.0, np.ones(1))
    path = LeastActionPath(u[None], v[None], g[None], np.ones(1), np.nan, 0.0, equations, mesh, ends)
    np.testing.assert_allclose(path.slopes(), gradient(lambda q: h(x, p, q), q).T, atol=1e-13)
    assert path.work()[0] == pytest.approx(float(p @ by_p - h(x, p, q)), rel=1e-12)


def test_order_in_the_step(monkeypatch):
    """κ of steps 0.8, 0.4 and 0.2 differs by factors of 2⁴; from one tolerance to another by less than the first."""
    seen = {}
    solve = _least_noise_path._solve

    def spied(ends, guess, step):
        found = solve(ends, guess, step)
        seen[step] = found.kappa
        return found

    monkeypatch.setattr(_least_noise_path, "_solve", spied)
    monkeypatch.setattr(_least_noise_path, "STEP_ERROR", 1e-8)
    kappa = group_size_law(majority(0.53))["kappa"].item()
    first, second = (seen[0.4] - seen[0.8]) / (seen[0.2] - seen[0.4]), (seen[0.2] - seen[0.4]) / (seen[0.1] - seen[0.2])
    assert 10 < first < 30 and 10 < second < 30
    monkeypatch.undo()
    assert group_size_law(majority(0.53))["kappa"].item() == pytest.approx(kappa, rel=2e-5)


def test_the_end_is_far_enough(monkeypatch):
    kappa = group_size_law(majority(0.53))["kappa"].item()
    monkeypatch.setattr(_least_noise_path, "END_ERROR", 1e-10)
    assert group_size_law(majority(0.53))["kappa"].item() == pytest.approx(kappa, rel=3e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_both_paths_agree_where_noise_is_weak(monkeypatch):
    """Leading order leaves out what is of relative order κ; here κ², since words are treated alike but at the start."""
    differences, kappas = [], []
    for start in (0.6, 0.54):
        path = law_path(majority(start)).path
        assert isinstance(path, LeastNoisePath)
        with monkeypatch.context() as patch:
            patch.setattr(_least_noise_path, "_refined", lambda *_: None)
            action = law_path(majority(start)).path
        assert isinstance(action, LeastActionPath)
        np.testing.assert_allclose(action.x.sum(1), 1, atol=1e-12)
        differences.append(abs(action.kappa / path.kappa - 1))
        kappas.append(path.kappa)
    # Both are known to 2e-5, a tenth of the smaller difference
    assert 0 < differences[0] < 1e-2
    assert differences[0] / differences[1] == pytest.approx((kappas[0] / kappas[1]) ** 2, rel=0.2)


def member(length, number):
    """Of the battery."""
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

    def known(policy, **options):
        assert not options.get("exact")
        key = policy_hash(policy)
        if key not in found:
            found[key] = law_path(policy)
        return found[key]

    return known


@pytest.fixture
def paths_known(known_paths, monkeypatch):
    """Paths that another test has followed are not followed again."""
    for module in (_group_size_law, _sensitivity):
        monkeypatch.setattr(module, "law_path", known_paths)


# The types of all that these call are checked where weaker noise takes the same way.
UNCHECKED = pytest.mark.usefixtures("unchecked_types")


# With κ of leading order from 0.2 to 0.9; and those whose branch of leading order folds before empty memories
LEADING, FOLDED = (43, 70, 79, 88, 106), (7, 115)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*LEADING, *FOLDED])
def test_strong_attraction_has_a_path(seed, known_paths):
    law = known_paths(strongly_coupled(seed))
    assert not isinstance(law, NoPath), law
    path = law.path
    assert isinstance(path, LeastNoisePath) == (seed in LEADING)
    assert 0.2 < path.kappa < 2
    share = -(path.p * path.x).sum(1)[0] * (1 if seed in LEADING else 2)
    assert share == pytest.approx(path.kappa**2, rel=1e-6)
    assert np.abs(path.x[-1] - law.points["composition"].values[1]).max() < 2e-2, "it ends at the saddle"


# Newton's method finds the path of the first at once, those of the others by way of agents who answer at random,
# and that of the last waits near an attractor, with a slow saddle.
SLOW = [pytest.param(*both, marks=pytest.mark.slow) for both in ((2, 15), (3, 57), (4, 22), (5, 57))]


@pytest.mark.slow
@UNCHECKED
@pytest.mark.parametrize(("length", "number"), [(2, 29), (4, 46), *SLOW, (2, 67)])
def test_the_least_action_of_agents_who_hardly_ever_slip(length, number, known_paths):
    """h is 0, and κ²/2 the integral of p·dx/dt - h, by which it is not computed. Tilts are of up to e³⁴."""
    law = known_paths(member(length, number))
    assert not isinstance(law, NoPath), law
    path = law.path
    assert isinstance(path, LeastActionPath)
    energy = ((path.messages * path.messages.swapaxes(1, 2)).sum((1, 2)) - 1) / 2
    assert np.abs(energy).max() < 1e-3
    work = path.work()
    total = work @ path.weights + work[-1] / (2 * path.ends.growth)
    assert 2 * total == pytest.approx(path.kappa**2, rel=1e-4)
    np.testing.assert_allclose(path.x.sum(1), 1, atol=1e-9)
    assert path.x.min() >= 0 and np.ptp(path.p) > 1
    np.testing.assert_allclose(path.x[-1], law.points["composition"].values[1], atol=1e-2)


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


@pytest.mark.slow
@UNCHECKED
def test_a_finer_and_longer_path_of_least_action(monkeypatch, known_paths):
    kappa = known_paths(strongly_coupled(115)).path.kappa
    monkeypatch.setattr(_least_action, "SETTLED", 2e-6)
    monkeypatch.setattr(_least_action, "MESSAGE_TOLERANCE", 1e-8)
    assert group_size_law(strongly_coupled(115))["kappa"].item() == pytest.approx(kappa, rel=2e-5)


@pytest.mark.parametrize(
    ("number", "kappa"), [(18, np.inf), (29, 1.6132), pytest.param(67, 0.8161, marks=pytest.mark.slow), (130, np.inf)]
)
@UNCHECKED
@pytest.mark.usefixtures("paths_known")
def test_agents_who_hardly_ever_slip_have_a_kappa(number, kappa):
    """Those who can't say the weak word at all an infinite one."""
    policy = member(2, number)
    law, saddle = group_size_law(policy, n_agents=[12]), meanfield.fixed_points(policy)["word_share"].values[1, 0]
    assert law.attrs["applies"] == 1 and law["kappa"].item() == pytest.approx(kappa, rel=2e-4)
    strong_first = meanfield.solve(policy)["word_share"].isel(word=0, time=-1).item() > saddle
    runs = simulate(policy, n_agents=12, runs=4000, seed=1, max_rounds=60, record_rounds=60)["word_share"]
    first = (runs.isel(word=0, round=-1) > saddle).mean().item()
    assert abs((first if strong_first else 1 - first) - law["probability"].item()) < 0.03


@pytest.mark.slow
@UNCHECKED
@pytest.mark.usefixtures("paths_known")
def test_derivative_of_the_least_action():
    """Central differences of order two with steps of 1e-3 leave 1e-5 of the derivative."""
    policy = strongly_coupled(115)
    assert "κ is that of the least action" in group_size_law(policy).attrs["reason"]
    result = sensitivity(policy, of="kappa")
    q = policy["q"].values[:, 0]
    direction = q * (1 - q) * np.random.default_rng(0).standard_normal(len(q))
    moved = [group_size_law(make_policy(q + step * direction, ["a", "b"]))["kappa"].item() for step in (1e-3, -1e-3)]
    assert result["derivative"].values @ direction == pytest.approx((moved[0] - moved[1]) / 2e-3, rel=1e-3)


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
