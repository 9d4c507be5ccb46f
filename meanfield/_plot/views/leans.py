"""m and q of flag games over time: how the population leans, and how committed its agents are."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.runs import draw_lines, tell_lines
from meanfield._plot.words import NEUTRAL, PALETTE

PATHS = {"m_path": ("m, mean", PALETTE[0]), "q_path": ("q, mean", PALETTE[1])}


@draws(
    "mechanism1_simulation",
    view="lean",
    by=("n_agents",),
    needs={"m_path": "trajectories=True"},
    reads="round: round; run round: m_path q_path",
)
def lean(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Truth minus rival m and commitment q of [002] Eq. 8 over time: runs as thin lines, and their means."""
    _draw(axes, part, part["round"].values, **style)


@draws(
    "gossip",
    view="lean",
    needs={"m_path": "trajectories=True and a rival"},
    reads="probe: step; run probe: m_path q_path; : n_agents",
)
def lean_of_gossip(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Truth minus rival m and commitment q of [002] Eq. 8 over time: runs as thin lines, and their means."""
    _draw(axes, part, part["step"].values / int(part["n_agents"]), **style)


def _carried(paths: np.ndarray) -> np.ndarray:
    """Paths (run, time) with their last values repeated after the end of a run."""
    last = np.maximum.accumulate(np.where(np.isnan(paths), 0, np.arange(paths.shape[1])), axis=1)
    return np.take_along_axis(paths, last, axis=1)


def _draw(axes: Axes, part: xr.Dataset, time: np.ndarray, **style: Any) -> None:
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    runs = {name: _carried(np.atleast_2d(part[name].values)) for name in PATHS}  # of one run there is a row
    for name, (_, colour) in PATHS.items():
        draw_lines(axes, time, runs[name], [colour] * len(runs[name]))
    for name, (label, colour) in PATHS.items():
        axes.plot(time, runs[name].mean(0), **{"color": colour, "linewidth": 2, "label": label, **style})
    tell_lines(axes, len(runs["m_path"]))
    axes.set_xlim(0, time[-1])
    axes.set_ylim(-1.05, 1.05)
    axes.set_xlabel("time t/N")
    axes.set_ylabel("lean m, commitment q")
