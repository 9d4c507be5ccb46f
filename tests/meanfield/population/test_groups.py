"""Agents who meet in groups: the game, its rate equation and its simulation, against enumeration and closed forms."""

import itertools
import pickle
from collections import Counter
from functools import cache
from math import comb, prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from scipy.sparse import csr_array

import meanfield
import validation
from _metastable import follower
from meanfield import InputError, MemorySpace, Population, core

RULES = ["majority", "vote", "speaker"]


def policy_of(n_words, memory_length, seed):
    words = [*"ABCD"[:n_words]]
    states = MemorySpace(n_words, memory_length).n_states
    return meanfield.make_policy(np.random.default_rng(seed).dirichlet(np.ones(n_words), states), words)


def likeliest(words, counted):
    """The probability of each word to be heard, by the definition of a majority."""
    count = [sum(word == said for said in words) for word in counted]
    best = [word for word, number in zip(counted, count, strict=True) if number == max(count)]
    return {word: 1 / len(best) for word in best}


@cache
def heard_by_all(words, rule, n_words):
    """Each way in which the members of a group, who say these words, may hear, with its probability."""
    if rule == "speaker":
        return [((word,) * len(words), 1 / len(words)) for word in words]
    if rule == "vote":
        return [((word,) * len(words), p) for word, p in likeliest(words, range(n_words)).items()]
    each = [likeliest(words[:k] + words[k + 1 :], range(n_words)).items() for k in range(len(words))]
    return [(tuple(w for w, _ in way), np.prod([p for _, p in way])) for way in itertools.product(*each)]


def meetings(q, states, rule):
    """All outcomes of a meeting of agents in these memories, by enumeration."""
    n_words, q = q.shape[1], q.tolist()
    successors = MemorySpace.from_sizes(len(q), n_words).successors().tolist()
    for words in itertools.product(range(n_words), repeat=len(states)):
        said = prod(q[state][word] for state, word in zip(states, words, strict=True))
        for heard, p in heard_by_all(words, rule, n_words):
            own = zip(states, words, heard, strict=True)
            yield tuple(successors[i] + n_words * a + b for i, a, b in own), said * p


@pytest.mark.parametrize(("n_words", "size", "rule"), [(2, 4, "majority"), (3, 3, "vote"), (2, 3, "speaker")])
def test_hamiltonian_is_the_sum_over_all_meetings(n_words, size, rule):
    random = np.random.default_rng(size)
    q = policy_of(n_words, 1, 1)["q"].values
    x, p = random.dirichlet(np.ones(len(q))), 0.3 * random.normal(size=len(q))
    expected, share, tilt = -1.0, x.tolist(), np.exp(p[None] - p[:, None]).tolist()
    for states in itertools.product(range(len(q)), repeat=size):
        for after, probability in meetings(q, states, rule):
            tilted = prod(tilt[i][j] for i, j in zip(states, after, strict=True))
            expected += prod(share[i] for i in states) * probability * tilted
    with jax.enable_x64(True):
        game = core.WordGame(q, groups=core.Hearing.of(size, n_words, rule))
        assert game.hamiltonian(x, p) == pytest.approx(expected / 2, rel=1e-12)
        through_fields = game.energy(game.fields(x * np.exp(-p), np.exp(p)) + game.constants)
        assert through_fields == pytest.approx(expected / 2, rel=1e-12)


def test_two_who_hear_each_other_are_a_pair():
    policy = policy_of(3, 2, 2)
    random = np.random.default_rng(0)
    with jax.enable_x64(True):
        pairs = core.WordGame(policy["q"].values, committed=np.array([0.1, 0, 0.05]))
        x, p = 0.85 * random.dirichlet(np.ones(91)), 0.3 * random.normal(size=91)
        groups = core.WordGame(pairs.q, pairs.share, pairs.committed, groups=core.Hearing.of(2, 3, "majority"))
        assert groups.hamiltonian(x, p) == pytest.approx(pairs.hamiltonian(x, p).item(), rel=1e-12)
    assert not Population(policy, group=2).in_groups


def game_of(population):
    return core.WordGame(*population.arrays[:3], groups=core.Hearing(*population.arrays[3:]))


GROUPS = [(4, "majority"), (5, "speaker"), ({2: 0.3, 3: 0.3, 6: 0.4}, "vote")]


