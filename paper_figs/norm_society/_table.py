"""The operations of a norm society as draws from a table of probabilities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import shown
from paper_figs.norm_society._member import PersonalNorm
from theory.norms import Behaviour, NormAgent, NormRates
from theory.toolbox import STANDARDS, Chances, NormState, behaviours_of, rates_of


class Topic(NamedTuple):
    """The standard of a behaviour in a text of the table, and whether it is part of an abstract norm."""

    behaviour: Behaviour
    standard: str
    abstract: bool = False

    @property
    def text(self) -> str:
        """The norm in words."""
        said = self.behaviour.standards[self.standard]
        return f"Keep to what is right in {self.behaviour.name}, among it: {said}" if self.abstract else said

    def written(self) -> dict[str, Any]:
        """The norm as an answer."""
        return {"content": self.text, "kind": self.behaviour.kind, "utility": self.behaviour.utility}


class TableOperations:
    """Operations of `simulate_society` that succeed with the probabilities of a table.

    For one behaviour, and with the same rates, the society is then the process of `theory.norms.reaction_model`: agents
    talk and think in the standards of the behaviours, as `Behaviour.standards` words them. With several behaviours each
    follows that model except for synthesis, which begins where the utilities of all norms exceed the threshold. An
    abstract norm has one norm of the table as its part, beside norms outside the table.

    `operations` are probabilities, by default `theory.norms.default_operations()`; `behaviours` are by default all.
    Other utilities in `rates` belong to norms outside the table.

    Examples
    --------
    >>> from paper_figs.norm_society import TableOperations, simulate_society
    >>> rates = theory.norms.NormRates(encounters_per_day=20, plans_per_day=6)
    >>> decide = TableOperations(behaviours=["tipping"], rates=rates)
    >>> society = simulate_society(decide, behaviours=["tipping"], encounters=100, seed=1)
    >>> society["accepted"].isel(event=[0, -1]).sel(behaviour="tipping", standard="for").values
    array([0.2, 0.6])
    """

    def __init__(
        self,
        operations: xr.Dataset | None = None,
        behaviours: Sequence[str | Behaviour] | None = None,
        rates: NormRates | None = None,
    ) -> None:
        self.behaviours, self.rates = behaviours_of(behaviours), rates_of(rates)
        self._chances = Chances(operations)
        topics = [Topic(b, s, abstract) for b in self.behaviours for s in STANDARDS for abstract in (False, True)]
        self._topics = {one.text: one for one in topics}
        if len(self._topics) < len(topics):
            raise InputError(
                f"behaviours = {[one.name for one in self.behaviours]}: expected different texts of standards"
            )

    def __call__(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        """The answer to a question of `simulate_society`."""
        p, norms = self._chances, [self._topic(norm.content) for norm in given.get("norms", ())]
        own = [topic for topic in norms if not topic.abstract]
        match operation:
            case "create":  # what the agent likes, one for each behaviour of the table, even if more are asked for
                return [Topic(b, agent.prefers[b.name]).written() for b in self.behaviours if b.name in agent.prefers]
            case "identify":  # by its kind, and whether it was heard of before or seen in a norm or a habit
                topic, thought = self._topic(given["text"]), "normative" if given["normative"] else "habit"
                told = self._state(agent, topic.behaviour, given["informed"][::-1]).standard == topic.standard
                source = "chat" if given["source"] == "chat" else thought
                return topic.written() if rng.random() < p.identifies(source, topic.behaviour.kind, told) else None
            case "plan":
                likes = {topic.text: self._state(agent, topic.behaviour, ()).willing(topic.standard) for topic in own}
                follows = [text for text, willing in likes.items() if rng.random() < p("comply_in_plan", willing)]
                return {"text": "", "follows": follows}
            case "act":
                behaviour = given["behaviour"]
                state = self._state(agent, behaviour, given["norms"], given["follows"])
                normative = state.level in ("complying", "superseded") and rng.random() < p.acts(state)
                shows = state.standard if normative else state.preference
                return {"text": behaviour.shows[shows], "shows": shows, "normative": normative}
            case "classify":  # norms that become abstract, of those that are part of none, each a theme of its own
                return [[topic.behaviour.name, [topic.text]] for topic in own if rng.random() < p("abstract")]
            case "abstract":  # the general norm that has the one of the theme as its part
                return [norms[0]._replace(abstract=True).text, norms[0].behaviour.kind, [1.0]]
            case "detect_conflict" | "decide_to_talk" | "talk" | "think":
                behaviour = next(one for one in self.behaviours if one.name == given["behaviour"])
                state, shows = self._state(agent, behaviour, given["norms"]), given["shows"]
                if operation == "talk":
                    return behaviour.standards[state.upheld]
                if operation == "think":
                    return behaviour.standards[shows] if rng.random() < p.thinks(state, shows) else None
                if not state.upheld:
                    return False
                talks, conflict = p.talks(state), p.conflict(state, shows, behaviour.kind)
                return rng.random() < (talks if operation == "decide_to_talk" else conflict)
        topic = self._topic(given["content"])
        steps = p.steps(self._state(agent, topic.behaviour, given.get("norms", ())), topic.standard, given["kind"])
        return topic.abstract or rng.random() < steps[operation]  # `classify` has the probability of abstract ones

    def _topic(self, text: str) -> Topic:
        if text not in self._topics:
            names = ", ".join(one.name for one in self.behaviours)
            raise InputError(f"norm {shown(text)}: expected a standard of {names}")
        return self._topics[text]

    def _state(
        self, agent: NormAgent, behaviour: Behaviour, norms: Iterable[PersonalNorm], follows: Collection[str] = ()
    ) -> NormState:
        """The agent's state with respect to a behaviour, by the first of the norms about it."""
        state = NormState(agent.type, agent.prefers[behaviour.name])
        for topic in (self._topic(norm.content) for norm in norms):
            if topic.behaviour.name == behaviour.name:
                level = "superseded" if topic.abstract else "complying" if topic.text in follows else "qualified"
                return state.at(level, topic.standard)
        return state
