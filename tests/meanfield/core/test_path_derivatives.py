"""Derivatives of actions and of lifetimes, against closed forms, and paths and lifetimes that are computed anew."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import meanfield
from _exact_chains import ExactChain
from meanfield import ReactionModel, core, escape_path, lifetime

pytestmark = pytest.mark.usefixtures("unchecked_types")

STEP = 1e-3  # of the parameters: the error of a central difference is about its square
ERROR = 5e-4  # of a derivative, against its scale: paths are found to 1e-4 at worst, as their errors say
THETA = np.array([1.5, -0.05])
NOBODY = core.ReactionGame(np.empty((0, 2)), *np.empty((3, 0), int), np.empty(0), np.zeros(2, int), 1.0)


def both_ways(rates):
    """Agents in two states who move from each to the other at these rates, functions of the composition."""
    return core.RateGame(NOBODY, np.array([0, 1]), np.array([1, 0]), rates)


def audience_rates(theta, x):
    yes = (1 + jnp.tanh(theta[0] * (x[1] - x[0]) + theta[1])) / 2
    return jnp.stack([yes, 1 - yes])


def audience(theta):
    """Agents see all others, and say yes with the probability (1 + tanh(βm + field))/2."""
    return both_ways(Partial(audience_rates, jnp.asarray(theta)))


@cache
def audience_path():
    rates = [lambda x, k=k: audience_rates(THETA, jnp.stack([x["no"], x["yes"]]))[k] for k in range(2)]
    model = ReactionModel.from_rules({"no": "yes", "yes": "no"}, rates)
    found = escape_path(model, fixed_point=0)
    assert found["composition"].values[0, 0] > 0.5, "from no"
    return found


def prefactor_of_audience(theta):
    """In one dimension all is known: log of 2π/(low (1 - low) √|φ''(low) φ''(top)|)."""
    game, ends = audience(theta), []
    for guess in (0.1, 0.53):
        for _ in range(8):
            flow, slope = jax.value_and_grad(lambda x: core.drift(game, jnp.stack([1 - x, x]))[1])(guess)
            guess = guess - flow / slope
        ends.append(float(guess))
    curvature = [(1 - 4 * theta[0] * x * (1 - x)) / (x * (1 - x)) for x in ends]
    return np.log(2 * np.pi / (ends[0] * (1 - ends[0]) * np.sqrt(-curvature[0] * curvature[1])))


def test_of_one_dimension_all_is_known():
    path, game = audience_path(), audience(THETA)
    value, longer = (core.log_lifetime(game, path, N) for N in (0.0, 40.0))
    assert value == pytest.approx(prefactor_of_audience(THETA), abs=1e-6)
    assert longer - value == pytest.approx(40 * path.attrs["barrier"])
    assert np.isnan(core.log_lifetime(audience(THETA + np.array([3.0, 0.0])), path, 0.0)), "not the path of that game"


@pytest.mark.slow
@pytest.mark.parametrize("meet", [True, False], ids=["pairs", "functions"])
def test_epidemics_last_as_in_the_closed_form(meet):
    """Pairs of two different agents gain a factor exp(1 - 1/R)."""
    R, N = 2.0, 50.0
    rules, rates = ({"S + I": "2 I", "I": "S"}, [R, 1.0]) if meet else ({"S": "I", "I": "S"}, [lambda x: R * x["I"], 1])
    model = ReactionModel.from_rules(rules, rates)
    names = ("own", "source", "target", "side", "rate", "classes")
    arrays = dict(zip(names, model.game, strict=False))
    moved = model.game[3] < len(model.game[0])  # in encounters, not alone

    def game(R):
        if not meet:
            return both_ways(lambda x: jnp.stack([R * x[1], jnp.ones(())]))
        rate = arrays["rate"] * jnp.where(moved, R / 2, 1)
        return core.ReactionGame(**arrays | {"rate": rate}, encounter_rate=model.game[6])

    def closed(R):
        gained = meet * (1 - 1 / R)
        return jnp.log(2 * np.pi / N) / 2 + jnp.log(R) - 2 * jnp.log(R - 1) + gained + N * (jnp.log(R) + 1 / R - 1)

    path = escape_path(model, fixed_point=1)
    value, slope = jax.value_and_grad(lambda R: core.log_lifetime(game(R), path, N))(R)
    assert value == pytest.approx(float(closed(R)), abs=2e-5)
    assert slope == pytest.approx(float(jax.grad(closed)(R)), rel=1e-4)


PAIRS = {"A + U": "2 A", "B + U": "2 B", "A + B": "2 U", "A": "U", "B": "U"}


@pytest.mark.slow
def test_in_two_dimensions_it_is_that_of_exact_chains():
    """Two opinions and doubt, by the rate of errors. The control leaves out the prefactor."""

    def model(errors):
        alone = [lambda x: 0.4 * x["B"] ** 2, lambda x: 0.4 * x["A"] ** 2]
        rules = [*PAIRS.items(), ("U", "A"), ("U", "B"), ("A", "U"), ("B", "U")]
        return ReactionModel.from_rules(rules, [1.0, 1, 1, *4 * [errors], *alone], states=[*"ABU"])

    def exact(errors, n_agents):
        attractor = escape_path(model(errors), fixed_point=0)["composition"].values[0]
        chain = ExactChain(model(errors), [n_agents])
        ours, theirs = np.argsort(-attractor[:2])
        return np.log(2 * chain.first_passage(attractor, chain.counts[:, ours] <= chain.counts[:, theirs]))

    errors, sizes = 0.18, np.array([45, 90])
    arrays = model(errors).game
    varied = np.flatnonzero(arrays[3] == len(arrays[0]))  # moves alone, at the rate of errors
    assert np.allclose(arrays[4][varied], errors)
    driven = jnp.array([0, 1]), jnp.array([2, 2])

    def game(errors):
        pairs = core.ReactionGame(*arrays[:4], jnp.asarray(arrays[4]).at[varied].set(errors), *arrays[5:7])
        return core.RateGame(pairs, *driven, lambda x: 0.4 * x[1::-1] ** 2)

    path = escape_path(model(errors), fixed_point=0)

    barrier = jax.grad(lambda errors: core.action(game(errors), path))(errors)
    prefactor = jax.grad(lambda errors: core.log_lifetime(game(errors), path, 0.0))(errors)
    chains = np.array([(exact(errors + STEP, n) - exact(errors - STEP, n)) / (2 * STEP) for n in sizes])
    off = (prefactor + sizes * barrier) / chains - 1
    assert abs(off[1]) < 0.6 * abs(off[0]) and abs(off[1]) < 2e-3
    assert abs(sizes[1] * barrier / chains[1] - 1) > 3 * abs(off[1]), "the control"


class Family:
    """Agents who follow the words that they hold, of whom a few may always say B.

    Parameters are the inverse temperature, the bias, and the strength of whims or how many are committed.
    """

    def __init__(self, length, seed=None):
        space, random = meanfield.MemorySpace(2, length), np.random.default_rng([seed or 0, length])
        held = [[word for pair in space.memory(i) for word in pair] for i in range(space.n_states)]
        self.lead = np.array([words.count(0) - words.count(1) for words in held])
        self.whims = None if seed is None else 0.3 * random.standard_normal(space.n_states)
        self.theta = np.array([2.4 / length, 0.08, 0.03 if seed is None else 1.0])
        self.direction = np.array([0.5, 0.3, 0.2]) if seed is None else random.standard_normal(3)

    def game(self, theta):
        committed = self.whims is None
        first = jax.nn.sigmoid(theta[0] * self.lead + theta[1] + (0 if committed else theta[2] * self.whims))
        q = jnp.stack([first, 1 - first], axis=-1)
        return core.WordGame(q, committed=jnp.stack([0.0, theta[2]]) if committed else None)

    def population(self, theta):
        policy = meanfield.make_policy(np.array(self.game(theta).q), ["A", "B"])
        return policy if self.whims is not None else meanfield.Population(policy, committed={"B": theta[2]})

    def path(self, theta, start):
        return escape_path(self.population(theta), fixed_point=start)

    def slope(self, path):
        """The derivative of the action in the family's direction, and the largest that it could be."""
        slope = jax.grad(lambda theta: core.action(self.game(theta), path))(jnp.array(self.theta))
        return float(slope @ self.direction), float(jnp.linalg.norm(slope) * np.linalg.norm(self.direction))


