"""Arguments of the figures' scripts on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from meanfield import MeanfieldError

MORE = "..."


@contextmanager
def arguments(usage: str) -> Iterator[list[str]]:
    """The arguments of a script, as a context for its work.

    A wrong number of arguments ends the process with the usage line, an error of this package with its message: one
    line on standard error, and exit code 1.

    Parameters
    ----------
    usage
        Module and arguments, as in 'paper_figs.table_s1 STABILITY.nc TABLE.csv'; '...' follows an argument that may be
        repeated.
    """
    _, *names = usage.split()
    given, least = sys.argv[1:], len(names) - names.count(MORE)
    if len(given) < least or (len(given) > least and MORE not in names):
        sys.exit(f"usage: python -m {usage}")
    try:
        yield given
    except MeanfieldError as error:
        sys.exit(f"error: {error}")
