"""Batches of interactions that share no agent, drawn all at once, and the exact integer draws that they need.

The length of a batch depends on N alone, as in the birthday problem. Its 2L agents are drawn without replacement, so
the initiators' states, the responders' states and the pairs of states are multivariate hypergeometric. Outcomes of
equal pairs are multinomial, since no interaction of the batch sees another's result. Source: Berenbrink, Hammer,
Kaaser, Meyer, Penschuck and Tran 2020, arXiv 2005.03584.

All draws take their bits from the run's stream. They are exact up to the rounding of doubles: the relative error of a
probability is at most about 1e-11, also for 10^12 agents.
"""

from __future__ import annotations

import math

import numpy as np

from meanfield.toolbox import compiled, inner
from theory.streams import HALF_BITS, HALF_MASK, ONE, next_bits

ALL_BITS = np.uint64(2**64 - 1)
UNIT_SHIFT = np.uint64(11)
UNIT = 2.0**-53

# Means up to which counting up from 0 is faster than rejection, as measured.
INVERSION_MEAN = 30.0
# P(0) is a product up to this length, and longer ones come from Stirling's series.
PRODUCT_LENGTH = 16
# Stirling's series with four terms is exact to double precision from here on.
STIRLING_FROM = 16
# Up to the longest batches of 10^6 agents; beyond, sums of logarithms lose digits.
LOG_FACTORIAL = np.array([math.lgamma(k + 1.0) for k in range(4096)])
# The hat of the ratio of uniforms, 2·sqrt(2/e) and 3 - 2·sqrt(3/e): Stadlober 1990, J. Comput. Appl. Math. 31, 181.
HAT_SLOPE = 2 * math.sqrt(2 / math.e)
HAT_SHIFT = 3 - 2 * math.sqrt(3 / math.e)


@inner
def draw_bits(stream):
    bits, stream[0], stream[1], stream[2], stream[3] = next_bits(stream[0], stream[1], stream[2], stream[3])
    return bits


@inner
def draw_uniform(stream):
    """Uniform in (0, 1], a multiple of 2^-53."""
    return (np.float64(draw_bits(stream) >> UNIT_SHIFT) + 1.0) * UNIT


@inner
def draw_below(stream, n):
    """Uniform from 0 to n - 1, exactly: draws that would favour some numbers are repeated.

    Source: Lemire 2019, ACM Trans. Model. Comput. Simul. 29, 3, which needs no division below 2^32.
    """
    bound = np.uint64(n)
    while bound <= HALF_MASK:
        product = (draw_bits(stream) >> HALF_BITS) * bound
        low = product & HALF_MASK
        if low >= bound or low >= (ONE << HALF_BITS) % bound:
            return np.int64(product >> HALF_BITS)
    while True:
        bits = draw_bits(stream)
        rest = bits % bound
        if bits - rest <= ALL_BITS - (bound - ONE):
            return np.int64(rest)


@inner
def draw_entry(stream, numbers, total):
    """An index k with probability numbers[k] / total."""
    left = draw_below(stream, total)
    k = 0
    while left >= numbers[k]:
        left -= numbers[k]
        k += 1
    return k


@inner
def stirling_rest(x):
    """log x! less (x + ½) log x - x + ½ log 2π."""
    y = 1.0 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y / 1680))) / x


@inner
def log_factorial(x):
    if x < LOG_FACTORIAL.size:
        return LOG_FACTORIAL[x]
    return (x + 0.5) * math.log(x) - x + 0.5 * math.log(2 * math.pi) + stirling_rest(np.float64(x))


@compiled
def log_factorial_ratio(a, d):
    """log((a + d)! / a!), without the cancellation that log-factorials of 10^8 would suffer in their seventh digit."""
    b = a + d
    if min(a, b) < STIRLING_FROM or max(a, b) < LOG_FACTORIAL.size:
        return log_factorial(b) - log_factorial(a)
    start, end, step = np.float64(a), np.float64(b), np.float64(d)
    # (b + ½)·log(1 + d/a) - d is what the four terms of a hypergeometric ratio differ by; d·log(a) nearly cancels
    shape = (end + 0.5) * math.log1p(step / start) - step
    return step * math.log(start) + shape + stirling_rest(end) - stirling_rest(start)


@inner
def accepts(u, log_ratio):
    """Whether u² ≤ exp(log_ratio); the first two tests spare most logarithms."""
    if u * (4.0 - u) - 3.0 <= log_ratio:
        return True
    if u * (u - log_ratio) >= 1.0:
        return False
    return 2.0 * math.log(u) <= log_ratio


@inner
def rejected_hypergeometric(stream, few, many, drawn):
    """HRUA, for few ≤ many and 2·drawn ≤ few + many, by ratio of uniforms: Stadlober 1990."""
    total = few + many
    p = few / total
    centre = drawn * p + 0.5
    variance = np.float64(total - drawn) * drawn * p * (many / total) / (total - 1)
    width = HAT_SLOPE * math.sqrt(variance + 0.5) + HAT_SHIFT
    mode = np.int64((drawn + 1.0) * (few + 1.0) / (total + 2.0))
    end = min(drawn, few) + 1.0
    while True:
        u = draw_uniform(stream)
        x = centre + width * (draw_uniform(stream) - 0.5) / u
        if x < 0.0 or x >= end:
            continue
        k = np.int64(x)
        step = k - mode
        log_ratio = -(
            log_factorial_ratio(mode, step)
            + log_factorial_ratio(few - mode, -step)
            + log_factorial_ratio(drawn - mode, -step)
            + log_factorial_ratio(many - drawn + mode, step)
        )
        if accepts(u, log_ratio):
            return k


