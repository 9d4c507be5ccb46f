"""Conventions by which a run of the naming game has converged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from meanfield import InputError
from meanfield.toolbox import real_number, whole_number

ROUNDS_AVERAGED = 3


@dataclass(frozen=True)
class Convention:
    """The success rate at which a run counts as converged, tested at the end of each round.

    Parameters
    ----------
    success_rate
        Smallest mean success rate of the last three rounds, 3N interactions; in (0, 1].
    first_test
        Rounds played before the first test, ≥ 3.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> nearly = validation.naming_game.Convention(0.9)
    >>> nearly.successes_needed(24)  # of 72
    65
    >>> policy = meanfield.make_policy(lambda memory: 0.97, ["A", "B"], memory_length=1)
    >>> for convention in ("004", nearly):
    ...     runs = validation.simulate(policy, n_agents=24, runs=100, seed=1, max_rounds=20, convention=convention)
    ...     print(runs["consensus_word"].notnull().mean().item())
    0.57
    1.0
    """

    success_rate: float
    first_test: int = ROUNDS_AVERAGED

    def __post_init__(self) -> None:
        real_number("success_rate", self.success_rate, above=0, most=1)
        whole_number("first_test", self.first_test, ROUNDS_AVERAGED)

    def successes_needed(self, n_agents: int) -> int:
        """The fewest successes in three rounds of N interactions that count as consensus."""
        # The decimal that was written, so that 98 % of 150 is 147 and not a rounding error more
        return math.ceil(Fraction(str(self.success_rate)) * ROUNDS_AVERAGED * whole_number("n_agents", n_agents, 1))


# The authors' code of [004] looks for the first time after four rounds, and calls the first of them 0. [000] and [001]
# ask for 95 % of the last 3N interactions, for figures of committed minorities for all of them; they look after each
# interaction, here after each round.
CONVENTIONS = {
    "004": Convention(0.98, first_test=4),
    "001": Convention(0.95),
    "001 strict": Convention(1.0),
}


def convention_of(convention: str | Convention) -> Convention:
    """The convention that an argument gives or names; InputError where it does neither."""
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str) or convention not in CONVENTIONS:
        raise InputError(f"convention = {convention!r}: expected one of {', '.join(CONVENTIONS)}, or a Convention")
    return CONVENTIONS[convention]
