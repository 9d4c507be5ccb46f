"""Group size: the probability of ending at the strong word, by the group-size law and in simulated runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter
from scipy.special import ndtr, ndtri

from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_sizes, size_colours, size_label
from meanfield._plot.words import NEUTRAL, model_name, words_in
from meanfield.toolbox._errors import InputError

# κ is ordered, so the colours are too; yellow, hard to see on white, is left out, and black is the theory.
KAPPAS = mpl.colormaps["viridis_r"]
FIRST_COLOUR = 0.12
MANY = 6  # policies, from which on the legend stands beside the axes
POINTS = 300  # of a line
CLIPPED = (1e-300, 1 - 1e-16)  # probabilities, whose quantiles are finite
WIDTH = 36  # letters of a line in a legend


class Bias(NamedTuple):
    """One policy: its numbers, its label, its colour, and κ, NaN if it has no line."""

    numbers: xr.Dataset
    label: str
    colour: Any
    kappa: float


def deviations(law: xr.Dataset, sizes: np.ndarray) -> np.ndarray:
    """κ√N - c/√N of one policy."""
    correction = np.nan_to_num(law["correction"].item()) if "correction" in law else 0.0
    return law["kappa"].item() * np.sqrt(sizes) - correction / np.sqrt(sizes)


@draws(
    "group_size_law",
    view="size",
    reads="n_agents: n_agents probability; n_agents word: word_probability?; "
    ": kappa correction? n_critical strong_word attractors?; word: word word_kappa?",
)
def law_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability Φ(κ√N - c/√N) of the strong word against the number of agents, and the critical size.

    Of more than two attractors or words it is the probability of each word.
    """
    sizes, chance, several = part["n_agents"].values, part["probability"].values, False
    if np.isnan(chance).all():
        _without_law(axes, part, "no group-size law")
        axes.set_xlim(sizes.min(), sizes.max())
    else:
        numbers = part["attractors"].item() if "attractors" in part else 2
        several = {"word_kappa", "word_probability"} <= set(part) and max(numbers, part.sizes["word"]) > 2
        if several:
            _draw_words(axes, part, colours, **style)
        else:
            _draw_law(axes, part, str(part["strong_word"].item()), colours, **style)
        sizes = np.array(_ends(sizes))
        critical = part["n_critical"].item()
        each = part["word_probability"].transpose("word", "n_agents").values if several else chance[None]
        if np.isfinite(critical) and critical > 0 and np.isclose(each, chance).all(1).any():
            level = 100 * float(part.attrs["option_level"])
            axes.axvline(critical, color=NEUTRAL, linestyle=":", label=f"{level:g} % from N = {critical:,.0f} on")
    show_sizes(axes, sizes)
    ahead = "attractors" in part and part["attractors"].item() == 1
    which = "word" if several else "strong word"
    axes.set_ylabel(f"chance that the {which} is ahead" if ahead else f"chance to end at the {which}")


