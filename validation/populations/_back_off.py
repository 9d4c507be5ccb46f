"""Policies of many words, estimated from choices: visited memories first, then what is like them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from meanfield import InputError, MemorySpace
from meanfield.toolbox import LARGEST_SEED, whole_number
from validation.naming_game import LazyPolicy
from validation.populations._back_off_chain import Chain, Place, as_array, tilt_of
from validation.populations._back_off_levels import Groups, levels
from validation.populations._choices import NOTHING, Choices
from validation.populations._empirical_policy import concentration, counted_memories, single_table
from validation.populations._law_of_choice import Law, fit_law
from validation.populations._memory_relations import Relations

PASSES = 3  # of the alternation between the law and the levels below it
FIRST_CONCENTRATION = 10.0
MOST_NUMBERS = 10**7  # memories · words


class _Seen(NamedTuple):
    """Choices by memory, each memory once."""

    relations: Relations
    counts: np.ndarray  # (memory, word)


class BackOffPolicy:
    """A policy estimated by `back_off_policy`, with its posterior; see there."""

    def __init__(self, words: Sequence[str], memory_length: int, name: str, seen: _Seen, names: bool) -> None:
        self.words, self.memory_length, self.name = tuple(words), memory_length, name
        self.levels = levels(memory_length, names)
        self._seen, self._names = seen, names
        self._fit()

    def __repr__(self) -> str:
        seen = self._seen.counts
        return (
            f"BackOffPolicy({self.name} {{{', '.join(self.words)}}}, {int(seen.sum())} choices in {len(seen)} memories)"
        )

    def probabilities(self, memory: np.ndarray) -> np.ndarray:
        """Posterior mean of the probabilities to choose each word, (n, W).

        `memory` (n, H, 2) holds the numbers of own and partner's words, oldest first, -1 before the first ones.
        """
        relations = Relations.of(_checked(memory, len(self.words), self.memory_length), len(self.words))
        return self._mean.probabilities(relations)

    def log_probabilities(self, memory: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of the words with the numbers `chosen` (n,), shape (n,)."""
        return np.log(self.probabilities(memory)[np.arange(len(chosen)), chosen])

    def lazy(self) -> LazyPolicy:
        """The posterior mean, for `validation.naming_game.simulate`."""
        return self._mean.lazy(self.words, self.memory_length, self.name)

    def sample(self, n: int, seed: int) -> list[LazyPolicy]:
        """`n` policies drawn from the posterior; the first 10 of 100 are the 10. `seed` is 0 to 2^63 - 1."""
        n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
        return [self._drawn(seed, k).lazy(self.words, self.memory_length, self.name) for k in range(n)]

    @property
    def strengths(self) -> pd.DataFrame:
        """`concentration` and number of `groups` by level: `named`, and `length`, 0 for memories not yet full."""
        rows = [
            (level.named, level.length or 0, groups.concentration, len(groups.keys))
            for level, groups in zip(self.levels, self._mean.groups, strict=True)
        ]
        return pd.DataFrame(rows, columns=["named", "length", "concentration", "groups"])

    def _fit(self) -> None:
        relations = self._seen.relations
        self._places = [Place.of(level, relations, len(self.words), self.memory_length) for level in self.levels]
        self._mean = self._estimate(np.full(len(self.levels), FIRST_CONCENTRATION), None)
        for _ in range(PASSES - 1):
            found = np.array([groups.concentration for groups in self._mean.groups])
            self._mean = self._estimate(found, self._mean.law)

    def _estimate(self, concentrations: np.ndarray, start: Law | None) -> Chain:
        """Law and levels, from the most general on, with the weights that these concentrations give to choices."""
        relations, counts = self._seen
        of_law, *weights = self._weights(counts, concentrations)
        law = fit_law(relations, counts * of_law[:, None], self._names, start)
        q, groups, tilts = law.probabilities(relations), [], []
        for place, weight in zip(self._places, weights, strict=True):
            observed, centre = place.totals(counts * weight[:, None], q)
            c = concentration(observed, centre)
            groups.append(Groups(place.keys, observed, c))
            tilts.append(tilt_of(groups[-1], centre, None))
            q = place.tilted(q, tilts[-1])
        return Chain(law, self.levels, groups, tilts, None)

    def _weights(self, counts: np.ndarray, concentrations: np.ndarray) -> list[np.ndarray]:
        """How many independent choices one choice with each memory is worth to the law and to each level.

        A group with n choices informs a more general one, which contains it, like n (1 + c) / (n + c).
        """
        total = counts.sum(1)
        weights: list[np.ndarray] = [np.ones(0)] * len(self.levels)
        whole = np.ones(len(total))
        for named in (False, True):
            weight = np.ones(len(total))
            for k in reversed([k for k, level in enumerate(self.levels) if level.named == named]):
                weights[k] = weight
                place, c = self._places[k], concentrations[k]
                n = np.append(np.bincount(place.group, total * weight, minlength=len(place.keys) + 1)[:-1], 1.0)
                weight = weight * (1 + c) / (n + c)[place.group]
                if self.levels[k].length in (self.memory_length, None):
                    whole = np.minimum(whole, weight)
        return [whole, *weights]

    def _drawn(self, seed: int, number: int) -> Chain:
        random = np.random.default_rng((seed, number))
        law = self._mean.law.drawn(random)
        q, chain = law.probabilities(self._seen.relations), []
        for place, groups in zip(self._places, self._mean.groups, strict=True):
            _, centre = place.totals(self._seen.counts, q)
            chain.append(tilt_of(groups, centre, random))
            q = place.tilted(q, chain[-1])
        # Random departures of single words would break the symmetry of a law without names.
        key = int(random.integers(2**63)) if self._names else None
        return Chain(law, self.levels, self._mean.groups, chain, key)


