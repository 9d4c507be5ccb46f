"""Policies: what agents say in each memory, the flow that follows from it, and records of how they were measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter
from scipy.special import betaincinv, expit
from scipy.stats import binom

from meanfield._plot.curves import note, words_drawn
from meanfield._plot.intervals import error_bars
from meanfield._plot.registry import draws
from meanfield._plot.scales import show_shares, whole_ticks
from meanfield._plot.views.fixed_points import draw_points, triangle
from meanfield._plot.words import NEUTRAL, PALETTE, tinted, words_in
from meanfield._population.population import as_population
from meanfield._population.single_policy import space_of
from meanfield.core._space import MemorySpace
from meanfield.toolbox._errors import InputError

MOST_CELLS = 2**22  # of the heat map, rows times memories of full length
MOST_LABELS = 9  # along the memories
LETTER = 0.8  # of the font's size: it is less, but layouts make axes narrower
LOGITS = np.linspace(-9.0, 9.0, 400)
EXTRACT, MEASURE = "policy_extraction.extract", "policy_extraction.measure"
EMPIRICAL = {"observed": "validation.populations.empirical_policy"}
LEVELS = np.linspace(0, 1, 101)
LEVEL = 0.95
FEW_DECADES = 4


@draws("policy", "memories", "state word!: q")
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
    q = _tree(part["q"].values, space)
    extent = (0.0, 1.0, space.memory_length + 0.5, -0.5)
    look = {"aspect": "auto", "extent": extent, "interpolation": "nearest", **style}
    if len(words) == 2:
        scale = LinearSegmentedColormap.from_list("words", [colours[words[1]], "white", colours[words[0]]])
        image = axes.imshow(q[..., 0], **{"cmap": scale, "vmin": 0, "vmax": 1, **look})
        axes.figure.colorbar(image, cax=axes.inset_axes((1.03, 0, 0.04, 1)), label=f"P({words[0]})")
    else:
        axes.imshow(tinted(q, [colours[word] for word in words]), **look)
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


def _label_tree(axes: Axes, words: tuple[str, ...], space: MemorySpace) -> None:
    """Names of the newest interactions, slanted where they have no room side by side."""
    pairs = [f"{own}/\n{partner}" for own in words for partner in words]
    places = (np.arange(len(pairs)) + 0.5) / len(pairs)
    named = len(pairs) <= MOST_LABELS
    axes.set_xticks(places if named else [], pairs if named else [], fontsize="small")
    if named:
        letter = LETTER * float(axes.get_xticklabels()[0].get_fontsize()) * axes.figure.dpi / 72
        if len(pairs) * (max(map(len, words)) + 1) * letter >= axes.get_window_extent().width:
            slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"}
            axes.set_xticks(places, [pair.replace("\n", "") for pair in pairs], fontsize="small", **slant)
    axes.set_yticks(range(space.memory_length + 1))
    axes.set(xlabel="newest interaction (own/partner's),\nolder ones within", ylabel="memory length")


@draws("policy", "flow", "state word!: q")
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
        label = None if len(found) == 1 else f"closed class {number}"
        axes.plot(Q[:, 0], (response(Q) - Q)[:, 0], **{"color": f"C{number}", "label": label, **style})
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    points = fixed_points(part)
    share = points["word_share"].isel(word=0).values
    draw_points(axes, share, np.zeros_like(share), points["stability"].values)
    axes.set(xlim=(-0.03, 1.03), xlabel=f"Q, share of {words[0]} heard", ylabel="F(Q) - Q, said less heard")


@draws("policy", "posterior", "state: observed; state word!: q alpha", needs=EMPIRICAL)
def posterior(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Choice probabilities by the number of choices seen in a state, with posterior 95 % intervals."""
    seen = part["observed"].values
    for number, word in enumerate(words_drawn(part)):
        alpha = part["alpha"].isel(word=number).values
        others = part["alpha"].sum("word").values - alpha
        ends = (betaincinv(alpha, others, p) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
        look = {"color": colours[word], "label": word, "markersize": 3, "linewidth": 0.8, **style}
        error_bars(axes, seen, part["q"].isel(word=number), *ends, **look)
    axes.set_xscale("symlog", linthresh=1)
    decades = np.arange(1 + np.log10(max(1, seen.max())))
    ticks = [0, *10 ** decades[:: 1 if len(decades) < FEW_DECADES else 2]]
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlim(left=-0.5)
    show_shares(axes, f"q with {100 * LEVEL:g} % interval", xlabel="choices seen in the state")


@draws(
    "record policy",
    "captured_mass",
    "order: order_label; order state!: captured_mass",
    needs={"captured_mass": EXTRACT},
)
def captured_mass(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The probability of all words together in each memory state, for each order of the words in the prompt."""
    for k, label in enumerate(part["order_label"].values):
        look = {"color": PALETTE[k % len(PALETTE)], "marker": ".", "linestyle": "none", "label": str(label), **style}
        axes.plot(part["state"], part["captured_mass"].isel(order=k), **look)
    whole_ticks(axes.xaxis)
    show_shares(axes, "captured mass, T = 1", xlabel="memory state")


@draws(
    "record policy",
    "log_probability",
    "order state! word!+: log_probability censored",
    needs={"log_probability": EXTRACT},
)
def log_probability(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """The log-probability of each word in each memory state, orders averaged; open where only bounded from above."""
    for number, word in enumerate(words_in(part)):
        one = part.isel(word=number)
        value, bounded = one["log_probability"].mean("order").values, one["censored"].any("order").values
        for chosen, fill in ((~bounded, "full"), (bounded, "none")):
            label = {"label": word} if fill == "full" or bounded.all() else {}
            look = {"color": colours[word], "marker": "o", "markersize": 4, "linestyle": "none", "fillstyle": fill}
            axes.plot(part["state"].values[chosen], value[chosen], **{**look, **label, **style})
    whole_ticks(axes.xaxis)
    axes.set(xlabel="memory state", ylabel="log-probability, T = 1 (nat)")


@draws("policy", "calibration", "prediction*: held_out_level", needs={"held_out_level": MEASURE})
def calibration(axes: Axes, part: xr.Dataset, colours: dict[str, str], **style: Any) -> None:
    """Memories that were predicted before they were asked: the part inside intervals of each level."""
    axes.plot([0, 1], [0, 1], color=NEUTRAL, linewidth=0.8)
    levels = np.sort(part["held_out_level"].values)
    if len(levels):
        look = {"color": PALETTE[0], "label": f"{len(levels)} predictions", **style}
        axes.plot(LEVELS, np.searchsorted(levels, LEVELS, side="right") / len(levels), **look)
        low, high = (binom.ppf(q, len(levels), LEVELS) / len(levels) for q in (0.025, 0.975))
        axes.fill_between(LEVELS, low, high, color=NEUTRAL, alpha=0.2, linewidth=0, label="95 % of right models")
    else:
        note(axes, "no predictions")
    axes.set_xlim(0, 1)
    show_shares(axes, "part of the answers inside", xlabel="level of the interval")
