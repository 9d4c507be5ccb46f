"""Who met whom in real runs, and what agents of given policies would have said there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numba import njit

from meanfield import MemorySpace
from validation.populations._choices import EVENTS, is_committed, rounds_of
from validation.populations._empirical_policy import tabulable_space

UNSAID = -1


@dataclass(frozen=True)
class Schedule:
    """The meetings of all runs of one model, options and memory length, by run, then in order.

    A slot is one player of one interaction; arrays over `choice` hold the slots of agents who are not committed.
    """

    space: MemorySpace
    words: tuple[str, ...]
    runs: pd.DataFrame  # a row a run
    run: np.ndarray  # (interaction,), rows of `runs`
    step: np.ndarray  # (interaction,), place in the run, from 0
    named: np.ndarray  # (interaction,), step in the table of events
    players: np.ndarray  # (interaction, 2), agents of all runs numbered through
    start: np.ndarray  # (agent,), states at the start
    committed: np.ndarray  # (agent,), whether it is
    said: np.ndarray  # (interaction, 2), words
    round: np.ndarray  # (interaction,), rounds of all runs numbered through; nobody remembers one before its end

    @classmethod
    def read(cls, runs: pd.DataFrame, events: pd.DataFrame) -> Schedule:
        """The meetings in `events` of `runs` (as from `ordered_subjects`); InputError if there are too many states."""
        words = tuple(str(runs["options"].iloc[0]).split("_"))
        space = tabulable_space(len(words), int(runs["memory_length"].iloc[0]))
        place = {name: k for k, name in enumerate(runs["run"])}
        events = events.loc[:, list(EVENTS)].assign(run=events["run"].map(place), round=rounds_of(events))
        events = events.sort_values(["run", "step"], kind="stable")
        run = events["run"].to_numpy().astype(np.int64)
        # Agents have numbers of their own in each run.
        names, players = np.unique(events[["agent", "partner"]].to_numpy().ravel(), return_inverse=True)
        agents, players = np.unique(np.repeat(run, 2) * len(names) + players, return_inverse=True)
        home, name = np.divmod(agents, len(names))
        first = [space.consensus_state(words.index(word)) if word else 0 for word in runs["initial_consensus"]]
        number = {word: k for k, word in enumerate(words)}
        said = np.stack([events[side].astype(str).map(number).to_numpy() for side in ("said", "heard")], axis=1)
        return cls(
            space,
            words,
            runs.reset_index(drop=True),
            run,
            np.arange(len(run)) - np.searchsorted(run, run),
            events["step"].to_numpy().astype(np.int64),
            players.reshape(-1, 2),
            np.array(first)[home],
            is_committed(runs["run"].to_numpy()[home], names[name], runs.set_index("run")),
            said.astype(np.int64),
            np.cumsum((np.diff(run, prepend=-1) != 0) | (np.diff(events["round"], prepend=-1) != 0)),
        )

    @cached_property
    def free(self) -> np.ndarray:
        """Slots of agents who are not committed, (choice,)."""
        return np.flatnonzero(~self.committed[self.players.ravel()])

    @cached_property
    def experiment(self) -> np.ndarray:
        """(run,), numbers of experiments: runs that began alike, whatever the number of committed agents."""
        alike = ["experiment", "n_agents", "initial_consensus", "committed_word"]
        return self.runs.groupby(alike, sort=True).ngroup().to_numpy()

    @cached_property
    def run_of(self) -> np.ndarray:
        """(choice,)"""
        return np.repeat(self.run, 2)[self.free]

    @cached_property
    def agent_of(self) -> np.ndarray:
        """(choice,)"""
        return self.players.ravel()[self.free]

    @cached_property
    def step_of(self) -> np.ndarray:
        """(choice,)"""
        return np.repeat(self.step, 2)[self.free]

    @cached_property
    def earlier(self) -> np.ndarray:
        """(H, choice), the slots of the agent's interactions H + 1 to 2H ago; UNSAID where the run was younger."""
        players = self.players.ravel()
        order = np.argsort(players, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        # Interactions of the agent in the same round are not past
        new = (np.diff(players[order], prepend=-1) != 0) | (np.diff(np.repeat(self.round, 2)[order], prepend=-1) != 0)
        place[order] = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
        H = self.space.memory_length
        past = place[self.free] - np.arange(H + 1, 2 * H + 1)[:, None]
        slots = order[np.maximum(past, 0)]
        return np.where((past >= 0) & (players[slots] == self.agent_of), slots, UNSAID)

    def states(self) -> np.ndarray:
        """Memory states of the real choices, (choice,)."""
        unused = np.zeros((1, len(self.words)))
        return self._play(self.said, unused, np.zeros(1), unused, np.zeros(len(self.run), dtype=np.int64), 0)[0]

    def imitate(
        self, log_q: np.ndarray, sharpness: np.ndarray, bias: np.ndarray, unit: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (choice,) and words (slot,) if the same agents meet, with policies ∝ q^sharpness e^bias.

        `sharpness` (unit,) and `bias` (unit, word) belong to the `unit` (interaction,). Committed agents say what they
        said.
        """
        said = self.said.copy()
        said.ravel()[self.free] = UNSAID
        return self._play(said, log_q, sharpness, bias, unit, seed)

    def _play(
        self,
        said: np.ndarray,
        log_q: np.ndarray,
        sharpness: np.ndarray,
        bias: np.ndarray,
        unit: np.ndarray,
        seed: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        said, states = said.copy(), np.empty(said.shape, dtype=np.int64)
        random = np.random.default_rng(seed).random(said.shape)
        policy = log_q, sharpness, bias
        _meet(self.players, self.round, unit, self.start.copy(), self.space.successors(), *policy, random, states, said)
        return states.ravel()[self.free], said.ravel()


@njit(cache=True)
def _meet(players, rounds, unit, memory, successors, log_q, sharpness, bias, random, states, said):
    """All meetings in order; draws words where they are not given, and writes states and words."""
    n_words = log_q.shape[1]
    weight = np.empty(n_words)
    done = 0  # interactions that are remembered
    for i in range(len(players)):
        for side in range(2):
            state = memory[players[i, side]]
            states[i, side] = state
            if said[i, side] >= 0:
                continue
            most = -np.inf
            for word in range(n_words):
                weight[word] = sharpness[unit[i]] * log_q[state, word] + bias[unit[i], word]
                most = max(most, weight[word])
            total = 0.0
            for word in range(n_words):
                weight[word] = np.exp(weight[word] - most)
                total += weight[word]
            left = random[i, side] * total
            chosen = 0
            while chosen < n_words - 1 and left >= weight[chosen]:
                left -= weight[chosen]
                chosen += 1
            said[i, side] = chosen
        if i + 1 < len(players) and rounds[i + 1] == rounds[i]:
            continue
        for past in range(done, i + 1):
            for side in range(2):
                agent = players[past, side]
                memory[agent] = successors[memory[agent]] + n_words * said[past, side] + said[past, 1 - side]
        done = i + 1
