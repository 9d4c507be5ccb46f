"""Checks of numbers that are given as arguments, the same in all packages."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from meanfield.toolbox._errors import InputError

LARGEST_SEED = 2**63 - 1  # what NetCDF attrs and arrays of whole numbers hold
SHOWN = 60  # characters of a wrong value

T = TypeVar("T")


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """`value` as an int; InputError unless it is a whole number from `least` to `most` (2^63 - 1)."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if most is None and (number is None or number <= LARGEST_SEED):
        span = f"of at least {least}"
    else:
        span = f"from {least} to {LARGEST_SEED if most is None else most}"
    if number is None or isinstance(value, bool) or not least <= number <= (LARGEST_SEED if most is None else most):
        raise InputError(f"{name} = {shown(value)}: expected a whole number {span}")
    return number


def real_number(
    name: str,
    value: object,
    *,
    least: int | float | None = None,
    most: int | float | None = None,
    above: int | float | None = None,
    below: int | float | None = None,
) -> float:
    """`value` as a float; InputError unless it is finite and obeys the bounds: least ≤, ≤ most, above <, < below."""
    inside = (
        is_number(value)
        and (least is None or value >= least)  # type: ignore[operator]
        and (most is None or value <= most)  # type: ignore[operator]
        and (above is None or value > above)  # type: ignore[operator]
        and (below is None or value < below)  # type: ignore[operator]
    )
    if not inside:
        raise InputError(f"{name} = {shown(value)}: expected a number{_span(least, most, above, below)}")
    return float(value)  # type: ignore[arg-type]


def _span(*bounds: int | float | None) -> str:
    """In words: from least, most, above and below, None for no such bound."""
    least, most, above, below = bounds
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    if above is not None and below is not None:
        return f" between {above:g} and {below:g}"
    each = zip(("of at least", "at most", "above", "below"), bounds, strict=True)
    told = [f"{words} {bound:g}" for words, bound in each if bound is not None]
    return " " + " and ".join(told[::-1] if above is not None else told) if told else ""


def one_of(name: str, value: object, known: Iterable[str]) -> str:
    """`value`; InputError unless it is one of the known texts."""
    known = list(known)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} = {shown(value)}: expected one of {', '.join(known)}")
    return value


def instance(name: str, value: object, kind: type[T]) -> T:
    """`value`; InputError unless it is of this kind."""
    if not isinstance(value, kind):
        raise InputError(f"{name} = {shown(value)}: expected a {kind.__name__}")
    return value


def one_or_several(values: object) -> list[Any]:
    """The items of an iterable; anything else, also an array without dims, a text or a Dataset, is the only one."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, Mapping)):
        return [values]
    return [values.item()] if getattr(values, "ndim", 1) == 0 else list(values)


def different(name: str, values: Iterable[T], what: str = "value") -> list[T]:
    """`values`; InputError unless they are one or several different ones. `what` says what one of them is."""
    found = list(values)
    if not found or len(set(found)) < len(found):
        raise InputError(f"{name} = {shown(found)}: expected one {what} or several different ones")
    return found


def increasing_times(times: Sequence[float] | np.ndarray, name: str = "times") -> np.ndarray:
    """`times` as an array; InputError unless they are finite, increase and start at 0 or later."""
    try:
        saved = np.asarray(times, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} = {shown(times)}: expected numbers") from None
    if saved.ndim != 1 or not len(saved) or not saved[0] >= 0 or not (np.diff(saved) > 0).all() or saved[-1] == np.inf:
        raise InputError(f"{name} = {shown(times)}: expected increasing times from 0 on")
    return saved


def check_level(level: object) -> None:
    """InputError unless it is the level of a confidence interval."""
    real_number("level", level, above=0, below=1)


def is_number(value: object) -> bool:
    """Whether it is a finite real number that fits a float."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def shown(value: object) -> str:
    """`repr` of a value, cut short; its type if `repr` fails."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of too many digits, a list of too many levels
        text = f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
