"""The agents of the surrogate, many populations side by side, with derivatives in all free parameters.

Derivatives go forward with the agents, so the data of a round stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numba import get_num_threads, njit

# Populations side by side. Each loop over them has one statement and few arrays: otherwise the compiler cannot prove
# that they don't overlap, and the loop is four times slower.
LANES = 32
LEAST_WIDTH = 1e-3  # keeps quantiles and probabilities smooth where a width goes to zero
LARGEST = 19.0  # tanh is 1 to the last digit beyond it
SHARPNESS, CUBIC = 0.7978845608, 0.044715

T = TypeVar("T")
R = TypeVar("R")
options = {"cache": True, "error_model": "numpy", "fastmath": {"contract"}}


def side_by_side(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The function of each item, in order, by as many threads as numba has.

    Meant for whole searches: threads that share one play of the agents wait for each other most of the time.
    """
    with ThreadPoolExecutor(get_num_threads()) as pool:
        yield from pool.map(function, items)


@njit(**options)
def smooth_tanh(x):
    """tanh(x) to 1e-13, vectorised over lanes: exp(2x) is the 64th power of its series, cut at y¹¹."""
    y = (LARGEST if x > LARGEST else -LARGEST if x < -LARGEST else x) / 32.0
    low = 1.0 + y * (1.0 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120)))))
    high = 1 / 720 + y * (1 / 5040 + y * (1 / 40320 + y * (1 / 362880 + y * (1 / 3628800 + y * (1 / 39916800)))))
    e2 = (low + y * y * y * y * y * y * high) ** 2
    e4 = e2 * e2
    e8 = e4 * e4
    e16 = e8 * e8
    e32 = e16 * e16
    return 1.0 - 2.0 / (1.0 + e32 * e32)


@njit(**options)
def smooth_cdf(x):
    """Φ(x) to 2e-4, and its derivative. Source: Page 1977, Applied Statistics 26, 75."""
    t = smooth_tanh(SHARPNESS * (x + CUBIC * x * x * x))
    return 0.5 + 0.5 * t, 0.5 * (1.0 - t * t) * SHARPNESS * (1.0 + 3.0 * CUBIC * x * x)


@njit(**options)
def draw_quantiles(uniform, levels, offsets, slopes, h):
    """Writes fields (1 + P, N, lanes): offsets[j] + slopes[j] u at a level u between those numbered j and j + 1."""
    for i in range(uniform.shape[0]):
        for lane in range(uniform.shape[1]):
            u = uniform[i, lane]
            j = min(np.searchsorted(levels, u, side="right"), levels.size - 1) - 1
            for p in range(h.shape[0]):
                h[p, i, lane] = offsets[p, j] + slopes[p, j] * u


@njit(**options)
def hear(rules, belief, z, decay, mean, heard, gain):
    """Writes what agents with these beliefs hear in a round with the normal numbers z, all of shape (N, lanes).

    `mean` is the mean of what the others say; derivatives need decay = 1 - tanh² and gain = ∂belief/∂mean.
    """
    n, lanes = belief.shape
    J, beta, alpha = rules
    share, total = 1.0 / (n - 1), np.zeros(lanes)
    for i in range(n):
        for lane in range(lanes):
            decay[i, lane] = smooth_tanh(beta * belief[i, lane])
        for lane in range(lanes):
            total[lane] += decay[i, lane]
    one = 1.0 + LEAST_WIDTH * LEAST_WIDTH
    for i in range(n):
        for lane in range(lanes):
            mean[i, lane] = (total[lane] - decay[i, lane]) * share
        for lane in range(lanes):
            heard[i, lane] = mean[i, lane] + z[i, lane] * np.sqrt(one - mean[i, lane] * mean[i, lane])
        for lane in range(lanes):
            drop = mean[i, lane] / np.sqrt(one - mean[i, lane] * mean[i, lane])
            gain[i, lane] = alpha * J * (1.0 - z[i, lane] * drop)
        for lane in range(lanes):
            decay[i, lane] = 1.0 - decay[i, lane] * decay[i, lane]


@njit(**options)
def listen(rules, h, heard, belief):
    J, _, alpha = rules
    for i in range(belief.shape[0]):
        for lane in range(belief.shape[1]):
            belief[i, lane] += alpha * (h[i, lane] + J * heard[i, lane] - belief[i, lane])


@njit(**options)
def push(rules, drules, belief, decay, heard, gain, h, dh, db, dmean):
    """Carries one derivative of the beliefs, db (N, lanes), over this round; writes dmean, of the others' mean."""
    n, lanes = belief.shape
    J, beta, alpha = rules
    dJ, dbeta, dalpha = drules
    moved = dJ != 0.0 or dbeta != 0.0 or dalpha != 0.0
    share, dtotal = 1.0 / (n - 1), np.zeros(lanes)
    for i in range(n):
        for lane in range(lanes):
            dmean[i, lane] = beta * decay[i, lane] * db[i, lane]
        if moved:
            for lane in range(lanes):
                dmean[i, lane] += dbeta * decay[i, lane] * belief[i, lane]
        for lane in range(lanes):
            dtotal[lane] += dmean[i, lane]
    for i in range(n):
        for lane in range(lanes):
            dmean[i, lane] = (dtotal[lane] - dmean[i, lane]) * share
        for lane in range(lanes):
            db[i, lane] += alpha * (dh[i, lane] - db[i, lane]) + gain[i, lane] * dmean[i, lane]
        if moved:
            for lane in range(lanes):
                db[i, lane] += alpha * dJ * heard[i, lane]
            for lane in range(lanes):
                db[i, lane] += dalpha * (h[i, lane] + J * heard[i, lane] - belief[i, lane])


