"""[002] Fig. 5: fields of crops, and Mechanism 1 beside the measured sweep over N."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from paper_figs._item import Item
from paper_figs._parts import part, together
from paper_figs._study import Study
from paper_figs._style import no_legend, styled
from paper_figs.paper_002._france import RIVAL, TRUTH
from paper_figs.paper_002._theory import mechanism1_fit
from theory import flag_game

MEASURED = ("Yemen", "Austria")  # truth and rival of the published probe


def numbers(study: Study) -> xr.Dataset:
    """Fields of an ideal observer of France and of GPT-4o for Yemen, and the fit of Mechanism 1."""
    counts = flag_game.probe_counts(study.flag_game("yemen_crop_probe"), *MEASURED)
    ideal = flag_game.crop_fields(flag_game.crop_compatibility(TRUTH), TRUTH, RIVAL)
    measured = flag_game.crop_fields(flag_game.measured_compatibility(counts), *MEASURED)
    return together(ideal=ideal, measured=measured, fit=mechanism1_fit(study))


@styled
def draw(found: xr.Dataset) -> Figure:
    """Columns for a, b, and c above d; a and b have a row for each flag."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6.8), width_ratios=[1.1, 1, 1])
    observers = {"ideal": "ideal observer", "measured": "GPT-4o, measured"}
    for (flag, histogram, _), (name, observer) in zip(axes, observers.items(), strict=True):
        fields = part(found, name)
        meanfield.plot(fields, ax=flag, view="map")
        flag.set_title(f"(a) {fields.attrs['truth']}, {observer}")
        meanfield.plot(fields, ax=histogram, view="distribution")
        histogram.set_title(f"(b) {fields.attrs['truth']}, {observer}")
    for axis, view, letter in zip(axes[:, 2], ("polarization", "accuracy"), "cd", strict=True):
        meanfield.plot(part(found, "fit"), ax=axis, view=view)
        axis.set_title(f"({letter})")
    axes[0, 2].legend(loc="lower right")
    no_legend(axes[1, 2])
    return figure


ITEMS = [
    Item(
        "002",
        "5",
        "Mechanism 1 and population scaling",
        "(a) The field of each crop at its place on an example flag. (b) The measured distribution P(h), with peaks "
        "for the truth and for the rival. (c) The fraction of polarized ends and (d) collective mean accuracy against "
        "N, GPT-4o and Mechanism 1.",
        numbers,
        draw,
        "The probe of France's crops in (a) and (b) is not published. Here are an ideal observer of France against "
        "Peru, whose field is infinite where blue is seen, and the published probe of Yemen against Austria: 50 "
        "answers of GPT-4o to each of 128 crops, with a pseudo-count of 0.5. As in Appendix E, (c) and (d) do not use "
        "these fields but fitted distributions. Dashed lines have the parameters of Appendix E, 4,000 runs at each N; "
        "full lines are our fit of all 14, with a log-likelihood of -39 instead of -67; the data determine none of the "
        "14 by itself. The paper says that its theory closely tracks the polarized fraction; at N = 8 it is 0.27 and "
        "GPT-4o's 0.50, at N = 32 0.37 and 0.55, outside 95 % intervals. Our fit pays for the fractions with "
        "accuracies of 0.61 to 0.67, above all measured ones, 0.46 to 0.58: agents of Mechanism 1 know two countries "
        "only.",
    )
]
