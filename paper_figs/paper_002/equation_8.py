"""[002] Eq. 8 over time: the lean m and the commitment q under both mechanisms, with the solutions of Eq. 9."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
import validation
from paper_figs._item import Item
from paper_figs._parts import part, together
from paper_figs._study import Study
from paper_figs._style import no_legend, styled
from paper_figs.paper_002._france import RIVAL, RULES, SIZES, TRUTH, crops_of
from theory import flag_game
from theory.flag_game.mechanism1 import APPENDIX_E
from theory.flag_game.random_field import FieldLaw, fixed_points

RUNS = 1000
END, PLAYED = APPENDIX_E.interactions_per_agent, 64  # in interactions per agent; runs are played beyond their end
NOISE = 0.01  # of the ideal observer, so that fields are finite


def numbers(study: Study) -> xr.Dataset:
    """Paths of m and q at each N under both mechanisms, and for each of them the solutions of Eq. 9."""
    runs = study.runs(RUNS)
    longer = replace(APPENDIX_E, interactions_per_agent=PLAYED)
    options = {"n_agents": list(SIZES), "runs": runs}
    mechanism1 = study.kept(
        "lean_mechanism1",
        lambda: validation.flag_game.simulate(longer, seed=study.seed, trajectories=True, **options),
        None,
        parameters=str(longer),
        **options,
    )
    rules = {**RULES, "rival": RIVAL, "kappa": PLAYED, "patience": None}
    gossip = study.kept("lean_gossip", lambda: _gossip(runs, study.seed, rules), None, **options, **rules)
    lines = {f"m_{n}": _solutions(APPENDIX_E.field_law(n)) for n in SIZES}
    crops = flag_game.crop_compatibility(TRUTH, noise=NOISE)
    lines["m_gossip"] = _solutions(flag_game.signed_field(crops, TRUTH, RIVAL).values)
    return together(mechanism1=mechanism1, gossip=gossip, **lines)


def _gossip(runs: int, seed: int, rules: dict[str, Any]) -> xr.Dataset:
    """Games about France at each N; each run has other crops."""
    found = {}
    for n in SIZES:
        _, crops = crops_of(runs, n, seed)
        game = validation.flag_game.simulate_gossip(crops, runs=runs, seed=seed, trajectories=True, **rules)
        found[f"N_{n}"] = game[["m_path", "q_path"]]
    return together(**found)


def _solutions(fields: FieldLaw | np.ndarray) -> xr.Dataset:
    return fixed_points(fields, J=APPENDIX_E.J, beta=APPENDIX_E.beta)


@styled
def draw(found: xr.Dataset) -> Figure:
    """A row for each mechanism, and a column for each N; black lines are m* of Eq. 9."""
    figure, axes = plt.subplots(2, len(SIZES), figsize=(3.3 * len(SIZES) + 0.4, 6), sharex=True, sharey=True)
    for (upper, lower), n in zip(axes.T, SIZES, strict=True):
        one = part(found, "mechanism1").sel(n_agents=n)
        _panel(upper, one, part(found, f"m_{n}"), f"Mechanism 1, N = {n}")
        _panel(lower, part(part(found, "gossip"), f"N_{n}"), part(found, "m_gossip"), f"gossip, N = {n}")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _panel(axis: Axes, game: xr.Dataset, solutions: xr.Dataset, title: str) -> None:
    meanfield.plot(game, ax=axis, view="lean")
    meanfield.plot(solutions, ax=axis, view="levels")
    axis.axvline(END, color="black", linestyle=":", linewidth=1, label=f"t = {END} N, end in the paper")
    axis.set_title(title)
    no_legend(axis)
    axis.label_outer()


ITEMS = [
    Item(
        "002",
        "Eq. 8",
        "Lean and commitment over time",
        "The equations have no figure: m is the mean lean of agents to the truth over the rival, q the mean of its "
        "square, and m* solves Eq. 9.",
        numbers,
        draw,
        "1,000 runs at each N, of four times the 16 N interactions of Appendix E. Mechanism 1 has the parameters of "
        "Appendix E, and m* the distribution of fields at that N. Large groups have not reached m* when the paper's "
        "runs end: at N = 64 the mean of |m| is 0.49 at 16 N and 0.74 at 64 N, m* is 0.86 and -0.91. Of these runs "
        "47 % are polarized at 16 N and 11 % at 64 N, so a good part of the polarization of large groups in Fig. 5c "
        "passes with time. Gossip is of ideal observers of France against Peru, with α = 0.45, m = 3 and no rewrite; "
        "each run has other crops. For gossip the paper derives no J and β: m* takes them from Appendix E, and "
        "the fields of all crops, with misreadings of 1 % so that they are finite. m of gossip stays far below; one "
        "reason is that agents who see blue alone, 16 % of crops, end at Ukraine, a third country.",
    )
]
