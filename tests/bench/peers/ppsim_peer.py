# /// script
# dependencies = ["ppsim==1.0.2"]
# ///
"""ppsim: rules for ordered pairs of states; runs after the first reuse what was set up."""

from contract import TASK, answer, phase

with phase("import"):
    from ppsim import Simulation


def protocol_rule():
    rule = {}
    for i, j, new_i, new_j, probability in TASK["transitions"]:
        rule.setdefault((i, j), {})[new_i, new_j] = probability
    return rule


def naming_game_rule():
    """By the index of memories: `successors` says where the block of a memory's four next ones begins."""
    successors = TASK["successors"]
    says = [(q, 1 - q) for q in TASK["q"]]

    def meet(i, j):
        return {
            (successors[i] + 2 * a + b, successors[j] + 2 * b + a): says[i][a] * says[j][b]
            for a in (0, 1)
            for b in (0, 1)
        }

    return meet


start = {state: number for state, number in enumerate(TASK["counts"]) if number}
with phase("set-up"):
    rule = protocol_rule() if "transitions" in TASK else naming_game_rule()
    simulation = Simulation(start, rule, transition_order="asymmetric", seed=TASK["seed"])
final = []
with phase("run"):
    for run in range(TASK["runs"]):
        if run:
            simulation.reset(start)
        simulation.run(TASK["rounds"], history_interval=TASK["rounds"], timer=False)
        at_end = simulation.config_dict
        final.append([int(at_end.get(state, 0)) for state in range(len(TASK["counts"]))])
answer(final)
