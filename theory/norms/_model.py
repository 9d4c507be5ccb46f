"""The reaction model of one behaviour: what agents show, see, say, learn, plan and synthesise.

In an encounter the initiator observes the responder. Four chances make its channels: shows(j, a), that an agent in
state j acts by the standard a, by a norm or by habit; conflict(i, a), that an observer in i finds this in conflict with
its norm; talk(i), that it then speaks; and think(i, a), that it otherwise has a thought:

    chat(s, a)            [i upholds s] conflict(i, a) talk(i) · shows(j, a): the responder learns s;
    thought(a, source)    (1 - conflict(i, a)) think(i, a) · shows(j, a, source): the observer learns a;
    conflict thought      conflict(i, a) (1 - talk(i)) think(i, a) · shows(j, a, source): the same, after a conflict;
    conflict              conflict(i, a) (1 - talk(i)) (1 - think(i, a)) · shows(j, a): nothing is learnt.

Separate channels let conflicts, thoughts and chats be counted. Source: [003] Section 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.sparse import csr_array, lil_array

from meanfield import ReactionModel
from theory.norms._operations import Chances
from theory.norms._rates import NormRates, rates_of
from theory.norms._society import STANDARDS, Behaviour, behaviour_of
from theory.norms._states import INDEX, NORM_STATES, NormState

SOURCES = ("normative", "habit")


class Channel(NamedTuple):
    """One way in which an encounter goes.

    Attributes
    ----------
    event
        'chat', 'thought', 'conflict thought' or 'conflict'.
    shown
        The standard that the responder's behaviour follows.
    detail
        Of a chat, the standard it is about; of a thought, whether the behaviour is 'normative' or a 'habit'; else ''.
    """

    event: str
    shown: str
    detail: str = ""


CHANNELS = (
    *(Channel("chat", a, s) for a in STANDARDS for s in STANDARDS),
    *(Channel(event, a, source) for event in ("thought", "conflict thought") for a in STANDARDS for source in SOURCES),
    *(Channel("conflict", a) for a in STANDARDS),
)


def reaction_model(operations: xr.Dataset, behaviour: str | Behaviour, rates: NormRates | None = None) -> ReactionModel:
    """How the two opposing norms for one behaviour spread, as a reaction model.

    An agent's state is (type, preference, level, standard), 36 in all (`NORM_STATES`); type and preference never
    change. Every rate is a product of operation probabilities, which are assumed independent. A norm that becomes part
    of an abstract one counts as planned by from then on.

    Parameters
    ----------
    operations
        Operation probabilities, as from `default_operations`.
    behaviour
        A name of `BEHAVIOURS`, or a `Behaviour`.
    rates
        How often agents meet, plan and synthesise; by default `NormRates()`.

    Returns
    -------
    ReactionModel with the states' labels and `CHANNELS`, time in days.

    Raises
    ------
    InputError
        If the operations are incomplete or out of range, or the behaviour is unknown.

    See Also
    --------
    emergence : its solution
    fixed_points : its fixed points

    Examples
    --------
    >>> from theory.norms import default_operations, reaction_model
    >>> model = reaction_model(default_operations(), "smoking")
    >>> len(model.states), model.states[0], model.time_unit
    (36, 'entrepreneur/for/none', 'day')
    """
    return _Builder(Chances(operations), behaviour_of(behaviour), rates_of(rates)).model()


class _Builder(NamedTuple):
    chances: Chances
    behaviour: Behaviour
    rates: NormRates

    def model(self) -> ReactionModel:
        chats = [channel.event == "chat" for channel in CHANNELS]
        thoughts = ["thought" in channel.event for channel in CHANNELS]
        return ReactionModel(
            [state.label for state in NORM_STATES],
            [[self.observer(channel, i) for i in NORM_STATES] for channel in CHANNELS],
            [[self.actor(channel, j) for j in NORM_STATES] for channel in CHANNELS],
            [self.learning(c) if learns else None for c, learns in zip(CHANNELS, thoughts, strict=True)],
            [self.learning(c) if learns else None for c, learns in zip(CHANNELS, chats, strict=True)],
            self.alone(),
            self.rates.encounters_per_day,
            "day",
        )

    def shows(self, state: NormState) -> dict[tuple[str, str], float]:
        """{(standard, source): probability} of the acts seen of an agent in this state."""
        operation = {"complying": "comply_in_action", "superseded": "comply_abstract"}.get(state.level)
        follows = self.chances(operation, state.willing(state.standard)) if operation else 0.0
        return {(state.standard, "normative"): follows, (state.preference, "habit"): 1 - follows}

    def conflict(self, state: NormState, shown: str) -> float:
        if not state.upheld:
            return 0.0
        seen = self.chances("detect_abstract") if state.level == "superseded" else 1.0
        if state.upheld == shown:
            return seen * self.chances("false_conflict")
        return seen * self.chances("detect_conflict", self.behaviour.kind)

    def observer(self, channel: Channel, state: NormState) -> float:
        """α of the channel."""
        conflict = self.conflict(state, channel.shown)
        talk = self.chances("decide_to_talk", state.type, state.willing(state.upheld))
        think = self.chances("generate_thought", state.holds(channel.shown))
        if channel.event == "chat":
            return conflict * talk if state.upheld == channel.detail else 0.0
        if channel.event == "thought":
            return (1 - conflict) * think
        return conflict * (1 - talk) * (think if channel.event == "conflict thought" else 1 - think)

    def actor(self, channel: Channel, state: NormState) -> float:
        """β of the channel."""
        shows = self.shows(state)
        sources = [channel.detail] if channel.detail in SOURCES else SOURCES
        return sum(shows.get((channel.shown, source), 0.0) for source in sources)

    def learning(self, channel: Channel) -> csr_array:
        """Moves of an agent who hears of a standard in a chat, or thinks about it."""
        standard = channel.detail if channel.event == "chat" else channel.shown
        matrix = lil_array((len(NORM_STATES), len(NORM_STATES)))
        for k, state in enumerate(NORM_STATES):
            moves = self.learns(state, standard, self.identifies(channel, state))
            matrix[k, k] = 1 - sum(moves.values())
            for target, chance in moves.items():
                matrix[k, INDEX[target]] += chance
        return csr_array(matrix)

    def identifies(self, channel: Channel, state: NormState) -> float:
        kind = self.behaviour.kind
        if channel.event == "chat":
            told = state.level == "informed" and state.standard == channel.detail
            return self.chances("identify_chat", kind, "reminded" if told else "first")
        return self.chances("identify_thought" if channel.detail == "normative" else "identify_habit", kind)

    def learns(self, state: NormState, standard: str, identified: float) -> dict[NormState, float]:
        """{next state: probability} once `standard` may be identified; the rest stays."""
        held = state.holds(standard)
        if held == "same":
            return {}
        passed = identified * self.chances.check(self.behaviour.kind, held, state.willing(standard))
        if held == "abstract":
            return {state.at("complying", standard): passed}
        moves = {state.at("qualified", standard): passed}
        if held == "none":
            moves[state.at("informed", standard)] = identified - passed
        return moves

    def alone(self) -> np.ndarray:
        """Rates of planning by a qualified norm, and of synthesis."""
        S = np.zeros((len(NORM_STATES), len(NORM_STATES)))
        for k, state in enumerate(NORM_STATES):
            if state.level not in ("qualified", "complying"):
                continue
            if state.level == "qualified":
                plans = self.rates.plans_per_day * self.chances("comply_in_plan", state.willing(state.standard))
                S[k, INDEX[state.at("complying", state.standard)]] = plans
            if self.rates.synthesises(state.type, self.behaviour.utility):
                synthesis = self.rates.syntheses_per_day * self.chances("abstract")
                S[k, INDEX[state.at("superseded", state.standard)]] = synthesis
        return S
