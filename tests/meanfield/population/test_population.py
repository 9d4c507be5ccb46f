"""Populations of several policies and of committed agents: symmetries, brute force, finite differences, simulation."""

import inspect
import itertools
import pickle
import re

import numpy as np
import pytest
import xarray as xr

import meanfield
import validation
from _policies import random_composition, random_policy, relabelled, relabelled_states
from meanfield import InputError, Population
from meanfield._fixed_points.response import responses
from meanfield.toolbox import space_of

TIMES = np.linspace(0.0, 20.0, 8)
SHORT = {"times": TIMES, "max_time": 200.0}


def conformist(seed, length=2, strength=3.0):
    """A policy that likes words that it remembers, the more the better, with random weights and a bias."""
    random = np.random.default_rng(seed)
    space, bias = meanfield.MemorySpace(2, length), 0.3 * random.standard_normal()
    weight = random.uniform(0.3, 1, (length, 2))
    field = [
        bias + sum(weight[j] @ (1 - 2 * np.array(pair)) for j, pair in enumerate(reversed(space.memory(i))))
        for i in range(space.n_states)
    ]
    return meanfield.make_policy(1 / (1 + np.exp(-strength * np.array(field))), ["a", "b"], model=f"conformist {seed}")


def two_policies(committed=None, fractions=(0.35, 0.65)):
    return Population([conformist(1), conformist(2)], fractions=fractions, committed=committed)


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_mixture_of_a_policy_with_itself_changes_nothing(fraction, tmp_path):
    policy = conformist(1)
    mixture = Population([policy, policy], fractions=[fraction, 1 - fraction])
    ours, alone = meanfield.solve(mixture, **SHORT), meanfield.solve(policy, **SHORT)
    np.testing.assert_allclose(ours["word_share"], alone["word_share"], atol=1e-7)
    for component in (0, 1):
        np.testing.assert_allclose(ours["composition"].isel(component=component), alone["composition"], atol=1e-6)
    ours, alone = meanfield.fixed_points(mixture), meanfield.fixed_points(policy)
    assert alone.sizes["fixed_point"] == 3
    np.testing.assert_allclose(ours["word_share"], alone["word_share"], atol=1e-12)
    np.testing.assert_allclose(ours["eigenvalue"], alone["eigenvalue"], atol=1e-9)
    ours, alone = meanfield.critical_mass(mixture, word="a"), meanfield.critical_mass(policy, word="a")
    assert alone.attrs["transition"] == ours.attrs["transition"] == "fold"
    np.testing.assert_allclose(ours["critical_mass"], alone["critical_mass"], atol=1e-10)
    ours, alone = meanfield.basins(mixture), meanfield.basins(policy)
    assert alone.sizes["boundary"] == 1
    for name in ("separatrix", "word_share", "fraction"):
        np.testing.assert_allclose(ours[name], alone[name], atol=1e-6)
    assert meanfield.load(meanfield.save(ours, tmp_path / "basins.nc")).identical(ours)


def test_spectrum_of_a_mixture_with_itself_has_that_of_the_policy_and_of_differences_between_its_kinds():
    """Sums of the kinds move as one policy, differences by A(Q)ᵀ - 1, since they leave Q as it is."""
    policy = random_policy(1)
    q, space = policy["q"].values, space_of(policy)
    x = random_composition(1, space.n_states)
    kernel = np.zeros((space.n_states,) * 2)
    for own, partner in itertools.product(range(2), repeat=2):
        kernel[np.arange(5), space.successors() + 2 * own + partner] += q[:, own] * (x @ q)[partner]
    differences = np.linalg.eigvals(kernel.T) - 1
    differences = np.delete(differences, np.argmax(differences.real))
    alone = meanfield.spectrum(policy, x, k=3)
    mixture = meanfield.spectrum(Population([policy, policy], fractions=[0.3, 0.7]), x, k=8)
    ours, single = (one["eigenvalue"].values + 1j * one["eigenvalue_imaginary"].values for one in (mixture, alone))
    for value in [*single, *differences]:
        assert np.abs(ours - value).min() < 1e-6
    assert ours[0].real == pytest.approx(max(single.real.max(), differences.real.max()), abs=1e-9)


