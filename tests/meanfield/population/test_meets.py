"""Kinds of agents who meet at rates of their own: definitions, other games, simulation, refusals."""

from functools import partial

import jax
import networkx
import numpy as np
import pytest

import meanfield
import validation
from _metastable import follower
from _policies import random_composition, random_policy
from meanfield import InputError, Population, core

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
    present = share + committed.sum(1)
    assert present @ meets @ present == pytest.approx(1, abs=1e-15)
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
    assert len(model.alpha) == 4 * np.linalg.matrix_rank(meets), "kinds that differ in activity alone need one factor"


def test_equal_rates_are_a_well_mixed_population():
    policies = [random_policy(m, 2, 2) for m in (1, 2)]
    alike, mixed = (
        Population(policies, [0.3, 0.7], committed={"a": 0.1}, meets=meets) for meets in (5 * np.ones((2, 2)), None)
    )
    assert alike.committed == pytest.approx(mixed.committed)
    ends = [meanfield.solve(one, times=[0.0, 3.0, 24.0], max_time=24.0) for one in (alike, mixed)]
    for name in ("word_share", "composition"):
        np.testing.assert_allclose(*(end[name] for end in ends), atol=1e-12)


POLICY = follower(0.02, words="ab")


def test_simulated_kinds_follow_the_rate_equation():
    """A hundred thousand agents of each kind, and who is committed beside it; all meet alike in the control."""
    n, rounds, runs, bound, q = 100_000, 12, 4, {"a": [0.3, 0.0]}, POLICY["q"].sel(word="a", drop=True)
    groups = Population([POLICY, POLICY], [0.5, 0.5], committed=bound, meets=[[9.0, 1.0], [1.0, 9.0]])
    played = validation.simulate(
        groups, n_agents=n, runs=runs, seed=1, initial="b", max_rounds=rounds, trajectories=True,
        record=["word_share", "kind_word_share"],
    ).isel(n_agents=0)  # fmt: skip
    assert played["agents"].values.tolist() == [35_000, 50_000, 15_000]
    assert played["agent_kind"].values.tolist() == ["policy 0", "policy 1", "committed to a, policy 0"]
    by_kind = played["kind_word_share"]
    np.testing.assert_allclose((by_kind * played["agents"]).sum("agent_kind") / n, played["word_share"], rtol=1e-11)
    found = by_kind.isel(agent_kind=[0, 1], round=-1).sel(word="a")
    error = found.std("run", ddof=1).values / np.sqrt(runs)
    assert error.max() < 0.01
    options = {"initial": meanfield.consensus(groups, "b"), "times": [0.0, 2.0 * rounds], "max_time": 2.0 * rounds}
    away, control = (
        np.abs(found.mean("run").values - (meanfield.solve(one, **options)["composition"] @ q).values)
        for one in (groups, Population([POLICY, POLICY], [0.5, 0.5], committed={"a": 0.15}))
    )
    allowed = 5 * error + 1e-3
    assert (away < allowed).all()
    assert (control > 10 * allowed).any(), "the control"


def test_committed_agents_of_kinds_by_number():
    """Numbers, or one for all by their fractions, are the runs of these fractions; extra ones join."""
    groups = {name: Population([POLICY, POLICY], [0.3, 0.7], committed=bound, meets=MEETS) for name, bound in (
        ("nobody", None), ("anywhere", {"a": 0.1}), ("first", {"a": [0.5, 0.0]})
    )}  # fmt: skip
    options = {"n_agents": [20, 200], "runs": 5, "seed": 3, "max_rounds": 9, "record_rounds": 9}
    options["record"] = ["word_share", "said", "success_rate", "kind_word_share"]
    anywhere = validation.simulate(groups["anywhere"], **options | {"n_agents": 200})
    for number in (20, [6, 14]):
        again = validation.simulate(groups["nobody"], **options | {"n_agents": 200}, committed={"a": number})
        assert again.drop_attrs().identical(anywhere.drop_attrs())
        assert again.attrs["option_committed"] == "a[0]:6 a[1]:14"
    few, first = (validation.simulate(groups["first"], **options | {"runs": runs}) for runs in (3, 5))
    assert few.drop_attrs().identical(first.isel(run=slice(3)).drop_attrs())
    assert first["agents"].values.tolist() == [[3, 14, 3], [30, 140, 30]]
    more = validation.simulate(groups["nobody"], **options, committed={"a": [0, 5]}, committed_are_extra=True)
    assert more["agents"].values.tolist() == [[6, 14, 5], [60, 140, 5]]


