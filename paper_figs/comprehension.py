"""Models' accuracy in questions about their prompt, as in [004] Fig. S1.

python -m paper_figs.comprehension comprehension.nc [another.nc …] comprehension.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.patches import Patch

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import FIRST_WORD, SECOND_WORD, model_title, styled, write_figure

# The groups of questions of [004] Table S2, in colours that colour-blind readers can distinguish.
COLOURS = {"Rules": FIRST_WORD, "Time": SECOND_WORD, "State": "#009e73"}


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
        place = np.arange(one.sizes["question"])
        colours = [COLOURS[category] for category in one["category"].values]
        axis.bar(place, one["accuracy"], 0.7, yerr=one["standard_error"], capsize=3, color=colours)
        # Answers that failed by their form, not by their content
        axis.scatter(place, one["malformed"].mean("agent"), marker="_", s=90, color="black", label="not in the format")
        axis.set_ylim(0, 1.08)
        axis.set_ylabel("accuracy")
        axis.set_title(f"{model_title(one)}, {one.sizes['agent']} random memories")
        axis.set_xticks(place, one["question"].values, rotation=30, ha="right")
    groups = [Patch(color=colour) for colour in COLOURS.values()]
    marks, names = axes[0, 0].get_legend_handles_labels()
    figure.legend([*groups, *marks], [*COLOURS, *names], loc="outside upper center", ncols=4)
    return write_figure(figure, path)


if __name__ == "__main__":
    with arguments("paper_figs.comprehension COMPREHENSION.nc ... FIGURE") as (*results, figure):
        draw([meanfield.load(name) for name in results], figure)
