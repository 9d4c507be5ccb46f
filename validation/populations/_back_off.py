"""Policies of many words, estimated from choices: visited memories first, then similar ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import gammaincinv

from meanfield import InputError, MemorySpace
from meanfield.toolbox import LARGEST_SEED, whole_number
from theory.streams import splitmix
from validation.naming_game import LazyPolicy
from validation.naming_game._lazy_policy import Memory
from validation.populations._choice_model import Law, fit_law
from validation.populations._choices import NOTHING, Choices, memory_array
from validation.populations._empirical_policy import concentration, estimated_policy, why_not_tabulable
from validation.populations._memory_relations import NO_MEMBER, Level, Relations, feature_groups, levels

PASSES = 3  # of the alternation between the logit model and the levels below it
FIRST_CONCENTRATION = 10.0
MOST_NUMBERS = 10**7  # memories · words
LEAST_SHAPE = 0.5  # of a factor on a probability, so that rare words do not become impossible where they are unseen
LEAST_PROBABILITY = 1e-15
UNIFORM_BITS = 2.0**-53


class BackOffPolicy:
    """A policy estimated by `back_off_policy`, with its posterior; see there."""

    def __init__(self, choices: Choices, name: str = "policy", names: bool = True) -> None:
        words, length = choices.words, choices.memory_length
        if not choices.times.sum():
            raise InputError("choices: expected at least one")
        if MemorySpace(len(words), length).n_states >= 2**63:
            raise InputError(f"memory_length = {length} with {len(words)} words: expected fewer than 2^63 states")
        memory, row = np.unique(choices.memory.reshape(len(choices.memory), -1), axis=0, return_inverse=True)
        if len(memory) * len(words) > MOST_NUMBERS:
            have = f"{len(memory)} memories of {len(words)} words"
            raise InputError(f"choices has {have}: expected at most {MOST_NUMBERS} memories · words")
        counts = np.zeros((len(memory), len(words)))
        np.add.at(counts, (row.ravel(), choices.chosen), choices.times)
        seen = counts.sum(1) > 0
        self.words, self.memory_length, self.name, self._names = words, length, name, names
        self._counts = counts[seen]
        relations = Relations.of(memory[seen].reshape(-1, length, 2), len(words))
        self._design = relations.design(names)
        self._mean = self._estimate([_Groups.of(level, relations) for level in levels(length, names)], None)
        for _ in range(PASSES - 1):
            self._mean = self._estimate(self._mean.groups, self._mean.law)

    def __repr__(self) -> str:
        told = f"{int(self._counts.sum())} choices in {len(self._counts)} memories"
        return f"BackOffPolicy({self.name} {{{', '.join(self.words)}}}, {told})"

    def probabilities(self, memory: np.ndarray) -> np.ndarray:
        """Posterior mean of the probabilities to choose each word, (n, W).

        `memory` (n, H, 2) holds the numbers of own and partner's words, oldest first, -1 before the first ones.
        """
        memory, n_words = np.asarray(memory), len(self.words)
        if memory.ndim != 3 or memory.shape[1:] != (self.memory_length, 2):
            raise InputError(f"memory has the shape {memory.shape}: expected (n, {self.memory_length}, 2)")
        empty = memory == NOTHING
        wrong = ((memory < NOTHING) | (memory >= n_words)).any() or (empty[..., 0] != empty[..., 1]).any()
        if wrong or (empty[:, 1:, 0] > empty[:, :-1, 0]).any():
            expected = f"expected words from 0 to {n_words - 1}, and -1 before the first interactions only"
            raise InputError(f"memory: {expected}")
        return self._mean.probabilities(Relations.of(memory, n_words), self._names)

    def log_probabilities(self, memory: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """Logarithms of the probabilities of the words with the numbers `chosen` (n,), shape (n,)."""
        return np.log(self.probabilities(memory)[np.arange(len(chosen)), chosen])

    def lazy(self) -> LazyPolicy:
        """The posterior mean, for `validation.naming_game.simulate`."""
        return self._lazy(self._mean)

    def sample(self, n: int, seed: int, change: Callable[[np.ndarray], np.ndarray] = np.asarray) -> list[LazyPolicy]:
        """`n` policies drawn from the posterior; the first 10 of 100 are the 10. `seed` is 0 to 2^63 - 1.

        `change` makes other probabilities (n, W) of theirs.
        """
        n, seed = whole_number("n", n, 1), whole_number("seed", seed, 0, LARGEST_SEED)
        return [self._lazy(self._drawn(seed, k), change) for k in range(n)]

    @property
    def strengths(self) -> pd.DataFrame:
        """`concentration` and number of `groups` by level: `named`, and `length`, 0 for memories not yet full."""
        columns = ["named", "length", "concentration", "groups"]
        told = ((one.level.named, one.level.length or 0, one.concentration, len(one.keys)) for one in self._mean.groups)
        return pd.DataFrame(told, columns=columns)

    def _lazy(self, chain: _Chain, change: Callable[[np.ndarray], np.ndarray] = np.asarray) -> LazyPolicy:
        def function(memories: list[Memory]) -> np.ndarray:
            relations = Relations.of(memory_array(memories, self.memory_length), len(self.words))
            return change(chain.probabilities(relations, self._names))

        return LazyPolicy(function, self.words, self.memory_length, name=self.name)

    def _estimate(self, known: list[_Groups], start: Law | None) -> _Chain:
        """Logit model and levels, most general first, with the weights that former concentrations give to choices."""
        of_law, *weights = self._weights(known)
        features = feature_groups(self.memory_length, len(self.words), self._names)
        law = fit_law(self._design, self._counts * of_law[:, None], features, start)
        q, groups = law.probabilities(self._design, len(self.words)), []
        for one, weight in zip(known, weights, strict=True):
            observed, centre = one.totals(self._counts * weight[:, None], q)
            one = one._replace(counts=observed, concentration=concentration(observed, centre))
            groups.append(one.tilted(centre, None))
            q = groups[-1].applied(q, one.group, one.outcomes)
        return _Chain(law, groups, None)

    def _weights(self, groups: list[_Groups]) -> list[np.ndarray]:
        """Number of independent choices that one choice with each memory is worth to the logit model and to each level.

        A group with n choices informs a more general one, which contains it, like n (1 + c) / (n + c).
        """
        total = self._counts.sum(1)
        weights: list[np.ndarray] = []
        whole = weight = np.ones(len(total))
        for one in groups[::-1]:
            if one.level.length is None:  # the most special one with or without names
                weight = np.ones(len(total))
            weights.insert(0, weight)
            n = np.append(np.bincount(one.group, total * weight, minlength=len(one.keys) + 1)[:-1], 1.0)
            weight = weight * (1 + one.concentration) / (n + one.concentration)[one.group]
            if one.level.length in (self.memory_length, None):
                whole = np.minimum(whole, weight)
        return [whole, *weights]

    def _drawn(self, seed: int, number: int) -> _Chain:
        random = np.random.default_rng((seed, number))
        law = self._mean.law.drawn(random)
        q, groups = law.probabilities(self._design, len(self.words)), []
        for one in self._mean.groups:
            groups.append(one.tilted(one.totals(self._counts, q)[1], random))
            q = groups[-1].applied(q, one.group, one.outcomes)
        # Random departures of single words would break the symmetry of a model without names.
        return _Chain(law, groups, int(random.integers(2**63)) if self._names else None)


class _Groups(NamedTuple):
    """The groups of a level that were seen, and where the seen memories are in them."""

    level: Level
    keys: np.ndarray  # (group,), rising
    group: np.ndarray  # (memory,), len(keys) where it is in none
    outcomes: np.ndarray  # (memory, word)
    counts: np.ndarray  # (group, outcome), independent choices
    concentration: float
    tilt: np.ndarray  # (group + 1, outcome), factors on the more general level; the last row is 1, for no group

    @classmethod
    def of(cls, level: Level, relations: Relations) -> _Groups:
        """Before choices are counted."""
        keys, (n_words, places) = level.keys(relations), (relations.place.shape[1], relations.words.shape[1])
        found = np.unique(keys[keys != NO_MEMBER])
        tilt = np.ones((len(found) + 1, level.n_outcomes(n_words, places // 2)))
        return cls(level, found, _find(found, keys), level.outcomes(relations), tilt[:-1], FIRST_CONCENTRATION, tilt)

    def totals(self, counts: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Choices in each group, and the mean of the probabilities `q` over them, (group, outcome)."""
        number = (self.group[:, None] * self.tilt.shape[1] + self.outcomes).ravel()
        both = (np.bincount(number, one.ravel(), self.tilt.size) for one in (counts, counts.sum(1, keepdims=True) * q))
        observed, expected = (one.reshape(self.tilt.shape)[:-1] for one in both)
        return observed, expected / expected.sum(1, keepdims=True)

    def tilted(self, centre: np.ndarray, random: np.random.Generator | None) -> _Groups:
        """With the mean factors on a centre (group, outcome), or drawn ones."""
        shape = np.maximum(self.concentration * centre, LEAST_SHAPE)
        seen = self.counts + shape
        seen = seen if random is None else random.standard_gamma(seen)
        tilt = seen / (self.counts.sum(1, keepdims=True) * centre + shape)
        return self._replace(tilt=np.concatenate([tilt, self.tilt[-1:]]))

    def applied(self, q: np.ndarray, group: np.ndarray, outcomes: np.ndarray) -> np.ndarray:
        """Probabilities (memory, word) with the factors of these groups (memory,) and outcomes (memory, word)."""
        weights = np.maximum(q * self.tilt[group[:, None], outcomes], LEAST_PROBABILITY)
        return weights / weights.sum(1, keepdims=True)


