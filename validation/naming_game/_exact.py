"""Small populations exactly: the Markov chain of all N agents, without random numbers.

Agents of a kind in the same memory state are alike, so a population is a configuration: the number of agents in each
state. The chain lives on the configurations that can be reached, and one step of it is one interaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb, prod

import numpy as np
import xarray as xr
from scipy.sparse import csc_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import gmres, splu

from meanfield import ConvergenceError, InputError, Population
from meanfield.toolbox import MIXED, as_population, compiled, copy_to, inner, stamp, whole_number, word_coords
from validation.naming_game._roster import combined_successors, make_cast, start_composition

Numbers = float | Sequence[float] | np.ndarray | None
LARGEST_COUNT = 2**15 - 1  # agents in a state are counted in int16
MAX_TRANSITIONS = 2**26  # a little over 1 GB
DIRECT = 3000  # of more equations the factors fill up
ROUNDING = 1e-9  # of quantities in configurations
LARGEST_ERROR = 1e-6  # of a sum of probabilities that is known to be 1


@dataclass(frozen=True, eq=False)
class ExactPopulation:
    """The chain of a small population, as `exact_population` builds it; configuration 0 is the start.

    Attributes
    ----------
    population, n_agents
        Policies, their fractions and the committed agents; N, committed agents included.
    counts
        Shape (configurations, M, S): the number of agents of each of the M policies in each memory state.
    word_share
        Q[word], shape (configurations, W): the word of a random agent, committed agents included.
    transition, success
        Sparse (from, to): probabilities of one interaction, and their part in which both say the same word.

    Examples
    --------
    Four agents who keep to a convention once all remember it:

    >>> policy = meanfield.make_policy(np.array([0.6, 1, 0.5, 0.5, 0]), ["A", "B"])
    >>> exact = validation.naming_game.exact_population(policy, 4)
    >>> len(exact.counts)  # configurations
    43
    >>> ends = exact.absorption()
    >>> ends[["word", "probability", "mean_rounds_given"]].to_dataframe().round(3)
                 word  probability  mean_rounds_given
    closed_class
    0               B          0.4              3.941
    1               A          0.6              3.085
    """

    population: Population
    n_agents: int
    counts: np.ndarray
    word_share: np.ndarray
    transition: csr_array
    success: csr_array

    def law(self, *, interactions: Numbers = None, rounds: Numbers = None) -> xr.DataArray:
        """P(configuration) after numbers of interactions, or of rounds of N: dims (interactions, configuration).

        InputError unless exactly one of the two is given, in whole numbers of interactions.
        """
        if (interactions is None) == (rounds is None):
            raise InputError(f"interactions = {interactions}, rounds = {rounds}: expected one of the two")
        given = np.atleast_1d(interactions if rounds is None else np.multiply(rounds, self.n_agents))
        times = np.rint(given).astype(int)
        if not (np.isclose(given, times, rtol=0, atol=1e-6) & (times >= 0)).all():
            raise InputError(f"interactions = {given.tolist()}: expected whole numbers from 0 on")
        law, played, laws = np.eye(1, len(self.counts))[0], 0, {}
        for time in np.unique(times):
            for _ in range(time - played):
                law = law @ self.transition
            laws[time], played = law, time
        coords = {"interactions": times, "round": ("interactions", times / self.n_agents)}
        return xr.DataArray([laws[t] for t in times], coords, ("interactions", "configuration"), "probability")

    def law_of(self, values: np.ndarray, **times: Numbers) -> xr.DataArray:
        """P(value), dims (interactions, value), of a quantity that depends on the configuration; times as in `law`.

        `values`, shape (configurations,), may be `word_share[:, 0]`, a number of agents, `counts[:, :, i].sum(1)`, or
        `closed_class`, for the distribution of the time of absorption. Values less than 1e-9 apart count as one.
        """
        if np.shape(values) != (len(self.counts),):
            raise InputError(f"values has shape {np.shape(values)}: expected ({len(self.counts)},), configurations")
        values, order, law = np.asarray(values, float), np.argsort(values), self.law(**times)
        first = np.flatnonzero(np.diff(values[order], prepend=-np.inf) > ROUNDING)
        totals = np.add.reduceat(law.values[:, order], first, axis=1)
        return xr.DataArray(totals, {**law.coords, "value": values[order][first]}, ("interactions", "value"))

    def moments(self, **times: Numbers) -> xr.Dataset:
        """`mean` and `variance` of the word share Q, dims (interactions, word); times as in `law`."""
        words = word_coords(self.population.words)
        share, law = xr.DataArray(self.word_share, words, ("configuration", "word")), self.law(**times)
        mean = law @ share
        variance = xr.dot(law, (share - mean) ** 2, dim="configuration")
        result = xr.Dataset({"mean": mean, "variance": variance})
        return stamp(result, "exact_moments", self.population, n_agents=self.n_agents)

    @cached_property
    def closed_class(self) -> np.ndarray:
        """The closed class of each configuration by number, shape (configurations,); -1 where it is in none.

        A closed class is a set of configurations that is never left. Exact zeros of the policies count: a consensus
        that breaks with probability 2e-16 is not closed.
        """
        n_components, label = connected_components(self.transition, connection="strong")
        source, target = self.transition.nonzero()
        leaks = np.zeros(n_components, bool)
        leaks[label[source[label[source] != label[target]]]] = True
        return np.where(leaks, -1, np.cumsum(~leaks) - 1)[label]

    def absorption(self, target: np.ndarray | None = None) -> xr.Dataset:
        """Probabilities of the closed classes in which runs end, and times until one is entered.

        Parameters
        ----------
        target
            Bool, shape (configurations,): other configurations in which a run ends; these are one class, the first.
            With `word_share.max(1) == 1` a run ends when all agents agree on what to say next, before a class is
            closed.

        Returns
        -------
        Dataset over `closed_class`, with `probability`, that a run ends there; `word`, which all agents say in all of
        the class, or 'mixed'; `size`, its number of configurations; `mean_interactions` and `std_interactions` until a
        run ends; `mean_interactions_given` (closed_class), of runs that end there, NaN where none does; the same with
        `rounds`; attrs `error`, by how much probabilities and means, found one by one, fail to sum up.

        Raises
        ------
        InputError
            If `target` is not as described.
        ConvergenceError
            If that error is 1e-6 or more, as may happen for thousands of configurations and very long runs. `best` is
            the result with this error.
        """
        classes = self.closed_class
        if target is not None:
            if np.shape(target) != classes.shape or np.asarray(target).dtype != bool or not np.any(target):
                raise InputError(f"target: expected {len(classes)} bools, one a configuration, not all of them false")
            classes = np.where(target, 0, np.where(classes >= 0, classes + 1, -1))
        probability, given, square, error = _first_passage(self.transition, classes)
        said = np.zeros((len(probability), len(self.population.words)), bool)
        np.logical_or.at(said, classes[classes >= 0], self.word_share[classes >= 0] > 0)
        word = np.where(said.sum(1) == 1, np.array(self.population.words)[said.argmax(1)], MIXED)
        size = np.bincount(classes[classes >= 0], minlength=len(probability))
        columns, mean = {"probability": probability, "size": size}, probability @ np.nan_to_num(given)
        for unit, length in (("interactions", 1), ("rounds", self.n_agents)):
            columns[f"mean_{unit}"], columns[f"mean_{unit}_given"] = mean / length, given / length
            columns[f"std_{unit}"] = np.sqrt(max(square - mean**2, 0.0)) / length
        result = xr.Dataset({name: (("closed_class",)[: np.ndim(v)], v) for name, v in columns.items()})
        result = stamp(result, "absorption", self.population, n_agents=self.n_agents)
        result = result.assign_coords(word=("closed_class", word)).assign_attrs(error=error)
        if not error < LARGEST_ERROR:
            message = f"{self.population.name}: where runs end is known up to {error:.1e} only; fewer agents may help"
            raise ConvergenceError(message, best=result)
        return result


def exact_population(
    policy: xr.Dataset | Population,
    n_agents: int,
    *,
    committed: Mapping[str, int] | None = None,
    initial: str | xr.DataArray | np.ndarray | None = None,
    max_configurations: int = 200_000,
) -> ExactPopulation:
    """The Markov chain of a small population; a step is one interaction.

    As in `validation.simulate`, two distinct agents, uniformly at random, each say a word by their policy and remember
    what they said and heard. Committed agents always say their word; their memories make no difference and are left
    out. Source: [004] Methods.

    Parameters
    ----------
    policy, committed, initial
        As for `simulate`. Rows of policies are divided by their sums, which are 1 within rounding.
    n_agents
        N, 2 to 32,767, committed agents included.
    max_configurations
        Largest number of configurations to build. W = 2 has 1,729 for N = 12 and 46,000 for N = 30 with H = 1, 39,000
        for N = 5 with H = 2.

    Returns
    -------
    An `ExactPopulation`, with the methods `law`, `law_of`, `moments` and `absorption`.

    Raises
    ------
    InputError
        If an argument is out of range, or more configurations can be reached.

    See Also
    --------
    simulate : groups too large for the chain

    Examples
    --------
    >>> policy = meanfield.make_policy(np.array([0.6, 0.9, 0.5, 0.5, 0.1]), ["A", "B"])
    >>> exact = validation.naming_game.exact_population(policy, 6)
    >>> exact.moments(rounds=[1, 10])["mean"].sel(word="A").values.round(3)
    array([0.566, 0.502])
    >>> runs = validation.simulate(policy, n_agents=6, runs=10_000, seed=1, max_rounds=10, record_rounds=10)
    >>> runs["word_share"].sel(word="A", round=[1, 10]).mean("run").values.round(3)
    array([[0.566, 0.501]])
    """
    population, n_agents = as_population(policy), whole_number("n_agents", n_agents, 2, LARGEST_COUNT)
    most = whole_number("max_configurations", max_configurations, 1)
    cast, composition = make_cast(population, committed, sizes=[n_agents]), start_composition(population, initial)
    n_kinds, space, numbers = len(population.policies), population.space, cast.numbers(n_agents)
    # Types of agents: a policy and a memory, and after these one for each word that agents are committed to.
    n_free = n_kinds * space.n_states
    start = np.bincount(cast.states(n_agents, composition), minlength=n_free)[:n_free]
    q = np.concatenate([population.mixture.q.reshape(n_free, -1), cast.q[n_kinds:, 0]])
    q /= q.sum(1, keepdims=True)
    digit = np.arange(space.n_digits).reshape(space.n_words, space.n_words)
    moves = combined_successors(space, n_kinds)[:, None, None] + digit
    stays = np.arange(n_free, len(q))[:, None, None] + np.zeros_like(moves[:1])
    counts = np.concatenate([start, numbers[n_kinds:]])
    conceivable = prod(comb(int(n) + space.n_states - 1, int(n)) for n in numbers[:n_kinds])
    rows, *matrices = _chain(counts, q, np.concatenate([moves, stays]), min(most, conceivable))
    if not matrices:
        raise InputError(
            f"n_agents = {n_agents}: {len(rows)} or more of {conceivable} conceivable configurations can be reached, "
            f"expected at most max_configurations = {most}, and {MAX_TRANSITIONS} transitions among them"
        )
    if committed:
        shares = {word: number / n_agents for word, number in committed.items()}
        population = Population(population.policies, fractions=population.fractions, committed=shares)
    counts = rows[:, :n_free].reshape(len(rows), n_kinds, space.n_states)
    return ExactPopulation(population, n_agents, counts, rows @ q / n_agents, *matrices)


def _chain(start: np.ndarray, q: np.ndarray, child: np.ndarray, most: int) -> list:
    """Configurations, and the matrices of interactions and of those that succeed; no matrices if there are too many."""
    n_occupied = min(len(start), int(start.sum()))
    room = min(MAX_TRANSITIONS, most * n_occupied * (n_occupied + 1) // 2 * child[0].size)
    rows, targets, chances = np.empty((most + 1, len(start)), np.int16), np.empty(room, np.int32), np.zeros((room, 2))
    rows[0] = start
    table = np.full((4 << most.bit_length(), 2), -1)
    weights = np.random.default_rng(0).integers(-(2**62), 2**62, len(start))
    n_rows, ends = _explore(q, child, weights, table, rows, targets, chances)
    if n_rows > most or len(ends) <= n_rows:
        return [rows[:n_rows]]
    targets, chances, shape = targets[: ends[-1]], chances[: ends[-1]], (n_rows, n_rows)
    matrices = [csr_array((p, targets, ends), shape=shape, copy=True) for p in (chances.sum(1), chances[:, 1])]
    for matrix in matrices:
        matrix.eliminate_zeros()
    return [rows[:n_rows].copy(), *matrices]


def _first_passage(transition: csr_array, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
    """From configuration 0: probability of each class, mean time given it, mean square of the time, and the error."""
    inside, ends, n_classes = np.flatnonzero(classes < 0), np.flatnonzero(classes >= 0), classes.max() + 1
    if classes[0] >= 0:
        here = np.arange(n_classes) == classes[0]
        return here.astype(float), np.where(here, 0.0, np.nan), 0.0, 0.0
    into = csr_array((np.ones(len(ends)), (ends, classes[ends])), shape=(len(classes), n_classes))
    exits, moves = (transition[inside] @ into).T.tocsr(), transition[inside][:, inside]
    moves -= diags_array(moves.diagonal())
    # Source: Kemeny and Snell, Finite Markov Chains, ch. III; but 1 - P_ii would lose the digits of rare exits.
    rate = moves.sum(1) + exits.sum(0)
    flow = (diags_array(np.ones(len(rate))) - diags_array(1 / rate) @ moves).T.tocsc()
    visits = _solve(flow, np.eye(1, len(rate))[0]) / rate
    total = (exits @ visits).sum()
    visits /= total
    later = _solve(flow, visits) / rate
    probability, times = exits @ visits, exits @ later
    given = np.divide(times, probability, out=np.full(n_classes, np.nan), where=probability > 0)
    error = max(abs(total - 1), abs(times.sum() / visits.sum() - 1))
    return probability, given, 2 * later.sum() - visits.sum(), float(error)


def _solve(matrix: csc_array, right: np.ndarray) -> np.ndarray:
    if len(right) <= DIRECT:
        return splu(matrix).solve(right)
    return gmres(matrix, right, rtol=1e-11, atol=0.0, restart=200, maxiter=20)[0]


@inner
def _slot(table, rows, key, row):
    """The slot of the hash table `table` (slots, 2) for the key and the number of the configuration `row`."""
    slot = key & (len(table) - 1)
    while table[slot, 1] >= 0:
        same = table[slot, 0] == key
        for k in range(row.size):
            same = same and rows[table[slot, 1], k] == row[k]
        if same:
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def _explore(q, child, weights, table, rows, targets, chances):
    """Every configuration that follows from rows[0], breadth first, and the interactions that lead there.

    An agent of type i says word a with q[i, a], and becomes type child[i, a, b] once it has heard b. `weights` (types,)
    make the key of a configuration. Fills `rows` (configuration, type), and `targets` and `chances` (transition, failed
    or succeeded). Returns the number of rows, and the end of each row's transitions; stops early where room is lacking.
    """
    n_types, n_words, n_agents, n_rows, n, done = rows.shape[1], q.shape[1], 0, 1, 0, 0
    ends, row, after = np.zeros(len(rows) + 1, np.int64), np.empty_like(rows[0]), np.empty_like(rows[0])
    key, occupied = np.int64(0), np.empty(n_types, np.int64)
    for k in range(n_types):
        n_agents += rows[0, k]
        key += rows[0, k] * weights[k]
    table[key & (len(table) - 1), 0] = key
    table[key & (len(table) - 1), 1] = 0
    entry = np.full(len(rows), -1)  # where a row's transition to each target is kept, if not before the row's start
    while done < n_rows:
        key, n_occupied = np.int64(0), 0
        for k in range(n_types):
            row[k] = rows[done, k]
            key += row[k] * weights[k]
            if row[k] > 0:
                occupied[n_occupied] = k
                n_occupied += 1
        for pair in range(n_occupied * n_occupied):
            i, j = occupied[pair // n_occupied], occupied[pair % n_occupied]
            if i > j or (i == j and row[i] == 1):
                continue
            meet = row[i] * (row[j] - 1 if i == j else 2 * row[j]) / (n_agents * (n_agents - 1))
            for words in range(n_words * n_words):
                a, b = words // n_words, words % n_words
                if q[i, a] <= 0 or q[j, b] <= 0:
                    continue
                to_i, to_j = child[i, a, b], child[j, b, a]
                copy_to(after, row)
                after[i] -= 1
                after[j] -= 1
                after[to_i] += 1
                after[to_j] += 1
                new_key = key - weights[i] - weights[j] + weights[to_i] + weights[to_j]
                slot = _slot(table, rows, new_key, after)
                if n == len(targets) or (table[slot, 1] < 0 and n_rows == len(rows)):
                    return n_rows, ends[: done + 1]
                if table[slot, 1] < 0:
                    copy_to(rows[n_rows], after)
                    table[slot, 0], table[slot, 1] = new_key, n_rows
                    n_rows += 1
                target = table[slot, 1]
                if entry[target] < ends[done]:
                    entry[target], targets[n] = n, target
                    n += 1
                chances[entry[target], 1 if a == b else 0] += meet * q[i, a] * q[j, b]
        done += 1
        ends[done] = n
    return n_rows, ends[: done + 1]
