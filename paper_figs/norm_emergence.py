"""[003] Fig. 2: conflicts, thoughts and chats over time, and the emergence of norms, simulated and in mean field.

python -m paper_figs.norm_emergence curves.nc norm_emergence.png smoking.nc noise.nc tipping.nc

curves.nc is a result of `theory.norms.emergence`, the others are results of `validation.norms.simulate` for one
behaviour each, all with the same number of agents and of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
from meanfield import InputError
from paper_figs._script import arguments
from paper_figs._style import styled, write_figure
from validation.norms._compare import differing

EVENTS = ("thoughts", "conflicts", "chats")
NORMS = {"smoking": "no smoking indoors", "noise": "be quiet in public", "tipping": "tipping after meals"}
THEORY = {"color": "black", "linestyle": "--", "linewidth": 0.9, "label": "_rate equation"}
HOURS = 24
BINS_PER_DAY = 12


@styled
def draw(simulations: Sequence[xr.Dataset], curves: xr.Dataset, path: str | Path) -> Path:
    """Write the `emergence_figure` of these results to a file, and return its path."""
    return write_figure(emergence_figure(simulations, curves), path)


def emergence_figure(simulations: Sequence[xr.Dataset], curves: xr.Dataset) -> Figure:
    """Both rows of the figure: mean and middle half of the runs, and the rate equation.

    The upper row shows conflicts, thoughts and chats of all behaviours together, in steps of two hours; the lower row
    the shares that accept and comply with the standard 'for', one panel per behaviour.

    Parameters
    ----------
    simulations
        From `validation.norms.simulate`, one behaviour each, with the same number of agents and of runs.
    curves
        From `theory.norms.emergence`, for these behaviours with the same operations, fractions and rates.

    Raises
    ------
    InputError
        If there are no simulations, they differ in size or number of runs, two have the same behaviour, or a behaviour
        is missing in the curves or has other operations, fractions or rates there.
    """
    runs = _by_behaviour(simulations, curves)
    columns = max(2, len(runs))
    figure = plt.figure(figsize=(2.7 * columns + 0.5, 5.4))
    grid = figure.add_gridspec(2, len(runs))
    _events(figure.add_subplot(grid[0, :]), runs, curves)
    panels = [figure.add_subplot(grid[1, k]) for k in range(len(runs))]
    for panel, (name, one) in zip(panels, runs.items(), strict=True):
        _shares(panel, one, curves.sel(behaviour=name))
        panel.set_title(f"{NORMS.get(name, name)} ({one['kind'].item()})")
        panel.label_outer()
    panels[0].set_title("(b)", loc="left")
    panels[0].set_ylabel("share of the agents")
    _legend(panels[0], loc="best")
    n_agents, number = _size(next(iter(runs.values())))
    several = f"{number:,} simulated societies of {n_agents:,} agents: mean, and the middle half of the runs"
    figure.suptitle(several if number > 1 else f"One simulated society of {n_agents:,} agents", size="medium")
    return figure


def _by_behaviour(simulations: Sequence[xr.Dataset], curves: xr.Dataset) -> dict[str, xr.Dataset]:
    if not simulations:
        raise InputError("simulations is empty: expected at least one")
    sizes = [_size(one) for one in simulations]
    if len(set(sizes)) > 1:
        raise InputError(f"simulations have (agents, runs) = {sizes}: expected the same for all")
    single = [one.squeeze([dim for dim in ("n_agents",) if dim in one.dims]) for one in simulations]
    runs = {str(one["behaviour"].item()): one for one in single}
    if len(runs) < len(simulations):
        raise InputError(f"simulations are of {list(runs)}, {len(simulations)} of them: expected one of each behaviour")
    for name, one in runs.items():
        if name not in curves["behaviour"].values:
            raise InputError(f"curves lack {name!r}: expected every behaviour that was simulated")
        if other := differing(curves.sel(behaviour=name), one):
            raise InputError(f"{other}: expected the same")
    return runs


def _size(one: xr.Dataset) -> tuple[int, int]:
    if one["n_agents"].size != 1:
        raise InputError(f"simulations have n_agents = {one['n_agents'].values.tolist()}: select one")
    return int(one["n_agents"].item()), one.sizes["run"]


def _events(axis: Axes, runs: dict[str, xr.Dataset], curves: xr.Dataset) -> None:
    """Per hour in the whole society, as the paper counts them."""
    last = min(float(one["time"][-1]) for one in runs.values())
    edges = np.linspace(0, last, max(1, round(last * BINS_PER_DAY)) + 1)
    first = next(iter(runs.values()))
    hourly = xr.Dataset(coords={"time": (edges[1:] + edges[:-1]) / 2}, attrs=first.attrs)
    for name in EVENTS:
        total = sum(_between(one, name, edges) for one in runs.values())
        hourly[name] = (("run", "time"), total / ((edges[1] - edges[0]) * HOURS))
    n_agents, _ = _size(first)
    theory = curves[list(EVENTS)].sel(behaviour=list(runs)).sum("behaviour") * n_agents / HOURS
    meanfield.plot(hourly, ax=axis, view="events")
    meanfield.plot(theory.assign_attrs(curves.attrs), ax=axis, view="events", **THEORY)
    axis.set_title("")  # of the plot, which names N
    axis.set_title("(a)", loc="left")
    axis.set_xlim(0, last)
    axis.set_ylim(0, 1.15 * axis.get_ylim()[1])  # the legend is one row above the curves
    axis.set_ylabel("number an hour, all agents")
    _legend(axis, loc="upper right", ncols=4)


def _between(one: xr.Dataset, name: str, edges: np.ndarray) -> np.ndarray:
    """Events of each run between the edges, shape (runs, steps), spread evenly over their round."""
    total = one["events"].sel(event=name).transpose("run", "time").values.cumsum(axis=1)
    return np.diff([np.interp(edges, one["time"].values, row) for row in total], axis=1)


def _shares(axis: Axes, one: xr.Dataset, theory: xr.Dataset) -> None:
    meanfield.plot(one.sel(standard="for"), ax=axis, view="shares")
    meanfield.plot(theory.sel(standard="for"), ax=axis, view="shares", **THEORY)
    if legend := axis.get_legend():
        legend.remove()
    emerged = float((one["reached"].sel(standard="for").isel(time=-1) > 0.5).mean())
    text = f"held by more than half at the end\nin {emerged:.0%} of runs"
    axis.text(0.97, 0.04, text, transform=axis.transAxes, ha="right", size=8)
    axis.set_xlim(0, float(one["time"][-1]))


def _legend(axis: Axes, **options: Any) -> None:
    """The legend of the simulated curves, and one entry for the rate equation."""
    handles, labels = axis.get_legend_handles_labels()
    dashed = next(line for line in axis.lines if line.get_linestyle() == THEORY["linestyle"])
    axis.legend([*handles, dashed], [*labels, "rate equation"], **options)


if __name__ == "__main__":
    with arguments("paper_figs.norm_emergence CURVES.nc FIGURE SIMULATION.nc ...") as (first_file, figure_file, *files):
        curves_of_all = meanfield.load(first_file)
        draw([meanfield.load(name) for name in files], curves_of_all, figure_file)
