"""The operations of a norm society as draws from a table of probabilities."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import one_of, shown
from theory.norms import Behaviour, NormAgent, NormRates
from theory.toolbox import STANDARDS, Chances, NormState, PersonalNorm, behaviours_of, rates_of
from validation.norms._society import COMPLYING, texts_sha256


class Topic(NamedTuple):
    """The standard of a behaviour in a text of the table, and whether it is part of an abstract norm."""

    behaviour: Behaviour
    standard: str
    abstract: bool = False

    def willing(self, agent: NormAgent) -> str:
        """'willing' if the agent likes the standard, else 'unwilling'."""
        return "willing" if agent.prefers[self.behaviour.name] == self.standard else "unwilling"


class TableOperations:
    """Operations of `simulate_society` that succeed with the probabilities of a table.

    For one behaviour, and with the same rates, the society is then the process of `theory.norms.reaction_model`: agents
    talk and think in the standards of the behaviours, as `Behaviour.standards` words them. With several behaviours each
    follows that model except for synthesis, which begins where the utilities of all norms exceed the threshold. An
    abstract norm has one norm of the table as its part, beside norms outside the table.

    Parameters
    ----------
    operations
        Operation probabilities; by default `theory.norms.default_operations()`.
    behaviours
        Names of `theory.norms.BEHAVIOURS`, or objects `Behaviour`; by default all.
    rates
        Rates of the society unless it is given others. Their other utilities belong to norms outside the table.

    Attributes
    ----------
    identity
        Text that determines the answers.

    Raises
    ------
    InputError
        If the table is incomplete or out of range, there is no such behaviour, or two standards have the same text.

    Examples
    --------
    >>> rates = theory.norms.NormRates(encounters_per_day=20, plans_per_day=6)
    >>> decide = validation.norms.TableOperations(behaviours=["tipping"], rates=rates)
    >>> society = validation.norms.simulate_society(decide, behaviours=["tipping"], encounters=100, seed=1)
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
        self._named = {one.name: one for one in self.behaviours}
        self._chances = Chances(operations)
        self.identity = f"table {self._chances.sha256} of {texts_sha256(self.behaviours)}"
        self._topics: dict[str, Topic] = {}  # by text
        for one in (Topic(behaviour, standard) for behaviour in self.behaviours for standard in STANDARDS):
            text = one.behaviour.standards[one.standard]
            if text in self._topics:
                raise InputError(f"behaviours have the standard {text!r} twice: expected different texts")
            self._topics |= {text: one, _general(one): one._replace(abstract=True)}

    def __call__(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        """The answer to a question of `simulate_society`."""
        norms = [(norm.content, self._topic(norm.content)) for norm in given.get("norms", ())]
        own = [(text, topic) for text, topic in norms if not topic.abstract]
        match operation:
            case "create":  # what the agent likes, one for each behaviour of the table, even if more are asked for
                return self._created(agent, given["n"])
            case "identify":
                return self._identified(agent, given, rng)
            case "plan":
                chances = {text: self._chances("comply_in_plan", topic.willing(agent)) for text, topic in own}
                return {"text": "", "follows": [text for text, chance in chances.items() if rng.random() < chance]}
            case "act":
                behaviour = given["behaviour"]
                state = self._state(agent, behaviour, given["norms"], given["follows"])
                normative = state.level in COMPLYING and rng.random() < self._chances.acts(state)
                shows = state.standard if normative else state.preference
                return {"text": behaviour.shows[shows], "shows": shows, "normative": normative}
            case "classify":  # norms that become abstract, of those that are part of none, each a theme of its own
                chance = self._chances("abstract")
                return [[topic.behaviour.name, [text]] for text, topic in own if rng.random() < chance]
            case "abstract":  # the general norm that has the one of the theme as its part
                topic = norms[0][1]
                return [_general(topic), topic.behaviour.kind, [1.0]]
            case "detect_conflict" | "decide_to_talk" | "talk" | "think":
                return self._on_seeing(operation, agent, given, rng)
        topic = self._topic(given["content"])
        steps = self._chances.steps(
            self._state(agent, topic.behaviour, given.get("norms", ())), topic.standard, given["kind"]
        )
        return topic.abstract or rng.random() < steps[operation]  # `classify` has the probability of abstract ones

    def _created(self, agent: NormAgent, n: int) -> list[dict[str, Any]]:
        if n < len(self.behaviours):
            raise InputError(f"n = {n}: expected at least {len(self.behaviours)} norms, one for each behaviour")
        for one in self.behaviours:
            if one.name not in agent.prefers:
                raise InputError(f"agents: {agent.name} prefers nothing in {one.name!r}: expected 'for' or 'against'")
        return [_written(Topic(one, agent.prefers[one.name])) for one in self.behaviours]

    def _identified(self, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> dict | None:
        """The norm in a text; by its kind, and whether it was heard of before or seen in a norm or a habit."""
        topic, thought = self._topic(given["text"]), "normative" if given["normative"] else "habit"
        last = self._state(agent, topic.behaviour, given["informed"][::-1])
        source = "chat" if given["source"] == "chat" else thought
        chance = self._chances.identifies(source, topic.behaviour.kind, last.standard == topic.standard)
        return _written(topic) if rng.random() < chance else None

    def _on_seeing(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        shows, behaviour = given["shows"], self._named[one_of("behaviour", given["behaviour"], self._named)]
        state = self._state(agent, behaviour, given["norms"])
        if operation == "talk":
            return behaviour.standards[state.upheld]
        if operation == "think":
            return behaviour.standards[shows] if rng.random() < self._chances.thinks(state, shows) else None
        if not state.upheld:
            return False
        conflict = operation == "detect_conflict"
        chance = self._chances.conflict(state, shows, behaviour.kind) if conflict else self._chances.talks(state)
        return rng.random() < chance

    def _topic(self, text: object) -> Topic:
        if not isinstance(text, str) or text not in self._topics:
            raise InputError(f"norm {shown(text)}: expected a standard of {', '.join(self._named)}")
        return self._topics[text]

    def _state(
        self, agent: NormAgent, behaviour: Behaviour, norms: Iterable[PersonalNorm], follows: Collection[str] = ()
    ) -> NormState:
        """The agent's state with respect to a behaviour, by the first of the norms about it."""
        state = NormState(agent.type, agent.prefers[behaviour.name])
        for text, topic in ((norm.content, self._topic(norm.content)) for norm in norms):
            if topic.behaviour.name == behaviour.name:
                level = "superseded" if topic.abstract else "complying" if text in follows else "qualified"
                return state.at(level, topic.standard)
        return state


def _general(topic: Topic) -> str:
    name, standard = topic.behaviour.name, topic.behaviour.standards[topic.standard]
    return f"Keep to what is right in {name}, among it: {standard}"


def _written(topic: Topic) -> dict[str, Any]:
    norm = topic.behaviour.norm(topic.standard)
    return {"content": norm.content, "kind": norm.kind, "utility": norm.utility}
