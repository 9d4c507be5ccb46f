"""Seconds of calls, and tables in which they stand beside each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.table import Table


def seconds(function: Callable[[], object], repeat: int = 3, clock: Callable[[], float] = time.perf_counter) -> float:
    """The shortest of `repeat` runs."""
    spent = []
    for _ in range(repeat):
        start = clock()
        function()
        spent.append(clock() - start)
    return min(spent)


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str | None = None) -> None:
    """Print a table; numbers have three significant digits."""
    table = Table(title=title, caption=caption)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=150).print(table)


def ratios(title: str, rows: Sequence[tuple[str, float]]) -> None:
    """Print seconds, and ratios to the first row."""
    show(title, ("route", "seconds", "ratio"), [(name, value, value / rows[0][1]) for name, value in rows])