def back_off_policy(
    choices: pd.DataFrame | Choices, *, words: Sequence[str] | None = None, names: bool = True
) -> BackOffPolicy:
    """Estimate a policy of any number of words from choices, for memories too many to tabulate.

    With W = 26 words and H = 5 nearly every memory of a new run is one that no run had before. So a memory m has the
    probabilities of what is like it, from the most general to the most special:

    1. A conditional logit law, log q(w|m) = θ·f(w, m) + b(w) + constant. The features f do not change if words are
       renamed: w was heard or said k interactions ago, or both; w is unseen, by the length of the memory; w is the most
       frequent word, was only heard, or only said. The biases b(w) depend on whether the memory is empty, else on
       whether w is unseen in it.
    2. Memories whose last 1, 2, … H interactions are equal up to names of words, and memories not yet full that are
       equal up to names. The choice there is between roles: the k-th latest word in memory, or none of them.
    3. Memories whose last 1, 2, … H interactions are equal, and equal memories not yet full. Empty memories are one
       such group, with the frequencies of first choices.

    In a group of a level, with n(w) of N choices and mean probabilities p of the levels above,

        q(w|m) → q(w|m) g(w), normalised,    g(w) ~ Gamma(n(w) + a(w)) / (N p(w) + a(w)),    a(w) = max(c p(w), ½).

    With a = c p this is the usual Dirichlet back-off where all memories of the group have the same centre; the ½ keeps
    possible what is rare and was not seen. A memory seen often keeps its own frequencies. The strengths are estimated
    from the choices: the concentration c of each level by the marginal likelihood, as in `empirical_policy`, and the
    widths of normal priors of θ and b by the marginal likelihood in the approximation of Laplace. A group with n
    choices informs a more general one like n (1 + c) / (n + c) independent choices. Renamed words give the same policy.
    Words that were never said have small probabilities, not 0. The cost grows like (memories seen) · W · H, whatever
    the number of states.

    Parameters
    ----------
    choices
        Choice counts of one model, options and memory length, with the columns model, options, memory_length, state,
        choice, count, as for `empirical_policy`.
    words
        The words in the wanted order. Default: the order in `options`.
    names
        Whether words have names. False leaves out the biases b and step 3. The law is then exchangeable: from empty
        memories each of the W words wins with chance 1/W, and only the times are a prediction.

    Returns
    -------
    The estimate, with

    - `probabilities(memory)`, the posterior mean (n, W) for memories (n, H, 2) of the numbers of own and partner's
      words, oldest first, -1 before the first interactions; and `log_probabilities(memory, chosen)`, shape (n,);
    - `lazy()`, the posterior mean as a `validation.naming_game.LazyPolicy`;
    - `sample(n, seed)`, `LazyPolicy` objects drawn from the posterior. A group that was never seen has random
      probabilities around its centre, the same whenever the memory occurs;
    - `strengths`, a table of the concentrations.

    Raises
    ------
    InputError
        If a column is missing, a count or a word is wrong, there are no choices, several policies, 2^63 memory states
        or more, or more than 10^7 memories · words.

    See Also
    --------
    empirical_policy : for few states, as a table
    validate : populations of such policies against real ones

    Examples
    --------
    >>> import pandas as pd
    >>> from validation import naming_game, populations
    >>> counts = pd.DataFrame(
    ...     [("m", "A_B_C", 1, "", word, 10) for word in "ABC"] + [("m", "A_B_C", 1, "A,B", "B", 30)],
    ...     columns=["model", "options", "memory_length", "state", "choice", "count"],
    ... )
    >>> policy = populations.back_off_policy(counts)
    >>> policy.probabilities([[[2, 0]]]).round(1)  # said C, heard A: never seen, but like said A, heard B
    array([[1., 0., 0.]])
    """
    memory, number, options, name = _read(choices, words)
    length = memory.shape[1]
    if not number.sum():
        raise InputError("choices: expected at least one")
    if MemorySpace(len(options), length).n_states >= 2**63:
        raise InputError(f"memory_length = {length} with {len(options)} words: expected fewer than 2^63 states")
    different, row = np.unique(memory.reshape(len(memory), -1), axis=0, return_inverse=True)
    if different.shape[0] * len(options) > MOST_NUMBERS:
        have = f"{different.shape[0]} memories of {len(options)} words"
        raise InputError(f"choices has {have}: expected at most {MOST_NUMBERS} memories · words")
    counts = np.zeros((len(different), len(options)))
    np.add.at(counts, row.ravel(), number)
    seen = counts.sum(1) > 0
    relations = Relations.of(different[seen].reshape(-1, length, 2), len(options))
    return BackOffPolicy(options, length, name, _Seen(relations, counts[seen]), names)


