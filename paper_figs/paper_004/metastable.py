"""[004] Figs. S7 and S8: words said in large groups of Llama 3.1 that do not agree."""

from __future__ import annotations

from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import FIRST_WORD, LABELS, SECOND_WORD, grid_of_panels, styled
from paper_figs.paper_004._ensembles import outcomes, strong_word
from paper_figs.paper_004._trajectories import said

MODEL = "llama31_70B"
SIZES = (24, 100, 500, 2000)
RUNS, ROUNDS = 100, 200


def numbers(study: Study, pair: str) -> xr.Dataset:
    """Words said in 100 runs at each size, by outcome."""
    policy = study.policy(MODEL, pair)
    strong = strong_word(outcomes(study, policy))
    options = {"runs": RUNS, "rounds": ROUNDS, "shown": RUNS}
    parts = [said(study, policy, strong, n_agents=size, **options) for size in SIZES]
    return xr.concat(parts, "n_agents", coords="minimal", compat="override", combine_attrs="drop")


@styled
def draw(found: xr.Dataset) -> Figure:
    """A panel for each size: both words of all runs; circles are an agent's choice with an empty memory."""
    figure, axes = grid_of_panels(found.sizes["n_agents"], width=2.8, height=2.4)
    strong = str(found["strong_word"].item())
    weak = next(word for word in str(found["pair"].item()).split("/") if word != strong)
    for k, axis in enumerate(axes):
        one = found.isel(n_agents=k)
        time = one["round"].values + 1
        for share in one["trajectory"].values.reshape(-1, len(time)):
            axis.plot(time, share, color=FIRST_WORD, lw=0.3, alpha=0.4)
            axis.plot(time, 1 - share, color=SECOND_WORD, lw=0.3, alpha=0.4)
        first = float(one["individual"])
        axis.plot([1], [first], "o", color=FIRST_WORD, label=f"{strong} (strong)", zorder=3)
        axis.plot([1], [1 - first], "o", color=SECOND_WORD, label=f"{weak} (weak)", zorder=3)
        axis.set_title(f"N = {int(one['n_agents']):,}; {int(one['number'].sel(outcome='none'))} runs without consensus")
        axis.set_ylim(-0.03, 1.03)
    axes[0].legend(fontsize=7)
    figure.supxlabel("round")
    figure.supylabel("share of what is said")
    figure.suptitle(LABELS[MODEL])
    return figure


ITEMS = [
    Item(
        "004",
        number,
        "Metastable dynamics, Llama 3.1 {" + pair.replace("/", ", ") + "}",
        "The probability of each word in 100 trajectories at several sizes; large groups do not agree.",
        partial(numbers, pair=pair),
        draw,
        "The share of what is said in a round, of other runs than the paper's; 200 rounds are shown.",
    )
    for number, pair in (("S7", "young/old"), ("S8", "more/less"))
]