@pytest.mark.parametrize("until", [0.5, 30.0])
def test_each_kind_stays_on_the_simplex(until):
    """Fractions may miss the sum 1 by 1e-9; whoever is left over must not leak out of the compositions."""
    population = two_policies({"a": 0.05, "b": 0.02}, fractions=(0.35, 0.65 - 9e-10))
    solution = meanfield.solve(population, times=np.linspace(0, until, 8), max_time=until)
    np.testing.assert_allclose(solution["composition"].sum("state"), 1, atol=1e-12)
    assert solution["composition"].min() >= 0
    np.testing.assert_allclose(solution["word_share"].sum("word"), 1, atol=1e-12)
    assert (solution["word_share"] > [0.05, 0.02]).all(), "committed agents speak too"


def exchanged(population):
    """The same population with its two words listed in the other order."""
    policies = [relabelled(policy, [1, 0]) for policy in population.policies]
    return Population(policies, fractions=population.fractions, committed=population.committed)


@pytest.mark.slow
def test_exchanged_words_mirror_every_result():
    population = two_policies({"a": 0.04, "b": 0.02})
    mirror = exchanged(population)
    assert mirror.words == ("b", "a")
    ours, theirs = meanfield.solve(population, **SHORT), meanfield.solve(mirror, **SHORT)
    np.testing.assert_allclose(ours["word_share"].values[:, ::-1], theirs["word_share"], atol=1e-7)
    assert ours["attractor"].item() == theirs["attractor"].item()
    states = relabelled_states(population.space, [1, 0])
    np.testing.assert_allclose(ours["composition"], theirs["composition"].isel(state=states), atol=1e-6)
    ours, theirs = meanfield.fixed_points(population), meanfield.fixed_points(mirror)
    assert ours.sizes["fixed_point"] == 3
    np.testing.assert_allclose(ours["word_share"].values[::-1, ::-1], theirs["word_share"], atol=1e-11)
    np.testing.assert_allclose(ours["eigenvalue"].values[::-1], theirs["eigenvalue"], atol=1e-9)
    assert ours["convention"].values[::-1].tolist() == theirs["convention"].values.tolist()
    ours, theirs = (meanfield.critical_mass(one, word="a") for one in (population, mirror))
    assert ours.attrs["transition"] == theirs.attrs["transition"] == "fold"
    np.testing.assert_allclose(ours["critical_mass"], theirs["critical_mass"], atol=1e-10)
    np.testing.assert_allclose(ours["fold_parameter"].values[::-1], theirs["fold_parameter"], atol=1e-10)
    np.testing.assert_allclose(ours["word_share"].values[::-1], theirs["word_share"], atol=1e-6)
    ours, theirs = meanfield.basins(population), meanfield.basins(mirror)
    np.testing.assert_allclose(1 - ours["separatrix"].values[::-1], theirs["separatrix"], atol=1e-6)
    np.testing.assert_allclose(ours["fraction"].values[::-1], theirs["fraction"], atol=1e-6)


def test_three_words_in_another_order_drift_alike():
    policies, order = [random_policy(seed, 3, 2) for seed in (5, 6)], [2, 0, 1]
    options = {"fractions": [0.4, 0.6], "committed": {"b": 0.1}}
    ours, theirs = Population(policies, **options), Population([relabelled(p, order) for p in policies], **options)
    states = relabelled_states(ours.space, order)
    x = np.stack([random_composition(seed, ours.space.n_states) for seed in (1, 2)])
    renamed = np.empty_like(x)
    renamed[:, states] = x
    drift = meanfield.drift(ours, x).values
    np.testing.assert_allclose(meanfield.drift(theirs, renamed).values[:, states], drift, atol=1e-16)


