"""The operations of a norm society, answered by a language model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import checked_methods, real_number, whole_number
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.norms._asking import Asker
from policy_extraction.norms._cells import STANDARDS
from policy_extraction.norms._objects import Action, Information, Plan
from policy_extraction.norms._prompt_file import NORMS_003
from policy_extraction.norms._prompts import NormPrompts
from policy_extraction.norms._replies import (
    ReplyError,
    WrittenNorm,
    parse_abstract,
    parse_norm,
    parse_norms,
    parse_text,
    parse_themes,
)

SOURCES = ("chat", "thought")


@checked_methods(
    {
        **{"agent": "name description type", "partner": "name description type", "observation": "text"},
        **{"norms": "content kind", "informed": "content kind", "information": "content kind text"},
        **{"behaviour": "shows standards", "plan": "text follows", "rng": "random"},
    },
    listed=("norms", "informed"),
)
class NormOperations:
    """A language model that decides, speaks, thinks, plans and acts for the agents of a norm society.

    A yes/no operation is a question whose two answers are scored: a softmax over the two words at the temperature,
    averaged over both orders of the words, because small models prefer one place. The answer is drawn with this
    probability. `think` and `identify` first ask whether there is a thought or a norm; only then the model writes it.
    An unusable text is refused as a whole, and the model is asked again and told what was wrong. Source: [003] Section
    2; the prompts are ours.

    Parameters
    ----------
    backend
        The model.
    prompts
        The prompts.
    temperature
        Temperature of the answers to questions, positive.
    writing_temperature
        Temperature of texts; 0 always takes the most probable token.
    retries
        Most repetitions of a request for a text.
    created
        {name of an entrepreneur: its first norms}, each with content, kind and utility. The model is not asked for
        these; many small models can't write a list of norms.

    Attributes
    ----------
    exchanges
        A dict for each question and each try of a text, for a log: `operation`, `agent` (the name), `prompt` (system,
        user, answer_prefix) and `answer`. A question also has `user_no_first` (the user message with the words in the
        other order), `p_yes`, `captured_mass` (probability of the two words together) and `undecided` (width of the
        interval of `p_yes` if the back end only bounds it); its answer is 'yes' or 'no'. A text also has `problem`, the
        reason of a refusal or ''. A caller may empty the list.
    created_for
        The names in `created`.
    identity
        Text that changes with the model and the options. It is empty for a model that was given as an object; a society
        then keeps no log.

    Raises
    ------
    InputError
        If an argument is not as described.
    UnparsedError
        Raised by the methods if no text of the model is usable, or a back end that lists only its most probable answers
        lists neither word of a question.

    Examples
    --------
    A model that says yes four times in five is asked whether Bob finds a smoker in conflict with his norm.

    >>> from policy_extraction.backends import Scores
    >>> from policy_extraction.norms import NormOperations
    >>> from theory.norms import AGENTS, Observation, behaviour_of
    >>> class YesMan:
    ...     name, identity, provenance = "yes-man", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         n = len(prompts)
    ...         yield Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))
    >>> operations, bob, norms = NormOperations(YesMan()), AGENTS[7], [behaviour_of("smoking").norm("for")]
    >>> seen = Observation("Sam Moore lights a cigarette.", "Sam Moore", "smoking", "against", normative=False)
    >>> operations.detect_conflict(bob, seen, norms, np.random.default_rng(1))
    True
    >>> operations.exchanges[0]["answer"], round(operations.exchanges[0]["p_yes"], 3)
    ('yes', 0.8)
    """

    def __init__(
        self,
        backend: Backend,
        prompts: NormPrompts = NORMS_003,
        *,
        temperature: float = 1.0,
        writing_temperature: float = 0.5,
        retries: int = 3,
        created: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        check_arguments(backend, prompts, temperature)
        writing_temperature = real_number("writing_temperature", writing_temperature, least=0)
        if created is not None and not isinstance(created, Mapping):
            raise InputError(f"created = {created!r}: expected norms by the names of agents")
        whole_number("retries", retries, 0, MANY)
        self.prompts = prompts
        self._asker = Asker(backend, prompts, temperature, writing_temperature, retries)
        self._created = {name: _checked(name, norms) for name, norms in (created or {}).items()}
        self.created_for = tuple(self._created)
        known = (backend.identity, prompts.sha256, temperature, writing_temperature, retries, self._created)
        self.identity = " ".join(map(str, known)) if backend.identity else ""

    @property
    def exchanges(self) -> list[dict[str, Any]]:
        """All questions and answers so far."""
        return self._asker.exchanges

    def create(self, agent: Any, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
        """The agent's first norms, with content, kind and utility: n written ones, or those in `created`."""
        whole_number("n", n, 1, MANY)
        if agent.name in self._created:
            return [norm._asdict() for norm in self._created[agent.name]]
        written = self._asker.write("create", agent, partial(parse_norms, n=n), rng, items=n, n=str(n))
        return [norm._asdict() for norm in written]

    def detect_conflict(self, agent: Any, observation: Any, norms: Any, rng: np.random.Generator) -> bool:
        """Whether the observation breaks one of the agent's norms."""
        return self._decide("detect_conflict", agent, rng, norms, observation=observation.text)

    def decide_to_talk(self, agent: Any, observation: Any, norms: Any, rng: np.random.Generator) -> bool:
        """Whether the agent talks about an observation that breaks one of its norms."""
        return self._decide("decide_to_talk", agent, rng, norms, observation=observation.text)

    def talk(self, agent: Any, partner: Any, observation: Any, norms: Any, rng: np.random.Generator) -> str:
        """The agent's words to its partner and the reply, a line each after the speaker's name."""
        listed = self.prompts.listed(norms)
        said = self._text("talk", agent, rng, norms=listed, observation=observation.text, partner=partner.name)
        reply = self._text("reply", partner, rng, partner=agent.name, text=said)
        return f"{agent.name}: {said}\n{partner.name}: {reply}"

    def think(self, agent: Any, observation: Any, norms: Any, rng: np.random.Generator) -> str | None:
        """The agent's thought about the observation, or None."""
        if not self._decide("has_thought", agent, rng, norms, observation=observation.text):
            return None
        return self._text("think", agent, rng, norms=self.prompts.listed(norms), observation=observation.text)

    def identify(
        self, agent: Any, text: str, source: str, observation: Any, informed: Any, rng: np.random.Generator
    ) -> Information | None:
        """The norm that a conversation ('chat') or a thought ('thought') expresses, or None.

        The model reads the text and the agent's information, but not the observation.
        """
        if source not in SOURCES:
            raise InputError(f"source = {source!r}: expected one of {', '.join(SOURCES)}")
        known = self.prompts.listed(informed)
        if not self._asker.decide(f"identify_{source}", agent, rng, text=text, informed=known):
            return None
        norm = self._asker.write("identify", agent, parse_norm, rng, text=text, source=source, informed=known)
        return Information(norm.content, norm.kind, norm.utility, text, source)

    def is_consistent(self, agent: Any, information: Any, rng: np.random.Generator) -> bool:
        """Whether the information agrees with its text."""
        slots = {"content": information.content, "text": information.text}
        return self._asker.decide("is_consistent", agent, rng, **slots)

    def is_unique(self, agent: Any, information: Any, norms: Any, rng: np.random.Generator) -> bool:
        """Whether none of the norms means the same."""
        return self._decide("is_unique", agent, rng, norms, content=information.content)

    def is_type_right(self, agent: Any, information: Any, rng: np.random.Generator) -> bool:
        """Whether the kind of the information is right."""
        slots = {"content": information.content, "kind": information.kind}
        return self._asker.decide("is_type_right", agent, rng, **slots)

    def is_conflict_free(self, agent: Any, information: Any, norms: Any, rng: np.random.Generator) -> bool:
        """Whether the information opposes none of the norms."""
        return self._decide("is_conflict_free", agent, rng, norms, content=information.content)

    def plan(self, agent: Any, norms: Any, rng: np.random.Generator) -> Plan:
        """A plan for the day, and the norms that it follows by one question each."""
        text = self._text("plan", agent, rng, norms=self.prompts.listed(norms))
        kept = [
            norm.content
            for norm in norms
            if self._asker.decide("plan_follows", agent, rng, content=norm.content, plan=text)
        ]
        return Plan(text, frozenset(kept))

    def act(self, agent: Any, behaviour: Any, norms: Any, plan: Any, rng: np.random.Generator) -> Action:
        """The agent's action about the behaviour.

        A question about the text decides its standard. It names a standard drawn at random, so a model that prefers an
        answer prefers no standard. The action is normative if one of the norms that the plan follows asks for it.
        """
        shows = {f"shows_{one}": behaviour.shows[one] for one in STANDARDS}
        listed, planned = self.prompts.listed(norms), [norm for norm in norms if norm.content in plan.follows]
        text = self._text("act", agent, rng, norms=listed, plan=plan.text or self.prompts.no_norms, **shows)
        first, second = rng.permutation(STANDARDS).tolist()
        slots = {"content": behaviour.standards[first], "action": text}
        shown = first if self._asker.decide("action_follows", agent, rng, **slots) else second
        normative = bool(planned) and self._decide("is_normative", agent, rng, planned, action=text)
        return Action(text, shown, normative)

    def classify(self, agent: Any, norms: Any, rng: np.random.Generator) -> list[tuple[str, tuple[str, ...]]]:
        """The themes of the norms, with the contents of each theme's norms."""
        parse = partial(parse_themes, n=len(norms))
        themes = self._asker.write("classify", agent, parse, rng, items=len(norms), norms=self.prompts.listed(norms))
        return [(theme, tuple(norms[number].content for number in numbers)) for theme, numbers in themes]

    def abstract(
        self, agent: Any, theme: str, norms: Any, rng: np.random.Generator
    ) -> tuple[str, str, tuple[float, ...]]:
        """Content and kind of a general norm for the norms of a theme, and their weights in its utility."""
        slots = {"theme": theme, "norms": self.prompts.listed(norms), "n": str(len(norms))}
        parse = partial(parse_abstract, n=len(norms))
        norm = self._asker.write("abstract", agent, parse, rng, items=len(norms), **slots)
        return norm.content, norm.kind, norm.weights

    def _decide(self, name: str, agent: Any, rng: np.random.Generator, norms: Any, **slots: str) -> bool:
        return self._asker.decide(name, agent, rng, norms=self.prompts.listed(norms), **slots)

    def _text(self, name: str, agent: Any, rng: np.random.Generator, **slots: str) -> str:
        return self._asker.write(name, agent, parse_text, rng, **slots)


def _checked(name: str, norms: Sequence[Mapping[str, Any]]) -> tuple[WrittenNorm, ...]:
    """Given norms, checked by the rules for written ones."""
    try:
        return parse_norms(json.dumps([dict(norm) for norm in norms]), len(norms))
    except (ReplyError, TypeError, ValueError) as bad:
        raise InputError(f"created[{name!r}] = {norms!r}: {bad}") from None


def check_arguments(backend: object, prompts: object, temperature: float) -> None:
    """InputError for a wrong back end, wrong prompts or a wrong temperature."""
    if not isinstance(backend, Backend):
        raise InputError(f"backend = {backend!r}: expected a Backend, as open_backend returns one")
    if not isinstance(prompts, NormPrompts):
        raise InputError(f"prompts = {prompts!r}: expected NormPrompts, as load_prompts returns them")
    check_temperature(temperature)
