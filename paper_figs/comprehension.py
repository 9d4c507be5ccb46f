"""Models' accuracy in questions about their prompt, as in [004] Fig. S1.

python -m paper_figs.comprehension comprehension.nc [another.nc …] comprehension.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import model_title, styled, write_figure


@styled
def draw(results: xr.Dataset | Sequence[xr.Dataset], path: str | Path) -> Path:
    """Draw the accuracy of answers to each kind of question, with standard errors, one panel per model.

    Parameters
    ----------
    results
        One or several results of `policy_extraction.checks.comprehension`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `results` is empty or holds something else.
    """
    panels = [results] if isinstance(results, xr.Dataset) else list(results)
    for one in panels or [results]:
        expect(one, "comprehension", "results")
    height = 2.3 * len(panels) + 0.7
    figure, axes = plt.subplots(len(panels), 1, figsize=(5.6, height), sharex=True, squeeze=False)
    for axis, one in zip(axes[:, 0], panels, strict=True):
        meanfield.plot(one, ax=axis)
        axis.set_title(f"{model_title(one)}, {one.sizes['agent']} random memories")
    legends = [axis.get_legend() for axis in axes[:, 0]]
    names = [text.get_text() for text in legends[0].get_texts()]
    figure.legend(legends[0].legend_handles, names, loc="outside upper center", ncols=4)
    for legend in legends:
        legend.remove()
    return write_figure(figure, path)


if __name__ == "__main__":
    with arguments("paper_figs.comprehension COMPREHENSION.nc ... FIGURE") as (*results, figure):
        draw([meanfield.load(name) for name in results], figure)