def brute_force_drift(population, x):
    """d(x_m)/dt from the double sum over all agents (kind, state), those of the kind -1 - w being committed to word w.

    P_k(i, j) = Σ_ab q_a(i) q_b(j) [k = Γ(i, a, b)], with Γ taken from the memories themselves.
    """
    space, words = population.space, range(population.space.n_words)
    q, share, committed = population.mixture
    says = {(m, i): q[m, i] for m, i in np.ndindex(*x.shape)} | {(-1 - w, 0): np.eye(len(words))[w] for w in words}
    weight = {(m, i): share[m] * x[m, i] if m >= 0 else committed[-1 - m] for m, i in says}
    change = -share[:, None] * x
    for (m, i), partner in itertools.product(np.ndindex(*x.shape), says):
        for a, b in itertools.product(words, repeat=2):
            after = space.state([*space.memory(i), (a, b)][-space.memory_length :])
            change[m, after] += weight[m, i] * weight[partner] * says[m, i][a] * says[partner][b]
    return change / share[:, None]


@pytest.mark.parametrize(("n_words", "length"), [(2, 2), (3, 1)])
def test_drift_is_the_double_sum_over_agents(n_words, length):
    policies = [random_policy(seed, n_words, length) for seed in (3, 4)]
    population = Population(policies, fractions=[0.3, 0.7], committed={"a": 0.1, "b": 0.05})
    x = np.stack([random_composition(seed, population.space.n_states) for seed in (1, 2)])
    expected = brute_force_drift(population, x)
    np.testing.assert_allclose(meanfield.drift(population, x), expected, atol=1e-15)
    without = Population(policies, fractions=[0.3, 0.7])
    assert np.abs(meanfield.drift(without, x) - expected).max() > 1e-3, "the control"


@pytest.mark.slow
def test_fixed_points_are_the_only_ones_on_a_fine_grid():
    """F(Q) - Q changes sign at the fixed points and nowhere else; F is here a sum over the kinds, one by one."""
    population = two_policies({"b": 0.03})
    grid = np.linspace(1e-4, 1 - 1e-4, 1001)
    said = sum(
        share * responses(Population(policy).mixture)[0](np.stack([grid, 1 - grid], 1))[:, 0]
        for share, policy in zip(population.mixture.share, population.policies, strict=True)
    )
    changes = grid[np.flatnonzero(np.diff(np.sign(said - grid)))][::-1]
    points = meanfield.fixed_points(population)
    np.testing.assert_allclose(points["word_share"].values[:, 0], changes, atol=1e-3)
    for x, residual in zip(points["composition"].values, points["residual"].values, strict=True):
        assert residual < 1e-13
        assert np.abs(brute_force_drift(population, x)).max() < 1e-13


def test_batch_of_starts_is_solved_as_one_by_one():
    population = two_policies({"a": 0.05})
    starts = xr.DataArray(
        np.random.default_rng(0).dirichlet(np.full(21, 0.1), size=(8, 2, 2)),
        dims=("sample", "row", "component", "state"),
        coords={"row": ["first", "second"], "sample": 10 * np.arange(8)},
    )
    shuffled = starts.transpose("component", "sample", "state", "row")
    batch = meanfield.solve(population, initial=shuffled, times=np.array([0.0, 10.0]), max_time=200.0)
    assert batch["word_share"].dims == ("sample", "row", "time", "word")
    assert batch["composition"].dims == ("sample", "row", "component", "state")
    assert batch["row"].values.tolist() == ["first", "second"]
    assert batch["word_share"][..., 1, 0].std() > 0.1
    for row, sample in itertools.product(["first", "second"], [0, 30, 70]):
        start = starts.sel(row=row, sample=sample).values
        alone = meanfield.solve(population, initial=start, times=TIMES / 2, max_time=200.0)
        ours = batch.sel(row=row, sample=sample)
        np.testing.assert_allclose(ours["word_share"][-1], alone["word_share"][-1], atol=1e-7)
        np.testing.assert_allclose(ours["composition"], alone["composition"], atol=1e-6)
        assert ours["attractor"].item() == alone["attractor"].item()


