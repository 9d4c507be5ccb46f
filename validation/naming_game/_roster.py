"""The agents of a simulated population: how many of each kind, and the memories they start with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from meanfield import InputError, MemorySpace, Population, consensus, empty_memories
from meanfield.core import HEARS
from meanfield.toolbox import shown, validate_composition, whole_number, word_number
from theory.pairs import NO_EDGES
from validation._engine.topology import Edges, between_groups

ROUNDING = 0.01  # of a share, which is too little to tell
NOBODY = 1e-12  # of all agents, from rounding of fractions
MOST_TOLD = 4  # sizes


@dataclass(frozen=True)
class Cast:
    """The kinds of agents of an ensemble: first one for each policy, then one for each word with committed agents.

    Committed agents have memories like all others, and a policy that always says their word. With `meets` the committed
    agents of each kind are one more kind.
    """

    population: Population
    committed: Mapping[str, int | np.ndarray] | None  # numbers of agents; None: the fractions of the population
    extra: bool

    @property
    def bound(self) -> dict[tuple[str, int], float]:
        """Committed agents by word and, with `meets`, by kind: their numbers, or their fractions of all agents."""
        population, counted = self.population, self.population.committed if self.committed is None else self.committed
        if self.committed is None and population.meets is not None:
            counted = dict(zip(population.words, population.arrays.committed.T, strict=True))
        return {(word, m): n for word, each in counted.items() for m, n in enumerate(np.atleast_1d(each)) if n > NOBODY}

    @property
    def words(self) -> tuple[str, ...]:
        """The words with committed agents, with `meets` once for each kind that has some."""
        return tuple(word for word, _ in self.bound)

    @property
    def groups(self) -> list[int]:
        """The policy whose community each kind belongs to, if there are `meets`."""
        return [*range(len(self.population.kinds)), *(m for _, m in self.bound)]

    @property
    def q(self) -> np.ndarray:
        """Choice probabilities, shape (kinds, S, W)."""
        says = np.array([[w == word for w in self.population.words] for word in self.words], float)
        always = [np.tile(row, (1, self.population.space.n_states, 1)) for row in says]
        population = self.population
        alike = population.meets is None and not population.in_groups
        return np.concatenate([(population.mixture if alike else population.arrays).q, *always])

    def exact(self, n_agents: int) -> np.ndarray:
        """The numbers of agents of each kind that its shares are, shape (kinds,)."""
        fractions, bound = np.array(self.population.fractions), np.array([*self.bound.values()], float)
        well_mixed, numbered = self.population.meets is None, self.committed is not None
        # Where all kinds meet alike, committed agents are counted: shares would round, and ties fall another way
        whole = n_agents if well_mixed and numbered else 1
        bound /= n_agents if numbered and not well_mixed else 1
        if well_mixed:
            free = (whole - (0 if self.extra else bound.sum())) * fractions
        else:
            free = fractions.copy()
            np.subtract.at(free, self.groups[len(fractions) :], 0 if self.extra else bound)
        if (free < -NOBODY).any():
            most = f"n_agents = {n_agents} in all"
            most = most if self.population.meets is None else f"{n_agents * fractions} in the kinds"
            raise InputError(f"committed = {self.committed}: expected at most {most}")
        return n_agents // whole * np.array([*np.where(free > NOBODY, free, 0), *bound])

    def numbers(self, n_agents: int) -> np.ndarray:
        """Numbers of agents of each kind, shape (kinds,)."""
        exact = self.exact(n_agents)
        return whole_numbers(exact, round(exact.sum()))

    def edges(self, n_agents: int) -> Edges:
        """Who meets whom among the agents of `states`, as in `theory.pairs`; InputError if they are too few."""
        if self.population.in_groups:
            sizes = np.array([*self.population.sizes])
            if (there := self.numbers(n_agents).sum()) < sizes.max():
                raise InputError(f"n_agents = {n_agents}: too few, since {there} agents are no group of {sizes.max()}")
            below = (np.cumsum([*self.population.sizes.values()]) * 2.0**62).astype(np.int64)
            return *NO_EDGES[:4], np.array([HEARS.index(self.population.hears), *sizes, *below[:-1]]), NO_EDGES[5]
        if self.population.meets is None:
            return NO_EDGES
        numbers = self.numbers(n_agents).astype(float)
        pairs = np.outer(numbers, numbers) - np.diag(numbers)
        weight = pairs * self.population.meets[np.ix_(self.groups, self.groups)]
        if (alone := (numbers > 0) & ~weight.any(1)).any():
            name = kind_names(self)[alone.argmax()]
            raise InputError(
                f"n_agents = {n_agents}: too few, since the one of kind {name!r} would have nobody to meet"
            )
        return between_groups(self.numbers(n_agents), weight)

    def states(self, n_agents: int, composition: np.ndarray) -> np.ndarray:
        """Memory of each agent at the start, kind after kind, as kind · S + state; shape (agents,)."""
        n_states = self.population.space.n_states
        numbers = self.numbers(n_agents)
        # Committed agents start with memories like the first kind's.
        rows = [*composition, *([composition[0]] * (len(numbers) - len(composition)))]
        each = [apportion(row, int(number)) for row, number in zip(rows, numbers, strict=True)]
        return np.repeat(np.arange(len(numbers) * n_states), np.concatenate(each))


def apportion(fractions: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that sum to `total`, closest to its `fractions`: largest remainders."""
    return whole_numbers(fractions * total, total)


