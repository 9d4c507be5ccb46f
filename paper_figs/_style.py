"""The style of the figures, their panels, and the files that they are written to."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from meanfield.toolbox import model_name, whole_file

P = ParamSpec("P")
R = TypeVar("R")

# Blue and orange are the strong and the weak word in the figures of [004]; colour-blind readers can distinguish them.
FIRST_WORD, SECOND_WORD = "#0072b2", "#e69f00"
COLOURS = (FIRST_WORD, SECOND_WORD, "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7f7f7f", "#000000")
STYLE = {
    "axes.prop_cycle": mpl.cycler(color=COLOURS),
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
}
SHARE = (-0.03, 1.03)  # limits of an axis for shares


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorator: the function draws its figure in the style of this module."""
    return mpl.rc_context(STYLE)(draw)


def grid_of_panels(
    n_panels: int, *, width: float = 2.6, height: float = 2.1, sharey: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with `n_panels` axes, at most four per row; the unused places are blank."""
    columns = min(4, n_panels)
    rows = -(-n_panels // columns)
    size = (width * columns + 0.6, height * rows + 0.6)
    figure, axes = plt.subplots(rows, columns, figsize=size, sharex=True, sharey=sharey, squeeze=False)
    flat = list(axes.ravel())
    for axis in flat[n_panels:]:
        axis.set_axis_off()
    for axis in flat[max(0, n_panels - columns) : n_panels]:
        axis.tick_params(labelbottom=True)
    return figure, flat[:n_panels]


def no_legend(axis: Axes) -> None:
    """Remove the legend that a view wrote, where the figure has one for all panels."""
    if legend := axis.get_legend():
        legend.remove()


def legend_below(figure: Figure, axis: Axes, ncols: int) -> None:
    """One legend for all panels: that of `axis`."""
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=ncols)


def model_title(result: xr.Dataset) -> str:
    """The name of a result's only model as the papers write it; '' if it names none or several."""
    one = "model" in result.coords and result["model"].size == 1
    return model_name(result["model"].values.item()) if one else ""


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write the figure to a file and close it; InputError if the file can't be written."""
    with whole_file(path) as temporary:
        # A date would make files differ that are equal
        figure.savefig(temporary, metadata={"CreationDate": None} if Path(path).suffix == ".pdf" else None)
    plt.close(figure)
    return Path(path)
