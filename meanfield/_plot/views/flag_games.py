"""Flag games run by run: answers of agents over time, at the start and in the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.words import NEUTRAL, PALETTE, model_name
from meanfield.toolbox._errors import InputError

MOST = 7  # answers with a name of their own
MOST_NAMES = 12  # of agents
BINS = np.linspace(0, 1, 11)
MIDDLE = (0.25, 0.75)
BEFORE, AFTER = NEUTRAL, PALETTE[0]
PROBES, TRUTH = {"report": "trajectories=True"}, {"truth": "truth"}


@draws("gossip", view="accuracy", needs=TRUTH, reads="run agent: initial_report final_report; run: truth")
def accuracy(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distribution over runs of the share of agents with the true answer, at the start and in the end."""
    shares = [_given(part[f"{when}_report"], part["truth"]) for when in ("initial", "final")]
    weights = [np.full(len(share), 1 / len(share)) for share in shares]
    look = {"color": [BEFORE, AFTER], "label": ["at the start", "in the end"], **style}
    axes.hist(shares, BINS, weights=weights, **look)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("share of agents with the true answer")
    axes.set_ylabel("fraction of runs")


def _given(reports: xr.DataArray, answer: xr.DataArray) -> np.ndarray:
    """The share of agents who give the answer of their run; shape (runs,)."""
    return np.atleast_1d((reports == answer).mean("agent").values)


@draws("gossip", view="reports", reads="run agent: initial_report final_report; run: truth?")
def reports(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Shares of answers of all runs and agents, at the start and in the end; rare answers count together."""
    before, after = part["initial_report"].values.ravel(), part["final_report"].values.ravel()
    names = _by_number(np.concatenate([before, after]))
    shown, others = names[:MOST], names[MOST:]
    rows = np.arange(len(shown) + bool(others))
    for k, (values, colour, label) in enumerate(((before, BEFORE, "at the start"), (after, AFTER, "in the end"))):
        shares = [np.mean(values == name) for name in shown] + [np.isin(values, others).mean()] * bool(others)
        axes.barh(rows + 0.4 * (k - 0.5), shares, 0.4, **{"color": colour, "label": label, **style})
    true = set(np.atleast_1d(part["truth"].values)) if "truth" in part else set()
    marked = [f"{name} (true)" if true == {name} else name for name in shown]
    axes.set_yticks(rows, [*marked, f"{len(others)} others"] if others else marked)
    axes.invert_yaxis()
    axes.set_xlabel("share of answers")


@draws(
    "flag_game", view="answers", by=("run",), reads="agent: agent; agent probe: report; probe: step manager_decision?"
)
@draws("gossip", view="answers", by=("run",), needs=PROBES, reads="agent: agent; agent probe: report; probe: step")
def answers(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The answer of each agent to each probe of one run; a manager has a row of its own."""
    answered = part["report"].transpose("agent", "probe").values
    rows = [str(agent) for agent in part["agent"].values]
    if "model" in part.coords and part["model"].dims == ("agent",):
        rows = [f"{agent} {model_name(model)}" for agent, model in zip(rows, part["model"].values, strict=True)]
    if "manager_decision" in part:
        answered, rows = np.vstack([answered, part["manager_decision"].values]), [*rows, "manager"]
    names = _by_number(answered[_there(answered)])
    shades = [*PALETTE[: min(MOST, len(names))], *[NEUTRAL] * (len(names) > MOST)]
    number = {name: min(k, MOST) for k, name in enumerate(names)}
    cells = np.array([[number.get(one, np.nan) for one in row] for row in answered], dtype=float)
    scale = {"cmap": ListedColormap(shades), "vmin": -0.5, "vmax": len(shades) - 0.5}
    axes.pcolormesh(part["step"], np.arange(len(rows)), cells, **{"shading": "nearest", **scale, **style})
    labels = [*names[:MOST], f"{len(names) - MOST} others"]
    patches = [Patch(color=shade, label=label) for shade, label in zip(shades, labels, strict=False)]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    if len(rows) <= MOST_NAMES:
        axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlabel("steps")
    axes.set_ylabel("agent")


@draws("gossip", "flag_game", view="shares", by=("run",), needs=PROBES, reads="agent probe: report; probe: step")
def shares(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of agents with each answer at each probe of one run; rare answers count together."""
    answered = _carried(part["report"].transpose("probe", "agent").values[None])[0]
    names = _by_number(answered)
    curves = {name: (answered == name).mean(-1) for name in names[:MOST]}
    if names[MOST:]:
        curves[f"{len(names) - MOST} others"] = np.isin(answered, names[MOST:]).mean(-1)
    for label, share, colour in zip(curves, curves.values(), [*PALETTE[:MOST], NEUTRAL], strict=False):
        axes.plot(part["step"], share, **{"color": colour, "label": label, **style})
    axes.set_xlabel("steps")
    show_shares(axes, "share of agents")


@draws("gossip", "flag_game", view="consensus", needs=PROBES, reads="run agent probe: report; probe: step; run: truth?")
def consensus(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The share of the most frequent and of the true answer by step: mean and middle half of the runs."""
    answered = (
        part["report"].transpose("run", "probe", "agent") if "run" in part.dims else part["report"].expand_dims("run")
    )
    values = _carried(answered.values)
    curves = {"most frequent answer": (_most_frequent(values), AFTER)}
    if "truth" in part:
        true = np.atleast_1d(part["truth"].values)[:, None, None]
        curves["true answer"] = ((values == true).mean(-1), PALETTE[1])
    for label, (share, colour) in curves.items():
        (line,) = axes.plot(part["step"], share.mean(0), **{"color": colour, "label": label, **style})
        middle = np.quantile(share, MIDDLE, axis=0)
        axes.fill_between(part["step"], *middle, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.set_xlabel("steps")
    show_shares(axes, "share of agents")


@draws("gossip", "flag_game", view="steps", reads="run: steps stopped")
def steps(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The number of steps that runs took, by whether consensus stopped them."""
    played, stopped = np.atleast_1d(part["steps"].values), np.atleast_1d(part["stopped"].values).astype(bool)
    look = {"color": [AFTER, BEFORE], "label": ["stopped by consensus", "not stopped"], **style}
    axes.hist([played[stopped], played[~stopped]], 20, stacked=True, **look)
    axes.set_xlabel("steps played")
    axes.set_ylabel("runs")


@draws("flag_game", view="links", by=("run",), reads="agent source: messages? influence?")
def links(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The messages that each agent heard from each other one, or the decisions that each other one influenced."""
    found = [name for name in ("messages", "influence") if name in part]
    if not found:
        raise InputError("result is a game with a manager: expected one in pairs or by broadcast, for this view")
    values = part[found[0]].transpose("agent", "source")
    places = [np.arange(number) for number in values.shape[::-1]]
    mesh = axes.pcolormesh(*places, values, **{"shading": "nearest", "cmap": "viridis", "vmin": 0, **style})
    axes.set_aspect("equal")
    for axis in (axes.xaxis, axes.yaxis):
        whole_ticks(axis)
    axes.set_xlabel("source")
    axes.set_ylabel("agent")
    axes.figure.colorbar(mesh, ax=axes, label=values.attrs["long_name"])


draws("flag_game", view="reports", reads="run agent: initial_report final_report; run: truth?")(reports)
draws("flag_game", view="accuracy", needs=TRUTH, reads="run agent: initial_report final_report; run: truth")(accuracy)


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
