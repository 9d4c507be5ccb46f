"""The memory budget of a calculation: larger ones are refused before anything is computed."""

from __future__ import annotations

import os

from meanfield.toolbox._errors import InputError

BUDGET = 16.0  # GiB
VARIABLE = "MEANFIELD_MEMORY"


def memory_budget() -> float:
    """The memory that a calculation may take, in GiB: 16, or the value of the environment variable MEANFIELD_MEMORY."""
    text = os.environ.get(VARIABLE, "")
    try:
        budget = float(text) if text else BUDGET
    except ValueError:
        budget = 0.0
    if not budget > 0:
        raise InputError(f"{VARIABLE} = {text}: expected a positive number of GiB")
    return budget


def check_memory(needed: int | float, asked: str, less: str) -> None:
    """InputError if a calculation would exceed `memory_budget`.

    `needed` is an estimate in bytes from below, so that nothing is refused that fits; `asked` are the arguments that
    make it large, with their values, and `less` says what to reduce.
    """
    budget = memory_budget()
    if needed > budget * 2**30:
        raise InputError(
            f"{asked}: would take {needed / 2**30:.3g} GiB of memory, expected at most {budget:g} GiB; "
            f"take {less}, or set {VARIABLE} to the GiB of this machine"
        )
