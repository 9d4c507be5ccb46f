"""The stability of a fixed point from its leading eigenvalue, and the columns in which results report it."""

from __future__ import annotations

from typing import Any

import numpy as np

# A policy that float64 rounds to a floor of 2e-16 has a zero eigenvalue displaced by the root of that floor, 1.5e-8.
MARGINAL = 1e-7


def stability(leading: Any, error: Any = 0.0, least: float = MARGINAL) -> np.ndarray:
    """'stable', 'unstable' or 'marginal', for each leading eigenvalue, real or complex.

    A fixed point is marginal if |Re λ| is at most `least` or the bound `error` of its error, or if one is not a number.
    """
    real = np.real(leading)
    decided = np.abs(real) > np.maximum(error, least)
    return np.where(decided, np.where(real < 0, "stable", "unstable"), "marginal")


def stability_columns(
    over: tuple[str, ...],
    leading: np.ndarray,
    error: np.ndarray | float,
    unit: str = "1/time",
    *,
    scale: float = 1.0,
    least: float = MARGINAL,
) -> dict[str, Any]:
    """The columns of stability that all results share, for `labelled`.

    Eigenvalues, errors and `least`, as for `stability`, are given in units of `scale`.
    """
    status = stability(leading, error, least)
    error = np.broadcast_to(error, leading.shape)
    return {
        "eigenvalue": (over, leading.real * scale, "leading eigenvalue, real part", unit),
        "eigenvalue_imaginary": (over, leading.imag * scale, "leading eigenvalue, imaginary part", unit),
        "eigenvalue_error": (over, error * scale, "bound of the error of the leading eigenvalue", unit),
        "stability": (over, status, "linear stability", "1"),
        "stable": (over, status == "stable", "leading eigenvalue below zero", "1"),
        "oscillatory": (over, np.abs(leading.imag) > error, "leading eigenvalue is complex", "1"),
    }