def test_what_is_said_counts_everybody_and_conventions_only_those_who_can_be_convinced():
    """Nine in ten say a, those in ten who are committed to b do not keep the others from agreeing."""
    always = meanfield.make_policy(np.ones(21), ["a", "b"], model="always")
    points = meanfield.fixed_points(Population(always, committed={"b": 0.1}))
    np.testing.assert_allclose(points["word_share"], [[0.9, 0.1]], atol=1e-15)
    assert points["convention"].values.tolist() == ["a"]
    solution = meanfield.solve(Population(always, committed={"b": 0.1}), **SHORT)
    assert solution["attractor"].item() == "a"
    np.testing.assert_allclose(solution["word_share"], [[0.9, 0.1]] * len(TIMES), atol=1e-9)


OPTIONS = {
    "mixture": {"policies": [random_policy(1), random_policy(2)], "fractions": [0.3, 0.7]},
    "meets": {
        "policies": [random_policy(1), random_policy(2)],
        "fractions": [0.3, 0.7],
        "meets": np.array([[9.0, 1.0], [1.0, 4.0]]),
    },
    "degree": {"policies": random_policy(1), "degree": 4.0},
    "group": {"policies": random_policy(1), "group": 3, "hears": "vote"},
}
BOUND = {"a": 0.1, "b": 0.05}


@pytest.mark.parametrize("kind", OPTIONS)
def test_a_population_keeps_its_options(kind):
    population = Population(**OPTIONS[kind], committed=BOUND)
    again, more = pickle.loads(pickle.dumps(population)), population.with_committed("a", 0.3)
    others = [more, *(Population(**OPTIONS[other], committed=BOUND) for other in OPTIONS if other != kind)]
    assert repr(again) == repr(population)
    assert again.sha256 == Population(**OPTIONS[kind], committed=dict(reversed(BOUND.items()))).sha256
    assert again.sha256 not in {other.sha256 for other in others}
    for one in (again, more):
        assert (one.group, one.hears, one.degree) == (population.group, population.hears, population.degree)
        np.testing.assert_array_equal(one.meets, population.meets)
    assert (more.committed, more.fractions) == (pytest.approx({"a": 0.3, "b": 0.05}), population.fractions)


def test_names_of_populations():
    names = {
        "mixture": "0.3 random 0 + 0.7 random 1, 0.1 committed to 'a', 0.05 committed to 'b' {a, b}",
        "degree": "random, 0.1 committed to 'a', 0.05 committed to 'b', degree 4 {a, b}",
        "group": "random, 0.1 committed to 'a', 0.05 committed to 'b', groups of 3, vote {a, b}",
    }
    for kind, name in names.items():
        assert repr(Population(**OPTIONS[kind], committed=BOUND)) == f"Population({name})"
    sizes = Population(random_policy(1), group={6: 0.3, 2: 0.7}, hears="speaker")
    assert repr(sizes) == "Population(random, groups of 2 (0.7) or 6 (0.3), speaker {a, b})"


def test_a_new_fraction_leaves_the_others_their_proportions():
    three = Population([random_policy(s) for s in (1, 2, 3)], fractions=[0.1, 0.3, 0.6], committed={"a": 0.1})
    assert three.with_fraction(0.2).fractions == pytest.approx((0.2, 0.6, 0.2))
    assert three.with_fraction(0.2).committed == {"a": 0.1}
    for fraction in (-0.1, 1.5):
        with pytest.raises(InputError, match=f"{fraction}"):
            three.with_fraction(fraction)


