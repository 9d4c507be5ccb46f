"""Populations of several policies and of committed agents: symmetries, brute force, finite differences, simulation."""

import itertools

import numpy as np
import pytest
import xarray as xr

import meanfield
from _policies import random_composition, random_policy, relabelled, relabelled_states
from meanfield import Population
from meanfield._fixed_points.response import responses
from meanfield._population.drift import mixture_drift, mixture_word_share
from meanfield.toolbox import space_of

TIMES = np.linspace(0.0, 20.0, 41)
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


def exchanged(population):
    """The same population with its two words listed in the other order."""
    policies = [relabelled(policy, [1, 0]) for policy in population.policies]
    return Population(policies, fractions=population.fractions, committed=population.committed)


# A mixture of a policy with itself


@pytest.mark.parametrize("fraction", [0.0, 0.2])
def test_mixture_of_a_policy_with_itself_changes_nothing(fraction):
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
    np.testing.assert_allclose(ours["fold_word_share"], alone["fold_word_share"], atol=1e-6)


def test_mixture_of_a_policy_with_itself_has_the_same_basins():
    policy = conformist(1)
    ours, alone = meanfield.basins(Population([policy, policy], fractions=[0.2, 0.8])), meanfield.basins(policy)
    assert alone.sizes["boundary"] == 1
    for name in ("separatrix", "word_share", "fraction"):
        np.testing.assert_allclose(ours[name], alone[name], atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_spectrum_of_a_mixture_with_itself_has_that_of_the_policy_and_of_differences_between_its_kinds(seed):
    """Sums of the kinds move as one policy, differences by A(Q)ᵀ - 1, since they leave Q as it is."""
    policy = random_policy(seed)
    q, space = policy["q"].values, space_of(policy)
    x = random_composition(seed, space.n_states)
    kernel = np.zeros((space.n_states,) * 2)
    for own, partner in itertools.product(range(2), repeat=2):
        kernel[np.arange(5), space.successors() + 2 * own + partner] += q[:, own] * (x @ q)[partner]
    differences = np.linalg.eigvals(kernel.T) - 1
    differences = np.delete(differences, np.argmax(differences.real))
    alone = meanfield.spectrum(policy, x, k=3)
    mixture = meanfield.spectrum(Population([policy, policy], fractions=[0.3, 0.7]), x, k=8)
    ours = mixture["eigenvalue"].values + 1j * mixture["eigenvalue_imaginary"].values
    single = alone["eigenvalue"].values + 1j * alone["eigenvalue_imaginary"].values
    for value in [*single, *differences]:
        assert np.abs(ours - value).min() < 1e-6
    assert ours[0].real == pytest.approx(max(single.real.max(), differences.real.max()), abs=1e-9)


def test_nobody_committed_changes_nothing():
    policy = conformist(1)
    nobody = Population(policy, committed={"a": 0.0})
    ours, alone = meanfield.solve(nobody, **SHORT).isel(component=0), meanfield.solve(policy, **SHORT)
    for name in ("word_share", "composition", "attractor", "outcome"):
        np.testing.assert_array_equal(ours[name], alone[name])
    ours, alone = meanfield.fixed_points(nobody).isel(component=0), meanfield.fixed_points(policy)
    for name in alone.data_vars:
        np.testing.assert_array_equal(ours[name], alone[name])
    folds = [meanfield.critical_mass(one, word="b")["fold_parameter"].values for one in (nobody, policy)]
    np.testing.assert_array_equal(*folds)


# Conservation


@pytest.mark.parametrize("until", [0.5, 3.0, 30.0])
def test_each_kind_stays_on_the_simplex(until):
    population = two_policies({"a": 0.05, "b": 0.02})
    solution = meanfield.solve(population, times=np.linspace(0, until, 41), max_time=until)
    np.testing.assert_allclose(solution["composition"].sum("state"), 1, atol=1e-12)
    assert solution["composition"].min() >= 0
    np.testing.assert_allclose(solution["word_share"].sum("word"), 1, atol=1e-12)
    assert (solution["word_share"] > [0.05, 0.02]).all(), "committed agents speak too"


def test_fractions_that_are_rounded_lose_no_agents():
    """Fractions may miss the sum 1 by 1e-9; whoever is left over must not leak out of the compositions."""
    population = two_policies(fractions=(0.35, 0.65 - 9e-10))
    x = np.stack([random_composition(seed, 21) for seed in (1, 2)])
    drift = mixture_drift(x[None], population.mixture)[0]
    np.testing.assert_allclose(drift.sum(1), 0, atol=1e-15)


# Words in another order


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
    drift = mixture_drift(x[None], ours.mixture)[0]
    np.testing.assert_allclose(mixture_drift(renamed[None], theirs.mixture)[0][:, states], drift, atol=1e-16)


# The equation itself


def brute_force_drift(population, x):
    """d(x_m)/dt from the double sum over all kinds of agents; committed ones are agents in a state that they keep.

    An agent is (kind, state); of the kind -1 - w are those committed to word w. P_k(i, j) = Σ_ab q_a(i) q_b(j)
    [k = Γ(i, a, b)], with Γ taken from the memories themselves.
    """
    space, words = population.space, range(population.space.n_words)
    q = [policy["q"].values for policy in population.policies]
    free = 1 - sum(population.committed.values())
    weight, says = {}, {}
    for m, fraction in enumerate(population.fractions):
        for i in range(space.n_states):
            weight[m, i], says[m, i] = free * fraction * x[m, i], q[m][i]
    for w, word in enumerate(population.words):
        weight[-1 - w, 0], says[-1 - w, 0] = population.committed.get(word, 0.0), np.eye(len(words))[w]

    def after(agent, own, partner):
        kind, state = agent
        if kind < 0:
            return agent
        return kind, space.state([*space.memory(state), (own, partner)][-space.memory_length :])

    change = {agent: -amount for agent, amount in weight.items()}
    for i, j in itertools.product(weight, repeat=2):
        for a, b in itertools.product(words, repeat=2):
            change[after(i, a, b)] += weight[i] * weight[j] * says[i][a] * says[j][b]
    assert all(abs(change[-1 - w, 0]) < 1e-15 for w in words), "the committed stay"
    return np.array(
        [[change[m, i] / (free * f) for i in range(space.n_states)] for m, f in enumerate(population.fractions)]
    )


@pytest.mark.parametrize(("n_words", "length"), [(2, 2), (3, 1)])
def test_drift_is_the_double_sum_over_agents(n_words, length):
    policies = [random_policy(seed, n_words, length) for seed in (3, 4)]
    population = Population(policies, fractions=[0.3, 0.7], committed={"a": 0.1, "b": 0.05})
    x = np.stack([random_composition(seed, population.space.n_states) for seed in (1, 2)])
    expected = brute_force_drift(population, x)
    np.testing.assert_allclose(mixture_drift(x[None], population.mixture)[0], expected, atol=1e-15)
    without = Population(policies, fractions=[0.3, 0.7])
    assert np.abs(mixture_drift(x[None], without.mixture)[0] - expected).max() > 1e-3, "the control"


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


# Batches of starts


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


def stack_of_policies():
    policies = [[conformist(5 * m + p) for p in range(3)] for m in range(2)]
    q = np.array([[policy["q"].values for policy in row] for row in policies])
    coords = {
        "model": ["x", "y"],
        "pair": ["a/b", "c/d", "e/f"],
        "word_label": (("pair", "word"), [["a", "b"], ["c", "d"], ["e", "f"]]),
    }
    stack = xr.Dataset({"q": (("model", "pair", "state", "word"), q)}, coords=coords, attrs={"memory_length": 2})
    return stack, policies


def test_each_policy_of_a_stack_may_have_its_start():
    stack, policies = stack_of_policies()
    random = np.random.default_rng(1)
    values = random.dirichlet(np.full(21, 0.1), size=(3, 2))
    starts = xr.DataArray(values, dims=("pair", "model", "state"), coords={n: stack[n] for n in ("pair", "model")})
    solution = meanfield.solve(stack, initial=starts, **SHORT)
    for m, p in itertools.product(range(2), range(3)):
        alone = meanfield.solve(policies[m][p], initial=values[p, m], **SHORT)
        np.testing.assert_allclose(solution["word_share"][m, p], alone["word_share"], atol=1e-7)
    per_pair = meanfield.solve(stack, initial=starts.isel(model=0, drop=True), **SHORT)
    np.testing.assert_allclose(per_pair["word_share"][0], solution["word_share"][0], atol=1e-9)


def test_starts_of_a_stack_go_by_their_labels():
    stack, _ = stack_of_policies()
    starts = meanfield.solve(stack, **SHORT)["composition"].isel(model=0, drop=True)
    sorted_so = meanfield.solve(stack, initial=starts, **SHORT)["word_share"]
    otherwise = meanfield.solve(stack, initial=starts.isel(pair=[2, 0, 1]), **SHORT)["word_share"]
    np.testing.assert_allclose(sorted_so, otherwise, atol=1e-9)


def test_start_that_was_selected_from_a_stack_starts_all():
    stack, _ = stack_of_policies()
    start = meanfield.solve(stack, **SHORT)["composition"].sel(model="x", pair="c/d")
    ours, expected = (meanfield.solve(stack, initial=one, **SHORT) for one in (start, start.values))
    np.testing.assert_array_equal(ours["word_share"], expected["word_share"])


@pytest.mark.parametrize("dim", ["word", "time"])
def test_batch_along_a_dim_of_the_result_is_refused(dim):
    policy = conformist(1)
    starts = xr.concat([meanfield.consensus(policy, word) for word in ("a", "b")], dim)
    with pytest.raises(meanfield.InputError, match=f"initial has .*{dim}"):
        meanfield.solve(policy, initial=starts, **SHORT)


def test_start_of_one_kind_holds_for_each():
    x = random_composition(3, 21)
    ours, theirs = (meanfield.solve(two_policies(), initial=start, **SHORT) for start in (x, np.stack([x, x])))
    np.testing.assert_array_equal(ours["word_share"], theirs["word_share"])


# Files


@pytest.mark.usefixtures("unchecked_types")
def test_every_result_of_a_population_survives_a_file(tmp_path):
    population = two_policies({"a": 0.02})
    results = [
        meanfield.solve(population, **SHORT),
        meanfield.fixed_points(population),
        meanfield.bifurcation(population, word="a", spacing=0.1),
        meanfield.bifurcation(population, parameter="fraction", spacing=0.1),
        meanfield.critical_mass(population, word="a"),
        meanfield.critical_mass(Population(random_policy(1)), word="a"),
        meanfield.basins(population),
        meanfield.basins(population, family="dirichlet", starts=16),
    ]
    for number, result in enumerate(results):
        assert meanfield.load(meanfield.save(result, tmp_path / f"{number}.nc")).identical(result), result.attrs["kind"]


# Labels


def test_what_is_said_counts_everybody_and_conventions_only_those_who_can_be_convinced():
    """Nine in ten say a, those in ten who are committed to b do not keep the others from agreeing."""
    always = meanfield.make_policy(np.ones(21), ["a", "b"], model="always")
    points = meanfield.fixed_points(Population(always, committed={"b": 0.1}))
    np.testing.assert_allclose(points["word_share"], [[0.9, 0.1]], atol=1e-15)
    assert points["convention"].values.tolist() == ["a"]
    np.testing.assert_allclose(
        mixture_word_share(points["composition"].values[0], Population(always, committed={"b": 0.1}).mixture),
        [0.9, 0.1],
        atol=1e-15,
    )
    solution = meanfield.solve(Population(always, committed={"b": 0.1}), **SHORT)
    assert solution["attractor"].item() == "a"
    np.testing.assert_allclose(solution["word_share"], [[0.9, 0.1]] * len(TIMES), atol=1e-9)


def test_with_committed_and_with_fraction_replace_one_number_each():
    population = two_policies({"a": 0.1, "b": 0.2})
    assert population.with_committed("a", 0.3).committed == {"a": 0.3, "b": 0.2}
    assert population.with_committed("a", 0.3).fractions == population.fractions
    three = Population([conformist(s) for s in (1, 2, 3)], fractions=[0.1, 0.3, 0.6], committed={"a": 0.1})
    assert three.with_fraction(0.2).fractions == pytest.approx((0.2, 0.6, 0.2))
    assert three.with_fraction(0.2).committed == {"a": 0.1}
    assert population.sha256 != population.with_committed("a", 0.11).sha256
    assert population.sha256 == two_policies({"b": 0.2, "a": 0.1}).sha256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fractions": [0.5, 0.6]}, r"fractions = \[0.5, 0.6\]: expected 2 numbers .* sum to 1, not to 1.1$"),
        (
            {"fractions": {"a": 0.1}},
            r"fractions = {'a': 0.1}: expected a number for each policy, or by word committed=",
        ),
        ({"fractions": [-0.1, 1.1]}, r"fractions = \[-0.1, 1.1\]"),
        ({}, "fractions = None: expected 2"),
        ({"fractions": [0.5, 0.5], "committed": {"a": 1.0}}, "committed sums to 1.0: expected less than 1"),
        ({"fractions": [0.5, 0.5], "committed": {"a": -0.1}}, r"committed\['a'\] = -0.1: expected"),
        ({"fractions": [0.5, 0.5], "committed": {"c": 0.1}}, "committed has the word 'c': expected some of a, b"),
        ({"fractions": ["0.5", "0.5"]}, "fractions has dtype <U3: expected real numbers, not '0.5'"),
        ({"fractions": [True, False]}, "fractions has dtype bool: expected real numbers"),
        ({"fractions": xr.DataArray([1, 0], {"component": [1, 2]}, ["component"])}, "fractions has component = 2"),
        ({"fractions": xr.DataArray([0.5, 0.5], dims="word")}, "fractions has a dim word: expected component"),
    ],
)
def test_wrong_numbers_are_named(arguments, message, unchecked_types):
    with pytest.raises(meanfield.InputError, match=message):
        Population([random_policy(1), random_policy(2)], **arguments)


