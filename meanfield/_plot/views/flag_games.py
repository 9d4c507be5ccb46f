"""Flag games run by run: answers and leans of agents over time, at the start and in the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from meanfield._plot.curves import curve, draw_lines, tell_lines
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_bins, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, model_name
from meanfield.toolbox._errors import InputError

MOST = 7  # answers with a name of their own
MOST_NAMES = 12  # of agents
BINS = np.linspace(0, 1, 11)
MIDDLE = (0.25, 0.75)
BEFORE, AFTER = NEUTRAL, PALETTE[0]
PROBES, TRUTH = {"report": "trajectories=True"}, {"truth": "truth"}
REPORTS = "run agent: initial_report final_report; run: truth"
PATHS = {"m_path": ("m, mean", PALETTE[0]), "q_path": ("q, mean", PALETTE[1])}


@draws("gossip", "accuracy", REPORTS, needs=TRUTH)
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distribution over runs of the share of agents with the true answer, at the start and in the end."""
    shares = [(part[f"{when}_report"] == part["truth"]).mean("agent").values for when in ("initial", "final")]
    weights = [np.full(len(share), 1 / len(share)) for share in shares]
    look = {"color": [BEFORE, AFTER], "label": ["at the start", "in the end"], **style}
    axes.hist(shares, BINS, weights=weights, **look)
    axes.set(xlim=(-0.03, 1.03), xlabel="share of agents with the true answer", ylabel="fraction of runs")


