"""Simulators beside the peers that pip can install: the same process in each, in a process of its own, one at a time.

Peers are installed into the cache folder on first use, some 1.5 GB; one that can't be is a line that says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
import xarray as xr
from rich.console import Console
from rich.table import Table

import meanfield
import theory

sys.path.append(str(Path(__file__).parent / "peers"))
from environments import BATSS, HERE, MESA, OLD_PPSIM, OWN, PPSIM, REBOP, NotMeasuredError, Peer, interpreter

from meanfield.toolbox import space_of

SEED = 1
MOST_SECONDS = 400  # that a peer may take for one line

MINIMAL_GAME = {"counts": [600_000, 400_000, 0], "rounds": 5, "seed": SEED}
OWN_RUNS = 100
# Enough runs for a measurement of a second or so; objects take ten.
PEER_RUNS = ((OLD_PPSIM, 100), (PPSIM, 3), (REBOP, 10), (BATSS, 10), (MESA, 1))

NAMING_GAME = {"runs": 1, "rounds": 3, "seed": SEED}
NAMING_GAME_AGENTS = 10**6

VOTER = {"counts": [8, 12], "rounds": 150, "runs": 2000, "seed": SEED}  # two opinions last as long once in 10^7 runs
COPY = ("the responder copies the initiator", [(0, 1, 0, 0, 1.0), (1, 0, 1, 1, 1.0)])
COIN = ("a coin decides", [(i, j, k, k, 0.5) for i, j in ((0, 1), (1, 0)) for k in (0, 1)])
# To reactions the two rules are the same.
VOTER_RULES = {
    OWN: (COPY, COIN),
    OLD_PPSIM: (COPY, COIN),
    PPSIM: (COPY, COIN),
    REBOP: (COIN,),
    BATSS: (COIN,),
    MESA: (COPY, COIN),
}


def measured(peer: Peer, task: dict, threads: int = 1) -> dict:
    """The answer of the script of `peer` to `task`."""
    python = interpreter(peer)
    if isinstance(python, str):
        raise NotMeasuredError(python)
    command = [python, HERE / peer.script]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command, input=json.dumps(task), env=environment, capture_output=True, text=True, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(f"more than {MOST_SECONDS} s") from None
    if ended.returncode:
        lines = ended.stderr.strip().splitlines()
        raise NotMeasuredError(f"failed: {lines[-1] if lines else f'exit status {ended.returncode}'}")
    return json.loads(ended.stdout.splitlines()[-1])


def attempt(peer: Peer, task: dict) -> dict | str:
    """The answer of `peer`, or why there is none."""
    try:
        return measured(peer, task)
    except NotMeasuredError as reason:
        return str(reason)


def own_answers(task: dict) -> dict[str, dict]:
    """Our own answers by line, with one thread and with all; compiled before."""
    most = numba.get_num_threads()
    measured(OWN, {**task, "runs": 1, "rounds": 1}, most)
    numbers = sorted({1, min(most, task["runs"])})
    return {f"{OWN.name}, threads: {threads}": measured(OWN, task, threads) for threads in numbers}


def speeds(task: dict, answer: dict) -> np.ndarray:
    """Interactions a second with the set-up and without; those that change nothing count, whoever skips them."""
    interactions = task["runs"] * task["rounds"] * sum(task["counts"])
    seconds = answer["seconds"]
    return interactions / np.array([seconds["set-up"] + seconds["run"], seconds["run"]])


def table_of(title: str, *columns: str) -> Table:
    table = Table(title=title, caption=f"ratio: {OWN.name} with one thread over this line")
    table.add_column("simulator")
    for column in columns:
        table.add_column(column, justify="right")
    return table


SPEED_COLUMNS = ("import s", "set-up s", "run s", "with set-up", "ratio", "run alone", "ratio")


def speed_cells(task: dict, answer: dict, own_speeds: np.ndarray) -> list[str]:
    """Cells of SPEED_COLUMNS."""
    cells = [f"{answer['seconds'][phase]:.3g}" for phase in ("import", "set-up", "run")]
    for speed, own_speed in zip(speeds(task, answer), own_speeds, strict=True):
        cells += [f"{speed:.2e}", f"{own_speed / speed:.2g}"]
    return cells


def minimal_game() -> list[tuple]:
    """(i, j, i', j', probability) of the two-word minimal naming game, without what changes nothing."""
    agents = theory.minimal_naming_game.two_word_agents()[:3]
    chances: dict[tuple, float] = {}
    for before, after, chance, *_ in theory.minimal_naming_game.interactions(
        agents, lambda held: dict.fromkeys(held, 1 / len(held))
    ):
        if sorted(before) != sorted(after):
            chances[*before, *after] = chances.get((*before, *after), 0.0) + chance
    return [(*states, chance) for states, chance in chances.items()]


@pytest.mark.bench
def test_three_states() -> None:
    """The minimal naming game of two words; z tells who simulates something else, by the share of A at the end."""
    task = {**MINIMAL_GAME, "runs": OWN_RUNS, "transitions": minimal_game()}
    n_agents = sum(task["counts"])
    table = table_of(
        f"interactions/s, minimal naming game, N = {n_agents:,}, {task['rounds']} rounds from 60 % A",
        "runs",
        *SPEED_COLUMNS,
        "A at the end",
        "z",
    )
    answers = own_answers(task)
    own = next(iter(answers.values()))
    own_share = np.array(own["final"])[:, 0] / n_agents
    runs = dict.fromkeys(answers, OWN_RUNS)
    for peer, its_runs in PEER_RUNS:
        runs[peer.name] = its_runs
        answers[peer.name] = attempt(peer, {**task, "runs": its_runs})
    for name, answer in answers.items():
        if isinstance(answer, str):
            table.add_row(f"{name}: {answer}")
            continue
        share = np.array(answer["final"])[:, 0] / n_agents
        error = own_share.std(ddof=1) * np.sqrt(1 / len(share) + 1 / len(own_share))
        z = "" if name.startswith(OWN.name) else f"{(share.mean() - own_share.mean()) / error:.1f}"
        its_task = {**task, "runs": runs[name]}
        cells = speed_cells(its_task, answer, speeds(task, own))
        table.add_row(name, str(runs[name]), *cells, f"{share.mean():.4f}", z)
    Console(width=160).print(table)


def erring_majority(memory_length: int) -> xr.Dataset:
    """The majority of the partner's words remembered, with 20 % error: it goes through all states and never stops."""
    space = meanfield.MemorySpace(2, memory_length)
    lead = np.array([sum(1 - 2 * partner for _, partner in space.memory(s)) for s in range(space.n_states)])
    return meanfield.make_policy(0.5 + 0.3 * np.sign(lead), ["A", "B"])


