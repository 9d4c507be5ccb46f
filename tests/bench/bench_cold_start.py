"""What a first call costs, and a second: every function of the doors for which examples of the arguments are here.

Each runs in a process of its own. Processor time, since that is what other processes on the machine change least.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib import import_module

import pytest
from rich.console import Console
from rich.table import Table

from _paths import ROOT, SUPPORT

ROOMS = ("meanfield", "validation", "validation.naming_game")
LENGTHS = (3, 5)
# By name of the parameter, or of function and parameter. Functions with another that must be given are not called.
EXAMPLES = {
    "policy": "policy",
    "policies": "policy",
    "population": "policy",
    "composition": "meanfield.consensus(policy, 'a')",
    "word": "'a'",
    "words": "('a', 'b')",
    "committed_word": "'a'",
    "of": "'kappa'",
    "q": "policy['q'].values",
    "n_agents": "24",
    "critical_mass.word": "'b'",
    "bifurcation.word": "'b'",
    "finite_size.n_agents": "[24, 100]",
    "numbers": "[0, 5]",
    "runs": "100",
    "seed": "1",
    "word_share": "np.array([0.3, 0.7])",
    "n": "2",
}
CHILD = """
import time
start = time.process_time()
import {room}
imported = time.process_time() - start
import json, jax, numpy as np, meanfield
from _battery import counted, policy_of, softmax
compiled = []
def listen(event, *_, **__): compiled.append("backend_compile" in event)
jax.monitoring.register_event_duration_secs_listener(listen)
heard = counted(2, {length}, np.zeros({length}), np.ones({length}))
policy = policy_of(softmax(1.2 * heard + [0.1, 0.0]), "example")
arguments = dict({arguments})
spent = [imported]
for _ in range(2):
    start = time.process_time()
    {room}.{name}(**arguments)
    spent.append(time.process_time() - start)
    if len(spent) == 2: first = sum(compiled)
print(json.dumps([*spent, first, sum(compiled) - first]))
"""


def measured(room: str, name: str, required: list[str], length: int) -> list[str] | str:
    """Cells of a row: seconds of import, first and second call, and how many functions each compiled; or the error."""
    given = {parameter: EXAMPLES[parameter] for parameter in required}
    given |= {key.split(".")[1]: value for key, value in EXAMPLES.items() if key.startswith(f"{name}.")}
    arguments = ", ".join(f"{parameter}={value}" for parameter, value in given.items())
    code = CHILD.format(room=room, name=name, length=length, arguments=arguments)
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(SUPPORT)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=where)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    *seconds, first, second = json.loads(done.stdout.splitlines()[-1])
    return [*(f"{spent:.2f}" for spent in seconds), f"{first}, {second}"]


@pytest.mark.bench
def test_first_and_second_calls() -> None:
    table = Table(title="processor seconds in a fresh process")
    for column in ("function", "H", "import", "first call", "second call", "compiled"):
        table.add_column(column)
    left_out, failed = [], []
    for room in ROOMS:
        for name in import_module(room).__all__:
            function = getattr(import_module(room), name)
            if not inspect.isfunction(function):
                continue
            parameters = inspect.signature(function).parameters.values()
            required = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
            if missing := [parameter for parameter in required if parameter not in EXAMPLES]:
                left_out.append(f"{room}.{name} ({', '.join(missing)})")
                continue
            for length in LENGTHS:
                cells = measured(room, name, required, length)
                if isinstance(cells, str):
                    (left_out if "InputError" in cells else failed).append(f"{room}.{name} at H = {length} ({cells})")
                else:
                    table.add_row(f"{room}.{name}", str(length), *cells)
    console = Console(width=140)
    console.print(table)
    console.print("Not called, for want of an example:", ", ".join(left_out))
    assert not failed, "\n".join(failed)
