"""Interactions a second: naming games beside plain loops, agents beside batches, and graphs beside everybody."""

from __future__ import annotations

import time

import networkx
import numba
import numpy as np

import theory
import validation
from _policies import majority_policy
from _tables import seconds, show
from meanfield import ReactionModel
from meanfield.toolbox import space_of
from validation import reactions

MEMORY_LENGTH = 5
INTERACTIONS = 2 * 10**8
AGENTS_BUDGET = 5 * 10**7  # interactions to play agent by agent, but one run a thread at least
EPOCHS_BUDGET = 2 * 10**5  # times sqrt(N) interactions in batches, likewise
ROUNDS = 2  # of protocols, from 60 % with the one word, so that agents change all the time
GRAPH_INTERACTIONS = 10**8
VOTER = ReactionModel.from_rules({"A + B": "2 B", "B + A": "2 A"}, 1.0)
RATES = [2.0, 1.0]  # of infections and recoveries
EPIDEMIC = ReactionModel.from_rules({"S + I": "2 I", "I": "S"}, RATES)


@numba.njit(parallel=True)
def plain_runs(states, q, successors, rounds, success):
    """The textbook version: no seed a run, doubles against doubles."""
    for run in numba.prange(states.shape[0]):
        n = states.shape[1]
        for _ in range(rounds):
            agreed = 0
            for _ in range(n):
                i = np.random.randint(0, n)  # noqa: NPY002 (what is compared with)
                j = np.random.randint(0, n - 1)  # noqa: NPY002
                if j >= i:
                    j += 1
                state_i, state_j = states[run, i], states[run, j]
                a = 0 if np.random.random() < q[state_i, 0] else 1  # noqa: NPY002
                b = 0 if np.random.random() < q[state_j, 0] else 1  # noqa: NPY002
                states[run, i] = successors[state_i] + 2 * a + b
                states[run, j] = successors[state_j] + 2 * b + a
                agreed += a == b
            success[run] = agreed


def test_naming_game() -> None:
    """Agents who conform but err too often to converge: every run plays all its rounds, and tests for consensus."""
    policy = majority_policy(MEMORY_LENGTH, 0.8)
    successors, q = space_of(policy).successors().astype(np.int16), policy["q"].values
    plain_runs(np.zeros((2, 4), np.int16), q, successors, 1, np.zeros(2))
    validation.simulate(policy, n_agents=4, runs=2, seed=0, max_rounds=5)
    rows = []
    for n in (24, 1000, 10_000, 1_000_000):
        runs = max(2, min(2000, 2_000_000 // n))
        rounds = max(1, INTERACTIONS // (runs * n))
        options = {"n_agents": n, "runs": runs, "seed": 0, "max_rounds": rounds}
        speed = runs * rounds * n / seconds(lambda options=options: validation.simulate(policy, **options), 2)
        states, few = np.zeros((runs, n), np.int16), max(1, rounds // 4)
        spent = seconds(lambda states=states, few=few: plain_runs(states, q, successors, few, np.zeros(len(states))), 1)
        plain = runs * few * n / spent
        rows.append((f"{n:,}", f"{runs:,}", f"{speed:.2e}", f"{plain:.2e}", f"{speed / plain:.1f}"))
    title = f"interactions a second, H = {MEMORY_LENGTH}, {numba.get_num_threads()} threads"
    show(title, ("N", "runs", "validation.simulate", "np.random in numba", "ratio"), rows)


def protocol_speed(n: int, method: str, budget: float) -> float:
    """Interactions a second of the two-word minimal naming game."""
    agents = theory.minimal_naming_game.two_word_agents()[:3]
    table = theory.minimal_naming_game.interactions(agents, lambda held: {word: 1 / len(held) for word in held})
    threads = numba.get_num_threads()
    runs = threads * max(1, int(budget / (ROUNDS * n * threads)))
    options = {"runs": runs, "seed": 0, "max_rounds": ROUNDS, "method": method}
    begin = time.perf_counter()
    reactions.simulate([row[:3] for row in table], [6 * n // 10, 4 * n // 10, 0], **options)
    return runs * ROUNDS * n / (time.perf_counter() - begin)


def test_protocols() -> None:
    for method in ("agents", "batches"):
        protocol_speed(10, method, 1)
    rows = []
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8):
        agents = protocol_speed(n, "agents", AGENTS_BUDGET)
        batches = protocol_speed(n, "batches", EPOCHS_BUDGET * n**0.5)
        rows.append((f"{n:,}", f"{agents:.2e}", f"{batches:.2e}", f"{batches / agents:.2f}"))
    title = f"interactions a second, 3 states, {numba.get_num_threads()} threads"
    show(title, ("N", "agents", "batches", "ratio"), rows)


def regular(n: int) -> np.ndarray:
    """Four random cycles; the few edges that they share are left out."""
    orders = [np.random.default_rng(k).permutation(n) for k in range(4)]
    edges = np.concatenate([np.column_stack([order, np.roll(order, 1)]) for order in orders])
    return np.unique(np.sort(edges, axis=1), axis=0)


def lattice(n: int) -> np.ndarray:
    nodes = np.arange(n).reshape(round(n**0.5), -1)
    return np.concatenate([np.column_stack([nodes.ravel(), np.roll(nodes, 1, side).ravel()]) for side in (0, 1)])


def played(model: ReactionModel, n: int, rounds: int, repeat: int = 1, **options) -> float:
    """Seconds of the processor; half of the agents begin in each state."""
    options = {"runs": 1, "seed": 1, "max_rounds": rounds, "method": "agents", **options}
    counts = dict.fromkeys(model.names, n // 2)
    return seconds(lambda: reactions.simulate(model, counts, **options), repeat, time.process_time)


def test_graphs() -> None:
    for n in (10**4, 10**6):
        scale_free = np.array(networkx.barabasi_albert_graph(n, 4, seed=1).edges)
        graphs = {"everybody": {}, "regular, degree 8": {"topology": regular(n)}, "lattice": {"topology": lattice(n)}}
        graphs |= {f"scale-free, {pick}": {"topology": scale_free, "pick": pick} for pick in ("edge", "agent")}
        rows, alike = [], {}
        for name, options in graphs.items():
            cells = [name]
            for model in (VOTER, EPIDEMIC):
                played(model, 100, 1)
                set_up = played(model, n, 1, 2, **options)
                speed = GRAPH_INTERACTIONS / (played(model, n, GRAPH_INTERACTIONS // n + 1, **options) - set_up)
                cells += [f"{speed:.1e}", f"{speed / alike.setdefault(model, speed):.2f}"]
            rows.append(cells)
        title = f"interactions a second, N = {n:,}, 1 run"
        show(title, ("graph", "voters", "ratio", "epidemic", "ratio"), rows)
