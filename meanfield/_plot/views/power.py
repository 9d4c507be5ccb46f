"""The power of planned runs."""

from __future__ import annotations

from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, size_colours, size_label
from meanfield._plot.words import model_name

LINES = ("-", "--", ":", "-.")
MANY_POINTS = 12


@draws("power", view="runs", by=(), reads="index: model pair kappa n_agents runs power")
def runs(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that planned runs call a bias against their number, a line for each N and bias."""
    table = part.to_dataframe()
    named = zip(table["model"], table["pair"], table["kappa"], strict=True)
    table["bias"] = [_name(*one) for one in named]
    biases, sizes = table["bias"].unique().tolist(), sorted(table["n_agents"].unique().tolist())
    shades = dict(zip(sizes, size_colours(len(sizes)), strict=True))
    for bias, size in dict.fromkeys(zip(table["bias"], table["n_agents"], strict=True)):
        rows = table[(table["bias"] == bias) & (table["n_agents"] == size)].sort_values("runs")
        look = {"color": shades[size], "linestyle": LINES[biases.index(bias) % len(LINES)]}
        look |= {"marker": "." if len(rows) < MANY_POINTS else "", "label": f"{bias}, {size_label(size)}"}
        axes.plot(rows["runs"], rows["power"], **{**look, **style})
    wanted = float(part.attrs["option_wanted"])
    axes.axhline(wanted, color="0.6", linewidth=0.8, zorder=0)
    axes.set_xlabel("number of runs")
    show_shares(axes, f"probability of a call at {100 * float(part.attrs['option_level']):g} %")


def _name(model: str, pair: str, kappa: float) -> str:
    """The policy, or κ where there is none."""
    words = "{" + ", ".join(pair.split("/")) + "}"
    return f"{model_name(model)} {words}".strip() if pair else f"κ = {kappa:.3g}"
