"""Seconds of a first call and of a second, each function in a process of its own, and of calls for stacks of policies.

First calls are timed by the processor, since that is what other processes on the machine change least.
"""

from __future__ import annotations

import json
import subprocess
import sys

from _paths import ROOT, importing
from _tables import show

# Agents who follow what they heard
POLICIES = """
import numpy as np, xarray as xr, json
from _battery import counted, policy_of, softmax
heard = counted(2, {length}, np.zeros({length}), np.ones({length}))
policy = policy_of(softmax(1.2 * heard + [0.1, 0.0]), "example")
"""
CALLS = {
    "solve": "meanfield.solve(policy)",
    "fixed_points": "meanfield.fixed_points(policy)",
    "stability_table": "meanfield.stability_table(policy)",
    "spectrum": "meanfield.spectrum(policy, meanfield.consensus(policy, 'a'))",
    "basins": "meanfield.basins(policy)",
    "critical_mass": "meanfield.critical_mass(policy, word='b')",
    "bifurcation": "meanfield.bifurcation(policy, word='b')",
    "group_size_law": "meanfield.group_size_law(policy)",
    "lifetime": "meanfield.lifetime(policy)",
    "sensitivity, of κ": "meanfield.sensitivity(policy, of='kappa')",
    "sensitivity, of an eigenvalue": "meanfield.sensitivity(policy, of='eigenvalue', fixed_point=0)",
    "finite_size": "meanfield.finite_size(policy, n_agents=[24, 100])",
    "simulate": "validation.simulate(policy, n_agents=24, runs=100, seed=1)",
    "collective_bias": "validation.collective_bias(policy, n_agents=24, runs=100, seed=1)",
}
CHILD = """
import time
start = time.process_time()
import meanfield, validation
spent = [time.process_time() - start]
import jax
compiled = []
def listen(event, *_, **__): compiled.append("backend_compile" in event)
jax.monitoring.register_event_duration_secs_listener(listen)
{policies}
for _ in range(2):
    start, before = time.process_time(), sum(compiled)
    {call}
    spent += [time.process_time() - start, sum(compiled) - before]
print(json.dumps(spent))
"""
STACK = """
import time, meanfield
{policies}
noise = 0.3 * np.random.default_rng(0).standard_normal(({size}, *heard.shape))
policies = [policy_of(softmax(1.2 * heard + one), f"policy {{n}}") for n, one in enumerate(noise)]
stack = xr.concat(policies, "model", join="override", combine_attrs="drop_conflicts")
stack = stack.assign_coords(model=np.array([f"policy {{n}}" for n in range({size})]))
spent = []
for given in ([stack], policies):
    for _ in range(2):  # programs are compiled for a size of batches
        start = time.perf_counter()
        for policy in given: {call}
        last = time.perf_counter() - start
    spent.append(last)
print(json.dumps(spent))
"""
STACKED = ("fixed_points", "solve", "stability_table")
SIZES = {1: 100, 2: 100, 3: 100, 5: 20}  # policies of each memory length


def printed(code: str, name: str, length: int, **options: object) -> list:
    """The list that a process prints which runs `code` with this call and memories of this length."""
    source = code.format(policies=POLICIES.format(length=length), call=CALLS[name], **options)
    told = subprocess.run(
        [sys.executable, "-c", source], check=True, stdout=subprocess.PIPE, text=True, env=importing(), cwd=ROOT
    )
    return json.loads(told.stdout.splitlines()[-1])


def test_first_and_second_calls() -> None:
    rows = [(name, length, *printed(CHILD, name, length)) for name in CALLS for length in (3, 5)]
    columns = ("function", "H", "import", "first call", "programs", "second call", "programs")
    show("processor seconds in a fresh process", columns, rows)


def test_stacks() -> None:
    """Many of the policies have two conventions and a saddle."""
    rows = []
    for name in STACKED:
        for length, size in SIZES.items():
            together, alone = printed(STACK, name, length, size=size)
            rows.append((name, length, size, together, alone, alone / together))
    show("seconds of a second call", ("function", "H", "policies", "one call", "one by one", "ratio"), rows)
