"""How likely answers are under a kernel, and its parameters of the largest posterior density.

An answer tells the logits of W words up to a constant, so W - 1 contrasts of a memory are known: its log-probabilities
times an orthonormal basis of the vectors that sum to 0. A word below a probability of 1e-6 is taken there, and its
log-probability as known with an error of 1: differences of such words say nothing.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, helmert
from scipy.sparse import csr_array

from policy_extraction.measuring._laplace import around, most_likely
from policy_extraction.measuring._predicted.kernel import CENTRE, N_SIZES, SPREAD, Kernel
from policy_extraction.measuring._predicted.memories import Patterns, pattern_numbers

LEAST = 1e-6  # probability of a word
NOISE = 1e-6  # variance: a server's rounding, and what keeps K regular
CUT = 1.0  # variance of the log-probability of a word below `LEAST`
MOST_FITTED = 800  # contrasts; more hardly change the parameters and take the third power of time
DIFFERENCE = 1e-5


def basis(n_words: int) -> np.ndarray:
    """Orthonormal contrasts of W words, shape (W, W - 1)."""
    return helmert(n_words).T


def contrasts_of(q: np.ndarray) -> np.ndarray:
    """Contrasts (…, W-1) of log-probabilities."""
    return np.log(np.maximum(q, LEAST)) @ basis(q.shape[-1])


def cut_errors(q: np.ndarray) -> np.ndarray:
    """Variances (n, W) of log-probabilities."""
    return np.where(q <= LEAST, CUT, 0.0)


def add_noise(K: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Covariances (n, W-1, n, W-1) with those of the errors of answers q (n, W), as a matrix."""
    n, k = K.shape[:2]
    Q, each = basis(q.shape[1]), np.arange(n)
    K[each, :, each] += np.einsum("wc,nw,wd->ncd", Q, cut_errors(q), Q) + NOISE * np.eye(k)
    return K.reshape(n * k, n * k)


def contrasts(covariance: np.ndarray, n_words: int) -> np.ndarray:
    """Covariances of contrasts (n, W-1, m, W-1) from those of logits (nW, mW)."""
    Q = basis(n_words)
    right = covariance.reshape(len(covariance), -1, n_words) @ Q
    return np.tensordot(right.reshape(-1, n_words, *right.shape[1:]), Q, (1, 0)).transpose(0, 3, 1, 2)


class Covariances:
    """Prior covariances of contrasts between memories, some of them the same ones.

    Parameters
    ----------
    codes, others
        Rows of codes (n, H) and (m, H).
    patterns
        All patterns.
    n_words
        W.
    """

    def __init__(self, codes: np.ndarray, others: np.ndarray, patterns: Patterns, n_words: int) -> None:
        self.codes, self.others, self.n_words = codes, others, n_words
        (self.used, rows), (self.useds, columns) = (
            np.unique(pattern_numbers(each, n_words), return_inverse=True) for each in (codes, others)
        )
        self.rows, self.columns = rows.reshape(-1), columns.reshape(-1)
        self.one, self.other = patterns.at(self.used), patterns.at(self.useds)
        self.same = (codes[:, None] == others).all(-1)

    def parts(self, kernel: Kernel) -> list[np.ndarray]:
        """Parts of unit amplitude: three of patterns, (U, V), and those of memories, (n, m)."""
        near = kernel.near(self.codes, self.others)
        return [*kernel.parts(self.one, self.other), np.ones_like(near), near, self.same.astype(float)]

    def joined(self, kernel: Kernel, parts: list[np.ndarray]) -> np.ndarray:
        """Covariances (n, W-1, m, W-1) from `parts`."""
        a, W = kernel.sizes, self.n_words
        trend, smooth, rough, bias, near, alone = parts
        shared = a.trend * trend + a.smooth * smooth + a.rough * rough
        logits = shared[self.rows[:, None], self.columns]
        for w in range(W):
            logits[w::W, w::W] += a.own * smooth[self.rows[w::W, None], self.columns[w::W]]
        K = contrasts(logits, W)
        alike = a.bias * bias + a.near * near + a.alone * alone
        for c in range(W - 1):
            K[:, c, :, c] += alike
        return K

    def derivatives(self, weights: np.ndarray) -> list[np.ndarray]:
        """Sums over `weights` (n, W-1, m, W-1) by `parts`, where `own` is the last one: dΣ/dpart at unit amplitude."""
        n, _, m, _ = weights.shape
        W, Q = self.n_words, basis(self.n_words)
        logits = np.tensordot(np.tensordot(weights, Q, (1, 1)), Q, (2, 1))  # (n, m, W, W)
        rows = csr_array((np.ones(n * W), (self.rows, np.arange(n * W))), (len(self.used), n * W))
        columns = csr_array((np.ones(m * W), (self.columns, np.arange(m * W))), (len(self.useds), m * W))
        total = rows @ logits.transpose(0, 2, 1, 3).reshape(n * W, m * W) @ columns.T
        own = sum(rows[:, w::W] @ logits[:, :, w, w] @ columns[:, w::W].T for w in range(W))
        memories = np.einsum("ncmc->nm", weights)
        return [total, total, total, memories, memories, memories, np.asarray(own)]


