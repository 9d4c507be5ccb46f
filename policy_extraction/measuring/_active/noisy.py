"""The posterior of all memories, given sampled answers: probits of memories that are known with errors.

Memory and mirror image have errors of their own, so the two parts of a pair are not independent given the answers.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from policy_extraction.measuring._active.features import Features, doubt
from policy_extraction.measuring._active.kernel import EVEN, ODD, Kernel
from policy_extraction.measuring._active.marginal_likelihood import NOISE, kernel_of
from policy_extraction.measuring._active.posterior import Both, joined, largest, prior, prior_times
from policy_extraction.measuring._active.sites import Sites, sites
from policy_extraction.measuring._active.tails import Tails

ROUNDS = 3  # of sites and of the doubt that they leave


class Part(NamedTuple):
    """The odd or the even part of all pairs: features, mean (P,), variance (P,), and `Posterior.bend`."""

    every: Features
    mean: np.ndarray
    variance: np.ndarray
    bend: float


class Given:
    """Gaussian variables of covariance K (n, n), known with errors of these precisions (n,), which may be 0."""

    def __init__(self, K: np.ndarray, precision: np.ndarray) -> None:
        self._root = np.sqrt(precision)
        self._lower = cholesky(np.eye(len(K)) + self._root[:, None] * K * self._root, lower=True)

    def whitened(self, cross: np.ndarray) -> np.ndarray:
        """V (n, P) of the covariances (P, n) with other variables, whose own lose VᵀV."""
        return solve_triangular(self._lower, self._root[:, None] * cross.T, lower=True)

    def residual(self, z: np.ndarray, errors: np.ndarray | float = 0.0) -> np.ndarray:
        """Whitened residual of known values z with these errors, in their deviations; Vᵀ times it is others' mean."""
        return solve_triangular(self._lower, self._root * z + errors, lower=True)

    def weights(self, residual: np.ndarray) -> np.ndarray:
        """Weights of covariances with other variables in the mean of these."""
        return self._root * solve_triangular(self._lower, residual, lower=True, trans="T")


class Noisy:
    """Posteriors of both parts; with the names of `Both`."""

    def __init__(
        self, parameters: np.ndarray, every: Features, asked: np.ndarray, known: Sites, doubted: np.ndarray
    ) -> None:
        """`known` are those of pairs `asked` (m,) and of their mirror images, (2, m); `doubted` (P,) the doubt."""
        self._kernels = kernels_of(parameters)
        self.asked, self._features = asked, (every, every._replace(doubt=doubted))
        crosses = [prior(k, f, asked) for k, f in zip(self._kernels, self._features, strict=True)]
        self._given = Given(observed([cross[asked] for cross in crosses]), known.precision.ravel())
        signs = np.repeat([[1.0, -1.0], [1.0, 1.0]], len(asked), axis=1)
        self._known = [
            self._given.whitened(np.tile(cross, 2) * sign) for cross, sign in zip(crosses, signs, strict=True)
        ]
        residual = self._given.residual(known.z.ravel())
        even = self._given.weights(residual).reshape(2, -1).sum(0)
        bend = self._kernels[1].amplitudes.trend * float(doubted[asked] @ even)
        self.odd, self.even = (
            Part(f, V.T @ residual, np.maximum(k.variance(f) - (V**2).sum(0), NOISE), bend)
            for k, f, V in zip(self._kernels, self._features, self._known, strict=True)
        )
        self.between = -np.einsum("np,np->p", *self._known)

    def __iter__(self):
        return iter((self.odd, self.even))

    def columns(self, pairs: np.ndarray) -> np.ndarray:
        """As `Both.columns`."""
        found = np.stack([[-V.T @ other[:, pairs] for other in self._known] for V in self._known]).transpose(0, 2, 1, 3)
        for j, (kernel, features) in enumerate(zip(self._kernels, self._features, strict=True)):
            found[j, :, j] += prior(kernel, features, pairs)
        return found

    def times(self, vectors: np.ndarray, most: int) -> np.ndarray:
        """As `Both.times`."""
        used = [largest(np.abs(d) * np.sqrt(part.variance), most) for d, part in zip(vectors, self, strict=True)]
        told = sum(V[:, some] @ d[some] for V, d, some in zip(self._known, vectors, used, strict=True))
        return np.stack(
            [
                prior_times(kernel, features, some, d[some]) - V.T @ told
                for kernel, features, some, d, V in zip(
                    self._kernels, self._features, used, vectors, self._known, strict=True
                )
            ]
        )

    def median(self) -> np.ndarray:
        """As `Both.median`."""
        return joined(self.odd.mean, self.even.mean)

    def draw(self, random: np.random.Generator, tails: tuple[Tails, Tails]) -> np.ndarray:
        """As `Both.draw`."""
        drawn = [k.draw(f, random) for k, f in zip(self._kernels, self._features, strict=True)]
        z = joined(*(part[self.asked] for part in drawn)).T.ravel()
        residual = self._given.residual(z, random.standard_normal(len(z)))
        odd, even = (
            part.mean + np.sqrt(part.variance) * each.of((f - V.T @ residual) / np.sqrt(part.variance))
            for part, f, V, each in zip(self, drawn, self._known, tails, strict=True)
        )
        return joined(odd, even + self.coupling(odd, self.even.every.doubt))

    def coupling(self, odd: np.ndarray, expected: np.ndarray) -> np.ndarray:
        """As `Both.coupling`."""
        return self.even.bend * (doubt(odd) - expected)


