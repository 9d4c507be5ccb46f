"""Flags as arrays of colour numbers, and as pictures."""

from __future__ import annotations

import struct
import zlib
from fractions import Fraction

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import check_memory, instance, whole_number
from theory.flag_game._pictures.flags import COLOURS, Flag

WIDTH, HEIGHT = CANVAS = 24, 16  # [002] Appendix C
CROP = (6, 4)  # likewise
# Names of these sizes in the attrs of results, and their defaults
SIZES = {"canvas_width": WIDTH, "canvas_height": HEIGHT, "crop_width": CROP[0], "crop_height": CROP[1]}
SCALE = 25
SMALL_SCALE = 6  # three stripes on 16 rows of cells are whole numbers of pixels
NUMBERS = {colour: number for number, colour in enumerate(COLOURS)}
PALETTE = np.array(list(COLOURS.values()), dtype=np.uint8)


def draw(flag: Flag, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """The flag as an array of colour numbers: a cell has the colour of the point at its centre.

    With n stripes over L cells, cell i belongs to stripe ⌊(2i + 1) n / 2L⌋: if L is not a multiple of n, widths differ
    by one cell, and three stripes are symmetric (5, 6, 5 on 16 rows). A centre on a border belongs to the later stripe;
    a centre in the triangle or on its edge belongs to the triangle.

    Parameters
    ----------
    flag, width, height
        A `Flag`, and numbers of cells, ≥ 1.

    Returns
    -------
    Shape (height, width), uint8; the number of a colour is its place in `COLOURS`.

    Raises
    ------
    InputError
        If an argument is of another type, or there are fewer cells than stripes.

    See Also
    --------
    render : as a picture

    Examples
    --------
    >>> from theory.flag_game import draw, flag_of
    >>> draw(flag_of("France"), 6, 2)
    array([[1, 1, 3, 3, 0, 0],
           [1, 1, 3, 3, 0, 0]], dtype=uint8)
    """
    instance("flag", flag, Flag)
    width, height = whole_number("width", width, 1), whole_number("height", height, 1)
    check_memory(10 * width * height, f"width = {width}, height = {height}", "a smaller picture")
    across = flag.orientation == "horizontal"
    along, n = height if across else width, len(flag.stripes)
    if along < n:
        raise InputError(f"{flag.country}: {n} {flag.orientation} stripes on {along} cells: expected at least {n}")
    stripe = (2 * np.arange(along) + 1) * n // (2 * along)
    colours = np.array([NUMBERS[colour] for colour in flag.stripes], dtype=np.uint8)[stripe]
    canvas = np.broadcast_to(colours[:, None] if across else colours, (height, width)).copy()
    if flag.triangle is not None:
        # x ≤ depth (1 - |2y - 1|) in whole numbers, with the centre (x, y) of a cell in shares of width and height
        depth = Fraction(flag.triangle_depth)
        x = (2 * np.arange(width) + 1) * height * depth.denominator
        edge = 2 * width * depth.numerator * (height - np.abs(2 * np.arange(height) + 1 - height))
        canvas[x <= edge[:, None]] = NUMBERS[flag.triangle]
    return canvas


def render(flag: Flag, scale: int = SCALE, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    """A picture of the flag, drawn pixel by pixel, so that borders between stripes may lie within a row of cells.

    The published probe of Yemen's flag was drawn in this way. Crops that look the same in this drawing got the same
    answers (χ² = 61 on 60 degrees of freedom); crops that look the same in `draw` did not (803 on 62).

    Parameters
    ----------
    flag, scale
        A `Flag`, and pixels along a side of a cell, ≥ 1; 25 in [002] Appendix C.
    width, height
        Size of the canvas in cells.

    Returns
    -------
    Shape (height × scale, width × scale, 3), uint8: red, green and blue.

    Raises
    ------
    InputError
        If `draw` refuses an argument.

    See Also
    --------
    render_crop : one crop
    png : as a file

    Examples
    --------
    >>> from theory.flag_game import flag_of, render
    >>> render(flag_of("France"), scale=2).shape
    (32, 48, 3)
    """
    scale = whole_number("scale", scale, 1)
    width, height = whole_number("width", width, 1), whole_number("height", height, 1)
    return PALETTE[draw(flag, width * scale, height * scale)]


def check_layout(canvas: object, crop: object, scale: object) -> tuple[tuple[int, int], tuple[int, int], int]:
    """(canvas, crop, scale): (width, height) of each in cells, and pixels along a side of a cell; else InputError."""
    sizes = []
    for name, size in (("canvas", canvas), ("crop", crop)):
        if not isinstance(size, (tuple, list)) or len(size) != 2:
            raise InputError(f"{name} = {size!r}: expected (width, height)")
        sides = zip(("width", "height"), size, strict=True)
        sizes.append(tuple(whole_number(f"{side} of {name}", cells, 1) for side, cells in sides))
    (width, height), (crop_width, crop_height) = sizes
    if crop_width > width or crop_height > height:
        raise InputError(f"crop = {sizes[1]}: expected at most the canvas, {sizes[0]} (width, height)")
    return *sizes, whole_number("scale", scale, 1)


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
    flag, left, top
        The hidden flag, and the top left corner of the crop, in cells, ≥ 0.
    canvas, crop, scale
        (width, height) in cells, and pixels along a side of a cell.

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
    (width, height), (crop_width, crop_height), scale = check_layout(canvas, crop, scale)
    left, top = whole_number("left", left, 0), whole_number("top", top, 0)
    for name, begin, most in (("left", left, width - crop_width), ("top", top, height - crop_height)):
        if begin > most:
            raise InputError(f"{name} = {begin}: expected 0 to {most}, so that the crop lies on the canvas")
    pixels = draw(flag, width * scale, height * scale)
    rows, columns = slice(top * scale, (top + crop_height) * scale), slice(left * scale, (left + crop_width) * scale)
    return PALETTE[pixels[rows, columns]]


def small_picture(flag: Flag, width: int, height: int) -> xr.DataArray:
    """The flag as a variable (row, column, channel) of results about its crops; a drawing of them shows it."""
    pixels = render(flag, SMALL_SCALE, width, height)
    attrs = {"long_name": f"flag of {flag.country}: red, green and blue from 0 to 255", "units": "1"}
    return xr.DataArray(pixels, dims=("row", "column", "channel"), name="flag", attrs=attrs)


def png(picture: np.ndarray) -> bytes:
    """A picture as the bytes of a PNG file, the form in which a language model sees a crop.

    Parameters
    ----------
    picture
        Shape (rows, columns, 3), uint8, from `render` or `render_crop`.

    Raises
    ------
    InputError
        If the picture has another type or shape.

    See Also
    --------
    render, render_crop : the pictures

    Examples
    --------
    >>> from theory.flag_game import flag_of, png, render_crop
    >>> file = png(render_crop(flag_of("France"), 0, 0))
    >>> file[1:4]
    b'PNG'
    """
    picture = np.asarray(picture)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or 0 in picture.shape:
        raise InputError(f"picture has {picture.dtype} {picture.shape}: expected uint8 of shape (rows, columns, 3)")
    rows, columns, _ = picture.shape
    # Each row begins with the number of its filter: 0, none
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), picture.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)  # 8 bits, red, green, blue
    file = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")):
        file += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return file
