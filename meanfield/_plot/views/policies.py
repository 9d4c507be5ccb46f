"""Policies: what agents say in each memory, and the flow of the word share that follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patches import Patch
from scipy.special import expit

from meanfield._plot.registry import draws
from meanfield._plot.views.fixed_points import draw_points, triangle
from meanfield._plot.words import words_in
from meanfield._population.population import as_population
from meanfield._population.single_policy import space_of
from meanfield.core._space import MemorySpace
from meanfield.toolbox._errors import InputError

MOST_CELLS = 2**22  # of the heat map, rows times memories of full length
MOST_LABELS = 9  # along the memories
LETTER = 0.8  # of the font's size: it is less, but layouts make axes narrower
LOGITS = np.linspace(-9.0, 9.0, 400)


@draws("policy", view="memories", first=True, reads="state word: q; word: word")
def memories(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Answers in each memory, as a tree: below each memory those that go one interaction further back.

    A cell has the colour of its likeliest word; it is white where all words are equally likely. What agents remember
    longest ago does not matter where a column keeps its colour.
    """
    words, space = words_in(part), space_of(part)
    cells = space.n_full * (space.memory_length + 1)
    if cells > MOST_CELLS:
        raise InputError(
            f"policy has {space.n_states} memories: expected a tree of at most {MOST_CELLS:,} cells, not {cells:,}"
        )
    q = _tree(part["q"].transpose("state", "word").values, space)
    extent = (0.0, 1.0, space.memory_length + 0.5, -0.5)
    look = {"aspect": "auto", "extent": extent, "interpolation": "nearest", **style}
    if len(words) == 2:
        scale = LinearSegmentedColormap.from_list("words", [colours[words[1]], "white", colours[words[0]]])
        image = axes.imshow(q[..., 0], **{"cmap": scale, "vmin": 0, "vmax": 1, **look})
        axes.figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.04, 1)), label=f"P({words[0]})")
    else:
        axes.imshow(_tinted(q, [colours[word] for word in words]), **look)
        handles = [Patch(color=colours[word], label=word) for word in words]
        axes.legend(handles=handles, title="likeliest", loc="center left", bbox_to_anchor=(1, 0.5))
    _label_tree(axes, words, space)


def _tree(q: Float[np.ndarray, "states words"], space: MemorySpace) -> Float[np.ndarray, "lengths memories words"]:
    """A row for each length of memory, newest interaction most significant; cells are repeated to equal numbers."""
    rows = []
    for length in range(space.memory_length + 1):
        row = q[space.offset(length) : space.offset(length + 1)]
        digits = row.reshape(*[space.n_digits] * length, -1)
        newest_first = digits.transpose(*reversed(range(length)), length).reshape(row.shape)
        rows.append(np.repeat(newest_first, space.n_full // len(row), axis=0))
    return np.stack(rows)


def _tinted(q: np.ndarray, colours: list[str]) -> np.ndarray:
    """The colour of the likeliest word, the paler the less it exceeds an even choice."""
    full = np.array([to_rgb(colour) for colour in colours])[q.argmax(-1)]
    strength = (q.max(-1, keepdims=True) - 1 / len(colours)) / (1 - 1 / len(colours))
    return 1 - strength * (1 - full)


def _label_tree(axes: Axes, words: tuple[str, ...], space: MemorySpace) -> None:
    pairs = [f"{own}/\n{partner}" for own in words for partner in words]
    named = len(pairs) <= MOST_LABELS
    places = (np.arange(len(pairs)) + 0.5) / len(pairs)
    axes.set_xticks(places if named else [], pairs if named else [], fontsize="small")
    if named and not _fit(axes, max(map(len, words)) + 1, len(pairs)):
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(places, [pair.replace("\n", "") for pair in pairs], fontsize="small", **slant)
    axes.set_xlabel("newest interaction (own/partner's),\nolder ones within")
    axes.set_yticks(range(space.memory_length + 1))
    axes.set_ylabel("memory length")


def _fit(axes: Axes, letters: int, labels: int) -> bool:
    """Whether so many labels of that length find room side by side below the axes."""
    letter = LETTER * float(axes.get_xticklabels()[0].get_fontsize()) * axes.figure.dpi / 72
    return bool(labels * letters * letter < axes.get_window_extent().width)


@draws("policy", view="flow", reads="state word: q; word: word")
def flow(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The change of the word share if agents are stationary: where it leads, and the fixed points where it vanishes."""
    from meanfield._fixed_points.fixed_points import fixed_points  # with numba, which takes half a second
    from meanfield._fixed_points.response import responses

    words = words_in(part)
    if len(words) == 3:
        triangle(axes, fixed_points(part), colours, policy=part, **style)
        return
    if len(words) != 2:
        raise InputError(f"policy has {len(words)} words: expected 2 or 3 for view = 'flow'")
    Q = np.array([expit(LOGITS), expit(-LOGITS)]).T
    found = responses(as_population(part).mixture)
    for number, response in enumerate(found):
        name = {} if len(found) == 1 else {"label": f"closed class {number}"}
        axes.plot(Q[:, 0], (response(Q) - Q)[:, 0], **{"color": f"C{number}", **name, **style})
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    points = fixed_points(part)
    share = points["word_share"].isel(word=0).values
    draw_points(axes, share, np.zeros_like(share), points["stability"].values)
    axes.set_xlim(-0.03, 1.03)
    axes.set_xlabel(f"Q, share of {words[0]} heard")
    axes.set_ylabel("F(Q) - Q, said less heard")