PAIRS = {name: {} for name in ("group_size_law", "lifetime", "transition_rates")}
ALIKE = {
    **{name: {} for name in ("basins", "escape_path", "finite_size", "fixed_points")},
    "bifurcation": {"word": "a"},
    "drift": {"composition": np.full(5, 0.2)},
    "sensitivity": {"of": "word_share", "fixed_point": 0},
    "spectrum": {"composition": np.full(5, 0.2)},
    "stability_table": {},
}
REFUSED = {
    "meets": ("meet at rates of their own", PAIRS | ALIKE | {"critical_mass": {}}),
    "degree": (r"degree 4 .* is on a graph", PAIRS | {"reaction_model": {}} | ALIKE),
    "group": ("meets in groups of 3: expected pairs", PAIRS | {"reaction_model": {}}),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in REFUSED for name in REFUSED[kind][1]])
def test_functions_of_one_response_refuse(kind, name):
    message, functions = REFUSED[kind]
    with pytest.raises(InputError, match=message):
        getattr(meanfield, name)(Population(**OPTIONS[kind], committed=BOUND), **functions[name])


@pytest.mark.parametrize("kind", REFUSED)
def test_simulations_and_chains_refuse(kind):
    population = Population(**OPTIONS[kind])
    with pytest.raises(InputError, match=r"meet at rates of their own|is on a graph|meets in groups"):
        validation.naming_game.exact_population(population, n_agents=10)
    path = None if kind == "degree" else np.array([[0, 1], [1, 2]])
    with pytest.raises(InputError, match=r"is on a graph|topology beside .*, which (has meets|meets in groups)"):
        validation.simulate(population, n_agents=10, runs=1, seed=1, topology=path)


def test_no_function_of_a_population_is_forgotten():
    functions = {name: getattr(meanfield, name) for name in meanfield.__all__}
    take = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function) and re.search("Population|Game|Policies", str(inspect.signature(function)))
    }
    assert take == {*PAIRS, *ALIKE, "critical_mass", "solve", "reaction_model", "empty_memories", "consensus", "plot"}


