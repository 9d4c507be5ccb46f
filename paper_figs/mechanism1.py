"""Mechanism 1 and GPT-4o: polarised ends and accuracy against N as in [002] Fig. 5c-d, and Eq. 9's phases in (N, J).

python -m paper_figs.mechanism1 fit.nc phases.nc mechanism1.png
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator, StrMethodFormatter

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import FIRST_WORD, SECOND_WORD, styled, write_figure
from validation.comparison import wilson_interval

LEVEL = 0.95
NORMAL = 1.959963984540054
LINE_LENGTH = 150


@styled
def draw(fit: xr.Dataset, phases: xr.Dataset, path: str | Path) -> Path:
    """Draw the fitted and the published curves with the measured points, and the phases of Eq. 9.

    Parameters
    ----------
    fit
        From `theory.fit_mechanism1`.
    phases
        From `theory.flag_game.random_field.phase_diagram`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If an argument is something else.
    """
    expect(fit, "mechanism1_fit", "fit")
    expect(phases, "random_field_phase_diagram", "phases")
    figure, (polarised, accuracy, phase) = plt.subplots(1, 3, figsize=(9.6, 3.5))
    _polarised(polarised, fit)
    _accuracy(accuracy, fit)
    _phases(figure, phase, phases)
    polarised.legend(loc="lower right")
    figure.supxlabel(_caption(fit), fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


def _curves(axis: Axes, fit: xr.Dataset, fitted: xr.DataArray, paper: xr.DataArray) -> None:
    axis.plot(fit["n_agents"], fitted, color=FIRST_WORD, lw=1.6, label="fitted here")
    axis.plot(fit["n_agents"], paper, color=SECOND_WORD, lw=1.2, ls="--", label="parameters of [002]")


def _polarised(axis: Axes, fit: xr.Dataset) -> None:
    one = fit.sel(endpoint="polarization")
    _curves(axis, fit, one["fitted"], one["paper"])
    share = one["measured"].values
    counts = np.round(share * fit["seeds"].values)
    ends = [wilson_interval(c, int(n), LEVEL) for c, n in zip(counts, fit["seeds"].values, strict=True)]
    distance = np.abs(np.array(ends, dtype=float).T - share)
    axis.errorbar(fit["n_agents"], share, yerr=distance, fmt="o", ms=4, capsize=2, color="black", label="measured")
    _by_size(axis, fit["n_agents"].values)
    axis.set_ylim(0, 1)
    axis.set_title("polarised ends, fraction of runs")


def _accuracy(axis: Axes, fit: xr.Dataset) -> None:
    _curves(axis, fit, fit["fitted_accuracy"], fit["paper_accuracy"])
    bars = NORMAL * fit["measured_accuracy_error"]
    axis.errorbar(fit["n_agents"], fit["measured_accuracy"], yerr=bars, fmt="o", ms=4, capsize=2, color="black")
    _by_size(axis, fit["n_agents"].values)
    axis.set_ylim(0, 1)
    axis.set_title("collective mean accuracy")


def _phases(figure: Figure, axis: Axes, phases: xr.Dataset) -> None:
    """The fraction of field samples with stable states on both sides."""
    bistable = phases["bistable"].transpose("J", "n_agents")
    sizes = phases["n_agents"].values
    places = np.arange(len(sizes))  # a cell must be as wide for N = 4 as for N = 128
    mesh = axis.pcolormesh(places, phases["J"], bistable, shading="nearest", cmap="viridis", vmin=0, vmax=1)
    axis.set_xticks(places, [f"{n:g}" for n in sizes])
    axis.set_xlabel("number of agents N")
    axis.set_ylabel("coupling J")
    axis.set_title("samples with a truth and a rival state")
    figure.colorbar(mesh, ax=axis)


def _by_size(axis: Axes, sizes: np.ndarray) -> None:
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("number of agents N")


def _caption(fit: xr.Dataset) -> str:
    a = fit.attrs
    unknown = int((~fit["direction_determined"]).sum())
    text = (
        f"Bars: 95 % intervals. Log-likelihood {a['log_likelihood']:.1f}, with the parameters of [002] "
        f"{a['log_likelihood_paper']:.1f}. Of {fit.sizes['direction']} directions in the space of the free parameters "
        f"the data leave {unknown} unknown."
    )
    return textwrap.fill(text, LINE_LENGTH)


if __name__ == "__main__":
    with arguments("paper_figs.mechanism1 FIT.nc PHASES.nc FIGURE") as (fit, phases, figure):
        draw(meanfield.load(fit), meanfield.load(phases), figure)
