"""All self-consistent m of the random-field mean field, [002] Eq. 9."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from meanfield import InputError
from meanfield.toolbox import all_roots, labelled, real_number, stability, stamp
from theory.flag_game.random_field._field_law import FieldLaw, field_law

TOLERANCE = 1e-12  # of g
BREAKS = 9


def fixed_points(fields: FieldLaw | ArrayLike, *, J: float, beta: float) -> xr.Dataset:
    """Every solution m* of m = E tanh(β(h + J m)), with its stability.

    The mean is over the agents of a sample of N fields, as in [002] Eq. 9; for a `FieldLaw` it is the limit N → ∞, by
    quadrature. All sign changes of a piecewise Chebyshev interpolant of f(Jm) - m on [-1, 1] are found. A solution is
    stable if f(Jm) - m falls there, both under m ← f(Jm) and under dm/dt = f(Jm) - m.

    Parameters
    ----------
    fields
        Sampled fields h_i, shape (N,), or a distribution of fields.
    J
        Coupling ≥ 0.
    beta
        β > 0; inf only for a distribution without single values: agents then decide by the sign of h + J m.

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

    >>> from theory.flag_game.random_field import bimodal_fields, fixed_points
    >>> points = fixed_points(bimodal_fields(0.0), J=1.5, beta=1.0)
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
    m = found.roots
    slope = J * law.slope(J * m, beta) - 1
    columns = {
        "m": ("fixed_point", m, "truth minus rival, [002] Eq. 9"),
        "q": ("fixed_point", law.commitment(J * m, beta), "commitment, [002] Eq. 8"),
        "slope": ("fixed_point", slope, "d/dm of f(Jm) - m"),
        "stability": ("fixed_point", stability(slope, np.where(found.slopes == 0, np.inf, 0.0)), "stability"),
        "residual": ("fixed_point", np.abs(mismatch(m)), "|f(Jm) - m|"),
    }
    result = labelled(columns, {"fixed_point": np.arange(len(m))})
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
    return stamp(result.assign_attrs(completeness=completeness), "random_field_fixed_points", None, J=J, beta=beta)


def check_coupling(J: float, beta: float) -> None:
    real_number("J", J, least=0)
    check_beta(beta)


def check_beta(beta: float) -> None:
    if not (isinstance(beta, (float, np.floating)) and beta == np.inf):
        real_number("beta", beta, above=0)
