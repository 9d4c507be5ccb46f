"""[004] Figs. S28-S31: the word shares under the rate equation, one panel per word pair."""

from __future__ import annotations

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order, in_braces
from paper_figs._style import grid_of_panels, model_title, styled, write_figure


@styled  # `savefig.dpi` counts when the file is written
def draw(solution: xr.Dataset, path: str | Path) -> Path:
    """Draw the word shares of one model's policies over population rounds.

    Parameters
    ----------
    solution
        From `meanfield.solve`, for one model, with or without a dim `pair`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If the solution holds several models.
    """
    return write_figure(figure(solution), path)


@styled
def figure(solution: xr.Dataset) -> Figure:
    """The figure that `draw` writes."""
    if solution.sizes.get("model", 1) > 1:
        raise InputError(f"solution holds the models {', '.join(solution.model.values)}: select one")
    panels = solution.squeeze([dim for dim in ("model",) if dim in solution.dims])
    panels = panels if "pair" in panels.dims else panels.expand_dims("pair")
    drawn, axes = grid_of_panels(panels.sizes["pair"])
    for i, axis in enumerate(axes):
        one = panels.isel(pair=i)
        meanfield.plot(one, axis)
        words = canonical_order(one, "solution")["word_label"].values
        axis.set(title=in_braces(words) + ("" if one["steady"] else ", not steady"), xlabel="", ylabel="")
    drawn.supxlabel("population round")
    drawn.supylabel("word share")
    drawn.suptitle(f"Mean-field dynamics, {model_title(panels)}".removesuffix(", "))
    return drawn
