"""Fixed points of the rate equation, as roots of the self-consistency of the word share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy.special import expit

from meanfield._closed_classes import closed_classes
from meanfield._compositions import consensus
from meanfield._errors import InputError
from meanfield._observables import MIXED, convention
from meanfield._policy import name_of, single_policy, space_of, words_of
from meanfield._provenance import stamp
from meanfield._rate_equation import drift
from meanfield._roots import all_roots
from meanfield._spectrum import leading_eigenvalues, stability
from meanfield._stationary import StationaryLaw

# Policies have floors of 2e-16 ≈ expit(-36), and roots near such a floor; at ±46 a word share is 1e-20.
LOGITS = np.array([-46.0, -23.0, -12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0, 23.0, 46.0])
MAX_LOGIT = 300.0
# Rounding in the stationary law stays orders of magnitude below; a larger residual is no fixed point.
MAX_RESIDUAL = 1e-9


def fixed_points(policy: xr.Dataset) -> xr.Dataset:
    """Every fixed point of the rate equation of a two-word policy.

    x is a fixed point exactly when x = p(Q) and Q = qᵀp(Q), where p(Q) is the stationary law of one agent whose
    partners say word w with probability Q_w. For two words this is one equation, here
    g(ℓ) = log(f_0/f_1) - ℓ = 0 with f = qᵀp(Q) and ℓ = log(Q_0/Q_1). Its piecewise Chebyshev interpolant to 1e-10 gives
    every sign change, for |ℓ| ≤ 46 and further out until g has reached its asymptote; the corners Q = 0 and 1 are
    decided exactly. Where an agent's chain has several closed classes of memories, each has its own branch of fixed
    points (all agents in that class); mixtures of classes with a matching Q are fixed points too and are not listed.

    Returns
    -------
    Dataset over `fixed_point`, by falling share of the first word, with `word_share` (word), `eigenvalue` and
    `eigenvalue_imaginary` of the leading mode (per unit of time), `stability` (stable, unstable or marginal), `stable`,
    `oscillatory`, `kind` (consensus or mixed: success rate below 0.98), `convention` (its word, or 'mixed'), `branch`,
    `residual` = max|dx/dt|, and `composition` (state). attrs["completeness"] says what was searched.

    Raises
    ------
    InputError
        If the policy has more than two words.
    """
    policy = single_policy(policy)
    q, space = policy["q"].values, space_of(policy)
    if space.n_words != 2:
        raise InputError(f"policy has {space.n_words} words: fixed points are found for two")
    rows: list[tuple[int, np.ndarray]] = []
    searched = []
    for branch, flows in enumerate(closed_classes(q, space, heard=(0, 1))):
        law = StationaryLaw(q, space, flows)
        logits, report = _interior(law)
        rows += [(branch, law.composition(Q)) for Q in _shares(logits)]
        searched.append(f"class {branch}: {report}")
    rows += [(-1, x) for x in _corners(policy)]
    rows.sort(key=lambda row: -float(row[1] @ q[:, 0]))
    if len(searched) > 1:
        searched.append("mixtures of the classes that have the same Q are fixed points too")
    completeness = "; ".join([*searched, "exact corners decided from the policy's zeros"])
    result = _label(policy, rows).assign_attrs(policy=name_of(policy), completeness=completeness)
    return stamp(result, "fixed_points", policy)


def _interior(law: StationaryLaw) -> tuple[np.ndarray, str]:
    """logit(Q) of the roots with 0 < Q < 1, and what was searched."""

    def mismatch(logits: np.ndarray) -> np.ndarray:
        share = law.word_share(_shares(logits))
        return np.log(share[:, 0]) - np.log(share[:, 1]) - logits

    if (law.word_share(_shares(np.zeros(1))) == 0).any():
        return np.empty(0), "its agents say one word only, so no interior root"
    breaks = np.concatenate([-_outer(lambda x: -mismatch(-x)), LOGITS[1:-1], _outer(mismatch)])
    breaks.sort()
    found = all_roots(mismatch, breaks)
    distance, where = found.closest
    near = (
        f", where else |g| turns it is at least {distance:.1g} (at logit Q = {where:.3g})" if distance < np.inf else ""
    )
    flat = "".join(f", but every share with {a:.3g} < logit Q < {b:.3g} is a fixed point" for a, b in found.flat)
    return found.roots, (
        f"sign changes of g for |logit Q| <= {max(-breaks[0], breaks[-1]):g}, from {found.evaluations} evaluations; "
        f"g is known to {found.error:.0e}{near}{flat}"
    )


def _outer(mismatch: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Breaks from 46 upwards, to where g(ℓ) only moves away from zero or stays: log(f_0/f_1) is n·ℓ + constant there.

    n is 0 where the policy has a floor, so that g falls; an integer where each further minority choice needs n
    partners of the minority, so that g is constant (n = 1) or rises.
    """
    end = LOGITS[-1]
    breaks = [end]
    while end < MAX_LOGIT:
        before, last = mismatch(np.array([end - 1, end]))
        slope = last - before
        if abs(slope - round(slope)) < 1e-4 and slope * last >= 0:
            break
        end *= 1.5
        breaks.append(end)
    return np.array(breaks)