@pytest.mark.bench
@pytest.mark.parametrize("memory_length", [3, 5])
def test_naming_game(memory_length: int) -> None:
    """The naming game of many states, too many for a list of reactions: for rules of ordered pairs only."""
    policy = erring_majority(memory_length)
    space = space_of(policy)
    task = {
        **NAMING_GAME,
        "counts": [NAMING_GAME_AGENTS] + [0] * (space.n_states - 1),
        "q": policy["q"].values[:, 0].tolist(),
        "successors": space.successors().tolist(),
    }
    table = table_of(
        f"interactions/s, naming game, H = {memory_length} ({space.n_states:,} states), N = {NAMING_GAME_AGENTS:,}",
        *SPEED_COLUMNS,
        "MiB",
    )
    answers = own_answers(task)
    own_speeds = speeds(task, next(iter(answers.values())))
    answers |= {peer.name: attempt(peer, task) for peer in (OLD_PPSIM, PPSIM)}
    for name, answer in answers.items():
        if isinstance(answer, str):
            table.add_row(f"{name}: {answer}")
        elif answer["final"] and answer["final"][0][0] == NAMING_GAME_AGENTS:
            table.add_row(f"{name}: {answer['seconds']['set-up']:.3g} s of set-up, then no interaction at all")
        else:
            table.add_row(name, *speed_cells(task, answer, own_speeds), f"{answer['mebibytes']:.0f}")
    Console(width=160).print(table)


@pytest.mark.bench
def test_neutral_voter() -> None:
    """An opinion wins with the probability of its share at the start, exactly: a wrong simulator can be fast."""
    n_agents, runs = sum(VOTER["counts"]), VOTER["runs"]
    share = VOTER["counts"][0] / n_agents
    error = np.sqrt(share * (1 - share) / runs)
    table = Table("simulator", "rule", "A wins", "z", "undecided")
    table.title = f"neutral voter, N = {n_agents}, {runs:,} runs from {share:.0%} A"
    for peer, rules in VOTER_RULES.items():
        for rule, transitions in rules:
            answer = attempt(peer, {**VOTER, "transitions": transitions})
            if isinstance(answer, str):
                assert peer is not OWN, answer
                table.add_row(f"{peer.name}: {answer}")
                continue
            held = np.array(answer["final"])[:, 0]
            won, undecided = (held == n_agents).mean(), int(((held > 0) & (held < n_agents)).sum())
            z = (won - share) / error
            table.add_row(peer.name, rule, f"{won:.4f}", f"{z:.1f}", str(undecided))
            if peer is OWN:
                assert abs(z) < 4
                assert undecided == 0
    Console(width=160).print(table)
