"""[002] Figs. 6 and 8: answers of single agents by the content of their memory, with Mechanism 2 fitted."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import MODEL_NAMES
from paper_figs._item import Item
from paper_figs._style import no_legend, styled
from paper_figs.paper_002._theory import MODELS, mechanism2_fit

CONDITIONS = (("weak", "compatible"), ("weak", "incompatible"), ("strong", "incompatible"))
ENTRIES = 8


@styled
def draw_figure_6(found: xr.Dataset) -> Figure:
    """A row for each model, and a column for each strength of the private evidence; labels only."""
    return _panels(found, [1], CONDITIONS[1:])


@styled
def draw_figure_8(found: xr.Dataset) -> Figure:
    """A row for each model and bandwidth, and a column for each condition."""
    return _panels(found, [1, 3], CONDITIONS)


def _panels(found: xr.Dataset, bandwidths: Sequence[int], conditions: Sequence[tuple[str, str]]) -> Figure:
    rows = [(model, m) for model in MODELS for m in bandwidths]
    size = (3 * len(conditions) + 0.4, 1.9 * len(rows) + 0.9)
    figure, axes = plt.subplots(len(rows), len(conditions), figsize=size, sharex=True, sharey=True)
    for across, (model, m) in zip(axes, rows, strict=True):
        for axis, (evidence, relation) in zip(across, conditions, strict=True):
            one = found.sel(model=model, bandwidth=m, evidence=evidence, relation=relation)
            meanfield.plot(one, ax=axis, view="answers")
            no_legend(axis)
            axis.set_title(f"{MODEL_NAMES[model]}, m = {m}: {evidence} evidence,\n{relation} social entries")
            axis.set_xticks(range(0, ENTRIES + 1, 2), [f"{ENTRIES - k}:{k}" for k in range(0, ENTRIES + 1, 2)])
            axis.set_xlabel("target : social entries in memory")
            axis.label_outer()
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


DIFFERS = (
    "Points are the published counts of GPT-4o and GPT-5.4, 12 trials each (36 in three conditions), with 95 % "
    "intervals; counts of Claude Haiku 4.5 and Sonnet 4.6 are not published. Lines are Mechanism 2 (Eqs. 10 and 11), "
    "which the paper does not fit: α, the leak ε, the similarity σ and, under weak evidence, the number of compatible "
    "countries are common to both models in a condition, γ is each model's own. Under weak evidence γ is 0.00 for "
    "GPT-4o and 0.26 for GPT-5.4 at m = 1, 0.02 and 0.22 at m = 3. Under strong evidence σ is 0.02 and γ of both goes "
    "to 1. The paper says that both largely hold firm under strong evidence; with eight social entries of eight they "
    "answer the target in 6 and 4 of 12 trials at m = 1."
)
ITEMS = [
    Item(
        "002",
        "6",
        "Memory against private evidence",
        "(a) A diagram of the probe. (b) Answers of GPT-4o, GPT-5.4 and Claude Haiku 4.5 as memory goes from entries "
        "for the target to entries for another country, under weak and under strong private evidence.",
        mechanism2_fit,
        draw_figure_6,
        "(a) is not drawn: it holds no numbers. The paper names neither bandwidth nor relation of (b); here are m = 1 "
        "and incompatible entries, because Appendix A calls all others an extension. " + DIFFERS,
    ),
    Item(
        "002",
        "8",
        "Memory against private evidence, all conditions",
        "The same answers of four models for labels only (m = 1) and with reasons (m = 3), in three conditions.",
        mechanism2_fit,
        draw_figure_8,
        DIFFERS,
    ),
]