def _shares(logit: np.ndarray) -> np.ndarray:
    """(Q_0, Q_1) on the last axis, each to full relative accuracy."""
    return np.stack([expit(logit), expit(-logit)], axis=-1)


def _corners(policy: xr.Dataset) -> list[np.ndarray]:
    """Consensus states in which nobody ever says the other word: then Q is exactly 0 or 1, and everybody is there."""
    q, space = policy["q"].values, space_of(policy)
    candidates = [consensus(policy, word).values for word in words_of(policy)]
    return [x for w, x in enumerate(candidates) if q[space.consensus_state(w), 1 - w] == 0]


def _label(policy: xr.Dataset, rows: list[tuple[int, np.ndarray]]) -> xr.Dataset:
    q, space, words = policy["q"].values, space_of(policy), words_of(policy)
    x = np.array([x for _, x in rows]).reshape(-1, space.n_states)
    share = x @ q
    leading = np.array([leading_eigenvalues(q, one, space)[0] for one in x], dtype=complex)
    status = np.array([stability(value) for value in leading], dtype=str)
    conventions = [convention(one, words) for one in share]
    # A defective eigenvalue splits into a circle of this radius.
    oscillatory = np.abs(leading.imag) > 5 * np.finfo(float).eps ** (1 / space.memory_length)
    residual = np.array([np.abs(drift(one, q, space)).max() for one in x])
    if (residual > MAX_RESIDUAL).any():
        raise RuntimeError(f"{name_of(policy)}: a root has max|dx/dt| = {residual.max():.1e}, so it is no fixed point")
    columns = {
        "word_share": (("fixed_point", "word"), share, "word share", "1"),
        "eigenvalue": (("fixed_point",), leading.real, "leading eigenvalue, real part", "1/time"),
        "eigenvalue_imaginary": (("fixed_point",), leading.imag, "leading eigenvalue, imaginary part", "1/time"),
        "stability": (("fixed_point",), status, "linear stability", "1"),
        "stable": (("fixed_point",), status == "stable", "leading eigenvalue below zero", "1"),
        "oscillatory": (("fixed_point",), oscillatory, "leading eigenvalue is complex", "1"),
        "kind": (("fixed_point",), np.where(np.array(conventions) == MIXED, MIXED, "consensus"), "kind", "1"),
        "convention": (("fixed_point",), np.array(conventions, dtype=str), "convention", "1"),
        "branch": (
            ("fixed_point",),
            np.array([b for b, _ in rows], dtype=int),
            "closed class; -1 at an exact corner",
            "1",
        ),
        "residual": (("fixed_point",), residual, "max |dx/dt|", "1/time"),
        "composition": (("fixed_point", "state"), x, "fraction of agents in each state", "1"),
    }
    data = {
        name: (dims, values, {"long_name": label, "units": units})
        for name, (dims, values, label, units) in columns.items()
    }
    return xr.Dataset(data, coords={**policy.coords, "fixed_point": np.arange(len(rows))})
