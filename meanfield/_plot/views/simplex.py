"""The simplex of three word shares as a triangle: its frame, the flow of the reduced map, and basins of attraction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from meanfield._population.population import Population, as_population
from meanfield.toolbox._errors import InputError

if TYPE_CHECKING:
    from meanfield._fixed_points.response import Response

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
ARROWS = 14  # along a side
CELLS = 20  # along a side; each is one solution of the rate equation
ARROW_LENGTH = 0.85 / ARROWS
SHADE = 0.3  # of an attractor's colour, the rest is white
LATEST = 2000.0  # the longest that the rate equation is solved by default; what is steady before stays
REACHED = 1e-3  # Σ|Q - Q*| / 2 within which a solution ends at a fixed point
NOWHERE = -1


def in_plane(Q: Float[np.ndarray, "points words"]) -> Float[np.ndarray, "points two"]:
    """Word shares as points of the triangle."""
    return Q @ CORNERS


def frame(axes: Axes, words: tuple[str, ...], colours: dict[str, str]) -> None:
    """The triangle, with a word at each corner, where all say it, and lines of equal share at 1/4, 1/2 and 3/4."""
    axes.plot(*np.append(CORNERS, CORNERS[:1], axis=0).T, color="0.3", linewidth=1)
    for share in (0.25, 0.5, 0.75):
        for word in range(3):
            ends = np.insert((1 - share) * np.eye(2), word, share, axis=1)
            axes.plot(*in_plane(ends).T, color="0.85", linewidth=0.6, zorder=0.5)
    for word, corner, below in zip(words, CORNERS, (True, True, False), strict=True):
        axes.annotate(
            word, corner, xytext=(0, -5 if below else 5), textcoords="offset points",
            ha="center", va="top" if below else "bottom", color=colours[word],
        )  # fmt: skip
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.1)
    axes.axis("off")


def one_response(policy: xr.Dataset | Population, words: tuple[str, ...]) -> Response:
    """The response of a policy over these words; InputError if several closed classes of memories have one each."""
    from meanfield._fixed_points.response import responses  # with numba, which takes half a second

    population = as_population(policy)
    if population.words != words:
        raise InputError(f"policy is over {', '.join(population.words)}: expected {', '.join(words)}, as the result")
    found = responses(population.mixture)
    if len(found) > 1:
        raise InputError(
            f"policy has {len(found)} closed classes of memories, each with a flow of its own: "
            "expected one class, or a drawing without policy"
        )
    return found[0]


def draw_flow(axes: Axes, response: Response) -> None:
    """Arrows along F(Q) - Q, the change of the word share; their lengths are its fourth root.

    Plain lengths would hide the flow near fixed points, where it is slow.
    """
    Q = _lattice(ARROWS)
    change = in_plane(response(Q) - Q)
    speed = np.maximum(np.hypot(*change.T), np.finfo(float).tiny)[:, None]
    arrows = change / speed * (speed / speed.max()) ** 0.25 * ARROW_LENGTH
    axes.quiver(
        *(in_plane(Q) - arrows / 2).T, *arrows.T,
        angles="xy", scale_units="xy", scale=1, width=0.005, headwidth=4, color="0.35", zorder=1.5,
    )  # fmt: skip


def _lattice(n: int) -> Float[np.ndarray, "points words"]:
    """Word shares inside the triangle at equal distances."""
    a, b = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    inside = a + b < n
    first, second = (a[inside] + 1 / 3) / n, (b[inside] + 1 / 3) / n
    return np.stack([first, second, 1 - first - second], axis=-1)


def shade_basins(
    axes: Axes,
    policy: xr.Dataset | Population,
    response: Response,
    attractors: Float[np.ndarray, "attractors words"],
    colours: list[str],
) -> None:
    """Shade each word share Q by the attractor that agents reach whose partners have said words with shares Q so far.

    An attractor has the colours of its words, mixed by their shares.
    """
    vertices, cells = _cells(CELLS)
    number = reached(policy, response, vertices[cells].mean(1), attractors)
    mixed = attractors @ np.array([to_rgb(colour) for colour in colours])
    shade = np.vstack([1 - SHADE * (1 - mixed), np.ones(3)])
    corners = in_plane(vertices)[cells]
    axes.add_collection(PolyCollection(list(corners), facecolors=shade[number], edgecolors="face", zorder=0.2))
    if (number == NOWHERE).any():
        axes.plot([], [], "s", color="white", markeredgecolor="0.6", label="reaches none of these")


def _cells(n: int) -> tuple[Float[np.ndarray, "vertices words"], Int[np.ndarray, "cells three"]]:
    """The triangle in n² equal ones: word shares of their vertices, and the numbers of the vertices of each."""
    places = {(a, b): None for a in range(n + 1) for b in range(n + 1 - a)}
    number = {place: k for k, place in enumerate(places)}
    upright = [((a, b), (a + 1, b), (a, b + 1)) for a, b in places if a + b < n]
    inverted = [((a + 1, b), (a + 1, b + 1), (a, b + 1)) for a, b in places if a + b < n - 1]
    first, second = np.array(list(places)).T / n
    cells = np.array([[number[place] for place in cell] for cell in (*upright, *inverted)])
    return np.stack([first, second, 1 - first - second], axis=-1), cells


def reached(
    policy: xr.Dataset | Population, response: Response, Q: np.ndarray, attractors: np.ndarray
) -> Int[np.ndarray, " starts"]:
    """The number of the attractor reached from each stationary composition p(Q); -1 if it is none of them."""
    from meanfield._dynamics.solve import solve

    starts = xr.DataArray(np.stack([response.composition(one) for one in Q]), dims=("start", "component", "state"))
    starts = starts if isinstance(policy, Population) else starts.isel(component=0)
    ends = solve(policy, initial=starts, times=[0.0, LATEST])["word_share"].isel(time=-1)
    distance = np.abs(ends.transpose("start", "word").values[:, None] - attractors).sum(-1) / 2
    nearest = distance.argmin(1)
    return np.where(distance[np.arange(len(Q)), nearest] < REACHED, nearest, NOWHERE)
