"""One battery for all games, then each function against closed forms, differences and the labelled functions."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.sparse.linalg import eigs

import meanfield
from _policies import random_policy
from meanfield import core
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_distribution import StationaryDistribution
from meanfield.core._moments import moved_rows, stepped
from meanfield.core._response import flow_chain, stationary
from meanfield.toolbox import space_of


def word_game(seed: int, n_words: int, length: int, kinds: int = 1) -> core.WordGame:
    policies = [random_policy(seed + m, n_words, length)["q"].values for m in range(kinds)]
    committed = np.zeros(n_words) if kinds == 1 else np.full(n_words, 0.2 / n_words)
    share = 1.0 if kinds == 1 else np.linspace(1, 2, kinds) / np.linspace(1, 2, kinds).sum() * 0.8
    return core.WordGame(policies[0] if kinds == 1 else np.stack(policies), share, committed)


HOSTS_AND_VECTORS = meanfield.ReactionModel.from_rules(  # two conserved classes
    {"SH + IV": "IH + IV", "SV + IH": "IV + IH", "IH": "SH", "IV": "SV"}, [1.0, 1.0, 0.1, 0.3]
)


class Forgetful(core.Game):
    """A game of one's own: some agents forget all, at a rate."""

    naming: core.WordGame
    rate: float

    @property
    def classes(self):
        return self.naming.classes

    def hamiltonian(self, x, p):
        return self.naming.hamiltonian(x, p) + self.rate * jnp.sum(x * jnp.expm1(p[0] - p))


GAMES = {
    "two species of three words and committed agents": word_game(3, 3, 1, 2),
    "two species who meet at rates of their own": core.WordGame(
        word_game(3, 2, 2, 2).q,
        np.array([0.3, 0.5]),
        np.array([[0.1, 0.0], [0.04, 0.06]]),
        np.array([[1.9, 0.7], [0.7, 1]]),
    ),
    "two classes": core.ReactionGame(*HOSTS_AND_VECTORS.game),
    "own": Forgetful(word_game(1, 2, 2), 0.3),
}


THREE_WORDS, *OTHERS = GAMES


@pytest.fixture(params=[pytest.param(THREE_WORDS, marks=pytest.mark.slow), *OTHERS])
def game(request):
    return GAMES[request.param]


def composition_of(game: core.Game, seed: int = 0) -> jnp.ndarray:
    classes = np.asarray(game.classes)
    weights = np.random.default_rng(seed).exponential(size=classes.shape)
    if isinstance(game, core.WordGame):
        return jnp.asarray(weights / weights.sum(-1, keepdims=True) * np.asarray(game.share)[..., None])
    return jnp.asarray(weights / weights.sum())


def check_gradients(function, at, rtol=1e-5):
    """The gradient of a random combination of its numbers, against a central difference in a random direction."""
    random = np.random.default_rng(0)
    direction, step = jnp.asarray(random.normal(size=at.shape)), 1e-5

    def combined(a):
        values = function(a)
        return jnp.vdot(np.random.default_rng(1).normal(size=values.shape), values)

    rows = jnp.stack([at, at + step * direction, at - step * direction])
    (_, above, below), slopes = jax.jit(lambda rows: jax.lax.map(jax.value_and_grad(combined), rows))(rows)
    assert jnp.vdot(slopes[0], direction) == pytest.approx(float(above - below) / (2 * step), rel=rtol)


STEP = 1e-3


@eqx.filter_jit
def everything(game, x, v, shift, factors):
    """The values of all functions of a game, from one program."""

    def drifts(at):
        return jax.vmap(lambda x: core.drift(game, x))(at)

    momenta = jnp.stack([0 * v, v, v + shift, 1e-6 * v, -1e-6 * v])
    return {
        "energies": jax.vmap(lambda p: game.hamiltonian(x, p))(momenta),
        "drift": core.drift(game, x),
        "J": jax.jacfwd(lambda x: core.drift(game, x))(x).reshape(x.size, x.size),
        "D": jax.hessian(lambda p: game.hamiltonian(x, p))(jnp.zeros_like(x)).reshape(x.size, x.size),
        "Jv": core.jacobian_product(game, x, v),
        "vJ": core.jacobian_product(game, x, v, transpose=True),
        "Dv": core.noise_product(game, x, v),
        "curvature": core.curvature(game, x, factors),
        "drifts": jnp.stack([drifts(x + step * factors) for step in (STEP, 0.0, -STEP)]),
    }


