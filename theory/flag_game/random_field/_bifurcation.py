"""Where solutions of [002] Eq. 9 appear and vanish as the coupling J changes.

With the social field x = J m the equation is m = f(x), and J = x/f(x): every x belongs to at most one J, so the diagram
needs no continuation. Solutions meet where dJ/dx = 0, hence f = x f'. If the distribution of h is symmetric, f is odd
and m = 0 is always a solution; the branch J = x/f(x) leaves it in the pitchfork at J = 1/f'(0).
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield.toolbox import all_roots, labelled, real_number, stamp
from theory.flag_game.random_field._field_law import FieldLaw, field_law
from theory.flag_game.random_field._fixed_points import check_beta

POINTS = 801
INTERVALS = 16
BESIDE = 1e-2  # social field in widths of f, too small for a fold, at which the cubic part of f still shows


def bifurcation(fields: FieldLaw | ArrayLike, *, beta: float, max_J: float = 10.0) -> xr.Dataset:
    """The solutions of [002] Eq. 9 for all couplings 0 < J ≤ `max_J`, their folds and their pitchfork.

    Parameters
    ----------
    fields
        Sampled fields, shape (N,), or a distribution of fields.
    beta
        β > 0, finite.
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

    >>> from theory.flag_game.random_field import bifurcation, bimodal_fields
    >>> found = bifurcation(bimodal_fields(0.9), beta=2.0)
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
    fold_x = _folds(law, beta, max_J)
    fold_m = law.response(fold_x, beta)
    pitchfork_J, kind = pitchfork(law, beta=beta)
    over = ("point",)
    columns = {
        "social_field": (over, x, "social field J m", "nat"),
        "m": (over, m, "truth minus rival, [002] Eq. 9", "1"),
        "J": (over, coupling, "coupling to which the point belongs", "nat"),
        "stable": (over, coupling * slope < 1, "whether the solution is stable", "1"),
        "fold_J": (("fold",), fold_x / fold_m, "coupling at a fold", "nat"),
        "fold_m": (("fold",), fold_m, "m at a fold", "1"),
        "pitchfork_J": ((), pitchfork_J, "coupling at the pitchfork", "nat"),
        "pitchfork_kind": ((), kind, "kind of the pitchfork", "1"),
    }
    result = labelled(columns, {"point": np.arange(len(x)), "fold": np.arange(len(fold_x))})
    return stamp(result, "random_field_bifurcation", None, beta=beta, max_J=max_J)


def _folds(law: FieldLaw, beta: float, max_J: float) -> np.ndarray:
    """Social fields x with f = x f' and 0 < J ≤ max_J, without the pitchfork at x = 0 of symmetric fields."""

    def tangent(x: np.ndarray) -> np.ndarray:
        return law.response(x, beta) - x * law.slope(x, beta)

    if law.symmetric:
        # f - x f' has a triple root at the pitchfork; dividing by it would turn rounding into many roots.
        smallest = BESIDE * law.width(beta)
        if smallest >= max_J:
            return np.empty(0)
        found = all_roots(tangent, np.linspace(smallest, max_J, INTERVALS), tolerance=1e-9).roots
        x = np.concatenate([-found[::-1], found])
    else:
        x = all_roots(tangent, np.linspace(-max_J, max_J, 2 * INTERVALS), tolerance=1e-9).roots
    m = law.response(x, beta)
    exists = (x * m > 0) & (np.abs(x) <= max_J * np.abs(m))
    return x[exists]


def pitchfork(fields: FieldLaw | ArrayLike, *, beta: float) -> tuple[float, str]:
    """(J, kind) at which m = 0 loses its stability for symmetric fields: J = 1/f'(0) = 1/(β E sech²(βh)).

    The kind is 'supercritical' if f is concave to the right of 0 (f''' < 0): two stable solutions grow out of m = 0.
    Otherwise it is 'subcritical', and they appear earlier, in folds. The result is (NaN, 'none') if the fields are not
    symmetric, and J is inf if f'(0) underflows. β may be infinite for a distribution without single values: J = 1/(2
    p(0)) with the density p of h.

    Parameters
    ----------
    fields
        Sampled fields, shape (N,), or a distribution of fields.
    beta
        β > 0.

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    bifurcation : folds too

    Examples
    --------
    Without fields it is the critical point of Curie and Weiss, βJ = 1.

    >>> from theory.flag_game.random_field import bimodal_fields, pitchfork
    >>> pitchfork(bimodal_fields(0.0), beta=2.0)
    (0.5, 'supercritical')
    >>> pitchfork(bimodal_fields(0.9), beta=2.0)[1]
    'subcritical'
    """
    law = field_law(fields)
    check_beta(beta)
    if not law.symmetric:
        return float("nan"), "none"
    slope = float(law.slope(np.zeros(()), beta))
    curved = float(law.slope(np.array(BESIDE * law.width(beta)), beta)) - slope
    return 1 / slope if slope > 0 else np.inf, "supercritical" if curved < 0 else "subcritical"
