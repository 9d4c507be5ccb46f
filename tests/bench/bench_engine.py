"""The engine beside the routes that it replaces: dense tensor, dense Jacobian, power iteration."""

from __future__ import annotations

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
from _policies import drift, linearised_drift, random_policy
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield.toolbox import space_of

STEPS = 1000


def seconds(function: Callable[[], object], repeat: int = 3) -> float:
    """The shortest of `repeat` runs."""
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def show(title: str, rows: list[tuple[str, float]]) -> None:
    """Print seconds, and ratios to the first row."""
    table = Table(title=title)
    for column in ("route", "seconds", "ratio"):
        table.add_column(column, justify="left" if column == "route" else "right")
    for name, value in rows:
        table.add_row(name, f"{value:.3g}", f"{value / rows[0][1]:.3g}")
    Console().print(table)


@pytest.mark.bench
def test_one_right_hand_side() -> None:
    """dx/dt at H = 3 and H = 5: reshape form against the dense tensor of Eq. 27."""
    for length in (3, 5):
        policy = random_policy(1, 2, length)
        space, q = space_of(policy), jnp.asarray(policy["q"].values)
        x = jnp.full(space.n_states, 1 / space.n_states)
        loop = jax.jit(lambda x, q=q, s=space: jax.lax.fori_loop(0, STEPS, lambda _, x: x + 1e-3 * drift(x, q, s), x))
        loop(x).block_until_ready()
        rows = [("factorised, compiled loop", seconds(lambda x=x, f=loop: f(x).block_until_ready()) / STEPS)]
        n, qn = np.asarray(x), np.asarray(q)
        rows.append(("factorised, NumPy", seconds(lambda n=n, q=qn, s=space: drift(n, q, s))))
        if length == 3:
            P = meanfield.dense_tensor(policy)
            rows.append(
                ("dense tensor, einsum", seconds(lambda P=P, n=n: np.einsum("kij,i,j->k", P, n, n, optimize=True)))
            )
        show(f"one right-hand side, H = {length}, {space.n_states} states", rows)


def dense(policy: xr.Dataset, x: np.ndarray) -> float:
    """The leading eigenvalue from the whole reduced Jacobian."""
    space, q = space_of(policy), policy["q"].values
    identity = np.eye(space.n_states)
    columns = [linearised_drift(identity[i] - x, x, q, space) for i in range(space.n_states)]
    return np.linalg.eigvals(np.stack(columns, axis=1)).real.max()


@pytest.mark.bench
def test_leading_eigenvalue(published) -> None:
    policy = published.sel(model="gpt-4o", pair="African/White")
    space, mixture = space_of(policy), meanfield.Population(policy).mixture
    x = meanfield.consensus(policy, "African").values
    rows = [
        ("matrix-free Arnoldi", seconds(lambda: leading_eigenvalues(mixture, x[None], space))),
        ("dense Jacobian, LAPACK", seconds(lambda: dense(policy, x), repeat=1)),
    ]
    show("leading eigenvalue at a candidate, H = 5", rows)


@pytest.mark.bench
def test_stability_table_of_the_published_policies(published) -> None:
    """And for one of its policies, beside the dense route at the same candidates and fixed points."""
    meanfield.stability_table(published)
    rows = [
        (
            "all 22 policies: candidates, every fixed point, spectra",
            seconds(lambda: meanfield.stability_table(published), 1),
        ),
        ("of which trajectories", seconds(lambda: meanfield.solve(published), 1)),
    ]
    show("stability table, compiled", rows)
    policy = published.sel(model="gpt-4o", pair="African/White")
    meanfield.stability_table(policy)
    points = [meanfield.consensus(policy, word).values for word in meanfield.words_of(policy)]
    points += list(meanfield.fixed_points(policy)["composition"].values)
    rows = [
        ("one policy, complete", seconds(lambda: meanfield.stability_table(policy), 1)),
        ("dense eigenvalues alone, at its five points", seconds(lambda: [dense(policy, x) for x in points], 1)),
    ]
    show("stability table of GPT-4o {African, White}", rows)


@pytest.mark.bench
def test_critical_mass_beside_continuation(published) -> None:
    """The explicit curve c(Q) beside what takes its place without it: fixed points at each of a row of fractions."""
    policy = published.sel(model="gpt-4o", pair="African/White")
    fractions = np.linspace(0, 0.2, 21)

    def scan() -> None:
        for fraction in fractions:
            meanfield.fixed_points(meanfield.Population(policy, committed={"African": fraction}))

    rows = [
        ("critical mass to 1e-10", seconds(lambda: meanfield.critical_mass(policy, word="African"), 1)),
        ("whole bifurcation diagram", seconds(lambda: meanfield.bifurcation(policy, word="African"), 1)),
        ("fixed points at 21 fractions: critical mass to 0.01", seconds(scan, 1)),
    ]
    show("committed minority, H = 5", rows)
