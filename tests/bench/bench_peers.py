"""Simulators beside the peers that pip can install: the same process in each, in a process of its own, one at a time.

uv installs them on first use, some 1.5 GB; one that can't be installed or run is a line that says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import theory
from _policies import majority_policy
from _tables import show
from bench_simulators import EPIDEMIC, RATES, VOTER, regular
from meanfield.toolbox import space_of
from validation import reactions

HERE = Path(__file__).parent / "peers"
OWN = "meanfield-llm"
SCRIPTS = {
    **{OWN: "own", "ppsim 0.1.6": "old_ppsim", "ppsim 1.0.2": "ppsim", "rebop 0.9.2": "rebop", "batss 1.0.4": "batss"},
    **{"Mesa 3.3.1": "mesa", "EoN 2.0": "graph", "NDlib 6.0.1": "graph", "Mesa 3.3.1, on a graph": "graph"},
}
SEED = 1
MOST_SECONDS = 1000  # that a peer may take for one line, with its installation

MINIMAL_GAME = {"counts": [600_000, 400_000, 0], "rounds": 5, "seed": SEED}
OWN_RUNS = 100
# Enough runs for a measurement of a second or so; objects take ten.
PEER_RUNS = {"ppsim 0.1.6": 100, "ppsim 1.0.2": 3, "rebop 0.9.2": 10, "batss 1.0.4": 10, "Mesa 3.3.1": 1}

NAMING_GAME = {"runs": 1, "rounds": 3, "seed": SEED}
NAMING_GAME_AGENTS = 10**6

NEUTRAL = {"counts": [8, 12], "rounds": 150, "runs": 2000, "seed": SEED}  # two opinions last as long once in 10^7 runs
COPY = [(0, 1, 0, 0, 1.0), (1, 0, 1, 1, 1.0)]
COIN = [(i, j, k, k, 0.5) for i, j in ((0, 1), (1, 0)) for k in (0, 1)]
UNORDERED = ("rebop 0.9.2", "batss 1.0.4")  # to reactions the two rules are the same

GRAPH_AGENTS = 10_000
# Units of time; one of voters takes NDlib and EoN a quarter of a minute or more.
ON_GRAPHS = (
    *(("Mesa 3.3.1, on a graph", None, 10), ("EoN 2.0", None, 1), ("NDlib 6.0.1", None, 1)),
    ("EoN 2.0", RATES, 10),
)


def answer(peer: str, task: dict, threads: int = 1) -> dict | str:
    """The answer of the script of `peer` to `task`, or why there is none."""
    script = HERE / f"{SCRIPTS[peer]}_peer.py"
    with_peer = [sys.executable, "-m", "uv", "run", "--quiet", "--python", sys.executable, "--script", script]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    options = {"env": environment, "capture_output": True, "text": True, "timeout": MOST_SECONDS}
    try:
        ended = subprocess.run(
            [sys.executable, script] if peer == OWN else with_peer, input=json.dumps(task), **options
        )
    except subprocess.TimeoutExpired:
        return f"more than {MOST_SECONDS} s"
    if ended.returncode:
        return f"failed: {(ended.stderr.strip().splitlines() or [f'exit status {ended.returncode}'])[-1]}"
    return json.loads(ended.stdout.splitlines()[-1])


def own_answers(task: dict) -> dict[str, dict | str]:
    """Our own answers by line, with one thread and with all; compiled before."""
    most = numba.get_num_threads()
    answer(OWN, {**task, "runs": 1, "rounds": 1}, most)
    return {f"{OWN}, threads: {n}": answer(OWN, task, n) for n in sorted({1, min(most, task["runs"])})}


COLUMNS = ("import s", "set-up s", "run s", "interactions/s with set-up", "ratio", "run alone", "ratio")


def cells(task: dict, found: dict, own: dict, own_runs: int = 1) -> list[str]:
    """Cells of COLUMNS; interactions that change nothing count, whoever skips them."""

    def speeds(seconds: dict, runs: int) -> np.ndarray:
        spent = np.array([seconds["set-up"] + seconds["run"], seconds["run"]])
        return runs * task["rounds"] * sum(task["counts"]) / spent

    pairs = zip(speeds(found["seconds"], task["runs"]), speeds(own["seconds"], own_runs), strict=True)
    beside = [cell for speed, ours in pairs for cell in (f"{speed:.2e}", f"{ours / speed:.2g}")]
    return [*(f"{found['seconds'][phase]:.3g}" for phase in ("import", "set-up", "run")), *beside]


def minimal_game() -> list[tuple]:
    """(i, j, i', j', probability) of the two-word minimal naming game, without what changes nothing."""
    agents, says = theory.minimal_naming_game.two_word_agents()[:3], lambda held: dict.fromkeys(held, 1 / len(held))
    probability: dict[tuple, float] = {}
    for before, after, p, *_ in theory.minimal_naming_game.interactions(agents, says):
        if sorted(before) != sorted(after):
            probability[*before, *after] = probability.get((*before, *after), 0.0) + p
    return [(*states, p) for states, p in probability.items()]


def test_three_states() -> None:
    """The minimal naming game of two words; z tells who simulates something else, by the share of A at the end."""
    task = {**MINIMAL_GAME, "runs": OWN_RUNS, "transitions": minimal_game()}
    n_agents, rows = sum(task["counts"]), []
    answers = {name: (one, OWN_RUNS) for name, one in own_answers(task).items()}
    own = next(iter(answers.values()))[0]
    own_share = np.array(own["final"])[:, 0] / n_agents
    answers |= {peer: (answer(peer, {**task, "runs": runs}), runs) for peer, runs in PEER_RUNS.items()}
    for name, (found, runs) in answers.items():
        if isinstance(found, str):
            rows.append([f"{name}: {found}"])
            continue
        share = np.array(found["final"])[:, 0] / n_agents
        error = own_share.std(ddof=1) * np.sqrt(1 / len(share) + 1 / len(own_share))
        z = "" if name.startswith(OWN) else f"{(share.mean() - own_share.mean()) / error:.1f}"
        told = cells({**task, "runs": runs}, found, own, OWN_RUNS)
        rows.append([name, runs, *told, f"{share.mean():.4f}", z])
    title = f"minimal naming game, N = {n_agents:,}, {task['rounds']} rounds from 60 % A; ratio: ours, one thread"
    show(title, ("simulator", "runs", *COLUMNS, "A at the end", "z"), rows)


@pytest.mark.parametrize("memory_length", [3, 5])
def test_naming_game(memory_length: int) -> None:
    """The naming game of many states, too many for a list of reactions: for rules of ordered pairs only."""
    policy = majority_policy(memory_length, 0.8)  # it goes through all states and never stops
    space, rows = space_of(policy), []
    task = {**NAMING_GAME, "counts": [NAMING_GAME_AGENTS] + [0] * (space.n_states - 1)}
    task |= {"q": policy["q"].values[:, 0].tolist(), "successors": space.successors().tolist()}
    answers = own_answers(task)
    own = next(iter(answers.values()))
    for name, found in {**answers, **{peer: answer(peer, task) for peer in ("ppsim 0.1.6", "ppsim 1.0.2")}}.items():
        if isinstance(found, str):
            rows.append([f"{name}: {found}"])
        elif found["final"] and found["final"][0][0] == NAMING_GAME_AGENTS:
            rows.append([f"{name}: {found['seconds']['set-up']:.3g} s of set-up, then no interaction at all"])
        else:
            rows.append([name, *cells(task, found, own), f"{found['mebibytes']:.0f}"])
    title = f"naming game, H = {memory_length} ({space.n_states:,} states), N = {NAMING_GAME_AGENTS:,}"
    show(title, ("simulator", *COLUMNS, "MiB"), rows)


def test_neutral_voter() -> None:
    """An opinion wins with the probability of its share at the start, exactly: a wrong simulator can be fast."""
    n_agents, runs, rows = sum(NEUTRAL["counts"]), NEUTRAL["runs"], []
    share = NEUTRAL["counts"][0] / n_agents
    for peer in (OWN, *PEER_RUNS):
        for rule, transitions in (("the responder copies the initiator", COPY), ("a coin decides", COIN)):
            if peer in UNORDERED and transitions is COPY:
                continue
            found = answer(peer, {**NEUTRAL, "transitions": transitions})
            if isinstance(found, str):
                assert peer != OWN, found
                rows.append([f"{peer}: {found}"])
                continue
            held = np.array(found["final"])[:, 0]
            won, undecided = (held == n_agents).mean(), int(((held > 0) & (held < n_agents)).sum())
            z = (won - share) / np.sqrt(share * (1 - share) / runs)
            rows.append([peer, rule, f"{won:.4f}", f"{z:.1f}", undecided])
            assert peer != OWN or (abs(z) < 4 and undecided == 0)
    title = f"neutral voter, N = {n_agents}, {runs:,} runs from {share:.0%} A"
    show(title, ("simulator", "rule", "A wins", "z", "undecided"), rows)


def test_graphs() -> None:
    """Agents times units of time in a second; the last columns tell who simulates something else."""
    edges, nodes, rows = regular(GRAPH_AGENTS), np.arange(GRAPH_AGENTS), []
    for peer, epidemic, units in ON_GRAPHS:
        model, name = (EPIDEMIC, "epidemic") if epidemic else (VOTER, "voters")
        last = round(units * (sum(RATES) if epidemic else 1))  # rounds
        places = dict(zip(reversed(model.names), (nodes[::2].tolist(), nodes[1::2].tolist()), strict=True))
        options = {"topology": edges, "initial_nodes": places, "max_rounds": last, "record_rounds": last, "seed": SEED}
        counts = dict.fromkeys(model.names, GRAPH_AGENTS // 2)
        reactions.simulate(model, counts, runs=1, **options)
        begin = time.process_time()
        played = reactions.simulate(model, counts, runs=100, **options).isel(round=last)
        speed = 100 * GRAPH_AGENTS * units / (time.process_time() - begin)
        ours = played["count"].sel(state="I") / GRAPH_AGENTS if epidemic else played["interface_density"]
        rows.append([OWN, name, units, f"{speed:.1e}", "", f"{ours.mean().item():.4f} ± {ours.std().item():.4f}"])
        task = {"simulator": peer.split()[0], "epidemic": epidemic, "rounds": units, "seed": SEED, "runs": 1}
        found = answer(peer, {**task, "edges": edges.tolist()})
        if isinstance(found, str):
            rows.append([f"{peer}: {found}", name, units])
            continue
        speed = GRAPH_AGENTS * units / found["seconds"]["run"]
        rows.append([peer, name, units, f"{speed:.1e}", f"{found['final'][0]:.4f}"])
    title = f"N = {GRAPH_AGENTS:,}, degree 8, from half of the agents in each state"
    show(title, ("simulator", "model", "time", "N t a second", "walls, or infected", "ours"), rows)