def test_wrong_policies_are_named():
    policy = random_policy(1)
    with pytest.raises(meanfield.InputError, match="policies is empty"):
        Population([])
    others = meanfield.make_policy(policy["q"].values, ["a", "c"])
    with pytest.raises(meanfield.InputError, match=r"policies\[1\] is over the words a, c with H = 1: expected a, b"):
        Population([policy, others], fractions=[0.5, 0.5])
    with pytest.raises(meanfield.InputError, match=r"policies\[1\] is over the words a, b with H = 2: .* with H = 1"):
        Population([policy, random_policy(1, 2, 2)], fractions=[0.5, 0.5])
    with pytest.raises(meanfield.InputError, match=r"policies\[0\] holds 2 models and 3 pairs"):
        Population(stack_of_policies()[0])


def test_wrong_starts_of_populations_are_named():
    population = two_policies()
    with pytest.raises(meanfield.InputError, match="initial has 3 along component: expected 2"):
        meanfield.solve(population, initial=np.full((3, 21), 1 / 21))
    with pytest.raises(meanfield.InputError, match="initial has 5 along state: expected 21"):
        meanfield.solve(population, initial=np.full((2, 5), 1 / 5))
    with pytest.raises(meanfield.InputError, match="expected state among them"):
        meanfield.solve(population, initial=xr.DataArray(np.ones(2), dims=("component",)))
    with pytest.raises(meanfield.InputError, match="expected no component for a single policy"):
        meanfield.solve(conformist(1), initial=meanfield.empty_memories(population))
    with pytest.raises(meanfield.InputError, match="max_time = nan"):
        meanfield.solve(population, times=TIMES, max_time=np.nan)


@pytest.mark.parametrize("fraction", [-0.1, 1.5])
def test_wrong_new_fraction_is_named(fraction):
    with pytest.raises(meanfield.InputError, match=f"{fraction}"):
        two_policies().with_fraction(fraction)


@pytest.mark.parametrize(
    ("composition", "message"),
    [
        (
            xr.DataArray(np.full(5, 0.2), {"state": range(1, 6)}, ["state"]),
            "composition has state = 5: expected 0 to 4",
        ),
        (xr.DataArray(np.full(4, 0.25), {"state": range(4)}, ["state"]), "composition lacks state = 4"),
        (xr.DataArray(np.full((2, 5), 0.2), dims=["word", "state"]), "composition has a dim word"),
        (xr.Dataset(), "composition is a xarray Dataset: expected an array"),
    ],
)
def test_compositions_of_other_states_are_refused(composition, message, unchecked_types):
    with pytest.raises(meanfield.InputError, match=message):
        meanfield.spectrum(random_policy(1), composition)
    with pytest.raises(
        meanfield.InputError, match=message.replace("composition", "(composition|initial)").replace("a dim ", ".*")
    ):
        meanfield.solve(random_policy(1), initial=composition)
