"""Every crop of every flag of a pool: which of them are the same picture, and how far apart the others are."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from meanfield import InputError
from meanfield.toolbox import whole_number
from theory.flag_game._arguments import two_whole_numbers
from theory.flag_game._pictures.drawing import HEIGHT, PALETTE, SCALE, WIDTH, draw
from theory.flag_game._pictures.flags import Flag

CANVAS, CROP = (WIDTH, HEIGHT), (6, 4)  # width and height, [002] Appendix C
# Names of these sizes in the attrs of results, and their defaults
SIZES = {"canvas_width": CANVAS[0], "canvas_height": CANVAS[1], "crop_width": CROP[0], "crop_height": CROP[1]}


class Layout(NamedTuple):
    """Sizes of a game: canvas and crop (width, height) in cells, and pixels along a side of a cell."""

    canvas: tuple[int, int]
    crop: tuple[int, int]
    scale: int

    @property
    def positions(self) -> np.ndarray:
        """(left, top) of each crop in cells, row by row from the top left; shape (crops, 2)."""
        (width, height), (crop_width, crop_height) = self.canvas, self.crop
        top, left = np.mgrid[: height - crop_height + 1, : width - crop_width + 1]
        return np.stack([left.ravel(), top.ravel()], axis=-1)


class Pictures(NamedTuple):
    """The crops of a pool.

    Attributes
    ----------
    number
        The picture that each crop shows, as a number; shape (countries, crops).
    occurrences
        The number of positions at which a flag shows a picture; shape (pictures, countries).
    cells
        The kind of each cell; shape (pictures, cells of a crop).
    distance
        The share of pixels in which two kinds of cells differ; shape (kinds, kinds).
    """

    number: np.ndarray
    occurrences: np.ndarray
    cells: np.ndarray
    distance: np.ndarray


def check_layout(canvas: tuple[int, int], crop: tuple[int, int], scale: int) -> Layout:
    """The sizes, checked."""
    layout = Layout(
        two_whole_numbers("canvas", canvas), two_whole_numbers("crop", crop), whole_number("scale", scale, 1)
    )
    if layout.crop[0] > layout.canvas[0] or layout.crop[1] > layout.canvas[1]:
        raise InputError(f"crop = {layout.crop}: expected at most the canvas, {layout.canvas} (width, height)")
    return layout


@lru_cache(maxsize=8)
def pictures(flags: tuple[Flag, ...], layout: Layout) -> Pictures:
    """All crops of all flags; read-only, since the cache shares them."""
    kinds, distance = _kinds_of_cells(flags, layout)
    crop_width, crop_height = layout.crop
    windows = np.lib.stride_tricks.sliding_window_view(kinds, (crop_height, crop_width), axis=(1, 2))
    cells, number = np.unique(windows.reshape(-1, crop_height * crop_width), axis=0, return_inverse=True)
    number = number.reshape(len(flags), -1)
    occurrences = np.zeros((len(cells), len(flags)), dtype=int)
    np.add.at(occurrences, (number, np.arange(len(flags))[:, None]), 1)
    found = Pictures(number, occurrences, cells, distance)
    for array in found:
        array.flags.writeable = False
    return found


def _kinds_of_cells(flags: tuple[Flag, ...], layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """The kind of each cell, shape (countries, height, width), and the share of pixels in which two kinds differ.

    Cells with the same pixels are of one kind; at scale 1 the kinds are the colours.
    """
    (width, height), scale = layout.canvas, layout.scale
    numbers: dict[bytes, int] = {}
    kinds = np.empty((len(flags), height * width), dtype=np.int64)
    for i, flag in enumerate(flags):
        pixels = draw(flag, width * scale, height * scale)
        cells = pixels.reshape(height, scale, width, scale).swapaxes(1, 2).reshape(height * width, scale * scale)
        kinds[i] = [numbers.setdefault(cell.tobytes(), len(numbers)) for cell in cells]
    drawn = np.frombuffer(b"".join(numbers), dtype=np.uint8).reshape(len(numbers), scale * scale)
    distance = np.stack([(drawn != one).mean(axis=1) for one in drawn])
    return kinds.reshape(len(flags), height, width), distance


def render_crop(
    flag: Flag,
    left: int,
    top: int,
    *,
    canvas: tuple[int, int] = CANVAS,
    crop: tuple[int, int] = CROP,
    scale: int = SCALE,
) -> np.ndarray:
    """A picture of one crop, as an agent of the game sees it.

    Parameters
    ----------
    flag
        The hidden flag.
    left, top
        Top left corner of the crop, in cells, ≥ 0.
    canvas, crop
        (width, height) in cells.
    scale
        Pixels along a side of a cell.

    Returns
    -------
    Shape (crop height × scale, crop width × scale, 3), uint8.

    Raises
    ------
    InputError
        If the crop does not lie on the canvas, or `draw` refuses an argument.

    See Also
    --------
    render : the whole flag
    png : as a file

    Examples
    --------
    >>> from theory.flag_game import flag_of, render_crop
    >>> picture = render_crop(flag_of("France"), left=6, top=0)
    >>> picture.shape, picture[0, 0].tolist(), picture[0, -1].tolist()
    ((100, 150, 3), [0, 56, 147], [255, 255, 255])
    """
    layout = check_layout(canvas, crop, scale)
    left, top = whole_number("left", left, 0), whole_number("top", top, 0)
    (width, height), (crop_width, crop_height) = layout.canvas, layout.crop
    for name, begin, length, most in (("left", left, crop_width, width), ("top", top, crop_height, height)):
        if begin + length > most:
            raise InputError(f"{name} = {begin}: expected 0 to {most - length}, so that the crop lies on the canvas")
    pixels = draw(flag, width * scale, height * scale)
    rows, columns = slice(top * scale, (top + crop_height) * scale), slice(left * scale, (left + crop_width) * scale)
    return PALETTE[pixels[rows, columns]]
