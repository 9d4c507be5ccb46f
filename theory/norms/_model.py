"""The reaction model of one behaviour: what agents show, see, say, learn, plan and synthesise.

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
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield import ReactionModel
from theory.norms._operations import Chances
from theory.norms._rates import NormRates, rates_of
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
