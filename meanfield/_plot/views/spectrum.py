"""Spectra: eigenvalues in the complex plane."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield.toolbox._errors import InputError

TOGETHER = 0.01  # of the width, within which eigenvalues can't be seen apart
LEAST_HEIGHT = 0.1
WIDTH = 36  # letters of a line in a legend


@draws("spectrum", view="complex_plane", reads="mode: eigenvalue eigenvalue_imaginary eigenvalue_error")
def complex_plane(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Eigenvalues with the bounds of their errors in the complex plane; what grows is right of the line at 0."""
    known = np.isfinite(part["eigenvalue"].values) & np.isfinite(part["eigenvalue_imaginary"].values)
    if not known.any():
        raise InputError("result has no number in eigenvalue and eigenvalue_imaginary: expected one at least")
    if not known.all():
        axes.plot([], [], " ", label=f"without numbers: {np.count_nonzero(~known)}")
    if told := part.attrs.get("completeness"):
        axes.plot([], [], " ", label=textwrap.fill(told, WIDTH))
    part = part.isel(mode=known)
    real, imaginary = part["eigenvalue"].values, part["eigenvalue_imaginary"].values
    error = np.where(np.isfinite(part["eigenvalue_error"]), part["eigenvalue_error"], 0.0)
    axes.axvline(0, color="0.4", linestyle="--", linewidth=1, zorder=1)
    look = {"fmt": "o", "color": "C0", "capsize": 2, **style}
    axes.errorbar(real, imaginary, xerr=error, yerr=error, **look)
    unit = part["eigenvalue"].attrs.get("units", "1/time")
    axes.set_xlabel(f"real part ({unit})")
    axes.set_ylabel(f"imaginary part ({unit})")
    height = max(1.3 * np.abs(imaginary).max(), LEAST_HEIGHT)
    axes.set_ylim(-height, height)
    axes.margins(x=0.1)
    unknown = np.flatnonzero(~np.isfinite(part["eigenvalue_error"]))
    _count(axes, real + 1j * imaginary, {k: " (error unknown)" for k in unknown.tolist()})


def _count(axes: Axes, values: np.ndarray, remarks: dict[int, str]) -> None:
    """Label each point at which several eigenvalues lie with their number."""
    left, right = axes.get_xlim()
    pending = list(range(len(values)))
    while pending:
        near = [k for k in pending if abs(values[k] - values[pending[0]]) < TOGETHER * (right - left)]
        text = (f"×{len(near)}" if len(near) > 1 else "") + "".join(remarks.get(k, "") for k in near[:1])
        if text:
            place = values[near[0]]
            axes.annotate(text, (place.real, place.imag), xytext=(4, 6), textcoords="offset points")
        pending = [k for k in pending if k not in near]
