"""A Gaussian process of the logits of words in memories, given the answers.

A policy is a function of the logits f(s, w) of the W words w in a memory s. Most depends on a word's pattern u: where
in the memory it was said and heard, alike for all words. The covariance of f(s, w) and f(s', w') is

    shared(u, u') + [w = w']·(own(u, u') + bias + near + alone·[s = s']).

`shared` and `own` (how a word differs from others) each add a part linear in the pattern, a Gaussian in
recency-weighted counts of the word said and heard, and exp(-Σ_j θ_j |u_j - u'_j|), with rates θ_j fitted. `near` is
exp(-Σ_j ν_j [interaction j differs]). Exchanging words in all memories changes nothing but their names.

An answer tells the logits up to a constant, so W - 1 contrasts of a memory are known: y, the logits times an
orthonormal basis of the vectors that sum to 0. The parameters maximise the answers' marginal likelihood times weak
log-normal priors. Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, Sec. 2.2 and 5.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, helmert, solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtri

from policy_extraction.measuring._memories import NONE, all_patterns, pattern_numbers, states_of

NOISE = 1e-6  # variance: a server's rounding; it keeps covariances regular
MOST_FITTED = 256  # contrasts; more hardly change the parameters and take the third power of time
MOST_STEPS = 40
FARTHEST = 4.0  # parameters from their centre, in spreads of the prior
MOST_ITEMS, FEW_ITEMS = 2048, 128  # words of memories at once, against all others and among themselves
FREQUENCIES = 256  # of a random function of patterns; its covariance is exact on average over functions
WAVES = 64  # the same, of memories


class Part(NamedTuple):
    """Parameters of `shared` and `own`: variances of three parts, and the features on which they depend.

    They are logarithms, but for the angle; weights of interactions fall as exp(-rate · age).
    """

    trend: Any
    smooth: Any
    rough: Any
    recency: Any = np.log(0.15)  # rate of `trend` and `smooth`
    angle: Any = np.pi / 4  # of sums of said and heard words in the plane in which `smooth` varies most along one axis
    width: Any = np.log(1.2)  # of `smooth` along that axis
    stretch: Any = np.log(2.0)  # width along the other axis, relative to it
    lengths: Any = np.log(3.0)  # width in the length of the memory
    theta: Any = np.log(0.3)  # of the newest own word
    partner: Any = 0.0  # θ of the partner's words relative to own ones
    forgetting: Any = np.log(0.2)  # rate of θ


class Alike(NamedTuple):
    """Parameters of memories: variances of `bias`, `near` and `alone`, and of `near` ν and the rate of ν."""

    bias: Any
    near: Any
    alone: Any
    nu: Any
    fading: Any


K = len(Part._fields)
# Logits of choice are 0 to 10, sums of mentions 0 to H.
CENTRE = np.array(
    [*Part(*np.log([1.0, 4.0, 0.5])), *Part(*np.log([0.1, 0.5, 0.15])), *Alike(*np.log([1.0, 0.2, 0.05, 0.5, 0.3]))]
)
_SPREAD = Part(1.5, 1.5, 1.5, 1.0, 0.5, 0.7, 0.7, 0.7, 1.0, 1.0, 1.0)
SPREAD = np.array([*_SPREAD, *_SPREAD, *Alike(1.5, 1.5, 2.0, 1.0, 1.0)])


def alike_of(parameters: np.ndarray) -> Alike:
    """The parameters of memories as they are."""
    return Alike(*np.exp(parameters[2 * K :]))


def rates_of(alike: Alike, memory_length: int) -> np.ndarray:
    """ν of the interactions, newest first."""
    return alike.nu * np.exp(-alike.fading * np.arange(memory_length))


def basis(n_words: int) -> np.ndarray:
    """Orthonormal contrasts of W words, shape (W, W - 1)."""
    return helmert(n_words).T


def fitted(codes: np.ndarray, y: np.ndarray, errors: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The most likely parameters, given contrasts y (n, W-1) of memories with errors of covariances (n, W-1, W-1)."""
    some = np.random.default_rng(0).permutation(len(y))[: max(16, MOST_FITTED // y.shape[1])]
    given = (codes[some], y[some], errors[some])
    bounds = list(zip(CENTRE - FARTHEST * SPREAD, CENTRE + FARTHEST * SPREAD, strict=True))
    begin = CENTRE if start is None else start
    return minimize(loss, begin, given, "L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": MOST_STEPS}).x


def loss(parameters: np.ndarray, codes: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, np.ndarray]:
    """-log of the density of contrasts times prior, up to a constant, and its gradient."""
    n_words, Q = y.shape[1] + 1, basis(y.shape[1] + 1)
    at, where = _patterns(codes, n_words)
    shared, own = (np.stack(list(_parts(part, at, at))) for part in _both(parameters))
    covariance = _contrasts(shared.sum(0), own.sum(0), _memories(parameters, codes, codes), where, where)
    try:
        lower = cholesky(with_errors(covariance, errors), lower=True)
    except (LinAlgError, ValueError):  # not positive, or not finite
        return np.inf, np.zeros(len(parameters))
    solved = cho_solve((lower, True), y.ravel())
    away = (parameters - CENTRE) / SPREAD
    value = y.ravel() @ solved / 2 + np.log(np.diag(lower)).sum() + away @ away / 2
    # With V = (K⁻¹ - K⁻¹y yᵀK⁻¹)/2 the derivative is Σ V∘dK, for words in place of contrasts as well as for patterns.
    V = ((cho_solve((lower, True), np.eye(y.size)) - np.outer(solved, solved)) / 2).reshape(*y.shape, *y.shape)
    by_word = Q @ (V @ Q.T).reshape(len(y), y.shape[1], -1)
    by_word = by_word.reshape(len(y), n_words, len(y), n_words)
    same = np.einsum("nwmw->nwm", by_word)
    gradient = [
        *_part_slopes(parameters[:K], at, shared, _summed(by_word, where[:, :, None, None], where, len(at))),
        *_part_slopes(parameters[K : 2 * K], at, own, _summed(same, where[:, :, None], where.T, len(at))),
        *_memory_slopes(parameters, codes, same.sum(1)),
    ]
    return float(value), np.array(gradient) + away / SPREAD


def covariances(parameters: np.ndarray, codes: np.ndarray, others: np.ndarray, n_words: int) -> np.ndarray:
    """Prior covariances (n, W-1, m, W-1) of contrasts of memories, rows of codes (n, H) and (m, H)."""
    found = np.empty((len(codes), n_words - 1, len(others), n_words - 1))
    other, columns = _patterns(others, n_words)
    for rows in _blocks(len(codes), MOST_ITEMS // n_words):
        one, where = _patterns(codes[rows], n_words)
        shared, own = (reduce(np.add, _parts(part, one, other)) for part in _both(parameters))
        found[rows] = _contrasts(shared, own, _memories(parameters, codes[rows], others), where, columns)
    return found


def with_errors(covariance: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Covariances (n, W-1, n, W-1) plus covariances of errors (n, W-1, W-1), as a matrix."""
    n, k = covariance.shape[:2]
    each = np.arange(n)
    covariance[each, :, each] += errors + NOISE * np.eye(k)
    return covariance.reshape(n * k, n * k)


class Function(NamedTuple):
    """Logits f(s, w), up to a constant in each memory: a sum over patterns of words and one over memories."""

    parameters: np.ndarray  # of the process
    table: np.ndarray  # logits (U, W) of the patterns of each word
    codes: np.ndarray  # memories (n, H)
    weights: np.ndarray  # theirs in covariances of memories, (n, W)
    waves: Waves | None = None  # a random function of memories
    size: float = 1.0  # of the waves

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Logits (n, W) in memories."""
        n_words = self.table.shape[1]
        found = self.table[pattern_numbers(codes, n_words), np.arange(n_words)]
        for rows in _blocks(len(codes), MOST_ITEMS // n_words):
            found[rows] += _memories(self.parameters, codes[rows], self.codes) @ self.weights
        return found if self.waves is None else found + self.size * self.waves(codes)

    def contrasts(self, codes: np.ndarray) -> np.ndarray:
        """Contrasts (n, W-1)."""
        return self(codes) @ basis(self.table.shape[1])


class Waves(NamedTuple):
    """A random function of memories with the covariance of `near` and `alone`.

    A wave takes a random set of interactions, each with probability 1 - exp(-ν), and multiplies random signs of what
    was said and heard there. Two memories then have a mean product of exp(-Σ ν [they differ]).
    """

    taken: np.ndarray  # (H, F), whether a wave depends on the interaction
    seeds: np.ndarray  # (H, F), of signs
    sizes: np.ndarray  # (F, W)
    alone: float  # standard deviation
    seed: int

    def __call__(self, codes: np.ndarray) -> np.ndarray:
        """Values (n, W)."""
        signs = np.ones((len(codes), self.sizes.shape[0]))
        for taken, seeds, column in zip(self.taken, self.seeds, codes.T, strict=True):
            positive = mixed(seeds[taken] ^ mixed((column - NONE).astype(np.uint64))[:, None]) >> np.uint64(63)
            signs[:, taken] *= np.where(positive, 1.0, -1.0)
        n_words = self.sizes.shape[1]
        states = states_of(codes, n_words).astype(np.uint64)
        which = mixed(mixed(states ^ np.uint64(self.seed))[:, None] + np.arange(n_words, dtype=np.uint64))
        uniform = ((which >> np.uint64(12)).astype(float) + 0.5) / 2**52
        return signs @ self.sizes + self.alone * ndtri(uniform)


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits that look random; equal for equal ones.

    Source: Steele, Lea and Flood 2014, Fast splittable pseudorandom number generators.
    """
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return numbers ^ (numbers >> np.uint64(31))


@dataclass(frozen=True)
class Posterior:
    """The Gaussian process, given contrasts y (n, W-1) of memories with errors of covariances (n, W-1, W-1)."""

    parameters: np.ndarray
    codes: np.ndarray
    y: np.ndarray
    errors: np.ndarray

    @property
    def n_words(self) -> int:
        return self.y.shape[1] + 1

    @cached_property
    def mean(self) -> Function:
        """The mean."""
        return self._given(self.y)

    def whitened(self, codes: np.ndarray) -> np.ndarray:
        """V (n(W-1), m(W-1)) with which contrasts in memories (m, H) have the posterior covariance K - VᵀV."""
        covariance = covariances(self.parameters, codes, self.codes, self.n_words).reshape(-1, self.y.size)
        return solve_triangular(self._lower, covariance.T, lower=True, overwrite_b=True)

    def covariance(self, codes: np.ndarray) -> np.ndarray:
        """Covariance (m(W-1), m(W-1)) of contrasts in memories."""
        V = self.whitened(codes)
        return covariances(self.parameters, codes, codes, self.n_words).reshape(V.shape[1], -1) - V.T @ V

    def variances(self, codes: np.ndarray) -> np.ndarray:
        """Variances (m, W-1) of contrasts in memories; they are at least the noise."""
        found, parameters, n_words = np.empty((len(codes), self.y.shape[1])), self.parameters, self.n_words
        for rows in _blocks(len(codes), MOST_ITEMS // n_words):
            found[rows] = -(self.whitened(codes[rows]) ** 2).sum(0).reshape(found[rows].shape)
        for rows in _blocks(len(codes), FEW_ITEMS // n_words):
            found[rows] += np.einsum("ncnc->nc", covariances(parameters, codes[rows], codes[rows], n_words))
        return np.maximum(found, NOISE)

    def draw(self, random: np.random.Generator, scale: float = 1.0) -> Function:
        """A random function that agrees with the answers: a prior draw, corrected by its errors there.

        Its distance from the mean is `scale` times as large as a posterior draw's. Source: Wilson et al. 2020,
        Efficiently sampling functions from Gaussian process posteriors.
        """
        prior = self._prior_draw(random)
        noise = np.linalg.cholesky(self.errors + NOISE * np.eye(self.y.shape[1]))
        noisy = prior.contrasts(self.codes) + (noise @ random.standard_normal((*self.y.shape, 1)))[..., 0]
        told = self._given(noisy)
        table = self.mean.table + scale * (prior.table - told.table)
        return self.mean._replace(
            table=table, weights=self.mean.weights - scale * told.weights, waves=prior.waves, size=scale
        )

    @cached_property
    def _lower(self) -> np.ndarray:
        prior = covariances(self.parameters, self.codes, self.codes, self.n_words)
        return cholesky(with_errors(prior, self.errors), lower=True)

    def _given(self, y: np.ndarray) -> Function:
        """The mean, had the memories these contrasts."""
        weights = cho_solve((self._lower, True), y.ravel()).reshape(y.shape) @ basis(self.n_words).T
        numbers = pattern_numbers(self.codes, self.n_words)
        used, where = np.unique(numbers, return_inverse=True)
        by_pattern = np.zeros((len(used), self.n_words))
        np.add.at(by_pattern, (where.reshape(numbers.shape), np.arange(self.n_words)), weights)
        every = all_patterns(self.codes.shape[1])
        table = np.empty((len(every), self.n_words))
        for rows in _blocks(len(every), MOST_ITEMS):
            shared, own = (reduce(np.add, _parts(part, every[rows], every[used])) for part in _both(self.parameters))
            table[rows] = shared @ by_pattern.sum(1, keepdims=True) + own @ by_pattern
        return Function(self.parameters, table, self.codes, weights)

    def _prior_draw(self, random: np.random.Generator) -> Function:
        """A random function of the prior.

        Source: Rahimi and Recht 2007, Random features for large-scale kernel machines.
        """
        every, n_words, alike = all_patterns(self.codes.shape[1]), self.n_words, alike_of(self.parameters)
        table = np.sqrt(alike.bias) * random.standard_normal((1, n_words))
        for part, number in zip(_both(self.parameters), (1, n_words), strict=True):
            trend, lead, rough = _points(part, every)
            sizes = np.sqrt(np.exp(part[:3]))
            table = table + sizes[0] * trend @ random.standard_normal((trend.shape[1], number))
            directions = (
                random.standard_normal((lead.shape[1], FREQUENCIES)),
                random.standard_cauchy((rough.shape[1], FREQUENCIES)),
            )
            for size, points, along in zip(sizes[1:], (lead, rough**2), directions, strict=True):
                waves = np.cos(points @ along + 2 * np.pi * random.random(FREQUENCIES))
                weights = random.standard_normal((FREQUENCIES, number))
                table = table + size * np.sqrt(2 / FREQUENCIES) * waves @ weights
        shape = (self.codes.shape[1], WAVES)
        waves = Waves(
            random.random(shape) < -np.expm1(-rates_of(alike, shape[0]))[:, None],
            random.integers(2**63, size=shape, dtype=np.uint64),
            np.sqrt(alike.near / WAVES) * random.standard_normal((WAVES, n_words)),
            np.sqrt(alike.alone),
            int(random.integers(2**62)),
        )
        return Function(self.parameters, table, self.codes[:0], np.zeros((0, n_words)), waves)


def _blocks(number: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(first, first + size) for first in range(0, number, size))


def _both(parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of `shared` and `own`."""
    return parameters[:K], parameters[K : 2 * K]


def _patterns(codes: np.ndarray, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The patterns (U, 3H) in memories, each once, and their numbers (n, W) among these."""
    numbers = pattern_numbers(codes, n_words)
    used, where = np.unique(numbers, return_inverse=True)
    return all_patterns(codes.shape[1])[used], where.reshape(numbers.shape)


def _contrasts(
    shared: np.ndarray, own: np.ndarray, memories: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Covariances (n, W-1, m, W-1), from those of patterns, numbered (n, W) and (m, W), and of memories (n, m)."""
    (n, n_words), m = rows.shape, len(columns)
    words = shared[rows[:, :, None, None], columns]
    np.einsum("nwmw->nwm", words)[:] += own[rows[:, :, None], columns.T] + memories[:, None]
    Q = basis(n_words)
    return (Q.T @ words.reshape(n, n_words, -1)).reshape(n, n_words - 1, m, n_words) @ Q


def _summed(values: np.ndarray, rows: np.ndarray, columns: np.ndarray, number: int) -> np.ndarray:
    """Sums (U, U) of values over the pairs that have the same patterns."""
    return np.bincount((rows * number + columns).ravel(), values.ravel(), number**2).reshape(number, number)


def _memories(parameters: np.ndarray, codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """`bias`, `near` and `alone` between memories, shape (n, m)."""
    alike = alike_of(parameters)
    differ = [one[:, None] != other for one, other in zip(codes.T, others.T, strict=True)]
    away = sum(rate * each for rate, each in zip(rates_of(alike, len(differ)), differ, strict=True))
    return alike.bias + alike.near * np.exp(-away) + alike.alone * ~np.logical_or.reduce(differ)


def _memory_slopes(parameters: np.ndarray, codes: np.ndarray, G: np.ndarray) -> list[float]:
    """Derivatives of Σ G∘K by the parameters `Alike`, where K are the covariances of memories."""
    alike, age = alike_of(parameters), np.arange(codes.shape[1])
    differ, rates = codes[:, None] != codes, rates_of(alike, codes.shape[1])
    near = G * alike.near * np.exp(-(differ @ rates))
    by_rates = -np.einsum("nm,nmh->h", near, differ)
    alone = alike.alone * G[~differ.any(-1)].sum()
    return [alike.bias * G.sum(), near.sum(), alone, by_rates @ rates, -alike.fading * (age * rates) @ by_rates]


def _parts(part: np.ndarray, one: np.ndarray, other: np.ndarray) -> Iterator[np.ndarray]:
    """Three parts of `shared` or `own` between patterns (U, 3H) and (V, 3H)."""
    (trend, lead, rough), (trends, leads, roughs) = (_points(part, x) for x in (one, other))
    sizes = np.exp(part[:3])
    yield sizes[0] * trend @ trends.T
    yield sizes[1] * np.exp(-_squares(lead, leads) / 2)
    yield sizes[2] * np.exp(-_squares(rough, roughs))


def _squares(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T


def _points(part: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of patterns (U, 3H), for `trend`, `smooth` and `rough`.

    |u - u'| = (u - u')² of numbers that are 0 or 1, so that the squared distance of roots of θ is that along the axes.
    """
    n, p = at.shape[1] // 3, Part(*part)
    age = np.arange(n)
    weights, theta = np.exp(-np.exp(p.recency) * age), np.exp(p.theta - np.exp(p.forgetting) * age)
    said, heard = at[:, :n] @ weights, at[:, n : 2 * n] @ weights
    width, cos, sin = np.exp(p.width), np.cos(p.angle), np.sin(p.angle)
    main, other = (cos * said + sin * heard) / width, (cos * heard - sin * said) / (width * np.exp(p.stretch))
    lead = np.stack([main, other, at[:, 2 * n :].sum(1) / np.exp(p.lengths)], axis=1)
    roots = np.sqrt(np.concatenate([theta, np.exp(p.partner) * theta]))
    return at[:, : 2 * n] * np.tile(weights, 2), lead, at[:, : 2 * n] * roots


def _part_slopes(part: np.ndarray, at: np.ndarray, parts: np.ndarray, G: np.ndarray) -> list[float]:
    """Derivatives of Σ G∘K by the parameters `Part`, where K is the sum of the parts (3, U, U); G is symmetric."""
    n, p = at.shape[1] // 3, Part(*part)
    age = np.arange(n)
    trend, lead, rough = _points(part, at)
    parts = parts * G
    # By the features: Σ G exp(-(x_i - x_j)²/2) has the derivatives 2(Gx - x ΣG), with its exponential in G.
    by_trend = 2 * np.exp(p.trend) * G @ trend
    by_lead, by_rough = (2 * (K @ x - K.sum(1)[:, None] * x) for K, x in ((parts[1], lead), (2 * parts[2], rough)))
    width, stretch, cos, sin = np.exp(p.width), np.exp(p.stretch), np.cos(p.angle), np.sin(p.angle)
    (main, other, length), (by_main, by_other, by_length) = lead.T, by_lead.T
    said, heard = (cos * by_main - sin * by_other / stretch) / width, (sin * by_main + cos * by_other / stretch) / width
    by_weights = (by_trend * at[:, : 2 * n]).sum(0).reshape(2, n).sum(0) + said @ at[:, :n] + heard @ at[:, n : 2 * n]
    roots = (by_rough * rough).sum(0).reshape(2, n) / 2  # by the logarithms of θ
    slopes = Part(
        *parts.sum((1, 2)),
        recency=-np.exp(p.recency) * (age * np.exp(-np.exp(p.recency) * age)) @ by_weights,
        angle=stretch * by_main @ other - by_other @ main / stretch,
        width=-by_main @ main - by_other @ other,
        stretch=-by_other @ other,
        lengths=-by_length @ length,
        theta=roots.sum(),
        partner=roots[1].sum(),
        forgetting=-np.exp(p.forgetting) * (roots @ age).sum(),
    )
    return list(slopes)
