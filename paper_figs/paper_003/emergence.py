"""[003] Fig. 2 and D1: emergence of norms among ten agents, simulated and by the rate equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from paper_figs._item import Item
from paper_figs._study import Study
from paper_figs._style import styled
from paper_figs.norm_emergence import EVENTS, emergence_figure
from theory.norms import BEHAVIOURS, Behaviour, emergence
from validation.norms import simulate

N_AGENTS, RUNS = 10, 1000
SHARES = ("accepted", "complying", "reached")
THEORY = "theory_"
HEALTHY = Behaviour(
    "maintain a healthy environment",
    "injunctive",
    90,
    {"for": "Keep the café a healthy place.", "against": "Nobody need care for the café."},
    {"for": "opens a window and clears the table", "against": "leaves litter and stale air behind"},
)
# Nobody is an entrepreneur for it. Preferences as for smoking, the behaviour whose descriptions speak of health.
FRACTIONS = {("ordinary", "for"): 0.7, ("ordinary", "against"): 0.3}
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
    settings = {
        "behaviour": behaviour.norm("for").content,
        "n_agents": N_AGENTS,
        "runs": runs,
        "fractions": told,
        "made_of": True,
    }

    def make() -> xr.Dataset:
        one = simulate(behaviour, n_agents=N_AGENTS, runs=runs, seed=study.seed, fractions=fractions)
        one = one.isel(n_agents=0).sel(standard=["for"]).drop_vars("made_of")  # the curves have it
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


ITEMS = [
    Item(
        "003",
        "2",
        "Emergence of three norms",
        "(a) The number of conflicts, thoughts and chats over two days; (b) the shares of ten agents that accept and "
        "that comply with 'no smoking indoors', 'be quiet in public' and 'tipping after meals', in five runs.",
        partial(emerging, behaviours=list(BEHAVIOURS.values())),
        draw,
        "The paper prints no probabilities of its agents' operations: ours, chosen by hand to give its findings, "
        "drive 1,000 simulated societies of ten agents and the rate equation. Not all agents comply by the end of "
        "day 2 (95 to 96 % with the injunctive norms; the paper has 100 %), because one rate of plans can't "
        "give both its times; tipping loses one run in four (the paper: none in five).",
    ),
    Item(
        "003",
        "D1",
        "A norm without entrepreneurs",
        "(a) Conflicts, thoughts and chats over two days; (b) the shares that accept and comply with 'maintain a "
        "healthy environment', which no description names and no entrepreneur creates, in all of five runs.",
        partial(emerging, behaviours=[HEALTHY], fractions=FRACTIONS),
        draw,
        "In the model talks about one norm don't suggest another. Here agents find it in thoughts about what others "
        "do out of habit, with our probability of 0.002 a thought, which begins at a random time; 7 of 10 agents "
        "like it, as they dislike smoking, which is our assumption. So it emerges in about two of three "
        "simulated societies by day 2, the opposite in one of five; the rate equation has all of them accept it.",
    ),
]
