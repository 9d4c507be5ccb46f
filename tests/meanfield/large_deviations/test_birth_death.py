"""Exact rates of N agents in two states, against rational arithmetic and exact chains; stationary distributions."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.optimize import brentq

from _exact_chains import ExactChain
from meanfield import ReactionModel, lifetime, transition_rates
from meanfield._large_deviations.birth_death import balanced, exact_rates
from meanfield._large_deviations.exits import Landscape

pytestmark = pytest.mark.usefixtures("unchecked_types")


def first_passage(up, start, end):
    """The exact time from one number of agents to a larger one, reflected at 0, for rational rates of both steps."""
    higher, total = Fraction(0), Fraction(0)
    for n in range(end):
        rise, fall = up(n)
        higher = (1 + fall * higher) / rise
        total += higher if n >= start else 0
    return total


def at_rest(model):
    """The shares of the second state that do not change, those between 0 and 1."""
    share = np.linspace(0.0017, 0.9983, 500)
    drift = [model.drift(np.array([1 - one, one]))[1] for one in share]
    places = np.flatnonzero(np.diff(np.sign(drift)))
    return [brentq(lambda one: model.drift(np.array([1 - one, one]))[1], *share[k : k + 2]) for k in places]


def with_attractors(model, shares):
    """These shares of the second state, without a search for what lies between them."""
    points = xr.Dataset({"stability": ("fixed_point", ["stable"] * len(shares))})
    return Landscape(model, points, model, np.stack([1 - np.array(shares), shares], axis=1))


def test_the_risk_dominant_convention_is_selected():
    """Best replies with errors of 1e-10 (Kandori, Mailath and Rob): B is left by 9 of 27 errors, A by 19."""
    error, n_agents = Fraction(1, 10**10), 27

    def play(best, other):  # a third of A is enough
        return lambda x: jnp.where(3 * x["A"] >= 1, float(best), float(other))

    rates = [play(error, 1 - error), play(1 - error, error)]
    model = ReactionModel.from_rules({"A": "B", "B": "A"}, rates)
    found = transition_rates(model, n_agents=[n_agents])
    best = found["composition"].sel(state="A").values.argmax()
    kept, selected = found["lifetime"].values[[1 - best, best], 0]

    def up(n):
        chance = 1 - error if 3 * n >= n_agents else error
        return (n_agents - n) * chance, n * (1 - chance)

    low = round(n_agents * error)
    high = n_agents - low
    left = first_passage(up, low, high)
    back = first_passage(lambda k: up(n_agents - k)[::-1], low, high)
    assert kept == pytest.approx(float(left), rel=1e-12)
    assert selected == pytest.approx(float(back), rel=1e-12)
    assert found["stationary"].values[1 - best, 0] == pytest.approx(float(left / (left + back)), rel=1e-12)
    assert found.attrs["method"].startswith("exact chain")
    assert 1e-101 < found["stationary"].values[1 - best, 0] < 1e-99


def test_of_three_attractors_the_middle_one_is_left_to_both_sides():
    """The middle one's rates are those of the chain's time and splitting; the outer ones are left to it alone."""
    rates = [lambda x, s=s, b=b: 0.855 * x[s] ** 6 + b for s, b in (("up", 0.0727), ("down", 0.0725))]
    model, n_agents = ReactionModel.from_rules({"down": "up", "up": "down"}, rates), 40
    places = np.array(at_rest(model))[::2]
    found = exact_rates(with_attractors(model, places), np.array([n_agents]))
    counts = np.rint(n_agents * places)
    low, middle, high = range(3)
    chain = ExactChain(model, [n_agents])
    number = chain.counts[:, 1]
    for i, place in enumerate(places):
        exact = chain.first_passage(np.array([1 - place, place]), np.isin(number, np.delete(counts, i)))
        assert np.exp(-found.leaving[i, 0]) == pytest.approx(exact, rel=1e-10)
    assert found.between[low, high, 0] == found.between[high, low, 0] == -np.inf
    inside = (number > counts[low]) & (number < counts[high])
    matrix = chain.generator.toarray()
    lost = -matrix[np.ix_(inside, inside)]
    to_low = np.linalg.solve(lost, matrix[inside][:, number == counts[low]][:, 0])
    chance = to_low[number[inside] == counts[middle]][0]
    rate = np.exp(found.between[middle, [low, high], 0])
    assert rate[0] / rate.sum() == pytest.approx(chance, rel=1e-9)
    assert abs(chance - 0.5) > 0.005


@pytest.mark.slow
def test_an_epidemic_of_fifty():
    """From 25 infected ones, with R0 = 2, in pairs and by functions: times of a linear system of 50 equations."""
    pairs = ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [2.0, 1.0])
    functions = ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: 2 * x["I"], 1.0])
    for model, exact in ((pairs, 19048.617050254088), (functions, 12221.523487908318)):
        assert lifetime(model, n_agents=50)["lifetime"].item() == pytest.approx(exact, rel=1e-10)


def test_numbers_that_tell_nothing_apart_are_missing():
    """Nobody of five agents is infected at a prevalence of 0.05; two million are left to theory."""
    rare = ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: 1.05 * x["I"], 1.0])
    few = lifetime(rare, n_agents=[5, 400, 2_000_000]).isel(fixed_point=0)
    assert np.isnan(few["lifetime"].values[0]) and (few["lifetime"].values[1:] > 0).all()
    assert few["reason"].item() == "at N = [5] agents are too few to tell the attractor from where they go"


def test_pairs_of_which_both_change_are_left_to_theory():
    """Two who disagree both become U, or one follows the other."""
    model = ReactionModel.from_rules([("A + B", "2 A"), ("A + B", "2 B"), ("2 A", "2 B")], [1.0, 2.0, 0.5])
    assert exact_rates(with_attractors(model, [0.5]), np.array([20])) is None


def test_steps_that_go_one_way_only():
    """Below 0.3 nobody is infected: the last of 15 recover one by one, and the end comes at a harmonic sum later."""
    model = ReactionModel.from_rules({"S": "I", "I": "S"}, [lambda x: 40 * jnp.maximum(x["I"] - 0.3, 0.0) ** 2, 1.0])
    place = at_rest(model)[-1]
    found = exact_rates(with_attractors(model, [0.0, place]), np.array([50]))
    steps = [0.0]  # times from n to n - 1, from the largest n down, sums of positive terms
    for n in range(50, 0, -1):
        steps.append((1 + 40 * max(n / 50 - 0.3, 0) ** 2 * (50 - n) * steps[-1]) / n)
    assert np.exp(-found.leaving[1, 0]) == pytest.approx(sum(steps[51 - round(50 * place) :]), rel=1e-11)


def random_rates(seed=0, size=5):
    return np.random.default_rng(seed).normal(scale=3, size=(size, size))


def test_it_balances_the_flows():
    rates = np.exp(random_rates())
    np.fill_diagonal(rates, 0)
    with np.errstate(divide="ignore"):
        law = np.exp(balanced(np.log(rates)))
    np.testing.assert_allclose(law @ rates, law * rates.sum(1), rtol=1e-13)
    assert law.sum() == pytest.approx(1, rel=1e-14)


@pytest.mark.parametrize("scale", [1e3, 1e6])
def test_exponents_are_those_of_large_populations(scale):
    """The control is the exponent among few agents."""
    heights = np.abs(random_rates(1))
    np.fill_diagonal(heights, np.inf)
    exponents = balanced(-heights, np.maximum)
    np.testing.assert_allclose(balanced(-scale * heights) / scale, exponents, atol=3 / scale)
    assert np.abs(balanced(-heights) - exponents).max() > 0.1
