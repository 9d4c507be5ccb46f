"""Probability of ending at the strong word against N, as in [004] Fig. 3, and against κ√N: all pairs share Φ(κ√N)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import meanfield
from meanfield import InputError
from meanfield.toolbox import canonical_order, expect, in_braces
from paper_figs._style import model_title, styled, write_figure

LINE_LENGTH = 140
POINTS = {"markersize": 3, "linewidth": 0.9, "capsize": 1.5}


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
    one_model = len(set(bias["model"].values)) == 1
    figure, (by_size, by_noise) = plt.subplots(1, 2, figsize=(8.6, 3.9), sharey=True)
    meanfield.plot(drawn, by_size, **POINTS)
    meanfield.plot(drawn, by_noise, view="collapse", **POINTS)
    (curve,) = (line for line in by_noise.lines if line.get_label() == "Φ(κ√N)")
    by_noise.legend(handles=[curve], loc="lower right")
    by_noise.set(title="", ylabel="")
    by_size.set(title="")
    by_size.get_legend().remove()
    title = "strong over weak word, κ"
    figure.legend(*by_size.get_legend_handles_labels(), loc="outside right center", title=title, alignment="left")
    model = model_title(bias.isel(pair=0)) if one_model else ""
    figure.suptitle(f"Group-size law (lines) and simulations, {model}".removesuffix(", "))
    figure.supxlabel(_caption(drawn, left_out, one_model), fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


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
        words = in_braces(map(str, one["word_label"].values)).replace(", ", ",\N{NO-BREAK SPACE}")
        names.append(words if one_model or model_title(one) == model else f"{model_title(one)} {words}")
        model = model_title(one)
    return ", ".join(names)
