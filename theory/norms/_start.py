"""The composition in which a society starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import real_number
from theory.norms._society import AGENTS, STANDARDS, TYPES, Behaviour, NormAgent, agents_of, behaviour_of
from theory.norms._states import INDEX, NORM_STATES, NormState

ROUNDING = 1e-9


def starting_fractions(
    behaviour: str | Behaviour, agents: Sequence[NormAgent] = AGENTS
) -> dict[tuple[str, str], float]:
    """{(type, preference): fraction of the agents}, for all four combinations.

    Parameters
    ----------
    behaviour
        A name of `BEHAVIOURS`, or a `Behaviour`.
    agents
        Agents with different names; by default the ten of [003].

    Raises
    ------
    InputError
        If there are no agents, or one has no preference for the behaviour.

    See Also
    --------
    initial_composition : the composition that follows

    Examples
    --------
    >>> from theory.norms import starting_fractions
    >>> {"/".join(key): fraction for key, fraction in starting_fractions("tipping").items()}
    {'entrepreneur/for': 0.2, 'entrepreneur/against': 0.1, 'ordinary/for': 0.3, 'ordinary/against': 0.4}
    """
    name, agents = behaviour_of(behaviour).name, agents_of(agents)
    fractions = {(kind, preference): 0 for kind in TYPES for preference in STANDARDS}
    for agent in agents:
        if name not in agent.prefers:
            raise InputError(
                f"agents: {agent.name} prefers nothing in {name!r}: expected 'for' or 'against', or fractions in place "
                "of agents"
            )
        fractions[agent.type, agent.prefers[name]] += 1
    return {key: number / len(agents) for key, number in fractions.items()}


def mixture_of(
    behaviour: Behaviour, agents: Sequence[NormAgent], fractions: Mapping[tuple[str, str], float] | None
) -> Mapping[tuple[str, str], float]:
    """The given fractions, or the agents' ones; InputError if both are given."""
    if fractions is None:
        return starting_fractions(behaviour, agents)
    if agents is not AGENTS:
        raise InputError("agents and fractions are both given: expected one of them")
    return fractions


def fractions_text(fractions: Mapping[tuple[str, str], float]) -> str:
    """A text such as 'entrepreneur/for 0.3, ordinary/for 0.4, ordinary/against 0.3', for the provenance of results."""
    return ", ".join(f"{'/'.join(key)} {fraction:.12g}" for key, fraction in fractions.items() if fraction)


def initial_composition(fractions: Mapping[tuple[str, str], float]) -> xr.DataArray:
    """The composition in which entrepreneurs comply with the standard that they like, and other agents know none.

    Parameters
    ----------
    fractions
        {(type, preference): fraction}, as from `starting_fractions`; missing keys are 0. They sum to 1.

    Returns
    -------
    Composition, dims (state).

    Raises
    ------
    InputError
        If a type or preference is unknown, a fraction is negative, or they do not sum to 1.

    See Also
    --------
    starting_fractions : the fractions of agents

    Examples
    --------
    >>> from theory.norms import initial_composition
    >>> start = initial_composition({("entrepreneur", "for"): 0.3, ("ordinary", "against"): 0.7}).to_series()
    >>> start[start > 0].to_dict()
    {'entrepreneur/for/complying/for': 0.3, 'ordinary/against/none': 0.7}
    """
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
    labels = [state.label for state in NORM_STATES]
    return xr.DataArray(
        x, dims="state", coords={"state": labels}, attrs={"long_name": "fraction of agents", "units": "1"}
    )
