"""Fixed points and critical committed fractions of the two-word minimal naming game, by exact elimination."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sp
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.toolbox import MIXED, label_of, labelled, one_or_several, shown, stability_columns, stamp
from theory.minimal_naming_game._rate_equation import (
    SPECIES,
    SURE,
    RateEquation,
    check_rule,
    checked_answers,
    rate_equation,
)

Number = float | Fraction | sp.Rational
Answers = tuple[Number, Number]
Exact = Any  # sp.Rational: sympy annotates every quotient of two as possibly NaN or infinite
WORDS = ("A", "B")
# Isolating intervals of roots are refined to WIDTH. The residuals of a pair that solves both equations are then about
# WIDTH, and far larger for any other pair: SAME lies between.
WIDTH = sp.Rational(1, 10**40)
SAME = sp.Rational(1, 10**30)
LEAST_TOLD = "and none between 0 and 1e-30"  # SAME
# Eigenvalues carry the rounding of float64, about 1e-16; a fold is approached as the root of the distance.
EIGENVALUE_ERROR = 1e-10


@cache
def _numeric_rhs(rule: str, accepts: Answers):
    equation = rate_equation(rule, accepts)
    return sp.lambdify((*equation.x, equation.p, *equation.committed), list(equation.rhs), "numpy")


def fixed_points(
    p: Number, committed: tuple[Number, Number] = (0, 0), rule: str = "both", accepts: Answers = SURE
) -> xr.Dataset:
    """Every fixed point of the two-word minimal naming game, with its spectrum.

    With x_AB eliminated, the resultants of dx_A/dt and dx_B/dt are polynomials in x_A or x_B alone with rational
    coefficients. Their real roots are isolated exactly, so no fixed point is missed, however close to another.

    Parameters
    ----------
    p
        Probability that an agent with both words utters A. A float stands for the decimal it prints: 0.1 is 1/10.
    committed
        (c_A, c_B), the fractions of agents who always utter A or B and never change.
    rule
        Who updates on success: 'both' or 'listener'.
    accepts
        (π, φ), the probabilities that a hearer says yes to a word that it holds, and to one that it does not. Without
        a yes nobody drops a word, and a hearer adds one that it does not hold.

    Returns
    -------
    Dataset over `fixed_point`, by decreasing share of A, with

    - `composition` (species), fractions of all agents, and `word_share` (word), which includes the committed;
    - `eigenvalue` to `oscillatory`, the leading eigenvalue of the reduced Jacobian and the stability, as in
      `meanfield.fixed_points`; `spectrum` (mode), the real parts of both eigenvalues, per unit of time;
    - `kind` (consensus, or mixed: success rate below 0.98), `convention` (its word, or 'mixed'), `label`, which
      names the leading word in any case ('mostly A (0.97)'), and `residual` = max|dx/dt|.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    critical_fraction : where one of them vanishes
    validation.minimal_naming_game.simulate : N agents

    Examples
    --------
    With 5 % committed to A, the other word survives; with 10 % it does not.

    >>> for committed in (0.05, 0.1):
    ...     points = theory.minimal_naming_game.fixed_points(0.5, committed=(committed, 0))
    ...     print(points["stability"].values.tolist(), points["word_share"].sel(word="A").values.round(3).tolist())
    ['stable', 'unstable', 'stable'] [1.0, 0.436, 0.086]
    ['stable'] [1.0]
    """
    bias, minorities = _exact_parameters(p, committed, rule)
    equation = rate_equation(rule, accepts)
    values = {equation.p: bias, **dict(zip(equation.committed, minorities, strict=True))}
    points = _solutions(equation, values)
    spectra = np.empty((len(points), 2), dtype=complex)  # of the reduced Jacobian, the leading eigenvalue first
    for k, point in enumerate(points):
        jacobian = equation.jacobian.subs(values | dict(zip(equation.x[:2], point, strict=True)))
        found = np.linalg.eigvals(np.array(jacobian, dtype=float))
        spectra[k] = found[np.argsort(-found.real)]
    free = 1 - sum(minorities)
    composition = np.clip(np.array([(a, b, free - a - b) for a, b in points], dtype=float), 0, None)
    share_of_a = composition @ [1, 0, float(bias)] + float(minorities[0])
    order = np.argsort(-share_of_a, kind="stable")
    composition, share_of_a, spectra = composition[order], share_of_a[order], spectra[order]
    share = np.stack([share_of_a, 1 - share_of_a], axis=-1)
    conventions = np.array([meanfield.convention(one, WORDS) for one in share], dtype=str)
    rates = _numeric_rhs(rule, checked_answers(accepts))(*composition.T, *map(float, (bias, *minorities)))
    over = "fixed_point"
    columns = {
        "composition": ((over, "species"), composition, "fraction of all agents, uncommitted"),
        "word_share": ((over, "word"), share, "word share"),
        **stability_columns((over,), spectra[:, 0], EIGENVALUE_ERROR, least=0.0),
        "spectrum": ((over, "mode"), spectra.real, "eigenvalues, real parts", "1/time"),
        "kind": (over, np.where(conventions == MIXED, MIXED, "consensus"), "kind"),
        "convention": (over, conventions, "convention"),
        "label": (over, np.array([label_of(one, WORDS) for one in share], dtype=str), "name"),
        "residual": (over, np.max(np.abs(np.broadcast_arrays(*rates)), axis=0), "max |dx/dt|", "1/time"),
    }
    coords = {over: np.arange(len(share)), "species": list(SPECIES), "word": list(WORDS), "mode": [0, 1]}
    told = "All fixed points are listed: every real root of the resultants, isolated exactly."
    options = {"p": str(bias), "committed_a": str(minorities[0]), "committed_b": str(minorities[1]), "rule": rule}
    options["accepts"] = " ".join(map(str, checked_answers(accepts)))
    result = labelled(columns, coords).assign_attrs(completeness=told)
    return stamp(result, "minimal_naming_game_fixed_points", **options)


def critical_fraction(p: Number, rule: str = "both", committed_b: Number = 0, accepts: Answers = SURE) -> float:
    """The fraction of agents committed to A above which the state that favours B is gone.

    This root of `critical_polynomial` is the fold at which the state meets a saddle. For the rule 'listener' and
    committed_b = 0 it is ((1 - √(1 - p + p²))/p)². At p = ½ this is 7 - 4√3 = 0.0718, and 0.0979 for 'both'
    (Xie et al. 2011, Phys. Rev. E 84, 011130). For agents committed to B instead, swap the words: p → 1 - p.

    Parameters
    ----------
    p
        Probability that an agent with both words utters A. At p = 1, committed_b = 0 and default `accepts` it is 0.
    rule
        'both' or 'listener'.
    committed_b
        Fraction of agents committed to B, held fixed.
    accepts
        As for `fixed_points`.

    Returns
    -------
    A fraction of all agents; NaN where so many are committed to B that the share of A rises without a fold.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    critical_polynomial : exactly
    fixed_points : on both sides of it

    Examples
    --------
    >>> from theory.minimal_naming_game import critical_fraction
    >>> round(critical_fraction(0.5), 6), round(critical_fraction(0.5, rule="listener"), 6)
    (0.097889, 0.071797)
    """
    fold = _fold(p, rule, committed_b, accepts)
    return float("nan") if fold is None else float(fold[0])


def critical_polynomial(
    p: Number, rule: str = "both", committed_b: Number = 0, accepts: Answers = SURE
) -> sp.Poly | None:
    """The irreducible polynomial in c_A over the rationals whose root is `critical_fraction`; None for NaN.

    At p = ½ and committed_b = 0 it is 2c³ + 3c² + 204c - 20 for 'both' and c² - 14c + 1 for 'listener'.

    Parameters
    ----------
    p, rule, committed_b, accepts
        As for `critical_fraction`.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    critical_fraction : its root

    Examples
    --------
    >>> theory.minimal_naming_game.critical_polynomial(0.5).as_expr()
    2*c_A**3 + 3*c_A**2 + 204*c_A - 20
    """
    fold = _fold(p, rule, committed_b, accepts)
    return None if fold is None else fold[1]


def _fold(p: Number, rule: str, committed_b: Number, accepts: Answers) -> tuple[Exact, sp.Poly] | None:
    """The critical fraction, to WIDTH, and its polynomial."""
    bias, _ = _exact_parameters(p, (0, 0), rule)
    minority = _exact(committed_b)
    if minority is None or not 0 <= minority <= 1:
        raise InputError(f"committed_b = {shown(committed_b)}: expected a fraction, 0 to 1, {LEAST_TOLD}")
    equation = rate_equation(rule, accepts)
    c = equation.committed[0]
    if bias == 1 and minority == 0 and checked_answers(accepts) == SURE:
        return sp.Integer(0), sp.Poly(c, c)  # consensus on B is marginal already without committed agents
    reduced = equation.reduced.subs({equation.p: bias, equation.committed[1]: minority})
    (a, b, _), largest = equation.x, 1 - minority
    factors = [factor for factor, _ in sp.factor_list(sp.resultant(*reduced, b), a, c)[1]]
    # each factor once: a repeated one would make the discriminant vanish everywhere
    discriminant = sp.discriminant(sp.prod(factors), a)
    polynomials = [factor for factor, _ in sp.Poly(discriminant, c).factor_list()[1]]
    met = [(root, one) for one in polynomials for root in _real_roots(one) if 0 < root < largest]
    candidates = sorted(met, key=lambda pair: pair[0])
    # Fixed points appear, vanish or cross only there, where two roots of the resultant meet: one sample between two of
    # these fractions tells their number and stability for the whole interval.
    edges = [sp.Integer(0), *(root for root, _ in candidates), largest]
    samples = [(low + high) / 2 for low, high in pairwise(edges)]
    bistable = [int(fixed_points(bias, (s, minority), rule, accepts)["stable"].sum()) > 1 for s in samples]
    losses = [k for k in range(len(candidates)) if bistable[k] and not bistable[k + 1]]
    return candidates[losses[-1]] if losses else None


def _solutions(equation: RateEquation, values: dict) -> list[tuple[Exact, Exact]]:
    """(x_A, x_B), to WIDTH, of the real solutions on the simplex."""
    a, b, _ = equation.x
    f, g = (sp.Poly(row.subs(values), a, b) for row in equation.reduced)
    free = 1 - sum(values[c] for c in equation.committed)
    eliminated = [sp.Poly(sp.resultant(f, g, other), kept) for kept, other in ((a, b), (b, a))]
    if any(one.is_zero for one in eliminated):
        told = ", ".join(f"{name} = {float(value):g}" for name, value in values.items())
        raise InputError(f"fixed points form a curve at {told} and these answers: expected isolated ones")
    roots_a, roots_b = ([root for root in _real_roots(one) if -SAME <= root <= free + SAME] for one in eliminated)
    pairs = ((u, v) for u in roots_a for v in roots_b if u + v <= free + SAME)
    return [pair for pair in pairs if abs(f(*pair)) < SAME and abs(g(*pair)) < SAME]


def _real_roots(polynomial: sp.Poly) -> list[Exact]:
    """Distinct real roots, to WIDTH; rational ones may be exact."""
    intervals: Any = polynomial.sqf_part().intervals(eps=WIDTH, sqf=True)
    return [(low + high) / 2 for low, high in intervals]


def _exact_parameters(p: Number, committed: tuple[Number, Number], rule: str) -> tuple[Exact, tuple[Exact, ...]]:
    """p and the committed fractions as rationals, once they and the rule are found to be in range."""
    check_rule(rule)
    bias = _exact(p)
    if bias is None or not 0 <= bias <= 1:
        raise InputError(f"p = {shown(p)}: expected a probability, 0 to 1, {LEAST_TOLD}")
    minorities = tuple(map(_exact, one_or_several(committed)))
    if len(minorities) != 2 or any(c is None or c < 0 for c in minorities) or sum(minorities) > 1:
        raise InputError(
            f"committed = {shown(committed)}: expected two fractions, 0 or more, that sum to at most 1, {LEAST_TOLD}"
        )
    return bias, minorities


def _exact(value: Number) -> Exact | None:
    """The number that `value` prints as, or None where that is none."""
    try:
        exact = sp.Rational(value if isinstance(value, (int, Fraction, sp.Rational)) else repr(float(value)))
    except (TypeError, ValueError):  # nan and inf
        return None
    return None if 0 < exact < SAME else exact
