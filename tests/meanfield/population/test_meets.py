"""Kinds of agents who meet at rates of their own: definitions, other games, simulation, refusals."""

import inspect
import pickle
import re

import jax
import numpy as np
import pytest

import meanfield
import validation
from _policies import random_composition, random_policy
from meanfield import InputError, Population, core
from meanfield._population.population_model import factors

MEETS = np.array([[9.0, 1.0], [1.0, 4.0]])


def blocks(length=1, n_words=2, meets=MEETS):
    policies = [random_policy(m, n_words, length) for m in (1, 2)]
    word = policies[0]["word"].values[1]
    return Population(policies, [0.3, 0.7], committed={str(word): [0.2, 0.05]}, meets=meets)


def test_drift_is_that_of_agents_who_hear_their_own_partners():
    population = blocks(n_words=3)
    q, share, committed, meets = population.arrays
    x = np.stack([random_composition(m, q.shape[1]) for m in (0, 1)]) * share[:, None]
    said = np.einsum("mi,mia->ma", x, q) + committed
    assert (population.arrays.present @ meets @ population.arrays.present) == pytest.approx(1, abs=1e-15)
    expected = np.zeros_like(x)
    for k, i, a, b in np.ndindex(*q.shape, 3):
        flow = x[k, i] * q[k, i, a] * (meets[k] @ said[:, b])
        expected[k, i] -= flow
        expected[k, population.space.successors()[i] + 3 * a + b] += flow
    with jax.enable_x64(True):
        found = core.drift(core.WordGame(*population.arrays), x)
    np.testing.assert_allclose(found, expected, atol=1e-15)


@pytest.mark.parametrize("meets", [MEETS, np.outer([1.0, 3.0], [1.0, 3.0])])
def test_hamiltonian_is_that_of_the_reaction_model(meets):
    population = blocks(meets=meets)
    model = meanfield.reaction_model(population)
    whole = population.fractions_of_all(np.stack([random_composition(m, 5) for m in (0, 1)]))
    p = np.append(np.random.default_rng(0).normal(size=10), [0, 0])
    with jax.enable_x64(True):
        ours, theirs = core.WordGame(*population.arrays), core.ReactionGame(*model.game)
        found = ours.hamiltonian(whole[:10].reshape(2, 5), p[:10].reshape(2, 5))
        assert found == pytest.approx(float(theirs.hamiltonian(whole, p)), rel=1e-12)
    rows = factors(population.arrays.meets)[0]
    assert len(rows) == (1 if np.linalg.matrix_rank(meets) == 1 else 2)


def test_equal_rates_are_a_well_mixed_population():
    policies = [random_policy(m, 2, 2) for m in (1, 2)]
    alike, mixed = (
        Population(policies, [0.3, 0.7], committed={"a": 0.1}, meets=meets) for meets in (5 * np.ones((2, 2)), None)
    )
    assert alike.committed == pytest.approx(mixed.committed)
    for name in ("word_share", "composition"):
        np.testing.assert_allclose(meanfield.solve(alike)[name], meanfield.solve(mixed)[name], atol=1e-12)


def follow(memory):
    """Says the word that it remembers most, and errs."""
    lead = sum(pair.count("a") - 1 for pair in memory)
    return 0.5 if lead == 0 else 0.98 if lead > 0 else 0.02


