"""Where results go: a file whose ending gives its form, stdout, or the terminal."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from meanfield import InputError

if TYPE_CHECKING:
    import xarray as xr

DATASET = ("nc",)
TABLE = ("csv", "json", "tex")
console = Console()
Out = Annotated[Path, typer.Option("--out", "-o", help="NetCDF file to write; - is stdout.")]
RESULT = "File to write: .nc for all of it, .csv, .json or .tex for the table; - is stdout."
Result = Annotated[Path | None, typer.Option("--out", "-o", help=RESULT)]
Form = Annotated[str | None, typer.Option("--format", help="nc, csv, json or tex, whatever the ending; csv for -.")]


class Output:
    """A place for results, checked before long work starts.

    With - for stdout all messages go to stderr; None is not a place.
    """

    def __init__(self, path: Path | None, form: str | None = None, forms: Sequence[str] = (*DATASET, *TABLE)) -> None:
        self.path, self.stdout = path, str(path) == "-"
        ending = "" if path is None else path.suffix.removeprefix(".")
        default = ("csv" if "csv" in forms else forms[0]) if self.stdout else ending
        self.form = form or default
        if form is not None and form not in forms:
            raise InputError(f"format = {form!r}: expected {' or '.join(forms)}")
        if path is None:
            return
        if self.form not in forms:
            raise InputError(f"out = {path}: expected a name that ends with .{' or .'.join(forms)}")
        if self.form == "nc" and ending in TABLE:
            raise InputError(f"format = 'nc': {path} ends like a table, expected .nc or another ending")
        if self.stdout:
            if sys.stdout is None:
                raise InputError("out = -: stdout is closed, expected a stream or the name of a file")
            console.stderr = True
        else:
            check_place(path)

    def write(self, result: xr.Dataset | None, text: Callable[[str], str] = str, note: str = "") -> None:
        """Write the Dataset, or its text in another form, and report it."""
        if self.path is None:
            return
        if self.stdout:
            _to_stdout(result, text, self.form)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _to_file(result, text, self.form, self.path)
        say(f"wrote {self.path}" + (f": {note}" if note else ""))


def _to_file(result: xr.Dataset | None, text: Callable[[str], str], form: str, path: Path) -> None:
    import meanfield
    from meanfield.toolbox import whole_file

    if form == "nc" and result is not None:
        meanfield.save(result, path)
        return
    with whole_file(path) as temporary:
        temporary.write_text(text(form), encoding="utf-8", newline="\n")


def _to_stdout(result: xr.Dataset | None, text: Callable[[str], str], form: str) -> None:
    if form != "nc":
        sys.stdout.write(text(form))
        return
    with tempfile.TemporaryDirectory() as folder:
        _to_file(result, text, form, path := Path(folder) / "result.nc")
        sys.stdout.buffer.write(path.read_bytes())


def check_place(path: Path, folder: bool = False) -> None:
    """InputError unless a file, or a folder, can be written or made there."""
    from meanfield.toolbox import check_working_folder

    check_working_folder("out", path)
    if path.is_dir() and not folder:
        raise InputError(f"out = {path}: it is a folder, expected the name of a file")
    above = (*([path] if folder else []), *path.parents)
    nearest = next((parent for parent in above if parent.exists()), Path(path.anchor))  # a drive may not exist
    if not nearest.is_dir():
        raise InputError(f"out = {path}: {nearest} is no folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"out = {path}: the folder {nearest} can't be written to")


def prepare_streams() -> None:
    """Make stdout and stderr take every letter: a pipe of Windows has a code page, in which there is no κ.

    Messages for a closed stderr, as after `2>&-`, go nowhere.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (until the end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=stream.encoding if stream.isatty() else "utf-8", errors="backslashreplace")


def say(text: str) -> None:
    """Print one line, however long, without markup: paths and words appear as they are."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
