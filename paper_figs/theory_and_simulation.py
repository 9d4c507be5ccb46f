"""Mean field against simulation: trajectories as in [004] Fig. 4, collective bias against N as in Fig. 3."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import meanfield
from meanfield.toolbox import canonical_order, in_braces
from paper_figs._style import model_title, no_legend, styled, write_figure


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
    """
    panels = comparison if "pair" in comparison.dims else comparison.expand_dims("pair")
    views = ["trajectories", "outcomes", "error"][: 2 + bool(np.isfinite(panels["error_slope"]).any())]
    n_pairs = panels.sizes["pair"]
    size = (2.9 * n_pairs + 0.6, 2.6 * len(views))
    figure, axes = plt.subplots(len(views), n_pairs, figsize=size, sharex="row", sharey="row", squeeze=False)
    for column, i in zip(axes.T, range(n_pairs), strict=True):
        one = canonical_order(panels.isel(pair=i), "comparison")
        for axis, view in zip(column, views, strict=True):
            meanfield.plot(one, axis, view=view)
            axis.set_title("")
            if view != views[0] and i:
                axis.set_ylabel("")
        column[0].set_title(in_braces(one["word_label"].values))
    for axis in axes[0, 1:]:
        no_legend(axis)
    figure.suptitle(f"{model_title(panels)}, {comparison.attrs['option_runs']:,} simulated runs".removeprefix(", "))
    return write_figure(figure, path)
