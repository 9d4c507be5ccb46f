"""The pace of the line: passages of the rate equation."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

import meanfield
from _metastable import follower
from meanfield import Population
from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.stationary_law import StationaryLaw
from meanfield._large_deviations.pace import Courses
from meanfield._large_deviations.slow_mode import Encounters
from meanfield.toolbox import space_of

pytestmark = pytest.mark.usefixtures("unchecked_types")


def line(policy, word=1):
    """Q, what agents say, a function of the committed fraction for the velocity, and the courses."""
    q, space = policy["q"].values, space_of(policy)
    law = StationaryLaw(q, space, closed_classes(q, space, heard=(0, 1))[0])
    encounters, nodes = Encounters(law, q, word), np.linspace(-15, 6, 43)
    Q = np.union1d(expit(np.linspace(-15, 6, 300)), np.linspace(0.001, 0.997, 600))
    mobility = np.interp(Q, expit(nodes), [encounters.slow_mode(one).mobility for one in expit(nodes)])
    said = encounters.said(Q)
    return Q, said, lambda c: mobility * (c + (1 - c) * said - Q), Courses(law, q, word)


def passage(Q, velocity):
    """Times since the start of the line."""
    return np.append(0, np.cumsum(np.diff(Q) / 2 * (1 / velocity[1:] + 1 / velocity[:-1])))


@pytest.mark.parametrize(("length", "committed"), [(2, 0.3), (3, 0.4)])
def test_passages_are_those_of_the_rate_equation(length, committed):
    """The control is the line at its own pace."""
    policy = follower(0.005, tie=0.52, length=length)
    Q, said, velocity_beside, courses = line(policy)
    velocity = velocity_beside(committed)
    below = slice(0, np.searchsorted(said, 0.97))
    assert (velocity[below] > 0).all()
    levels, pace = np.array([0.3, 0.6, 0.9]), courses.pace(Q, said, velocity, committed)
    ours, own = (np.interp(levels, said[below], passage(Q[below], v[below])) for v in (pace * velocity, velocity))
    population, times = Population(policy, committed={"B": committed}), np.linspace(0, 60, 601)
    start = meanfield.consensus(population, "A").values[0]
    course = solve_ivp(
        lambda _, x: meanfield.drift(population, x[None]).values[0], (0, 60), start, t_eval=times, rtol=1e-6, atol=1e-9
    )
    exact = np.interp(levels, policy["q"].sel(word="B").values @ course.y, times)
    assert np.abs(ours - exact).max() < 0.1
    assert np.abs(own - exact).max() > 0.8


def test_slow_passages_keep_their_pace():
    """Next to the fold, where the critical mass is."""
    policy = follower(0.005, tie=0.52)
    critical = meanfield.critical_mass(policy, word="B")["critical_mass"].item()
    Q, said, velocity_beside, courses = line(policy)
    velocity = velocity_beside(1.01 * critical)
    pace = courses.pace(Q, said, velocity, 1.01 * critical)
    slowest = np.flatnonzero(Q < 0.5)[np.argmin(velocity[Q < 0.5])]
    assert velocity[slowest] < 0.01
    np.testing.assert_allclose(pace[slowest - 20 : slowest + 20], 1, atol=0.03)
    assert pace.max() > 1.1


@pytest.mark.parametrize("at", [0.2, 0.5, 0.75, 0.9])
def test_it_stays_near_one_where_the_old_word_is_kept(at):
    """Also if a point of the line falls on the equilibrium, where the line takes for ever."""
    policy = follower(0.005, tie=0.52, length=3)
    Q, said, velocity_beside, courses = line(policy)
    committed = at * meanfield.critical_mass(policy, word="B")["critical_mass"].item()
    velocity = velocity_beside(committed)
    stable = np.flatnonzero((velocity[:-1] > 0) & (velocity[1:] <= 0))[0]
    velocity[stable] = 1e-12
    assert courses.pace(Q, said, velocity, committed)[: stable + 1].max() < 3


@pytest.mark.parametrize("errs", [0.0, 1e-16, 0.3])
def test_it_is_a_positive_number_for_any_minority(errs):
    """And 1 where no course passes."""
    Q, said, velocity_beside, courses = line(follower(errs))
    for committed in (0.0, 0.1, 0.45, 1.0):
        velocity = velocity_beside(committed)
        pace = courses.pace(Q, said, velocity, committed)
        assert np.isfinite(pace).all() and (pace > 0).all()
        assert (pace[velocity <= 0] == 1).all()
