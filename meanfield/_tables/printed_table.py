"""Tables of rich that print as text where nobody has a console of rich."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table

WIDTH = 80


class PrintedTable(Table):
    """A table of rich whose text, in `print` and at the prompt, is the table itself."""

    def __repr__(self) -> str:
        console = Console(file=io.StringIO(), width=WIDTH, force_terminal=False, force_jupyter=False, color_system=None)
        with console.capture() as captured:
            console.print(self)
        return captured.get().rstrip("\n")
