"""How much memory a calculation may take: what needs more is refused before anything is computed."""

from __future__ import annotations

import os

from meanfield.toolbox._errors import InputError

BUDGET = 16.0  # GiB
VARIABLE = "MEANFIELD_MEMORY"


def memory_budget() -> float:
    """The GiB of memory that a calculation may take: 16, or what the environment variable MEANFIELD_MEMORY says.

    Raises
    ------
    InputError
        If the variable is not a positive number.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        budget = float(text) if text else BUDGET
    except ValueError:
        budget = 0.0
    if not budget > 0:
        raise InputError(f"{VARIABLE} = {text}: expected a positive number of GiB")
    return budget


def check_memory(needed: int | float, asked: str, less: str) -> None:
    """InputError where a calculation would take more memory than `memory_budget`.

    Parameters
    ----------
    needed
        Bytes, estimated: no more than it really takes, so that nothing is refused that fits.
    asked
        The arguments that make it so large, and their values.
    less
        What there should be less of.
    """
    budget = memory_budget()
    if needed > budget * 2**30:
        raise InputError(
            f"{asked}: would take {needed / 2**30:.3g} GiB of memory, expected at most {budget:g} GiB; "
            f"take {less}, or set {VARIABLE} to what this machine has"
        )
