"""The minimal naming game agent by agent: an agent's inventory is a bit mask, so the lexicon may have 64 words.

Everything is exact: an interaction takes a uniformly random ordered pair of agents, a word is drawn from its inventory
without bias, and the bias p of two words is honoured to 63 bits.
"""

from __future__ import annotations

import numpy as np

from meanfield.toolbox import compiled, copy_to, inner
from theory.pairs import next_pair, pair_limits
from theory.streams import HALF_BITS, HALF_MASK, ONE, next_bits

NO_WORD = np.uint64(0)
TWO_WORDS = np.uint64(3)
SURELY = np.uint64(2**63)  # threshold of answers

# Sums of bits side by side, first in fields of two bits, then of four and of eight, which a product adds up.
PAIRS = np.uint64(0x5555555555555555)
NIBBLES = np.uint64(0x3333333333333333)
BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
ADD_BYTES = np.uint64(0x0101010101010101)
TWO = np.uint64(2)
FOUR = np.uint64(4)
TOP_BYTE = np.uint64(56)


@compiled
def n_held(inventory):
    """The number of words in an inventory."""
    pairs = inventory - ((inventory >> ONE) & PAIRS)
    nibbles = (pairs & NIBBLES) + ((pairs >> TWO) & NIBBLES)
    return (((nibbles + (nibbles >> FOUR)) & BYTES) * ADD_BYTES) >> TOP_BYTE


@inner
def is_single(inventory):
    return inventory != NO_WORD and inventory & (inventory - ONE) == NO_WORD


@compiled
def number_of(word):
    """The number of a word given as an inventory."""
    return np.int64(n_held(word - ONE))


@inner
def draw_word(inventory, s0, s1, s2, s3):
    """A uniformly random word of the inventory, and the stream after it: (word, s0, s1, s2, s3).

    Draws are rejected where the number of words does not divide 2^32, lest some words come up more often.
    Source: Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3.
    """
    n = n_held(inventory)
    reject = (ONE << HALF_BITS) % n
    while True:
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        product = (bits >> HALF_BITS) * n
        if (product & HALF_MASK) >= reject:
            break
    for _ in range(np.int64(product >> HALF_BITS)):
        inventory &= inventory - ONE  # without its first word
    return inventory & (~inventory + ONE), s0, s1, s2, s3


@inner
def utter(inventory, lexicon, first_word, first_invented, s0, s1, s2, s3):
    """The speaker's word, and the stream after it; a speaker without words invents one of the `lexicon`.

    `first_word` is the 63-bit threshold below which an agent with both of two words says the first, and
    `first_invented` the threshold of an agent without words.
    """
    if is_single(inventory):
        return inventory, s0, s1, s2, s3
    if lexicon == TWO_WORDS:  # it holds both or none
        bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
        limit = first_invented if inventory == NO_WORD else first_word
        return ONE << np.uint64((bits >> ONE) >= limit), s0, s1, s2, s3
    return draw_word(lexicon if inventory == NO_WORD else inventory, s0, s1, s2, s3)


@inner
def answer(limit, s0, s1, s2, s3):
    """Whether a hearer says yes, with a probability of `limit` / 2^63, and the stream after it."""
    if limit & (SURELY - ONE) == NO_WORD:
        return limit == SURELY, s0, s1, s2, s3
    bits, s0, s1, s2, s3 = next_bits(s0, s1, s2, s3)
    return (bits >> ONE) < limit, s0, s1, s2, s3


@inner
def place(inventory, n_words):
    """The place of an agent in the counts: at its only word, or behind all words."""
    return number_of(inventory) if is_single(inventory) else n_words


@compiled
def play_round(agents, counts, stream, absorbed, final, game, before, goes_on):
    """N interactions after `before` earlier ones, or up to consensus; returns how many of them were successes.

    Updates the inventories `agents` (N,), committed ones from `n_free` on, the numbers `counts` (W + 1,) of agents who
    hold each word only and of all others, and the stream. The first consensus is written to `absorbed` and `final`; a
    run that `goes_on` plays its round to the end. `game` are the rules, numbers alone: `n_free`; the `lexicon` of all
    words; thresholds of 63 bits for the first of two words, held or invented; whether only listeners collapse, and
    whether speakers keep what they invent; and thresholds for a yes to a word that the hearer holds, and to another.
    """
    n_free, lexicon, first_word, first_invented, listener_only, stores_invented, if_held, if_new = game
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    limits = pair_limits(agents.size)
    n_words = final.size
    watching = absorbed[0] < 0
    successes = 0
    for step in range(agents.size):
        i, j, s0, s1, s2, s3 = next_pair(limits, s0, s1, s2, s3)
        speaker = np.uint64(agents[i])
        hearer = np.uint64(agents[j])
        if speaker == hearer and is_single(speaker):
            success, s0, s1, s2, s3 = answer(if_held, s0, s1, s2, s3)
            successes += success
            continue
        word, s0, s1, s2, s3 = utter(speaker, lexicon, first_word, first_invented, s0, s1, s2, s3)
        success, s0, s1, s2, s3 = answer(if_held if (hearer & word) != NO_WORD else if_new, s0, s1, s2, s3)
        successes += success
        said = word if success and not listener_only else speaker | (word if stores_invented else NO_WORD)
        heard = word if success else hearer | word
        said = said if i < n_free else speaker
        heard = heard if j < n_free else hearer
        # Counted whether they change or not: a branch would be mispredicted, which costs more.
        counts[place(speaker, n_words)] -= 1
        counts[place(said, n_words)] += 1
        counts[place(hearer, n_words)] -= 1
        counts[place(heard, n_words)] += 1
        agents[i] = said
        agents[j] = heard
        if watching and counts[number_of(word)] == agents.size:
            write_consensus(absorbed, final, before + step + 1, number_of(word), counts)
            watching = False
            if not goes_on:
                break
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return successes


@inner
def write_consensus(absorbed, final, interaction, word, counts):
    absorbed[0] = interaction
    absorbed[1] = word
    copy_to(final, counts)


@compiled
def advance(active, runs, agents, game, n_rounds, least):
    """Plays up to `n_rounds` more rounds of the runs with the numbers `active`, at least up to round `least`."""
    n_agents = agents.shape[1]
    for k in range(active.size):
        run = active[k]
        counts, absorbed, final = runs.counts[run], runs.absorbed[run], runs.final[run]
        if runs.played[run] == 0:
            for word in range(final.size):
                if counts[word] == n_agents:
                    write_consensus(absorbed, final, runs.played[run], word, counts)
            if runs.recorded.shape[1] > 0:
                copy_to(runs.recorded[run, 0], counts)
        last = runs.played[run] + n_rounds
        while runs.played[run] < last and (absorbed[0] < 0 or runs.played[run] < least):
            before, goes_on = runs.played[run] * n_agents, runs.played[run] < least
            successes = play_round(agents[run], counts, runs.streams[run], absorbed, final, game, before, goes_on)
            runs.played[run] += 1
            if runs.played[run] < runs.recorded.shape[1]:
                copy_to(runs.recorded[run, runs.played[run]], counts)
                runs.marked[run, runs.played[run]] = successes