def test_functions_of_a_game_are_derivatives_of_its_hamiltonian(game):
    """The drift conserves each class, and is quadratic on the simplex: its second differences are its curvature."""
    x, v, classes = composition_of(game), composition_of(game, 1) - 0.5, np.asarray(game.classes)
    shift = np.arange(x.size, dtype=float)[classes]
    factors = np.stack([x - game.masses(x) / game.masses(one) * one for one in (v + 0.5, composition_of(game, 2))])
    found = jax.tree.map(np.asarray, everything(game, x, v, shift, factors))
    still, moved, shifted, above, below = found["energies"]
    assert abs(still) < 1e-15
    assert shifted == pytest.approx(moved, abs=1e-12), "momenta of a whole class say nothing"
    np.testing.assert_allclose(np.bincount(classes.ravel(), found["drift"].ravel()), 0, atol=1e-15)
    assert np.vdot(found["drift"], v) == pytest.approx((above - below) / 2e-6, rel=1e-6)
    J, D, v = found["J"], found["D"], np.ravel(v)
    for product, matrix in (("Jv", J), ("vJ", J.T), ("Dv", D)):
        np.testing.assert_allclose(found[product].ravel(), matrix @ v, atol=1e-13)
    assert np.linalg.eigvalsh(D).min() > -1e-12
    assert np.linalg.eigvalsh(D).max() > 1e-3
    np.testing.assert_allclose(found["drifts"][1], np.stack([found["drift"]] * 2), atol=1e-15)
    bent = np.diff(found["drifts"], 2, axis=0)[0].sum(0) / (2 * STEP**2)
    np.testing.assert_allclose(found["curvature"], bent, atol=1e-8)
    assert np.abs(bent).max() > 1e-4


def test_all_are_differentiable():
    game = GAMES["two species who meet at rates of their own"]

    def every(point):
        x, v = point
        products = (core.jacobian_product(game, x, v), core.noise_product(game, x, v), core.curvature(game, x, v[None]))
        return jnp.stack([*products, jnp.full_like(x, game.hamiltonian(x, v))])

    check_gradients(every, jnp.stack([composition_of(game), composition_of(game, 1) - 0.5]))


def test_hamiltonian_is_the_double_sum_over_pairs_of_agents():
    """Each of two agents says a word by its policy and moves; the control exchanges what is said and heard."""
    policy = random_policy(5, 2, 2)
    q, space = policy["q"].values, space_of(policy)
    x, p = (np.random.default_rng(seed).dirichlet(np.ones(space.n_states)) for seed in (0, 1))

    def after(state: int, said: tuple[int, int]) -> int:
        return space.state((*space.memory(state), said)[-2:])

    def summed(order: int) -> float:
        total = -1.0
        for i, j in itertools.product(range(space.n_states), repeat=2):
            for a, b in itertools.product(range(2), repeat=2):
                mine, theirs = [(a, b), (b, a)][::order]
                jump = p[after(i, mine)] - p[i] + p[after(j, theirs)] - p[j]
                total += x[i] * x[j] * q[i, a] * q[j, b] * np.exp(jump)
        return total / 2

    found = float(core.WordGame(q).hamiltonian(jnp.asarray(x), jnp.asarray(p)))
    assert found == pytest.approx(summed(1), abs=1e-14)
    assert abs(found - summed(-1)) > 1e-4


def test_a_game_without_classes_can_not_be_made():
    class Unfinished(core.Game):
        def hamiltonian(self, x, p):
            return jnp.zeros(())

    with pytest.raises(TypeError, match="classes"):
        Unfinished()


