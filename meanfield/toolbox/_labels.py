"""Alignment by labels: input is put in the order in which arrays are read, or refused.

`state` and `component` are numbered from 0. A result over one set of words has the words along `word`; `word_number`
holds their numbers, by which memory states count them. A collection of several pairs has the numbers along `word` and
the words of each pair in `word_label`. Users permute labels (``isel``, ``sortby``, ``transpose``), so arrays are
aligned by label, as in xarray's own arithmetic. A dim without a coordinate is aligned by position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from meanfield.toolbox._arguments import is_number, shown
from meanfield.toolbox._errors import InputError

NUMBERED_DIMS = ("component", "state")

Labelled = TypeVar("Labelled", xr.Dataset, xr.DataArray)


def canonical_order(labelled: Labelled, name: str) -> Labelled:
    """A policy or a result with `component`, `state` and words in the order of their numbers, 0 first.

    If all words are the same along the other dims they become the labels along `word`, also for files of older
    versions, which have numbers there. Other dims, and the order of dims, stay as they are. InputError if the numbers
    along one of the three are not 0 to n - 1, each once, or `word` and `word_label` disagree.
    """
    sizes = labelled.sizes
    labelled = in_order(labelled, {dim: range(sizes[dim]) for dim in NUMBERED_DIMS if dim in sizes}, name)
    return _words_in_order(labelled, name) if "word" in labelled.dims else labelled


def word_coords(words: Sequence[str] | np.ndarray) -> dict[str, Any]:
    """Coordinates of a result over these words: the words along `word`, and their numbers."""
    names = np.array(words, dtype=str)
    return {"word": names, "word_number": ("word", np.arange(len(names))), "word_label": ("word", names)}


def has_names(labelled: xr.Dataset | xr.DataArray) -> bool:
    """Whether the labels along `word` are texts."""
    word = labelled.coords.variables.get("word")
    return word is not None and word.dtype.kind in "UOT" and all(isinstance(one, str) for one in word.values.tolist())


def _words_in_order(labelled: Labelled, name: str) -> Labelled:
    named = has_names(labelled)
    numbers = range(labelled.sizes["word"])
    places = _places(labelled, "word", numbers, name, "word_number" if named else "word")
    labelled = labelled if places is None else labelled.isel(word=places)
    coords = labelled.coords.variables  # faster than arrays with coordinates of their own
    label = coords.get("word_label")
    if label is not None and label.dims != ("word",):
        return labelled
    if not named:
        return labelled if label is None else labelled.assign_coords(word_coords(label.values))
    words = coords["word"].values
    if label is not None and not np.array_equal(label.values, words):
        found = f"word_label = {_listed(label.values)}"
        raise InputError(f"{name} has {found}: expected {_listed(words)}, as along word")
    complete = label is not None and "word_number" in coords
    return labelled if complete else labelled.assign_coords(word_coords(words))


def chosen(policies: xr.Dataset, **labels: str | None) -> xr.Dataset:
    """The policies with these labels along model and pair; InputError lists those that are there. None takes all.

    Where they have the same words, these are the labels along `word`.
    """
    for dim, label in labels.items():
        if label is None:
            continue
        known = [str(value) for value in policies[dim].values.ravel()] if dim in policies.coords else []
        if label not in known:
            there = ", ".join(known) or f"none, as no {dim} is named"
            raise InputError(f"{dim} = {label!r}: expected one of {there}")
        policies = policies.sel({dim: label}) if dim in policies.dims else policies
    return policies if all(label is None for label in labels.values()) else canonical_order(policies, "policies")


def in_order(labelled: Labelled, labels: Mapping[str, Sequence[Hashable]], name: str) -> Labelled:
    """`labelled` with these labels in this order, along such dims as it has.

    InputError if a label is missing, unknown or repeated, or a dim without a coordinate has another length.
    """
    for dim, expected in labels.items():
        if dim in labelled.dims and (places := _places(labelled, dim, expected, name)) is not None:
            labelled = labelled.isel({dim: places})
    return labelled


def _places(
    labelled: xr.Dataset | xr.DataArray, dim: str, expected: Sequence[Hashable], name: str, key: str | None = None
) -> list[int] | None:
    """The positions of the expected labels along a dim; None if they are in order or there are none.

    `key` is the coordinate with the labels, by default the dim's.
    """
    key = key or dim
    number = labelled.sizes[dim]
    coords = labelled.coords.variables
    if key not in coords:
        if number != len(expected):
            raise InputError(f"{name} has {number} along {dim}: expected {len(expected)}")
        return None
    in_place = np.arange(len(expected)) if isinstance(expected, range) else np.asarray(expected)
    found = coords[key].values
    if found.dtype.kind != "b" and np.array_equal(found, in_place):
        return None
    given: list[Any] = found.tolist()
    wanted = f"expected {_listed(expected)}, each once"
    known = set(expected)
    for label in given:
        if not isinstance(label, Hashable):
            raise InputError(f"{name} has {key} = {label!r}: {wanted}")
    for label, times in Counter(given).items():
        if label not in known or isinstance(label, bool):
            raise InputError(f"{name} has {key} = {label!r}: {wanted}")
        if times > 1:
            raise InputError(f"{name} has {times} times {key} = {label!r}: {wanted}")
    place = {label: i for i, label in enumerate(given)}
    for label in expected:
        if label not in place:
            raise InputError(f"{name} lacks {key} = {label!r}: {wanted}")
    return [place[label] for label in expected]


def _listed(labels: Sequence[Hashable] | np.ndarray) -> str:
    return f"0 to {len(labels) - 1}" if isinstance(labels, range) else ", ".join(map(str, labels))


def values_in_order(values: Any, labels: Mapping[str, Sequence[Hashable]], name: str) -> np.ndarray:
    """Real numbers as an array: a DataArray is aligned with these labels, an array is used as it stands.

    `labels` are those along each dim, dims in the order of the axes; `name` is the name of the argument, for messages.
    InputError if a DataArray has another dim or other labels, or the values are not real numbers (see `real_numbers`).
    """
    if not isinstance(values, xr.DataArray):
        return real_numbers(values, name)
    foreign = [str(dim) for dim in values.dims if dim not in labels]
    if foreign:
        raise InputError(f"{name} has a dim {foreign[0]}: expected {', '.join(labels)}")
    return real_numbers(in_order(values, labels, name).transpose(*labels, missing_dims="ignore").values, name)


def real_numbers(values: Any, name: str) -> np.ndarray:
    """`values` as a float64 array in C order.

    InputError if some are not integers or floating-point numbers, or masked, or they come from pandas or a Dataset.
    """
    if isinstance(values, (pd.Series, pd.DataFrame, xr.Dataset)):
        library = type(values).__module__.partition(".")[0]
        raise InputError(f"{name} is a {library} {type(values).__name__}: expected an array or an xarray.DataArray")
    try:
        array = values if type(values) is np.ndarray else np.ma.asarray(values)
    except (TypeError, ValueError):
        raise InputError(f"{name}: expected an array of real numbers") from None
    if array.dtype.kind not in "iuf":
        odd = [one for one in array.ravel().tolist() if not is_number(one)] if array.dtype.kind in "USO" else []
        told = f", not {shown(odd[0])}" if odd else ""
        raise InputError(f"{name} has dtype {array.dtype}: expected real numbers{told}")
    if np.ma.is_masked(array):
        raise InputError(f"{name} has {np.ma.count_masked(array)} masked values: expected none")
    return np.asarray(array, dtype=np.float64, order="C")