def whole_numbers(exact: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that sum to `total`, closest to `exact` ones that do."""
    numbers = np.floor(exact + 1e-9).astype(int)
    missing = total - int(numbers.sum())
    # Remainders that differ by rounding, which processors do differently, are equal: the first state comes first.
    order = np.argsort(np.round(numbers - exact, 9), kind="stable")
    numbers[order[:missing]] += 1
    return numbers


def make_cast(
    population: Population, committed: Mapping[str, Any] | None, *, sizes: Sequence[int], extra: bool = False
) -> Cast:
    """The cast of `simulate`, from its arguments; InputError where they contradict or round a kind of agents to none.

    A warning tells of shares that whole numbers of agents change.
    """
    counts = None
    if committed is None and extra:
        raise InputError("committed_are_extra = True: expected numbers of agents in committed")
    if committed is not None:
        if not isinstance(committed, Mapping):
            raise InputError(f"committed = {committed!r}: expected a mapping of words to numbers of agents")
        if population.committed:
            both = f"{dict(committed)} beside a population with committed fractions {population.committed}"
            raise InputError(f"committed = {both}: expected one of them")
        if unknown := [word for word in committed if word not in population.words]:
            raise InputError(f"committed has the word {unknown[0]!r}: expected some of {', '.join(population.words)}")
        counts = {word: _counted(f"committed[{word!r}]", number, population) for word, number in committed.items()}
    cast = Cast(population, counts, extra)
    names, changed, gone, least = kind_names(cast), [], [], 0.0
    for n in sizes:
        exact, numbers = cast.exact(n), cast.numbers(n)
        away = np.abs(numbers - exact) > ROUNDING * exact
        told = ", ".join(f"{numbers[k]} {names[k]} for {exact[k]:.3g}" for k in np.flatnonzero(away))
        if told:
            changed.append(f"N = {n}: {told}")
        if (none := (numbers == 0) & (exact > 0)).any():
            gone.append(n)
            least = max(least, n / exact[none].min())
    listed = "; ".join(changed[:MOST_TOLD]) + (f"; and {len(changed) - MOST_TOLD} more" * (len(changed) > MOST_TOLD))
    if gone:
        raise InputError(
            f"n_agents = {shown(gone)}: too few for a share of the population, which would lack a kind of agents "
            f"({listed}); expected at least {int(np.ceil(least - 1e-9))}"
        )
    if changed:
        warnings.warn(f"shares of the population are rounded to whole agents, {listed}", stacklevel=3)
    return cast


def _counted(name: str, number: Any, population: Population) -> int | np.ndarray:
    """A number of agents; with `meets` the numbers in each kind, of a single one by the fractions of the kinds."""
    if population.meets is None or not np.ndim(number):
        total = whole_number(name, number, 0)
        return total if population.meets is None else apportion(np.array(population.fractions), total)
    if len(number) != len(population.kinds):
        raise InputError(
            f"{name} = {shown(number)}: expected one number, or one for each of {len(population.kinds)} kinds"
        )
    return np.array([whole_number(name, each, 0) for each in number])


def start_composition(population: Population, initial: str | xr.DataArray | np.ndarray | None) -> np.ndarray:
    """Compositions of the kinds at the start, shape (M, S): empty memories, a consensus, or the given one."""
    if initial is None:
        return empty_memories(population).values
    if isinstance(initial, str):
        word_number(population.words, initial, "initial")
        return consensus(population, initial).values
    return validate_composition(initial, population, "initial")


def start_options(
    initial: str | xr.DataArray | np.ndarray | None, cast: Cast, sizes: Sequence[int]
) -> dict[str, str | None]:
    """Memories at the start and numbers of committed agents as options of a stamp: one number, or one for each size."""
    memories = initial if isinstance(initial, str) else "empty memories" if initial is None else "given"
    columns = np.array([cast.numbers(n) for n in sizes]).T[len(cast.population.kinds) :].tolist()
    names = [word if cast.population.meets is None else f"{word}[{m}]" for word, m in cast.bound]
    bound = [
        f"{word}:{column[0] if len(set(column)) == 1 else ','.join(map(str, column))}"
        for word, column in zip(names, columns, strict=True)
    ]
    return {"initial": memories, "committed": " ".join(bound) or None}


def kind_names(cast: Cast) -> list[str]:
    """Names of the kinds: models, and words that agents are committed to."""
    kinds = cast.population.kinds
    beside = ["" if cast.population.meets is None else f", {name}" for name in kinds]
    return [*kinds, *(f"committed to {word}{beside[m]}" for word, m in cast.bound)]


def combined_successors(space: MemorySpace, n_kinds: int) -> np.ndarray:
    """`MemorySpace.successors` for states numbered kind · S + state: agents keep their kind."""
    return (np.arange(n_kinds)[:, None] * space.n_states + space.successors()).ravel()
