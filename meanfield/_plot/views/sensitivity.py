"""Sensitivities: the memories on which a collective quantity hangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from meanfield._plot.registry import draws
from meanfield._plot.words import cut_words, word_colours, words_in
from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import whole_number
from meanfield.toolbox._errors import InputError

BARS = 12
FEWEST_ROWS = 4
IN_A_LINE = 3  # interactions of a memory
LETTERS = 42  # of words in a line
QUANTITIES = {
    "kappa": "κ",
    "eigenvalue": "leading eigenvalue",
    "word_share": "share of {first}",
    "critical_mass": "critical mass",
}
LOWERS, _, RAISES = mpl.colormaps["RdBu"]([0.1, 0.5, 0.9])


@draws("sensitivity", "derivative", "state ...: derivative; word: word", by=("model", "pair", "component"))
def derivative(axes: Axes, part: xr.Dataset, colours: dict[str, str], *, number: int = BARS, **style: Any) -> None:
    """The derivatives of largest size with respect to P(first word), of three words or more of each, by memory."""
    said = _bars(axes, part, "derivative", number, colours, **style)
    of = str(part.attrs["of"])
    axes.set_xlabel(f"d {QUANTITIES.get(of, of).format(first=words_in(part)[0])} / d P({said})")


@draws("sensitivity", "contribution", "state: contribution?; word: word")
def contribution(axes: Axes, part: xr.Dataset, colours: dict[str, str], *, number: int = BARS, **style: Any) -> None:
    """The largest parts of κ, by memory: how far the words are treated unlike there, times the derivative."""
    if "contribution" not in part:
        raise InputError(f"result is the sensitivity of {part.attrs['of']}: expected of = 'kappa' for contributions")
    _bars(axes, part, "contribution", number, colours, **style)
    axes.set_xlabel(f"contribution to κ = {part.attrs['value']:.3g}")


@draws("design", "change", "state ...: change; word: word")
def change(axes: Axes, part: xr.Dataset, colours: dict[str, str], *, number: int = BARS, **style: Any) -> None:
    """The largest changes of P(first word), by memory: above 0 it is said more often than before.

    Of three words or more the change of each is drawn, in its colour.
    """
    axes.set_xlabel(f"change of P({_bars(axes, part, 'change', number, colours, **style)})")


@draws("reaction_sensitivity", "derivative", "move: source target side channel; move ...: derivative", by=())
def rates(axes: Axes, part: xr.Dataset, colours: dict[str, str], *, number: int = BARS, **style: Any) -> None:
    """The moves whose rates count most, with derivatives in the logarithm of each; of a composition, by state."""
    values = part["derivative"].values.reshape(part.sizes["move"], -1)
    shown = np.argsort(-np.abs(values).max(1), kind="stable")[: whole_number("number", number, 1)]
    named = [str(state) for state in part["state"].values] if "state" in part["derivative"].dims else []
    _grouped(axes, values[shown], named, word_colours([named]), **style)
    columns = (part[name].values[shown] for name in ("source", "target", "side", "channel"))
    moves = [
        f"{a} → {b}\n{side}" + (f", channel {c}" if c >= 0 else "") for a, b, side, c in zip(*columns, strict=True)
    ]
    axes.set_yticks(range(len(shown)), moves)
    axes.invert_yaxis()
    of = "leading eigenvalue" if part.attrs["of"] == "eigenvalue" else "fraction of agents"
    axes.set_xlabel(f"d {of} / d log rate")


def _grouped(axes: Axes, values: np.ndarray, named: Sequence[str], colours: dict[str, str], **style: Any) -> None:
    """Horizontal bars (row, name), in a row side by side; without names blue above zero and red below."""
    height = 0.8 / values.shape[1]
    for k, bars in enumerate(values.T):
        name = named[k] if named else None
        look = {"color": colours[name] if name else [RAISES if value > 0 else LOWERS for value in bars], **style}
        place = np.arange(len(bars)) + (k - (values.shape[1] - 1) / 2) * height
        axes.barh(place, bars, height, label=name, **look)
    axes.axvline(0, color="0.3", linewidth=0.8)


def _bars(axes: Axes, part: xr.Dataset, column: str, number: int, colours: dict[str, str], **style: Any) -> str:
    """Horizontal bars of the largest values, the first on top; of each word in its colour where they have words.

    Returns the word that the values are about.
    """
    words, of_words = words_in(part), "word" in part[column].dims
    values = part[column].values.reshape(part.sizes["state"], -1)
    axes.locator_params(axis="x", nbins=5)  # signed numbers of two digits are wide
    sizes = np.abs(values).max(1)
    ranked = np.argsort(-sizes, kind="stable")
    shown = ranked[: max(1, min(whole_number("number", number, 1), np.count_nonzero(sizes)))]
    _grouped(axes, values[shown], words if of_words else (), colours, **style)
    axes.set_yticks(range(len(shown)), [_memory(part, state) for state in shown.tolist()], fontsize="small")
    axes.set_ylim(max(len(shown), FEWEST_ROWS) + 0.3, -0.6)  # a row is left for the remark below
    axes.set_ylabel("memory, oldest first")
    others = sizes[ranked[len(shown) :]]
    if len(others):
        largest = np.nan_to_num(others).max()
        text = f"{len(others)} others " + (f"at most {largest:.2g}" if largest else "are 0")
        axes.text(0.98, 0.02, text, transform=axes.transAxes, ha="right", va="bottom")
    return "word" if of_words else words[0]


def _memory(part: xr.Dataset, state: int) -> str:
    words = words_in(part)
    space = MemorySpace.from_sizes(part.sizes["state"], len(words))
    memory, words = space.memory(state), cut_words(words, LETTERS // (2 * min(space.memory_length, IN_A_LINE)))
    pairs = [f"{words[own]}/{words[partner]}" for own, partner in memory]
    lines = [", ".join(pairs[k : k + IN_A_LINE]) for k in range(0, len(pairs), IN_A_LINE)]
    return ",\n".join(lines) or "empty"
