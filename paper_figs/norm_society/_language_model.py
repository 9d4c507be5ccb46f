"""The operations of a norm society, answered by a language model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import UnparsedError, is_number, real_number, shortened, whole_number
from policy_extraction._toolbox.json_replies import DECODER, ReplyError, is_text, shown
from policy_extraction.backends import Backend
from policy_extraction.measuring._yes_no import Asked, NeitherWordError, probe
from policy_extraction.norms import NORMS_003
from policy_extraction.norms._probe import check_arguments
from policy_extraction.norms._prompts import NormPrompts
from policy_extraction.prompts import Prompt
from theory.norms import NormAgent
from theory.toolbox import KINDS, STANDARDS

MAX_TOKENS = {
    **{"create": (0, 80), "talk": (60, 0), "reply": (60, 0), "think": (50, 0), "identify": (60, 0)},
    **{"classify": (20, 12), "abstract": (60, 8), "plan": (100, 0), "act": (40, 0)},
}
"""Most tokens of an answer: a fixed number, and more for each item of a list."""
SEEDS = 2**31 - 1000  # all servers take these
CUT = 120  # characters of an answer that an error repeats


class NormOperations:
    """A language model that decides, speaks, thinks, plans and acts for the agents of a norm society.

    It is the `operations` of `simulate_society`. A yes/no operation is a question whose two answers are scored: a
    softmax over the two words at the temperature, averaged over both orders of the words, because small models prefer
    one place. The answer is drawn with this probability. A thought or a norm is written only after a yes, and questions
    about the text decide by which norms a plan goes, and which standard an action shows: the model is asked about a
    random one. An unusable text is refused as a whole, and the model is asked again and told what was wrong. Source:
    [003] Section 2; the prompts are ours.

    Parameters
    ----------
    backend, prompts
        The model, and the prompts of `policy_extraction.norms.load_prompts`.
    temperature, writing_temperature
        Of the answers to questions, positive, and of texts; 0 always takes the most probable token.
    retries
        Most repetitions of a request for a text. Then, or if a back end lists neither word of a question, a call raises
        `policy_extraction.UnparsedError`.
    created
        {name of an entrepreneur: its first norms}, each with content, kind and utility. The model is not asked for
        these; many small models can't write a list of norms.

    Attributes
    ----------
    exchanges
        A dict for each question and each try of a text: `operation`, `agent`, `prompt` and `answer`. A question also
        has `user_no_first`, the user message with the words in the other order, `p_yes`, `captured_mass` (probability
        of the two words together) and `undecided` (width of the interval of `p_yes` if the back end only bounds it). A
        text also has `problem`, the reason of a refusal or ''.
    identity
        Text that changes with the model and the options; empty for a model that was given as an object.

    Examples
    --------
    A model that says yes four times in five is asked whether Bob finds a smoker in conflict with his norm.

    >>> from policy_extraction.backends import Scores
    >>> from paper_figs.norm_society import NormOperations
    >>> from paper_figs.norm_society._member import PersonalNorm
    >>> from theory.norms import AGENTS, BEHAVIOURS
    >>> class YesMan:
    ...     name, identity, provenance = "yes-man", "", {}
    ...     check = generate = tokens = lambda self, *asked, **options: None
    ...     def score(self, prompts, words):
    ...         n = len(prompts)
    ...         yield Scores(np.arange(n), np.log([[0.8, 0.2]] * n), np.zeros((n, 2), bool))
    >>> operations, bob, norms = NormOperations(YesMan()), AGENTS[7], [PersonalNorm.of(BEHAVIOURS["smoking"], "for")]
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
        self._backend, self._prompts, self._temperature = backend, prompts, temperature
        self._writing_temperature, self._retries = writing_temperature, whole_number("retries", retries, 0)
        self._created = {name: _checked(name, norms) for name, norms in (created or {}).items()}
        self._known: dict[Asked, dict[str, float]] = {}
        self.exchanges: list[dict[str, Any]] = []
        self.created_for = tuple(self._created)
        known = (backend.identity, prompts.sha256, temperature, writing_temperature, retries, self._created)
        self.identity = " ".join(map(str, known)) if backend.identity else ""

    def __call__(self, operation: str, agent: NormAgent, given: Mapping[str, Any], rng: np.random.Generator) -> Any:
        """The answer to a question of `simulate_society`."""
        slots = {name: str(value) for name, value in given.items() if isinstance(value, (str, int))}
        slots |= {name: self._prompts.listed(given[name]) for name in ("norms", "informed") if name in given}
        norms = given.get("norms", ())

        def decide(name: str, **more: str) -> bool:
            return self._decide(name, agent, rng, slots | more)

        def write(name: str, n: int = 0, who: NormAgent = agent, **more: str) -> Any:
            return self._write(name, who, rng, n, slots | more)

        match operation:
            case "create":
                return self._created[agent.name] if agent.name in self._created else write("create", given["n"])
            case "talk":
                partner, said = given["partner"], write("talk", partner=given["partner"].name)
                reply = write("reply", who=partner, partner=agent.name, text=said)
                return f"{agent.name}: {said}\n{partner.name}: {reply}"
            case "think":
                return write("think") if decide("has_thought") else None
            case "identify":  # by the agent's information, not by the observation
                return write("identify") if decide(f"identify_{given['source']}") else None
            case "plan":
                text = write("plan")
                kept = [n.content for n in norms if decide("plan_follows", content=n.content, plan=text)]
                return {"text": text, "follows": kept}
            case "act":
                behaviour, listed = given["behaviour"], self._prompts.listed
                shows = {f"shows_{one}": behaviour.shows[one] for one in STANDARDS}
                text = write("act", plan=given["plan"] or listed([]), **shows)
                # a model that prefers an answer prefers no standard
                first, second = rng.permutation(STANDARDS).tolist()
                keeps = decide("action_follows", content=behaviour.standards[first], action=text)
                planned = [norm for norm in norms if norm.content in given["follows"]]
                normative = bool(planned) and decide("is_normative", norms=listed(planned), action=text)
                return {"text": text, "shows": first if keeps else second, "normative": normative}
            case "classify":
                themes = write("classify", len(norms))
                return [[theme, [norms[number].content for number in numbers]] for theme, numbers in themes]
            case "abstract":
                norm = write("abstract", len(norms))
                return [norm["content"], norm["kind"], norm["weights"]]
        return decide(operation)

    def _decide(self, operation: str, agent: Any, rng: np.random.Generator, slots: Mapping[str, str]) -> bool:
        """Whether the operation is true, drawn with the model's probability; each question is measured once."""
        asked = self._prompts.question(operation, agent, **slots)
        if asked not in self._known:
            try:
                found = probe(self._backend, [asked], self._prompts.words, self._temperature)
                self._known[asked] = {name: column.item() for name, column in found._asdict().items()}
            except NeitherWordError as none:
                raise UnparsedError(str(none)) from None
        probed = self._known[asked]
        answer = "yes" if rng.random() < probed["p_yes"] else "no"
        self._keep(operation, agent, asked.yes_first, answer, user_no_first=asked.no_first.user, **probed)
        return self._prompts.is_true(operation, answer)

    def _write(
        self, operation: str, agent: NormAgent, rng: np.random.Generator, n: int, slots: Mapping[str, str]
    ) -> Any:
        """The model's answer, a list of n if any; UnparsedError if none of its tries is usable."""
        problem, text = "", ""
        fixed, each = MAX_TOKENS[operation]
        for _ in range(1 + self._retries):
            prompt = self._prompts.writing(operation, agent, problem, **{**slots, "n": str(n)})
            options = {"max_tokens": fixed + each * n, "seed": int(rng.integers(SEEDS))}
            (written,) = self._backend.generate([prompt], temperature=self._writing_temperature, **options)
            text = prompt.answer_prefix + written
            try:
                parsed, problem = PARSERS.get(operation, parse_text)(text, n), ""
            except ReplyError as bad:
                parsed, problem = None, str(bad)
            self._keep(operation, agent, prompt, text, problem=problem)
            if not problem:
                return parsed
        raise UnparsedError(
            f"{operation} of {agent.name}: none of {1 + self._retries} answers can be used; the last one was "
            f"{shortened(text, CUT)!r}: {problem}"
        )

    def _keep(self, operation: str, agent: Any, prompt: Prompt, answer: str, **more: Any) -> None:
        asked = {"system": prompt.system, "user": prompt.user, "answer_prefix": prompt.answer_prefix}
        told = {"operation": operation, "agent": agent.name, "prompt": asked, "answer": answer}
        self.exchanges.append(told | more)