class ThreeWords(Family):
    """Agents who remember one interaction: whoever heard another word than it said says the third, but for errors."""

    def __init__(self, seed):
        random, space = np.random.default_rng(seed), meanfield.MemorySpace(3, 1)
        self.theta, self.direction = np.array([3.0, 0.2, 0.1]), random.standard_normal(3)
        self.rules = np.zeros((space.n_states, 3))
        for i in range(1, space.n_states):
            ((own, partner),) = space.memory(i)
            kept = {own, partner} - {2}
            self.rules[i, min(kept) if len(kept) == 1 else 2] = 1.0
        self.whims = random.standard_normal(self.rules.shape)

    def game(self, theta):
        bias = theta[1] * jnp.array([1.0, 0, 0])
        return core.WordGame(jax.nn.softmax(theta[0] * self.rules + bias + theta[2] * self.whims, axis=-1))

    def population(self, theta):
        return meanfield.make_policy(np.array(self.game(theta).q), ["A", "B", "neither"])


@cache
def slope_found_anew(family, start):
    above, below = (family.path(family.theta + sign * STEP * family.direction, start) for sign in (1, -1))
    return (above.attrs["barrier"] - below.attrs["barrier"]) / (2 * STEP)


WHIMSICAL = Family(2, seed=0)
SLOW = [
    *((Family(2), None), (Family(2), 0), (WHIMSICAL, 0), (Family(3, seed=2), 0), (Family(3, seed=2), None)),
    (ThreeWords(0), 0),
]


