"""Theory beside what it replaces: dense tensors and Jacobians, scans, and simulated ensembles."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import random_policy
from _tables import ratios, seconds
from meanfield import TIME_PER_ROUND, core
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield.toolbox import space_of
from validation import simulate

STEPS = 1000
SIZES = (24, 100, 400)
RUNS = 10_000
ROUNDS = 2  # later on, the variance of {African, White} is off by more than the mean is
MEASURED_AT = 50  # agents: the error of the mean there is some ten standard errors of 500,000 runs


@pytest.fixture(scope="module")
def policy(published) -> xr.Dataset:
    return published.sel(model="gpt-4o", pair="African/White")


def test_one_right_hand_side() -> None:
    """dx/dt at H = 3 and H = 5: the Hamiltonian's derivative against the dense tensor of Eq. 27."""
    for length in (3, 5):
        policy = random_policy(1, 2, length)
        game, n_states = core.WordGame(policy["q"].values), space_of(policy).n_states
        x = jnp.full(n_states, 1 / n_states)
        loop = jax.jit(lambda x, game=game: jax.lax.fori_loop(0, STEPS, lambda _, x: x + 1e-3 * core.drift(game, x), x))
        loop(x).block_until_ready()
        rows = [("derivative of the Hamiltonian", seconds(lambda x=x, f=loop: f(x).block_until_ready()) / STEPS)]
        if length == 3:
            P, n = np.asarray(core.reaction_tensor(game)), np.asarray(x)
            rows.append(
                ("dense tensor, einsum", seconds(lambda P=P, n=n: np.einsum("kij,i,j->k", P, n, n, optimize=True)))
            )
        ratios(f"one right-hand side, H = {length}, {n_states} states", rows)


def test_batches() -> None:
    """One call for many policies, on each device, beside the labelled functions one policy at a time."""
    batched = {
        "right-hand side": lambda q, x: core.drift(core.WordGame(q), x),
        "trajectory, 30 rounds": lambda q, x: core.trajectory(core.WordGame(q), x, jnp.array([30.0])).end,
        "fixed points": lambda q, x: core.fixed_points(core.WordGame(q)).word_share,
        "critical mass": lambda q, x: core.critical_mass(core.WordGame(q), 1),
        "its gradient": lambda q, x: jax.grad(lambda q: core.critical_mass(core.WordGame(q), 1))(q),
    }
    labelled = {"fixed points": meanfield.fixed_points, "critical mass": partial(meanfield.critical_mass, word="b")}
    for length in (2, 3):
        space = meanfield.MemorySpace(2, length)
        lead = np.array([sum(pair.count(0) - 1 for pair in space.memory(i)) for i in range(space.n_states)])
        rng = np.random.default_rng(0)
        first = 1 / (1 + np.exp(-3 * lead - 0.1 * rng.standard_normal((10_000, space.n_states))))
        q = np.stack([first, 1 - first], axis=-1)
        x = rng.dirichlet(np.ones(space.n_states), size=len(q))
        policies = [meanfield.make_policy(one, ["a", "b"]) for one in q[:10]]
        for name, function in batched.items():
            program, rows = jax.jit(jax.vmap(function)), []
            for device in dict.fromkeys([jax.devices("cpu")[0], jax.devices()[0]]):
                for number in (1, 100, 10_000)[: 2 if length == 3 and device.platform == "cpu" else 3]:
                    some = jax.device_put((q[:number], x[:number]), device)
                    program(*some).block_until_ready()
                    took = seconds(lambda some=some, f=program: f(*some).block_until_ready())
                    rows.append((f"{number} at once, {device.device_kind}", took))
            if name in labelled:
                one_by_one = partial(list, map(labelled[name], policies))
                labelled[name](policies[0])
                rows.append(("10 policies one by one, labelled", seconds(one_by_one, 1)))
            ratios(f"{name}, H = {length}", rows)


def dense(policy: xr.Dataset, x: np.ndarray) -> float:
    """The leading eigenvalue from the whole reduced Jacobian."""
    game, x = core.WordGame(policy["q"].values), jnp.asarray(x)
    columns = jax.vmap(lambda v: core.jacobian_product(game, x, v - x))(jnp.eye(len(x)))
    return np.linalg.eigvals(np.asarray(columns).T).real.max()