class _Chain(NamedTuple):
    """A policy: a logit model, and factors of each group of each level on the one above."""

    law: Law
    groups: list[_Groups]
    key: int | None  # of the random departures of memories that were never seen; None: the mean, without

    def probabilities(self, relations: Relations, names: bool) -> np.ndarray:
        q = self.law.probabilities(relations.design(names), relations.place.shape[1])
        certain = np.ones(len(q))
        for one in self.groups:
            keys = one.level.keys(relations)
            group = _find(one.keys, keys)
            q = one.applied(q, group, one.level.outcomes(relations))
            certain[(group == len(one.keys)) & (keys != NO_MEMBER)] *= one.concentration / (one.concentration + 1)
        # Memories in groups that were not seen have policies around the centre, the same whenever they occur.
        rows = np.flatnonzero(certain < 1)
        if self.key is None or not rows.size:
            return q
        named, held = (self.groups[-2].level, self.groups[-1].level), relations.held[rows]
        key = np.where(held == named[0].length, *(one.keys(relations)[rows] for one in named))
        streams = splitmix(key.astype(np.uint64) + splitmix(np.array([self.key], dtype=np.uint64)))
        streams = splitmix(streams + held.astype(np.uint64))
        numbers = np.arange(q.shape[1], dtype=np.uint64)
        uniform = (splitmix(streams[:, None] + numbers) >> np.uint64(11)) * UNIFORM_BITS + UNIFORM_BITS / 2
        shape = np.maximum(certain[rows, None] / (1 - certain[rows, None]) * q[rows], LEAST_SHAPE)
        weights = q[rows] * gammaincinv(shape, uniform) / shape
        q[rows] = weights / weights.sum(1, keepdims=True)
        return q


