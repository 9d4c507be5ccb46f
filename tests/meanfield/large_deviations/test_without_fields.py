"""Paths and prefactors of games without fields, against closed forms, exact chains and those of fields."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq

from _exact_chains import ExactChain
from _metastable import follower, voters
from meanfield import Population, ReactionModel, fixed_points, lifetime
from meanfield._large_deviations import exits
from meanfield._large_deviations.boundary_value_path import followed
from meanfield._large_deviations.escape import escape
from meanfield._large_deviations.exits import landscape
from meanfield._large_deviations.linearised import ends_of
from meanfield._large_deviations.prefactor import transported

pytestmark = pytest.mark.usefixtures("unchecked_types")


def audience(beta, field, unit=1.0):
    """Agents see all others, and say yes with the probability (1 + tanh(βm + field))/2."""

    def yes(x):
        return unit * (1 + jnp.tanh(beta * (x["yes"] - x["no"]) + field)) / 2

    return ReactionModel.from_rules({"no": "yes", "yes": "no"}, [yes, lambda x: unit - yes(x)])


def first_passage(beta, field, n_agents, start, end):
    """Mean time of the exact chain from a share to a larger one, a sum of positive terms."""
    yes = np.arange(n_agents)
    leaning = np.tanh(beta * (2 * yes / n_agents - 1) + field)
    up, down = (n_agents - yes) * (1 + leaning) / 2, yes * (1 - leaning) / 2
    higher, total = 0.0, 0.0
    for k in range(round(end * n_agents)):
        higher = (1 + down[k] * higher) / up[k]
        total += higher if k >= round(start * n_agents) else 0.0
    return total


def shares_at_rest(beta, field):
    """The three shares of yes that do not change."""
    drift = lambda m: (1 + np.tanh(beta * (2 * m - 1) + field)) / 2 - m  # noqa: E731
    m = np.linspace(0.001, 0.999, 400)
    return [brentq(drift, *m[k : k + 2]) for k in np.flatnonzero(np.diff(np.sign(drift(m))))]


@pytest.mark.parametrize(("beta", "field"), [(1.5, -0.05), pytest.param(2.0, 0.03, marks=pytest.mark.slow)])
def test_an_audience_changes_its_mind_as_its_exact_chain_does(beta, field):
    """The path is x(t) of the rate equation backwards, with p = log(down/up); of one dimension all is known."""
    low, top, high = shares_at_rest(beta, field)
    sizes = np.array([50, 100, 200, 400])
    found = lifetime(audience(beta, field), n_agents=sizes)
    one = found.isel(fixed_point=int(np.argmin(found["composition"].sel(state="yes").values)))

    def curvature(x):  # of the quasi-potential
        return (1 - 4 * beta * x * (1 - x)) / (x * (1 - x))

    m = np.linspace(low, top, 20001)
    leaning = np.tanh(beta * (2 * m - 1) + field)
    potential = np.log(m * (1 - leaning)) - np.log((1 - m) * (1 + leaning))
    prefactor = 2 * np.pi / (low * (1 - low) * np.sqrt(-curvature(low) * curvature(top)))
    assert one["barrier"] == pytest.approx(np.trapezoid(potential, m), rel=1e-7)
    assert one["prefactor"] == pytest.approx(prefactor, rel=float(one["prefactor_error"]) + 1e-5)
    assert one["prefactor_error"] < 5e-3
    exact = np.array([first_passage(beta, field, n, low, high) for n in sizes])
    np.testing.assert_allclose(one["lifetime"], exact, rtol=1e-9)
    off = np.abs(one["prefactor"].item() * np.exp(sizes * one["barrier"].item()) / exact - 1)
    assert (sizes * off < 3).all() and (off[1:] < 0.7 * off[:-1]).all()
    diffusion = -2 * np.trapezoid((1 + leaning - 2 * m) / (1 + leaning - 2 * m * leaning), m)
    assert abs(diffusion / one["barrier"] - 1) > 1e-3, "control: a diffusion of the same drift and noise"


@pytest.mark.slow
def test_the_unit_of_time_changes_nothing():
    """Rates per second in place of per hour, next to where the attractors meet."""
    fast, slow = (lifetime(audience(1.02, 0.001, unit), n_agents=[200]) for unit in (1.0, 1e-5))
    np.testing.assert_allclose(slow["barrier"], fast["barrier"], rtol=1e-6)
    np.testing.assert_allclose(1e-5 * slow["lifetime"], fast["lifetime"], rtol=1e-3)
    assert (fast["prefactor_error"] < 5e-3).all()


PAIRS = {"A + U": "2 A", "B + U": "2 B", "A + B": "2 U", "A": "U", "B": "U"}
SHUNNED = 0.4  # rate at which many of one opinion drive those of the other to doubt


def undecided(errors):
    """Two opinions and doubt: pairs meet, and agents change their minds by errors and by what all others say."""
    rules = [*PAIRS.items(), ("U", "A"), ("U", "B")]
    alone = [lambda x: SHUNNED * x["B"] ** 2, lambda x: SHUNNED * x["A"] ** 2]
    rates = [1.0, 1.0, 1.0, errors, errors, errors, errors]
    pairs = ReactionModel.from_rules(rules, rates, states=[*"ABU"])
    together = ReactionModel.from_rules([*rules, ("A", "U"), ("B", "U")], [*rates, *alone], states=[*"ABU"])
    return pairs, together


def exact_lifetime(model, n_agents, attractor):
    """Twice the time of the exact chain to as many agents in B as in A, from where it falls to either side."""
    chain = ExactChain(model, [n_agents])
    at_ridge = chain.counts[:, 0] <= chain.counts[:, 1]
    return 2 * chain.first_passage(attractor, at_ridge)


@pytest.mark.slow
def test_two_opinions_and_doubt_live_as_long_as_in_the_exact_chain():
    """In two dimensions, with pairs of two different agents beside rates that all N agents make."""
    (_, together), sizes = undecided(0.18), [45, 90, 180]
    found = lifetime(together, n_agents=sizes)
    assert found.sizes["fixed_point"] == 2 and not any(found["reason"].values)
    np.testing.assert_allclose(found["lifetime"][0], found["lifetime"][1], rtol=1e-3)
    attractor = found["composition"].values[found["composition"].values[:, 0].argmax()]
    exact = [exact_lifetime(together, n, attractor) for n in sizes]
    off = found["lifetime"].values[0] / exact - 1
    assert (np.abs(off[1:]) < 0.7 * np.abs(off[:-1])).all()
    assert abs(2 * off[-1] - off[-2]) < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    "game",
    [
        pytest.param(Population(follower(0.05), committed={"A": 0.03}), marks=pytest.mark.slow),
        undecided(0.06)[0],
    ],
    ids=["words", "reactions"],
)
def test_where_there_are_fields_both_give_the_same(game):
    ground = landscape(game, None)
    number = ground.attractors[0]
    (way,) = ground.ways_out(number)
    ends = ends_of(way)
    by_fields, path = escape(ground, way, with_prefactor=True), followed(way, ends)
    assert path.barrier == pytest.approx(by_fields.path.barrier, rel=1e-6)
    prefactor = transported(path, ends)
    errors = prefactor.error + by_fields.prefactor.error
    assert errors < 0.05
    assert prefactor.logarithm == pytest.approx(by_fields.prefactor.logarithm, abs=errors)


def test_paths_in_many_directions_are_not_computed(monkeypatch):
    monkeypatch.setattr(exits, "MOST_POLISHED", 0)
    model, m = audience(1.5, -0.05), np.array(shares_at_rest(1.5, -0.05))
    points = xr.Dataset({"stability": ("fixed_point", ["stable", "unstable", "stable"])})
    found = exits.Landscape(model, points, model, np.stack([1 - m, m], axis=1)).ways_out(0)
    assert "paths are computed in at most" in found.reason and not found.forever


@pytest.mark.slow
def test_a_slow_saddle_is_reached():
    """Voters who follow six others: at p = 0.14 the saddle's eigenvalue is 0.01, and the path needs 800 rounds."""
    p = 0.14
    found = lifetime(voters(p), n_agents=[200, 400])
    points = fixed_points(voters(p))["composition"].values[:, 1]
    low, saddle = np.sort(points)[:2]
    m = np.linspace(low, saddle, 20001)
    up, down = ((1 - p) * share**6 + p / 2 for share in (m, 1 - m))
    barrier = np.trapezoid(np.log(m * down) - np.log((1 - m) * up), m)
    one = found.isel(fixed_point=int(np.argmin(found["composition"].values[:, 1])))
    assert one["reason"] == "" and one["barrier"].item() == pytest.approx(barrier, rel=1e-6)
    off = np.abs(one["prefactor"] * np.exp(one["n_agents"] * one["barrier"]) / one["lifetime"] - 1)
    assert off[1] < 0.75 * off[0] < 0.25
