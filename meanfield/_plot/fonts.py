"""Fonts for words in scripts that the usual one does not have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text
from matplotlib.ticker import LogFormatter, ScalarFormatter

NO_FONT = "Last Resort"  # which has a box for every character


@contextmanager
def fonts_for(texts: Iterable[str], axes: Iterable[Axes]) -> Iterator[None]:
    """Let texts on the axes have characters that the usual font lacks; a warning names those that no font has.

    A dollar in a word is one, and not mathematics, which ticks of logarithmic scales are.
    """
    usual = get_font(findfont(FontProperties()))
    missing = {letter for text in texts for letter in text if ord(letter) > 127 and not _has(usual, letter)}
    families = []
    for entry in sorted(fontManager.ttflist, key=lambda entry: (entry.weight != 400, entry.style, entry.name)):
        if not missing:
            break
        if entry.name.startswith(NO_FONT) or not (font := get_font(entry.fname)).scalable:
            continue
        if found := {letter for letter in missing if _has(font, letter)}:
            families.append(entry.name)
            missing -= found
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        mpl.rcParams["font.family"] = [*mpl.rcParams["font.family"], *families]
        mpl.rcParams["text.parse_math"] = False
        theirs = {text for one in axes for text in one.findobj(Text) if text.get_text() and text.get_parse_math()}
        _use(families, axes, theirs)  # labels that are there already
        yield
        _use(families, axes, theirs)
        _read_numbers(axes)
    written = {letter for one in axes for text in one.figure.findobj(Text) for letter in text.get_text()}
    if named := " ".join(sorted(missing & written)):
        warnings.warn(f"no installed font has {named}, drawn as boxes: install one, such as Noto", stacklevel=4)


def _use(families: list[str], axes: Iterable[Axes], theirs: set[Text]) -> None:
    """Fonts for all texts; what was written before keeps its mathematics."""
    for text in (text for one in axes for text in one.findobj(Text)):
        text.set_parse_math(text in theirs)
        text.set_fontfamily(list(dict.fromkeys([*text.get_fontfamily(), *families])))


def _read_numbers(axes: Iterable[Axes]) -> None:
    """Powers of ten at the ticks of scales that are not words."""
    for axis in (axis for one in axes for axis in (one.xaxis, one.yaxis)):
        for formatter, ticks in (
            (axis.get_major_formatter(), axis.get_major_ticks()),
            (axis.get_minor_formatter(), axis.get_minor_ticks()),
        ):
            numbers = isinstance(formatter, ScalarFormatter | LogFormatter)
            for label in (label for tick in ticks for label in (tick.label1, tick.label2)):
                label.set_parse_math(numbers)
        axis.get_offset_text().set_parse_math(True)


def _has(font: object, letter: str) -> bool:
    return font.get_char_index(ord(letter)) != 0  # type: ignore[attr-defined]