@inner
def inverted_hypergeometric(stream, few, many, drawn):
    total = few + many
    short, long = min(few, drawn), max(few, drawn)
    if short <= PRODUCT_LENGTH:
        chance = 1.0
        for i in range(short):
            chance *= np.float64(total - long - i) / np.float64(total - i)
    else:
        chance = math.exp(log_factorial_ratio(total, -short) - log_factorial_ratio(total - long, -short))
    left = draw_uniform(stream)
    k = 0
    rest = np.float64(total - short - long)
    while left > chance and k < short:
        left -= chance
        chance *= (np.float64(short - k) * np.float64(long - k)) / ((k + 1.0) * (rest + k + 1.0))
        k += 1
    return k


@compiled
def draw_hypergeometric(stream, good, bad, sample):
    """Number of good ones among `sample` agents drawn without replacement from good + bad."""
    total = good + bad
    drawn = min(sample, total - sample)
    few, many = min(good, bad), max(good, bad)
    if drawn == 0 or few == 0:
        k = np.int64(0)
    elif np.float64(drawn) * np.float64(few) <= INVERSION_MEAN * total:
        k = np.int64(inverted_hypergeometric(stream, few, many, drawn))
    else:
        k = np.int64(rejected_hypergeometric(stream, few, many, drawn))
    if good > bad:
        k = drawn - k
    return good - k if drawn < sample else k


@inner
def rejected_binomial(stream, n, p):
    """For p ≤ ½, by ratio of uniforms: Stadlober 1990."""
    centre = n * p + 0.5
    width = HAT_SLOPE * math.sqrt(n * p * (1.0 - p) + 0.5) + HAT_SHIFT
    mode = np.int64((n + 1.0) * p)
    log_odds = math.log(p / (1.0 - p))
    while True:
        u = draw_uniform(stream)
        x = centre + width * (draw_uniform(stream) - 0.5) / u
        if x < 0.0 or x >= n + 1.0:
            continue
        k = np.int64(x)
        step = k - mode
        log_ratio = step * log_odds - log_factorial_ratio(mode, step) - log_factorial_ratio(n - mode, -step)
        if accepts(u, log_ratio):
            return k


@compiled
def draw_binomial(stream, n, p):
    """Number of successes in n trials, each with probability p."""
    rare = min(p, 1.0 - p)
    if rare <= 0.0 or n == 0:
        k = np.int64(0)
    elif n * rare > INVERSION_MEAN:
        k = np.int64(rejected_binomial(stream, n, rare))
    else:
        k = np.int64(0)
        chance = math.exp(n * math.log1p(-rare))
        left = draw_uniform(stream)
        while left > chance and k < n:
            left -= chance
            chance *= (np.float64(n - k) * rare) / ((k + 1.0) * (1.0 - rare))
            k += 1
    return n - k if p > 0.5 else k


@inner
def draw_agents(stream, counts, total, sample, drawn):
    """Moves `sample` of the `total` agents in `counts` (K,), drawn without replacement, into `drawn` (K,)."""
    for state in range(counts.size):
        k = draw_hypergeometric(stream, counts[state], total - counts[state], sample) if sample > 0 else 0
        total -= counts[state]
        sample -= k
        drawn[state] = k
        counts[state] -= k


@inner
def chosen_row(first_row, thresholds, pair, bits):
    """The row of the pair's outcome, given 64 random bits."""
    draw = bits >> ONE
    row = first_row[pair]
    last = first_row[pair + 1] - 1
    while row < last and draw >= thresholds[row]:
        row += 1
    return row


@inner
def draw_outcomes(stream, pair, number, first_row, after, chance, touched, rows, numbers, n_rows):
    """Adds the outcomes of `number` interactions of the pair to `touched`, `rows` and `numbers`."""
    for row in range(first_row[pair], first_row[pair + 1]):
        if number == 0:
            break
        k = draw_binomial(stream, number, chance[row]) if chance[row] < 1.0 else number
        if k > 0:
            number -= k
            touched[after[row, 0]] += k
            touched[after[row, 1]] += k
            rows[n_rows] = row
            numbers[n_rows] = k
            n_rows += 1
    return n_rows


@inner
def play_batch(stream, counts, total, length, first_row, after, chance, initiators, responders, touched, rows, numbers):
    """`length` interactions among `total` agents, none twice: from `counts` to `touched`, in their new states.

    Returns how many outcomes occurred; `rows` names them and `numbers` counts each.
    """
    draw_agents(stream, counts, total, length, initiators)
    draw_agents(stream, counts, total - length, length, responders)
    n_rows = np.int64(0)  # a literal would be a type of its own
    unmatched = length
    for i in range(counts.size):
        sample, total = initiators[i], unmatched
        unmatched -= initiators[i]
        for j in range(counts.size):
            if sample == 0:
                break
            k = draw_hypergeometric(stream, responders[j], total - responders[j], sample)
            total -= responders[j]
            responders[j] -= k
            sample -= k
            if k > 0:
                pair = i * counts.size + j
                n_rows = draw_outcomes(stream, pair, k, first_row, after, chance, touched, rows, numbers, n_rows)
    return n_rows
