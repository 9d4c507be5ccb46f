"""The slow motion of agents beside a committed minority, and its noise.

Partners who say the committed word w with the share Q bring agents into the stationary law p(Q). With c(Q) committed
agents this is an equilibrium. Next to it agents relax slowly in one direction, with l the left eigenvector of its
eigenvalue and l·p'(Q) = 1, so that slow motion is motion of Q. Let n of N agents be committed. With
α_i = Σ_a q_a(i) (l_Γ(i,a,w) - l_Γ(i,a,w')), f = q_w·p and D the noise of an encounter, Q moves in a unit of time by

    v = m [(n + (N - n) f)/(N - 1) - Q] - e/(N - 1) + r/(N - n),   m = α·p,   e = Σ_i p_i α_i q_w(i),

and by a random number of variance σ²/(N - n), σ² = lᵀDl. The term with e is there because agents do not meet
themselves. r comes from the other directions. With C their covariance and s = 1 - c(Q),

    r = s αᵀC q_w + s [(q_w·p')(α·z) + (q_w·z)(α·p')] - ½ (l·p'') σ²,   z = -J⁻¹ (1 - p' lᵀ) D l.

For N → ∞ v is 0 at the equilibria, and its slope there is the exact eigenvalue. Where agents say w more often than
their partners, c(Q) counts as 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import eig
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs
from scipy.special import gammaln

from meanfield._fixed_points.stationary_law import StationaryLaw

Weights = Float[np.ndarray, " states"]
Points = Float[np.ndarray, " points"]

DENSE_SIZE = 100  # below, LAPACK is faster than Arnoldi
RELATIVE_STEP = 1e-3  # of Q, for its derivatives
PACE = 0.5  # of the steps 1 + PACE·J: damps also fast oscillations
MOST_STEPS = 400
SETTLED = 1e-6
DIVERGED = 1e100
REAL = 1e-9
ROUNDING = 16 * np.finfo(float).eps  # of laws, relative to each share; up to two units were measured


class SlowMode(NamedTuple):
    """Functions of Q, see above, and the eigenvalue; `committed` is c(Q) before it counts as 0."""

    mobility: float  # m
    itself: float  # e
    others: float  # r
    noise: float  # σ²
    rate: float
    committed: float


class Encounters:
    """Agents of one policy of two words whose partners say the committed word with a share Q."""

    def __init__(self, law: StationaryLaw, q: Float[np.ndarray, "states words"], word: int) -> None:
        self._law, self._q, self._word = law, q, word
        self._after = law.space.successors()[:, None, None] + np.arange(4).reshape(2, 2)

    def said(self, Q: Points) -> Points:
        """f, how often agents say the committed word."""
        return self._law.word_share(self._shares(Q))[:, self._word]

    def slow_mode(self, Q: float) -> SlowMode | str:
        """At Q, or why there is no single slow mode."""
        step = RELATIVE_STEP * Q * (1 - Q)
        shares = self._shares(Q + step * np.array([-1.0, 0.0, 1.0]))
        before, p, after = (self._law.composition(one) for one in shares)
        at = _Linear(self._q, self._word, self._after, shares[1], p, (after - before) / (2 * step))
        slowest = at.slowest(ROUNDING / step)
        if isinstance(slowest, str):
            return slowest
        rate, left = slowest
        alpha = at.effect(left)
        mobility, noise, others = float(p @ alpha), at.noise(left, left), at.relaxed(left, alpha)
        if others is None:
            return "another mode relaxes as slowly"
        if not (mobility > 0 and noise > 0):
            return "the slowest mode does not follow the word share"
        bend = float(left @ (after - 2 * p + before)) / step**2
        # Rounding would grow as Q^-2. What is left out is not 0, but no group stays so near to consensus.
        if abs(bend) <= ROUNDING / step**2 * (np.abs(left) @ p):
            bend = 0.0
        itself = float(p @ (alpha * self._q[:, self._word]))
        return SlowMode(mobility, itself, others - bend * noise / 2, noise, rate, at.committed)

    def _shares(self, Q: Points) -> Float[np.ndarray, "points words"]:
        """How often partners say each word."""
        said = np.empty((len(Q), 2))
        said[:, self._word], said[:, 1 - self._word] = Q, 1 - Q
        return said


class _Linear:
    """Products with the Jacobian and with the noise at p(Q)."""

    def __init__(
        self,
        q: Float[np.ndarray, "states words"],
        word: int,
        after: np.ndarray,
        said: Float[np.ndarray, " words"],
        p: Weights,
        slope: Weights,
    ) -> None:
        self._q, self._word, self._after, self._said, self._p, self._slope = q, word, after, said, p, slope
        others = float(p @ q[:, 1 - word])
        self.committed = 1 - float(said[1 - word]) / others if others > 0 else -np.inf
        self._rest = 1 - max(self.committed, 0.0)  # s

    def effect(self, w: Weights) -> Weights:
        """How much more w is after hearing the committed word than after hearing the other."""
        moved = w[self._after]
        return ((moved[:, :, self._word] - moved[:, :, 1 - self._word]) * self._q).sum(1)

    def backward(self, w: Weights) -> Weights:
        """(J + 1)ᵀw, up to a constant."""
        moved = np.einsum("iab,ia,b->i", w[self._after], self._q, self._said)
        moved += self._rest * (self._p @ self.effect(w)) * self._q[:, self._word]
        return moved - moved @ self._p

    def noise(self, w: Weights, v: Weights) -> float:
        """wᵀDv."""
        said = self._p[:, None] * self._q
        one, two = (u[self._after] - u[:, None, None] for u in (w, v))
        met = [np.einsum("ia,iab->ab", said, moved) for moved in (one, two)]
        alone = np.einsum("ia,iab,iab,b->", said, one, two, self._said)
        return float(alone + self._rest * (met[0] * met[1].T).sum())

    def slowest(self, rounding: float) -> tuple[float, Weights] | str:
        """The leading eigenvalue and l, or why there is none; `rounding` is the error of p', relative to p."""
        size = len(self._p)
        if size <= DENSE_SIZE:
            found = eig(np.stack([self.backward(w) for w in np.eye(size)], axis=1))
        else:
            operator = LinearOperator((size, size), matvec=self.backward, dtype=float)
            start = np.random.default_rng(0).standard_normal(size)
            try:
                found = eigs(operator, k=3, which="LR", ncv=40, v0=start)
            except ArpackNoConvergence:
                return "the slowest mode is not found"
        values, vectors = found[0], found[1]
        leading = int(values.real.argmax())
        if abs(values[leading].imag) > REAL:
            return "the slowest mode oscillates"
        left = vectors[:, leading].real
        along = float(left @ self._slope)
        if abs(along) <= rounding * float(np.abs(left) @ self._p):
            return "the slowest mode does not follow the word share"
        return float(values[leading].real) - 1, left / along

    def relaxed(self, left: Weights, alpha: Weights) -> float | None:
        """r without its last term; None if other modes do not relax.

        With T = 1 + PACE·Jᵀ, exp(Jᵀt) is the mean of T^k over Poisson numbers k of mean t/PACE. Integrals over t of
        products of two such exponentials are sums over both powers.
        """
        effects, words = (self._course(w, left) for w in (alpha, self._q[:, self._word]))
        if effects is None or words is None:
            return None
        mixed = _mixed(effects, len(words))
        covariance = sum(self.noise(one, word) for one, word in zip(mixed, words, strict=True))
        along_effect, along_word = (self.noise(course.sum(0), left) for course in (effects, words))
        bent = (self._q[:, self._word] @ self._slope) * along_effect + along_word * (alpha @ self._slope)
        return float(self._rest * PACE * (covariance + bent))

    def _course(self, w: Weights, left: Weights) -> Float[np.ndarray, "steps states"] | None:
        """w without the slow mode, and what is left of it after each step."""
        course = [self._fast(w, left)]
        small = SETTLED * np.abs(course[0][self._p > 0]).max()
        while not np.abs(course[-1][self._p > 0]).max() <= small:
            if len(course) == MOST_STEPS or np.abs(course[-1]).max() > DIVERGED:
                return None
            course.append(self._fast((1 - PACE) * course[-1] + PACE * self.backward(course[-1]), left))
        return np.array(course)

    def _fast(self, w: Weights, left: Weights) -> Weights:
        w = w - (w @ self._slope) * left
        return w - w @ self._p


def _mixed(rows: Float[np.ndarray, "steps states"], n: int) -> Float[np.ndarray, "others states"]:
    """Σ_j rows_j C(j + k, j) 2^-(j + k + 1) for each k < n."""
    j, k = np.arange(len(rows)), np.arange(n)[:, None]
    return np.exp(gammaln(j + k + 1) - gammaln(j + 1) - gammaln(k + 1) - (j + k + 1) * np.log(2)) @ rows