def test_drift_is_that_of_the_dense_tensor():
    game = word_game(7, 2, 2)
    P, x = core.reaction_tensor(game), composition_of(game)
    np.testing.assert_allclose(P.sum(0), 1, atol=1e-15)
    np.testing.assert_allclose(jnp.einsum("kij,i,j->k", P, x, x) - x, core.drift(game, x), atol=1e-15)


def laws(policy) -> StationaryDistribution:
    q, space = policy["q"].values, space_of(policy)
    return StationaryDistribution(q, space, closed_classes(q, space, heard=tuple(range(space.n_words)))[0])


@pytest.mark.parametrize(("size", "least"), [((3, 1), 1e-150), ((2, 4), 1e-30)])
def test_stationary_distributions_have_full_relative_accuracy(size, least):
    """Against elimination in compiled loops; the control, a solution by LU, knows nothing of small entries."""
    policy = random_policy(1, *size)
    Q = np.array([least, *np.full(size[0] - 1, (1 - least) / (size[0] - 1))])
    exact = laws(policy).flow_law(Q[None])[0]
    chain = np.asarray(jax.jit(flow_chain)(policy["q"].values, np.tile(Q, (len(Q), 1))))
    found = jax.jit(stationary)(chain)
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    n = len(exact)
    by_lu = np.linalg.solve((np.eye(n) - chain).T + 1 / n, np.full(n, 1 / n))
    assert size[1] == 1 or np.abs(by_lu / exact - 1).max() > 1


def test_response_and_its_derivatives():
    game, Q = word_game(4, 2, 2, 2), jnp.array([0.3, 0.7])
    x = core.composition(game, Q)
    np.testing.assert_allclose(x.sum(-1), game.share, rtol=1e-14)
    np.testing.assert_allclose(core.word_share(game, x), core.response(game, Q), rtol=1e-13)

    def respond(a):
        first = jax.nn.sigmoid(a[:-1].reshape(game.q.shape[:2]))
        Q = jax.nn.sigmoid(jnp.stack([a[-1], -a[-1]]))
        return core.response(core.WordGame(jnp.stack([first, 1 - first], -1), game.share, game.committed), Q)

    def with_slope(a):
        return jnp.stack(jax.jvp(respond, (a,), (jnp.ones_like(a),)))

    check_gradients(with_slope, jnp.append(jax.scipy.special.logit(game.q[..., 0]).ravel(), -0.8))


SPACE = meanfield.MemorySpace(2, 2)
LEAD = np.array([sum(pair.count(0) - 1 for pair in SPACE.memory(i)) for i in range(SPACE.n_states)])
NOISE = 0.3 * np.random.default_rng(3).normal(size=SPACE.n_states)


def game_of(a) -> core.WordGame:
    first = jax.nn.sigmoid(a)
    return core.WordGame(jnp.stack([first, 1 - first], axis=-1))


A = jnp.asarray(3.0 * LEAD + NOISE)  # log-odds of agents who follow what they remember most
DIRECTION = jnp.asarray(np.random.default_rng(4).normal(size=SPACE.n_states))


def at(a):
    """The fixed point near the first word."""
    return core.fixed_point(game_of(a), jnp.array([0.98, 0.02])).composition


def labelled(a):
    return meanfield.make_policy(np.asarray(jax.nn.sigmoid(a)), ["a", "b"])


def test_fixed_points_are_those_of_the_labelled_function():
    found, exact = core.fixed_points(game_of(A)), meanfield.fixed_points(labelled(A))
    order = found.successful
    np.testing.assert_allclose(found.word_share[order], exact["word_share"], atol=1e-12)
    np.testing.assert_allclose(found.composition[order], exact["composition"], atol=1e-12)
    one = core.fixed_point(game_of(A), jnp.array([0.98, 0.02]))
    np.testing.assert_allclose(one.word_share, exact["word_share"][0], atol=1e-12)
    policy = random_policy(6, 3, 1)
    three = core.fixed_point(core.WordGame(policy["q"].values), jnp.full(3, 1 / 3))
    assert three.successful
    np.testing.assert_allclose(three.word_share, meanfield.fixed_points(policy)["word_share"][0], atol=1e-10)


