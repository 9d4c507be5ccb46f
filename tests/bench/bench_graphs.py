"""Interactions a second on graphs beside everybody, and beside simulators of agents on graphs."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import networkx
import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parent / "peers"))
from environments import EON, MESA_GRAPH, NDLIB

from bench_peers import attempt
from meanfield import ReactionModel
from validation import reactions

VOTER = ReactionModel.from_rules({"A + B": "2 B", "B + A": "2 A"}, 1.0)
RATES = [2.0, 1.0]  # of infections and recoveries
EPIDEMIC = ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, RATES)
INTERACTIONS = 10**8
SEED = 1
PEER_AGENTS = 10_000
# Units of time; one of voters takes NDlib and EoN a quarter of a minute or more.
PEERS = ((MESA_GRAPH, None, 10), (EON, None, 1), (NDLIB, None, 1), (EON, RATES, 10))


def regular(n: int) -> np.ndarray:
    """Four random cycles; the few edges that they share are left out."""
    orders = [np.random.default_rng(k).permutation(n) for k in range(4)]
    edges = np.concatenate([np.column_stack([order, np.roll(order, 1)]) for order in orders])
    return np.unique(np.sort(edges, axis=1), axis=0)


def lattice(n: int) -> np.ndarray:
    nodes = np.arange(n).reshape(round(n**0.5), -1)
    return np.concatenate([np.column_stack([nodes.ravel(), np.roll(nodes, 1, side).ravel()]) for side in (0, 1)])


def scale_free(n: int) -> np.ndarray:
    return np.array(networkx.barabasi_albert_graph(n, 4, seed=1).edges)


def played(model: ReactionModel, n: int, rounds: int, **options) -> float:
    """Seconds of the processor; half of the agents begin in each state."""
    begin = time.process_time()
    counts = dict.fromkeys(model.names, n // 2)
    reactions.simulate(model, counts, runs=1, seed=SEED, max_rounds=rounds, method="agents", **options)
    return time.process_time() - begin


@pytest.mark.bench
def test_interactions_a_second_on_graphs() -> None:
    for n in (10**4, 10**6):
        table = Table("graph", "voters", "ratio", "epidemic", "ratio", title=f"interactions a second, N = {n:,}, 1 run")
        alike = {}
        graphs = {"everybody": {}, "regular, degree 8": {"topology": regular(n)}, "lattice": {"topology": lattice(n)}}
        graphs |= {f"scale-free, {pick}": {"topology": scale_free(n), "pick": pick} for pick in ("edge", "agent")}
        for name, options in graphs.items():
            cells = []
            for model in (VOTER, EPIDEMIC):
                played(model, 100, 1)
                set_up = min(played(model, n, 1, **options) for _ in range(2))
                speed = INTERACTIONS / (played(model, n, INTERACTIONS // n + 1, **options) - set_up)
                cells += [f"{speed:.1e}", f"{speed / alike.setdefault(model, speed):.2f}"]
            table.add_row(name, *cells)
        Console().print(table)


@pytest.mark.bench
def test_other_simulators_of_graphs() -> None:
    """Agents times units of time in a second; the last column tells who simulates something else."""
    edges, nodes = regular(PEER_AGENTS), np.arange(PEER_AGENTS)
    title = f"N = {PEER_AGENTS:,}, degree 8, from half of the agents in each state"
    table = Table("simulator", "model", "time", "N t a second", "walls, or infected", "ours", title=title)
    for peer, epidemic, rounds in PEERS:
        task = {"simulator": peer.name.split()[0], "epidemic": epidemic, "rounds": rounds, "seed": SEED, "runs": 1}
        model, name = (EPIDEMIC, "epidemic") if epidemic else (VOTER, "voters")
        length = 1 if epidemic is None else sum(RATES)  # rounds in a unit of time
        last = round(rounds * length)
        places = dict(zip(reversed(model.names), (nodes[::2].tolist(), nodes[1::2].tolist()), strict=True))
        options = {"topology": edges, "initial_nodes": places, "max_rounds": last, "record_rounds": last}
        counts = dict.fromkeys(model.names, PEER_AGENTS // 2)
        reactions.simulate(model, counts, runs=1, seed=SEED, **options)
        begin = time.process_time()
        found = reactions.simulate(model, counts, runs=100, seed=SEED, **options).isel(round=last)
        seconds = time.process_time() - begin
        ours = found["count"].sel(state="I") / PEER_AGENTS if epidemic else found["interface_density"]
        own = [f"{100 * PEER_AGENTS * rounds / seconds:.1e}", "", f"{ours.mean().item():.4f} ± {ours.std().item():.4f}"]
        table.add_row("validation.reactions", name, str(rounds), *own)
        answer = attempt(peer, {**task, "edges": edges.tolist()})
        if isinstance(answer, str):
            table.add_row(f"{peer.name}: {answer}", name, str(rounds))
            continue
        speed = PEER_AGENTS * rounds / answer["seconds"]["run"]
        table.add_row(peer.name, name, str(rounds), f"{speed:.1e}", f"{answer['final'][0]:.4f}", "")
    Console(width=120).print(table)
