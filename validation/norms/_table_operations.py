"""The operations of a norm society as draws from a table of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from meanfield import InputError
from meanfield.toolbox import checked_methods, shown, whole_number
from theory.norms import (
    BEHAVIOURS,
    OPERATIONS,
    STANDARDS,
    Action,
    Behaviour,
    Information,
    NormAgent,
    NormRates,
    Observation,
    Plan,
    default_operations,
    validate_operations,
)
from theory.toolbox import LABELS, Norms, behaviours_of, behaviours_sha256, operations_sha256, rates_of


class Topic(NamedTuple):
    """The standard of a behaviour in a text of the table, and whether it is part of an abstract norm."""

    behaviour: Behaviour
    standard: str
    abstract: bool


@checked_methods(
    {
        **{"agent": "name type prefers", "partner": "name", "observation": "behaviour shows normative"},
        **{"norms": "content", "informed": "content", "information": "content kind", "behaviour": "name shows"},
        **{"plan": "follows", "rng": "random"},
    },
    listed=("norms", "informed"),
)
class TableOperations:
    """Operations of `simulate_society` that succeed with the probabilities of a table.

    For one behaviour, and with the same rates, the society is then the process of `theory.norms.reaction_model`: agents
    talk and think in the standards of the behaviours, as `Behaviour.standards` words them. With several behaviours each
    follows that model except for synthesis, which begins where the utilities of all norms exceed the threshold. An
    abstract norm has one norm of the table as its part, beside norms outside the table.

    Parameters
    ----------
    operations
        Operation probabilities; by default `default_operations()`.
    behaviours
        Names of `BEHAVIOURS`, or objects `Behaviour`; by default all.
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
        table = validate_operations(default_operations() if operations is None else operations)
        self.behaviours = behaviours_of(BEHAVIOURS if behaviours is None else behaviours)
        self._names = ", ".join(one.name for one in self.behaviours)
        self.rates = rates_of(rates)
        self.identity = f"table {operations_sha256(table)} of {behaviours_sha256(self.behaviours)}"
        self._chances: dict[str, Any] = {
            name: _nested(table[name].values, OPERATIONS[name].dims) for name in OPERATIONS
        }
        self._topics: dict[str, Topic] = {}  # by text
        self._shown: dict[tuple[str, str], Topic] = {}  # by what an observation shows
        for behaviour in self.behaviours:
            for standard in STANDARDS:
                self._shown[behaviour.name, standard] = Topic(behaviour, standard, False)
                for text, abstract in ((behaviour.standards[standard], False), (_general(behaviour, standard), True)):
                    if text in self._topics:
                        raise InputError(f"behaviours have the standard {text!r} twice: expected different texts")
                    self._topics[text] = Topic(behaviour, standard, abstract)

    def create(self, agent: NormAgent, n: int, rng: np.random.Generator) -> list[dict]:
        """The standards that the agent likes, one for each behaviour of the table, even if more are asked for."""
        if whole_number("n", n) < len(self.behaviours):
            raise InputError(f"n = {n}: expected at least {len(self.behaviours)} norms, one for each behaviour")
        for one in self.behaviours:
            if one.name not in agent.prefers:
                raise InputError(f"agents: {agent.name} prefers nothing in {one.name!r}: expected 'for' or 'against'")
        norms = [one.norm(agent.prefers[one.name]) for one in self.behaviours]
        return [{"content": norm.content, "kind": norm.kind, "utility": norm.utility} for norm in norms]

    def detect_conflict(self, agent: NormAgent, observation: Observation, norms: Norms, rng) -> bool:
        """By the kind of its norm, and whether this opposes the behaviour that it sees."""
        held = self._held(observation.behaviour, norms)
        if held is None:
            return False
        same = held.standard == observation.shows
        chance = self._chances["false_conflict"] if same else self._chances["detect_conflict"][held.behaviour.kind]
        if held.abstract:
            chance *= self._chances["detect_abstract"]
        return rng.random() < chance

    def decide_to_talk(self, agent: NormAgent, observation: Observation, norms: Norms, rng) -> bool:
        """By the type of the agent, and whether it likes the standard that it holds."""
        held = self._held(observation.behaviour, norms)
        if held is None:
            return False
        return rng.random() < self._chances["decide_to_talk"][agent.type][_willing(agent, held)]

    def talk(self, agent: NormAgent, partner: NormAgent, observation: Observation, norms: Norms, rng) -> str:
        """The standard that it holds, or would have the partner follow."""
        held = self._held(observation.behaviour, norms)
        if held is None:
            raise InputError(f"{agent.name} holds no norm for {observation.behaviour}: expected one to talk about")
        return held.behaviour.standards[held.standard]

    def think(self, agent: NormAgent, observation: Observation, norms: Norms, rng) -> str | None:
        """The standard that was seen, by the norms of the agent."""
        seen = self._seen(observation)
        if rng.random() < self._chances["generate_thought"][self._relation(seen, norms)]:
            return seen.behaviour.standards[seen.standard]
        return None

    def identify(
        self, agent: NormAgent, text: str, source: str, observation: Observation, informed: Norms, rng
    ) -> Information | None:
        """The norm in `text`; by its kind, and whether it was heard of before or seen in a norm or a habit."""
        topic = self._topic(text)
        kind = topic.behaviour.kind
        if source == "chat":
            last = self._held(topic.behaviour.name, informed[::-1])
            told = last is not None and last.standard == topic.standard
            chance = self._chances["identify_chat"][kind]["reminded" if told else "first"]
        else:
            chance = self._chances["identify_thought" if observation.normative else "identify_habit"][kind]
        if rng.random() < chance:
            return Information(text, kind, topic.behaviour.utility, text, source)
        return None

    def is_consistent(self, agent: NormAgent, information: Information, rng) -> bool:
        """The same for all norms. Abstract ones pass here and below, as `classify` has their probability."""
        return self._topic(information.content).abstract or rng.random() < self._chances["consistent"]

    def is_unique(self, agent: NormAgent, information: Information, norms: Norms, rng) -> bool:
        """By the norms of the agent."""
        topic = self._topic(information.content)
        return topic.abstract or rng.random() < self._chances["unique"][self._relation(topic, norms)]

    def is_type_right(self, agent: NormAgent, information: Information, rng) -> bool:
        """By the kind."""
        abstract = self._topic(information.content).abstract
        return abstract or rng.random() < self._chances["correct_type"][information.kind]

    def is_conflict_free(self, agent: NormAgent, information: Information, norms: Norms, rng) -> bool:
        """By the preferences and norms of the agent."""
        topic = self._topic(information.content)
        if topic.abstract:
            return True
        return rng.random() < self._chances["conflict_free"][_willing(agent, topic)][self._relation(topic, norms)]

    def plan(self, agent: NormAgent, norms: Norms, rng) -> Plan:
        """The norms it plans by, each by whether the agent likes it."""
        own = [norm.content for norm in norms if not self._topic(norm.content).abstract]
        chance = self._chances["comply_in_plan"]
        return Plan("", frozenset(one for one in own if rng.random() < chance[_willing(agent, self._topic(one))]))

    def act(self, agent: NormAgent, behaviour: Behaviour, norms: Norms, plan: Plan, rng) -> Action:
        """By the norm that it plans by or has as part of an abstract one, else by its preference."""
        shows, normative = agent.prefers[behaviour.name], False
        for norm in norms:
            topic = self._topic(norm.content)
            if topic.behaviour.name == behaviour.name and (topic.abstract or norm.content in plan.follows):
                operation = "comply_abstract" if topic.abstract else "comply_in_action"
                if rng.random() < self._chances[operation][_willing(agent, topic)]:
                    shows, normative = topic.standard, True
                break
        return Action(behaviour.shows[shows], shows, normative)

    def classify(self, agent: NormAgent, norms: Norms, rng) -> list[tuple[str, tuple[str, ...]]]:
        """Norms that become abstract, of those that are part of none, each as a theme of its own."""
        own = [norm.content for norm in norms if not self._topic(norm.content).abstract]
        return [(self._topic(one).behaviour.name, (one,)) for one in own if rng.random() < self._chances["abstract"]]

    def abstract(self, agent: NormAgent, theme: str, norms: Norms, rng) -> tuple[str, str, tuple[float, ...]]:
        """The general norm that has the one of the theme as its part."""
        topic = self._topic(norms[0].content)
        return _general(topic.behaviour, topic.standard), topic.behaviour.kind, (1.0,)

    def _topic(self, text: str) -> Topic:
        if not isinstance(text, str) or text not in self._topics:
            raise InputError(f"norm {shown(text)}: expected a standard of {self._names}")
        return self._topics[text]

    def _held(self, behaviour: str, norms: Norms) -> Topic | None:
        """The topic of the first norm for the behaviour."""
        for norm in norms:
            topic = self._topic(norm.content)
            if topic.behaviour.name == behaviour:
                return topic
        return None

    def _seen(self, observation: Observation) -> Topic:
        seen = self._shown.get((observation.behaviour, observation.shows))
        if seen is None:
            raise InputError(f"behaviour = {observation.behaviour!r}: expected one of {self._names}")
        return seen

    def _relation(self, topic: Topic, norms: Norms) -> str:
        """The relation of the qualified norms to a standard, a label of 'held'."""
        held = self._held(topic.behaviour.name, norms)
        if held is None:
            return "none"
        if held.standard != topic.standard:
            return "opposed"
        return "abstract" if held.abstract else "same"


def _willing(agent: NormAgent, topic: Topic) -> str:
    return "willing" if agent.prefers[topic.behaviour.name] == topic.standard else "unwilling"


def _general(behaviour: Behaviour, standard: str) -> str:
    return f"Keep to what is right in {behaviour.name}, among it: {behaviour.standards[standard]}"


def _nested(values: np.ndarray, dims: Sequence[str]) -> Any:
    """{label: {label: … probability}}, as deep as the dims; looked up faster than an array."""
    if not dims:
        return float(values)
    return {label: _nested(part, dims[1:]) for label, part in zip(LABELS[dims[0]], values, strict=True)}
