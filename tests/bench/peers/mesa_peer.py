# /// script
# dependencies = ["mesa==3.3.1"]
# ///
"""Mesa: agents are objects, and a step of the model is a round of N interactions."""

from contract import TASK, answer, phase

with phase("import"):
    from mesa import Agent, Model


class Talker(Agent):
    def __init__(self, model, state):
        super().__init__(model)
        self.state = state

    def meet(self, other):
        left = self.random.random()
        for new_own, new_other, probability in self.model.outcomes.get((self.state, other.state), ()):
            left -= probability
            if left < 0:
                self.state, other.state = new_own, new_other
                return


class Population(Model):
    def __init__(self, counts, outcomes, seed):
        super().__init__(seed=seed)
        self.outcomes = outcomes
        states = [state for state, number in enumerate(counts) for _ in range(number)]
        self.talkers = list(Talker.create_agents(self, len(states), states))

    def step(self):
        for _ in self.talkers:
            initiator, responder = self.random.sample(self.talkers, 2)
            initiator.meet(responder)


outcomes = {}
for i, j, new_i, new_j, probability in TASK["transitions"]:
    outcomes.setdefault((i, j), []).append((new_i, new_j, probability))
with phase("set-up"):
    population = Population(TASK["counts"], outcomes, TASK["seed"])
final = []
with phase("run"):
    for run in range(TASK["runs"]):
        population = Population(TASK["counts"], outcomes, TASK["seed"] + run) if run else population
        for _ in range(TASK["rounds"]):
            population.step()
        held = [talker.state for talker in population.talkers]
        final.append([held.count(state) for state in range(len(TASK["counts"]))])
answer(final)
