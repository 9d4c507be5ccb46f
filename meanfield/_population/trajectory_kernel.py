"""Compiled solver of the rate equation: Tsitouras' pair with its step size control."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from meanfield._numerics.compiled import compiled, copy_to
from meanfield._numerics.tsit5 import ERROR, INTERPOLANT, STAGES

WEIGHTS = np.array([[*weights, *[0.0] * (len(STAGES) - len(weights))] for weights in STAGES])
# What a solution is not of: a reaction model has no mixture, and a mixture no moves.
NO_MIXTURE = np.empty((0, 0, 0)), np.empty(0), np.empty(0)
NO_MOVES = *(np.empty(0, np.int64) for _ in range(3)), np.empty(0), np.empty((0, 0)), np.empty(0)
FIRST_STEP = 0.1
LEAST_WORK = 64  # steps of a solution, about
SAFETY, LEAST_FACTOR, LARGEST_FACTOR, ORDER = 0.9, 0.2, 10.0, 5


@compiled
@no_type_check
def say(x, q, share, said):
    """Write the word share of all agents, Σ_m s_m Σ_i x_m(i) q_m(i)."""
    said[:] = 0.0
    for m in range(x.shape[0]):
        for i in range(x.shape[1]):
            for w in range(len(said)):
                said[w] += share[m] * x[m, i] * q[m, i, w]


@compiled
@no_type_check
def drift(x, q, share, committed, slope, work):
    """Write dx/dt of `mixture_drift` and return max|dx/dt|."""
    W, S = q.shape[2], x.shape[1]
    D = W * W
    kept = (S - 1) // D  # memories of less than H interactions
    longest = (kept - 1) // D  # where those of H - 1 begin
    Q, said = np.zeros(W), np.empty(W)
    for w in range(W):
        Q[w] = committed[w]
    for m in range(x.shape[0]):
        total = 0.0
        said[:] = 0.0
        for i in range(S):
            for w in range(W):
                said[w] += x[m, i] * q[m, i, w]
        for w in range(W):
            total += said[w]
        for w in range(W):
            Q[w] += share[m] * said[w] / total
    largest = 0.0
    for m in range(x.shape[0]):
        for k in range(kept):
            for w in range(W):
                work[k, w] = x[m, k] * q[m, k, w]
        for first in range(kept, S, kept - longest):
            for k in range(longest, kept):
                i = first + k - longest
                for w in range(W):
                    work[k, w] += x[m, i] * q[m, i, w]
        slope[m, 0] = -x[m, 0]
        largest = max(largest, abs(slope[m, 0]))
        for k in range(kept):
            for own in range(W):
                for partner in range(W):
                    i = 1 + D * k + W * own + partner
                    slope[m, i] = work[k, own] * Q[partner] - x[m, i]
                    largest = max(largest, abs(slope[m, i]))
    return largest


@compiled
@no_type_check
def drift_by_moves(x, source, target, field, rate, fields, offset, slope):
    """Write dx/dt of a reaction model from its `Moves` and return max|dx/dt|."""
    strength = offset.copy()
    for f in range(len(offset)):
        for i in range(len(x)):
            strength[f] += fields[f, i] * x[i]
    slope[:] = 0.0
    for e in range(len(source)):
        flux = rate[e] * strength[field[e]] * x[source[e]]
        slope[target[e]] += flux
        slope[source[e]] -= flux
    largest = 0.0
    for i in range(len(x)):
        largest = max(largest, abs(slope[i]))
    return largest


@compiled
@no_type_check
def slope_of(x, mixture, moves, slope, work):
    """Write dx/dt of a mixture, or of a reaction model if the mixture is empty, and return max|dx/dt|."""
    q, share, committed = mixture
    if len(q):
        return drift(x, q, share, committed, slope, work)
    source, target, field, rate, fields, offset = moves
    return drift_by_moves(x[0], source, target, field, rate, fields, offset, slope[0])


@compiled
@no_type_check
def observe(x, mixture, seen):
    """Write the word share of a mixture, or the composition of a reaction model if the mixture is empty."""
    q, share, _ = mixture
    if len(q):
        say(x, q, share, seen)
    else:
        copy_to(seen, x[0])


@compiled
@no_type_check
def follow(x, mixture, moves, times, limits, observed):
    """Follow one solution until the time `end` or until it rests; x is overwritten with its end.

    `limits` are end, rtol, atol, first step, max|dx/dt| at rest, and the largest number of steps. Writes the
    observables at the times, and returns the time at the end and max|dx/dt| there, -1 after too many steps.
    """
    end, rtol, atol, step, at_rest, max_steps = limits
    M, S, W = *x.shape, observed.shape[1]
    n = M * S
    k, after, work = np.empty((7, M, S)), np.empty((M, S)), np.empty(((S - 1) // (W * W), W))
    flat_x, flat_k, flat_after = x.ravel(), k.reshape(7, n), after.ravel()
    said = np.empty((8, W))
    now, number, largest, steps = 0.0, 0, slope_of(x, mixture, moves, k[0], work), 0.0
    while number < len(times) and times[number] <= 0.0:
        observe(x, mixture, observed[number])
        number += 1
    while now < end and largest >= at_rest:
        if steps >= max_steps:
            return now, -1.0
        steps += 1
        last = now + step >= end
        taken = end - now if last else step
        moved = 0.0
        for stage in range(6):
            for i in range(n):
                flat_after[i] = flat_x[i]
            for j in range(stage + 1):
                weight = taken * WEIGHTS[stage, j]
                for i in range(n):
                    flat_after[i] += weight * flat_k[j, i]
            moved = slope_of(after, mixture, moves, k[stage + 1], work)
        error = 0.0
        for i in range(n):
            difference = 0.0
            for j in range(7):
                difference += ERROR[j] * flat_k[j, i]
            difference *= taken / (atol + rtol * max(abs(flat_x[i]), abs(flat_after[i])))
            error += difference * difference
        error = np.sqrt(error / n)
        if not np.isfinite(error):
            error = np.inf  # a step to where nothing is finite is one that is too long
        factor = SAFETY * error ** (-1.0 / ORDER)
        if error >= 1.0:
            step = taken * min(max(factor, LEAST_FACTOR), SAFETY)
            continue
        then = end if last else now + taken
        if number < len(times) and times[number] <= then:
            observe(x, mixture, said[7])
            for j in range(7):
                observe(k[j], mixture, said[j])
        while number < len(times) and times[number] <= then:
            part = (times[number] - now) / taken
            for w in range(W):
                observed[number, w] = said[7, w]
                for j in range(7):
                    b = 0.0
                    for power in range(3, -1, -1):
                        b = part * (INTERPOLANT[j, power] + b)
                    observed[number, w] += taken * b * said[j, w]
            number += 1
        for i in range(n):
            flat_x[i] = flat_after[i]
            flat_k[0, i] = flat_k[6, i]
        now, largest = then, moved
        step = taken * min(max(factor, 1.0), LARGEST_FACTOR)
    observe(x, mixture, said[7])
    for rest in range(number, len(times)):
        copy_to(observed[rest], said[7])
    return now, largest
