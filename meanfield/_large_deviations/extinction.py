"""Where agents leave states for good: the end of the likeliest path there (docs/theory/rare_events.md, Extinctions).

The momentum there is log v, with v the probabilities that single agents die out with all their offspring. The path ends
as x - x* = s ξ, p - log v = s l along the eigenvalue -λ of the linearised Hamiltonian (Assaf and Meerson, Phys. Rev. E
81, 021116 (2010)). Where agents who are sure to die out, and all others, relax at a rate rλ, the rest is O(s^r).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import null_space, solve_continuous_lyapunov

from meanfield._large_deviations.exits import OFF
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
    weight: float  # l·ξ - l·Σl
    slow: str  # why there is no prefactor, or ''

    def strengths(self, p: Float[np.ndarray, "nodes ..."]) -> Float[np.ndarray, " nodes"]:
        """s of these momenta."""
        away = ((p - self.ending.base) * self.along).reshape(len(p), -1)
        return away.sum(1) / float((self.ending.left * self.along).sum())


def absorbing_end(arrays: Arrays, x: np.ndarray, on: np.ndarray, classes: np.ndarray) -> AbsorbingEnd | str:
    """At the fixed point x of agents in the states `on`, or the reason why there is none."""
    if x.size > MOST_STATES:
        return f"agents have {x.size} states: extinctions are computed for at most {MOST_STATES}"
    x, shape = np.where(x > OFF, x, 0.0), x.shape
    empty, full, classes = (on & (x <= 0)).ravel(), (on & (x > 0)).ravel(), classes.ravel()
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
    E = null_space(classes[full] == np.unique(classes[full])[:, None])
    J, D = E.T @ xp.T[P] @ E, E.T @ pp[P] @ E
    others = np.append(values[~spreading].real, np.linalg.eigvals(J).real)
    relaxation = -float(others.max(initial=-np.inf))
    told = f"(rate {relaxation:.3g}) than the last agents die out ({fading:.3g})"
    if relaxation < RESONANT * fading:
        return f"others do not relax faster {told}"
    slow = f"others relax little faster {told}, so that the prefactor does not hold"
    along[empty] = vectors[:, leading].real / vectors[:, leading].real.sum()
    shift, between = fading * np.eye(x.size), np.ix_(full, empty)
    left[full] = np.linalg.solve(shift[P] - xp[P], xx[between] @ along[empty])
    along[full] = np.linalg.solve(xp.T[P] + shift[P], -xp.T[between] @ along[empty] - pp[P] @ left[full])
    pushed = xx[empty] @ along + xp[np.ix_(empty, full)] @ left[full]
    left[empty] = np.linalg.solve(shift[Z] - xp[Z], pushed)
    for one_class in np.unique(classes[full]):  # momenta are known up to a number for each class
        members = classes == one_class
        left[members & on.ravel()] -= x.ravel()[members] @ left[members] / x.ravel()[members].sum()
    scale = np.abs(left[living] / p[living]).max()
    left, along = left / scale, along / scale
    pulled = E.T @ left[full]
    weight = float(left @ along - pulled @ solve_continuous_lyapunov(J, -D) @ pulled)
    if not weight > 0:
        return "the action is not convex where they die out"
    ending = Ending(left.reshape(shape), float(left @ x.ravel()), fading, -float(left @ along), p.reshape(shape))
    return AbsorbingEnd(ending, x, along.reshape(shape), weight, slow * (relaxation < FASTER * fading))


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