def test_exact_consensus_is_a_fixed_point():
    first = 0.5 + 0.5 * np.sign(LEAD)
    found = core.fixed_points(core.WordGame(np.stack([first, 1 - first], axis=1)))
    np.testing.assert_allclose(found.word_share[found.successful], [[1, 0], [0.5, 0.5], [0, 1]], atol=1e-12)


@pytest.mark.slow
def test_derivatives_of_fixed_points():
    """The control: fixed points that stay. Entries without one have no derivatives, though log 0 is infinite."""

    @jax.jit
    @jax.jacrev
    def slopes(q):
        found = core.fixed_points(core.WordGame(q))
        return jnp.where(found.successful, found.word_share[:, 0], 0)

    def held(q, x):
        game = core.WordGame(q)
        return core.word_share(game, core.implicit_fixed_point(game, x))[0]

    check_gradients(at, A)
    q, found = game_of(A).q, core.fixed_points(game_of(A))
    places = np.flatnonzero(found.successful)
    along = DIRECTION[:, None] * np.array([1, -1])  # rows of q keep their sums
    by_all = (slopes(q)[places] * along).sum((1, 2))
    by_each = jax.jit(jax.vmap(jax.grad(held), (None, 0)))(q, found.composition[places])
    np.testing.assert_allclose(by_all, (by_each * along).sum((1, 2)), atol=1e-12)
    assert abs((found.composition[2][:, None] * np.array([1, 0]) * along).sum() - by_all[1]) > 1e-3, "the control"
    np.testing.assert_array_equal(slopes(jnp.tile(jnp.array([1.0, 0.0]), (len(LEAD), 1))), 0)


def test_implicit_fixed_points_of_reaction_models():
    """The endemic state of an epidemic: infected 1 - r at the recovery rate r, with the derivative -1."""
    model = meanfield.ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [1.0, 0.5])
    game = core.ReactionGame(*model.game)

    def infected(rate):
        moved = eqx.tree_at(lambda game: game.rate, game, rate)
        return core.implicit_fixed_point(moved, jnp.array([0.5, 0.5]))[1]

    recovery = int(np.argmax(np.asarray(game.side) == 2))
    assert jax.grad(infected)(game.rate)[recovery] == pytest.approx(-1, abs=1e-12)


def test_critical_masses_of_many_policies_and_their_gradients():
    """Committed agents that are there count; without a bias nothing vanishes."""
    there = np.array([0.0, 0.02])
    exact = [
        meanfield.critical_mass(meanfield.Population(labelled(A), committed={"b": c}), word="b")["critical_mass"]
        for c in there
    ]

    def mass(a, committed):
        game = core.WordGame(game_of(a).q, 1 - committed, jnp.stack([0.0, committed]))
        return core.critical_mass(game, np.int64(1))

    rows = jnp.stack([A, A, 0 * A, A + 1e-5 * DIRECTION, A - 1e-5 * DIRECTION])
    found, slopes = jax.jit(jax.vmap(jax.value_and_grad(mass)))(rows, jnp.array([*there, 0, 0, 0]))
    np.testing.assert_allclose(found[:3], [*exact, np.nan], atol=1e-9)
    assert slopes[0] @ DIRECTION == pytest.approx(float(found[3] - found[4]) / 2e-5, rel=1e-5)
    with pytest.raises(ValueError, match="word = -1: expected 0 or 1"):
        core.critical_mass(game_of(A), -1)


