"""Fixed points of the rate equation, as roots of the self-consistency of the word share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from meanfield._fixed_points.closed_classes import closed_classes
from meanfield._fixed_points.response import Response, responses, supports
from meanfield._fixed_points.spectrum import leading_eigenvalues
from meanfield._fixed_points.stationary_law import TOLERANCE, StationaryLaw
from meanfield._numerics.roots import Roots, all_roots
from meanfield._numerics.simplex_roots import simplex_roots
from meanfield._numerics.stability import stability_columns
from meanfield._population.compositions import consensus
from meanfield._population.drift import mixture_drift, mixture_word_share
from meanfield._population.observables import MIXED, convention
from meanfield._population.population import Population, as_population, without_component
from meanfield._population.provenance import stamp
from meanfield._population.reaction_model import ReactionModel
from meanfield._population.single_policy import names_of
from meanfield._population.stacks import each_of_stack
from meanfield._reactions.fixed_points import reaction_fixed_points
from meanfield.toolbox._columns import labelled
from meanfield.toolbox._errors import ConvergenceError, InputError

# Policies have floors of 2e-16 ≈ expit(-36), and roots near such a floor; at ±46 a word share is 1e-20.
LOGITS = np.array([-46.0, -23.0, -12.0, -6.0, -3.0, 0.0, 3.0, 6.0, 12.0, 23.0, 46.0])
MAX_LOGIT = 600.0  # a share of 1e-261: products of smaller ones lose their digits
LEAST_SLIP = np.exp(-MAX_LOGIT)
MAX_SUPPORTS = 64  # faces of the simplex that are searched, some seconds each
MAX_WORK = 10**7  # multiplications for a Jacobian at one of 400 starts
FIRST_LOOK = 1e-6  # accuracy of g, which is enough where no two roots are about to merge
ROUNDING = 1e-14  # of g, five times what is seen for H = 1 to 8
COMPOSITION_ERROR = 1e-12  # relative, of stationary laws and of a root in logit Q that is not about to merge
# Rounding in the stationary law stays orders of magnitude below; a larger residual is no fixed point.
MAX_RESIDUAL = 1e-9


class Root(NamedTuple):
    """A fixed point."""

    branch: int  # the closed class of memories on which it lives; -1 at an exact corner
    composition: Float[np.ndarray, "kinds states"]
    around: tuple[
        Float[np.ndarray, "kinds states"], ...
    ] = ()  # at both ends of where it may lie, if it is about to merge
    may_be_stable: bool = True  # not if g rises there, nor if several fixed points can't be told apart


@each_of_stack
def fixed_points(
    policy: xr.Dataset | Population | ReactionModel,
    *,
    masses: Sequence[float] | np.ndarray | None = None,
    initial: xr.DataArray | np.ndarray | None = None,
    starts: int | None = None,
    seed: int | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """Find the fixed points of the rate equation: all of them for two words, those that a search finds otherwise.

    **Policies and populations.** A composition x is a fixed point exactly when x = p(Q) and Q = F(Q). Here p(Q) is the
    stationary law of an agent whose partners say word w with probability Q_w, and F(Q) is the word share of such
    agents: qᵀp(Q) for one policy, the sum over kinds of agents and committed agents for a population.

    Two words give one equation, g(ℓ) = log(F_0/F_1) - ℓ = 0 with ℓ = log(Q_0/Q_1). A piecewise Chebyshev interpolant of
    g yields every root for -46 ≤ ℓ ≤ 46, and further out until g has reached its asymptote. It is refined until g is
    larger than its error wherever it turns, down to rounding, 1e-14. Fixed points that are closer to merging than that
    are one row, which is never stable; attrs["completeness"] names the interval. The corners Q = 0 and 1 are decided
    exactly. If an agent's chain has several closed classes of memories, each has its own branch of fixed points, with
    all agents of a kind in that class; mixtures of classes with equal Q are fixed points too but are not listed.

    For more words, Newton iteration from a grid of starts solves Q = F(Q) on the simplex of word shares and on those of
    its faces and corners to which agents can keep. It may miss roots. Where F points inwards on the whole boundary, the
    indices of the roots sum to 1; attrs["completeness"] reports this check.

    **Reaction models.** The search starts where solutions come to rest and from random compositions, on the whole
    simplex and on the closed faces that single states open, one state of each class. (Agents in a closed face stay
    there as long as all their partners are in it.) Further starts are the ends of solutions that leave the unstable
    fixed points along their leading mode, and points between the fixed points found. The search may miss fixed points;
    where all of them must lie inside one face their indices sum to 1, which attrs["completeness"] reports. A continuum
    of fixed points is represented by one point or several: two belong to one continuum if they agree in support,
    stability and number of zero modes and a third such point lies about half way between them.

    Parameters
    ----------
    policy
        One policy, a stack over model and pair, a population, or a reaction model. A stack has a result for each
        policy, shorter ones filled with NaN. The other parameters are for reaction models only.
    masses
        Fraction of agents in each class of `model.classes`, shape (C,); they sum to 1. `model.class_masses` computes
        them from a composition. Optional with one class or with `initial`.
    initial
        Compositions with these masses from which further solutions start, as for `solve`.
    starts
        Number of random starts on the whole simplex, ≥ 1, default 64. As many are spread over the other closed faces,
        each of which has one more start in its middle.
    seed
        Seed of the random starts, default 0.
    progress
        Show a progress bar.

    Returns
    -------
    Dataset over `fixed_point`, by falling share of the first word, for a reaction model by falling fractions in the
    first states, with

    - `composition` (state), for a population (component, state), and `residual` = max|dx/dt|;
    - `eigenvalue` and `eigenvalue_imaginary` of the leading mode, per unit of time, among perturbations that keep the
      mass of each class and leave empty classes empty; `eigenvalue_error`, a bound of their error for the policy or
      model as given;
    - `stability`: stable, unstable, or marginal where 0 lies within the error or within 1e-7 (times the fastest rate of
      a reaction model); `stable`; `oscillatory`, whether the leading eigenvalue is complex;
    - for policies and populations `word_share` (word) of all agents, `kind` (consensus, or mixed with a success rate
      below 0.98), `convention` of the agents who are not committed (a word or 'mixed'), `branch`, and
      `eigenvalue_floor_shift`, the shift of the eigenvalue at this composition if entries of the policy below 1e-14 are
      set to 0;
    - for reaction models `zero_modes`, the number of directions in which the linearised drift vanishes, and
      `continuum`, whether other fixed points adjoin.

    attrs["completeness"] says what was searched.

    Raises
    ------
    InputError
        If an argument is not as described, or the search would take too long: too many words, too long a memory, or too
        many faces to which agents can keep.
    ConvergenceError
        If a stationary law was not found, which can happen from H = 8 on; if a root is no fixed point: then its `best`
        holds all roots; or if g vanishes up to rounding wherever it may be zero, as for agents who repeat what they
        heard last but for errors of 1e-15.

    See Also
    --------
    spectrum : more eigenvalues, at any composition
    stability_table : fixed points and candidates of many policies
    basins : how much of the simplex leads to each

    Examples
    --------
    >>> policy = meanfield.datasets.smollm2().sel(pair="his/her")
    >>> points = meanfield.fixed_points(policy)
    >>> points["word_share"].sel(word="his").values.round(3)
    array([0.526])
    >>> points["eigenvalue"].values.round(3), points["stability"].values.tolist()
    (array([-0.183]), ['stable'])

    With two conventions there is a saddle between them:

    >>> def follow(memory):  # says the word that it remembers most
    ...     lead = sum(pair.count("A") - 1 for pair in memory)
    ...     return 0.52 if lead == 0 else 0.995 if lead > 0 else 0.005
    >>> points = meanfield.fixed_points(meanfield.make_policy(follow, ["A", "B"], memory_length=2))
    >>> points[["convention", "stability"]].to_dataframe()
                convention stability pair
    fixed_point
    0                    A    stable  A/B
    1                mixed  unstable  A/B
    2                    B    stable  A/B
    """
    options = {"masses": masses, "initial": initial, "starts": starts, "seed": seed, "progress": progress or None}
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(policy, ReactionModel):
        return reaction_fixed_points(policy, **given)
    if given:
        raise InputError(f"{next(iter(given))} is given: expected only with a ReactionModel, which needs a search")
    population = as_population(policy)
    roots, completeness = _all_roots(population) if population.space.n_words == 2 else _searched_roots(population)
    roots.sort(key=lambda root: tuple(-mixture_word_share(root.composition, population.mixture)))
    result = without_component(_label(population, roots), policy)
    result = result.assign_coords(names_of(policy))
    return stamp(result.assign_attrs(policy=population.name, completeness=completeness), "fixed_points", policy)


def _all_roots(population: Population) -> tuple[list[Root], str]:
    """The fixed points of two words, and a report of the search."""
    roots: list[Root] = []
    searched = []
    for branch, response in enumerate(responses(population)):
        found, report = interior_roots(response)
        for logit, error, slope in zip(found.roots, found.errors, found.slopes, strict=True):
            reach = error * np.array([0.0, -1.0, 1.0]) if error > COMPOSITION_ERROR else np.zeros(1)
            x, *around = (response.composition(Q) for Q in word_shares(logit + reach))
            roots.append(Root(branch, x, tuple(around), bool(slope < 0)))
        searched.append(f"Class {branch}: {report}")
    roots += exact_corners(population)
    if len(searched) > 1:
        searched.append("Mixtures of the classes that have the same Q are fixed points too.")
    if not roots:
        raise ConvergenceError(
            f"{population.name}: there is a fixed point, but rounding hides at which share: {' '.join(searched)}"
        )
    return roots, " ".join([*searched, "Exact corners are decided from the policy's zeros."])


def _searched_roots(population: Population) -> tuple[list[Root], str]:
    """The fixed points of more than two words found from many starts, and a report of the search."""
    roots: list[Root] = []
    searched = []
    n_words, n_flows = population.space.n_words, population.space.n_full // population.space.n_words
    if n_words**3 * n_flows > MAX_WORK:
        raise InputError(
            f"policy has {n_words} words and H = {population.space.memory_length}: the search of the simplex would "
            "take hours; expected fewer words or a shorter memory"
        )
    for support in supports(population, MAX_SUPPORTS):
        for branch, response in enumerate(responses(population, support)):
            found = simplex_roots(response, n_words, support=support)
            number = branch if len(support) > 1 else -1
            roots += [Root(number, response.composition(Q)) for Q in found.roots]
            searched.append(f"class {branch}, {found.report}")
    return roots, "not guaranteed; " + "; ".join(searched)


def interior_roots(response: Response) -> tuple[Roots, str]:
    """The roots of g as a function of logit Q, with 0 < Q < 1, and a report of the search in sentences."""

    def mismatch(logits: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
        Q = word_shares(logits)
        ratio = response(Q, tolerance) / Q  # close to 1 at a root, so that its logarithm loses no digit
        return np.log(ratio[:, 0]) - np.log(ratio[:, 1])

    if (response(word_shares(np.zeros(1))) == 0).any():
        return Roots(*np.empty((3, 0)), [], (np.inf, np.nan, np.nan), 0), "agents say one word only, so Q is 0 or 1."
    breaks = np.concatenate([-_outer(lambda x: -mismatch(-x)), LOGITS[1:-1], _outer(mismatch)])
    breaks.sort()
    look, exact = (partial(mismatch, tolerance=tolerance) for tolerance in (FIRST_LOOK / 100, ROUNDING))
    found = all_roots(look, breaks, FIRST_LOOK, exact=exact, rounding=ROUNDING)
    return found, _report(found, max(-breaks[0], breaks[-1]))


def _report(found: Roots, end: float) -> str:
    """The search for roots with |logit Q| up to `end`, in sentences."""
    which = "all roots" if not found.unresolved else "the roots that can be told apart"
    report = [f"{which} of g = log(F_0/F_1) - logit Q for |logit Q| <= {end:g}, from {found.evaluations} evaluations."]
    distance, where, error = found.closest
    if distance < np.inf:
        report.append(
            f"Where g turns |g| is at least {distance:.1g} (at logit Q = {where:.3g}, and its error below {error:.0e})."
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


def _outer(mismatch: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Breaks from 46 upwards, until g(ℓ) only moves away from zero or stays: there log(f_0/f_1) is n·ℓ + constant.

    n is 0 where the policy has a floor, so that g falls; n is an integer where each further minority choice needs n
    partners of the minority, so that g is constant (n = 1) or rises. Even then a floor may follow far out, at which g
    turns: it is no asymptote unless g still goes on in this way where a share is hardly a number.
    """

    def lasts(end: float, last: float, slope: int) -> bool:
        with np.errstate(divide="ignore"):
            far = float(mismatch(np.array([MAX_LOGIT]))[0])
        return not np.isfinite(far) or bool(abs(far - last - slope * (MAX_LOGIT - end)) < 1)

    end = LOGITS[-1]
    breaks = [end]
    while end < MAX_LOGIT:
        before, last = mismatch(np.array([end - 1, end]))
        slope = last - before
        if not np.isfinite(slope):
            raise ConvergenceError(
                f"a word's share cannot be told at logit Q = ±{end:g}: expected no choice probability between 0 and "
                f"{LEAST_SLIP:.0g}, or larger ones beside it; 0 says the same"
            )
        if abs(slope - round(slope)) < 1e-4 and slope * last >= 0 and lasts(end, last, round(slope)):
            break
        end = min(1.5 * end, MAX_LOGIT)
        breaks.append(end)
    return np.array(breaks)


