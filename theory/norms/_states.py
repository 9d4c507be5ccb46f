"""The 36 states of an agent with respect to one behaviour, and the composition in which a society starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import real_number
from theory.norms._society import AGENTS, STANDARDS, TYPES, Behaviour, NormAgent, agents_of, behaviour_of

LEVELS = ("none", "informed", "qualified", "complying", "superseded")
HELD = ("none", "same", "opposed", "abstract")
ROUNDING = 1e-9

Fractions = Mapping[tuple[str, str], float]


class NormState(NamedTuple):
    """An agent's type, the standard that it likes, and what it knows of a behaviour, by level and standard.

    At level 'informed' the agent has heard of a standard that has not passed its check; 'qualified', it is its norm;
    'complying', it plans by it; 'superseded', the norm is part of an abstract one. At level 'none' the standard is ''.
    """

    type: str
    preference: str
    level: str = "none"
    standard: str = ""

    @property
    def label(self) -> str:
        """The name of the state, such as 'ordinary/against/complying/for'."""
        return "/".join(part for part in self if part)

    @property
    def upheld(self) -> str:
        """The standard that it defends, by its own norm or an abstract one; '' without a norm."""
        return self.standard if self.level in ("qualified", "complying", "superseded") else ""

    def holds(self, standard: str) -> str:
        """The relation of its qualified norms to `standard`, a label of `HELD`."""
        if not self.upheld:
            return "none"
        if self.standard != standard:
            return "opposed"
        return "abstract" if self.level == "superseded" else "same"

    def willing(self, standard: str) -> str:
        """'willing' if the agent likes the standard, else 'unwilling'."""
        return "willing" if standard == self.preference else "unwilling"

    def at(self, level: str, standard: str) -> NormState:
        """The same agent at another level."""
        return self._replace(level=level, standard=standard)


NORM_STATES = tuple(
    NormState(kind, preference, level, standard)
    for kind in TYPES
    for preference in STANDARDS
    for level in LEVELS
    for standard in (STANDARDS if level != "none" else ("",))
)
INDEX = {state: k for k, state in enumerate(NORM_STATES)}
LABELS = [state.label for state in NORM_STATES]


def starting_fractions(
    behaviour: str | Behaviour, agents: Sequence[NormAgent] = AGENTS
) -> dict[tuple[str, str], float]:
    """{(type, preference): fraction of the agents}, for all four combinations."""
    name, agents = behaviour_of(behaviour).name, agents_of(agents)
    numbers = {(kind, preference): 0 for kind in TYPES for preference in STANDARDS}
    for agent in agents:
        if name not in agent.prefers:
            expected = "expected 'for' or 'against', or fractions in place of agents"
            raise InputError(f"agents: {agent.name} prefers nothing in {name!r}: {expected}")
        numbers[agent.type, agent.prefers[name]] += 1
    return {key: number / len(agents) for key, number in numbers.items()}


def initial_composition(start: str | Behaviour | Fractions, agents: Sequence[NormAgent] = AGENTS) -> xr.DataArray:
    """The composition in which entrepreneurs comply with the standard that they like, and other agents know none.

    Parameters
    ----------
    start
        A name in `BEHAVIOURS` or a `Behaviour`, to count `agents` by type and preference; or {(type, preference):
        fraction}, summing to 1.
    agents
        Agents with different names; by default the ten of [003].

    Returns
    -------
    Composition, dims (state).

    Raises
    ------
    InputError
        If an agent has no preference on the behaviour, or fractions are negative, have unknown keys, or do not sum to
        1.

    See Also
    --------
    reaction_model : the model that has these states

    Examples
    --------
    >>> start = theory.norms.initial_composition("tipping").to_series()
    >>> start[start > 0].to_dict()
    {'entrepreneur/for/complying/for': 0.2, 'entrepreneur/against/complying/against': 0.1,
     'ordinary/for/none': 0.3, 'ordinary/against/none': 0.4}
    """
    fractions = starting_fractions(start, agents) if isinstance(start, (str, Behaviour)) else start
    if not isinstance(fractions, Mapping):
        raise InputError(f"fractions = {fractions!r}: expected {{(type, preference): fraction}}")
    x = np.zeros(len(NORM_STATES))
    for key, fraction in fractions.items():
        if key not in {(kind, preference) for kind in TYPES for preference in STANDARDS}:
            raise InputError(f"fractions have {key!r}: expected ({' or '.join(TYPES)}, {' or '.join(STANDARDS)})")
        real_number(f"fractions[{key!r}]", fraction, least=0, most=1)
        state = NormState(*key)
        x[INDEX[state.at("complying", state.preference) if state.type == "entrepreneur" else state]] = fraction
    if abs(x.sum() - 1) > ROUNDING:
        raise InputError(f"fractions sum to {x.sum()}: expected 1")
    text = {"long_name": "fraction of agents", "units": "1"}
    return xr.DataArray(x, dims="state", coords={"state": LABELS}, attrs=text)