@pytest.mark.slow
@pytest.mark.parametrize(("group", "hears"), GROUPS)
def test_fixed_points_are_where_the_rate_equation_ends(group, hears):
    """Attractors from many starts, and the eigenvalues of the full Jacobian, by automatic derivatives."""
    policies = [follower(0.02), policy_of(2, 2, 4)]
    population = Population(policies, [0.9, 0.1], committed={"A": 0.02}, group=group, hears=hears)
    points = meanfield.fixed_points(population)
    assert points["stability"].values.tolist() == ["stable", "unstable", "stable"]
    basins = meanfield.basins(population)
    for part, attractor in ((-1e-3, 2), (1e-3, 0)):
        s = basins["separatrix"].item() + part
        start = s * meanfield.consensus(population, "A") + (1 - s) * meanfield.consensus(population, "B")
        end = meanfield.solve(population, initial=start, times=[0.0], rtol=1e-10)["composition"]
        expected = points["composition"].isel(fixed_point=attractor)
        np.testing.assert_allclose(end, expected, atol=1e-7)
    assert np.abs(meanfield.drift(population, expected)).max() < 1e-12
    with jax.enable_x64(True):
        game = game_of(population)
        for number in range(3):
            x = jnp.asarray(points["composition"].values[number] * population.arrays.share[:, None])
            jacobian = jax.jacfwd(lambda v, game=game: core.drift(game, v.reshape(2, -1)).ravel())(x.ravel())
            found = np.linalg.eigvals(jacobian).real
            expected = np.sort(found[np.abs(found) > 1e-9])[::-1][:3]  # two zeros: the masses are conserved
            values = meanfield.spectrum(population, points["composition"][number], k=3)["eigenvalue"]
            np.testing.assert_allclose(values, expected, atol=1e-6)
            assert points["eigenvalue"][number] == pytest.approx(expected[0], abs=1e-9)
        pairs = meanfield.fixed_points(Population(policies, [0.9, 0.1], committed={"A": 0.02}))
        assert np.abs(pairs["eigenvalue"][0] - points["eigenvalue"][0]) > 1e-3, "the control"


@pytest.mark.slow
@pytest.mark.parametrize(("group", "hears"), GROUPS)
def test_critical_masses_are_folds_of_the_core_and_of_the_diagram(group, hears):
    policy = follower(0.02)
    population = Population(policy, group=group, hears=hears)
    with jax.enable_x64(True):
        expected = core.critical_mass(game_of(population), 1).item()
    assert meanfield.critical_mass(population, word="B")["critical_mass"] == pytest.approx(expected, abs=1e-9)
    diagram = meanfield.bifurcation(population, word="B")
    assert np.abs(diagram["parameter"].values[diagram["fold"].values] - expected).min() < 1e-9
    table = meanfield.stability_table(population)
    points = meanfield.fixed_points(population)
    rows = table["row"].values == "fixed_point"
    np.testing.assert_allclose(table["eigenvalue"].values[rows], points["eigenvalue"].values, rtol=1e-9)


def test_agents_who_copy_what_three_vote_have_a_closed_form():
    """H = 1 and no errors: Q = (1 - c)(3Q² - 2Q³) + c has its fold at c = 1 - 8/9 for the others' majority of four."""
    policy = meanfield.make_policy(np.array([0.5, 1.0, 0.5, 0.5, 0.0]), ["A", "B"])
    three = Population(policy, group=3, hears="vote")
    assert meanfield.critical_mass(three, word="A")["critical_mass"] == pytest.approx(3 - 2 * np.sqrt(2), abs=1e-12)
    four = Population(policy, group=4)
    assert meanfield.critical_mass(four, word="A")["critical_mass"] == pytest.approx(1 / 9, abs=1e-12)
    diagram = meanfield.bifurcation(four, word="A")
    assert diagram["parameter"].values[diagram["fold"].values] == pytest.approx([1 / 9], abs=1e-12)
    table, points = meanfield.stability_table(four), meanfield.fixed_points(four)
    rows = table["row"].values == "fixed_point"
    np.testing.assert_allclose(table["eigenvalue"].values[rows], points["eigenvalue"].values, rtol=1e-9)
    many = Population(policy, group=64, hears="vote")  # products of so many voices underflow
    assert meanfield.fixed_points(many)["word_share"].sel(word="A").values == pytest.approx([1, 0.5, 0], abs=1e-9)


def test_a_majority_among_three_is_a_pair_in_the_mean():
    """Either of two others is heard; agents interact 3/2 times as often."""
    policy = policy_of(2, 2, 3)
    three, two = (meanfield.fixed_points(Population(policy, group=group)) for group in (3, 2))
    np.testing.assert_allclose(three["word_share"], two["word_share"], rtol=1e-12)
    np.testing.assert_allclose(three["eigenvalue"], 1.5 * two["eigenvalue"], rtol=1e-9)
    np.testing.assert_allclose(
        meanfield.spectrum(Population(policy, group=3), three["composition"][0])["eigenvalue"],
        1.5 * meanfield.spectrum(Population(policy), two["composition"][0])["eigenvalue"],
        rtol=1e-6,
    )


def test_groups_of_several_sizes_are_simulated():
    """The speaker among few is often oneself, so that sizes matter; and so they do as a share of meetings."""
    policy = follower(0.02)
    sizes = {2: 0.7, 6: 0.3}
    times, options = np.arange(0, 9.0, 2), {"initial": meanfield.consensus(policy, "B")}
    population = Population(policy, committed={"A": 0.3}, group=sizes, hears="speaker")
    assert repr(population) == "Population(0.3 committed to 'A', groups of 2 (0.7) or 6 (0.3), speaker {A, B})"
    theory = meanfield.solve(population, times=times, **options)["word_share"].sel(word="A")
    runs = validation.simulate(population, n_agents=40_000, runs=4, seed=1, max_rounds=4, record_rounds=4, initial="B")
    found, limit = runs["word_share"].sel(word="A").mean("run").squeeze("n_agents"), 4 * 0.5 / np.sqrt(4 * 40_000)
    assert np.abs(found.values - theory.values).max() < limit
    other = Population(policy, committed={"A": 0.3}, group={2: 0.5, 6: 0.5}, hears="speaker")
    control = meanfield.solve(other, times=times, **options)["word_share"].sel(word="A")
    assert np.abs(control - theory).max() > 2 * limit, "the control"
    assert pickle.loads(pickle.dumps(population)).sha256 == population.sha256
    assert not Population(policy, group={2: 1.0}).in_groups


