"""Choice probabilities in the order of states, from functions, mappings and tables of named memories."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from meanfield.core._space import MemorySpace
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._csv import column_numbers, number_hint, read_csv
from meanfield.toolbox._errors import InputError, reason
from meanfield.toolbox._labels import real_numbers
from meanfield.toolbox._memory_budget import check_memory

# A softmax of float64 logits sums to 1 within a few ulp, one of float32 logits within 1e-7.
ROW_SUM_TOLERANCE, SINGLE_ROW_SUM_TOLERANCE = 1e-9, 1e-6

NamedMemory = tuple[tuple[str, str], ...]
Function = Callable[[NamedMemory], Any]


def tabulated(
    source: Function | Mapping[Any, Any] | pd.DataFrame | str | os.PathLike[str],
    words: Sequence[str],
    memory_length: int | None,
    progress: bool,
) -> np.ndarray:
    """The probabilities in any form that `make_policy` takes beside arrays, as an array of shape (S, W)."""
    if isinstance(source, (str, os.PathLike)):
        source = read_csv(source, "q", dtype=str, keep_default_na=False)
    if isinstance(source, pd.DataFrame):
        keys, values = _columns(source, words)
    elif isinstance(source, Mapping):
        keys, values = list(source), list(source.values())
    else:
        if memory_length is None:
            raise InputError("memory_length = None: expected H, the number of interactions remembered, for a function")
        memories = named_memories(MemorySpace(len(words), memory_length), words)
        asked = tqdm(memories, "memories", unit="memory", disable=not progress, leave=False)
        return _distributions([_said(source, memory) for memory in asked], memories, words, progress)
    space = _smallest_space(len(keys), len(words)) if memory_length is None else MemorySpace(len(words), memory_length)
    memories = named_memories(space, words)
    rows = _rows(keys, memories, space, words)
    return _distributions([values[row] for row in rows], memories, words, progress)


def probabilities(values: Any, name: str, n_words: int) -> np.ndarray:
    """`values` in float64; rows of float32 that sum to 1 within 1e-6 are divided by their sums."""
    q = real_numbers(values, name)
    if q.shape[-1:] == (n_words,) and np.asarray(values).dtype.newbyteorder("=") == np.float32:
        sums = q.sum(-1, keepdims=True)
        q = q / np.where(np.abs(sums - 1) <= SINGLE_ROW_SUM_TOLERANCE, sums, 1)
    return q


def text_of(memory: NamedMemory) -> str:
    """A memory as `own/partner own/partner`, oldest first."""
    return " ".join(f"{own}/{partner}" for own, partner in memory) or "empty"


def named_memories(space: MemorySpace, words: Sequence[str]) -> list[NamedMemory]:
    """All memories in the order of their states."""
    length = space.memory_length
    check_memory(space.n_states * (100 + 60 * length), f"memory_length = {length}", "a shorter memory")
    pairs = [(own, partner) for own in words for partner in words]
    return [memory for n in range(length + 1) for memory in product(pairs, repeat=n)]


def _said(source: Function, memory: NamedMemory) -> Any:
    """The function's value; InputError that names the memory in which it fails."""
    try:
        return source(memory)
    except Exception as error:
        told = f"{type(error).__name__}: {reason(error)}" if str(error) else type(error).__name__
        empty = " An agent without memories remembers (), which is no pair." if not memory else ""
        raise InputError(
            f"q({text_of(memory)}) raises {told}; expected probabilities for every memory.{empty}"
        ) from error


def _smallest_space(n_memories: int, n_words: int) -> MemorySpace:
    space = MemorySpace(n_words, 1)
    while space.n_states < n_memories:
        space = MemorySpace(n_words, space.memory_length + 1)
    return space


def _rows(keys: list[Any], memories: list[NamedMemory], space: MemorySpace, words: Sequence[str]) -> list[int]:
    """Which key is which memory."""
    state = {name: i for i, memory in enumerate(memories) for name in (memory, text_of(memory))}
    found: dict[int, int] = {}
    for row, key in enumerate(keys):
        i = state.get("empty" if key == "" else key)
        if i is None:
            expected = f"up to {space.memory_length} pairs (own word, partner's word) of {', '.join(words)}"
            raise InputError(f"q has the memory {shown(key)}: expected {expected}")
        if i in found:
            raise InputError(f"q has the memory {text_of(memories[i])} twice: expected it once")
        found[i] = row
    missing = [text_of(memory) for i, memory in enumerate(memories) if i not in found]
    if missing:
        which = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        expected = f"all {space.n_states} of memory_length = {space.memory_length}"
        number = "a memory" if len(missing) == 1 else f"{len(missing)} memories"
        raise InputError(f"q lacks {number}, {which}: expected {expected}")
    return [found[i] for i in range(space.n_states)]


