# /// script
# dependencies = ["rebop==0.9.2"]
# ///
"""rebop: chemical reactions, one by one, without the meetings that change nothing."""

from contract import TASK, answer, phase, reactions

with phase("import"):
    from rebop import Gillespie

with phase("set-up"):
    system = Gillespie()
    for (before, after), rate in reactions().items():
        rate_a_pair = rate / (sum(TASK["counts"]) - 1)
        system.add_reaction(rate_a_pair, [f"S{state}" for state in before], [f"S{state}" for state in after])
    start = {f"S{state}": number for state, number in enumerate(TASK["counts"])}
final = []
with phase("run"):
    for run in range(TASK["runs"]):
        course = system.run(start, TASK["rounds"], 1, rng=[TASK["seed"], run])
        final.append([int(course[name][-1]) for name in start])
answer(final)
