"""Crop fields on a flag and their distribution, as in [002] Fig. 5a and b; a measured probe and the ideal observer.

python -m paper_figs.flag_game_fields fields.nc flag_game_fields.png
python -m paper_figs.flag_game_fields probe.nc flag_game_probe.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import styled, write_figure
from theory.flag_game import FLAGS, Flag, flag_of, render

# As in [002]: red favours the rival, white is ambiguous, blue favours the truth.
SIGNED = mpl.colormaps["RdBu"]
SHARE = mpl.colormaps["viridis"]
SCALE = 10
DOT = 20
RING = 7.5  # in points, around a dot, and clear of the rings beside it


@styled
def draw(fields: xr.Dataset, path: str | Path, flags: Sequence[Flag] = FLAGS) -> Path:
    """Draw the field of each crop at its place on the flag, and P(h) over the crops.

    Parameters
    ----------
    fields
        From `theory.flag_game.crop_fields`. Infinite fields have the colours at the ends of the scale, and their
        fractions stand as bars beside the axis.
    path
        File of the figure.
    flags
        The pool that holds the flag.

    Raises
    ------
    InputError
        If `fields` is something else, or the country is not in the pool.
    """
    expect(fields, "flag_game_fields", "fields")
    truth, rival = fields.attrs["truth"], fields.attrs["rival"]
    most = float(np.abs([fields["low"].min(), fields["high"].max()]).max())
    figure, (flag, histogram) = plt.subplots(1, 2, figsize=(8.6, 3.0), width_ratios=[1.25, 1])
    norm = Normalize(-most, most)
    table = fields["field"].to_series().dropna().reset_index()
    _places(flag, fields, flags, table["left"], table["top"], table["field"], SIGNED, norm)
    flag.set_title(f"Field of each crop, at its middle{_observer(fields)}")
    bar = figure.colorbar(ScalarMappable(norm, SIGNED), ax=flag, shrink=0.85)
    bar.set_label(f"h = log p({truth}) / p({rival})", fontsize=8)
    _distribution(histogram, fields, norm)
    return write_figure(figure, path)


@styled
def draw_probe(probe: xr.Dataset, path: str | Path, flags: Sequence[Flag] = FLAGS) -> Path:
    """Draw maps of the flag: the ideal observer's posterior, the measured share, and their difference.

    The last map has rings around crops whose measured share departs from the ideal.

    Parameters
    ----------
    probe
        From `theory.flag_game.compare_with_probe`.
    path
        File of the figure.
    flags
        The pool that holds the flag.

    Raises
    ------
    InputError
        If `probe` is something else, or the country is not in the pool.
    """
    expect(probe, "flag_game_probe", "probe")
    truth = probe.attrs["truth"]
    figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.15))
    share, signed = Normalize(0, 1), Normalize(-1, 1)
    maps = (
        ("ideal", f"Ideal observer, p({truth})", SHARE, share),
        ("measured", f"Measured, share of {truth}", SHARE, share),
        ("difference", "Measured - ideal", SIGNED, signed),
    )
    for axis, (name, title, colours, norm) in zip(axes, maps, strict=True):
        _places(axis, probe, flags, probe["left"].values, probe["top"].values, probe[name].values, colours, norm)
        axis.set_title(title)
        bar = figure.colorbar(ScalarMappable(norm, colours), ax=axis, orientation="horizontal", shrink=0.8, aspect=30)
        bar.ax.tick_params(labelsize=8)
    departs = probe["departs"].values.astype(bool)
    x, y = _middles(probe, probe["left"].values, probe["top"].values)
    axes[-1].plot(x[departs], y[departs], "o", markersize=RING, fillstyle="none", color="black", markeredgewidth=0.8)
    text = (
        f"{probe.sizes['crop']} crops, each at its middle. Rank correlation of the first two: Spearman "
        f"{probe.attrs['spearman']:.3f}, Kendall's tau-b {probe.attrs['kendall']:.3f}. Measured departs from ideal at "
        f"{departs.sum()} crops (ringed; {100 * probe.attrs['option_level']:g} % intervals, joint)."
    )
    figure.supxlabel(text, fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


def _places(
    axis: Axes,
    result: xr.Dataset,
    flags: Sequence[Flag],
    left: np.ndarray,
    top: np.ndarray,
    values: np.ndarray,
    colours: Colormap,
    norm: Normalize,
) -> None:
    """The flag, and a dot with the colour of its value in the middle of each crop."""
    width, height = result.attrs["canvas_width"], result.attrs["canvas_height"]
    picture = render(flag_of(result.attrs.get("hidden", result.attrs["truth"]), flags), SCALE, width, height)
    axis.imshow(picture, extent=(0, width, height, 0), alpha=0.55)
    x, y = _middles(result, left, top)
    values = np.clip(values, norm.vmin, norm.vmax)  # a scatter leaves infinite values out
    axis.scatter(x, y, s=DOT, c=values, cmap=colours, norm=norm, edgecolors="black", linewidths=0.35)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(True)


def _middles(result: xr.Dataset, left: np.ndarray, top: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middles of crops."""
    return np.asarray(left) + result.attrs["crop_width"] / 2, np.asarray(top) + result.attrs["crop_height"] / 2


def _distribution(axis: Axes, fields: xr.Dataset, norm: Normalize) -> None:
    low, high = fields["low"].values, fields["high"].values
    middles = (low + high) / 2
    axis.bar(low, fields["probability"], high - low, align="edge", color=SIGNED(norm(middles)), ec="black", lw=0.5)
    ticks = [(tick, f"{tick:g}".replace("-", "−")) for tick in axis.get_xticks() if low[0] <= tick <= high[-1]]
    margin, width = 0.12 * (high[-1] - low[0]), 0.05 * (high[-1] - low[0])
    for name, place, text, end in (
        ("surely_rival", low[0] - margin, "−∞", 0.0),
        ("surely_truth", high[-1] + margin, "+∞", 1.0),
    ):
        if fields[name] > 0:
            axis.bar(place, fields[name], width, color=SIGNED(end), ec="black", lw=0.5, hatch="//")
            ticks.append((place, text))
    axis.set_xticks(*zip(*ticks, strict=True))
    axis.set_xlabel("crop field h")
    axis.set_ylabel("fraction of crops P(h)")
    axis.set_title(f"{fields.attrs['truth']} (blue) against {fields.attrs['rival']} (red)")


def _observer(fields: xr.Dataset) -> str:
    """The observer of the fields, for the title; '' if unknown."""
    if fields.attrs.get("observer") == "ideal":
        return f", ideal observer, noise {fields.attrs['noise']:g}"
    if fields.attrs.get("observer") == "measured":
        return f", measured, pseudo-count {fields.attrs['pseudo_count']:g}"
    return ""


if __name__ == "__main__":
    with arguments("paper_figs.flag_game_fields RESULT.nc FIGURE") as (result, figure):
        loaded = meanfield.load(result)
        (draw_probe if loaded.attrs.get("kind") == "flag_game_probe" else draw)(loaded, figure)
