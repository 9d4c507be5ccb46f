"""[002] Fig. 4a: accuracy of teams of two models by composition and uptake, measured and predicted from rewrites γ.

python -m paper_figs.flag_game_composition composition.nc flag_game_composition.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import LABELS, styled, write_figure

PREDICTION, MEASUREMENT = "black", "#d55e00"


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
    for axis, uptake in zip(axes[0], uptakes, strict=True):
        _panel(axis, comparison.sel(uptake=uptake))
        axis.set_title(f"uptake α = {uptake:g}")
    axes[0, 0].set_ylabel("collective mean accuracy")
    models = [LABELS.get(name, name) for name in comparison.attrs["models"]]
    axes[0, len(uptakes) // 2].set_xlabel(f"number of {models[1]} among {comparison.attrs['option_n_agents']} agents")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    given = ", ".join(f"γ = {g:.2f} for {name}" for name, g in zip(models, comparison.attrs["rewrite"], strict=True))
    figure.suptitle(f"Mechanism 2 ({given}) against measured teams", fontsize=9)
    return write_figure(figure, path)


def _panel(axis: Axes, one: xr.Dataset) -> None:
    number = one["number"].values
    predicted, error = one["collective_accuracy"].values, one["collective_accuracy_se"].values
    axis.fill_between(number, predicted - 2 * error, predicted + 2 * error, color=PREDICTION, alpha=0.15, lw=0)
    axis.plot(number, predicted, color=PREDICTION, lw=1.4, label="predicted, ± 2 SE")
    axis.errorbar(
        number,
        one["measured"],
        yerr=one["measured_se"],
        fmt="o",
        ms=4,
        capsize=2,
        color=MEASUREMENT,
        label="measured, ± SE",
    )
    axis.plot(number, one["initial_accuracy"], ":", color=PREDICTION, lw=1.0, label="predicted before talk")
    axis.plot(number, one["measured_initial"], "o", ms=3, mfc="none", color=MEASUREMENT, label="measured before talk")
    axis.set_ylim(0, 1.05)
    axis.set_xticks(number[::2])


if __name__ == "__main__":
    with arguments("paper_figs.flag_game_composition COMPOSITION.nc FIGURE") as (composition, figure):
        draw(meanfield.load(composition), figure)