@njit(**options)
def vote(rules, belief, mean, votes, density, argument):
    """Writes the chances (N, lanes) of votes for the truth over the last message, which is not drawn."""
    one, size = 1.0 + LEAST_WIDTH * LEAST_WIDTH, rules[2] * rules[0]
    for i in range(belief.shape[0]):
        for lane in range(belief.shape[1]):
            # With J or α near 0 the last message hardly counts, and votes are nearly decided before it.
            width = size * np.sqrt(one - mean[i, lane] * mean[i, lane]) + LEAST_WIDTH
            argument[i, lane] = belief[i, lane] / width
        for lane in range(belief.shape[1]):
            votes[i, lane], density[i, lane] = smooth_cdf(argument[i, lane])
        for lane in range(belief.shape[1]):  # by how much a vote goes up with the belief
            density[i, lane] /= size * np.sqrt(one - mean[i, lane] * mean[i, lane]) + LEAST_WIDTH


@njit(**options)
def push_vote(rules, drules, mean, dmean, density, argument, db, dvotes):
    one, size = 1.0 + LEAST_WIDTH * LEAST_WIDTH, rules[2] * rules[0]
    dsize = drules[2] * rules[0] + rules[2] * drules[0]
    for i in range(mean.shape[0]):
        for lane in range(mean.shape[1]):
            spread = np.sqrt(one - mean[i, lane] * mean[i, lane])
            dvotes[i, lane] = dsize * spread - size * mean[i, lane] * dmean[i, lane] / spread
        for lane in range(mean.shape[1]):
            dvotes[i, lane] = density[i, lane] * (db[i, lane] - argument[i, lane] * dvotes[i, lane])


@njit(**options)
def count(votes, thresholds, counted, width, z, density, sums):
    """Adds the lanes below `counted` to `sums` (5,); writes their width, z and density (4, lanes)."""
    n = votes.shape[0]
    for lane in range(counted):
        mean, variance = 0.0, LEAST_WIDTH
        for i in range(n):
            mean += votes[i, lane]
            variance += votes[i, lane] * (1.0 - votes[i, lane])
        width[lane] = np.sqrt(variance)
        for k in range(thresholds.size):
            z[k, lane] = (thresholds[k] - 0.5 - mean) / width[lane]
            below, density[k, lane] = smooth_cdf(z[k, lane])
            sums[k] += below
        sums[thresholds.size] += mean / n


@njit(**options)
def push_count(votes, dvotes, counted, width, z, density, dsums):
    """The derivative of `count`."""
    n, lanes = votes.shape
    dmean, dvariance = np.zeros(lanes), np.zeros(lanes)
    for i in range(n):
        for lane in range(lanes):
            dmean[lane] += dvotes[i, lane]
        for lane in range(lanes):
            dvariance[lane] += (1.0 - 2.0 * votes[i, lane]) * dvotes[i, lane]
    for lane in range(counted):
        dwidth = dvariance[lane] / (2.0 * width[lane])
        for k in range(z.shape[0]):
            dsums[k] -= density[k, lane] * (dmean[lane] + z[k, lane] * dwidth) / width[lane]
        dsums[z.shape[0]] += dmean[lane] / n


@njit(nogil=True, **options)
def play_smoothly(uniform, normal, populations, levels, offsets, slopes, rules, thresholds, sums):
    """Writes into `sums` (blocks, 1 + P, 5) sums over the populations of a block and their derivatives.

    The sums are of the probabilities of fewer votes for the truth than each of four `thresholds`, and of the share of
    these votes.

    Parameters
    ----------
    uniform, normal
        (blocks, N, lanes) for fields, and (blocks, rounds, N, lanes) for all messages but the last.
    populations
        Number of populations; the lanes after them are not counted.
    levels, offsets, slopes
        As for `draw_quantiles`: (GRID,), (1 + P, GRID - 1) and the same.
    rules
        (1 + P, 3): J, β and α, and their derivatives.
    """
    shape, points = uniform.shape[1:], len(rules) - 1
    for block in range(uniform.shape[0]):
        h, mean, decay = np.empty((1 + points, *shape)), np.empty(shape), np.empty(shape)
        heard, gain, dmean = np.empty(shape), np.empty(shape), np.empty(shape)
        votes, density, argument = np.empty(shape), np.empty(shape), np.empty(shape)
        width, z, steep = np.empty(shape[1]), np.empty((4, shape[1])), np.empty((4, shape[1]))
        draw_quantiles(uniform[block], levels, offsets, slopes, h)
        belief = h.copy()
        for message in range(normal.shape[1]):
            hear(rules[0], belief[0], normal[block, message], decay, mean, heard, gain)
            for p in range(1, 1 + points):
                push(rules[0], rules[p], belief[0], decay, heard, gain, h[0], h[p], belief[p], dmean)
            listen(rules[0], h[0], heard, belief[0])
        hear(rules[0], belief[0], np.zeros(shape), decay, mean, heard, gain)
        last = belief[0].copy()
        listen(rules[0], h[0], heard, last)
        vote(rules[0], last, mean, votes, density, argument)
        counted = min(shape[1], populations - shape[1] * block)
        sums[block] = 0.0
        count(votes, thresholds, counted, width, z, steep, sums[block, 0])
        for p in range(1, 1 + points):
            push(rules[0], rules[p], belief[0], decay, heard, gain, h[0], h[p], belief[p], dmean)
            push_vote(rules[0], rules[p], mean, dmean, density, argument, belief[p], dmean)
            push_count(votes, dmean, counted, width, z, steep, sums[block, p])
