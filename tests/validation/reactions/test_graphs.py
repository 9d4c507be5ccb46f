"""Reaction models on graphs against exact chains, exit probabilities, exact correlations and pair approximations.

Error budget: each of some 40 stochastic comparisons rejects a true statement with probability 1e-4 or less for an
arbitrary seed. Controls must be rejected by the same criterion.
"""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest
from scipy.special import ive
from scipy.stats import chi2_contingency, chisquare

import theory
from meanfield import InputError, ReactionModel
from validation import reactions

UNLIKELY = 1e-4
Z = 4.0  # two-sided 6e-5
STAR = networkx.star_graph(3)
WEIGHTED = networkx.Graph()
WEIGHTED.add_weighted_edges_from([(0, 1, 0.2), (1, 2, 3.0), (2, 3, 1.0), (0, 2, 1.0)])

VOTER = ReactionModel.from_rules({"A + B": "2 B", "B + A": "2 A"}, 1.0)  # the first of a pair copies the second
INVASION = ReactionModel.from_rules({"A + B": "2 A", "B + A": "2 B"}, 1.0)
EPIDEMIC = ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, [3.0, 1.0])
NOISY = ReactionModel.from_rules({**{"A + B": "2 B", "B + A": "2 A"}, "A": "B", "B": "A"}, [1.0, 1.0, 0.1, 0.1])
NAMING = np.zeros((3, 3, 3, 3))  # A, B and AB
for row in theory.minimal_naming_game.interactions(
    theory.minimal_naming_game.two_word_agents()[:3], lambda held: dict.fromkeys(held, 1 / len(held))
):
    NAMING[*row.before, *row.after] += row.probability
SYSTEMS = {
    "voter": (VOTER, {"A": [0], "B": [1, 2, 3]}),
    "epidemic": (EPIDEMIC, {"I": [1], "S": [0, 2, 3]}),
    "noisy voter": (NOISY, {"A": [0, 2], "B": [1, 3]}),
    "naming game": (NAMING, {0: [0], 1: [1, 2], 2: [3]}),
}
UNANIMOUS = {"A": ["A"], "B": ["B"]}


def pair_chances(graph, pick):
    """{(i, j): probability} of the ordered pairs that meet."""
    weight = {(i, j): graph.edges[i, j].get("weight", 1.0) for a, b in graph.edges for i, j in ((a, b), (b, a))}
    strength = {i: sum(w for (first, _), w in weight.items() if first == i) for i in graph}
    if pick == "agent":
        return {(i, j): w / strength[i] / len(graph) for (i, j), w in weight.items()}
    return {pair: w / sum(weight.values()) for pair, w in weight.items()}


def exact_law(rules, nodes, chances, n_interactions):
    """Probabilities of all configurations of the agents, each by its number in the base K."""
    model = isinstance(rules, ReactionModel)
    P, meets = (rules.tensor(), rules.encounter_rate) if model else (rules, 1.0)
    n_states, n = len(P), 4
    alone = rules.spontaneous.toarray() if model else np.zeros((n_states, n_states))
    rate = meets + alone.sum(1).max()
    place = n_states ** np.arange(n)
    step = np.zeros((n_states**n, n_states**n))
    for before in itertools.product(range(n_states), repeat=n):
        here = np.dot(before, place)
        for (i, j), chance in chances.items():
            for k, m in itertools.product(range(n_states), repeat=2):
                there = here + (k - before[i]) * place[i] + (m - before[j]) * place[j]
                step[here, there] += chance * meets / rate * P[before[i], before[j], k, m]
        for i, k in itertools.product(range(n), range(n_states)):
            step[here, here + (k - before[i]) * place[i]] += alone[before[i], k] / rate / n
        step[here, here] += 1 - step[here].sum()
    law = np.zeros(n_states**n)
    names = rules.names if model else range(n_states)
    law[sum(names.index(s) * place[i] for s, some in nodes.items() for i in some)] = 1.0
    return law @ np.linalg.matrix_power(step, n_interactions)


