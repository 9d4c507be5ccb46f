"""Games of pairs by their fields, and the action of instantons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import meanfield
from _policies import majority, random_policy
from meanfield import core
from meanfield.core import _instanton
from meanfield.core._path_search import Ending, PathProblem, mesh_until, resting
from meanfield.toolbox import as_population


def words(seed: int = 0):
    population = meanfield.Population(
        [random_policy(seed, memory_length=2), random_policy(seed + 1, memory_length=2)],
        fractions=[0.3, 0.7],
        committed={"b": 0.2},
    )
    return core.WordGame(*population.mixture), tuple(population.mixture)


def reactions():
    rules = {"S + I": "2 I", "I": "S", "2 S": "S + R", "R + I": "R + S", "R": "S"}
    model = meanfield.ReactionModel.from_rules(rules, [1.0, 0.4, 0.3, 0.2, 0.1])
    return core.ReactionGame(*model.game), model.game


GAMES = pytest.mark.parametrize("game_of", [words, reactions])


def drawn(game, seed=1):
    random = np.random.default_rng(seed)
    weights = random.random(game.classes.shape) + 0.05
    share = getattr(game, "share", jnp.ones(()))
    x = weights / weights.sum(-1, keepdims=True) * np.asarray(share)[..., None]
    return x, 0.5 * random.standard_normal(x.shape)


@GAMES
def test_hamiltons_equations_are_linear_given_the_fields(game_of):
    """The Hamiltonian is the energy of the fields."""
    game, _ = game_of()

    @jax.jit
    def sides(x, p):
        u, v = x * jnp.exp(-p), jnp.exp(p)
        g = game.fields(u, v) + game.constants
        response, still = jax.grad(game.energy)(g), jnp.zeros(())
        onwards, backwards = _instanton._rates(game)
        rates = onwards(u, response, still), -backwards(v, response, still)
        hamiltonian, slopes = jax.value_and_grad(game.hamiltonian, (0, 1))(x, p)
        return game.energy(g), hamiltonian, v, *rates, *slopes

    x, p = drawn(game)
    energy, hamiltonian, v, du, dv, by_x, by_p = map(np.asarray, sides(x, p))
    assert energy == pytest.approx(hamiltonian, abs=1e-14) and abs(energy) > 1e-2
    np.testing.assert_allclose(v * du + x / v * dv, by_p, atol=1e-13)
    # Up to a number for each class, whose mass is conserved
    off = (dv / v + by_x).reshape(-1, x.shape[-1])
    np.testing.assert_allclose(off - off[:, :1], 0, atol=1e-13)


def path(mixture):
    """From empty memories to a share of 0.6 of the first word at time 3."""
    start = np.zeros(mixture.q.shape[:2])
    start[:, 0] = mixture.share
    mesh = mesh_until(3.0, 8, 1.0)
    problem = PathProblem(tuple(mixture), Ending(mixture.q[..., 0], 0.6), mesh, start)
    found = problem.solve(np.tile(resting(problem.arrays, start[None]), (mesh.n_nodes, 1)), 1e-11, 500)
    assert found is not None
    return problem, found


def test_an_instanton_keeps_its_energy_and_its_masses_and_ends_where_it_must():
    mixture = as_population(majority(0.5, length=2)).mixture
    problem, found = path(mixture)
    u, v = problem.trajectories(found)
    x, p = u * v, np.log(v)
    game = core.WordGame(*mixture)
    energy = np.asarray(jax.vmap(game.hamiltonian)(x, p))
    np.testing.assert_allclose(energy, energy[-1], atol=1e-6)
    np.testing.assert_allclose(x.sum((1, 2)), 1, atol=1e-12)
    assert core.word_share(game, x[-1])[0] == pytest.approx(0.6, abs=1e-12)
    done = np.trapezoid(
        (p * np.gradient(x, problem.mesh.time[::2], axis=0)).sum((1, 2)) - energy, problem.mesh.time[::2]
    )
    assert found.action == pytest.approx(done, rel=2e-3)
