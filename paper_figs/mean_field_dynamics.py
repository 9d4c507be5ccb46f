"""[004] Figs. S28-S31: the word shares under the rate equation, one panel per word pair.

python -m paper_figs.mean_field_dynamics solution.nc mean_field_dynamics.png
"""

from __future__ import annotations

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order
from paper_figs._script import arguments
from paper_figs._style import grid_of_panels, model_title, styled, write_figure


@styled
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
    solution = solution.squeeze([dim for dim in ("model",) if dim in solution.dims])
    panels = solution if "pair" in solution.dims else solution.expand_dims("pair")
    drawn, axes = grid_of_panels(panels.sizes["pair"])
    for i, axis in enumerate(axes):
        one = panels.isel(pair=i)
        words = canonical_order(one, "solution")["word_label"].values
        axis.set_title("{" + ", ".join(words) + "}" + ("" if one["steady"] else ", not steady"))
        meanfield.plot(one, axis)
        axis.set(xlabel="", ylabel="")
    drawn.supxlabel("population round")
    drawn.supylabel("word share")
    drawn.suptitle(f"Mean-field dynamics, {model_title(panels)}".removesuffix(", "))
    return drawn


if __name__ == "__main__":
    with arguments("paper_figs.mean_field_dynamics SOLUTION.nc FIGURE") as (solution, path):
        draw(meanfield.load(solution), path)
