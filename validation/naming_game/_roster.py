"""The agents of a simulated population: how many of each kind, and the memories they start with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace, Population, consensus, empty_memories
from meanfield.toolbox import validate_composition, whole_number, word_number


@dataclass(frozen=True)
class Cast:
    """The kinds of agents of an ensemble: those of the policies first, then one for each word with committed agents.

    Committed agents have memories like all others, and a policy that always says their word.
    """

    population: Population
    committed: dict[str, int] | None  # numbers of agents; None: the fractions of the population
    extra: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The words with committed agents."""
        counted = self.population.committed if self.committed is None else self.committed
        return tuple(word for word, number in counted.items() if number > 0)

    @property
    def q(self) -> np.ndarray:
        """Choice probabilities, shape (kinds, S, W)."""
        says = np.array([[w == word for w in self.population.words] for word in self.words], float)
        always = [np.tile(row, (1, self.population.space.n_states, 1)) for row in says]
        return np.concatenate([self.population.mixture.q, *always])

    def numbers(self, n_agents: int) -> np.ndarray:
        """Numbers of agents of each kind, shape (kinds,)."""
        fractions = np.array(self.population.fractions)
        if self.committed is None:
            share = [self.population.committed[word] for word in self.words]
            return apportion(np.array([*((1 - sum(share)) * fractions), *share]), n_agents)
        bound = np.array([self.committed[word] for word in self.words], dtype=int)
        free = n_agents if self.extra else n_agents - int(bound.sum())
        if free < 0:
            raise InputError(f"committed = {self.committed}: expected at most n_agents = {n_agents} in all")
        return np.concatenate([apportion(fractions, free), bound])

    def states(self, n_agents: int, composition: np.ndarray) -> np.ndarray:
        """Memory of each agent at the start, kind after kind, as kind · S + state; shape (agents,)."""
        n_states = self.population.space.n_states
        numbers = self.numbers(n_agents)
        # Committed agents start with memories like those of the first kind.
        rows = [composition[kind if kind < len(composition) else 0] for kind in range(len(numbers))]
        agents = [
            kind * n_states + np.repeat(np.arange(n_states), apportion(row, int(number)))
            for kind, (row, number) in enumerate(zip(rows, numbers, strict=True))
        ]
        return np.concatenate(agents)


def apportion(fractions: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that sum to `total`, closest to its `fractions`: largest remainders."""
    exact = fractions * total
    numbers = np.floor(exact + 1e-9).astype(int)
    missing = total - int(numbers.sum())
    # Remainders that differ by rounding, which processors do differently, are equal: the first state comes first.
    order = np.argsort(np.round(numbers - exact, 9), kind="stable")
    numbers[order[:missing]] += 1
    return numbers


def make_cast(population: Population, committed: Mapping[str, int] | None, *, extra: bool) -> Cast:
    """The cast of `simulate`, from its arguments; InputError where they contradict."""
    if committed is None:
        if extra:
            raise InputError("committed_are_extra = True: expected numbers of agents in committed")
        return Cast(population, None, extra=False)
    if not isinstance(committed, Mapping):
        raise InputError(f"committed = {committed!r}: expected a mapping of words to numbers of agents")
    if population.committed:
        both = f"{dict(committed)} beside a population with committed fractions {population.committed}"
        raise InputError(f"committed = {both}: expected one of them")
    for word in committed:
        if word not in population.words:
            raise InputError(f"committed has the word {word!r}: expected some of {', '.join(population.words)}")
    counts = {word: whole_number(f"committed[{word!r}]", number, 0) for word, number in committed.items()}
    return Cast(population, counts, extra)


def start_composition(population: Population, initial: str | xr.DataArray | np.ndarray | None) -> np.ndarray:
    """Compositions of the kinds at the start, shape (M, S): empty memories, a consensus, or the given one."""
    if initial is None:
        return empty_memories(population).values
    if isinstance(initial, str):
        word_number(population.words, initial, "initial")
        return consensus(population, initial).values
    return validate_composition(initial, population)


def start_options(
    initial: str | xr.DataArray | np.ndarray | None, committed: Mapping[str, int] | None
) -> dict[str, str | None]:
    """These arguments of `simulate` as options of a stamp."""
    memories = initial if isinstance(initial, str) else "empty memories" if initial is None else "given"
    bound = " ".join(f"{word}:{number}" for word, number in (committed or {}).items())
    return {"initial": memories, "committed": bound or None}


def kind_names(cast: Cast) -> list[str]:
    """Names of the kinds: models, and words that agents are committed to."""
    return [*cast.population.kinds, *(f"committed to {word}" for word in cast.words)]


def combined_successors(space: MemorySpace, n_kinds: int) -> np.ndarray:
    """`MemorySpace.successors` for states numbered kind · S + state: agents keep their kind."""
    return (np.arange(n_kinds)[:, None] * space.n_states + space.successors()).ravel()
