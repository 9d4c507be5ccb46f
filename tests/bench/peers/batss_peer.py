# /// script
# dependencies = ["batss==1.0.4"]
# ///
"""batss: chemical reactions in batches."""

from contract import TASK, answer, phase, reactions

with phase("import"):
    from batss import Simulation, species

kinds = species([f"S{state}" for state in range(len(TASK["counts"]))])
start = dict(zip(kinds, TASK["counts"], strict=True))


def prepared(run):
    rule = [
        (kinds[i] + kinds[j] >> kinds[new_i] + kinds[new_j]).k(rate)
        for ((i, j), (new_i, new_j)), rate in reactions().items()
    ]
    return Simulation(start, rule, volume=sum(TASK["counts"]) - 1, seed=TASK["seed"] + run)


with phase("set-up"):
    simulation = prepared(0)
final = []
with phase("run"):
    for run in range(TASK["runs"]):
        simulation = prepared(run) if run else simulation
        simulation.run(TASK["rounds"], history_interval=TASK["rounds"], timer=False)
        final.append([int(simulation.config_dict.get(kind, 0)) for kind in kinds])
answer(final)
