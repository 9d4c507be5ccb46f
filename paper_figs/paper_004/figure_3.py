"""[004] Fig. 3: the fraction of runs that agree on the strong word against the number of agents."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtr

import meanfield
from meanfield.toolbox import labelled
from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import LABELS, grid_of_panels, styled
from paper_figs.paper_004._ensembles import MARKERS, collective, each_outcomes, file_name, strong_word, weak_word

LAW = np.geomspace(2, 1e4, 120)


def numbers(study: Study) -> xr.Dataset:
    """The fraction by policy and size, N = 1 being a single agent with an empty memory, and κ where there is a law."""
    tables = each_outcomes(study, meanfield.each_policy(study.policies))
    strong = [strong_word(table) for table in tables]
    kappa = [_kappa(study, table, word) for table, word in zip(tables, strong, strict=True)]
    sizes = [1, *tables[0]["n_agents"].values]
    individual = [float(table["individual"].sel(outcome=word)) for table, word in zip(tables, strong, strict=True)]
    fractions = [collective(table, word) for table, word in zip(tables, strong, strict=True)]
    columns = {
        "fraction": (
            ("policy", "n_agents"),
            [[one, *fraction] for one, (fraction, _) in zip(individual, fractions, strict=True)],
            "fraction of runs with consensus that agree on the strong word",
        ),
        "error": (("policy", "n_agents"), [[0.0, *error] for _, error in fractions], "standard error of the fraction"),
        "kappa": ("policy", kappa, "κ of the group-size law"),
        "strong_word": ("policy", strong, "strong word"),
        "weak_word": ("policy", [weak_word(table) for table in tables], "weak word"),
    }
    names = {name: ("policy", [table[name].item() for table in tables]) for name in ("model", "pair")}
    return labelled(columns, coords={**names, "n_agents": sizes})


def _kappa(study: Study, table: xr.Dataset, strong: str) -> float:
    """κ for the strong word, negative where the law has the other word as the strong one; NaN without such a law."""
    policy = study.policy(table["model"].item(), table["pair"].item())
    law = study.kept(f"law_{file_name(policy)}", lambda: meanfield.group_size_law(policy, n_agents=[24]), policy)
    sign = {strong: 1.0, weak_word(table): -1.0}.get(str(law["strong_word"].item()), np.nan)
    return sign * float(law["kappa"].where(law["attractors"] == 2))


@styled
def draw(found: xr.Dataset) -> Figure:
    """A panel for each model: simulations as points, the law Φ(κ√N) as thin lines."""
    models = list(dict.fromkeys(found["model"].values))
    pairs = list(dict.fromkeys(found["pair"].values))
    figure, axes = grid_of_panels(len(models), width=4.4, height=3.4)
    for axis, model in zip(axes, models, strict=True):
        _panel(axis, found.isel(policy=np.flatnonzero(found["model"].values == model)), pairs)
        axis.set_title(LABELS.get(str(model), str(model)))
    axes[0].set_ylabel("fraction of runs that agree on the strong word")
    return figure


def _panel(axis: Axes, one: xr.Dataset, pairs: list[str]) -> None:
    for k in range(one.sizes["policy"]):
        row = one.isel(policy=k)
        kappa, place = float(row["kappa"]), pairs.index(row["pair"].item())
        label = f"{row['strong_word'].item()} over {row['weak_word'].item()}"
        axis.errorbar(
            row["n_agents"],
            row["fraction"],
            yerr=row["error"],
            fmt=MARKERS[place % len(MARKERS)],
            ms=4,
            color=f"C{place % 10}",
            label=f"{label} (no law)" if np.isnan(kappa) else label,
        )
        if not np.isnan(kappa):
            axis.plot(LAW, ndtr(kappa * np.sqrt(LAW)), color=f"C{place % 10}", lw=0.7)
    axis.set_xscale("log")
    axis.set_xlabel("number of agents N")
    axis.set_ylim(-0.03, 1.03)
    axis.legend(loc="lower right", fontsize=6.5)


ITEMS = [
    Item(
        "004",
        "3",
        "Population size and collective bias",
        "The fraction of runs that agree on the strong word rises with N until one word always wins; N = 1 is the "
        "individual bias.",
        numbers,
        draw,
        "Thin lines are the group-size law Φ(κ√N), which the paper does not have; 10,000 runs up to N = 200.",
    )
]
