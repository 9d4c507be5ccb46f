"""Chance to end at the strong word: against N as in [004] Fig. 3, and against κ√N, where all pairs share Φ(κ√N).

python -m paper_figs.group_size_collapse group_size.nc group_size_law.png
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from scipy.special import ndtr

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order, expect
from paper_figs._script import arguments
from paper_figs._style import model_title, styled, write_figure

# κ is ordered, so the colours are too; yellow, hard to see on white, is left out, and black is the theory.
KAPPAS = mpl.colormaps["viridis_r"]
FIRST_COLOUR = 0.12
LINE_LENGTH = 140


@styled
def draw(bias: xr.Dataset, path: str | Path) -> Path:
    """Draw the fraction of runs that end at the strong word against N, and against κ√N.

    κ measures a policy's bias against the noise of one agent. By the group-size law the fraction is Φ(κ√N), the normal
    distribution function.

    Parameters
    ----------
    bias
        From `validation.collective_bias`. Policies without a law, with an infinite κ or without simulated runs are not
        drawn; a line below the panels names them.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `bias` is something else, or there is nothing to draw.
    """
    expect(bias, "collective_bias", "bias")
    bias = canonical_order(bias, "bias")
    has_law = bias["applies"].values & np.isfinite(bias["kappa"].values)
    has_law &= bias["simulated"].notnull().all("n_agents").values
    if not has_law.any():
        raise InputError("bias has no policy with both a group-size law and simulated runs: there is nothing to draw")
    drawn, left_out = bias.isel(pair=has_law), bias.isel(pair=~has_law)
    drawn = drawn.isel(pair=np.argsort(-drawn["kappa"].values))
    one_model = len(set(bias["model"].values)) == 1
    figure, (by_size, by_noise) = plt.subplots(1, 2, figsize=(8.6, 3.9), sharey=True)
    _against_size(by_size, drawn, one_model)
    _against_noise(by_noise, drawn)
    title = "strong over weak word, κ"
    figure.legend(*by_size.get_legend_handles_labels(), loc="outside right center", title=title, alignment="left")
    model = model_title(bias.isel(pair=0)) if one_model else ""
    figure.suptitle(f"Group-size law (lines) and simulations, {model}".removesuffix(", "))
    figure.supxlabel(_caption(drawn, left_out, one_model), fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


def _each(drawn: xr.Dataset) -> Iterator[tuple[tuple[float, ...], xr.Dataset]]:
    """Policies by falling κ, each with its colour."""
    colours = KAPPAS(np.linspace(1, FIRST_COLOUR, drawn.sizes["pair"]))
    for i, colour in enumerate(colours):
        yield tuple(colour), drawn.isel(pair=i)


def _against_size(axis: Axes, drawn: xr.Dataset, one_model: bool) -> None:
    for colour, one in _each(drawn):
        axis.plot(one["n_agents"], one["probability"], color=colour, lw=0.9)
        _points(axis, one["n_agents"].values, one, colour, _label(one, one_model))
    _logarithmic(axis, "number of agents N")
    axis.set_ylabel("fraction of runs that end at the strong word")


def _against_noise(axis: Axes, drawn: xr.Dataset) -> None:
    scaled = (drawn["kappa"] * np.sqrt(drawn["n_agents"])).values
    grid = np.geomspace(scaled.min() / 1.1, scaled.max() * 1.1, 400)
    for colour, one in _each(drawn):
        _points(axis, one["kappa"].item() * np.sqrt(one["n_agents"].values), one, colour)
    # Above the points, which would hide it
    axis.plot(grid, ndtr(grid), color="black", lw=1.1, zorder=3, label="Φ(κ√N)")
    _logarithmic(axis, "κ√N")
    axis.legend(loc="lower right")


def _points(axis: Axes, x: np.ndarray, one: xr.Dataset, colour: tuple[float, ...], label: str | None = None) -> None:
    distance = np.abs(one["interval"].transpose("bound", "n_agents").values - one["simulated"].values)
    axis.errorbar(x, one["simulated"], yerr=distance, fmt="o", ms=3, lw=0.9, capsize=1.5, color=colour, label=label)


def _logarithmic(axis: Axes, label: str) -> None:
    axis.set_xscale("log")
    # Labels at 1, 2 and 5, in plain digits: sizes need not span a decade.
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.tick_params(axis="x", labelsize=8)
    axis.set_xlabel(label)


def _label(one: xr.Dataset, one_model: bool) -> str:
    strong = str(one["strong_word"].item())
    (weak,) = (word for word in map(str, one["word_label"].values) if word != strong)
    model = "" if one_model else f"{model_title(one)}: "
    return f"{model}{strong} over {weak}, {one['kappa'].item():.3f}"


def _caption(drawn: xr.Dataset, left_out: xr.Dataset, one_model: bool) -> str:
    """A description of the points, and the policies without any."""
    runs, level = drawn.attrs["option_runs"], drawn.attrs["option_level"]
    distance = np.abs(drawn["simulated"] - drawn["probability"]).max("pair")
    size = int(distance["n_agents"][distance.argmax("n_agents")])
    text = (
        f"{runs:,} runs a point, bars: {100 * level:g} % intervals. "
        f"Largest distance from Φ: {distance.max().item():.3f}, at N = {size:,}."
    )
    without = drawn["no_consensus"].max().item()
    if without > 0:
        text += f" Runs without consensus, {100 * without:.2g} % at most, count as not ending at the strong word."
    if left_out.sizes["pair"]:
        text += f" Not drawn, because there is no law or no consensus to count: {_names(left_out, one_model)}."
    return textwrap.fill(text, LINE_LENGTH)


def _names(policies: xr.Dataset, one_model: bool) -> str:
    """The words of each policy, and with several models the model before its first policy."""
    names, model = [], ""
    for i in range(policies.sizes["pair"]):
        one = policies.isel(pair=i)
        # Lines break between pairs, not within them
        words = "{" + ",\N{NO-BREAK SPACE}".join(map(str, one["word_label"].values)) + "}"
        names.append(words if one_model or model_title(one) == model else f"{model_title(one)} {words}")
        model = model_title(one)
    return ", ".join(names)


if __name__ == "__main__":
    with arguments("paper_figs.group_size_collapse BIAS.nc FIGURE") as (bias, figure):
        draw(meanfield.load(bias), figure)