def _distributions(values: list[Any], memories: list[NamedMemory], words: Sequence[str], progress: bool) -> np.ndarray:
    """A row of probabilities for each memory; InputError names the first row that is wrong, and counts the others."""
    if len(words) == 2 and all(type(value) is float for value in values):
        first = np.array(values)
        if ((first >= 0) & (first <= 1)).all():
            return np.stack([first, 1 - first], axis=1)
    rows, wrong = [], []
    for value, memory in zip(tqdm(values, "rows", disable=not progress, leave=False), memories, strict=True):
        try:
            rows.append(_distribution(value, f"q({text_of(memory)})", words))
        except InputError as error:
            wrong.append(str(error))
    if wrong:
        raise InputError(wrong[0] + (f" ({len(wrong)} of {len(memories)} memories are wrong)" if wrong[1:] else ""))
    return np.array(rows)


def _distribution(value: Any, name: str, words: Sequence[str]) -> np.ndarray:
    if isinstance(value, Mapping):
        if set(value) != set(words):
            raise InputError(f"{name} = {shown(value)}: expected a probability for each of {', '.join(words)}")
        value = [value[word] for word in words]
    row = probabilities(value, name, len(words))
    if row.ndim == 0 and len(words) == 2:
        row = np.array([row, 1 - row])
    if row.shape != (len(words),) or not (row >= 0).all():
        alone = f"the probability of {words[0]}, or " if len(words) == 2 else ""
        raise InputError(f"{name} = {shown(value)}: expected {alone}{len(words)} probabilities that sum to 1")
    if abs(row.sum() - 1) > ROW_SUM_TOLERANCE:
        raise InputError(f"{name} = {shown(value)} sums to {row.sum():.12g} over the words: expected 1")
    return row


def _columns(table: pd.DataFrame, words: Sequence[str]) -> tuple[list[Any], np.ndarray]:
    """The memories in a table, and the probabilities of words in them."""
    given = [word for word in words if word in table.columns]
    pairs = [(f"own_{k}", f"partner_{k}") for k in range(1, table.shape[1] // 2 + 1)]
    pairs = [pair for pair in pairs if set(pair) <= set(table.columns)]
    whole = [("memory",)] if "memory" in table.columns and "memory" not in words else []
    if not (whole or pairs) or given not in ([list(words)] + [[words[0]]] * (len(words) == 2)):
        columns = ", ".join(map(str, table.columns))
        expected = f"memory, or own_1, partner_1, …, and {', '.join(words)}"
        raise InputError(f"q has the columns {columns}: expected {expected}")
    cells = {name: [_text(cell) for cell in table[name]] for pair in [*whole, *pairs] for name in pair}
    keys: list[Any] = cells.get("memory") or [
        tuple((cells[own][i], cells[partner][i]) for own, partner in pairs if cells[own][i] or cells[partner][i])
        for i in range(len(table))
    ]
    values = np.stack([column_numbers(table[word]) for word in given], axis=-1)
    _check_cells(table[given], np.isnan(values))
    if all(table[word].dtype == np.float32 for word in given):
        values = values.astype(np.float32)
    return keys, values if len(given) == len(words) else values[:, 0]


def _check_cells(table: pd.DataFrame, missing: np.ndarray) -> None:
    """InputError that names the first cell that is not a number, and counts the others."""
    if missing.any():
        row, column = np.argwhere(missing)[0]
        cell = table.iloc[row, column]
        where = f"row {row + 1}, column {table.columns[column]}"
        others = f"; {missing.sum() - 1} more cells are no numbers" if missing.sum() > 1 else ""
        raise InputError(f"q has {shown(cell)} in {where}: expected a probability{number_hint(cell)}{others}")


def _text(cell: Any) -> str:
    return "" if pd.isna(cell) else str(cell).strip()
