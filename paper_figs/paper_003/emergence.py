"""[003] Figs. 2 and D1: emergence of norms among ten agents, simulated and by the rate equation; and what is text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import meanfield
from meanfield.toolbox import LARGEST_SEED
from paper_figs._item import item, not_drawn
from paper_figs._study import Study
from paper_figs._style import SHARE
from theory import norms
from theory.norms import BEHAVIOURS, Behaviour
from validation import reactions

N_AGENTS, RUNS, DAYS = 10, 1000, 2
EVENTS = {"thoughts": "#56b4e9", "conflicts": "#d55e00", "chats": "#009e73"}
SHARES = {"accepted": "#0072b2", "complying": "#e69f00"}
NORMS = {"smoking": "no smoking indoors", "noise": "be quiet in public", "tipping": "tipping after meals"}
THEORY = "theory_"
DASHED = {"color": "black", "linestyle": "--", "linewidth": 0.9, "label": "_rate equation"}
HOURS = 24
BINS_PER_DAY = 12
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
    for k, one in enumerate(behaviours):
        model, start = _of(one, fractions)
        solution = meanfield.solve(model, initial=start, times=runs["time"].values)["composition"]
        each[k] = norms.observables(model, solution).sel(standard=["for"]).drop_vars("informed")
    curves = xr.concat(each, "behaviour").rename({name: f"{THEORY}{name}" for name in each[0].data_vars})
    return runs.merge(curves.assign_coords(behaviour=runs["behaviour"]))


def _of(behaviour: Behaviour, fractions: Fractions | None) -> tuple[meanfield.ReactionModel, xr.DataArray]:
    model = norms.reaction_model(norms.default_operations(), behaviour)
    return model, norms.initial_composition(behaviour if fractions is None else fractions)


def _simulated(study: Study, behaviour: Behaviour, fractions: Fractions | None) -> xr.Dataset:
    """The runs of one behaviour: only the drawn numbers, in as few bytes as possible."""
    model, start = _of(behaviour, fractions)
    told = {"/".join(key): share for key, share in (fractions or {}).items()}

    def make(runs: int, n_agents: int, **_: object) -> xr.Dataset:
        rounds = math.ceil(DAYS * model.protocol()[1])
        counts = np.rint(n_agents * start.values).astype(int)
        options = {"max_rounds": rounds, "record_rounds": rounds, "counted": norms.EVENTS}
        played = reactions.simulate(model, counts, runs=runs, seed=_seed_of(study.seed, behaviour.name), **options)
        played = played.swap_dims(round="time").drop_vars("round")
        seen = norms.observables(model, played["count"] / n_agents).sel(standard=["for"])
        shares = {name: seen[name].astype("float32") for name in (*SHARES, "reached")}
        found = xr.Dataset({"events": played["events"].astype("int16"), **shares}, attrs=played.attrs)
        return found.assign_coords(behaviour=behaviour.name, kind=behaviour.kind).assign_attrs(kind="norm_emergence")

    settings = {"behaviour": behaviour.standards["for"], "fractions": told}
    name = f"emergence_{behaviour.name.replace(' ', '_')}"
    return study.kept(name, make, runs=study.runs(RUNS), n_agents=N_AGENTS, **settings)


def _seed_of(seed: int, behaviour: str) -> int:
    """The seed of one behaviour's runs, so that runs of two behaviours are independent."""
    words = np.random.SeedSequence(seed, spawn_key=tuple(behaviour.encode())).generate_state(1, np.uint64)
    return int(words[0]) % (LARGEST_SEED + 1)


D1 = """A norm without entrepreneurs.

(a) Conflicts, thoughts and chats over two days; (b) the shares that accept and comply with 'maintain a healthy
environment', which no description names and no entrepreneur creates, in all of five runs.

In the model talks about one norm don't suggest another. Here agents find it in thoughts about what others do out of
habit, with our probability of 0.002 a thought, which begins at a random time; 7 of 10 agents like it, as they dislike
smoking, which is our assumption. So it emerges in about two of three simulated societies by day 2, the opposite in one
of five; the rate equation has all of them accept it.
"""