def test_rare_ends_of_kinds_that_meet():
    """All committed agents are in one group; the control is a population in which all meet alike."""
    options = {"n_agents": 40, "initial": "b", "max_rounds": 20, "convention": "001", "seed": 1}
    groups, alike = (
        Population([POLICY, POLICY], [0.5, 0.5], committed={"a": [0.4, 0.0]}, meets=meets)
        for meets in ([[9.0, 1.0], [1.0, 9.0]], np.ones((2, 2)))
    )
    rare = validation.rare_event(groups, "a", runs=100, replications=20, **options)
    for population, close in ((groups, True), (alike, False)):
        ends = validation.simulate(population, runs=20_000, **options)["consensus_word"].values == "a"
        error = np.hypot(ends.std() / np.sqrt(20_000), (rare["relative_error"] * rare["probability"]).item())
        assert (abs(ends.mean() - rare["probability"].item()) < 4 * error) == close


@pytest.mark.slow
def test_critical_mass_of_one_group_is_a_fold():
    """All of the committed agents are in the first group; below the fold it keeps its word, above it does not."""

    def groups(c):
        return Population([POLICY, POLICY], [0.5, 0.5], committed={"a": [2 * c, 0.0]}, meets=[[9.0, 1.0], [1.0, 9.0]])

    def masses(c):
        return model.class_masses(groups(c).fractions_of_all(meanfield.empty_memories(groups(c))))

    model = meanfield.reaction_model(groups(0.1))
    diagram = meanfield.bifurcation(model, interval=(0.01, 0.12), masses=masses, starts=4)
    fold = diagram["parameter"].values[diagram["bifurcation"].values == "fold"].max()
    assert fold == pytest.approx(0.08954, abs=1e-5)
    kept = [
        (meanfield.solve(groups(part * fold), initial=meanfield.consensus(POLICY, "b"))["composition"] @ POLICY["q"])
        .sel(word="a", component=0).item()
        for part in (0.99, 1.01)
    ]  # fmt: skip
    assert kept[0] < 0.3 < 0.9 < kept[1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"committed": {"a": [1, 2, 3]}}, r"committed\['a'\] = .*one for each of 2 kinds"),
        ({"committed": {"a": [1, 0.5]}}, r"committed\['a'\] = 0.5: expected a whole number"),
        ({"committed": {"a": [4, 0]}}, "expected at most .* in the kinds"),
        ({"n_agents": 2}, "the one of kind 'policy 0' would have nobody to meet"),
        ({"topology": networkx.complete_graph(6)}, "topology beside .* which has meets"),
    ],
)
def test_arguments_of_simulations_are_checked(options, complaint, unchecked_types):
    apart = Population([POLICY, POLICY], [0.5, 0.5], meets=np.eye(2))
    with pytest.raises(InputError, match=complaint):
        validation.simulate(apart, **{"n_agents": 6, "runs": 1, "seed": 1} | options)


@pytest.mark.slow
def test_response_of_kinds_that_hear_words_of_their_own():
    """Its root is a fixed point, and moves as the solution does."""
    population = blocks(length=2)
    end = meanfield.solve(population, rtol=1e-11, atol=1e-13)["composition"].values
    with jax.enable_x64(True):
        game = core.WordGame(*population.arrays)
        found = core.fixed_point(game, np.full((2, 2), 0.5))
        assert found.successful
        np.testing.assert_allclose(core.response(game, found.word_share), found.word_share, atol=1e-14)
        np.testing.assert_allclose(core.drift(game, found.composition), 0, atol=1e-15)
        np.testing.assert_allclose(found.composition, end * population.arrays.share[:, None], atol=1e-7)

        def second(bound):
            moved = core.WordGame(game.q, game.share, game.committed.at[0].set([0.06 - bound, bound]), game.meets)
            return core.fixed_point(moved, found.word_share).word_share[1, 1]

        at, step = float(game.committed[0, 1]), 1e-5
        assert at == pytest.approx(0.06)
        difference = (second(at + step) - second(at - step)) / (2 * step)
        assert jax.grad(second)(at) == pytest.approx(float(difference), rel=1e-6)
        for call in (core.fixed_points, partial(core.critical_mass, word=0), partial(core.response, Q=np.full(2, 0.5))):
            with pytest.raises(ValueError, match="Q has shape"):
                call(game)


# By degree


@pytest.mark.parametrize("pick", ["edge", "agent"])
def test_equal_degrees_are_a_well_mixed_population(pick):
    regular = Population.by_degree(POLICY, np.full(10, 4.0), pick=pick, committed={"a": 0.1})
    ours, theirs = meanfield.solve(regular), meanfield.solve(Population(POLICY, committed={"a": 0.1}))
    np.testing.assert_allclose(ours["word_share"], theirs["word_share"], atol=1e-12)


