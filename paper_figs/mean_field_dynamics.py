"""[004] Figs. S28-S31: the word shares under the rate equation, one panel per word pair.

python -m paper_figs.mean_field_dynamics solution.nc mean_field_dynamics.png
"""

from __future__ import annotations

from pathlib import Path

import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order
from paper_figs._script import arguments
from paper_figs._style import FIRST_WORD, SECOND_WORD, grid_of_panels, model_title, styled, write_figure


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
        If the solution holds several models or more than two words.
    """
    if solution.sizes.get("model", 1) > 1:
        raise InputError(f"solution holds the models {', '.join(solution.model.values)}: select one")
    if solution.sizes["word"] != 2:
        raise InputError(f"solution has {solution.sizes['word']} words: the figure is for two")
    solution = canonical_order(solution, "solution")
    solution = solution.squeeze([dim for dim in ("model",) if dim in solution.dims])
    panels = solution if "pair" in solution.dims else solution.expand_dims("pair")
    labels = panels["word_label"].broadcast_like(panels["word_share"].isel(time=0))
    figure, axes = grid_of_panels(panels.sizes["pair"])
    for i, axis in enumerate(axes):
        one = panels.isel(pair=i)
        words = labels.isel(pair=i).values
        for word, colour in enumerate((FIRST_WORD, SECOND_WORD)):
            axis.plot(one["round"], one["word_share"].isel(word=word), color=colour, label=words[word])
        axis.set_title("{" + ", ".join(words) + "}" + ("" if one["steady"] else ", not steady"))
        axis.set_ylim(-0.03, 1.03)
        axis.set_xlim(0, _settled(panels))
        axis.legend(loc="best", handlelength=1)
    figure.supxlabel("population round")
    figure.supylabel("word share")
    figure.suptitle(f"Mean-field dynamics, {model_title(panels)}".removesuffix(", "))
    return write_figure(figure, path)


def _settled(panels: xr.Dataset) -> float:
    """The round after which no word share of any panel moves by 0.005, with a margin; the axes are shared."""
    share = panels["word_share"]
    moving = (abs(share - share.isel(time=-1)) > 0.005).any([dim for dim in share.dims if dim != "time"])
    last = int(moving.values.nonzero()[0].max(initial=0))
    return float(min(panels["round"][-1], max(10.0, 1.15 * panels["round"][last])))


if __name__ == "__main__":
    with arguments("paper_figs.mean_field_dynamics SOLUTION.nc FIGURE") as (solution, figure):
        draw(meanfield.load(solution), figure)