def loss(parameters: np.ndarray, between: Covariances, q: np.ndarray) -> tuple[float, np.ndarray]:
    """-log of the density of answers q (n, W) times prior, up to a constant, and its gradient."""
    kernel, y = Kernel.of(parameters), contrasts_of(q)
    parts, a, size = between.parts(kernel), kernel.sizes, y.size
    try:
        factor = cho_factor(add_noise(between.joined(kernel, parts), q), lower=True)
    except (LinAlgError, ValueError):  # not positive, or not finite
        return np.inf, np.zeros(len(parameters))
    solved = cho_solve(factor, y.ravel())
    away = (parameters - CENTRE) / SPREAD
    value = y.ravel() @ solved / 2 + np.log(np.diag(factor[0])).sum() + away @ away / 2
    # With V = (K⁻¹ - K⁻¹y yᵀK⁻¹)/2 the derivative is Σ V∘dK.
    V = (cho_solve(factor, np.eye(size)) - np.outer(solved, solved)) / 2
    *sums, own = between.derivatives(V.reshape(*y.shape, *y.shape))
    trend, smooth, rough, bias, near, alone = ((s * part).sum() for s, part in zip(sums, parts, strict=True))
    gradient = away / SPREAD
    gradient[:N_SIZES] += np.array(a) * [trend, smooth, rough, bias, (own * parts[1]).sum(), near, alone]
    weights = [a.trend * sums[0], a.smooth * sums[1] + a.own * own, a.rough * sums[2], a.near * sums[4]]
    for j in range(N_SIZES, len(parameters)):
        moved = parameters.copy()
        moved[j] += DIFFERENCE
        shifted = between.parts(Kernel.of(moved))
        changes = (shifted[k] - parts[k] for k in (0, 1, 2, 4))
        gradient[j] += sum((w * d).sum() for w, d in zip(weights, changes, strict=True)) / DIFFERENCE
    return float(value), gradient


def fitted(
    codes: np.ndarray, q: np.ndarray, patterns: Patterns, start: np.ndarray, number: int, random: np.random.Generator
) -> np.ndarray:
    """The most likely parameters of answers q (n, W), and random ones, shape (1 + number, k)."""
    most = max(8, MOST_FITTED // (q.shape[1] - 1))
    if len(q) > most:
        some = np.sort(random.permutation(len(q))[:most])
        codes, q = codes[some], q[some]
    minus_log = partial(loss, between=Covariances(codes, codes, patterns, q.shape[1]), q=q)
    best = most_likely(minus_log, CENTRE, SPREAD, start)
    return np.stack([best, *around(minus_log, CENTRE, SPREAD, best, number, random)])
