"""The fixed points of populations as arrays: roots of the self-consistency of the word share, and their eigenvalues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.response import MAX_LOGIT, Response, responses, supports
from meanfield._fixed_points.spectrum import Eigenvalues, leading_eigenvalues, leading_of_each
from meanfield._fixed_points.stationary_distribution import TOLERANCE, StationaryDistribution
from meanfield._numerics.blas import one_blas_thread
from meanfield._numerics.roots import Roots, roots_of_each
from meanfield._numerics.simplex_roots import simplex_roots
from meanfield._population.drift import mixture_drift, mixture_word_share
from meanfield._population.mixture import Groups, Mixture
from meanfield._population.observables import convention, label_of
from meanfield.toolbox._errors import ConvergenceError, InputError

# Policies have floors of 2e-16 ≈ expit(-36), and roots near such a floor; at ±46 a word share is 1e-20.
LOGITS = np.array([-46.0, -23.0, -12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0, 23.0, 46.0])
LEAST_SLIP = np.exp(-MAX_LOGIT)
MAX_SUPPORTS = 64  # faces of the simplex that are searched, some seconds each
MAX_WORK = 10**7  # multiplications for a Jacobian at one of 400 starts
FIRST_LOOK = 1e-6  # accuracy of g, which is enough where no two roots are about to merge
ROUNDING = 1e-14  # of g, five times the error seen for H = 1 to 8
# Rounding in the stationary distribution stays orders of magnitude below; a larger residual is not a fixed point.
MAX_RESIDUAL = 1e-9
COMPOSITION_ERROR = 1e-12  # relative, of stationary distributions and of a root in logit Q that is not about to merge


class Root(NamedTuple):
    """A fixed point."""

    branch: int  # the closed class of memories on which it lives; -1 at an exact corner
    composition: Float[np.ndarray, "kinds states"]
    around: tuple[np.ndarray, ...] = ()  # the same at both ends of where it may lie, if it is about to merge
    may_be_stable: bool = True  # not if g rises there, nor if several fixed points can't be told apart


class Points(NamedTuple):
    """Fixed points of one population, by decreasing share of the first word."""

    composition: Float[np.ndarray, "points kinds states"]
    word_share: Float[np.ndarray, "points words"]
    leading: np.ndarray  # eigenvalue, complex
    error: Float[np.ndarray, " points"]  # a bound of its error
    floor_shift: Float[np.ndarray, " points"]
    branch: np.ndarray
    residual: Float[np.ndarray, " points"]  # max|dx/dt|
    convention: np.ndarray  # of the agents who are not committed: a word, or 'mixed'
    label: np.ndarray  # which names the leading word in any case
    completeness: str


@one_blas_thread()
def all_points(
    mixtures: Sequence[Mixture | Groups],
    names: list[str],
    words: list[tuple[str, ...]],
    best: Callable[[list[Points]], object] = lambda points: None,
) -> list[Points]:
    """The fixed points of each population, all over as many words; `best` makes the best result of an error of them."""
    two = mixtures[0].space.n_words == 2
    found = all_roots(mixtures, names) if two else [_searched_roots(mixture) for mixture in mixtures]
    x = [root.composition for roots, _ in found for root in roots]
    whose = [mixture for mixture, (roots, _) in zip(mixtures, found, strict=True) for _ in roots]
    leading = iter(leading_of_each(whose, x, x_error=COMPOSITION_ERROR))
    points = [
        _points(mixture, roots, [next(leading) for _ in roots], report, said)
        for mixture, (roots, report), said in zip(mixtures, found, words, strict=True)
    ]
    worst = [one.residual.max(initial=0.0) for one in points]
    if max(worst) > MAX_RESIDUAL:
        raise ConvergenceError(
            f"{names[int(np.argmax(worst))]}: a root has max|dx/dt| = {max(worst):.1e} and is no fixed point; "
            "error.best of fixed_points has all roots with their residuals",
            best=best(points),
        )
    return points


def _points(
    mixture: Mixture | Groups, roots: list[Root], found: list[Eigenvalues], completeness: str, words: tuple[str, ...]
) -> Points:
    leading = np.array([one.values[0] for one in found], dtype=complex)
    error, floor_shift = (np.array([getattr(one, name)[0] for one in found]) for name in ("errors", "floor_shifts"))
    for number, root in enumerate(roots):
        moved = [leading_eigenvalues(mixture, one, mixture.space).values[0] for one in root.around]
        error[number] += np.abs(np.array(moved) - leading[number]).max(initial=0.0)
        if not root.may_be_stable:
            error[number] = max(error[number], -leading[number].real)
    x = np.array([root.composition for root in roots]).reshape(-1, *mixture.q.shape[:2])
    share = mixture_word_share(x, mixture)
    branch = np.array([root.branch for root in roots], dtype=int)
    residual = np.abs(mixture_drift(x, mixture)).max((1, 2))
    free = mixture.convincible_share(share)
    label = partial(label_of, committed=bool(mixture.committed.any()))
    names = [np.array([name(one, words) for one in free], dtype=str) for name in (convention, label)]
    columns = (x, share, leading, error, floor_shift, branch, residual, *names)
    order = np.lexsort(-share.T[::-1])
    return Points(*(column[order] for column in columns), completeness)


def all_roots(mixtures: Sequence[Mixture | Groups], names: list[str]) -> list[tuple[list[Root], str]]:
    """The fixed points of two words, and a report of the search, for each population."""
    branches = [responses(mixture) for mixture in mixtures]
    searches = iter(interior_roots([response for some in branches for response in some]))
    result = []
    for mixture, some, name in zip(mixtures, branches, names, strict=True):
        roots: list[Root] = []
        searched = []
        for branch, response in enumerate(some):
            found, report = next(searches)
            x = response.composition(word_shares(found.roots))
            for number, (logit, error, slope) in enumerate(zip(found.roots, found.errors, found.slopes, strict=True)):
                around = word_shares(logit + error * np.array([-1.0, 1.0])) if error > COMPOSITION_ERROR else ()
                roots.append(Root(branch, x[number], tuple(map(response.composition, around)), bool(slope < 0)))
            searched.append(f"Class {branch}: {report}" if len(some) > 1 else report)
        corners = exact_corners(mixture)
        roots += corners
        if len(some) > 1:
            searched.append("Mixtures of the classes that have the same Q are fixed points too.")
        if not roots:
            raise ConvergenceError(
                f"{name}: there is a fixed point, but rounding hides at which share: {' '.join(searched)}"
            )
        searched.append(f"Exact fixed points among the two consensus states: {len(corners)}.")
        result.append((roots, " ".join(searched)))
    return result


def _searched_roots(mixture: Mixture | Groups) -> tuple[list[Root], str]:
    """The fixed points of more than two words found from many starts, and a report of the search."""
    roots: list[Root] = []
    searched = []
    space = mixture.space
    n_words, n_flows = space.n_words, space.n_full // space.n_words
    if n_words**3 * n_flows > MAX_WORK:
        raise InputError(
            f"policy has {n_words} words and H = {space.memory_length}: the search of the simplex would "
            "take hours; expected fewer words or a shorter memory"
        )
    for support in supports(mixture, MAX_SUPPORTS):
        for branch, response in enumerate(responses(mixture, support)):
            found = simplex_roots(response, n_words, support)
            number = branch if len(support) > 1 else -1
            roots += [Root(number, response.composition(Q)) for Q in found.roots]
            searched.append(f"Class {branch}, {found.report}")
    return roots, " ".join(["Not guaranteed to be all: more than two words need a search from many starts.", *searched])


def interior_roots(each: list[Response]) -> list[tuple[Roots, str]]:
    """The roots of g as a function of logit Q, with 0 < Q < 1, and a report of the search, for each response."""
    nothing = Roots(*np.empty((3, 0)), [], (np.inf, np.nan, np.nan), 0)
    result = [(nothing, "All fixed points are listed: agents here say one word only, so that Q is 0 or 1.")] * len(each)
    places, breaks = [], []
    for place, response in enumerate(each):
        g = partial(_mismatch, response)
        if not (response(word_shares(np.zeros(1))) == 0).any():
            places.append(place)
            reach = response.reach
            breaks.append(np.sort([*-_outer(lambda x, g=g: -g(-x), reach), *LOGITS[1:-1], *_outer(g, reach)]))
    look, exact = (
        [partial(_mismatch, each[place], tolerance=tolerance) for place in places]
        for tolerance in (FIRST_LOOK / 100, ROUNDING)
    )
    found = roots_of_each(look, breaks, FIRST_LOOK, exact=exact, rounding=ROUNDING) if places else []
    for place, one, ends in zip(places, found, breaks, strict=True):
        result[place] = one, _report(one, max(-ends[0], ends[-1]))
    return result


def _mismatch(response: Response, logits: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
    """g = log(F_0/F_1) - logit Q."""
    Q = word_shares(logits)
    ratio = response(Q, tolerance) / Q  # close to 1 at a root, so that its logarithm loses no digit
    return np.log(ratio[:, 0]) - np.log(ratio[:, 1])


def _report(found: Roots, end: float) -> str:
    """The search for roots with |logit Q| up to `end`, in sentences."""
    which = "The fixed points that can be told apart" if found.unresolved else "All fixed points"
    zeros = f"the zeros of g = log(F_0/F_1) - logit Q for |logit Q| <= {end:g}"
    report = [f"{which} are listed, as {zeros} ({found.evaluations} evaluations)."]
    distance, where, error = found.closest
    if distance < np.inf:
        report.append(
            f"Others could hide only where g turns without a zero; the nearest such place is Q = {expit(where):.3g}, "
            f"where |g| = {distance:.1g} with an error of at most {max(error, ROUNDING):.0e}."
        )
    for stretch in found.unresolved:
        left, right, odd, bound = stretch
        report.append(
            f"Not resolved: between logit Q = {left:.9g} and {right:.9g} |g| is below its rounding error, {bound:.0e}; "
            f"there may be {'1 or 3' if odd else '0 or 2'} fixed points or more, and one stands for them."
            if stretch.has_root
            else f"Not resolved: up to rounding every share with {left:.3g} < logit Q < {right:.3g} is a fixed point, "
            f"with |g| below {bound:.0e}."
        )
    return " ".join(report)


def _outer(mismatch: Callable[[np.ndarray], np.ndarray], reach: float) -> np.ndarray:
    """Breaks from 46 upwards to `reach`, or until g(ℓ) only moves away from zero or stays.

    There log(f_0/f_1) is n·ℓ + constant. n is 0 where the policy has a floor, so that g falls; n is an integer where
    each further minority choice needs n partners of the minority, so that g is constant (n = 1) or rises. Even then a
    floor may follow far out, at which g turns: it is not an asymptote unless g still goes on in this way at `reach`.
    """

    def lasts(end: float, last: float, slope: int) -> bool:
        with np.errstate(divide="ignore"):
            far = float(mismatch(np.array([reach]))[0])
        return not np.isfinite(far) or bool(abs(far - last - slope * (reach - end)) < 1)

    end = LOGITS[-1]
    breaks = [end]
    while end < reach:
        before, last = mismatch(np.array([end - 1, end]))
        slope = last - before
        if not np.isfinite(slope):
            raise ConvergenceError(
                f"a word's share cannot be told at logit Q = ±{end:g}: expected no choice probability between 0 and "
                f"{LEAST_SLIP:.0g}, or larger ones beside it; 0 says the same"
            )
        # Else there is a root at the very end
        away = slope * last >= 0 and (abs(last) > FIRST_LOOK or round(slope) == 0)
        if abs(slope - round(slope)) < 1e-4 and away and lasts(end, last, round(slope)):
            break
        end = min(1.5 * end, reach)
        breaks.append(end)
    return np.array(breaks)


def word_shares(logit: np.ndarray) -> np.ndarray:
    """(Q_0, Q_1) on the last axis, each to full relative accuracy."""
    return np.stack([expit(logit), expit(-logit)], axis=-1)


def exact_corners(mixture: Mixture | Groups) -> list[Root]:
    """Consensus states in which nobody ever says the other word, so that Q is exactly 0 or 1, up to 1e-261."""
    found, space = [], mixture.space
    for word in range(space.n_words):
        others, state = np.delete(np.arange(space.n_words), word), space.consensus_state(word)
        slips = mixture.q[:, state][:, others].max(1) > LEAST_SLIP
        if not (slips & (mixture.share > 0)).any() and not mixture.committed[others].any():
            x = mixture.consensus(word)
            # Kinds of share 0 may slip: they follow the others, who don't notice.
            for m in np.flatnonzero(slips):
                flows = closed_classes(mixture.q[m], space, heard=mixture.hearable((word,)))[0]
                law = StationaryDistribution(mixture.q[m], space, flows, mixture.heard_from)
                x[m] = law.composition(np.eye(space.n_words)[word])
            found.append(Root(-1, x))
    return found
