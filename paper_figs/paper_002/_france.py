"""Gossip about the flag of France among agents who see its crops as an ideal observer does."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield.toolbox import labelled
from paper_figs._parts import together
from paper_figs._study import NotAtHandError, Study
from theory import flag_game
from theory.flag_game.mechanism1 import APPENDIX_E, ENDPOINTS
from validation.flag_game import endpoints, simulate_gossip

TRUTH, RIVAL = "France", "Peru"
SIZES = (4, 16, 64)
SEEDS = 1000  # all of them also where runs are few: the search takes seconds
RULES = {"uptake": APPENDIX_E.alpha, "bandwidth": 3, "truth": TRUTH}  # m = 3, [002] Appendix C
CORRECT, _, POLARIZED, _ = ENDPOINTS
FACTION = 0.25  # of a polarized end, [002] Sec. 2.3


def crops_of(runs: int, n_agents: int, seed: int) -> tuple[np.ndarray, xr.DataArray]:
    """Numbers of the crops drawn for each run, shape (runs, N), and their compatibilities.

    The first agents of a run have the same crops for every N.
    """
    p = flag_game.crop_compatibility(TRUTH)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, p.sizes["crop"], (runs, max(SIZES)))[:, :n_agents]
    rows = xr.DataArray(p.values[drawn], dims=("run", "agent", "country"), coords={"country": p["country"].values})
    return drawn, rows


def replayed(study: Study) -> xr.Dataset:
    """The first seed that ends as the paper's: no truth at N = 4, truth at 16, truth and rival at 64.

    The parts are `ends` and N_… for each size.
    """
    return study.kept("replayed", lambda: _replayed(study.seed), None, seeds=SEEDS, sizes=list(SIZES), **RULES)


def _replayed(seed: int) -> xr.Dataset:
    drawn = {n: crops_of(SEEDS, n, seed) for n in SIZES}
    games = {
        n: simulate_gossip(rows, runs=SEEDS, seed=seed, trajectories=True, **RULES) for n, (_, rows) in drawn.items()
    }
    small, middle, large = (endpoints(game["final_report"], TRUTH)["endpoint"].values for game in games.values())
    rivals = (games[SIZES[-1]]["final_report"] == RIVAL).mean("agent").values
    alike = (small != CORRECT) & (middle == CORRECT) & (large == POLARIZED) & (rivals >= FACTION)
    if not alike.any():
        raise NotAtHandError(f"none of {SEEDS:,} seeds ends as the paper's")
    first = int(alike.argmax())
    columns = {"alike": ((), int(alike.sum()), "seeds that end so"), "first": ((), first, "the first of them")}
    parts = {f"N_{n}": _one(game, first, drawn[n][0][first]) for n, game in games.items()}
    return together(ends=labelled(columns), **parts)


def _one(game: xr.Dataset, run: int, crops: np.ndarray) -> xr.Dataset:
    """One run with the places of its crops."""
    p = flag_game.crop_compatibility(TRUTH)
    places = {name: ("agent", p[name].values[crops], {"units": "cells"}) for name in ("left", "top")}
    return game.isel(run=[run]).assign_coords(places)


def show_flag(axes: Axes, alpha: float = 1.0) -> None:
    """The flag on its canvas of 24 x 16 cells, without ticks."""
    axes.imshow(flag_game.render(flag_game.flag_of(TRUTH), 6), extent=(0, 24, 16, 0), alpha=alpha)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
