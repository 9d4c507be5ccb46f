"""The operations of a norm society, answered by a language model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import real_number, whole_number
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._sampling import check_temperature
from policy_extraction.norms._asking import Asker
from policy_extraction.norms._prompts import NORMS_003, QUESTIONS, STANDARDS, NormPrompts
from policy_extraction.norms._replies import (
    ReplyError,
    parse_abstract,
    parse_norm,
    parse_norms,
    parse_text,
    parse_themes,
)


class NormOperations:
    """A language model that decides, speaks, thinks, plans and acts for the agents of a norm society.

    It is the `operations` of `validation.norms.simulate_society`. A yes/no operation is a question whose two answers
    are scored: a softmax over the two words at the temperature, averaged over both orders of the words, because small
    models prefer one place. The answer is drawn with this probability. A thought or a norm is written only if the
    answer to the question for one is yes, and a question about the text decides by which norms a plan goes, and which
    standard an action shows: it names a standard drawn at random, so a model that prefers an answer prefers no
    standard. An unusable text is refused as a whole, and the model is asked again and told what was wrong. Source:
    [003] Section 2; the prompts are ours.

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
        Raised by a call if no text of the model is usable, or a back end that lists only its most probable answers
        lists neither word of a question.

    Examples
    --------
    A model that says yes four times in five is asked whether Bob finds a smoker in conflict with his norm.

    >>> from policy_extraction.backends import Scores
    >>> from policy_extraction.norms import NormOperations
    >>> from theory.norms import AGENTS, BEHAVIOURS
    >>> class YesMan:
    ...     name, identity, provenance = "yes-man", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         n = len(prompts)
    ...         yield Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))
    >>> operations, bob, norms = NormOperations(YesMan()), AGENTS[7], [BEHAVIOURS["smoking"].norm("for")]
    >>> given = {"observation": "Sam Moore lights a cigarette.", "norms": norms}
    >>> operations("detect_conflict", bob, given, np.random.default_rng(1))
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

    def __call__(self, operation: str, agent: Any, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        """The answer to a question of `simulate_society`."""
        slots = {name: str(value) for name, value in given.items() if isinstance(value, (str, int))}
        slots |= {name: self.prompts.listed(given[name]) for name in ("norms", "informed") if name in given}
        if operation in QUESTIONS:
            return self._asker.decide(operation, agent, rng, **slots)
        return getattr(self, f"_{operation}")(agent, given, rng, **slots)

    def _create(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> list[dict]:
        """The agent's first norms: n written ones, or those in `created`."""
        if agent.name in self._created:
            return self._created[agent.name]
        n = whole_number("n", given["n"], 1, MANY)
        return self._asker.write("create", agent, partial(parse_norms, n=n), rng, items=n, **slots)

    def _talk(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> str:
        """The agent's words to its partner and the reply, a line each after the speaker's name."""
        partner = given["partner"]
        said = self._asker.write("talk", agent, parse_text, rng, **slots, partner=partner.name)
        reply = self._asker.write("reply", partner, parse_text, rng, partner=agent.name, text=said)
        return f"{agent.name}: {said}\n{partner.name}: {reply}"

    def _think(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> str | None:
        """The agent's thought about the observation, or None."""
        thinks = self._asker.decide("has_thought", agent, rng, **slots)
        return self._asker.write("think", agent, parse_text, rng, **slots) if thinks else None

    def _identify(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> dict | None:
        """The norm that a text expresses, or None. The model reads the agent's information, but not the observation."""
        found = self._asker.decide(f"identify_{given['source']}", agent, rng, **slots)
        return self._asker.write("identify", agent, parse_norm, rng, **slots) if found else None

    def _plan(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> dict:
        """A plan for the day, and the norms that it follows by one question each."""
        text, contents = self._asker.write("plan", agent, parse_text, rng, **slots), [n.content for n in given["norms"]]
        kept = [one for one in contents if self._asker.decide("plan_follows", agent, rng, content=one, plan=text)]
        return {"text": text, "follows": kept}

    def _act(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> dict:
        """The agent's action; it is normative if one of the norms that the plan follows asks for it."""
        behaviour, planned = given["behaviour"], [one for one in given["norms"] if one.content in given["follows"]]
        shows = {f"shows_{one}": behaviour.shows[one] for one in STANDARDS}
        slots["plan"] = given["plan"] or self.prompts.table["no_norms"]
        text = self._asker.write("act", agent, parse_text, rng, **slots, **shows)
        first, second = rng.permutation(STANDARDS).tolist()
        keeps = self._asker.decide("action_follows", agent, rng, content=behaviour.standards[first], action=text)
        listed = self.prompts.listed(planned)
        normative = bool(planned) and self._asker.decide("is_normative", agent, rng, norms=listed, action=text)
        return {"text": text, "shows": first if keeps else second, "normative": normative}

    def _classify(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> list:
        """The themes of the norms, with the contents of each theme's norms."""
        n, norms = len(given["norms"]), given["norms"]
        themes = self._asker.write("classify", agent, partial(parse_themes, n=n), rng, items=n, **slots)
        return [[theme, [norms[number].content for number in numbers]] for theme, numbers in themes]

    def _abstract(self, agent: Any, given: Mapping[str, Any], rng: np.random.Generator, **slots: str) -> list:
        """Content and kind of a general norm for the norms of a theme, and their weights in its utility."""
        n = len(given["norms"])
        norm = self._asker.write("abstract", agent, partial(parse_abstract, n=n), rng, items=n, **slots, n=str(n))
        return [norm["content"], norm["kind"], norm["weights"]]


def _checked(name: str, norms: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
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
