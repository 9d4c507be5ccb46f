"""Solutions against another integrator, a step against its order, batches against one solution at a time."""

import diffrax
import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest
import xarray as xr
from numpy.polynomial.polynomial import polyfit
from scipy.integrate import solve_ivp

import meanfield
from _policies import drift as one_drift
from _policies import random_composition, random_policy
from meanfield._finite_size.moments_kernel import move, perturbations, step_of
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.compiled import compiled
from meanfield._numerics.tsit5 import STAGE_TIMES
from meanfield._population.drift import mixture_drift
from meanfield._population.mixture import Mixture
from meanfield._population.trajectory_kernel import drift
from meanfield.toolbox import space_of

TIMES = np.linspace(0, 30, 50)


def test_errors_follow_the_tolerance():
    """At steps and in between, against an independent integrator."""
    policy = random_policy(1, 2, 2)
    q, space = policy["q"].values, space_of(policy)
    start = random_composition(1, space.n_states)
    mixture = Mixture(q[None], np.ones(1), np.zeros(2))
    options = {"method": "DOP853", "t_eval": TIMES, "rtol": 1e-13, "atol": 1e-15}
    exact = solve_ivp(lambda t, x: mixture_drift(x[None], mixture, space)[0], (0, 30), start, **options).y.T @ q
    errors = []
    for rtol in (1e-5, 1e-8, 1e-11):
        found = meanfield.solve(policy, initial=start, times=TIMES, rtol=rtol, atol=rtol)["word_share"].values
        errors.append(np.abs(found - exact).max())
        assert errors[-1] < 10 * rtol
    assert errors[0] > 1e3 * errors[2]  # the control: it is the tolerance that decides


def test_one_step_is_of_order_five():
    """dx/dt = zx: after a step of length 1 from 1, a polynomial of degree 6 that is exp(z) to order 5."""
    z = np.linspace(-1, 1, 7)
    after, slopes = np.ones(7), np.empty((6, 7))
    for stage in range(6):
        slopes[stage] = z * after
        move(np.ones(7), slopes, stage, 1.0, after)
    series = polyfit(z, after, 6)
    factorials = np.array([1, 1, 2, 6, 24, 120, 720])
    np.testing.assert_allclose(series[:6], 1 / factorials[:6], atol=1e-13)
    assert abs(series[6] * 720 - 1) > 0.01


@pytest.mark.slow
def test_solutions_are_those_of_diffrax():
    """Of the same method with the same steps, before ours comes to rest; the control takes other steps."""
    policy = random_policy(4, 2, 2)
    q, space = jnp.asarray(policy["q"].values), space_of(policy)
    moving = TIMES < 10
    found = meanfield.solve(policy, times=TIMES)["word_share"].values[moving]

    @jax.jit
    def theirs(tolerance):
        course = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, x, args: one_drift(x, q, space)),
            diffrax.Tsit5(),
            t0=0.0,
            t1=30.0,
            dt0=0.1,
            y0=jnp.eye(space.n_states)[0],
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=1e-3 * tolerance),
            saveat=diffrax.SaveAt(ts=jnp.asarray(TIMES)),
        )
        return (course.ys @ q)[moving]

    assert np.abs(found - theirs(1e-8)).max() < 1e-13
    assert np.abs(found - theirs(1e-4)).max() > 1e-9


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr("meanfield._dynamics.integrate.MAX_STEPS", 5)
    with pytest.raises(meanfield.InputError, match="time 2000 is not reached in 5 steps"):
        meanfield.solve(random_policy(1, 2, 2))


def test_batches_are_single_solutions(monkeypatch):
    """Bit for bit, however they are shared out."""
    policy = random_policy(1, 2, 2)
    starts = np.random.default_rng(0).dirichlet(np.ones(21), size=7)
    monkeypatch.setattr("meanfield._numerics.compiled.TOGETHER", 1)
    alone = [meanfield.solve(policy, initial=start)["word_share"].values for start in starts]
    together = meanfield.solve(policy, initial=xr.DataArray(starts, dims=("start", "state")))["word_share"]
    np.testing.assert_array_equal(together.values, alone)


@pytest.mark.parametrize("size", [(2, 1), (2, 3), (3, 2), (5, 2)])
@pytest.mark.parametrize("kinds", [1, 2])
def test_compiled_drift_is_the_rate_equation(size, kinds):
    policies = [random_policy(seed, *size) for seed in range(kinds)]
    q, space = np.stack([policy["q"].values for policy in policies]), space_of(policies[0])
    x = np.array([random_composition(seed, space.n_states) for seed in range(kinds)])
    mixture = Mixture(q, np.full(kinds, 0.8 / kinds), np.full(space.n_words, 0.2 / space.n_words))
    slope, work = np.empty_like(x), np.empty((space.offset(space.memory_length), space.n_words))
    largest = drift(x, *mixture, slope, work)
    np.testing.assert_allclose(slope, mixture_drift(x, mixture, space), atol=1e-15)
    assert largest == np.abs(slope).max()


@pytest.mark.parametrize("size", [(2, 1), (2, 3), (3, 2), (5, 2)])
def test_steps_of_a_solution_and_of_its_perturbations(size):
    """Perturbations are what the difference of two solutions becomes, to first order; F itself stays F."""
    policy = random_policy(3, *size)
    equations = PathEquations(policy["q"].values, space_of(policy))
    rest = equations.q, equations.memory
    x, other = (random_composition(seed, len(equations.q)) for seed in range(2))
    rows, difference = np.array([equations.drift(x), other - x]), 1e-6
    after, kept, said = step_of(x, *rest, equations.n_kept, 0.2)
    moved = np.empty_like(rows)
    perturbations(rows, kept, said, *rest, 0.2, np.empty((0, len(x))), moved)
    there, back = (step_of(x + sign * difference * rows[1], *rest, equations.n_kept, 0.2)[0] for sign in (1, -1))
    np.testing.assert_allclose(moved[1], (there - back) / (2 * difference), atol=1e-9)
    np.testing.assert_allclose(moved[0], equations.drift(after), atol=1e-5)  # of order five
    driven = STAGE_TIMES[:6, None] ** 4 * rows[1]  # with the integral 1/5
    perturbations(np.zeros((1, len(x))), kept, said, *rest, 1e-4, driven, moved[:1])
    np.testing.assert_allclose(moved[0], 1e-4 / 5 * rows[1], atol=1e-8)


def test_loops_compile_where_no_folder_can_be_written(monkeypatch):
    def without_folder(cache=False, **options):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available for file")

        return refuse if cache else numba.njit(**options)

    monkeypatch.setattr("meanfield._numerics.compiled.njit", without_folder)
    assert compiled(lambda x: x + 1)(1) == 2
