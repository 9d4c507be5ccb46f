"""Emergence of norms among the ten agents of [003], simulated and by the rate equation, as one table of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import xarray as xr
from matplotlib.figure import Figure

from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.norm_emergence import EVENTS, emergence_figure
from theory.norms import Behaviour, emergence
from validation.norms import simulate

N_AGENTS, RUNS = 10, 1000
SHARES = ("accepted", "complying", "reached")
THEORY = "theory_"

Fractions = Mapping[tuple[str, str], float]


def emerging(study: Study, behaviours: Sequence[Behaviour], fractions: Fractions | None = None) -> xr.Dataset:
    """Events and shares by run, and the same of the rate equation as `theory_…`, over behaviours."""
    each = [_simulated(study, one, fractions) for one in behaviours]
    runs = xr.concat(each, "behaviour", coords=["kind"], compat="override", combine_attrs="drop_conflicts")
    curves = emergence(behaviours, fractions=fractions, times=runs["time"].values).sel(standard=["for"])
    kept = curves[[*EVENTS, *SHARES]]
    return runs.assign({f"{THEORY}{name}": kept[name] for name in kept.data_vars})


def _simulated(study: Study, behaviour: Behaviour, fractions: Fractions | None) -> xr.Dataset:
    """The runs of one behaviour: only what is drawn, in as few bytes as it needs."""
    runs = study.runs(RUNS)
    told = {"/".join(key): share for key, share in (fractions or {}).items()}
    settings = {"behaviour": behaviour.norm("for").content, "n_agents": N_AGENTS, "runs": runs, "fractions": told}

    def make() -> xr.Dataset:
        one = simulate(behaviour, n_agents=N_AGENTS, runs=runs, seed=study.seed, fractions=fractions)
        one = one.isel(n_agents=0).sel(standard=["for"])
        shares = {name: one[name].astype("float32") for name in SHARES}
        return xr.Dataset({"events": one["events"].astype("int16"), **shares}, attrs=one.attrs)

    return study.kept(f"emergence_{behaviour.name.replace(' ', '_')}", make, None, **settings)


@styled
def draw(found: xr.Dataset) -> Figure:
    """Events of all behaviours above, the shares of each below."""
    theory = [name for name in found.data_vars if str(name).startswith(THEORY)]
    curves = found[theory].rename({name: str(name).removeprefix(THEORY) for name in theory})
    runs = found.drop_vars(theory)
    return emergence_figure(
        [runs.sel(behaviour=name) for name in found["behaviour"].values], curves.assign_attrs(kind="norm_emergence")
    )
