"""The group-size law and simulated runs over it, critical sizes, and individual against collective bias."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from scipy.special import ndtr, ndtri

from meanfield._plot.curves import note
from meanfield._plot.intervals import error_bars, name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import plain_log, show_sizes, size_colours, size_label
from meanfield._plot.words import NEUTRAL, PALETTE, in_braces, model_name, words_in
from meanfield.toolbox._errors import InputError

# κ is ordered, so the colours are too; yellow, hard to see on white, is left out, and black is the theory.
KAPPAS = mpl.colormaps["viridis_r"]
FIRST_COLOUR = 0.12
MANY = 6  # policies, from which the legend stands beside the axes
POINTS = 300  # of a line
CLIPPED = (1e-300, 1 - 1e-16)  # probabilities, whose quantiles are finite
WIDTH = 36  # letters of a line in a legend


class Bias(NamedTuple):
    """One policy: its numbers, its label, its colour, and κ, NaN if it has no line."""

    numbers: xr.Dataset
    label: str
    colour: Any
    kappa: float


def _deviations(law: xr.Dataset, sizes: np.ndarray) -> np.ndarray:
    """κ√N - c/√N of one policy."""
    correction = np.nan_to_num(law["correction"].item()) if "correction" in law else 0.0
    return law["kappa"].item() * np.sqrt(sizes) - correction / np.sqrt(sizes)


@draws(
    "group_size_law",
    "size",
    "n_agents!: probability; word n_agents: word_probability?; "
    ": kappa correction? n_critical strong_word attractors?; word!: word_kappa?",
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
        first, last = float(sizes.min()), float(sizes.max())
        if first == last:  # a decade each way, so that its place on the law is seen
            first, last = max(1.0, first / 10), 10 * last
        if several:
            each = part["word_probability"].values
            _draw_words(axes, part, colours, **style)
        else:
            each = chance[None]
            word, grid = str(part["strong_word"].item()), np.geomspace(first, last, POINTS)
            label = f"{_over(words_in(part), word)}, κ = {_number(part['kappa'].item())}"
            look = {"color": colours.get(word, NEUTRAL), "label": label, **style}
            _law(axes, grid, ndtr(_deviations(part, grid)), sizes, chance, **look)
            axes.ticklabel_format(axis="y", useOffset=False)
        sizes = np.array([first, last])
        critical = part["n_critical"].item()
        if np.isfinite(critical) and critical > 0 and np.isclose(each, chance).all(1).any():
            level = 100 * float(part.attrs["option_level"])
            axes.axvline(critical, color=NEUTRAL, linestyle=":", label=f"{level:g} % from N = {critical:,.0f} on")
    show_sizes(axes, sizes)
    ahead = "attractors" in part and part["attractors"].item() == 1
    which = "word" if several else "strong word"
    axes.set_ylabel(f"probability that the {which} is ahead" if ahead else f"probability to end at the {which}")


@draws("group_size_law", "memory", "n_agents! round: still_ahead?; round: round?")
def memory_of_majority(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability that the weak word, once ahead, is ahead some rounds later, for each number of agents."""
    if "still_ahead" not in part:
        raise InputError("result has no still_ahead: expected one of group_size_law(policy, rounds=...)")
    still = part["still_ahead"].values
    known = np.flatnonzero(np.isfinite(still).any(1))
    chosen = known[np.unique(np.linspace(0, len(known) - 1, min(MANY, len(known))).round().astype(int))]
    for k, colour in zip(chosen, size_colours(len(chosen)), strict=True):
        label = size_label(int(part["n_agents"].values[k]))
        axes.plot(part["round"], still[k], **{"color": colour, "label": label, **style})
    if not len(known):
        _without_law(axes, part, "not drawn")
    axes.set(xlabel="rounds later", ylabel="probability that the weak word is still ahead")


def _law(axes: Axes, grid: np.ndarray, law: np.ndarray, sizes: np.ndarray, chance: np.ndarray, **look: Any) -> None:
    """A law as a line, and the numbers of agents of the result as points on it."""
    (line,) = axes.plot(grid, law, **look)
    axes.plot(sizes, chance, color=line.get_color(), marker=".", linestyle="none")