def test_a_cluster_of_eigenvalues_is_told(monkeypatch):
    """One Krylov space of 40 does not separate the 340 eigenvalues of a random policy."""
    monkeypatch.setattr("meanfield.core._spectrum.eigs", lambda *args, **more: eigs(*args, **{**more, "maxiter": 1}))
    q = 0.5 + 0.1 * np.random.default_rng(0).normal(size=341)
    game = core.WordGame(np.stack([q, 1 - q], axis=-1))
    with pytest.raises(meanfield.ConvergenceError, match="close to the leading ones"):
        core.leading_eigenvalues(game, composition_of(game), 2)


@pytest.mark.parametrize("dense", [True, False])
def test_leading_eigenvalues(dense, monkeypatch):
    """The derivative with the fixed point that moves; the control holds it where it is."""
    monkeypatch.setattr("meanfield.core._spectrum.DENSE_SIZE", 200 if dense else 5)
    x = at(A)
    found = core.leading_eigenvalues(game_of(A), x, 2)
    exact = meanfield.spectrum(labelled(A), np.asarray(x), k=2)["eigenvalue"]
    np.testing.assert_allclose(found.values.real, exact, atol=1e-9)
    if dense:
        vectors = jnp.asarray(found.left[0].real), jnp.asarray(found.right[0].real)
        moving = jax.jit(jax.grad(lambda a: core.eigenvalue(game_of(a), at(a), *vectors)))(A)
        standing = jax.jit(jax.grad(lambda a: core.eigenvalue(game_of(a), x, *vectors)))(A)
        sides = [A + step * DIRECTION for step in (1e-5, -1e-5)]
        above, below = (core.leading_eigenvalues(game_of(a), at(a)).values[0].real for a in sides)
        difference = (above - below) / 2e-5
        assert moving @ DIRECTION == pytest.approx(difference, rel=1e-5)
        assert abs(standing @ DIRECTION / difference - 1) > 1e-3


RTOL = (1e-5, 1e-8, 1e-11, 1e-14)  # the last takes too many steps


def test_trajectories_follow_their_tolerance():
    """Against another integrator of the dense equation. The control: it is the tolerance that decides."""
    game, times = word_game(1, 2, 2), np.linspace(0, 30, 50)
    P, start = np.asarray(core.reaction_tensor(game)), np.asarray(composition_of(game))
    options = {"method": "DOP853", "t_eval": times, "rtol": 1e-13, "atol": 1e-15}
    exact = solve_ivp(lambda t, x: P @ x @ x / x.sum() - x, (0, 30), start, **options).y.T
    found = {rtol: core.trajectory(game, start, times, rtol=rtol, atol=rtol, max_steps=200) for rtol in RTOL}
    errors = [np.abs(one.observed - exact).max() for one in found.values()]
    assert (np.array(errors[:3]) < 10 * np.array(RTOL[:3])).all() and errors[0] > 1e3 * errors[2]
    assert [bool(one.successful) for one in found.values()] == [True, True, True, False]


def test_a_game_is_one_program_for_all_values_of_its_arrays():
    traced = []

    class Decay(core.Flow):
        rate: Any

        @property
        def classes(self):
            return jnp.zeros(2, int)

        def drift(self, x):
            traced.append(self.rate)
            return jnp.array([-1.0, 1.0]) * self.rate * x[0]

    x = jnp.array([0.5, 0.5])
    for rate in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(core.drift(Decay(jnp.asarray(rate)), x), [-rate / 2, rate / 2])
    assert len(traced) == 1
    for rate in (1.0, 2.0, 3.0):  # numbers of Python would be parts of programs, all of which are kept
        np.testing.assert_allclose(core.drift(Decay(rate), x), [-rate / 2, rate / 2])
    assert traced[1:] == [1.0, 2.0, 3.0]


@pytest.mark.slow
def test_derivatives_of_a_trajectory():
    times, start = jnp.linspace(0.0, 5.0, 4), composition_of(game_of(A))

    def shares(a, start):
        game = game_of(a)
        return core.trajectory(game, start, times, observe=lambda x: core.word_share(game, x), rtol=1e-10).observed

    check_gradients(lambda a: shares(a, start), A, rtol=1e-4)
    check_gradients(lambda start: shares(A, start), start, rtol=1e-4)