def exact_moments(q, n_agents, firm, rule, n_rounds):
    """Mean and variance of the word share of so many agents, `firm` of whom always say A, who meet in groups of 3."""
    q, free, moves = np.vstack([q, [1, 0]]), n_agents - firm, {}
    for states in itertools.combinations_with_replacement(range(len(q)), 3):
        moves[states] = Counter()
        for words in itertools.product(range(2), repeat=3):
            said = np.prod([q[state, word] for state, word in zip(states, words, strict=True)])
            for heard, p in heard_by_all(words, rule, 2):
                change = np.zeros(5, int)
                for i, a, b in zip(states, words, heard, strict=True):
                    if i < 5:
                        np.add.at(change, [i, 1 + 2 * a + b], [-1, 1])
                moves[states][tuple(change)] += said * p if said else 0
    crowds = [crowd for crowd in itertools.product(range(free + 1), repeat=5) if sum(crowd) == free]
    number = {crowd: k for k, crowd in enumerate(crowds)}
    entries = [
        (number[tuple(np.add(crowd, change).tolist())], number[crowd], p * ways / comb(n_agents, 3))
        for crowd in crowds
        for states, some in moves.items()
        if (ways := prod(comb((*crowd, firm)[i], m) for i, m in Counter(states).items()))
        for change, p in some.items()
        if p > 0
    ]
    rows, columns, chances = zip(*entries, strict=True)
    chain = csr_array((chances, (rows, columns)), shape=(len(crowds),) * 2)
    law, share = np.zeros(len(crowds)), (np.array(crowds) @ q[:5, 0] + firm) / n_agents
    law[number[(free, 0, 0, 0, 0)]] = 1
    for _ in range(n_rounds * n_agents):
        law = chain @ law
    return law @ share, law @ (share - law @ share) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_few_agents_are_spread_as_enumerated(rule):
    """N times the exact variance and shift of the mean, from N = 4, 8 and 12 to none of 1/N by a parabola."""
    policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.4, 0.15]), ["A", "B"])
    options = {"group": 3, "hears": rule, "committed": {"A": 0.25}}
    law = meanfield.finite_size(Population(policy, **options), times=[4.0]).sel(word="A", time=4)
    sizes, found = np.array([4, 8, 12]), []
    for n in sizes:
        mean, variance = exact_moments(policy["q"].values, n, n // 4, rule, 2)
        found.append([n * (mean - law["word_share"].item()), n * variance])
    shift, variance = np.polyfit(1 / sizes, found, 2)[-1]
    expected = [law[f"word_share_{name}"].item() for name in ("correction", "variance")]
    np.testing.assert_allclose([shift, variance], expected, atol=3e-3)
    assert np.abs(np.subtract(found[-1], expected)).min() > 4e-3, "the control"
    with pytest.raises(InputError, match=r"order = 2 for .* meets in groups: expected 1"):
        meanfield.finite_size(Population(policy, **options), times=[4.0], order=2)


def test_too_few_agents_are_no_group():
    population = Population(policy_of(2, 1, 1), group=3)
    with pytest.raises(InputError, match="n_agents = 2: too few, since 2 agents are no group of 3"):
        validation.simulate(population, n_agents=2, runs=1, seed=1)
    options = {"committed": {"A": 1}, "committed_are_extra": True, "max_rounds": 1}
    assert validation.simulate(population, n_agents=2, runs=1, seed=1, **options).sizes["agent_kind"] == 2


def test_the_core_refuses_what_holds_for_pairs(unchecked_types):
    path = xr.Dataset(attrs={"option_fixed_point": 0})
    with jax.enable_x64(True):
        q = jnp.asarray(follower(0.02)["q"].values)
        game = core.WordGame(q, groups=core.Hearing.of(3, 2, "vote"))
        for function, arguments in ((core.log_lifetime, (path, 50.0)), (core.reaction_tensor, ())):
            with pytest.raises(ValueError, match="game has groups: expected pairs"):
                function(game, *arguments)
        with pytest.raises(ValueError, match="said has shape"):
            core.WordGame(q, groups=core.Hearing.of(3, 3, "vote"))
    for size, hears in ((1, "vote"), (3, "all")):
        with pytest.raises(ValueError, match=f"group = {size}, hears = '{hears}': expected at least 2, and one of maj"):
            core.Hearing.of(size, 2, hears)
    with pytest.raises(ValueError, match="expected shares of meetings that sum to 1"):
        core.Hearing.of({2: 0.5, 3: 0.4}, 2, "vote")
