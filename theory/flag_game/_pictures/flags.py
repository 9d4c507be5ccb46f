"""The flags of the game, and `Flag` for a pool of your own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from meanfield import InputError
from meanfield.datasets import flag_game
from meanfield.toolbox import shown

# A colour's number is its place here. The shades are of our choice: the papers name colours only.
COLOURS = {
    "red": (206, 32, 41),
    "blue": (0, 56, 147),
    "orange": (255, 130, 0),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
    "yellow": (252, 209, 22),
    "green": (0, 122, 61),
    "light_blue": (0, 161, 222),
}
ORIENTATIONS = ("horizontal", "vertical")


@dataclass(frozen=True)
class Flag:
    """A flag of equal stripes, with or without a triangle at the hoist.

    Attributes
    ----------
    country
        Its name, the label that agents guess.
    orientation
        'horizontal' (stripes from the top) or 'vertical' (from the hoist, which is on the left).
    stripes
        Colours, keys of `COLOURS`; all stripes are equally wide.
    triangle
        Colour of the triangle whose base is the hoist and whose tip is at half the height; None without one.
    triangle_depth
        Position of the tip as a share of the width. [002] does not give it; the flags of `FLAGS` have one half.

    Raises
    ------
    InputError
        If a value is not as described.

    Examples
    --------
    >>> from theory.flag_game import Flag, draw
    >>> draw(Flag("Nowhere", "horizontal", ("red", "white"), triangle="blue"), width=6, height=4)
    array([[1, 0, 0, 0, 0, 0],
           [1, 1, 0, 0, 0, 0],
           [1, 1, 3, 3, 3, 3],
           [1, 3, 3, 3, 3, 3]], dtype=uint8)
    """

    country: str
    orientation: str
    stripes: tuple[str, ...]
    triangle: str | None = None
    triangle_depth: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        if not isinstance(self.country, str) or not self.country:
            raise InputError(f"country = {self.country!r}: expected a name")
        of, depth = f"{self.country}:", self.triangle_depth
        if self.orientation not in ORIENTATIONS:
            raise InputError(f"{of} orientation = {self.orientation!r}: expected {' or '.join(ORIENTATIONS)}")
        if not isinstance(self.stripes, tuple) or not self.stripes:
            raise InputError(f"{of} stripes = {self.stripes!r}: expected a tuple of colours")
        for colour in (*self.stripes, *([] if self.triangle is None else [self.triangle])):
            if not isinstance(colour, str) or colour not in COLOURS:
                raise InputError(f"{of} colour {colour!r}: expected one of {', '.join(COLOURS)}")
        if not isinstance(depth, (int, Fraction)) or not 0 < depth <= 1:
            raise InputError(f"{of} triangle_depth = {depth!r}: expected a Fraction above 0, at most 1")


def check_pool(flags: Sequence[Flag]) -> tuple[Flag, ...]:
    """The pool as a tuple; InputError if it is empty, holds anything but flags, or a country twice."""
    pool = tuple(flags) if isinstance(flags, Sequence) else ()
    if not pool or not all(isinstance(flag, Flag) for flag in pool):
        raise InputError(f"flags = {shown(flags)}: expected at least one Flag, and nothing else")
    country, times = Counter(flag.country for flag in pool).most_common(1)[0]
    if times > 1:
        raise InputError(f"flags holds {country} {times} times: expected each country once")
    return pool


def flag_of(country: str, flags: Sequence[Flag] | None = None) -> Flag:
    """The flag of a country.

    Parameters
    ----------
    country, flags
        Its name, and the pool, by default `FLAGS`.

    Raises
    ------
    InputError
        If the country is not in the pool.

    See Also
    --------
    draw : the colours of its cells

    Examples
    --------
    >>> theory.flag_game.flag_of("France").stripes
    ('blue', 'white', 'red')
    """
    pool = check_pool(FLAGS if flags is None else flags)
    for flag in pool:
        if flag.country == country:
            return flag
    raise InputError(f"country = {country!r}: expected one of {', '.join(flag.country for flag in pool)}")


# [002] Appendix C: "28 stripe and triangle flags", listed in the pool published with the paper.
FLAGS = tuple(
    Flag(row.country, row.orientation, tuple(row.stripes.split()), row.triangle or None)
    for row in flag_game("flag_pool").itertuples()
)
