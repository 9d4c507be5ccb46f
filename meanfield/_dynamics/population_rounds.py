"""Many finite populations side by side, agent by agent, as array operations for a GPU.

This inner loop of a simulator stands here because this room alone imports JAX; `validation` defines ensembles and
convergence. One step of the loop is one interaction in each run.

Random numbers are counter-based: those of an interaction depend only on the key, the number of the run and the number
of the interaction. Results therefore depend neither on the number and grouping of runs nor on how many interactions are
prepared at once.

The simulation is exact, as in the compiled loop for processors: the two agents are a uniformly random ordered pair of
different ones, without bias at any N < 2^32, and words are drawn with the policy's probabilities to 63 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Integer, UInt32, UInt64

PREPARED = 2**21  # interactions, of all runs together, whose random numbers are made at once: 24 to 32 bytes each
HALF_BITS = 32
HALF_MASK = 2**HALF_BITS - 1

# Source: Salmon, Moraes, Dror and Shaw 2011, Parallel random numbers: as easy as 1, 2, 3 (Philox4x32-10).
PHILOX_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
PHILOX_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
PHILOX_STEPS = 10

Words4 = tuple[Integer[Array, " ..."], Integer[Array, " ..."], Integer[Array, " ..."], Integer[Array, " ..."]]
Pair = tuple[UInt64[Array, " ..."], UInt64[Array, " ..."]]


class SpeechRules(NamedTuple):
    """What agents say and remember, over the states of all kinds of agents."""

    q: Float[Array, "states words"]
    thresholds: UInt64[Array, "states words-1"]  # a 63-bit draw u says the word Σ_k [u ≥ thresholds[state, k]]
    successors: Integer[Array, " states"]  # the next state is successors[state] + W·own + partner


class PopulationRuns(NamedTuple):
    """Runs of one population size that have played equally many rounds."""

    run: UInt32[Array, " runs"]  # numbers of the runs
    played: Int[Array, ""]  # rounds played by each of them
    states: Integer[Array, "runs agents"]  # states of the agents
    agreed: Int[Array, "runs window words"]  # agreements on each word in the last rounds, int64
    consensus_round: Int[Array, " runs"]  # int64, 0 before consensus
    consensus_word: Int[Array, " runs"]  # int64, -1 before consensus


class RoundRecords(NamedTuple):
    """Observables of each round; zeros for rounds that were not played, empty for observables that are not recorded."""

    word_share: Float[Array, "rounds runs words"]  # at the end of the round
    said: Int[Array, "rounds runs words"]  # how often each word was said
    agreed: Int[Array, "rounds runs"]  # number of interactions in which both agents said the same word


@partial(jax.jit, static_argnames=("recorded", "observables"), donate_argnums=0)
def play_rounds(
    runs: PopulationRuns,
    rules: SpeechRules,
    key: UInt64[Array, ""],
    n_rounds: Int[Array, ""],
    test: Int[Array, " 2"],
    recorded: int = 0,
    observables: tuple[str, ...] = ("word_share",),
) -> tuple[PopulationRuns, RoundRecords]:
    """Play `n_rounds` more rounds of N interactions in every run, and return the runs and their records.

    Parameters
    ----------
    runs
        Its arrays may be overwritten.
    rules
        Policies as integers.
    key
        64 bits, the same for all runs of an ensemble, which differ by their numbers.
    n_rounds
        How many rounds.
    test
        The first round after which convergence is tested, and the agreements in the last rounds that it takes.
    recorded
        How many rounds to record, counted from the first of these.
    observables
        Fields of `RoundRecords` to record.
    """
    shares, said, agreed = (recorded if name in observables else 0 for name in RoundRecords._fields)
    n_runs, n_words = len(runs.run), rules.q.shape[1]

    def one_more(k: Int[Array, ""], carry: tuple[PopulationRuns, RoundRecords]) -> tuple[PopulationRuns, RoundRecords]:
        runs, records = carry
        runs, uttered = _round(runs, rules, key, n_words if said else 0)
        runs = _tested(runs, rules, test)
        if shares:
            share = _word_share(runs.states, rules.q)
            records = records._replace(word_share=records.word_share.at[k].set(share, mode="drop"))
        if said:
            records = records._replace(said=records.said.at[k].set(uttered, mode="drop"))
        if agreed:
            latest = runs.agreed[:, (runs.played - 1) % runs.agreed.shape[1]].sum(1)
            records = records._replace(agreed=records.agreed.at[k].set(latest, mode="drop"))
        return runs, records

    none = RoundRecords(
        jnp.zeros((shares, n_runs, n_words)),
        jnp.zeros((said, n_runs, n_words), jnp.int64),
        jnp.zeros((agreed, n_runs), jnp.int64),
    )
    return lax.fori_loop(0, n_rounds, one_more, (runs, none))


@jax.jit
def select_runs(runs: PopulationRuns, which: Int[Array, " selected"]) -> PopulationRuns:
    """The runs at the positions `which`."""
    rest = {name: values[which] for name, values in runs._asdict().items() if name != "played"}
    return PopulationRuns(played=runs.played, **rest)


def _round(
    runs: PopulationRuns, rules: SpeechRules, key: UInt64[Array, ""], counted: int
) -> tuple[PopulationRuns, Int[Array, "runs counted"]]:
    """One more round, and how often each of the first `counted` words was said in it."""
    n_runs, n_agents = runs.states.shape
    begin = runs.played.astype(jnp.uint64) * n_agents
    length = max(1, min(n_agents, PREPARED // n_runs))
    whole, rest = divmod(n_agents, length)

    def part(k: Integer[Array, ""], carry: tuple[Array, Array, Array], size: int) -> tuple[Array, Array, Array]:
        first = begin + k.astype(jnp.uint64) * length
        return _interactions(*carry, rules, *draw_interactions(key, runs.run, first, size, n_agents))

    agreed, uttered = (jnp.zeros((n_runs, n_words), jnp.int64) for n_words in (rules.q.shape[1], counted))
    carry = runs.states, agreed, uttered
    carry = lax.fori_loop(0, whole, partial(part, size=length), carry)
    if rest:
        carry = part(jnp.asarray(whole), carry, rest)
    states, agreed, uttered = carry
    agreed = runs.agreed.at[:, runs.played % runs.agreed.shape[1]].set(agreed)
    return runs._replace(states=states, agreed=agreed, played=runs.played + 1), uttered


def _interactions(
    states: Integer[Array, "runs agents"],
    agreed: Int[Array, "runs words"],
    uttered: Int[Array, "runs counted"],
    rules: SpeechRules,
    agents: Integer[Array, "interactions runs 2"],
    bits: UInt64[Array, "interactions runs 2"],
) -> tuple[Integer[Array, "runs agents"], Int[Array, "runs words"], Int[Array, "runs counted"]]:
    """Interactions one after the other, in all runs at once; words beyond the width of `uttered` are not counted."""
    rows = jnp.arange(len(states))[:, None]
    n_words = rules.q.shape[1]

    def one(carry: tuple[Array, Array, Array], drawn: tuple[Array, Array]) -> tuple[tuple[Array, Array, Array], None]:
        states, agreed, uttered = carry
        who, draw = drawn
        state = states.at[rows, who].get(mode="promise_in_bounds")
        said = (draw[..., None] >= rules.thresholds[state]).sum(-1, dtype=jnp.int32)
        memory = rules.successors[state] + n_words * said + said[:, ::-1]
        # The two are different agents, so that neither's memory is written over by the other's.
        states = states.at[rows, who].set(memory.astype(states.dtype), mode="promise_in_bounds", unique_indices=True)
        agrees = (said[:, :1] == said[:, 1:]) & (said[:, :1] == jnp.arange(n_words))
        times = (said[..., None] == jnp.arange(uttered.shape[1])).sum(1)
        return (states, agreed + agrees, uttered + times), None

    return lax.scan(one, (states, agreed, uttered), (agents, bits >> 1))[0]


def _tested(runs: PopulationRuns, rules: SpeechRules, test: Int[Array, " 2"]) -> PopulationRuns:
    """The runs, with the newly converged ones marked."""
    agreements = runs.agreed.sum(1)
    new = (runs.consensus_round == 0) & (runs.played >= test[0]) & (agreements.sum(1) >= test[1])
    # Word shares take as long as a good part of a round, and are wanted in few.
    word = lax.cond(
        new.any(), lambda: _agreed_word(agreements, _word_share(runs.states, rules.q)), lambda: runs.consensus_word
    )
    return runs._replace(
        consensus_round=jnp.where(new, runs.played, runs.consensus_round),
        consensus_word=jnp.where(new, word, runs.consensus_word),
    )


def _agreed_word(agreements: Int[Array, "runs words"], share: Float[Array, "runs words"]) -> Int[Array, " runs"]:
    """The word agreed on most often; among equals the one that is likelier to be said next."""
    most = agreements == agreements.max(1, keepdims=True)
    return jnp.where(most, share, -1.0).argmax(1)


def _word_share(states: Integer[Array, "runs agents"], q: Float[Array, "states words"]) -> Float[Array, "runs words"]:
    return q[states].mean(1)


def draw_interactions(
    key: UInt64[Array, ""], run: UInt32[Array, " runs"], first: UInt64[Array, ""], length: int, n_agents: int
) -> tuple[Integer[Array, "{length} runs 2"], UInt64[Array, "{length} runs 2"]]:
    """The two agents, and 64 bits for the word of each, of the interactions from number `first` on in each run."""
    number = first + jnp.arange(length, dtype=jnp.uint64)[:, None]

    def block(which: Integer[Array, ""]) -> Pair:
        counter = _low(number), _low(number >> HALF_BITS), run[None], which.astype(jnp.uint32)
        return _joined(philox(jnp.broadcast_arrays(*counter), key))

    agents = choose_pairs(lambda attempt: block(attempt + 1), (length, len(run)), n_agents)
    return agents, jnp.stack(block(jnp.asarray(0)), axis=-1)


def choose_pairs(
    attempt: Callable[[Integer[Array, ""]], Pair], shape: tuple[int, int], n_agents: int
) -> Integer[Array, "interactions runs 2"]:
    """Ordered pairs of different agents, all equally likely; `attempt(k)` gives the bits of the k-th attempt."""

    def refused(carry: tuple[Array, ...]) -> Bool[Array, ""]:
        return ~carry[1].all()

    def again(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, accepted, first, second = carry
        bits_first, bits_second = attempt(k)
        new_first, fair_first = uniform_below(bits_first, n_agents)
        new_second, fair_second = uniform_below(bits_second, n_agents - 1)
        first, second = jnp.where(accepted, first, new_first), jnp.where(accepted, second, new_second)
        return k + 1, accepted | (fair_first & fair_second), first, second

    none = jnp.zeros(shape, jnp.uint64)
    *_, first, second = lax.while_loop(refused, again, (jnp.asarray(0), none > 0, none, none))
    index = jnp.int32 if n_agents <= jnp.iinfo(jnp.int32).max else jnp.int64
    return jnp.stack([first, second + (second >= first)], axis=-1).astype(index)


def uniform_below(bits: UInt64[Array, " ..."], n: int) -> tuple[UInt64[Array, " ..."], Bool[Array, " ..."]]:
    """A number below n < 2^32 from 64 bits, and whether to accept it; accepted numbers are equally likely.

    The number is the integer part of bits · n / 2^64. Each number has ⌊2^64 / n⌋ or one more values of `bits`; if one
    more, the first is rejected. Source: Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3.
    """
    low = (bits & HALF_MASK) * n
    high = (bits >> HALF_BITS) * n + (low >> HALF_BITS)
    remainder = (high & HALF_MASK) << HALF_BITS | (low & HALF_MASK)
    return high >> HALF_BITS, remainder >= jnp.uint64(2**64 % n)


def philox(counter: list[Array] | Words4, key: UInt64[Array, ""]) -> Words4:
    """128 random bits as four uint32, from a counter of 128 bits and a key of 64."""
    c0, c1, c2, c3 = counter
    k0, k1 = _low(key), _low(key >> HALF_BITS)
    for _ in range(PHILOX_STEPS):
        p0, p1 = (c.astype(jnp.uint64) * m for c, m in zip((c0, c2), PHILOX_MULTIPLIERS, strict=True))
        c0, c1, c2, c3 = _low(p1 >> HALF_BITS) ^ c1 ^ k0, _low(p1), _low(p0 >> HALF_BITS) ^ c3 ^ k1, _low(p0)
        k0, k1 = (k + jnp.uint32(w) for k, w in zip((k0, k1), PHILOX_INCREMENTS, strict=True))
    return c0, c1, c2, c3


def _low(x: UInt64[Array, " ..."]) -> UInt32[Array, " ..."]:
    return x.astype(jnp.uint32)


def _joined(words: Words4) -> Pair:
    w0, w1, w2, w3 = (w.astype(jnp.uint64) for w in words)
    return w0 << HALF_BITS | w1, w2 << HALF_BITS | w3