def test_agents_at_hubs_count_by_their_degree():
    """By edges all hear the same words, in which hubs count by their degree: fixed points are those of Q with them."""
    hubs = Population.by_degree(
        POLICY, {2.0: 0.6, 4.0: 0.3, 10.0: 0.1}, committed={"b": 0.08, "a": 0.12}, committed_nodes="hubs"
    )
    np.testing.assert_allclose(hubs.arrays.committed, [[0, 0], [0.1, 0], [0.02, 0.08]], atol=1e-15)
    weight = np.array([2, 4, 10]) @ hubs.arrays.committed / 3.4
    mixed = Population(POLICY, committed={"a": weight[0], "b": weight[1]})
    ours, theirs = (meanfield.solve(one)["composition"] for one in (hubs, mixed))
    for kind in (0, 1, 2):
        np.testing.assert_allclose(ours.isel(component=kind), theirs.isel(component=0), atol=1e-5)
    alike = meanfield.solve(Population(POLICY, committed=hubs.committed))["composition"]
    assert np.abs(ours.isel(component=0) - alike.isel(component=0)).max() > 0.1, "the control"


@pytest.mark.parametrize("pick", ["edge", "agent"])
def test_rates_are_those_at_which_a_graph_has_classes_meet(pick):
    """The encounters of an agent of each class, whoever its neighbours are, in a graph without correlations."""
    degrees = np.repeat([3, 6, 12], [400, 200, 100])
    graph = networkx.configuration_model(degrees.tolist(), seed=1)
    each = {"edge": lambda a, b: 1.0, "agent": lambda a, b: 1 / degrees[a] + 1 / degrees[b]}[pick]
    met = np.zeros((3, 3))
    number = {3: 0, 6: 1, 12: 2}
    for a, b in graph.edges():
        for one, other in ((a, b), (b, a)):
            met[number[degrees[one]], number[degrees[other]]] += each(one, other)
    arrays = Population.by_degree(POLICY, degrees.astype(float), pick=pick).arrays
    expected = arrays.meets * np.multiply.outer(arrays.share, arrays.share)
    np.testing.assert_allclose(met / met.sum(), expected, atol=4 * np.sqrt(0.25 / graph.number_of_edges()))


@pytest.mark.slow
def test_theory_by_degree_against_a_scale_free_graph():
    """Neighbours are no strangers: theory by degree is off by some 1/degree, and a theory without hubs by more."""
    n, rounds = 4000, 10
    graph = networkx.barabasi_albert_graph(n, 16, seed=1)
    found = validation.simulate(
        POLICY, n_agents=n, runs=4, seed=1, max_rounds=rounds, trajectories=True, initial="b", topology=graph,
        committed={"a": n // 20}, committed_nodes="hubs",
    )["word_share"].sel(word="a", round=rounds).mean().item()  # fmt: skip
    degrees = np.array([degree for _, degree in graph.degree], float)
    options = {"initial": meanfield.consensus(POLICY, "b"), "times": [0.0, 2.0 * rounds]}
    hubs, anywhere = (
        meanfield.solve(Population.by_degree(POLICY, degrees, committed={"a": 0.05}, committed_nodes=nodes), **options)
        for nodes in ("hubs", None)
    )
    away = [abs(one["word_share"].sel(word="a")[-1].item() - found) for one in (hubs, anywhere)]
    assert away[0] < 0.05
    assert away[1] > 0.2, "the control"


def test_half_copying_keeps_the_mean_of_what_is_said_on_every_graph():
    """Both agents of a pair move to the mean of what they said: a word wins with its plain share at the start."""
    policy = meanfield.make_policy(np.array([0.5, 1.0, 0.5, 0.5, 0.0]), ["a", "b"])
    start = np.array([0.0, 0.3, 0.0, 0.0, 0.7])
    uneven = np.stack([start, start[[0, 4, 2, 3, 1]]])
    network = Population.by_degree(policy, {1.0: 0.8, 16.0: 0.2})
    trajectory = meanfield.solve(network, initial=uneven, times=[0.0, 1.0, 20.0])["word_share"].sel(word="a")
    np.testing.assert_allclose(trajectory, 0.8 * 0.3 + 0.2 * 0.7, atol=1e-9)
    runs = 1000
    won = validation.simulate(
        policy, n_agents=40, runs=runs, seed=1, max_rounds=2000, initial=start, convention="001 strict",
        topology=networkx.barabasi_albert_graph(40, 2, seed=1),
    )["consensus_word"]  # fmt: skip
    assert won.notnull().all()
    assert abs((won == "a").mean().item() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / runs)
