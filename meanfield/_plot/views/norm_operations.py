"""Operations of norm societies: their probabilities, probes of them, and people's scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from meanfield._plot.intervals import forest, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.words import NEUTRAL, PALETTE

LOOKS: dict[str, dict[str, Any]] = {
    "willing": {"fillstyle": "full"},
    "unwilling": {"fillstyle": "none"},
    "first": {"fillstyle": "full"},
    "reminded": {"fillstyle": "none"},
    "entrepreneur": {"marker": "s"},
    "ordinary": {"marker": "o"},
    "injunctive": {"marker": "D"},
    "descriptive": {"marker": "^"},
    "none": {"color": PALETTE[0]},
    "same": {"color": PALETTE[2]},
    "opposed": {"color": PALETTE[5]},
    "abstract": {"color": PALETTE[3]},
}
HELD = ("none", "same", "opposed", "abstract")
PLAIN = {"color": "black", "marker": "o", "linestyle": "none"}
HEIGHT = 0.6  # of the points in a row
RIGHT = {"true": (1, PALETTE[0]), "not true": (0, PALETTE[1]), "no right answer": (np.nan, NEUTRAL)}
SCALE = (1.0, 7.0)  # of the questionnaire's scores


@draws(
    "norm_operations",
    view="probabilities",
    by=(),
    reads="willing: willing; held: held; kind: kind; type: type; reminded: reminded",
)
def probabilities(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each operation, in a row, for every kind of agent, norm and memory that it depends on."""
    seen: set[str] = set()
    for row, name in enumerate(part.data_vars):
        values = part[name]
        shifts = np.linspace(-HEIGHT / 2, HEIGHT / 2, values.size + 2)[1:-1]
        for shift, place in zip(shifts, np.ndindex(values.shape), strict=True):
            labels = [str(values[dim].values[k]) for dim, k in zip(values.dims, place, strict=True)]
            look = PLAIN | {key: value for label in labels for key, value in LOOKS[label].items()}
            axes.plot(values.values[place], row + shift, **{**look, **style})
            seen.update(labels)
    name_rows(axes, [str(name).replace("_", " ") for name in part.data_vars])
    told = {label: f"holds {label}" if label in HELD else label for label in LOOKS if label in seen}
    handles = [Line2D([], [], **(PLAIN | LOOKS[label]), label=text) for label, text in told.items()]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("probability")


@draws("norm_probes", view="agreement", reads="operation: operation agreement contrast mean_mass")
def agreement(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Agreement of answers with the right ones, their dependence on the scene, and captured mass, by operation."""
    rows = np.arange(part.sizes["operation"])
    columns = {
        "agreement": ("agreement", PALETTE[0], "o"),
        "contrast": ("contrast", PALETTE[1], "D"),
        "mean_mass": ("captured mass", NEUTRAL, "x"),
    }
    for name, (label, colour, marker) in columns.items():
        look = {"color": colour, "marker": marker, "linestyle": "none", "label": label, **style}
        axes.plot(part[name], rows, **look)
    operations = zip(part["operation"].values, np.isnan(part["agreement"].values).tolist(), strict=True)
    name_rows(axes, [str(name).replace("_", " ") + " (no right answer)" * none for name, none in operations])
    axes.set_xlim(min(-0.03, float(part["contrast"].min()) - 0.03), 1.03)
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel("mean over scenes and agents")


@draws(
    "norm_probes",
    view="probabilities",
    reads="operation: operation; scene: asked; scene agent behaviour standard: probability right",
)
def probed(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each operation in each scene and for each agent, coloured by the right answer."""
    operations = [str(name) for name in part["operation"].values]
    for label, (right, colour) in RIGHT.items():
        found = part["probability"].where(part["right"].isnull() if np.isnan(right) else part["right"] == right)
        x, y = [], []
        for row, name in enumerate(operations):
            scenes = found.isel(scene=part["asked"].values == name)
            if not scenes.sizes["scene"]:
                continue
            places = row + HEIGHT * (np.arange(scenes.sizes["scene"]) + 0.5) / scenes.sizes["scene"] - HEIGHT / 2
            x.append(scenes.values.ravel())
            y.append(np.broadcast_to(places[:, None], (len(places), scenes[0].size)).ravel())
        look = {"marker": "|", "linestyle": "none", "color": colour, "label": label, **style}
        axes.plot(np.concatenate(x), np.concatenate(y), **look)
    name_rows(axes, [name.replace("_", " ") for name in operations])
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel("probability that the operation is true")


@draws(
    "norm_questionnaire",
    view="scores",
    reads="task: task module items score standard_error; : overall overall_standard_error",
)
def scores(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean score of each task with its standard error, coloured by module; a band is the overall score."""
    score, error = part["score"].values, part["standard_error"].values
    modules, rows = part["module"].values, np.arange(part.sizes["task"])
    for k, module in enumerate(dict.fromkeys(modules)):
        here = modules == module
        ends = score[here] - error[here], score[here] + error[here]
        look = {"color": PALETTE[k % len(PALETTE)], "label": str(module), **style}
        forest(axes, rows[here], score[here], *ends, SCALE, **look)
    overall, spread = float(part["overall"]), float(part["overall_standard_error"])
    axes.axvline(overall, color=NEUTRAL, linestyle="--", label=f"all tasks, {overall:.2f}")
    if np.isfinite(spread):
        axes.axvspan(overall - spread, overall + spread, color=NEUTRAL, alpha=0.2, linewidth=0)
    name_rows(axes, [f"{task}{'' if items else ' (no items)'}" for task, items in zip(*_tasks(part), strict=True)])
    axes.set_xlim(SCALE)
    axes.set_xlabel("score from 1 to 7, ± standard error")


def _tasks(part: xr.Dataset) -> tuple[list[str], list[int]]:
    return [str(task) for task in part["task"].values], part["items"].values.tolist()
