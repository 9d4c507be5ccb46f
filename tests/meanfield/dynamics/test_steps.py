"""Steps of the equations of moments against their order, batches against one solution at a time."""

import numba
import numpy as np
import pytest
import xarray as xr
from numpy.polynomial.polynomial import polyfit

import meanfield
from _policies import random_composition, random_policy
from meanfield._finite_size.moments_kernel import STAGE_TIMES, move, perturbations, step_of
from meanfield._finite_size.path_equations import PathEquations
from meanfield._numerics.compiled import compiled
from meanfield.toolbox import space_of


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


def test_batches_are_single_solutions():
    """However they are shared out."""
    policy = random_policy(1, 2, 2)
    starts = np.random.default_rng(0).dirichlet(np.ones(21), size=7)
    alone = [meanfield.solve(policy, initial=start)["word_share"].values for start in starts]
    together = meanfield.solve(policy, initial=xr.DataArray(starts, dims=("start", "state")))["word_share"]
    np.testing.assert_allclose(together.values, alone, atol=1e-14)


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
