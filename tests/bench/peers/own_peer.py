"""This project, in a process of its own like its peers; setting up is a first short call, which loads compiled code."""

from contract import TASK, answer, phase

with phase("import"):
    import meanfield
    import validation


def play(runs, rounds):
    options = {"runs": runs, "seed": TASK["seed"], "max_rounds": rounds}
    if "transitions" in TASK:
        rows = [((i, j), (new_i, new_j), probability) for i, j, new_i, new_j, probability in TASK["transitions"]]
        return validation.reactions.simulate(rows, TASK["counts"], **options)["final_count"].values.tolist()
    policy = meanfield.make_policy(TASK["q"], ["A", "B"])
    validation.simulate(policy, n_agents=sum(TASK["counts"]), **options)
    return []


with phase("set-up"):
    play(1, 1)
with phase("run"):
    final = play(TASK["runs"], TASK["rounds"])
answer(final)
