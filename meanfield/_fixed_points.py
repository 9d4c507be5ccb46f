"""Fixed points of the rate equation, as roots of the self-consistency of the word share."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import expit

from meanfield._closed_classes import closed_classes
from meanfield._errors import InputError
from meanfield._observables import MIXED, convention
from meanfield._policy import name_of, single_policy, space_of, words_of
from meanfield._provenance import stamp
from meanfield._rate_equation import drift
from meanfield._spectrum import leading_eigenvalues, stability
from meanfield._stationary import StationaryLaw

# Policies have floors of 2e-16 ≈ expit(-36), and roots near such a floor; at ±46 a word share is 1e-20. Beyond ±10 the
# mismatch is the logarithm of a power law, so that a coarser grid follows it.
LOGITS = np.concatenate([np.arange(-46.0, -10.0, 1.5), np.arange(-10.0, 10.0, 0.5), np.arange(10.0, 47.0, 1.5)])
# A class of more flows than this (H ≥ 7) has kernels of gigabytes.
MAX_FLOWS = 2**11


def fixed_points(policy: xr.Dataset) -> xr.Dataset:
    """Every fixed point of the rate equation of a two-word policy that a scan of the word share brackets.

    x is a fixed point exactly when x = p(Q) and Q = qᵀp(Q), where p(Q) is the stationary law of one agent whose
    partners say word w with probability Q_w. For two words this is one equation, here
    g(ℓ) = log(f_0/f_1) - ℓ = 0 with f = qᵀp(Q) and ℓ = log(Q_0/Q_1): its sign changes on 89 points in |ℓ| ≤ 46 are
    polished by Brent's method, and the corners Q = 0 and 1 are decided exactly. Where an agent's chain has several
    closed classes of memories, each has its own branch of fixed points (all agents in that class).

    Returns
    -------
    Dataset over `fixed_point`, by falling share of the first word, with `word_share` (word), `eigenvalue` and
    `eigenvalue_imaginary` of the leading mode (per unit of time), `stability` (stable, unstable or marginal), `stable`,
    `oscillatory`, `kind` (consensus or mixed: success rate below 0.98), `convention` (its word, or 'mixed'), `branch`,
    `residual` = max|dx/dt|, and `composition` (state). attrs["completeness"] says what was searched.

    Raises
    ------
    InputError
        If the policy has more than two words, or a memory length above 6.
    """
    policy = single_policy(policy)
    q, space = policy["q"].values, space_of(policy)
    if space.n_words != 2:
        raise InputError(f"policy has {space.n_words} words: fixed points are found for two")
    if 2 ** (2 * space.memory_length - 1) > MAX_FLOWS:
        raise InputError(f"policy has memory_length = {space.memory_length}: fixed points are found up to 6")
    classes = closed_classes(q, space, heard=(0, 1))
    rows = [(branch, x) for branch, flows in enumerate(classes) for x in _interior(StationaryLaw(q, space, flows))]
    rows += [(-1, x) for x in _corners(policy)]
    rows.sort(key=lambda row: -float(row[1] @ q[:, 0]))
    result = _label(policy, rows)
    completeness = (
        f"sign changes of the self-consistency on {len(LOGITS)} points with |logit Q| <= {LOGITS[-1]:g}, for "
        f"{len(classes)} closed class(es) of memories, and the exact corners; a pair of roots between two points "
        "(0.5 apart in logit Q, 1.5 beyond 10) is not seen"
    )
    return stamp(result.assign_attrs(policy=name_of(policy), completeness=completeness), "fixed_points", policy)


def _interior(law: StationaryLaw) -> list[np.ndarray]:
    """Compositions at the roots with 0 < Q < 1."""

    def mismatch(logit: float) -> float:
        share = law.word_share(_shares(logit))
        with np.errstate(divide="ignore"):  # a class that never says one of the words is at ±∞
            return float(np.diff(np.log(share[::-1]))[0]) - logit

    values = np.array([mismatch(logit) for logit in LOGITS])
    changes = np.flatnonzero((values[:-1] > 0) != (values[1:] > 0))
    finite = [i for i in changes if np.isfinite(values[i : i + 2]).all()]
    roots = [brentq(mismatch, LOGITS[i], LOGITS[i + 1], xtol=1e-13, rtol=1e-14) for i in finite]
    return [law.composition(_shares(root)) for root in roots]


def _shares(logit: float) -> np.ndarray:
    """(Q_0, Q_1), each to full relative accuracy."""
    return np.array([expit(logit), expit(-logit)])


def _corners(policy: xr.Dataset) -> list[np.ndarray]:
    """Compositions with Q exactly 0 or 1: agents who hear one word only and, in a closed class, say it only."""
    q, space = policy["q"].values, space_of(policy)
    found = []
    for word in range(2):
        heard = np.eye(2)[word]
        laws = [StationaryLaw(q, space, flows) for flows in closed_classes(q, space, heard=(word,))]
        found += [law.composition(heard) for law in laws if law.word_share(heard)[1 - word] == 0]
    return found


def _label(policy: xr.Dataset, rows: list[tuple[int, np.ndarray]]) -> xr.Dataset:
    q, space, words = policy["q"].values, space_of(policy), words_of(policy)
    x = np.array([x for _, x in rows]).reshape(-1, space.n_states)
    share = x @ q
    leading = np.array([leading_eigenvalues(q, one, space)[0] for one in x], dtype=complex)
    status = np.array([stability(value) for value in leading], dtype=str)
    conventions = [convention(one, words) for one in share]
    columns = {
        "word_share": (("fixed_point", "word"), share, "word share", "1"),
        "eigenvalue": (("fixed_point",), leading.real, "leading eigenvalue, real part", "1/time"),
        "eigenvalue_imaginary": (("fixed_point",), leading.imag, "leading eigenvalue, imaginary part", "1/time"),
        "stability": (("fixed_point",), status, "linear stability", "1"),
        "stable": (("fixed_point",), status == "stable", "leading eigenvalue below zero", "1"),
        "oscillatory": (("fixed_point",), leading.imag != 0, "leading eigenvalue is complex", "1"),
        "kind": (("fixed_point",), np.where(np.array(conventions) == MIXED, MIXED, "consensus"), "kind", "1"),
        "convention": (("fixed_point",), np.array(conventions, dtype=str), "convention", "1"),
        "branch": (
            ("fixed_point",),
            np.array([b for b, _ in rows], dtype=int),
            "closed class; -1 at an exact corner",
            "1",
        ),
        "residual": (("fixed_point",), [np.abs(drift(one, q, space)).max() for one in x], "max |dx/dt|", "1/time"),
        "composition": (("fixed_point", "state"), x, "fraction of agents in each state", "1"),
    }
    data = {
        name: (dims, values, {"long_name": label, "units": units})
        for name, (dims, values, label, units) in columns.items()
    }
    return xr.Dataset(data, coords={**policy.coords, "fixed_point": np.arange(len(rows))})
