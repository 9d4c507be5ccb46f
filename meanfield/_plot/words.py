"""Colours of words and names of models: a word has one colour in all panels of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex, to_rgb

# Okabe and Ito's colours, which colour-blind readers can distinguish; yellow, hard to see on white, comes last.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#000000", "#f0e442")
NEUTRAL = "0.45"
MODEL_NAMES = {
    "gpt-4o": "GPT-4o",
    "gpt-5.4": "GPT-5.4",
    "llama31_70B": "Llama 3.1 70B",
    "phi_4": "Phi-4",
    "QWQ_32B": "QwQ-32B",
    "llama3": "Llama 3 70B",
    "llama31": "Llama 3.1 70B",
    "claude": "Claude 3.5 Sonnet",
    "llama2": "Llama 2 70B",
}


def words_in(part: xr.Dataset) -> tuple[str, ...]:
    """The words of a panel, number 0 first; () where it has none."""
    for name in ("word_label", "word"):
        if name in part.coords and part[name].ndim == 1 and part[name].dtype.kind in "UOT":
            return tuple(str(word) for word in part[name].values)
    return ()


def in_braces(words: Iterable[str]) -> str:
    """The words of a pair, as titles have them."""
    return "{" + ", ".join(words) + "}"


def cut_words(words: Sequence[str], letters: int) -> list[str]:
    """The words, of long ones as many letters as this, or as tell them apart."""
    while len({word[:letters] for word in words}) < len(words):
        letters += 1
    return [word if len(word) <= letters + 1 else word[:letters] + "…" for word in words]


def texts_in(part: xr.Dataset) -> Iterator[str]:
    """Texts of a panel that others named: words, of each pair, and models."""
    for name in ("word", "word_label", "model", "pair", "component_policy"):
        if name in part.variables:
            yield from map(str, part[name].values.flat)


def word_colours(panels: Iterable[Sequence[str]]) -> dict[str, str]:
    """A colour for each word, given the words of each panel.

    The words of a panel differ in their colours, and a word keeps its colour from panel to panel. Panels that share no
    word share the colours.
    """
    panels = [tuple(words) for words in panels]
    together: dict[str, set[str]] = {}
    for words in panels:
        for word in words:
            together.setdefault(word, set()).update(words)
    most = max((len(others) for others in together.values()), default=0)
    palette = list(PALETTE)
    if most > len(palette):
        palette = [to_hex(colour) for colour in mpl.colormaps["turbo"](np.linspace(0.03, 0.97, most))]
    colours: dict[str, str] = {}
    for word, others in together.items():
        taken = {colours[other] for other in others if other in colours}
        colours[word] = next(colour for colour in palette if colour not in taken)
    return colours


def tinted(q: np.ndarray, colours: Sequence[str]) -> np.ndarray:
    """The colour of the likeliest word along the last axis, the paler the less it exceeds an even choice."""
    full = np.array([to_rgb(colour) for colour in colours])[q.argmax(-1)]
    strength = (q.max(-1, keepdims=True) - 1 / len(colours)) / (1 - 1 / len(colours))
    return 1 - strength * (1 - full)


def model_name(name: object) -> str:
    """A model's name as the papers write it."""
    return MODEL_NAMES.get(str(name), str(name))
