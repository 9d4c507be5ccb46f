"""The `meanfield` command: each step of the chain, from files to files.

The one place that imports all packages; every command imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from meanfield import InputError, MeanfieldError, __version__
from meanfield.cli import _analyses, _policies, _populations, _results  # noqa: F401  (their commands register)
from meanfield.cli._common import app
from meanfield.cli._output import console, prepare_streams

TRACEBACK = "MEANFIELD_TRACEBACK"
INTERRUPTED = 130  # exit status of a command that Ctrl-C ended: 128 + SIGINT


def main() -> None:
    """Run the command; an error is one line on stderr, with exit code 2 for wrong input and 1 otherwise.

    A warning is one line too, without the place in the code that python names.
    """
    prepare_streams()
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        sys.exit(_run())


def _warn(message: Warning | str, *place: object) -> None:
    print(f"meanfield: warning: {' '.join(f'{message}'.split())}", file=sys.stderr)


def _run() -> int:
    console.stderr = False
    try:
        code = app(prog_name="meanfield", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort) as error:
        told = any(getattr(one, "told", False) for one in (error, error.__cause__, error.__context__))
        return _fail("" if told else "interrupted", INTERRUPTED)
    except InputError as error:
        return _fail(f"{error}", 2)
    except (MeanfieldError, OSError) as error:
        lost = isinstance(error, OSError) and error.filename is None and not _has_folder()
        return _fail("the working folder was deleted, change to another" if lost else f"{error}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):  # of typer, which has no public name for what it raises
            return _fail(_usage(error), 2)
        if os.environ.get(TRACEBACK):
            raise
        return _fail(f"{type(error).__name__}: {error} ({TRACEBACK}=1 shows where)", 1)
    return _fail("interrupted", code) if code == INTERRUPTED else code or 0


def _has_folder() -> bool:
    """Whether the working folder is there; libraries ask for it when they are imported."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False


def _usage(error: Exception) -> str:
    """The usage error, all that the command needs, and a hint to the help; '' if the help was shown."""
    message, context = error.format_message(), getattr(error, "ctx", None)
    if not message or not context:
        return message
    named = [one.opts[0] for one in context.command.params if one.required]
    needed = [name if name.startswith("-") else name.upper() for name in named]
    needs = f"it needs {', '.join(needed)}; " if needed else ""
    return f"{message} ({needs}{context.command_path} --help shows what there is)"


def _fail(message: str, code: int) -> int:
    if message:
        print(f"meanfield: {' '.join(message.split())}", file=sys.stderr)
    return code


def _version(wanted: bool) -> bool:
    if wanted:
        print(f"meanfield {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def _command(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Mean-field theory of populations of language models: each step of the chain, from files to files."""
