"""Crop fields on a flag and their distribution, as in [002] Fig. 5a and b; a measured probe and the ideal observer.

python -m paper_figs.flag_game_fields fields.nc flag_game_fields.png
python -m paper_figs.flag_game_fields probe.nc flag_game_probe.png
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import xarray as xr

import meanfield
from meanfield.toolbox import expect
from paper_figs._script import arguments
from paper_figs._style import styled, write_figure


@styled
def draw(fields: xr.Dataset, path: str | Path) -> Path:
    """Draw the field of each crop at its place on the flag, and P(h) over the crops.

    Parameters
    ----------
    fields
        From `theory.flag_game.crop_fields`. Infinite fields have the colours at the ends of the scale, and their
        fractions stand as bars beside the axis.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `fields` is something else.
    """
    expect(fields, "flag_game_fields", "fields")
    truth, rival = fields.attrs["truth"], fields.attrs["rival"]
    figure, (flag, histogram) = plt.subplots(1, 2, figsize=(8.6, 3.4), width_ratios=[1.25, 1])
    meanfield.plot(fields, ax=flag, view="map")
    flag.set_title(f"Field of each crop, at its middle{_observer(fields)}")
    meanfield.plot(fields, ax=histogram, view="distribution")
    histogram.set_title(f"{truth} (blue) against {rival} (red)")
    return write_figure(figure, path)


@styled
def draw_probe(probe: xr.Dataset, path: str | Path) -> Path:
    """Draw maps of the flag: the ideal observer's posterior, the measured share, and their difference.

    The last map has rings around crops whose measured share departs from the ideal.

    Parameters
    ----------
    probe
        From `theory.flag_game.compare_with_probe`.
    path
        File of the figure.

    Raises
    ------
    InputError
        If `probe` is something else.
    """
    expect(probe, "flag_game_probe", "probe")
    truth = probe.attrs["truth"]
    figure, axes = plt.subplots(1, 3, figsize=(10.2, 3.7))
    titles = {
        "ideal": f"Ideal observer, p({truth})",
        "measured": f"Measured, share of {truth}",
        "difference": "Measured - ideal",
    }
    for axis, (view, title) in zip(axes, titles.items(), strict=True):
        meanfield.plot(probe, ax=axis, view=view)
        axis.set_title(title)
        axis.set_xlabel("")  # the text below the maps tells of the rings
    text = (
        f"{probe.sizes['crop']} crops, each at its middle. Rank correlation of the first two: Spearman "
        f"{probe.attrs['spearman']:.3f}, Kendall's tau-b {probe.attrs['kendall']:.3f}. Measured departs from ideal at "
        f"{int(probe['departs'].sum())} crops (ringed; {100 * probe.attrs['option_level']:g} % intervals, joint)."
    )
    figure.supxlabel(text, fontsize=7.5, x=0.01, ha="left")
    return write_figure(figure, path)


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