Joint: TypeAlias = Both | Noisy


def kernels_of(parameters: np.ndarray) -> list[Kernel]:
    """The kernels of the odd and of the even part."""
    return [kernel_of(each, parity) for each, parity in zip(parameters, (ODD, EVEN), strict=True)]


def observed(parts: list[np.ndarray]) -> np.ndarray:
    """Covariance (2m, 2m) of probits of memories and of their mirror images, from those of the two parts (m, m)."""
    odd, even = parts
    return np.block([[even + odd, even - odd], [even - odd, even + odd]])


def parts_of(known: Sites) -> tuple[np.ndarray, np.ndarray]:
    """Odd and even parts (2, m) of pairs, and the variance (m,) of their errors, infinite where one is not known."""
    one, image = known.z
    with np.errstate(divide="ignore"):
        variance = (1 / known.precision).sum(0) / 4
    return np.stack([one - image, one + image]) / 2, variance


def doubted_in(parameters: np.ndarray, every: Features, asked: np.ndarray, known: Sites) -> np.ndarray:
    """The doubt (P,) of all pairs that the odd parts of some leave."""
    kernel = kernels_of(parameters)[0]
    parts, variance = parts_of(known)
    cross = prior(kernel, every, asked)
    given = Given(cross[asked], 1 / variance)
    V = given.whitened(cross)
    return doubt(V.T @ given.residual(parts[0]), np.maximum(kernel.variance(every) - (V**2).sum(0), NOISE))


def paired_counts(counts: np.ndarray, pairs: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Counts (2, n, 2) in some of the pairs (P, 2) from those (S, 2) of memories; the empty one counts once."""
    found = counts[pairs[some]].transpose(1, 0, 2)
    found[1, some == 0] = 0
    return found


def sites_of(
    parameters: np.ndarray, every: Features, asked: np.ndarray, counts: np.ndarray, start: Sites | None = None
) -> Sites:
    """Estimates of probits from counts (2, m, 2) of both words in pairs `asked` (m,) and their mirror images."""
    kernels, known = kernels_of(parameters), start
    for _ in range(ROUNDS):
        some = every.at(asked)
        if known is not None:
            some = some._replace(doubt=doubted_in(parameters, some, np.arange(len(asked)), known))
        covariances = [prior(k, f, np.arange(len(asked))) for k, f in zip(kernels, (some, some), strict=True)]
        known = sites(observed(covariances), counts.reshape(-1, 2), known)
    assert known is not None
    return known


def noisy_posterior(parameters: np.ndarray, every: Features, asked: np.ndarray, known: Sites) -> Noisy:
    """The posterior with these parameters of both kernels, given what is known of pairs `asked`."""
    return Noisy(parameters, every, asked, known, doubted_in(parameters, every, asked, known))
