"""[002] Fig. 4a: accuracy of teams of two models by composition and uptake, measured and predicted from rewrites γ.

python -m paper_figs.flag_game_composition composition.nc flag_game_composition.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import LABELS, styled, write_figure


@styled
def draw(comparison: xr.Dataset, path: str | Path) -> Path:
    """Draw collective accuracy against the number of agents of the second model, one panel per uptake.

    Parameters
    ----------
    comparison
        From `validation.flag_game.compare_composition`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `comparison` is something else.
    """
    expect(comparison, "team_composition_comparison", "comparison")
    uptakes = comparison["uptake"].values
    figure, axes = plt.subplots(1, len(uptakes), figsize=(2.0 * len(uptakes) + 0.6, 3.0), sharey=True, squeeze=False)
    meanfield.plot(comparison, ax=axes)
    for axis, uptake in zip(axes[0], uptakes, strict=True):
        axis.set_title(f"uptake α = {uptake:g}")
        axis.get_legend().remove()
        axis.label_outer()
    models = [LABELS.get(name, name) for name in comparison.attrs["models"]]
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    given = ", ".join(f"γ = {g:.2f} for {name}" for name, g in zip(models, comparison.attrs["rewrite"], strict=True))
    figure.suptitle(f"Mechanism 2 ({given}) against measured teams", fontsize=9)
    return write_figure(figure, path)


if __name__ == "__main__":
    with arguments("paper_figs.flag_game_composition COMPOSITION.nc FIGURE") as (composition, figure):
        draw(meanfield.load(composition), figure)