def word_shares(logit: np.ndarray) -> np.ndarray:
    """(Q_0, Q_1) on the last axis, each to full relative accuracy."""
    return np.stack([expit(logit), expit(-logit)], axis=-1)


def exact_corners(population: Population) -> list[Root]:
    """Consensus states in which nobody ever says the other word, so that Q is exactly 0 or 1, up to 1e-261."""
    found = []
    for w, word in enumerate(population.words):
        others = np.delete(np.arange(population.space.n_words), w)
        slips = population.mixture.q[:, population.space.consensus_state(w)][:, others].max(1) > LEAST_SLIP
        if not (slips & (population.mixture.share > 0)).any() and not population.mixture.committed[others].any():
            x = consensus(population, word).values
            # Kinds of share 0 may slip: they follow the others, who don't notice.
            for m in np.flatnonzero(slips):
                x[m] = _following(population, int(m), w)
            found.append(Root(-1, x))
    return found


def _following(population: Population, kind: int, word: int) -> np.ndarray:
    """The stationary composition of agents who hear one word only."""
    q, space = population.mixture.q[kind], population.space
    law = StationaryLaw(q, space, closed_classes(q, space, heard=(word,))[0])
    return law.composition(np.eye(space.n_words)[word])


def _label(population: Population, roots: list[Root]) -> xr.Dataset:
    mixture, space = population.mixture, population.space
    x = np.array([root.composition for root in roots]).reshape(-1, len(population.policies), space.n_states)
    share = mixture_word_share(x, mixture)
    found = [leading_eigenvalues(mixture, one, space, x_error=COMPOSITION_ERROR) for one in x]
    leading = np.array([one.values[0] for one in found], dtype=complex)
    error = np.array([one.errors[0] for one in found], dtype=float)
    for number, root in enumerate(roots):
        moved = [leading_eigenvalues(mixture, one, space).values[0] for one in root.around]
        error[number] += np.abs(np.array(moved) - leading[number]).max(initial=0.0)
        if not root.may_be_stable:
            error[number] = max(error[number], -leading[number].real)
    floor_shift = np.array([one.floor_shifts[0] for one in found], dtype=float)
    conventions = [convention(one, population.words) for one in population.convincible_share(share)]
    residual = np.array([np.abs(mixture_drift(one[None], mixture)).max() for one in x])
    over = ("fixed_point",)
    kind = np.where(np.array(conventions) == MIXED, MIXED, "consensus")
    branch = np.array([root.branch for root in roots], dtype=int)
    columns = {
        "word_share": ((*over, "word"), share, "word share", "1"),
        **stability_columns(over, leading, error),
        "eigenvalue_floor_shift": (over, floor_shift, "shift of the eigenvalue without entries below 1e-14", "1/time"),
        "kind": (over, kind, "kind", "1"),
        "convention": (over, np.array(conventions, dtype=str), "convention", "1"),
        "branch": (over, branch, "closed class; -1 at an exact corner", "1"),
        "residual": (over, residual, "max |dx/dt|", "1/time"),
        "composition": ((*over, "component", "state"), x, "fraction of agents in each state", "1"),
    }
    result = labelled(columns, coords={**population.coords, "fixed_point": np.arange(len(roots))})
    if (residual > MAX_RESIDUAL).any():
        raise ConvergenceError(
            f"{population.name}: a root has max|dx/dt| = {residual.max():.1e} and is no fixed point; "
            "error.best has all roots with their residuals",
            best=result,
        )
    return result
