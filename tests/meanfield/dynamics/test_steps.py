"""Steps of the equations of moments against their order, batches against one solution at a time."""

import numba
import numpy as np
import pytest
import xarray as xr
from jax import lax

import meanfield
from _policies import random_composition, random_policy
from meanfield import core
from meanfield._numerics.compiled import compiled
from meanfield.core._moments import moved_rows, stepped


def test_one_step_is_of_order_five():
    """Halving a step makes its error 2⁶ times smaller; perturbations are differences of two solutions."""
    game = core.WordGame(random_policy(3, 2, 3)["q"].values)
    x, other = (random_composition(seed, 85) for seed in range(2))

    def after(step, parts):
        return lax.fori_loop(0, parts, lambda _, x: stepped(game, x, np.asarray(step / parts)), x)

    errors = [np.abs(after(step, 1) - after(step, 32)).max() for step in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.4)
    moved = moved_rows(game, x, np.asarray(0.2), np.stack([other - x] * 5))
    there, back = (stepped(game, x + sign * 1e-6 * (other - x), np.asarray(0.2)) for sign in (1, -1))
    np.testing.assert_allclose(moved, [(there - back) / 2e-6] * 5, atol=1e-9)


def test_batches_are_single_solutions():
    """However they are shared out."""
    policy = random_policy(1, 2, 2)
    starts = np.random.default_rng(0).dirichlet(np.ones(21), size=7)
    alone = [meanfield.solve(policy, initial=start)["word_share"].values for start in starts]
    together = meanfield.solve(policy, initial=xr.DataArray(starts, dims=("start", "state")))["word_share"]
    np.testing.assert_allclose(together.values, alone, atol=1e-14)


def test_loops_compile_where_no_folder_can_be_written(monkeypatch):
    def without_folder(cache=False, **options):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available for file")

        return refuse if cache else numba.njit(**options)

    monkeypatch.setattr("meanfield._numerics.compiled.njit", without_folder)
    assert compiled(lambda x: x + 1)(1) == 2
