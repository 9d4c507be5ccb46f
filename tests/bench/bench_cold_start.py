"""Seconds of a first call and of a second, for all public functions with examples of their arguments here.

Each runs in a process of its own. Processor time, since that is what other processes on the machine change least.
With MEANFIELD_OLD=FOLDER, an older checkout, its seconds stand beside those of this one, run by run.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from _paths import ROOT, SUPPORT

ROOMS = ("meanfield", "validation", "validation.naming_game")
LENGTHS = (3, 5)
TREES = [ROOT, *(Path(old) for old in [os.environ.get("MEANFIELD_OLD")] if old)]
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


STACK = """
import time, numpy as np, xarray as xr, meanfield
from _battery import counted, policy_of, softmax
heard = counted(2, {length}, np.zeros({length}), np.ones({length}))
noise = 0.3 * np.random.default_rng(0).standard_normal(({size}, *heard.shape))
policies = [policy_of(softmax(1.2 * heard + one), f"policy {{n}}") for n, one in enumerate(noise)]
stack = xr.concat(policies, "model", join="override", combine_attrs="drop_conflicts")
stack = stack.assign_coords(model=np.array([f"policy {{n}}" for n in range({size})]))
def job(stack):
    try:
        return {call}
    except meanfield.InputError:  # takes no stack
        return [job(one) for one in policies]
job(stack)  # programs are compiled for a size of batches
start = time.perf_counter()
job(stack)
print(time.perf_counter() - start)
"""
STACKED = {
    "fixed_points": "meanfield.fixed_points(stack)",
    "critical_mass": "meanfield.critical_mass(stack, word='b')",
    "spectrum": "meanfield.spectrum(stack, meanfield.consensus(policies[0], 'a'), k=1)",
    "stability_table": "meanfield.stability_table(stack, progress=False)",
    "solve": "meanfield.solve(stack)",
}
SIZES = {1: 100, 2: 100, 3: 100, 5: 20}  # policies of each memory length


def printed(code: str, tree: Path) -> tuple[str, str]:
    """The last lines that `code` prints with the package of `tree`, and of its error."""
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), str(SUPPORT)])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=where, cwd=tree)
    return tuple(
        (text.strip().splitlines() or [""])[-1] for text in (done.stdout, done.stderr if done.returncode else "")
    )


def measured(room: str, name: str, required: list[str], length: int, tree: Path) -> list[str] | str:
    """Cells of a row: seconds of import, first and second call, and how many functions each compiled; or the error."""
    given = {parameter: EXAMPLES[parameter] for parameter in required}
    given |= {key.split(".")[1]: value for key, value in EXAMPLES.items() if key.startswith(f"{name}.")}
    arguments = ", ".join(f"{parameter}={value}" for parameter, value in given.items())
    output, error = printed(CHILD.format(room=room, name=name, length=length, arguments=arguments), tree)
    if error:
        return error
    *seconds, first, second = json.loads(output)
    return [*(f"{spent:.2f}" for spent in seconds), f"{first}, {second}"]


def beside(cells: list[str], before: list[str] | None) -> list[str]:
    """Cells of this checkout, after those of the older one where there are such."""
    return [f"{was} → {now}" for was, now in zip(before, cells, strict=True)] if before else cells


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
                cells, *old = (measured(room, name, required, length, tree) for tree in TREES)
                if isinstance(cells, str):
                    (left_out if "InputError" in cells else failed).append(f"{room}.{name} at H = {length} ({cells})")
                    continue
                before = old[0] if old and not isinstance(old[0], str) else None
                table.add_row(f"{room}.{name}", str(length), *beside(cells, before))
    console = Console(width=140)
    console.print(table)
    console.print("Not called, for want of an example:", ", ".join(left_out))
    assert not failed, "\n".join(failed)


@pytest.mark.bench
def test_stacks() -> None:
    """The policies hardly have a bias; many have two conventions and a saddle."""
    table = Table(title="seconds of the second call, for a stack")
    for column in ("function", "H", "policies", "seconds"):
        table.add_column(column)
    for name, call in STACKED.items():
        for length, size in SIZES.items():
            code = STACK.format(call=call, length=length, size=size)
            found = [printed(code, tree) for tree in TREES]
            assert not found[0][1], found[0][1]
            cells = [[f"{float(output):.2f}"] if not error else None for output, error in found]
            table.add_row(name, str(length), str(size), *beside(cells[0], cells[1] if len(cells) > 1 else None))
    Console(width=140).print(table)