def test_leading_eigenvalue(policy) -> None:
    space, mixture = space_of(policy), meanfield.Population(policy).mixture
    x = meanfield.consensus(policy, "African").values
    rows = [
        ("matrix-free Arnoldi", seconds(lambda: leading_eigenvalues(mixture, x[None], space))),
        ("dense Jacobian, LAPACK", seconds(lambda: dense(policy, x), repeat=1)),
    ]
    ratios("leading eigenvalue at a candidate, H = 5", rows)


def test_stability_table_of_the_published_policies(published, policy) -> None:
    """And for one of its policies, beside the dense route at the same candidates and fixed points."""
    meanfield.stability_table(published)
    rows = [
        ("all 22 policies, every fixed point", seconds(lambda: meanfield.stability_table(published), 1)),
        ("of which trajectories", seconds(lambda: meanfield.solve(published), 1)),
    ]
    ratios("stability table, compiled", rows)
    meanfield.stability_table(policy)
    points = [meanfield.consensus(policy, word).values for word in meanfield.toolbox.words_of(policy)]
    points += list(meanfield.fixed_points(policy)["composition"].values)
    rows = [
        ("one policy, complete", seconds(lambda: meanfield.stability_table(policy), 1)),
        ("dense eigenvalues alone, at its five points", seconds(lambda: [dense(policy, x) for x in points], 1)),
    ]
    ratios("stability table of GPT-4o {African, White}", rows)


def test_critical_mass_beside_continuation(policy) -> None:
    """The explicit curve c(Q) beside what takes its place without it: fixed points at each of a row of fractions."""
    fractions = np.linspace(0, 0.2, 21)

    def scan() -> None:
        for fraction in fractions:
            meanfield.fixed_points(meanfield.Population(policy, committed={"African": fraction}))

    rows = [
        ("critical mass to 1e-10", seconds(lambda: meanfield.critical_mass(policy, word="African"), 1)),
        ("whole bifurcation diagram", seconds(lambda: meanfield.bifurcation(policy, word="African"), 1)),
        ("fixed points at 21 fractions: critical mass to 0.01", seconds(scan, 1)),
    ]
    ratios("committed minority, H = 5", rows)


def test_group_size_law(policy) -> None:
    """κ, which holds for all sizes, beside runs to consensus; a fraction of 10,000 has a standard error of 0.005."""
    meanfield.group_size_law(policy)
    simulate(policy, n_agents=2, runs=1, seed=0)
    rows = [("κ, compiled", seconds(lambda: meanfield.group_size_law(policy)))]
    for n in SIZES:
        rows.append((f"{RUNS:,} runs, N = {n}", seconds(lambda n=n: simulate(policy, n_agents=n, runs=RUNS, seed=1))))
    ratios("probability of the strong word, GPT-4o {African, White}", rows)


def test_finite_size(policy) -> None:
    """The mean to order 1/N beside the ensemble whose standard error is the error of that order.

    The error falls like 1/N²: measured at one size, it is known at others.
    """
    times = np.array([TIME_PER_ROUND * ROUNDS])
    theory = meanfield.finite_size(policy, n_agents=(*SIZES, MEASURED_AT), times=times).isel(time=0, word=0)
    error = abs(simulated_mean(policy, MEASURED_AT, 500_000) - theory["mean"].sel(n_agents=MEASURED_AT).item())
    rows = [("mean and variance for all N, compiled", seconds(lambda: meanfield.finite_size(policy, times=times)))]
    for n in SIZES:
        accuracy = error * (MEASURED_AT / n) ** 2
        runs = max(1, round(theory["variance"].sel(n_agents=n).item() / accuracy**2))
        time = seconds(lambda n=n, runs=runs: simulated_mean(policy, n, runs), repeat=1)
        rows.append((f"{runs:,} runs, N = {n}: ± {accuracy:.1g}", time))
    ratios(f"word share after {ROUNDS} rounds, GPT-4o {{African, White}}", rows)


def simulated_mean(policy, n_agents: int, runs: int) -> float:
    """Mean share of the first word after `ROUNDS` rounds."""
    result = simulate(policy, n_agents=n_agents, runs=runs, seed=1, max_rounds=ROUNDS, record_rounds=ROUNDS)
    return result["word_share"].isel(n_agents=0, round=-1, word=0).mean().item()