def test_solve_is_what_is_simulated_on_a_graph_of_two_groups():
    """A complete graph with weights; three of ten in the first group are committed. A round is N interactions."""
    policy, n, rounds, runs = meanfield.make_policy(follow, ["a", "b"], memory_length=2), 600, 8, 200
    first = np.arange(n) < n // 2
    weights = np.triu(np.where(first[:, None] == first, 9.0, 1.0), 1)
    ends = np.argwhere(weights)
    edges = np.column_stack([ends, weights[tuple(ends.T)]])
    bound = n * 3 // 20
    found = validation.simulate(
        policy, n_agents=n, runs=runs, seed=1, max_rounds=rounds, trajectories=True, initial="b", topology=edges,
        committed={"a": bound}, committed_nodes=range(bound),
    )["word_share"].sel(word="a").squeeze()  # fmt: skip
    error = found.std("run") / np.sqrt(runs)
    start = meanfield.consensus(policy, "b").values
    grouped, mixed = (
        meanfield.solve(population, initial=start, times=np.arange(rounds + 1) * meanfield.TIME_PER_ROUND)
        for population in (
            Population([policy, policy], (0.5, 0.5), committed={"a": [0.3, 0.0]}, meets=np.array([[9, 1], [1, 9]])),
            Population(policy, committed={"a": 0.15}),
        )
    )
    away = [np.abs(found.mean("run") - one["word_share"].sel(word="a").values) for one in (grouped, mixed)]
    allowed = 4 * error + 2 / n
    assert (away[0] < allowed).all()
    assert away[1][-1] > 3 * allowed[-1], "the control"


def test_population_keeps_its_rates():
    population = blocks()
    again = pickle.loads(pickle.dumps(population))
    np.testing.assert_array_equal(again.meets, MEETS)
    assert again.sha256 == population.sha256 != blocks(meets=MEETS.T @ MEETS).sha256
    more = population.with_committed("a", 0.5)
    assert more.committed == pytest.approx({**population.committed, "a": 0.5})
    assert population.committed == pytest.approx({"b": 0.3 * 0.2 + 0.7 * 0.05})
    np.testing.assert_array_equal(population.with_fraction(0.2).meets, MEETS)


WELL_MIXED = {
    **{name: {} for name in ("basins", "critical_mass", "fixed_points", "group_size_law", "lifetime")},
    **{name: {} for name in ("escape_path", "finite_size", "stability_table", "transition_rates")},
    "bifurcation": {"word": "a"},
    "drift": {"composition": np.full(5, 0.2)},
    "sensitivity": {"of": "word_share", "fixed_point": 0},
    "spectrum": {"composition": np.full(5, 0.2)},
}


@pytest.mark.parametrize("name", WELL_MIXED)
def test_functions_of_one_response_refuse(name):
    with pytest.raises(InputError, match="meet at rates of their own"):
        getattr(meanfield, name)(blocks(), **WELL_MIXED[name])


def test_no_function_of_a_population_is_forgotten():
    functions = {name: getattr(meanfield, name) for name in meanfield.__all__}
    take = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and re.search("Population|Game|Policies", str(inspect.signature(function)))
    }
    assert take == {*WELL_MIXED, "solve", "reaction_model", "empty_memories", "consensus", "plot"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"meets": [[1.0, 2.0], [3.0, 4.0]]}, "symmetric"),
        ({"meets": np.ones((3, 3))}, "2 rows"),
        ({"meets": [[1.0, -1.0], [-1.0, 1.0]]}, "≥ 0"),
        ({"meets": [[1.0, 0.0], [0.0, 0.0]]}, r"policies\[1\]"),
        ({"meets": MEETS, "committed": {"a": [0.1, 1.2]}}, "0 to 1"),
        ({"meets": MEETS, "committed": {"a": [0.1] * 3}}, "for each kind"),
        ({"meets": MEETS, "committed": {"a": [0.6, 0.0], "b": 0.6}}, "at most 1"),
        ({"meets": MEETS, "committed": {"c": 0.1}}, "'c'"),
    ],
)
def test_arguments_are_checked(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        Population([random_policy(m, 2, 1) for m in (1, 2)], [0.3, 0.7], **arguments)


def test_the_response_of_the_engine_refuses():
    game = core.WordGame(*blocks().arrays)
    for function in (core.response, core.composition, core.fixed_point):
        with pytest.raises(ValueError, match="one Q that all agents hear"):
            function(game, np.array([0.5, 0.5]))
