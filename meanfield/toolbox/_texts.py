"""Words, names and attrs that files can hold unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from meanfield.toolbox._errors import InputError
from meanfield.toolbox._labels import real_numbers


def validate_text(text: object, name: str) -> None:
    """InputError unless it is a string without NUL, which ends a text in NetCDF, and without lone surrogates."""
    try:
        kept = isinstance(text, str) and b"\0" not in text.encode()
    except UnicodeEncodeError:
        kept = False
    if not kept:
        raise InputError(f"{name} has {text!r}: expected text without NUL and lone surrogates")


def validate_words(words: object, name: str) -> None:
    """InputError unless they are distinct, non-empty texts."""
    single = isinstance(words, str) or (isinstance(words, np.ndarray) and not words.ndim)
    if single or not isinstance(words, (Sequence, np.ndarray)):
        raise InputError(f"{name} = {words!r}: expected a sequence of words")
    if not len(words):
        raise InputError(f"{name} = {words!r}: expected at least two words")
    for word in words:
        validate_text(word, name)
        if not word:
            raise InputError(f"{name} has {word!r}: expected words that are not empty")
    if len(set(words)) < len(words):
        raise InputError(f"{name} has the words {', '.join(words)}: expected words that differ")


def validate_attrs(attrs: object, name: str) -> None:
    """InputError unless they are numbers, texts and lists of either, under non-empty names."""
    if not isinstance(attrs, Mapping):
        raise InputError(f"{name} = {attrs!r}: expected a mapping of names to numbers and texts")
    for key, value in attrs.items():
        validate_text(key, name)
        if not key:
            raise InputError(f"{name} has {key!r}: expected names that are not empty")
        texts = list(value) if isinstance(value, (list, tuple)) else [value]
        try:
            if any(isinstance(text, str) for text in texts):
                for text in texts:
                    validate_text(text, name)
            else:
                real_numbers(value, name)
        except InputError:
            expected = "expected numbers, texts without NUL and lone surrogates, or a list of either"
            raise InputError(f"{name}[{key!r}] = {value!r}: {expected}") from None