@item("003 D1", partial(emerging, behaviours=[HEALTHY], fractions=FRACTIONS), D1)
@item("003 2", partial(emerging, behaviours=list(BEHAVIOURS.values())))
def draw(found: xr.Dataset) -> Figure:
    """Emergence of three norms.

    (a) The number of conflicts, thoughts and chats over two days; (b) the shares of ten agents that accept and that
    comply with 'no smoking indoors', 'be quiet in public' and 'tipping after meals', in five runs.

    The paper prints no probabilities of its agents' operations: ours, chosen by hand to give its findings, drive 1,000
    simulated societies of ten agents and the rate equation. Not all agents comply by the end of day 2 (the paper has
    100 % with the injunctive norms), because one rate of plans can't give both its times; tipping loses one run in four
    (the paper: none in five).
    """
    names = [str(name) for name in found["behaviour"].values]
    figure = plt.figure(figsize=(2.7 * max(2, len(names)) + 0.5, 5.4))
    grid = figure.add_gridspec(2, len(names))
    _events(figure.add_subplot(grid[0, :]), found)
    panels = [figure.add_subplot(grid[1, k]) for k in range(len(names))]
    for panel, name in zip(panels, names, strict=True):
        one = found.sel(behaviour=name, standard="for")
        _shares(panel, one)
        panel.set_title(f"{NORMS.get(name, name)} ({one['kind'].item()})")
        panel.label_outer()
    panels[0].set_title("(b)", loc="left")
    panels[0].set_ylabel("share of the agents")
    _legend(panels[0], loc="best")
    n_agents, runs = int(found["n_agents"].item()), found.sizes["run"]
    several = f"{runs:,} simulated societies of {n_agents:,} agents: mean, and the middle half of the runs"
    figure.suptitle(several if runs > 1 else f"One simulated society of {n_agents:,} agents", size="medium")
    return figure


def _events(axis: Axes, found: xr.Dataset) -> None:
    """Per hour in the whole society, as the paper counts them, in steps of about two hours."""
    time, n_agents = found["time"].values, int(found["n_agents"].item())
    edges = np.linspace(0, time[-1], max(1, round(time[-1] * BINS_PER_DAY)) + 1)
    so_far = found["events"].sum("behaviour").cumsum("time").transpose("event", "run", "time")
    for name, colour in EVENTS.items():
        steps = np.diff([np.interp(edges, time, run) for run in so_far.sel(event=name).values], axis=1)
        _draw(axis, (edges[1:] + edges[:-1]) / 2, steps / ((edges[1] - edges[0]) * HOURS), color=colour, label=name)
    for name in EVENTS:
        axis.plot(time, found[f"{THEORY}{name}"].sum("behaviour") * n_agents / HOURS, **DASHED)
    axis.set_title("(a)", loc="left")
    axis.set(xlim=(0, time[-1]), xlabel="day", ylabel="number an hour, all agents")
    axis.set_ylim(0, 1.15 * axis.get_ylim()[1])  # the legend is one row above the curves
    _legend(axis, loc="upper right", ncols=4)


def _shares(axis: Axes, one: xr.Dataset) -> None:
    time = one["time"].values
    for name, colour in SHARES.items():
        _draw(axis, time, one[name].transpose("run", "time").values, color=colour, label=name)
    for name in SHARES:
        axis.plot(time, one[f"{THEORY}{name}"], **DASHED)
    emerged = float((one["reached"].isel(time=-1) > 0.5).mean())
    text = f"held by more than half at the end\nin {emerged:.0%} of runs"
    axis.text(0.97, 0.04, text, transform=axis.transAxes, ha="right", size=8)
    axis.set(xlim=(0, time[-1]), ylim=SHARE, xlabel="day")


def _draw(axis: Axes, time: np.ndarray, runs: np.ndarray, **style: str) -> None:
    """The mean of runs over time, and a band of their middle half."""
    axis.plot(time, runs.mean(0), **style)
    axis.fill_between(time, *np.quantile(runs, (0.25, 0.75), axis=0), color=style["color"], alpha=0.2, linewidth=0)


def _legend(axis: Axes, **options: object) -> None:
    """The legend of the simulated curves, and one entry for the rate equation."""
    handles, labels = axis.get_legend_handles_labels()
    axis.legend([*handles, axis.lines[-1]], [*labels, "rate equation"], **options)


not_drawn(
    "003 1",
    "The architecture",
    "A diagram of how norms are created, spread, evaluated and complied with.",
    "it is a diagram without numbers; the reaction model theory.norms.reaction_model is our version of it",
)
not_drawn(
    "003 A1",
    "Descriptions of agents (Figs. A1 and A2)",
    "The descriptions of seven ordinary agents and three norm entrepreneurs.",
    "they are texts; theory.norms.AGENTS holds the ten agents with their preferences, in our own words",
)
not_drawn(
    "003 B1",
    "Prompts (Figs. B1 to B12)",
    "Sketches of the prompts for the twelve operations of a language model.",
    "they are texts; policy_extraction.norms has prompts of our own for the same operations",
)
