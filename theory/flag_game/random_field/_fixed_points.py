"""All self-consistent m of the random-field mean field, [002] Eq. 9, and where they appear and vanish as J changes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield import InputError
from meanfield.toolbox import all_roots, labelled, real_number, stability, stamp
from theory.flag_game.random_field._field_law import FieldLaw, field_law

TOLERANCE = 1e-12  # of g
BREAKS = 9
POINTS = 801  # of a diagram
INTERVALS = 16
BESIDE = 1e-2  # social field in widths of f, too small for a fold, at which the cubic part of f still shows


def fixed_points(fields: FieldLaw | ArrayLike, *, J: float, beta: float) -> xr.Dataset:
    """Every solution m* of m = E tanh(β(h + J m)), with its stability.

    The mean is over the agents of a sample of N fields, as in [002] Eq. 9; for a `FieldLaw` it is the limit N → ∞, by
    quadrature. All sign changes of a piecewise Chebyshev interpolant of f(Jm) - m on [-1, 1] are found. A solution is
    stable if f(Jm) - m falls there, both under m ← f(Jm) and under dm/dt = f(Jm) - m.

    Parameters
    ----------
    fields
        Sampled fields h_i, shape (N,), or a distribution of fields.
    J, beta
        Coupling ≥ 0, and β > 0; inf only for a distribution without single values: agents then decide by the sign of
        h + J m.

    Returns
    -------
    Dataset over `fixed_point`, by rising m: `m`, `q` = E tanh²(β(h + J m)) ([002] Eq. 8), `slope` = J f'(Jm) - 1,
    `stability` (stable, unstable, marginal), `residual` = ``|f(Jm) - m|``. attrs["completeness"] describes the search.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bifurcation : for all couplings
    phase_diagram : for samples of fields

    Examples
    --------
    Without fields these are the solutions of m = tanh(βJ m).

    >>> points = theory.flag_game.random_field.fixed_points([0.0], J=1.5, beta=1.0)
    >>> points["stability"].values.tolist(), points["m"].values[[0, 2]].round(6)
    (['stable', 'unstable', 'stable'], array([-0.85856,  0.85856]))
    """
    law = field_law(fields)
    check_coupling(J, beta)
    if not np.isfinite(beta) and (law.sds == 0).any():
        raise InputError("beta = inf: fields of single values respond in steps; expected a finite beta")

    def mismatch(m: np.ndarray) -> np.ndarray:
        return law.response(J * m, beta) - m

    # |f| < 1, but large fields round to m = ±1, which a little room beyond 1 finds too
    found = all_roots(mismatch, np.linspace(-1.001, 1.001, BREAKS), tolerance=TOLERANCE)
    m, over = found.roots, "fixed_point"
    slope = J * law.slope(J * m, beta) - 1
    columns = {
        "m": (over, m, "truth minus rival, [002] Eq. 9"),
        "q": (over, law.commitment(J * m, beta), "commitment, [002] Eq. 8"),
        "slope": (over, slope, "d/dm of f(Jm) - m"),
        "stability": (over, stability(slope, np.where(found.slopes == 0, np.inf, 0.0)), "stability"),
        "residual": (over, np.abs(mismatch(m)), "|f(Jm) - m|"),
    }
    distance, where, error = found.closest
    which = "The solutions that can be told apart" if found.unresolved else "All solutions"
    completeness = f"{which} are listed, as the zeros of g = f(Jm) - m on [-1, 1]."
    if np.isfinite(distance):
        completeness += (
            f" Others could hide only where g turns without a zero; the nearest such place is m = {where:.4g}, where "
            f"|g| = {distance:.1g} with an error of at most {max(error, TOLERANCE):.0e}."
        )
    for left, right, _, bound in found.unresolved:
        completeness += f" Not resolved: |g| < {bound:.0e} for {left:.9g} < m < {right:.9g}."
    result = labelled(columns, {over: np.arange(len(m))}).assign_attrs(completeness=completeness)
    return stamp(result, "random_field_fixed_points", None, J=J, beta=beta)


def bifurcation(fields: FieldLaw | ArrayLike, *, beta: float, max_J: float = 10.0) -> xr.Dataset:
    """The solutions of [002] Eq. 9 for all couplings 0 < J ≤ `max_J`, their folds and their pitchfork.

    With the social field x = J m the equation is m = f(x), and J = x/f(x): every x belongs to at most one J, so the
    diagram needs no continuation. Solutions meet where dJ/dx = 0, hence f = x f'. If the distribution of h is
    symmetric, f is odd and m = 0 always a solution, which the branch J = x/f(x) leaves in the pitchfork J = 1/f'(0).

    Parameters
    ----------
    fields, beta
        As for `fixed_points`; β must be finite.
    max_J
        Largest coupling of the diagram.

    Returns
    -------
    Dataset with

    - over `point`, by rising social field: `social_field` x = J m, `m`, `J` (NaN where x belongs to no J ≥ 0) and
      `stable`. For symmetric fields the solution m = 0, stable below the pitchfork, is not among the points;
    - over `fold`: `fold_J` and `fold_m`;
    - `pitchfork_J` and `pitchfork_kind`: 'supercritical' if the new solutions are stable, else 'subcritical'; NaN and
      'none' for fields that are not symmetric.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    fixed_points : at one coupling
    pitchfork : where m = 0 becomes unstable

    Examples
    --------
    Solutions on either side appear in folds, at couplings far below the pitchfork of m = 0.

    >>> found = theory.flag_game.random_field.bifurcation([0.9, -0.9], beta=2.0)
    >>> found["fold_J"].values.round(3), float(found["pitchfork_J"].round(3)), found["pitchfork_kind"].item()
    (array([1.559, 1.559]), 4.828, 'subcritical')
    """
    law = field_law(fields)
    real_number("beta", beta, above=0)
    real_number("max_J", max_J, above=0)
    x = np.linspace(-max_J, max_J, POINTS)
    m, slope = law.response(x, beta), law.slope(x, beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        coupling = np.where((x * m > 0) & (x / m <= max_J), x / m, np.nan)

    def tangent(x: np.ndarray) -> np.ndarray:
        return law.response(x, beta) - x * law.slope(x, beta)

    # Of symmetric fields f - x f' has a triple root at the pitchfork; dividing by it would turn rounding into roots.
    smallest = BESIDE * law.width(beta)
    if not law.symmetric:
        fold_x = all_roots(tangent, np.linspace(-max_J, max_J, 2 * INTERVALS), tolerance=1e-9).roots
    elif smallest < max_J:
        right = all_roots(tangent, np.linspace(smallest, max_J, INTERVALS), tolerance=1e-9).roots
        fold_x = np.concatenate([-right[::-1], right])
    else:
        fold_x = np.empty(0)
    fold_m = law.response(fold_x, beta)
    exists = (fold_x * fold_m > 0) & (np.abs(fold_x) <= max_J * np.abs(fold_m))  # at some J up to max_J
    fold_x, fold_m = fold_x[exists], fold_m[exists]
    pitchfork_J, kind = pitchfork(law, beta=beta)
    columns = {
        "social_field": ("point", x, "social field J m", "nat"),
        "m": ("point", m, "truth minus rival, [002] Eq. 9"),
        "J": ("point", coupling, "coupling to which the point belongs", "nat"),
        "stable": ("point", coupling * slope < 1, "whether the solution is stable"),
        "fold_J": ("fold", fold_x / fold_m, "coupling at a fold", "nat"),
        "fold_m": ("fold", fold_m, "m at a fold"),
        "pitchfork_J": ((), pitchfork_J, "coupling at the pitchfork", "nat"),
        "pitchfork_kind": ((), kind, "kind of the pitchfork"),
    }
    result = labelled(columns, {"point": np.arange(len(x)), "fold": np.arange(len(fold_x))})
    return stamp(result, "random_field_bifurcation", None, beta=beta, max_J=max_J)


def pitchfork(fields: FieldLaw | ArrayLike, *, beta: float) -> tuple[float, str]:
    """(J, kind) at which m = 0 loses its stability for symmetric fields: J = 1/f'(0) = 1/(β E sech²(βh)).

    The kind is 'supercritical' if f is concave to the right of 0 (f''' < 0): two stable solutions grow out of m = 0.
    Otherwise it is 'subcritical', and they appear earlier, in folds. The result is (NaN, 'none') if the fields are not
    symmetric, and J is inf if f'(0) underflows. β may be infinite for a distribution without single values: J = 1/(2
    p(0)) with the density p of h.

    Parameters
    ----------
    fields, beta
        As for `fixed_points`.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bifurcation : folds too

    Examples
    --------
    Without fields it is the critical point of Curie and Weiss, βJ = 1. Normal fields have it at J = σ √(π/2) for β → ∞.

    >>> from theory.flag_game.random_field import FieldLaw, pitchfork
    >>> pitchfork([0.0], beta=2.0), pitchfork([0.9, -0.9], beta=2.0)[1]
    ((0.5, 'supercritical'), 'subcritical')
    >>> round(pitchfork(FieldLaw([1.0], [0.0], [1.0]), beta=np.inf)[0], 6)
    1.253314
    """
    law = field_law(fields)
    _check_beta(beta)
    if not law.symmetric:
        return float("nan"), "none"
    slope = float(law.slope(np.zeros(()), beta))
    curved = float(law.slope(np.array(BESIDE * law.width(beta)), beta)) - slope
    return 1 / slope if slope > 0 else np.inf, "supercritical" if curved < 0 else "subcritical"


def check_coupling(J: float, beta: float) -> None:
    """InputError unless J is a coupling and β positive or infinite."""
    real_number("J", J, least=0)
    _check_beta(beta)


def _check_beta(beta: float) -> None:
    if not (isinstance(beta, (float, np.floating)) and beta == np.inf):
        real_number("beta", beta, above=0)
