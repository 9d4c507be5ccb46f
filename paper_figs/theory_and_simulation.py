"""Mean field against simulation: trajectories as in [004] Fig. 4, collective bias against N as in Fig. 3.

python -m paper_figs.theory_and_simulation comparison.nc theory_and_simulation.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import meanfield
from meanfield import InputError
from meanfield.toolbox import MIXED, canonical_order
from paper_figs._script import arguments
from paper_figs._style import model_title, styled, write_figure

# Population sizes are ordered, so their colours are too; black is the theory.
SIZES = mpl.colormaps["viridis_r"]


@styled
def draw(comparison: xr.Dataset, path: str | Path) -> Path:
    """Draw the word share over rounds and the outcome of the runs against N, one column per word pair.

    A third row shows the error of theory against N if it is resolved at two sizes or more.

    Parameters
    ----------
    comparison
        From `validation.compare`, with or without a dim `pair`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If the comparison is over more than two words.
    """
    if comparison.sizes["word"] != 2:
        raise InputError(f"comparison has {comparison.sizes['word']} words: the figure is for two")
    comparison = canonical_order(comparison, "comparison").transpose(..., "n_agents", "word", "bound")
    panels = comparison if "pair" in comparison.dims else comparison.expand_dims("pair")
    n_pairs = panels.sizes["pair"]
    rows = 2 + bool(np.isfinite(panels["error_slope"]).any())
    size = (2.9 * n_pairs + 0.6, 2.6 * rows)
    figure, axes = plt.subplots(rows, n_pairs, figsize=size, sharex="row", sharey="row", squeeze=False)
    for column in range(n_pairs):
        one = panels.isel(pair=column)
        _trajectories(axes[0, column], one)
        _outcomes(axes[1, column], one)
        if rows == 3:
            _errors(axes[2, column], one)
    axes[0, 0].legend(loc="best")
    axes[0, 0].set_ylabel("word share of the first word")
    axes[1, 0].set_ylabel("fraction of runs")
    if rows == 3:
        axes[2, 0].set_ylabel("error of theory")
    runs = f"{comparison.attrs['option_runs']:,} simulated runs"
    figure.suptitle(f"{model_title(panels)}: rate equation (black) and {runs}".removeprefix(": "))
    return write_figure(figure, path)


def _words(one: xr.Dataset) -> list[str]:
    return [str(word) for word in one["word_label"].values.ravel()]


def _trajectories(axis: Axes, one: xr.Dataset) -> None:
    first, second = _words(one)
    for k, n_agents in enumerate(one["n_agents"].values):
        line = one.sel(n_agents=n_agents).isel(word=0)
        colour = SIZES((k + 1) / (one.sizes["n_agents"] + 1))
        mean, band = line["simulated"].values, line["band"].values
        # Wide lines below narrow ones: where the curves fall together, all of them stay visible.
        width = 1.5 + 2.0 * (one.sizes["n_agents"] - 1 - k)
        axis.plot(line["round"], mean, color=colour, lw=width, label=f"N = {n_agents:,}")
        axis.fill_between(line["round"], mean - band, mean + band, color=colour, alpha=0.25, lw=0)
    axis.plot(one["round"], one["theory"].isel(word=0), "k--", lw=1.2, label="rate equation")
    axis.set_title(f"{{{first}, {second}}}: share of '{first}'")
    axis.set_ylim(-0.03, 1.03)
    axis.set_xlabel("population round")


def _outcomes(axis: Axes, one: xr.Dataset) -> None:
    """Fractions of runs by outcome, in black the outcome that the rate equation predicts."""
    words = _words(one)
    predicted = str(one["predicted_word"].item())
    outcomes = {f"end at '{word}'": (w, word) for w, word in enumerate(words)}
    outcomes["no consensus"] = (None, MIXED)
    for marker, (label, (w, name)) in zip("o^s", outcomes.items(), strict=True):
        share, interval = _outcome(one, w)
        if name != predicted and not share.any():
            continue
        distance = np.abs(interval.T - share)
        style = {"color": "black"} if name == predicted else {"color": "0.6"}
        text = f"{label} (predicted)" if name == predicted else label
        axis.errorbar(one["n_agents"], share, yerr=distance, marker=marker, ms=4, capsize=2, label=text, **style)
    axis.axhline(1.0, color="0.8", lw=0.8, zorder=0)
    axis.set_xscale("log")
    axis.set_ylim(-0.03, 1.06)
    axis.set_xlabel("number of agents N")
    axis.set_title(f"predicted for large N: {predicted}")
    axis.legend(loc="best")


def _errors(axis: Axes, one: xr.Dataset) -> None:
    """The error of theory against N where it is resolved, and the 1/N of a theory that is right for large N."""
    resolved = np.isfinite(one["error_uncertainty"].values)
    n_agents, error = one["n_agents"].values[resolved], one["error"].values[resolved]
    uncertainty = one["error_uncertainty"].values[resolved]
    axis.errorbar(
        n_agents, error, yerr=uncertainty, fmt="o", color="black", ms=4, capsize=2, label="simulated - theory"
    )
    if len(n_agents):
        axis.plot(n_agents, error[0] * n_agents[0] / n_agents, color="0.6", lw=1, label="1/N from the first")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("number of agents N")
    slope = float(one["error_slope"])
    axis.set_title("error" if np.isnan(slope) else f"error ~ $N^{{{slope:.2f}}}$")
    axis.legend(loc="best")


def _outcome(one: xr.Dataset, word: int | None) -> tuple[np.ndarray, np.ndarray]:
    if word is None:
        return one["no_consensus"].values, one["no_consensus_interval"].values
    return one["consensus_probability"].values[:, word], one["consensus_interval"].values[:, word]


if __name__ == "__main__":
    with arguments("paper_figs.theory_and_simulation COMPARISON.nc FIGURE") as (comparison, figure):
        draw(meanfield.load(comparison), figure)
