"""[002] Fig. 4a: accuracy of broadcasting teams by composition, for each uptake, measured and predicted."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import MODEL_NAMES
from paper_figs._item import Item
from paper_figs._style import no_legend, styled
from paper_figs.paper_002._theory import teams


@styled
def draw(found: xr.Dataset) -> Figure:
    """A panel for each uptake; points are measured, the line is predicted from rewrites γ."""
    uptakes = found["uptake"].values
    figure, axes = plt.subplots(1, len(uptakes), figsize=(2.0 * len(uptakes) + 0.6, 3.2), sharey=True)
    meanfield.plot(found, ax=axes)
    for axis, uptake, trials in zip(axes, uptakes, found["trials"].values[:, 0], strict=True):
        axis.set_title(f"α = {uptake:g}; {trials} trials")
        no_legend(axis)
        axis.label_outer()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    rewrites = zip(found.attrs["models"], found.attrs["rewrite"], strict=True)
    given = ", ".join(f"γ = {gamma:.2f} for {MODEL_NAMES[name]}" for name, gamma in rewrites)
    figure.suptitle(f"(a) broadcast, N = 8, m = 3; predicted with {given}", fontsize=9)
    return figure


ITEMS = [
    Item(
        "002",
        "4",
        "Teams of two models",
        "(a) Collective mean accuracy of broadcasting teams of N = 8, m = 3, by the number of GPT-5.4 agents; mixed "
        "teams are the best. (b) Kinds of answers of single GPT-4o and GPT-5.4 agents to a crop, in 100 runs. (c) "
        "Examples.",
        teams,
        draw,
        "(b) and (c) are not drawn: answers of single agents to crops are not published. The paper does not name the "
        "uptake of (a); here are all five of the published table, with 10 trials of each composition and 35 at α = 1, "
        "where Appendix C has 30. The best team is mixed at every α. Mixed teams together gain 0.01 to 0.06 over pure "
        "ones, less than one standard error at each α. The prediction has α from the prompt, γ from the probe of Fig. "
        "8 (m = 3, weak evidence), ideal observers and 1,000 trials. It falls evenly with the number of GPT-5.4 "
        "agents, so γ alone gives mixed teams no gain; the paper says that it predicts one. At α = 1 the prediction "
        "is too high, see Fig. 1c.",
    )
]