def test_eigenvalues_of_fast_reactions_and_of_several_species():
    """Two states with rate 5 each way have the one eigenvalue -10; no more are promised than there are."""
    flip = np.array([[0.0, 5], [5, 0]])
    model = meanfield.ReactionModel(["A", "B"], [[0, 0]], [[0, 0]], spontaneous=flip)
    half = jnp.array([0.5, 0.5])
    found = core.leading_eigenvalues(core.ReactionGame(*model.game), half)
    np.testing.assert_allclose(found.values, [-10], atol=1e-12)
    with pytest.raises(ValueError, match="k = 2: expected 1 to 1"):
        core.leading_eigenvalues(core.ReactionGame(*model.game), half, 2)
    population = meanfield.Population(
        [random_policy(seed, 2, 2) for seed in (1, 2)], fractions=[0.3, 0.7], committed={"a": 0.1}
    )
    points, mixture = meanfield.fixed_points(population), population.mixture
    x = jnp.asarray(points["composition"].values[0] * mixture.share[:, None])
    found = core.leading_eigenvalues(core.WordGame(*mixture), x)
    assert found.values[0].real == pytest.approx(points["eigenvalue"].values[0], abs=1e-9)


def test_shapes_are_checked():
    q = GAMES["two species of three words and committed agents"].q
    with pytest.raises(ValueError, match=r"share has shape \(\): expected \(2,\)"):
        core.WordGame(q, 1.0)


def test_agents_who_never_change_their_word_in_32_bits():
    q = jnp.array([0.5, 1, 1, 0, 0], jnp.float32)
    found = core.response(core.WordGame(jnp.stack([q, 1 - q], -1)), jnp.array([0.3, 0.7], jnp.float32))
    assert jnp.isfinite(found).all()


@pytest.mark.slow
def test_the_scale_of_eigenvalues_needs_no_digits():
    """No eigenvalue of the largest modulus converges here: many lie at -1."""
    space, rng = meanfield.MemorySpace(2, 4), np.random.default_rng(422)
    lead = np.array([[sum(pair.count(w) for pair in space.memory(i)) for w in (0, 1)] for i in range(space.n_states)])
    weights = np.exp(3.0 * lead + 0.5 * rng.normal(size=lead.shape))
    policy = meanfield.make_policy(weights / weights.sum(1, keepdims=True), ["a", "b"])
    points = meanfield.fixed_points(policy)
    for x, value in zip(points["composition"].values, points["eigenvalue"].values, strict=True):
        if value > -0.9:  # nearer to -1 64 bits are too few
            found = core.leading_eigenvalues(core.WordGame(policy["q"].values), x).values[0]
            assert found.real == pytest.approx(value, abs=1e-9)


def test_one_step_is_of_order_five():
    """Halving a step makes the error of moments 2⁶ times smaller; perturbations are differences of two solutions."""
    game = word_game(3, 2, 2)
    x, other = (np.asarray(composition_of(game, seed)) for seed in range(2))

    @jax.jit
    def after(step, parts):
        return jax.lax.fori_loop(0, parts, lambda _, x: stepped(game, x, step / parts), x)

    errors = [np.abs(after(step, 1) - after(step, 32)).max() for step in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.4)
    along, far = np.stack([other - x] * 5), np.stack([x, other])
    moved = jax.jit(moved_rows)(game, far, np.array([0.2, 0.1]), [along, along[:2]])
    there, back = (jax.jit(stepped)(game, x + sign * 1e-6 * (other - x), 0.2) for sign in (1, -1))
    np.testing.assert_allclose(moved[:5], [(there - back) / 2e-6] * 5, atol=1e-9)
    there, back = (jax.jit(stepped)(game, other + sign * 1e-6 * (other - x), 0.1) for sign in (1, -1))
    np.testing.assert_allclose(moved[5:], [(there - back) / 2e-6] * 2, atol=1e-9)