@pytest.mark.parametrize(
    ("family", "start"), [(WHIMSICAL, None), *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_derivatives_of_actions_are_those_of_paths_found_anew(family, start):
    found = family.path(family.theta, start)
    slope, scale = family.slope(found)
    assert core.action(family.game(family.theta), found) == pytest.approx(found.attrs["barrier"], abs=1e-15)
    # An action is stationary at its path: an error ε of the barrier is one of order √ε of the path and of derivatives
    error = ERROR + np.sqrt(found.attrs["barrier_error"])
    assert error < 0.01 and abs(slope - slope_found_anew(family, start)) < error * scale


def test_the_path_of_another_policy_has_other_derivatives():
    """The control: a bias that is larger by a third."""
    slope, scale = WHIMSICAL.slope(WHIMSICAL.path(WHIMSICAL.theta * [1, 4 / 3, 1], None))
    assert abs(slope - slope_found_anew(WHIMSICAL, None)) > 10 * ERROR * scale


@pytest.mark.slow
def test_words_last_as_lifetimes_that_are_computed_anew():
    family, N = Family(2), 30
    path, direction = family.path(family.theta, 0), family.direction
    value, slope = jax.value_and_grad(lambda theta: core.log_lifetime(family.game(theta), path, N))(family.theta)
    again = lifetime(family.population(family.theta), n_agents=N).sel(fixed_point=0)
    assert value == pytest.approx(np.log(again["lifetime"].item()), abs=again["prefactor_error"].item())

    def anew(theta):
        ours = core.log_lifetime(family.game(theta), family.path(theta, 0), N)
        theirs = lifetime(family.population(theta), n_agents=N).sel(fixed_point=0)["lifetime"].item()
        return float(ours), np.log(theirs)

    above, below = (np.array(anew(family.theta + sign * STEP * direction)) for sign in (1, -1))
    ours, theirs = (above - below) / (2 * STEP)
    scale = np.linalg.norm(slope) * np.linalg.norm(direction)
    assert abs(slope @ direction - ours) < 1e-4 * scale
    assert abs(slope @ direction - theirs) < 1e-3 * scale, "prefactors of lifetimes are known less well"


@pytest.mark.slow
def test_a_path_that_reaches_its_saddle_sideways_has_none():
    """Three opinions: the saddle between two of them attracts more slowly than it repels."""
    rules = [(f"{a} + {b}", f"? + {b}") for a in "ABC" for b in "ABC" if a != b]
    rules += [(f"? + {a}", f"2 {a}") for a in "ABC"] + [(a, "?") for a in "ABC"] + [("?", a) for a in "ABC"]
    rates = [*9 * [2.0], *3 * [0.13], *3 * [0.13 / 3]]
    model = ReactionModel.from_rules(rules, rates, states=[*"ABC?"])
    path = escape_path(model, fixed_point=0)
    game = core.ReactionGame(*model.game)
    value, slope = jax.value_and_grad(lambda N: core.log_lifetime(game, path, N))(50.0)
    assert np.isnan(value) and slope == pytest.approx(path.attrs["barrier"])


def test_paths_that_are_not_the_games_are_refused():
    words = WHIMSICAL.game(WHIMSICAL.theta)
    game, path = audience(THETA), audience_path()
    with pytest.raises(ValueError, match="path starts from empty memories"):
        core.log_lifetime(words, WHIMSICAL.path(WHIMSICAL.theta, None), 30)
    with pytest.raises(ValueError, match="path is one of 2 states: expected the 21 of the game"):
        core.log_lifetime(words, path, 30)
    with pytest.raises(ValueError, match=r"of its largest momentum: expected at most 0\.1, as next to the attractor"):
        core.log_lifetime(game, path.isel(time=slice(path["time"].size // 2, None)), 30)
    with jax.enable_x64(False), pytest.raises(ValueError, match="JAX has 32 bits"):
        core.log_lifetime(game, path, 30)