MIXED = Population([random_policy(1), random_policy(2)], [0.5, 0.5])
TWO = {"policies": [random_policy(1), random_policy(2)], "fractions": [0.5, 0.5]}
OTHER_WORDS = meanfield.make_policy(random_policy(1)["q"].values, ["a", "c"])
TEN_WORDS = meanfield.make_policy(np.full((101, 10), 0.1), [*"ABCDEFGHIJ"])
ONE = random_policy(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": []}, "policies is empty"),
        ({"policies": [ONE, OTHER_WORDS]}, r"policies\[1\] is over the words a, c with H = 1: expected a, b"),
        ({"policies": [ONE, random_policy(1, 2, 2)]}, r"policies\[1\] is .* with H = 2: .* with H = 1"),
        ({"policies": xr.concat([ONE, ONE.assign_coords(model="two")], "model")}, "policy holds 2 models"),
        ({"fractions": [0.5, 0.6]}, r"fractions = \[0.5, 0.6\]: expected 2 numbers .* sum to 1, not to 1.1$"),
        ({"fractions": {"a": 0.1}}, "fractions = {'a': 0.1}: expected .* each policy, or by word committed="),
        ({"fractions": [-0.1, 1.1]}, r"fractions = \[-0.1, 1.1\]"),
        ({"fractions": None}, "fractions = None: expected 2"),
        ({"fractions": ["0.5", "0.5"]}, "fractions has dtype <U3: expected real numbers, not '0.5'"),
        ({"fractions": [True, False]}, "fractions has dtype bool: expected real numbers"),
        ({"fractions": xr.DataArray([1, 0], {"component": [1, 2]}, ["component"])}, "fractions has component = 2"),
        ({"fractions": xr.DataArray([0.5, 0.5], dims="word")}, "fractions has a dim word: expected component"),
        ({"committed": {"a": 1.0}}, "committed sums to 1.0: expected less than 1"),
        ({"committed": {"a": -0.1}}, r"committed\['a'\] = -0.1: expected"),
        ({"committed": {"c": 0.1}}, "committed has the word 'c': expected some of a, b"),
        ({"meets": [[1.0, 2.0], [3.0, 4.0]]}, "symmetric"),
        ({"meets": np.ones((3, 3))}, "2 rows"),
        ({"meets": [[1.0, -1.0], [-1.0, 1.0]]}, "≥ 0"),
        ({"meets": [[1.0, 0.0], [0.0, 0.0]]}, r"policies\[1\]"),
        ({"meets": np.ones((2, 2)), "committed": {"a": [0.1, 1.2]}}, "0 to 1"),
        ({"meets": np.ones((2, 2)), "committed": {"a": [0.1] * 3}}, "for each kind"),
        ({"degree": 1.5}, "degree = 1.5"),
        ({"degree": 4.0}, "with policies"),
        ({"policies": ONE, "fractions": None, "meets": [[1.0]], "degree": 4.0}, "with meets"),
        ({"policies": random_policy(1, 2, 6), "fractions": None, "degree": 4.0}, "5461 memories"),
        ({"group": 1}, "group = 1"),
        ({"group": {2: 0.5, 3: 0.6}}, "expected shares of meetings that sum to 1, not to 1.1"),
        ({"hears": "all"}, "hears = 'all': expected one of majority, vote, speaker"),
        ({"group": 3, "meets": np.ones((2, 2))}, "with meets or degree: expected one of them"),
        ({"policies": TEN_WORDS, "fractions": None, "group": 20}, "group = 20 of 10 words: .* at most 100000 ways"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(arguments, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        Population(**(TWO | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"degrees": [1.0, 0.0]}, "positive"),
        ({"degrees": {1.0: 0.5}}, "sum to 1"),
        ({"degrees": [1.0], "pick": "node"}, "pick"),
        ({"degrees": [1.0], "committed_nodes": "ends"}, "hubs"),
    ],
)
def test_wrong_arguments_by_degree_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        Population.by_degree(ONE, **arguments)


STATES, TWICE = np.full(5, 0.2), np.full((2, 5), 0.2)
solve, spectrum = meanfield.solve, meanfield.spectrum


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: solve(MIXED, initial=np.full((3, 5), 0.2)), "initial has 3 along component: expected 2"),
        (lambda: solve(MIXED, initial=np.full((2, 4), 0.25)), "initial has 4 along state: expected 5"),
        (lambda: solve(MIXED, initial=xr.DataArray(np.ones(2), dims=("component",))), "expected state among them"),
        (lambda: solve(ONE, initial=meanfield.empty_memories(MIXED)), "expected no component for"),
        (lambda: solve(ONE, initial=xr.DataArray(TWICE, dims=["word", "state"])), "initial has .*word"),
        (lambda: solve(ONE, initial=xr.DataArray(TWICE, dims=["time", "state"])), "initial has .*time"),
        (lambda: solve(ONE, initial=xr.Dataset()), "is a xarray Dataset: expected an array"),
        (lambda: spectrum(ONE, xr.Dataset()), "composition is a xarray Dataset: expected an array"),
        (lambda: spectrum(ONE, xr.DataArray(STATES, {"state": range(1, 6)})), "has state = 5: expected 0 to 4"),
        (lambda: spectrum(ONE, xr.DataArray(STATES[:4], {"state": range(4)})), "composition lacks state = 4"),
        (lambda: spectrum(ONE, xr.DataArray(TWICE, dims=["word", "state"])), "composition has a dim word"),
        (lambda: spectrum(ONE, np.full(4, 0.25)), r"composition has shape \(4,\): expected \(5,\)"),
        (lambda: spectrum(ONE, 2 * STATES), "composition sums to 2.0 with minimum 0.4"),
    ],
)  # fmt: skip
def test_wrong_compositions_are_named(call, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        call()