@draws("gossip", "reports", f"{REPORTS}?")
def reports(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers of all runs and agents, at the start and in the end; rare answers count together."""
    before, after = part["initial_report"].values.ravel(), part["final_report"].values.ravel()
    names = _by_number(np.concatenate([before, after]))
    shown, others = names[:MOST], names[MOST:]
    rows = np.arange(len(shown) + bool(others))
    for k, (values, colour, label) in enumerate(((before, BEFORE, "at the start"), (after, AFTER, "in the end"))):
        shares = [np.mean(values == name) for name in shown] + [np.isin(values, others).mean()] * bool(others)
        axes.barh(rows + 0.4 * (k - 0.5), shares, 0.4, **{"color": colour, "label": label, **style})
    true = set(part["truth"].values) if "truth" in part else set()
    marked = [f"{name} (true)" if true == {name} else name for name in shown]
    axes.set_yticks(rows, [*marked, f"{len(others)} others"] if others else marked)
    axes.invert_yaxis()
    axes.set_xlabel("share of answers")


@draws("flag_game", "answers", "agent! probe: report; probe: step manager_decision?", by=("run",))
@draws("gossip", "answers", "agent! probe: report; probe: step", by=("run",), needs=PROBES)
def answers(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The answer of each agent to each probe of one run; a manager has a row of its own."""
    answered, rows = part["report"].values, [str(agent) for agent in part["agent"].values]
    if "model" in part.coords and part["model"].dims == ("agent",):
        rows = [f"{agent} {model_name(model)}" for agent, model in zip(rows, part["model"].values, strict=True)]
    if "manager_decision" in part:
        answered, rows = np.vstack([answered, part["manager_decision"].values]), [*rows, "manager"]
    names = _by_number(answered[_there(answered)])
    number = {name: min(k, MOST) for k, name in enumerate(names)}
    cells = np.array([[number.get(one, np.nan) for one in row] for row in answered], dtype=float)
    labels = _with_others(names)
    shades = [*PALETTE[:MOST], NEUTRAL][: len(labels)]
    scale = {"cmap": ListedColormap(shades), "vmin": -0.5, "vmax": len(shades) - 0.5}
    axes.pcolormesh(part["step"], np.arange(len(rows)), cells, **{"shading": "nearest", **scale, **style})
    patches = [Patch(color=shade, label=label) for shade, label in zip(shades, labels, strict=True)]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    if len(rows) <= MOST_NAMES:
        axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set(xlabel="steps", ylabel="agent")


@draws("gossip flag_game", "shares", "probe agent: report; probe: step", by=("run",), needs=PROBES)
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of agents with each answer at each probe of one run; rare answers count together."""
    answered = _carried(part["report"].values[None])[0]
    names = _by_number(answered)
    for k, label in enumerate(_with_others(names)):
        counted = names[k : k + 1] if k < MOST else names[MOST:]
        look = {"color": [*PALETTE[:MOST], NEUTRAL][k], "label": label, **style}
        axes.plot(part["step"], np.isin(answered, counted).mean(-1), **look)
    show_shares(axes, "share of agents", xlabel="steps")


def _with_others(names: list[str]) -> list[str]:
    """The most frequent answers, and the number of all others."""
    return [*names[:MOST], *([f"{len(names) - MOST} others"] if len(names) > MOST else [])]


@draws("gossip flag_game", "consensus", "run probe agent: report; probe: step; run: truth?", needs=PROBES)
def consensus(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of the most frequent and of the true answer by step: mean and middle half of the runs."""
    values = _carried(part["report"].values)
    curves = {"most frequent answer": (_most_frequent(values), AFTER, "-")}
    if "truth" in part:
        true = part["truth"].values[:, None, None]
        curves["true answer"] = ((values == true).mean(-1), PALETTE[1], "--")  # often the same
    for label, (share, colour, line) in curves.items():
        look = {"color": colour, "linestyle": line, "label": label, **style}
        curve(axes, part["step"], share.mean(0), np.quantile(share, MIDDLE, axis=0), **look)
    show_shares(axes, "share of agents", xlabel="steps")


@draws("gossip flag_game", "steps", "run: steps stopped")
def steps(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The number of steps that runs took, by whether consensus stopped them."""
    played, stopped = part["steps"].values, part["stopped"].values.astype(bool)
    look = {"color": [AFTER, BEFORE], "label": ["stopped by consensus", "not stopped"], **style}
    axes.hist([played[stopped], played[~stopped]], whole_bins(played, 20), stacked=True, **look)
    whole_ticks(axes.xaxis, axes.yaxis)
    axes.set(xlabel="steps played", ylabel="runs")


@draws("flag_game", "links", "agent source: messages? influence?", by=("run",))
def links(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The messages that each agent heard from each other one, or the decisions that each other one influenced."""
    found = [name for name in ("messages", "influence") if name in part]
    if not found:
        raise InputError("result is a game with a manager: expected one in pairs or by broadcast, for this view")
    values = part[found[0]]
    places = [np.arange(number) for number in values.shape[::-1]]
    mesh = axes.pcolormesh(*places, values, **{"shading": "nearest", "cmap": "viridis", "vmin": 0, **style})
    whole_ticks(axes.xaxis, axes.yaxis)
    axes.set(aspect="equal", xlabel="source", ylabel="agent")
    axes.figure.colorbar(mesh, ax=axes, label=values.attrs["long_name"])


draws("flag_game", "reports", f"{REPORTS}?")(reports)
draws("flag_game", "accuracy", REPORTS, needs=TRUTH)(accuracy)


def _there(answered: np.ndarray) -> np.ndarray:
    """Where there is an answer; after the end of a run there is none."""
    return np.array([isinstance(one, str) and one != "" for one in answered.ravel()]).reshape(answered.shape)


def _by_number(answered: np.ndarray) -> list[str]:
    """The answers, the most frequent first."""
    names, times = np.unique(answered.astype(str), return_counts=True)
    return [str(name) for name in names[np.argsort(-times, kind="stable")]]


def _carried(answered: np.ndarray) -> np.ndarray:
    """Answers (run, probe, agent) with the last ones repeated after the end of a run."""
    last = _there(answered).all(-1).cumsum(-1) - 1
    return np.take_along_axis(answered, last[..., None], axis=1)


def _most_frequent(answered: np.ndarray) -> np.ndarray:
    """The share of agents with the most frequent answer; shape (run, probe)."""
    _, numbers = np.unique(answered.astype(str), return_inverse=True)
    numbers = numbers.reshape(answered.shape)
    return (numbers[..., None] == numbers[..., None, :]).mean(-1).max(-1)


@draws(
    "mechanism1_simulation",
    "lean",
    "run round!: m_path q_path",
    by=("n_agents",),
    needs={"m_path": "trajectories=True"},
)
def lean(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Truth minus rival m and commitment q of [002] Eq. 8 over time: runs as thin lines, and their means."""
    _draw_lean(axes, part, part["round"].values, **style)


@draws(
    "gossip",
    "lean",
    "run probe: m_path q_path; probe: step; : n_agents",
    needs={"m_path": "trajectories=True and a rival"},
)
def lean_of_gossip(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Truth minus rival m and commitment q of [002] Eq. 8 over time: runs as thin lines, and their means."""
    _draw_lean(axes, part, part["step"].values / int(part["n_agents"]), **style)


def _draw_lean(axes: Axes, part: xr.Dataset, time: np.ndarray, **style: Any) -> None:
    """The paths of runs, which keep their last values after the end, and their means."""
    axes.axhline(0, color=NEUTRAL, linewidth=0.8)
    runs = {name: part[name].to_pandas().ffill(axis=1).to_numpy() for name in PATHS}
    for name, (_, colour) in PATHS.items():
        draw_lines(axes, time, runs[name], colour)
    for name, (label, colour) in PATHS.items():
        axes.plot(time, runs[name].mean(0), **{"color": colour, "linewidth": 2, "label": label, **style})
    tell_lines(axes, len(runs["m_path"]))
    axes.set(xlim=(0, time[-1]), ylim=(-1.05, 1.05), xlabel="time t/N", ylabel="lean m, commitment q")