def _find(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The place of each key among the known ones, which rise; their number where it is none of them."""
    near = np.searchsorted(known, keys)
    return np.where(np.append(known, NO_MEMBER)[near] == keys, near, len(known))


def back_off_policy(choices: pd.DataFrame, *, words: Sequence[str] | None = None, names: bool = True) -> BackOffPolicy:
    """Estimate a policy of any number of words from choices, for memories too many to tabulate.

    With W = 26 words and H = 5 nearly every memory of a new run is one that no run had before. So a memory m has the
    probabilities of similar memories, from the most general to the most special:

    1. A conditional logit model, log q(w|m) = θ·f(w, m) + b(w) + constant. The features f know no names: w was heard or
       said k interactions ago, or both; is unseen, by the length of the memory; is the most frequent word, was only
       heard, or only said. The biases b(w) depend on whether the memory is empty, else on whether w is unseen in it.
    2. Memories whose last 1, 2, … H interactions are equal up to names of words, and memories not yet full that are
       equal up to names. The choice there is between roles: the k-th latest word in memory, or none of them.
    3. Memories whose last 1, 2, … H interactions are equal, and equal memories not yet full. Empty memories are one
       such group, with the frequencies of first choices.

    In a group of a level, with n(w) of N choices and mean probabilities p of the levels above,

        q(w|m) → q(w|m) g(w), normalised,    g(w) ~ Gamma(n(w) + a(w)) / (N p(w) + a(w)),    a(w) = max(c p(w), ½).

    With a = c p this is Dirichlet back-off; the ½ keeps rare unseen words possible. The concentration c of
    each level maximises the marginal likelihood, as in `empirical_policy`, and so do the widths of normal priors of θ
    and b, in the approximation of Laplace. Renamed words give the same policy. The cost grows like (memories seen) ·
    W · H, whatever the number of states.

    Parameters
    ----------
    choices
        Choice counts of one model, options and memory length, as for `empirical_policy`.
    words
        The words in the wanted order. Default: the order in `options`.
    names
        Whether words have names. False leaves out b and step 3: from empty memories each word then wins with
        probability 1/W, and only the times are a prediction.

    Returns
    -------
    The estimate, with

    - `probabilities(memory)`, the posterior mean (n, W) for memories (n, H, 2) of the numbers of own and partner's
      words, oldest first, -1 before the first interactions; and `log_probabilities(memory, chosen)`, shape (n,);
    - `lazy()`, the posterior mean as a `validation.naming_game.LazyPolicy`;
    - `sample(n, seed)`, `LazyPolicy` objects drawn from the posterior, random also for memories never seen;
    - `strengths`, a table of the concentrations.

    Raises
    ------
    InputError
        If the table is damaged, empty or of several policies, or there are 2^63 memory states or 10^7 memories · words.

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
    counted = Choices.of_table(choices, words)
    return BackOffPolicy(counted, str(choices["model"].iloc[0]), names)


def policy_or_why(choices: Choices, model: str) -> xr.Dataset | BackOffPolicy | str:
    """The policy that is estimated from choices, as a table if this can hold it; or why there is none."""
    if not why_not_tabulable(len(choices.words), choices.memory_length):
        return estimated_policy(choices, model)
    try:
        return BackOffPolicy(choices, model)
    except InputError as error:
        return str(error)
