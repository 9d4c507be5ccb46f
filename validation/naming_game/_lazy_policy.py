"""Policies given by a function that is asked about a memory once an agent has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace
from meanfield.toolbox import space_of, whole_number, word_number, words_of
from validation.naming_game._lazy_kernel import Answers, Asked, rows_of
from validation.naming_game._roster import Cast

Memory = tuple[tuple[int, int], ...]

ROW_SUM_TOLERANCE = 1e-9  # as in `meanfield.validate_policy`
MOST_ROWS = 2**31 - 1  # rows are kept as int32
AGENT_BYTES = 12  # a state and a row
RUNS_AT_ONCE = 4  # at least; not the number of threads, on which the number of calls would then depend


class LazyPolicy:
    """A policy given by a function, which is asked only about memories that agents have, about each once.

    Use it for policies with too many states for a table: W = 10 words and H = 5 interactions make 10^10. `simulate`
    takes it in place of a policy, and its runs agree with a table of the same probabilities to the bit.

    Parameters
    ----------
    function
        Takes a list of n memories, each a tuple of pairs (own word, partner's word), oldest first, words by number from
        0 to W - 1. Returns the probabilities to say each word, an array of shape (n, W). The answer for a memory must
        not depend on the others in the list.
    words
        The W ≥ 2 words, all different.
    memory_length
        H ≥ 1, in interactions; at most 2^63 - 1 states.
    name
        Name of the language model, say; the coordinate `model` of results.
    cache
        Most memories to ask about. All answers are kept, for later simulations as well; a memory takes up to 32·W + 128
        bytes.

    Raises
    ------
    InputError
        If an argument is out of range. `simulate` raises it if an answer is not an array of probabilities that sum to 1
        within 1e-9, or if more than `cache` memories occur.

    Examples
    --------
    Ten words, and agents who tend to say what they remember most:

    >>> def follow(memories):
    ...     weights = np.exp([2.0 * np.bincount(np.ravel(memory).astype(int), minlength=10) for memory in memories])
    ...     return weights / weights.sum(1, keepdims=True)
    >>> policy = validation.naming_game.LazyPolicy(follow, list("ABCDEFGHIJ"), memory_length=5)
    >>> runs = validation.simulate(policy, n_agents=10, runs=20, seed=1)
    >>> runs["consensus_round"].median().item()
    16.0
    >>> policy.asked.memories < 1e-6 * policy.space.n_states
    True
    """

    def __init__(
        self,
        function: Callable[[list[Memory]], np.ndarray],
        words: Sequence[str],
        memory_length: int,
        *,
        name: str | None = None,
        cache: int = 2**22,
    ) -> None:
        if not callable(function):
            raise InputError(f"function is a {type(function).__name__}: expected a function of a list of memories")
        if isinstance(words, str) or not isinstance(words, Sequence) or len(set(map(str, words))) < len(words):
            raise InputError(f"words = {words!r}: expected several words that differ")
        self.function = function
        self.words = tuple(map(str, words))
        self.space = MemorySpace(len(self.words), whole_number("memory_length", memory_length, 1))
        if self.space.n_states >= 2**63:
            raise InputError(
                f"memory_length = {memory_length} with {len(self.words)} words: expected fewer than 2^63 states"
            )
        self.name = name
        self.cache = whole_number("cache", cache, 1, MOST_ROWS - len(self.words))
        self.answers = Answers(self.space)  # shared by all simulations
        # With `words` a `Cast` needs these of a population: one kind of agents, committed by number only
        self.kinds, self.fractions, self.committed = (name or "policy",), (1.0,), {}
        self.meets, self.in_groups = None, False
        # Coordinates of results
        self.labels = {"pair": "/".join(self.words)} | ({} if name is None else {"model": name})

    def __repr__(self) -> str:
        known = f"{self.asked.memories} of {self.space.n_states} states asked"
        return f"LazyPolicy({self.name or 'policy'} {{{', '.join(self.words)}}}, {known})"

    @property
    def asked(self) -> Asked:
        """Calls and memories answered so far."""
        return self.answers.asked

    def probabilities(self, memories: Sequence[Memory]) -> np.ndarray:
        """Choice probabilities in these memories, shape (n, W), after asking about unknown ones."""
        rows = self._rows(np.array([self.space.state(memory) for memory in memories], dtype=np.int64))
        return self.answers.q[rows]

    def _rows(self, states: np.ndarray) -> np.ndarray:
        """Rows in `answers` of the states, int64 of shape (n,), after asking about unknown ones."""
        rows = rows_of(self.answers.table, states)
        if (rows < 0).any():
            self._ask(np.unique(states[rows < 0]))
            rows = rows_of(self.answers.table, states)
        return rows

    def forget(self) -> None:
        """Frees the memory that answers take; they are asked for again."""
        self.answers = Answers(self.space)

    def _ask(self, states: np.ndarray) -> None:
        known = self.asked.memories
        if known + states.size > self.cache:
            raise InputError(f"cache = {self.cache}: {known} memories are known and {states.size} more occur")
        memories = [self.space.memory(state) for state in states.tolist()]
        q = self._validated(self.function(list(memories)), memories)
        self.answers.add(states, q)

    def _validated(self, answer: object, memories: list[Memory]) -> np.ndarray:
        expected, asked = (len(memories), len(self.words)), self._described(memories)
        try:
            q = np.array(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            kind = type(answer).__name__
            raise InputError(f"function returned {kind} for {asked}: expected an array of shape {expected}") from error
        if q.shape != expected:
            raise InputError(f"function returned an array of shape {q.shape} for {asked}: expected {expected}")
        for k, word in np.argwhere(~((q >= 0) & (q <= 1))):
            after = f"{self.words[word]} after {self._described(memories[k : k + 1])}"
            raise InputError(f"function returned {q[k, word]} for the word {after}: expected a probability in [0, 1]")
        for k in np.flatnonzero(np.abs(q.sum(1) - 1) > ROW_SUM_TOLERANCE):
            after = self._described(memories[k : k + 1])
            raise InputError(f"function returned probabilities that sum to {q[k].sum()} for {after}: expected 1")
        return q

    def _described(self, memories: list[Memory]) -> str:
        pairs = ", ".join(f"({self.words[own]}, {self.words[partner]})" for own, partner in memories[0])
        others = f" and {len(memories) - 1} more" if len(memories) > 1 else ""
        return f"the memory [{pairs}]{others}"


def lazy_start(policy: LazyPolicy, cast: Cast, n_agents: int, initial: object) -> np.ndarray:
    """Memory of each agent at the start, -1 - w for agents committed to the word w; shape (agents,)."""
    if initial is not None and not isinstance(initial, str):
        raise InputError(f"initial is a {type(initial).__name__}: expected None or a word, for a LazyPolicy")
    empty = initial is None
    state = 0 if empty else policy.space.consensus_state(word_number(policy.words, initial, "initial"))
    kinds = np.array([state, *(-1 - policy.words.index(word) for word in cast.words)], dtype=np.int64)
    return np.repeat(kinds, cast.numbers(n_agents))


def rows_at_start(policy: LazyPolicy, start: np.ndarray) -> np.ndarray:
    """Rows in `policy.answers` of agents as `lazy_start` has them, int32 of shape (agents,)."""
    rows = np.where(start < 0, -1 - start, -1).astype(np.int32)
    find_rows(policy, np.zeros(1, int), start[None], rows[None])
    return rows


def find_rows(policy: LazyPolicy, active: np.ndarray, states: np.ndarray, rows: np.ndarray) -> None:
    """Asks about the memories of all agents of the `active` runs, not only of those at whom runs stopped.

    An agent keeps a memory until it speaks from it, so all of them will be needed unless the run ends first.
    """
    run, agent = (rows[active] < 0).nonzero()
    rows[active[run], agent] = policy._rows(states[active[run], agent])


def lazy_table(policy: xr.Dataset) -> LazyPolicy:
    """A policy with a table as one that knows all answers."""
    q, space = policy["q"].values, space_of(policy)
    lazy = LazyPolicy(lambda memories: q[[space.state(m) for m in memories]], words_of(policy), space.memory_length)
    lazy.answers.add(np.arange(space.n_states), q)
    return lazy
