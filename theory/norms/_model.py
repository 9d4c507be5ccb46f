"""The reaction model of one behaviour, what agents show, see, say, learn, plan and synthesise, and its observables.

In an encounter the initiator observes the responder. Four probabilities make its channels: shows(j, a), that an agent
in state j acts by the standard a, by a norm or by habit; conflict(i, a), that an observer in i finds this in conflict
with its norm; talk(i), that it then speaks; and think(i, a), that it otherwise has a thought:

    chat(s, a)            [i upholds s] conflict(i, a) talk(i) · shows(j, a): the responder learns s;
    thought(a, source)    (1 - conflict(i, a)) think(i, a) · shows(j, a, source): the observer learns a;
    conflict thought      conflict(i, a) (1 - talk(i)) think(i, a) · shows(j, a, source): the same, after a conflict;
    conflict              conflict(i, a) (1 - talk(i)) (1 - think(i, a)) · shows(j, a): nothing is learnt.

Separate channels let conflicts, thoughts and chats be counted. Source: [003] Section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError, ReactionModel
from meanfield.toolbox import in_order, one_of, real_number, real_numbers
from theory.norms._operations import Chances
from theory.norms._society import STANDARDS, Behaviour, behaviour_of
from theory.norms._states import INDEX, LABELS, NORM_STATES, NormState

SOURCES = ("normative", "habit")


class Channel(NamedTuple):
    """One way in which an encounter goes: 'chat', 'thought', 'conflict thought' or 'conflict'."""

    event: str
    shown: str  # the standard that the responder's behaviour follows
    detail: str = ""  # of a chat, the standard it is about; of a thought, the source of the behaviour


CHANNELS = (
    *(Channel("chat", a, s) for a in STANDARDS for s in STANDARDS),
    *(Channel(event, a, source) for event in ("thought", "conflict thought") for a in STANDARDS for source in SOURCES),
    *(Channel("conflict", a) for a in STANDARDS),
)
EVENTS = {
    name: tuple(m for m, one in enumerate(CHANNELS) if one.event in events)
    for name, events in (
        ("conflicts", ("chat", "conflict thought", "conflict")),
        ("thoughts", ("thought", "conflict thought")),
        ("chats", ("chat",)),
    )
}
"""The channels in which a conflict, a thought or a chat happens, the `counted` of `validation.reactions.simulate`."""


SHARES = {
    "accepted": (("qualified", "complying"), "fraction of agents with the standard among their qualified norms"),
    "complying": (("complying", "superseded"), "fraction of agents that comply with the standard in plans"),
    "reached": (
        ("qualified", "complying", "superseded"),
        "fraction that accepted the standard, as such or in an abstract",
    ),
    "informed": (("informed",), "fraction of agents that only know of the standard"),
}


@dataclass(frozen=True)
class NormRates:
    """Rates at which an agent meets, plans and synthesises, and the weight of its other norms.

    The threshold is from [003], the other values are our choice. In [003] over 70 % of the agents accept each norm
    within a quarter of a day, and comply with the injunctive ones after nearly three quarters. With the default
    operations encounters set the first time, plans and synthesis the second.

    Parameters
    ----------
    encounters_per_day
        Rate at which an agent observes another one in one behaviour; positive.
    plans_per_day
        Rate at which it makes a plan that involves the behaviour.
    syntheses_per_day
        Rate at which it looks through its norms once their utilities exceed the threshold.
    other_utility_entrepreneur, other_utility_ordinary
        Total utility of the agent's qualified norms for other behaviours; a constant, so that the model closes for one
        behaviour. An entrepreneur starts with five norms, four of them others. By default tipping brings an ordinary
        agent exactly to the threshold, and so to no synthesis.
    threshold
        Total utility above which norms are synthesised; 350 in [003] Appendix A.

    Raises
    ------
    InputError
        If a value is negative or not finite, or there are no encounters.

    Examples
    --------
    >>> rates = theory.norms.NormRates(other_utility_ordinary=200.0)
    >>> rates.synthesises("entrepreneur", utility=95), rates.synthesises("ordinary", utility=95)
    (True, False)
    """

    encounters_per_day: float = 160.0
    plans_per_day: float = 1.1
    syntheses_per_day: float = 1.0
    other_utility_entrepreneur: float = 340.0
    other_utility_ordinary: float = 270.0
    threshold: float = 350.0

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            number = real_number(name, value, **{"above" if name == "encounters_per_day" else "least": 0})
            object.__setattr__(self, name, number)

    def synthesises(self, type: str, utility: float) -> bool:
        """Whether a norm of this utility brings an agent of this type above the threshold."""
        others = {"entrepreneur": self.other_utility_entrepreneur, "ordinary": self.other_utility_ordinary}
        return others[one_of("type", type, others)] + real_number("utility", utility) > self.threshold


def rates_of(rates: NormRates | None) -> NormRates:
    """The rates, or the default ones; InputError for anything else."""
    if rates is not None and not isinstance(rates, NormRates):
        raise InputError(f"rates = {rates!r}: expected NormRates")
    return rates or NormRates()


def reaction_model(operations: xr.Dataset, behaviour: str | Behaviour, rates: NormRates | None = None) -> ReactionModel:
    """Reaction model of the spread of two opposing norms for one behaviour.

    An agent's state is (type, preference, level, standard), 36 in all; type and preference never change. Every rate is
    a product of operation probabilities, which are assumed independent. A norm that becomes part of an abstract one
    counts as planned by from then on.

    Parameters
    ----------
    operations
        Operation probabilities, as from `default_operations`.
    behaviour
        A name of `BEHAVIOURS`, or a `Behaviour`.
    rates
        Rates at which agents meet, plan and synthesise; by default `NormRates()`.

    Returns
    -------
    ReactionModel with the states' labels, time in days.

    Raises
    ------
    InputError
        If the operations are incomplete or out of range, or the behaviour is unknown.

    See Also
    --------
    meanfield.solve : its solution over time
    observables : observables of its compositions
    meanfield.fixed_points : its fixed points

    Examples
    --------
    >>> from theory import norms
    >>> model = norms.reaction_model(norms.default_operations(), "tipping")
    >>> len(model.states), model.states[0], model.time_unit
    (36, 'entrepreneur/for/none', 'day')

    The ten agents of [003] come to rest with the norm or with its opposite; a saddle lies between.

    >>> start = norms.initial_composition("tipping")
    >>> points = meanfield.fixed_points(model, initial=start, starts=1)
    >>> points["stability"].values, norms.observables(model, points["composition"])["reached"].values.round(2)
    (array(['unstable', 'stable', 'stable'], dtype='<U8'), array([[0.43, 0.57],
           [1.  , 0.  ],
           [0.  , 1.  ]]))
    """
    p, behaviour, rates = Chances(operations), behaviour_of(behaviour), rates_of(rates)
    kind = behaviour.kind

    def observes(channel: Channel, i: NormState) -> float:
        conflict, talk, think = p.conflict(i, channel.shown, kind), p.talks(i), p.thinks(i, channel.shown)
        if channel.event == "chat":
            return conflict * talk if i.upheld == channel.detail else 0.0
        if channel.event == "thought":
            return (1 - conflict) * think
        return conflict * (1 - talk) * (think if channel.event == "conflict thought" else 1 - think)

    def shows(channel: Channel, j: NormState) -> float:
        follows = p.acts(j)
        ways = {"normative": (j.standard, follows), "habit": (j.preference, 1 - follows)}
        sources = [channel.detail] if channel.detail in SOURCES else SOURCES
        return sum(ways[one][1] for one in sources if ways[one][0] == channel.shown)

    def learning(channel: Channel) -> np.ndarray:
        matrix = np.eye(len(NORM_STATES))
        for k, state in enumerate(NORM_STATES):
            for target, chance in learns(channel, state).items():
                matrix[k, k] -= chance
                matrix[k, INDEX[target]] += chance
        return matrix

    def learns(channel: Channel, state: NormState) -> dict[NormState, float]:
        """{next state: probability} of who hears of a standard in a chat, or thinks about it; the rest stays."""
        chat = channel.event == "chat"
        standard, source = (channel.detail, "chat") if chat else (channel.shown, channel.detail)
        held = state.holds(standard)
        if held == "same":
            return {}
        identified = p.identifies(source, kind, state.level == "informed" and state.standard == standard)
        passed = identified * math.prod(p.steps(state, standard, kind).values())
        if held == "abstract":
            return {state.at("complying", standard): passed}
        refused = {state.at("informed", standard): identified - passed} if held == "none" else {}
        return {state.at("qualified", standard): passed, **refused}

    alone = np.zeros((len(NORM_STATES), len(NORM_STATES)))
    for k, state in enumerate(NORM_STATES):
        if state.level == "qualified":
            plans = rates.plans_per_day * p("comply_in_plan", state.willing(state.standard))
            alone[k, INDEX[state.at("complying", state.standard)]] = plans
        if state.level in ("qualified", "complying") and rates.synthesises(state.type, behaviour.utility):
            synthesis = rates.syntheses_per_day * p("abstract")
            alone[k, INDEX[state.at("superseded", state.standard)]] = synthesis
    return ReactionModel(
        LABELS,
        [[observes(channel, i) for i in NORM_STATES] for channel in CHANNELS],
        [[shows(channel, j) for j in NORM_STATES] for channel in CHANNELS],
        [learning(channel) if "thought" in channel.event else None for channel in CHANNELS],
        [learning(channel) if channel.event == "chat" else None for channel in CHANNELS],
        alone,
        rates.encounters_per_day,
        "day",
    )


def observables(model: ReactionModel, composition: xr.DataArray | np.ndarray) -> xr.Dataset:
    """The panels of [003] Fig. 2 for a composition, from theory or a simulation.

    Parameters
    ----------
    model
        From `reaction_model`.
    composition
        Fractions of agents, dims (..., state); arrays have the state last, in the order of the model.

    Returns
    -------
    Dataset over the other dims of `composition` with `conflicts`, `thoughts` and `chats`, expected numbers per agent
    and day among infinitely many agents; and also over `standard`: `accepted` (qualified or complying), `complying`
    (complying, or superseded, as part of an abstract norm), `reached` (any of the three) and `informed`.

    Raises
    ------
    InputError
        If `reaction_model` did not make the model, or the composition lacks states or does not sum to 1.

    See Also
    --------
    meanfield.solve : compositions over time

    Examples
    --------
    At the start only the entrepreneurs comply, three agents in ten. Each agent finds 14 conflicts a day.

    >>> from theory import norms
    >>> model = norms.reaction_model(norms.default_operations(), "smoking")
    >>> seen = norms.observables(model, norms.initial_composition("smoking"))
    >>> float(seen["complying"].sel(standard="for")), round(float(seen["conflicts"]))
    (0.3, 14)
    """
    if not isinstance(model, ReactionModel) or list(model.states) != LABELS or len(model.alpha) != len(CHANNELS):
        raise InputError(f"model is a {type(model).__name__}: expected the result of theory.norms.reaction_model")
    x = _labelled(composition)
    off = np.abs(x.sum("state") - 1)
    if not (off <= 1e-6).all():
        raise InputError(f"composition misses a sum of 1 by {float(off.max()):.3g}: expected fractions of agents")
    sides = (xr.DataArray(side, {"state": LABELS}, ("channel", "state")) for side in (model.alpha, model.beta))
    observing, acting = (x.dot(side) for side in sides)
    result = xr.Dataset(coords={"standard": list(STANDARDS)})
    for name, channels in EVENTS.items():
        number = (observing * acting).isel(channel=list(channels)).sum("channel") * model.encounter_rate
        text = {"long_name": f"{name} per agent and {model.time_unit}", "units": f"1/{model.time_unit}"}
        result[name] = number.assign_attrs(text)
    for name, (levels, text) in SHARES.items():
        member = [[float(s.standard == one and s.level in levels) for one in STANDARDS] for s in NORM_STATES]
        select = xr.DataArray(member, {"state": LABELS}, ("state", "standard"))
        result[name] = x.dot(select).assign_attrs({"long_name": text, "units": "1"})
    return result


def _labelled(composition: xr.DataArray | np.ndarray) -> xr.DataArray:
    if not isinstance(composition, xr.DataArray):
        values = real_numbers(composition, "composition")
        dims = [*(f"dim_{k}" for k in range(values.ndim - 1)), "state"]
        composition = xr.DataArray(values, dims=dims if values.ndim else ())
    if "state" not in composition.dims:
        raise InputError(f"composition has dims {composition.dims}: expected state")
    ordered = in_order(composition, {"state": LABELS}, "composition")
    return ordered.assign_coords(state=LABELS).drop_vars("conserved_class", errors="ignore")
