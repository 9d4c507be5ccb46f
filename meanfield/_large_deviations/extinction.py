"""Where agents leave states for good: the end of the likeliest path there, and what it makes of a lifetime.

At the fixed point some states Z are empty and stay so. A few agents in Z multiply and die out independently of each
other, as in a branching process. The momentum of the likeliest extinction ends at log v, with v the probability that
one agent in Z dies out with all its offspring, the least solution of ∂H/∂x = 0 there (Assaf and Meerson, Phys. Rev. E
81, 021116 (2010)).
The linearised Hamiltonian has an eigenvalue -λ there with x - x* = s ξ, p - log v = s l, along which the path ends.

The mean time T to extinction follows from the mean of exp(N p·x) of N agents who have not died out, at p = log v + s l.
In the branching process the probability of being extinct grows as t/T + τ(v), and τ ~ -log(v - ..)/λT next to the least
solution, so that y, the part of ξ in the composition, has the density 1/(λTy). With fluctuations of all others about
the fixed point, of covariance Σ,

    mean of exp(N p·x) = 1/(λTs) √(2πc/N) exp(...),   1/c = l·ξ - l·Σl,

while along the path to this p it is |det₂(1 - K)|^-½ times the exponential. For infections at R₀ n(N - n)/(N - 1)
and recoveries at n it gives √(2π/N) R₀/(R₀ - 1)² exp(1 - 1/R₀ + N (log R₀ + 1/R₀ - 1)).

Where agents who are sure to die out, and all others, relax at a rate rλ, the path ends at sξ + O(s^r): there is none
for r < 1, and where r is little more than 1 the error falls with N^(1-r) only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import null_space, solve_continuous_lyapunov

from meanfield.core._export import exported
from meanfield.core._path_search import Arrays, Ending

branching = exported("meanfield.core._instanton", "branching")
curvature = exported("meanfield.core._instanton", "curvature")

MOST_STATES = 700  # matrices of states are dense
NEVER, SURE = 1e-9, 1e-7  # probabilities to die out
MOST_ITERATIONS, SAME = 100, 1e-12  # of Newton's method, and the last step
PRESENT = 1e-7  # of an eigenvector
RESONANT, FASTER = 1.02, 1.5  # relaxation against λ: with less there is no path, and no prefactor


class AbsorbingEnd(NamedTuple):
    """An extinction: λ and log v as `ending`, and the directions in which a path approaches its end."""

    ending: Ending
    x: np.ndarray
    along: np.ndarray  # ξ
    weight: float  # 1/c
    slow: str  # why there is no prefactor, or ''

    def strengths(self, p: Float[np.ndarray, "nodes ..."]) -> Float[np.ndarray, " nodes"]:
        """s of these momenta."""
        away = ((p - self.ending.base) * self.along).reshape(len(p), -1)
        return away.sum(1) / float((self.ending.left * self.along).sum())


def absorbing_end(
    arrays: Arrays, x: Float[np.ndarray, ...], on: Bool[np.ndarray, ...], classes: np.ndarray
) -> AbsorbingEnd | str:
    """At the fixed point x of agents in the states `on`, or the reason why there is none."""
    if x.size > MOST_STATES:
        return f"agents have {x.size} states: extinctions are computed for at most {MOST_STATES}"
    shape = x.shape
    empty, full = (on & (x <= 0)).ravel(), (on & (x > 0)).ravel()
    v = _chances(arrays, x, empty)
    if v is None or not v.min() > NEVER:
        return "agents in the states that would become empty never die out one by one"
    living = empty & (v < 1 - SURE)
    if not living.any():
        return "agents in the states that would become empty are sure to die out"
    p = np.log(v)
    xx, xp, pp = curvature(arrays, x, p.reshape(shape))
    Z, P = np.ix_(empty, empty), np.ix_(full, full)
    values, vectors = np.linalg.eig(xp.T[Z])
    spreading = np.abs(vectors[living[empty]]).max(0) > PRESENT * np.abs(vectors).max(0)
    leading = int(np.where(spreading, values.real, -np.inf).argmax())
    fading, left, along = -float(values[leading].real), np.zeros(x.size), np.zeros(x.size)
    E = null_space(classes.ravel()[full] == np.unique(classes.ravel()[full])[:, None])
    J, D = E.T @ xp.T[P] @ E, E.T @ pp[P] @ E
    others = np.append(values[~spreading].real, np.linalg.eigvals(J).real)
    relaxation = -float(others.max(initial=-np.inf))
    told = f"(rate {relaxation:.3g}) than the last agents die out ({fading:.3g})"
    if relaxation < RESONANT * fading:
        return f"others do not relax faster {told}"
    slow = ""
    if relaxation < FASTER * fading:
        slow = f"others relax little faster {told}, so that the prefactor does not hold"
    along[empty] = vectors[:, leading].real / vectors[:, leading].real.sum()
    one = np.eye(x.size)
    left[full] = np.linalg.solve(fading * one[P] - xp[P], xx[np.ix_(full, empty)] @ along[empty])
    along[full] = np.linalg.solve(
        xp.T[P] + fading * one[P], -xp.T[np.ix_(full, empty)] @ along[empty] - pp[P] @ left[full]
    )
    pushed = xx[empty] @ along + xp[np.ix_(empty, full)] @ left[full]
    left[empty] = np.linalg.solve(fading * one[Z] - xp[Z], pushed)
    for one_class in np.unique(classes.ravel()[full]):  # momenta are known up to a number for each class
        members = classes.ravel() == one_class
        left[members & on.ravel()] -= x.ravel()[members] @ left[members] / x.ravel()[members].sum()
    scale = np.abs(left[living] / p[living]).max()
    left, along = left / scale, along / scale
    pulled = E.T @ left[full]
    weight = float(left @ along - pulled @ solve_continuous_lyapunov(J, -D) @ pulled)
    if not weight > 0:
        return "the action is not convex where they die out"
    ending = Ending(left.reshape(shape), float(left @ x.ravel()), fading, -float(left @ along), p.reshape(shape))
    return AbsorbingEnd(ending, x, along.reshape(shape), weight, slow)


def _chances(arrays: Arrays, x: np.ndarray, empty: np.ndarray) -> Float[np.ndarray, " states"] | None:
    """The least probabilities that agents die out, by Newton's method, which climbs to them from 0."""
    v = np.ones(x.size)
    v[empty] = NEVER
    for _ in range(MOST_ITERATIONS):
        change, slope = branching(arrays, x, v.reshape(x.shape))
        slope = slope.reshape(x.size, x.size)[np.ix_(empty, empty)]
        try:
            step = np.linalg.solve(-slope, change.ravel()[empty])
        except np.linalg.LinAlgError:  # some of them never change
            return None
        v[empty] = np.clip(v[empty] + step, NEVER / 2, 1.0)
        if np.abs(step).max() < SAME:
            return v
    return None
