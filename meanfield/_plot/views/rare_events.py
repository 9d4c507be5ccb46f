"""Rare events: how long conventions live, and probabilities that were found by splitting."""

from __future__ import annotations

import textwrap
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.curves import note
from meanfield._plot.intervals import name_rows
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_sizes, size_label, whole_ticks
from meanfield._plot.words import NEUTRAL

EDGE = 0.1  # decades
LONGEST = 1e15  # lifetime that is drawn; beyond, the barrier in the legend tells enough
WIDTH = 36  # letters of a line in a legend, or beside a row
PLACES = "fixed_point word: word_share?; word: word?; fixed_point ...: composition?"
WIDE = 5  # ratio of probabilities, from which their axis is logarithmic


def _told(*lines: str) -> str:
    return "\n".join(textwrap.fill(line, WIDTH) for line in lines if line)


@draws(
    "lifetime",
    "size",
    "fixed_point n_agents!: lifetime; fixed_point: barrier reason; "
    "fixed_point word: word_share?; word: word?; fixed_point state ...: composition?",
)
def lifetime_by_size(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The mean lifetime of each attractor, up to 1e15, and its barrier: against N, or a row for each of a single N."""
    sizes, lifetimes = part["n_agents"].values, part["lifetime"].values
    named = [_named(part.isel(fixed_point=number)) for number in range(len(lifetimes))]
    units = part["lifetime"].attrs.get("units", "1")
    label = "mean lifetime" if units == "1" else f"mean lifetime ({units})"
    seen = lifetimes <= LONGEST
    shown = sizes[seen.any(0)]
    for number, (name, word) in enumerate(named):
        drawn, look = lifetimes[number, seen[number]], {"color": colours.get(word, f"C{number}"), **style}
        if len(shown) == 1:
            axes.plot(drawn, np.full(len(drawn), number), **{"marker": "o", **look})
        else:
            axes.plot(sizes[seen[number]], drawn, **{"marker": ".", "label": name, **look})
    if len(shown) == 1:
        axes.set_xscale("log")
        low, high = np.log10(axes.dataLim.intervalx)
        limits = (10 ** np.floor(low - EDGE), 10 ** np.ceil(high + EDGE))
        name_rows(axes, [name for name, _ in named], xlim=limits, xlabel=f"{label}, {size_label(shown[0])}")
        return
    axes.set(yscale="log", xlabel="number of agents N", ylabel=label)
    whole_ticks(axes.xaxis)


def _named(attractor: xr.Dataset) -> tuple[str, str]:
    """An attractor with its barrier, and why its lifetimes are not drawn; and the word that most say there."""
    place, word = _place(attractor)
    sizes, lifetimes = attractor["n_agents"].values, attractor["lifetime"].values
    barrier, why = attractor["barrier"].item(), str(attractor["reason"].item())
    beyond, kept = lifetimes > LONGEST, np.isinf(barrier)
    known = "never left" if kept else "barrier unknown" if np.isnan(barrier) else f"barrier {barrier:.3g}"
    longer = f"beyond {LONGEST:g} from N = {sizes[beyond].min():,} on" if beyond.any() and not kept else ""
    hidden = f"not drawn{f': {why}' if why else ''}" if kept or np.isnan(lifetimes).any() else ""
    return _told(f"{place}, {known}", longer, hidden), word


def _place(attractor: xr.Dataset) -> tuple[str, str]:
    """Where the attractor is, in a few words, and the word that most say there."""
    if "word_share" not in attractor:
        state = str(attractor["state"].values[attractor["composition"].argmax("state").item()])
        return f"most in {state}", ""
    share = attractor["word_share"]
    if share.isnull().all():
        return f"attractor {attractor['fixed_point'].item()}", ""
    most = share.argmax("word").item()
    word = str(share["word"].values[most])
    return f"{word} {share.values[most]:.3g}", word


@draws("transition_rates", "stationary", f"fixed_point n_agents!: stationary; {PLACES}")
def stationary(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The fraction of time that N agents spend at each attractor in the long run, against N."""
    for number in range(part.sizes["fixed_point"]):
        place, word = _place(part.isel(fixed_point=number))
        look = {"marker": ".", "color": colours.get(word, f"C{number}"), "label": place, **style}
        axes.plot(part["n_agents"], part["stationary"].isel(fixed_point=number), **look)
    if why := part.attrs.get("reason"):
        note(axes, _told(str(why)))
    show_sizes(axes, part["n_agents"].values, "fraction of time at the attractor")


@draws(
    "transition_rates",
    "rates",
    f"fixed_point next_fixed_point n_agents!: log_rate; fixed_point next_fixed_point: reason; {PLACES}",
)
def rates(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The rate at which N agents go from each attractor to each other one, down to 1e-15, against N."""
    attractors, ends = part["fixed_point"].values.tolist(), part["next_fixed_point"].values.tolist()
    sizes, drawn = part["n_agents"].values, []
    places = {one: _place(part.sel(fixed_point=one)) for one in attractors}
    for start, end in product(attractors, ends):
        if start == end:
            continue
        one = part.sel(fixed_point=start, next_fixed_point=end)
        rates, why, (place, word) = np.exp(one["log_rate"].values), str(one["reason"].item()), places[start]
        seen = rates >= 1 / LONGEST
        rare = np.isfinite(one["log_rate"].values) & ~seen
        other = places[end][0] if end in places else f"attractor {end}"
        smaller = f"below {1 / LONGEST:g} from N = {sizes[rare].min():,} on" if rare.any() else ""
        label = _told(f"{place} to {other}" + (f": {why}" if why else ""), smaller)
        dash = "-" if start < end else "--"  # two that lead to one word differ
        look = {"marker": ".", "color": colours.get(word, f"C{attractors.index(start)}"), "linestyle": dash, **style}
        axes.plot(sizes[seen], rates[seen], **{"label": label, **look})
        drawn += sizes[seen].tolist()
    if attractors == ends[:1]:
        note(axes, "one attractor, and none to go to")
    if drawn:
        axes.set_yscale("log")
    show_sizes(axes, drawn or sizes)
    axes.set_ylabel(f"rate ({part['log_rate'].attrs.get('units', '').removeprefix('log ')})")


@draws("rare_event", "estimates", "replication: estimate; bound=low,high: interval; : probability word")
def estimates(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability in each replication, their mean, and its interval; replications without the event are told."""
    found, probability = part["estimate"].values, part["probability"].item()
    drawn = found > 0
    look = {"linestyle": "none", "marker": "o", "label": "replication", **style}
    axes.plot(np.flatnonzero(drawn) + 1, found[drawn], **look)
    if probability > 0:
        axes.axhline(probability, color=NEUTRAL, label=f"mean {probability:.3g}")
        name = part["interval"].attrs.get("long_name", "interval")
        axes.axhspan(*part["interval"].values, color=NEUTRAL, alpha=0.15, label=name)
        if drawn.any() and found[drawn].max() > WIDE * found[drawn].min():
            axes.set_yscale("log")
    if not drawn.all():
        note(axes, f"{np.count_nonzero(~drawn)} of {len(found)} without the event")
    axes.set(xlabel="replication", ylabel=f"probability to end at {part['word'].item()}")
    axes.legend()