def _checked(name: str, norms: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Given norms, checked by the rules for written ones."""
    try:
        return parse_norms(json.dumps([dict(norm) for norm in norms]), len(norms))
    except (ReplyError, TypeError, ValueError) as bad:
        raise InputError(f"created[{name!r}] = {norms!r}: {bad}") from None


# Valid replies: text, JSON or lines, for n items. A parser raises ReplyError for others.


def parse_text(text: str, n: int = 0) -> str:
    """The answer on one line."""
    if not is_text(text):
        raise ReplyError("it is empty, or holds something that is no character")
    return _line(text)


def parse_norm(text: str, n: int = 1) -> dict[str, Any]:
    """One norm, a JSON object with content, kind and utility."""
    return _norm(_json(text))


def parse_norms(text: str, n: int) -> list[dict[str, Any]]:
    """n norms with different contents, a JSON list."""
    rows = _json(text)
    if not isinstance(rows, list) or len(rows) != n:
        raise ReplyError(f"it is not a JSON list of {n} norms")
    norms = [_norm(row) for row in rows]
    contents = [norm["content"] for norm in norms]
    for content in contents:
        if contents.count(content) > 1:
            raise ReplyError(f"it has the content {shown(content)} twice")
    return norms


def parse_abstract(text: str, n: int) -> dict[str, Any]:
    """A general norm for n norms, a JSON object with content, kind and weights."""

    def fits(weights: Any) -> bool:
        return isinstance(weights, list) and len(weights) == n and all(is_number(w) and w > 0 for w in weights)

    return _object(_json(text), "weights", fits, f"a list of {n} positive numbers")


def parse_themes(text: str, n: int) -> list[tuple[str, list[int]]]:
    """The themes of n norms, with each theme's norms, from n lines 'number: theme'.

    Norms are numbered from 1 in the text and from 0 in the result. Case is ignored. Text after the last line is not
    read, except a theme too many.
    """
    themes: dict[str, list[int]] = {}
    lines = [line for line in text.splitlines() if line.strip()]
    for expected, line in enumerate(lines[:n], start=1):
        number, colon, theme = line.partition(":")
        if not colon or number.strip() != str(expected) or not is_text(theme):
            raise ReplyError(f"the line {shown(line)} is not {expected}, a colon and a theme")
        themes.setdefault(_line(theme).casefold(), []).append(expected - 1)
    if len(lines) < n or any(line.partition(":")[0].strip() == str(n + 1) for line in lines[n:]):
        raise ReplyError(f"it has {len(lines)} lines, expected one for each of {n} norms")
    return list(themes.items())


PARSERS = {"create": parse_norms, "identify": parse_norm, "classify": parse_themes, "abstract": parse_abstract}
"""Parsers of replies that are not texts."""


def _norm(row: Any) -> dict[str, Any]:
    row = _object(row, "utility", lambda value: is_number(value) and 1 <= value <= 100, "a number from 1 to 100")
    return row | {"utility": float(row["utility"])}


def _json(text: str) -> Any:
    """The JSON value that begins the answer; many models explain it in text behind."""
    try:
        return DECODER.raw_decode(text.lstrip())[0]
    except ReplyError:
        raise
    except (ValueError, RecursionError):
        raise ReplyError("it does not begin with JSON in full") from None


def _object(row: Any, number: str, fits: Callable[[Any], bool], expected: str) -> dict[str, Any]:
    """A JSON object with a content on one line, a kind and a number or numbers."""
    rules = {"content": (is_text, "text"), "kind": (KINDS.__contains__, " or ".join(KINDS)), number: (fits, expected)}
    if not isinstance(row, dict):
        raise ReplyError(f"{shown(row)} is not a JSON object")
    if set(row) != set(rules):
        raise ReplyError(f"the keys are {shown(list(row))}, expected {shown(list(rules))}")
    for name, (right, wanted) in rules.items():
        if not right(row[name]):
            raise ReplyError(f"{name} is {shown(row[name])}, expected {wanted}")
    return {name: row[name] for name in rules} | {"content": _line(row["content"])}


def _line(text: str) -> str:
    return " ".join(text.split())
