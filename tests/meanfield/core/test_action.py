"""Derivatives of actions by parameters of a policy, against those of paths that are found anew."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import meanfield
from meanfield import core

pytestmark = pytest.mark.usefixtures("unchecked_types")

STEP = 1e-3  # of the parameters: the error of a central difference is about its square
ERROR = 5e-4  # of a derivative, against its scale: paths are found to 1e-4 at worst, as their errors say


class Family:
    """Agents of one memory length whose log-odds follow the words that they hold, by inverse temperature and bias."""

    def __init__(self, seed, length):
        space, random = meanfield.MemorySpace(2, length), np.random.default_rng([seed, length])
        held = [[word for pair in space.memory(i) for word in pair] for i in range(space.n_states)]
        self.lead = np.array([words.count(0) - words.count(1) for words in held])
        self.whims = 0.3 * random.standard_normal(space.n_states)
        self.theta = np.array([random.uniform(2, 3) / length, random.uniform(0.05, 0.15), 1.0])
        self.direction = random.standard_normal(3)

    def game(self, theta):
        first = jax.nn.sigmoid(theta[0] * self.lead + theta[1] + theta[2] * self.whims)
        return core.WordGame(jnp.stack([first, 1 - first], axis=-1))

    def policy(self, theta) -> xr.Dataset | meanfield.Population:
        return meanfield.make_policy(np.array(self.game(theta).q), ["A", "B"])


class Committed(Family):
    """The same, of whom some always say B, ever more as the bias grows."""

    def game(self, theta):
        return core.WordGame(super().game(theta).q, committed=jnp.stack([0.0, theta[1] / 3]))

    def policy(self, theta):
        policy = meanfield.make_policy(np.array(self.game(theta).q), ["A", "B"])
        return meanfield.Population(policy, committed={"B": theta[1] / 3})


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

    def policy(self, theta):
        return meanfield.make_policy(np.array(self.game(theta).q), ["A", "B", "neither"])


CASES = [
    (Family(0, 2), None),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            (Committed(3, 2), None),
            (Committed(3, 2), 0),
            (ThreeWords(0), 0),
            *((Family(2, length), start) for length in (2, 3) for start in (0, None)),
        )
    ),
]


def path(family, theta, start):
    return meanfield.escape_path(family.policy(theta), fixed_point=start)


def along(family, found):
    """The derivative in the family's direction, and the largest that it could be."""
    slope = jax.grad(lambda theta: core.action(family.game(theta), found))(jnp.array(family.theta))
    return float(slope @ family.direction), float(jnp.linalg.norm(slope) * np.linalg.norm(family.direction))


@cache
def found_anew(family, start):
    sides = (path(family, family.theta + sign * STEP * family.direction, start) for sign in (1, -1))
    above, below = (one.attrs["barrier"] for one in sides)
    return (above - below) / (2 * STEP)


@pytest.mark.parametrize(("family", "start"), CASES)
def test_derivatives_are_those_of_paths_found_anew(family, start):
    found = path(family, family.theta, start)
    slope, scale = along(family, found)
    assert core.action(family.game(family.theta), found) == pytest.approx(found.attrs["barrier"], abs=1e-15)
    # An action is stationary at its path: an error ε of the barrier is one of order √ε of the path and of derivatives
    error = ERROR + np.sqrt(found.attrs["barrier_error"])
    assert error < 0.01 and abs(slope - found_anew(family, start)) < error * scale


def test_the_path_of_another_policy_has_other_derivatives():
    """The control: a bias that is larger by a third."""
    family, _ = CASES[0]
    slope, scale = along(family, path(family, family.theta * [1, 4 / 3, 1], None))
    assert abs(slope - found_anew(family, None)) > 10 * ERROR * scale
