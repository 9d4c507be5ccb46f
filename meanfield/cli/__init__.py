"""The `meanfield` command: each step of the chain, from files to files.

The one place that knows all rooms; every command imports what it needs when it runs.
"""

from __future__ import annotations

import sys

from meanfield import InputError, MeanfieldError
from meanfield.cli import _policies, _populations, _results  # noqa: F401  (their commands register with the application)
from meanfield.cli._common import app


def main() -> None:
    """Run the command; a wrong input is one line on stderr and exit code 2, an unknown option a note of typer's."""
    try:
        app()
    except InputError as error:
        sys.exit(_fail(f"{error}", 2))
    except (MeanfieldError, OSError) as error:
        sys.exit(_fail(f"{error}", 1))


def _fail(message: str, code: int) -> int:
    print(f"meanfield: {' '.join(message.split())}", file=sys.stderr)
    return code