def back_off_or_why(choices: pd.DataFrame | Choices) -> BackOffPolicy | str:
    """The estimate, or why there is none."""
    try:
        return back_off_policy(choices)
    except InputError as error:
        return str(error)


def _read(
    choices: pd.DataFrame | Choices, words: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, list[str], str]:
    """Memories (n, H, 2), counts of the choices made with them (n, word), the words and the model."""
    if isinstance(choices, Choices):
        return choices.memory, np.eye(len(choices.words))[choices.chosen], list(choices.words), "policy"
    one, options = single_table(choices, words)
    length = int(one["memory_length"].iloc[0])
    memories, number = counted_memories(one, options, length)
    return as_array([tuple(memory) for memory in memories], length), number, options, str(one["model"].iloc[0])


def _checked(memory: np.ndarray, n_words: int, memory_length: int) -> np.ndarray:
    """The array; InputError if it holds no memories of this length."""
    memory = np.asarray(memory)
    if memory.ndim != 3 or memory.shape[1:] != (memory_length, 2):
        raise InputError(f"memory has the shape {memory.shape}: expected (n, {memory_length}, 2)")
    empty = memory == NOTHING
    if (
        (memory < NOTHING).any()
        or (memory >= n_words).any()
        or (empty[..., 0] != empty[..., 1]).any()
        or (empty[:, 1:, 0] > empty[:, :-1, 0]).any()
    ):
        raise InputError(f"memory: expected words from 0 to {n_words - 1}, and -1 before the first interactions only")
    return memory