@draws("group_size_law", view="memory", reads="n_agents: n_agents; round: round?; n_agents round: still_ahead?")
def memory_of_majority(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that the weak word, once ahead, is ahead some rounds later, for each number of agents."""
    if "still_ahead" not in part:
        raise InputError("result has no still_ahead: expected one of group_size_law(policy, rounds=...)")
    rounds, still = part["round"].values, part["still_ahead"].transpose("n_agents", "round").values
    known = np.flatnonzero(np.isfinite(still).any(1))
    chosen = known[np.unique(np.linspace(0, len(known) - 1, min(MANY, len(known))).round().astype(int))]
    for k, colour in zip(chosen, size_colours(len(chosen)), strict=True):
        label = size_label(int(part["n_agents"].values[k]))
        axes.plot(rounds, still[k], **{"color": colour, "label": label, **style})
    if not len(known):
        _without_law(axes, part, "not drawn")
    axes.set_xlabel("rounds later")
    axes.set_ylabel("chance that the weak word is still ahead")


def _draw_law(axes: Axes, part: xr.Dataset, word: str, colours: dict[str, str], **style: Any) -> None:
    """Φ(κ√N - c/√N) as a line, and the numbers of agents of the result as points on it."""
    sizes = part["n_agents"].values
    grid = np.geomspace(*_ends(sizes), POINTS)
    label = f"{over(words_in(part), word)}, κ = {_number(part['kappa'].item())}"
    look = {"color": colours.get(word, NEUTRAL), "label": label, **style}
    (line,) = axes.plot(grid, ndtr(deviations(part, grid)), **look)
    axes.plot(sizes, part["probability"], color=line.get_color(), marker=".", linestyle="none")
    axes.ticklabel_format(axis="y", useOffset=False)


def _draw_words(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each word; between the numbers of agents of the result its quantile is nearly linear in √N."""
    sizes = part["n_agents"].values
    grid = np.geomspace(sizes.min(), sizes.max(), POINTS)
    for number, word in enumerate(words_in(part)):
        chance, kappa = (part[name].isel(word=number).values for name in ("word_probability", "word_kappa"))
        if np.isnan(kappa):
            continue
        quantile = ndtri(np.clip(chance, *CLIPPED))
        label = word if kappa == 0 else f"{word}, κ = {_number(float(kappa))}"
        look = {"color": colours.get(word, NEUTRAL), "label": label, **style}
        (line,) = axes.plot(grid, ndtr(np.interp(np.sqrt(grid), np.sqrt(sizes), quantile)), **look)
        axes.plot(sizes, chance, color=line.get_color(), marker=".", linestyle="none")


def _ends(sizes: np.ndarray) -> tuple[float, float]:
    """The ends of the line: around one number of agents a decade each way, so that its place on the law is seen."""
    first, last = float(sizes.min()), float(sizes.max())
    return (first, last) if len(sizes) > 1 else (max(1.0, first / 10), 10 * last)


def _without_law(axes: Axes, part: xr.Dataset, what: str) -> None:
    """Says why, in the middle of the axes."""
    reason = textwrap.fill(f"{what}: {part.attrs['reason']}", WIDTH)
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center")


@draws(
    "collective_bias",
    view="size",
    by=(),
    reads="n_agents: n_agents; pair: kappa correction? applies strong_word model; pair n_agents: simulated; "
    "pair n_agents bound=low,high: interval; pair word: word_label",
)
def bias_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs that end at the strong word against the number of agents, over the lines Φ(κ√N)."""
    sizes = part["n_agents"].values
    for one in _each(part):
        if np.isfinite(one.kappa):
            grid = np.geomspace(sizes.min(), sizes.max(), POINTS)
            axes.plot(grid, ndtr(deviations(one.numbers, grid)), color=one.colour, linewidth=0.9, zorder=1)
        _points(axes, sizes, one, **style)
    show_sizes(axes, sizes)
    _finish(axes, part)


@draws(
    "collective_bias",
    view="collapse",
    by=(),
    reads="n_agents: n_agents; pair: kappa correction? applies strong_word model; pair n_agents: simulated; "
    "pair n_agents bound=low,high: interval; pair word: word_label",
)
def bias_collapse(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The same fractions against κ√N, where all policies with a law share the line Φ."""
    name = "κ√N - c/√N" if part.attrs.get("option_order") == 2 else "κ√N"
    places, apart = [], []
    for one in _each(part):
        if np.isfinite(one.kappa):
            places.append(deviations(one.numbers, part["n_agents"].values))
            _points(axes, places[-1], one, **style)
        else:
            apart.append(one.label)
    if places:
        grid = np.geomspace(np.min(places) / 1.1, np.max(places) * 1.1, POINTS)
        axes.plot(grid, ndtr(grid), color="black", linewidth=1.1, zorder=3, label=f"Φ({name})")  # above the points
        _logarithmic(axes, "x")
    for label in apart:
        axes.plot([], [], " ", label=f"not drawn: {label}")
    axes.set_xlabel(name)
    _finish(axes, part)


def _each(part: xr.Dataset) -> Iterator[Bias]:
    """The policies by falling κ; those without a line come last and are grey."""
    kappa = part["kappa"].values
    has_line = np.isfinite(kappa) & part["applies"].values
    several = len(set(part["model"].values.tolist())) > 1
    order = np.argsort(np.where(has_line, -kappa, np.inf), kind="stable")
    shades = iter(KAPPAS(np.linspace(1, FIRST_COLOUR, max(has_line.sum(), 1))))
    for k in order.tolist():
        one = part.isel(pair=k)
        colour = tuple(next(shades)) if has_line[k] else NEUTRAL
        yield Bias(one, _label(one, several=several), colour, float(kappa[k]) if has_line[k] else np.nan)


def _label(one: xr.Dataset, *, several: bool) -> str:
    words = tuple(map(str, one["word_label"].values))
    model = f"{model_name(one['model'].item())}: " if several else ""
    kappa, strong = one["kappa"].item(), str(one["strong_word"].item())
    simulated = "" if one["simulated"].notnull().any() else ", no runs"
    value = "no law" if np.isnan(kappa) or not one["applies"].item() else _number(kappa)
    return f"{model}{over(words, strong)}, {value}{simulated}"


def over(words: tuple[str, ...], strong: str) -> str:
    """The strong over the weak word; both in braces where neither is strong."""
    if strong not in words:
        return "{" + ", ".join(words) + "}"
    return f"{strong} over {', '.join(word for word in words if word != strong)}"


def _number(kappa: float) -> str:
    return "∞" if np.isinf(kappa) else f"{kappa:.3f}"


def _points(axes: Axes, x: np.ndarray, one: Bias, **style: Any) -> None:
    low, high = one.numbers["interval"].transpose("bound", "n_agents").values
    look = {"color": one.colour, "markersize": 4, "label": one.label, **style}
    error_bars(axes, x, one.numbers["simulated"].values, low, high, **look)


def _finish(axes: Axes, part: xr.Dataset) -> None:
    """The vertical axis, the legend, and the model in the title if there is one only."""
    axes.set_ylabel("fraction of runs at the strong word")
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if part.sizes["pair"] > MANY else {}
    axes.legend(title="strong over weak word, κ", alignment="left", **beside)
    models = {model_name(name) for name in part["model"].values.tolist()}
    if len(models) == 1 and not axes.get_title():
        axes.set_title(models.pop())


@draws(
    "critical_size_from_simulation",
    view="size",
    by=(),
    reads="pair: n_predicted n_critical n_below; pair word: word_label",
)
def critical_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Simulated against predicted critical sizes, with bars down to the largest size that is not enough.

    Arrows point up from that size where the critical size is larger than all that were simulated.
    """
    predicted, found, below = (part[name].values for name in ("n_predicted", "n_critical", "n_below"))
    known = np.isfinite(predicted) & np.isfinite(found)
    open_ended = np.isfinite(predicted) & ~np.isfinite(found) & np.isfinite(below)
    if known.any():
        low = np.where(np.isfinite(below), below, 0)[known]
        look = {"color": "C0", "label": "simulated", **style}
        error_bars(axes, predicted[known], found[known], low, found[known], **look)
    if open_ended.any():
        look = {"color": "C0", "marker": "^", "linestyle": "none", "markerfacecolor": "white"}
        look |= {"label": "larger than simulated", **style}
        axes.plot(predicted[open_ended], below[open_ended], **look)
    names = [", ".join(map(str, words)) for words in part["word_label"].transpose("pair", "word").values]
    for k, name in enumerate(names):
        if known[k] or open_ended[k]:
            place = (predicted[k], found[k] if known[k] else below[k])
            look = {"textcoords": "offset points", "fontsize": "x-small", "rotation": 45}
            axes.annotate(name, place, xytext=(2, 4), **look)
        else:
            axes.plot([], [], " ", label=f"not drawn: {{{name}}}")
    _diagonal(axes, np.concatenate([predicted[known | open_ended], found[known], below[open_ended]]))
    axes.set_xlabel("critical size by the group-size law")
    axes.set_ylabel("critical size of simulated groups")


def _diagonal(axes: Axes, sizes: np.ndarray) -> None:
    if not len(sizes):
        return
    ends = (sizes.min() / 1.5, sizes.max() * 1.5)
    axes.plot(ends, ends, color="0.5", linewidth=1, linestyle="--", label="equal", zorder=1)
    _logarithmic(axes, "x", "y")
    axes.set_xlim(ends)
    axes.set_ylim(ends)


def _logarithmic(axes: Axes, *names: Literal["x", "y"]) -> None:
    """Logarithmic axes with labels in plain digits, also at 2 and 5, since values need not span a decade."""
    for name in names:
        axes.set(**{f"{name}scale": "log"})
        axis = axes.xaxis if name == "x" else axes.yaxis
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
