"""Populations played as a person would write it, and their tables as the published ones are."""

from __future__ import annotations

import numpy as np
import pandas as pd

from meanfield import MemorySpace
from meanfield.datasets import RealPopulations, from_events

WORDS = ("A", "B")
N = 12
EVENTS = ["run", "step", "agent", "partner", "said", "heard"]
COUNTS = ["model", "options", "memory_length", "state", "choice", "count"]


def truth(strength=1.6, bias=0.4) -> np.ndarray:
    """Agents of H = 2 who tend to the word they remember most, and a little to A."""
    space = MemorySpace(2, 2)
    lead = [sum(1 - own - partner for own, partner in space.memory(i)) for i in range(space.n_states)]
    first = 1 / (1 + np.exp(-strength * np.array(lead) - bias))
    return np.stack([first, 1 - first], axis=1)


def play(q, random, counts, longest, committed=0, initial=None, window=3 * N, log=None):
    """One run as a person would write it, its choices added to `counts`; a row of runs.csv. Committed ones say B.

    Its interactions are added to the list `log`: agent, partner, said, heard.
    """
    space = MemorySpace(2, 2)
    successors = space.successors()
    states = np.full(N, 0 if initial is None else space.consensus_state(WORDS.index(initial)))
    said = []
    while len(said) < longest:
        pair = random.choice(N, 2, replace=False)
        words = [1 if agent < committed else int(random.random() >= q[states[agent], 0]) for agent in pair]
        for agent, own, partner in zip(pair, words, words[::-1], strict=True):
            if agent >= committed:
                counts[states[agent], own] += 1
            states[agent] = successors[states[agent]] + 2 * own + partner
        said.append(words)
        if log is not None:
            log.append((*map(int, pair), *(WORDS[word] for word in words)))
        last = said[-window:]
        agreed = len(last) == window and all(a == b for a, b in last)
        if agreed and (initial is None or WORDS[np.bincount(np.ravel(last)).argmax()] != initial):
            break
    end = np.array(said[-3 * N :])
    times = np.bincount(end.ravel(), minlength=2)
    return {
        "model": "m",
        "experiment": "committed" if committed else "from_consensus" if initial else "from_empty",
        "options": "B A",
        "memory_length": 2,
        "n_agents": N,
        "n_committed": committed,
        "initial_consensus": initial or "",
        "committed_word": "B" if committed else "",
        "interactions": len(said),
        "success_last_3N": round(float((end[:, 0] == end[:, 1]).mean()), 4),
        "majority_word_last_3N": WORDS[times.argmax()],
        "majority_share_last_3N": round(float(times.max() / times.sum()), 4),
    }


def counts_table(n, words=WORDS) -> pd.DataFrame:
    """Choice counts (state, word) in the form of choice_counts.csv.gz."""
    space = MemorySpace.from_sizes(len(n), len(words))
    rows = []
    for state, word in np.argwhere(n > 0):
        text = "|".join(",".join(words[w] for w in interaction) for interaction in space.memory(int(state)))
        rows.append(("m", "_".join(words), space.memory_length, text, words[word], int(n[state, word])))
    return pd.DataFrame(rows, columns=COUNTS)


def populations(seed=0) -> RealPopulations:
    random, q = np.random.default_rng(seed), truth()
    n = np.zeros(q.shape)
    rows = [play(q, random, n, 100_000) for _ in range(20)]
    rows += [play(q, random, n, 300, initial="B") for _ in range(8)]
    rows += [play(q, random, n, 300, committed=c, initial="A") for c in (1, 2, 3, 4) for _ in range(6)]
    return RealPopulations(counts_table(n), pd.DataFrame(rows))


def ordered_populations(seed=0, q=None, runs=20, committed=(1, 2, 3, 4)) -> RealPopulations:
    """Runs from empty memories, and fewer from consensus on A with agents committed to B, in order."""
    random, q = np.random.default_rng(seed), truth() if q is None else q
    plan = [(0, None, 1500)] * runs + [(c, "A", 300) for c in committed for _ in range(-(-runs // 5))]
    rows, initial, minority = [], {}, []
    for run, (c, begin, longest) in enumerate(plan):
        log: list = []
        play(q, random, np.zeros(q.shape), longest, c, begin, log=log)
        rows += [(run, step, *one) for step, one in enumerate(log)]
        initial[run] = begin or ""
        minority += [(run, agent, "B") for agent in range(c)]
    told = pd.DataFrame(minority, columns=["run", "agent", "word"])
    return real_log(rows, words=WORDS, initial=initial, committed=told, n_agents=N)


def real_log(rows: list[tuple], memory_length: int = 2, **options) -> RealPopulations:
    """Populations of a log with the rows run, step, agent, partner, said, heard."""
    return from_events(pd.DataFrame(rows, columns=EVENTS), memory_length=memory_length, **options)


def joined(*parts: RealPopulations, apart: int = 0) -> RealPopulations:
    """Runs of several populations; numbers of runs rise by `apart` from one to the next."""
    runs, events = (
        pd.concat([table.assign(run=table["run"] + apart * k) for k, table in enumerate(tables)], ignore_index=True)
        for tables in ([part.runs for part in parts], [part.events for part in parts if part.events is not None])
    )
    return RealPopulations(pd.concat([part.choice_counts for part in parts], ignore_index=True), runs, events)


def as_events(run, random, policy, n_agents, words, length, longest=2000) -> list[tuple]:
    """One run of any number of words until 3N interactions in a row succeed.

    Its rows are run, step, agent, partner, said, heard. `policy(memory, n_words)` gives the probabilities (n, word) for
    memories (n, length, 2) of numbers of words, -1 before the first.
    """
    memory = np.full((n_agents, length, 2), -1)
    rows, streak = [], 0
    while streak < 3 * n_agents and len(rows) < longest:
        pair = random.choice(n_agents, 2, replace=False)
        said = [random.choice(len(words), p=q) for q in policy(memory[pair], len(words))]
        for agent, own, partner in zip(pair, said, said[::-1], strict=True):
            memory[agent] = [*memory[agent, 1:], (own, partner)]
        rows.append((run, len(rows), *map(int, pair), *(words[w] for w in said)))
        streak = streak + 1 if said[0] == said[1] else 0
    return rows
