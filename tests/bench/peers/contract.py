"""Every peer's script reads a task from standard input, times its phases, and answers on standard output.

It runs in the environment of its peer, so that only the standard library may be imported here.
"""

import json
import resource
import sys
import time
from collections import Counter
from contextlib import contextmanager

TASK = json.load(sys.stdin)
SECONDS = {}


@contextmanager
def phase(name):
    begin = time.perf_counter()
    yield
    SECONDS[name] = time.perf_counter() - begin


def reactions():
    """{(reactants, products): rate} of the task's transitions; without volume, the unit of time is a round.

    A reaction has no initiator, so that outcomes of (i, j) and (j, i) which come to the same are one reaction.
    """
    rates = Counter()
    for i, j, new_i, new_j, probability in TASK["transitions"]:
        rates[tuple(sorted((i, j))), tuple(sorted((new_i, new_j)))] += probability
    return rates


def answer(final):
    """`final`: the number of agents in each state at the end, a list a run."""
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": SECONDS, "mebibytes": mebibytes, "final": final}))