def configuration_p(rules, nodes, chances, runs=20_000, **options):
    """p of χ² for the configurations of four agents after two rounds."""
    counts = {s: len(some) for s, some in nodes.items()}
    counts = counts if isinstance(rules, ReactionModel) else [*counts.values()]
    options |= {"runs": runs, "seed": 5, "max_rounds": 2, "record_rounds": 2, "initial_nodes": nodes}
    found = reactions.simulate(rules, counts, node_groups=[0, 1, 2, 3], **options).isel(round=2)
    order = found["group_share"].transpose("run", "node_group", "state").values.argmax(2)
    configuration = order @ found.sizes["state"] ** np.arange(4)
    law = exact_law(rules, nodes, chances, 8)
    counted, expected = np.bincount(configuration, minlength=len(law)), runs * law
    common = expected > 5
    counted = np.append(counted[common], counted[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] < 5:
        assert counted[-1] < 20 + 10 * expected[-1], "configurations that hardly occur"
        counted, expected = counted[:-1], expected[:-1]
    return chisquare(counted, expected * counted.sum() / expected.sum()).pvalue


@pytest.mark.parametrize("pick", ["edge", "agent"])
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("graph", [STAR, WEIGHTED], ids=["star", "weighted"])
def test_four_agents_have_the_law_of_their_exact_chain(graph, system, pick):
    """Control: the other way to pick who meets whom."""
    rules, nodes = SYSTEMS[system]
    other = "agent" if pick == "edge" else "edge"
    for one, fits in ((pick, True), (other, False)):
        p = configuration_p(rules, nodes, pair_chances(graph, one), topology=graph, pick=pick)
        assert (p > UNLIKELY) == fits


def test_the_other_order_and_moves_of_pairs_are_told_apart():
    nodes, reverse = SYSTEMS["voter"][1], {(j, i): p for (i, j), p in pair_chances(STAR, "agent").items()}
    for model in (INVASION, VOTER):
        assert configuration_p(model, nodes, reverse, topology=STAR, pick="agent") < UNLIKELY
    nodes = SYSTEMS["noisy voter"][1]
    interactions = NOISY.protocol()[0]  # moves alone as interactions: hubs move too often
    numbers = {k: nodes[name] for k, name in enumerate(NOISY.names)}
    chances = pair_chances(STAR, "edge")
    alone, paired = (exact_law(*one, chances, 8) for one in ((NOISY, nodes), (interactions, numbers)))
    assert configuration_p(interactions, numbers, chances, topology=STAR) > UNLIKELY
    assert 20_000 * ((alone - paired) ** 2 / paired).sum() > 100, "which the exact chains of other graphs tell apart"


@pytest.mark.parametrize("system", ["epidemic", "naming game"])
def test_on_a_complete_graph_everybody_meets_everybody(system):
    rules, n_agents, few = SYSTEMS[system][0], 24, 8
    counts = {"S": n_agents - few, "I": few} if system == "epidemic" else [n_agents - few, few, 0]
    absorbing = {"healthy": ["S"]} if system == "epidemic" else {"A": [0], "B": [1]}

    def ends(**options):
        options |= {"runs": 10_000, "seed": 2, "max_rounds": 30, "absorbing": absorbing, "method": "agents"}
        runs = reactions.simulate(rules, counts, **options)
        late = np.minimum(np.nan_to_num(runs["absorbed_round"].values, nan=30) // 2, 10).astype(int)
        first = runs["final_count"].values[:, 0] * 11 // (n_agents + 1)
        return np.bincount(11 * first + late, minlength=121)

    def alike(**options):
        table = np.stack([everybody, ends(**options)])
        return chi2_contingency(table[:, table.sum(0) > 10]).pvalue

    everybody = ends()
    for pick in ("edge", "agent"):
        assert alike(topology=networkx.complete_graph(n_agents), pick=pick) > UNLIKELY
    assert alike(topology=networkx.cycle_graph(n_agents)) < UNLIKELY, "control: fewer edges"


def test_exit_probabilities_are_conserved_shares():
    """Σ k_i A_i where the agent picked copies, Σ A_i where the edge is picked, Σ A_i / k_i where the other copies."""
    graph, hubs, runs = networkx.barabasi_albert_graph(20, 2, seed=1), 3, 3000
    degree = np.array([graph.degree[node] for node in graph])
    top = np.argsort(-degree, kind="stable")[:hubs]
    options = {"topology": graph, "initial_nodes": {"A": "hubs"}, "absorbing": UNANIMOUS, "max_rounds": 10**5}
    for model, pick, power in ((VOTER, "agent", 1.0), (VOTER, "edge", 0.0), (INVASION, "agent", -1.0)):
        found = reactions.simulate(model, {"A": hubs, "B": 20 - hubs}, runs=runs, seed=3, pick=pick, **options)
        won = (found["absorbed_group"] == "A").mean().item()
        for one in (1.0, 0.0, -1.0):
            share = (degree[top] ** one).sum() / (degree**one).sum()
            z = (won - share) / np.sqrt(share * (1 - share) / runs)
            assert abs(z) < Z if one == power else abs(z) > Z, (pick, one, won, share)


def stationary_correlations(graph, pick, noise):
    """E[s_i s_j] of the noisy voter model, whose equations close: agent i copies j at the rate R_ij."""
    n = len(graph)
    R = np.zeros((n, n))
    for (i, j), chance in pair_chances(graph, pick).items():
        R[i, j] = n * chance
    out = R.sum(1)
    one = np.eye(n)
    decay = np.add.outer(out, out) + 4 * noise
    equations = np.kron(R, one) + np.kron(one, R) - np.diag(decay.ravel())
    same = one.ravel().astype(bool)
    C = np.ones(n * n)
    C[~same] = np.linalg.solve(equations[~same][:, ~same], -equations[~same][:, same].sum(1))
    return C.reshape(n, n)


@pytest.mark.parametrize("pick", ["edge", "agent"])
def test_noisy_voters_have_their_exact_variance_and_interfaces(pick):
    graph = networkx.barabasi_albert_graph(30, 2, seed=2)
    options = {"topology": graph, "pick": pick, "runs": 4000, "seed": 6, "max_rounds": 50, "record_rounds": 50}
    found = reactions.simulate(NOISY, {"A": 15, "B": 15}, **options).isel(round=-1)
    spin = 2 * found["count"].sel(state="A").values / 30 - 1
    ends = np.array(graph.edges).T
    density = found["interface_density"].values

    def misses(rule):
        C = stationary_correlations(graph, rule, 0.1)
        expected = C.mean(), (1 - C[*ends].mean()) / 2
        measured = np.array([spin**2, density])
        return abs(measured.mean(1) - expected) / (measured.std(1) / np.sqrt(4000))

    assert max(misses(pick)) < Z
    assert max(misses("edge" if pick == "agent" else "agent")) > Z, "control: the other pick"


def test_voters_on_random_regular_graphs_have_the_interfaces_of_walks_on_trees():
    """Walks from neighbours on a tree never meet with probability (k - 2)/(k - 1), and half of those ends differ."""
    degree = 4
    options = {"topology": networkx.random_regular_graph(degree, 5000, seed=1), "max_rounds": 12, "record_rounds": 12}
    found = reactions.simulate(VOTER, {"A": 2500, "B": 2500}, runs=20, seed=1, **options)
    density = found["interface_density"].isel(round=12).values
    error = Z * density.std(ddof=1) / np.sqrt(20) + 0.004  # for the first rounds and the finite size
    assert abs(density.mean() - (degree - 2) / (2 * (degree - 1))) < error
    assert abs(density.mean() - (degree - 1) / (2 * degree)) > error, "control"


def test_voters_on_a_cycle_have_the_domain_walls_of_glauber():
    """1963, J. Math. Phys. 4, 294: (I_0(2t) + I_1(2t)) e^(-2t) / 2 from states without order."""
    cycle = np.column_stack([np.arange(20_000), np.roll(np.arange(20_000), 1)])
    options = {"topology": cycle, "runs": 30, "seed": 1, "max_rounds": 40, "record_rounds": 40}
    found = reactions.simulate(VOTER, {"A": 10_000, "B": 10_000}, **options)["interface_density"]
    time = np.array([1, 5, 40])
    walls, error = found.mean("run")[time].values, Z * found.std("run")[time].values / np.sqrt(30)
    assert (abs(walls - (ive(0, 2 * time) + ive(1, 2 * time)) / 2) < error).all()
    assert (abs(walls - (ive(0, 2.1 * time) + ive(1, 2.1 * time)) / 2) > error).all(), "control: another clock"


@pytest.mark.slow
def test_domains_of_the_naming_game_grow_nearly_like_the_root_of_time():
    """Interfaces on a lattice fall like t^-0.45 with two opinions that may be held together.

    Source: Castelló, Eguíluz and San Miguel 2006, New J. Phys. 8, 308; curvature would give 1/2, as on a cycle.
    """

    def slope(rules, counts, topology):
        options = {"runs": 8, "seed": 1, "max_rounds": 800, "record_rounds": 800, "topology": topology}
        density = reactions.simulate(rules, counts, **options)["interface_density"].mean("run").values
        return np.log(density[800] / density[50]) / np.log(16)

    half = [20_000, 20_000, 0]
    lattice = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(200, 200, periodic=True))
    assert abs(slope(NAMING, half, lattice) + 0.45) < 0.05
    assert abs(slope(NAMING, half, networkx.cycle_graph(40_000)) + 0.5) < 0.05
    assert slope(VOTER, half[:2], lattice) > -0.2, "control: voters have no surface tension, 1/log t"


@pytest.mark.slow
@pytest.mark.parametrize(("degree", "below", "above"), [(10, 0.078, 0.083), (50, 0.091, 0.0965), (None, 0.094, 0.102)])
def test_critical_committed_fractions_of_random_graphs_grow_to_that_of_everybody(degree, below, above):
    """From B, with 20,000 agents: A wins above 0.0805, 0.094 and, of everybody, 0.0979 committed agents."""
    agents = theory.minimal_naming_game.two_word_agents()[:4]
    rows = [*theory.minimal_naming_game.interactions(agents, lambda held: dict.fromkeys(held, 1 / len(held)))]
    graph = None
    if degree is not None:
        graph = networkx.fast_gnp_random_graph(20_000, degree / 19_999, seed=1)
        graph = graph.subgraph(max(networkx.connected_components(graph), key=len))
    n_agents = 20_000 if graph is None else len(graph)
    for share, wins in ((below, False), (above, True)):
        committed = round(share * n_agents)
        options = {"runs": 4, "seed": 2, "max_rounds": 1500, "absorbing": {"A": [0, 3]}, "topology": graph}
        runs = reactions.simulate(rows, [0, n_agents - committed, 0, committed], **options)
        assert ((runs["absorbed_group"] == "A") == wins).all()


def test_runs_depend_on_their_numbers_only():
    def simulate(runs, record=5, topology=lambda n, seed: networkx.barabasi_albert_graph(n, 3, seed=seed), **more):
        options = {"seed": 4, "max_rounds": 40, "record_rounds": record, "topology": topology, **more}
        return reactions.simulate(EPIDEMIC, {"S": 54, "I": 6}, runs=runs, **options)

    few, many = simulate(5), simulate(12)
    assert few.drop_attrs().identical(many.isel(run=slice(5)).drop_attrs())
    assert few["final_count"].identical(simulate(5, record=None)["final_count"])
    assert many.attrs["option_topology"] == "graphs of <lambda>"
    assert (many.attrs["option_pick"], many.attrs["option_initial_nodes"]) == ("edge", "anywhere")
    assert not few["count"].identical(simulate(5, initial_nodes={"I": "hubs"})["count"])
    assert not few["count"].identical(simulate(5, pick="agent")["count"])
    everybody = simulate(5, topology=None)
    np.testing.assert_allclose(few["time"], everybody["time"])
    assert "interface_density" not in everybody
    assert "option_topology" not in everybody.attrs
    np.testing.assert_allclose(few["count"].sum("state"), 60)


def test_states_start_at_their_nodes_and_are_recorded_by_group():
    grid = networkx.grid_2d_graph(6, 6)
    corner = [(i, j) for i in range(3) for j in range(2)]
    sides = {node: "left" if node[1] < 2 else "right" for node in grid}
    options = {"runs": 3, "seed": 1, "max_rounds": 30, "record_rounds": 30, "topology": grid, "node_groups": sides}
    found = reactions.simulate(VOTER, {"A": 6, "B": 30}, initial_nodes={"A": corner}, **options)
    start = found.isel(round=0)
    assert (start["interface_density"] == 5 / 60).all()
    assert start["group_share"].sel(state="A", run=0).to_series().to_dict() == {"left": 0.5, "right": 0.0}
    weights = np.array([12, 24])
    shares = (found["group_share"].sel(state="A").transpose(..., "node_group").values * weights).sum(-1)
    np.testing.assert_allclose(shares, found["count"].sel(state="A"))
    options["node_groups"] = [*sides.values()]
    assert reactions.simulate(VOTER, {"A": 6, "B": 30}, initial_nodes={"A": corner}, **options).identical(found)


PATH = networkx.path_graph(4)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"pick": "agent", "initial_nodes": {"A": [0, 1]}}, "pick and initial_nodes without a topology"),
        ({"node_groups": [0, 0, 1, 1]}, "node_groups without a topology"),
        ({"topology": PATH, "pick": "node"}, "pick = 'node': expected one of edge, agent"),
        ({"topology": networkx.path_graph(5)}, "topology has 5 nodes: expected one for each of 4 agents"),
        ({"topology": lambda n, seed: networkx.empty_graph(n)}, "topology has nodes without neighbours"),
        ({"topology": PATH, "method": "batches"}, "method = 'batches' beside a topology: expected 'agents'"),
        ({"topology": PATH, "initial_nodes": {"C": [0]}}, "expected {state: nodes} with states of"),
        ({"topology": PATH, "initial_nodes": {"A": [0]}}, "has 1 nodes: expected one for each of 2 agents in counts"),
        ({"topology": PATH, "initial_nodes": {"A": [0, 9]}}, "has .9.: expected nodes of the graph"),
        ({"topology": PATH, "initial_nodes": {"A": [0, 0]}}, "expected different nodes"),
        ({"topology": PATH, "initial_nodes": {"A": [0, 1], "B": "hubs"}}, "has a node twice"),
        ({"topology": PATH, "initial_nodes": {"A": "leaves"}}, "expected 'hubs' or a sequence of nodes"),
        ({"topology": PATH, "node_groups": [0, 1]}, "node_groups has 2 labels: expected one for each of 4 nodes"),
        ({"topology": PATH, "node_groups": [0, 0, 1, 1]}, "node_groups without record_rounds"),
        ({"topology": PATH, "node_groups": {0: "a"}}, "node_groups lacks .1, 2, 3.: expected a label for each node"),
        ({"topology": PATH, "node_groups": [0.5, 1, 1, 1]}, "all strings or all whole numbers"),
    ],
)
def test_arguments_of_graphs_are_checked(options, complaint):
    with pytest.raises(InputError, match=complaint.replace("{", r"\{").replace("}", r"\}")):
        reactions.simulate(VOTER, {"A": 2, "B": 2}, runs=2, seed=1, max_rounds=3, **options)


def test_rates_that_are_functions_are_refused():
    model = ReactionModel.from_rules({"A": "B", "B": "A"}, [lambda x: 0.1 + x["B"], 1.0])
    with pytest.raises(InputError, match="topology beside a model with rates that are functions"):
        reactions.simulate(model, {"A": 2, "B": 2}, runs=2, seed=1, max_rounds=3, topology=PATH)


def test_moves_alone_need_no_encounters():
    """Agents who only decay: a binomial number is left."""
    decay = ReactionModel.from_rules({"A": "B"}, 1.0)
    options = {"runs": 4000, "seed": 1, "max_rounds": 2, "record_rounds": 2, "topology": networkx.star_graph(19)}
    found = reactions.simulate(decay, {"A": 20}, **options)
    left = found["count"].sel(state="A").isel(round=2).values
    chance = (1 - 1 / 40) ** 40  # an interaction is a move of a given agent with probability 1/2N
    assert abs(left.mean() - 20 * chance) < Z * left.std() / np.sqrt(4000)
    assert abs(left.mean() - 21 * chance) > Z * left.std() / np.sqrt(4000), "control"
