"""The random-field mean field of the flag game: phases, bifurcation and solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import Draw, draws
from meanfield._plot.views.bifurcations import LINES
from meanfield._plot.views.fixed_points import FILLS
from meanfield._plot.words import NEUTRAL, PALETTE

PHASES = {
    "bistable": "fraction with truth and rival state",
    "truth_only": "fraction with truth state only",
    "rival_only": "fraction with rival state only",
    "several": "fraction with several states",
    "m": "mean m",
    "q": "mean q",
}


def _phase_view(name: str) -> Draw:
    """A view for one column."""

    def phase(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
        sizes = part["n_agents"].values
        places = np.arange(len(sizes))  # a cell must be as wide for N = 4 as for N = 128
        # m is positive where the truth wins, and blue as in the maps of fields.
        scale = {"cmap": "RdBu", "vmin": -1} if name == "m" else {"cmap": "viridis", "vmin": 0}
        mesh = axes.pcolormesh(places, part["J"], part[name], **{"shading": "nearest", "vmax": 1, **scale, **style})
        axes.set_xticks(places, [f"{n:g}" for n in sizes])
        axes.set(xlabel="number of agents N", ylabel="coupling J (nat)")
        axes.figure.colorbar(mesh, ax=axes, label=PHASES[name])

    phase.__doc__ = f"The {PHASES[name]} by the number of agents and the coupling."
    return draws("random_field_phase_diagram", view=name, reads=f"J! n_agents!: {name}")(phase)


for _name in PHASES:
    _phase_view(_name)


@draws(
    "random_field_bifurcation",
    view="branches",
    reads="point: J m stable; fold*: fold_J fold_m; : pitchfork_J pitchfork_kind",
)
def branches(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Solutions m against the coupling: full lines are stable, dashed ones unstable, dots are folds."""
    coupling, m, stable = part["J"].values, part["m"].values, part["stable"].values.astype(bool)
    pitchfork, most = float(part["pitchfork_J"]), part.attrs["option_max_J"]
    full, dashed = ({"color": PALETTE[0], "linestyle": line, **style} for line in ("-", "--"))
    if not np.isnan(pitchfork):  # the solution m = 0 of a symmetric law is stable below the pitchfork
        end = min(pitchfork, most)
        axes.plot([0, end], [0, 0], **full)
        axes.plot([end, most], [0, 0], **dashed)
    there = np.isfinite(coupling)
    for chosen, look in ((stable, {**full, "label": "stable"}), (~stable, {**dashed, "label": "unstable"})):
        # A line through these points only; it also takes the first point after each of its pieces.
        shown = there & (chosen | np.r_[False, chosen[:-1]] & np.r_[False, there[:-1]])
        axes.plot(np.where(shown, coupling, np.nan), np.where(shown, m, np.nan), **look)
    if part.sizes["fold"]:
        axes.plot(part["fold_J"], part["fold_m"], "o", color="black", label="fold")
    if pitchfork <= most:
        axes.plot(pitchfork, 0, "D", color="black", label=f"pitchfork, {part['pitchfork_kind'].item()}")
    axes.set(xlim=(0, most), ylim=(-1.05, 1.05), xlabel="coupling J (nat)", ylabel="truth minus rival, m")


@draws("random_field_fixed_points", view="solutions", reads="fixed_point: stability m q")
def solutions(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Commitment q against m at each solution: filled where stable, open where unstable."""
    axes.axvline(0, color=NEUTRAL, linewidth=0.8)
    for status, fill in FILLS.items():
        here = part.isel(fixed_point=part["stability"].values == status)
        if here.sizes["fixed_point"]:
            look = {"marker": "o", "linestyle": "none", "color": PALETTE[0], "fillstyle": fill, "markersize": 9}
            axes.plot(here["m"], here["q"], **{**look, "label": status, **style})
    axes.set(xlim=(-1.05, 1.05), ylim=(-0.03, 1.03), xlabel="truth minus rival, m", ylabel="commitment q")


@draws("random_field_fixed_points", view="levels", reads="fixed_point: stability m")
def levels(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Solutions m as horizontal lines, full where stable and dashed where not, for axes with m over time."""
    for status, line in LINES.items():
        for k, m in enumerate(part["m"].values[part["stability"].values == status]):
            look = {"color": "black", "linewidth": 1, "linestyle": line, **style}
            axes.axhline(m, label=f"_{k}" if k else f"m*, {status}", **look)
    axes.set_ylabel(axes.get_ylabel() or "truth minus rival, m")
