# /// script
# dependencies = ["networkx==3.6.1", "eon==2.0", "mesa==3.3.1", "ndlib==6.0.1", "six", "scikit-learn"]
# ///
"""Simulators of agents on a graph: voters who copy a neighbour, or an epidemic, from every other node in state 1.

`final` is the share of edges between voters of different opinions, or of infected agents, of each run.
"""

from contract import TASK, answer, phase

SIMULATOR, EPIDEMIC, ROUNDS, SEED = TASK["simulator"], TASK["epidemic"], TASK["rounds"], TASK["seed"]
with phase("import"):
    import networkx
    import numpy

    if SIMULATOR == "EoN":
        import EoN
    elif SIMULATOR == "NDlib":
        from ndlib.models.ModelConfig import Configuration
        from ndlib.models.opinions import VoterModel
    else:
        from mesa import Agent, Model

with phase("set-up"):
    graph = networkx.from_edgelist(TASK["edges"])
    ones = [node for node in graph if node % 2 == 0]
    degree = 2 * graph.number_of_edges() / len(graph)


def eon(run):
    rng = numpy.random.default_rng(SEED + run)
    if EPIDEMIC:
        infection, recovery = EPIDEMIC
        return EoN.fast_SIS(graph, infection / degree, recovery, ones, tmax=ROUNDS, rng=rng)[2][-1] / len(graph)
    copies = networkx.DiGraph()
    copies.add_edge((1, 0), (1, 1), rate=1 / degree)
    copies.add_edge((0, 1), (0, 0), rate=1 / degree)
    start = {node: 1 - node % 2 for node in graph}
    options = {"tmax": ROUNDS, "return_full_data": True, "rng": rng}
    found = EoN.Gillespie_simple_contagion(graph, networkx.DiGraph(), copies, start, (0, 1), **options)
    return walls(found.get_statuses(time=ROUNDS))


def ndlib(run):
    model = VoterModel(graph, seed=SEED + run)
    config = Configuration()
    config.add_model_initial_configuration("Infected", ones)
    model.set_initial_status(config)
    for _ in range(ROUNDS * len(graph)):
        model.iteration(node_status=False)
    return walls(model.status)


class Voter(Agent if SIMULATOR == "Mesa" else object):
    def __init__(self, model, opinion):
        super().__init__(model)
        self.opinion, self.neighbours = opinion, []

    def copy(self):
        self.opinion = self.random.choice(self.neighbours).opinion


def mesa(run):
    model = Model(seed=SEED + run)
    voters = {node: Voter(model, 1 - node % 2) for node in graph}
    for node, voter in voters.items():
        voter.neighbours = [voters[other] for other in graph[node]]
    everyone = list(voters.values())
    for _ in range(ROUNDS * len(graph)):
        model.random.choice(everyone).copy()
    return walls({node: voter.opinion for node, voter in voters.items()})


def walls(opinion):
    return sum(opinion[i] != opinion[j] for i, j in graph.edges) / graph.number_of_edges()


play = {"EoN": eon, "NDlib": ndlib, "Mesa": mesa}[SIMULATOR]
with phase("run"):
    final = [play(run) for run in range(TASK["runs"])]
answer(final)
