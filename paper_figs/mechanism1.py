"""Mechanism 1 and GPT-4o: polarised ends and accuracy against N as in [002] Fig. 5c-d, and Eq. 9's phases in (N, J).

python -m paper_figs.mechanism1 fit.nc phases.nc mechanism1.png
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import styled, write_figure

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
    meanfield.plot(fit, ax=polarised, view="polarization")
    polarised.legend(loc="lower right")
    meanfield.plot(fit, ax=accuracy, view="accuracy")
    accuracy.get_legend().remove()
    meanfield.plot(phases, ax=phase, view="bistable")
    phase.set_title("samples of fields, by Eq. 9")
    figure.supxlabel(_caption(fit), fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


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