def _draw_words(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of each word; between the numbers of agents of the result its quantile is nearly linear in √N."""
    sizes = part["n_agents"].values
    grid = np.geomspace(sizes.min(), sizes.max(), POINTS)
    for number, word in enumerate(words_in(part)):
        chance, kappa = part["word_probability"].values[number], float(part["word_kappa"][number])
        if np.isnan(kappa):
            continue
        quantile = np.interp(np.sqrt(grid), np.sqrt(sizes), ndtri(np.clip(chance, *CLIPPED)))
        label = word if kappa == 0 else f"{word}, κ = {_number(kappa)}"
        _law(
            axes, grid, ndtr(quantile), sizes, chance, **{"color": colours.get(word, NEUTRAL), "label": label, **style}
        )


def _without_law(axes: Axes, part: xr.Dataset, what: str) -> None:
    """Says why, in the middle of the axes."""
    reason = textwrap.fill(f"{what}: {part.attrs['reason']}", WIDTH)
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center")


OF_PAIRS = (
    "pair: kappa correction? applies strong_word model; pair n_agents!: simulated; "
    "pair bound=low,high n_agents: interval; pair word: word_label"
)


@draws("collective_bias", "size", OF_PAIRS, by=())
def bias_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Fractions of runs that end at the strong word against the number of agents, over the lines Φ(κ√N)."""
    sizes = part["n_agents"].values
    grid = np.geomspace(sizes.min(), sizes.max(), POINTS)
    for one in _each(part):
        if np.isfinite(one.kappa):
            axes.plot(grid, ndtr(_deviations(one.numbers, grid)), color=one.colour, linewidth=0.9, zorder=1)
        _points(axes, sizes, one, **style)
    show_sizes(axes, sizes)
    _finish(axes, part)


@draws("collective_bias", "collapse", OF_PAIRS, by=())
def bias_collapse(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The same fractions against κ√N, where all policies with a law share the line Φ."""
    name = "κ√N - c/√N" if part.attrs.get("option_order") == 2 else "κ√N"
    places, apart = [], []
    for one in _each(part):
        if np.isfinite(one.kappa):
            places.append(_deviations(one.numbers, part["n_agents"].values))
            _points(axes, places[-1], one, **style)
        else:
            apart.append(one.label)
    if places:
        grid = np.geomspace(np.min(places) / 1.1, np.max(places) * 1.1, POINTS)
        axes.plot(grid, ndtr(grid), color="black", linewidth=1.1, zorder=3, label=f"Φ({name})")  # above the points
        axes.set_xscale("log")
        plain_log(axes.xaxis)
    for label in apart:
        note(axes, f"not drawn: {label}")
    axes.set_xlabel(name)
    _finish(axes, part)


def _each(part: xr.Dataset) -> Iterator[Bias]:
    """The policies by decreasing κ; those without a line come last and are grey."""
    kappa = part["kappa"].values
    has_line = np.isfinite(kappa) & part["applies"].values
    several = len(set(part["model"].values.tolist())) > 1
    order = np.argsort(np.where(has_line, -kappa, np.inf), kind="stable")
    shades = iter(KAPPAS(np.linspace(1, FIRST_COLOUR, max(has_line.sum(), 1))))
    for k in order.tolist():
        one = part.isel(pair=k)
        model = f"{model_name(one['model'].item())}: " if several else ""
        simulated = "" if one["simulated"].notnull().any() else ", no runs"
        value = "no law" if np.isnan(kappa[k]) or not one["applies"].item() else _number(kappa[k])
        words = _over(tuple(map(str, one["word_label"].values)), str(one["strong_word"].item()))
        colour = tuple(next(shades)) if has_line[k] else NEUTRAL
        yield Bias(one, f"{model}{words}, {value}{simulated}", colour, float(kappa[k]) if has_line[k] else np.nan)


def _over(words: tuple[str, ...], strong: str) -> str:
    """The strong over the weak word; both in braces where neither is strong."""
    if strong not in words:
        return in_braces(words)
    return f"{strong} over {', '.join(word for word in words if word != strong)}"


def _number(kappa: float) -> str:
    return "∞" if np.isinf(kappa) else f"{kappa:.3f}"


def _points(axes: Axes, x: np.ndarray, one: Bias, **style: Any) -> None:
    look = {"color": one.colour, "markersize": 4, "label": one.label, **style}
    error_bars(axes, x, one.numbers["simulated"], *one.numbers["interval"].values, **look)


def _finish(axes: Axes, part: xr.Dataset) -> None:
    """The vertical axis, the legend, and the model in the title if there is one only."""
    axes.set_ylabel("fraction of runs at the strong word")
    beside = {"loc": "center left", "bbox_to_anchor": (1, 0.5)} if part.sizes["pair"] > MANY else {}
    axes.legend(title="strong over weak word, κ", alignment="left", **beside)
    models = {model_name(name) for name in part["model"].values.tolist()}
    if len(models) == 1 and not axes.get_title():
        axes.set_title(models.pop())


@draws("critical_size_from_simulation", "size", "pair: n_predicted n_critical n_below; pair word: word_label", by=())
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
    drawn, height = known | open_ended, np.where(known, found, below)
    for k, name in enumerate(", ".join(map(str, words)) for words in part["word_label"].values):
        if drawn[k]:
            look = {"textcoords": "offset points", "fontsize": "x-small", "rotation": 45}
            axes.annotate(name, (predicted[k], height[k]), xytext=(2, 4), **look)
        else:
            note(axes, f"not drawn: {{{name}}}")
    if drawn.any():
        sizes = np.concatenate([predicted[drawn], height[drawn]])
        ends = (sizes.min() / 1.5, sizes.max() * 1.5)
        axes.plot(ends, ends, color="0.5", linewidth=1, linestyle="--", label="equal", zorder=1)
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        plain_log(axes.xaxis)
        plain_log(axes.yaxis)
    axes.set(xlabel="critical size by the group-size law", ylabel="critical size of simulated groups")


# Marker and colour of each type
TYPES = {
    "amplified": ("^", PALETTE[0]),
    "induced": ("D", PALETTE[2]),
    "reversed": ("v", PALETTE[5]),
    "none": ("o", NEUTRAL),
}
MOST_NAMED = 15


@draws(
    "misalignment",
    "bias",
    "pair: type individual collective strong_word model; bound=low,high pair: interval; pair word: word_label",
    by=("n_agents",),
)
def bias(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Collective against individual bias towards the strong word, by type of misalignment; equal on the diagonal."""
    axes.axline((0, 0), slope=1, color="0.6", linestyle="--", linewidth=1, zorder=1)
    for half in (axes.axhline, axes.axvline):
        half(0.5, color="0.85", linewidth=1, zorder=0.5)
    x, y, kind, ends = (part[name].values for name in ("individual", "collective", "type", "interval"))
    for name, (marker, colour) in TYPES.items():
        here = kind == name
        if here.any():
            look = {"fmt": marker, "color": colour, "label": name, **style}
            error_bars(axes, x[here], y[here], *ends[:, here], **look)
    drawn = np.isin(kind, list(TYPES))
    if drawn.sum() <= MOST_NAMED:
        rising = np.flatnonzero(drawn)[np.argsort(y[drawn], kind="stable")]
        for place, k in enumerate(rising.tolist()):  # the words stand on alternate sides
            shift, side = (-5, "right") if place % 2 else (5, "left")
            look = {"ha": side, "va": "center", "fontsize": "small", "textcoords": "offset points"}
            axes.annotate(str(part["strong_word"].values[k]), (x[k], y[k]), xytext=(shift, 0), **look)
    for k in np.flatnonzero(~drawn):
        note(axes, f"no consensus: {_names(part)[k]}")
    axes.set(xlim=_limits(x[drawn]), ylim=_limits(ends[:, drawn]))
    axes.set(xlabel="individual bias, P(strong word)", ylabel="collective bias")


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Limits around the values and 1/2, with room for words."""
    low, high = min(0.5, values.min(initial=0.5)), max(0.5, values.max(initial=0.5))
    room = max(0.2 * (high - low), 0.05)
    return low - room, high + room


def _names(part: xr.Dataset) -> list[str]:
    """The words of each policy, with its model where there are several."""
    names = [in_braces(map(str, words)) for words in part["word_label"].values]
    models = [model_name(model) for model in part["model"].values]
    return names if len(set(models)) == 1 else [f"{a} {b}" for a, b in zip(models, names, strict=True)]


@draws("neutrality", "distance", "pair: distance neutral model; pair word: word_label", by=())
def distance(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The distance of agents with an empty memory from a random choice, open where they count as neutral."""
    value, neutral = part["distance"].values, part["neutral"].values
    look = {"color": PALETTE[0], "marker": "o", "linestyle": "none", "clip_on": False}
    for which, label, face in ((~neutral, "not neutral", {}), (neutral, "neutral", {"markerfacecolor": "white"})):
        if which.any():
            axes.plot(value[which], np.flatnonzero(which), **{**look, "label": label, **style, **face})
    limit = float(part.attrs["option_largest_neutral_distance"])
    axes.axvline(limit, color="0.4", linestyle="--", linewidth=1, label=f"neutral below {limit:g}")
    name_rows(axes, _names(part), xlabel="Jensen-Shannon distance from a random choice")
    axes.set_xlim(left=0)
