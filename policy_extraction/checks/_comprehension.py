"""Questions about the prompt with known answers."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import xarray as xr

from meanfield.toolbox import LARGEST_SEED, instance, labelled, real_number, stamp, whole_number, word_coords
from policy_extraction._toolbox.texts import MANY
from policy_extraction.backends._backend import Backend
from policy_extraction.measuring._spoken import derived_seed
from policy_extraction.prompts._games import checked_game
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Prompt, Template, longest, prompt_options
from policy_extraction.prompts._toml import packaged_toml

MOST_AGENTS = 10_000
# With quotation marks and the end of the value: a number has a token a digit, a word up to four.
TOKENS_OF_A_VALUE = 10
TOKENS_IN_A_LIST = 6
PLAYERS = ("Player 1", "Player 2")
NUMBER = re.compile(r"[+-]?\d+")
# The answer format ends a value with a semicolon; a brace, a new line or the second key of a dict are as clear.
END_OF_VALUE = re.compile(r"[;}\n]|,\s*['\"]?reason")
QUOTATION_MARKS = "'\""

Memory = Sequence[tuple[str, str]]
Answer = int | str | frozenset[str]


class Kind(NamedTuple):
    """A row of [004] Table S2: name, category (Rules, Time, State), and the question with slots."""

    name: str
    category: str
    text: str


class Asked(NamedTuple):
    """A question as the agent reads it, and the right answer: a number, a word, or a set of words."""

    kind: str
    text: str
    answer: Answer


KINDS = tuple(Kind(name, **row) for name, row in packaged_toml("comprehension_004.toml").items())


def questions_about(memory: Memory, words: Sequence[str], payoffs: Payoffs) -> Iterator[Asked]:
    """All questions to an agent with this memory, kind by kind; Player 1 is the agent, Player 2 its partners."""
    texts = {kind.name: string.Template(kind.text) for kind in KINDS}

    def ask(kind: str, answer: Answer, **slots: object) -> Asked:
        return Asked(kind, texts[kind].substitute(slots), answer)

    points = [payoffs.of(*interaction) for interaction in memory]
    possible = (payoffs.success, payoffs.failure)
    yield ask("min_max", min(possible), lowest="lowest", player=PLAYERS[0])
    yield ask("min_max", max(possible), lowest="highest", player=PLAYERS[0])
    yield ask("actions", frozenset(words), player=PLAYERS[0])
    for (player, other), word, word_of_other in product((PLAYERS, PLAYERS[::-1]), words, words):
        pair = {"player": player, "other": other, "word": word, "word_of_other": word_of_other}
        yield ask("payoff", payoffs.of(word, word_of_other), **pair)
    yield ask("round", len(memory) + 1)
    for i, player in enumerate(PLAYERS):
        for number, interaction in enumerate(memory, start=1):
            yield ask("action_i", interaction[i], player=player, round=number)
            yield ask("points_i", points[number - 1], player=player, round=number)
        for word in words:
            yield ask("#actions", sum(said[i] == word for said in memory), player=player, word=word)
        yield ask("#points", sum(points), player=player)


def parse(text: str, like: Answer) -> Answer | None:
    """The value of an answer, or None unless it has the form of `like`.

    The text up to the end of the value must be a whole number, a word, or a list of words separated by commas, with or
    without brackets. Each may be quoted.
    """
    end = END_OF_VALUE.search(text)
    if end is None:
        return None
    value = text[: end.start()].strip()
    if isinstance(like, frozenset):
        listed = value.removeprefix("[").removesuffix("]").split(",")
        words = [_bare(word) for word in listed]
        return frozenset(words) if len(set(words)) == len(words) else None
    value = _bare(value)
    if isinstance(like, str):
        return value
    return int(value) if NUMBER.fullmatch(value) else None


def _bare(text: str) -> str:
    """A value without the quotation marks around it."""
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in QUOTATION_MARKS
    return text[1:-1] if quoted else text


def comprehension(
    backend: Backend,
    words: Sequence[str],
    memory_length: int = 5,
    n: int = 100,
    seed: int = 0,
    *,
    per_kind: int | None = None,
    temperature: float = 0.0,
    template: Template = NAMING_GAME,
    payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
) -> xr.Dataset:
    """The share of questions about its prompt that a model answers correctly (meta-prompting).

    n agents have random memories: their length is uniform from 1 to H, their words are independent and uniform, and the
    presented order is uniform. Each agent is asked all questions of the eight kinds of [004] Table S2. A prompt has the
    system message of the game, the question as the user message, and the beginning of an answer in the format that the
    system message asks for. The model writes the rest. An answer is correct if it keeps to the format and its value
    follows from the memory. Source: [004] SI "Meta-Prompting", Fig. S1.

    Parameters
    ----------
    backend, words, memory_length, template, payoffs
        As in `policy_extraction.lazy_policy`.
    n
        Number of agents, ≥ 2.
    seed
        0 to 2^63 - 1.
    per_kind
        Questions of each kind for an agent, drawn at random; None for all, 6 + 2(W² + W + 2h) with h remembered rounds
        (38 for two words and h = 5).
    temperature
        Temperature of the generation; 0 always takes the most probable token.

    Returns
    -------
    Dataset with

    - `correct` (question, agent), the fraction of the agent's questions of this kind that were answered correctly, and
      `malformed` (question, agent), the fraction of answers not in the format, which count as wrong;
    - `accuracy` (question), the mean over agents, and its `standard_error` (question), from the spread over agents;
    - the coordinates `category` (question), Rules, Time or State, and `memory` (agent).

    Raises
    ------
    InputError
        If an argument is out of range.

    See Also
    --------
    check_policy : checks without asking the model

    Examples
    --------
    A model that always answers 1 is right about some counts of words, and never about the rules.

    >>> from policy_extraction.backends import TableBackend
    >>> from policy_extraction.checks import comprehension
    >>> class One(TableBackend):
    ...     def check(self, prompts, words):
    ...         pass
    ...     def generate(self, prompts, **options):
    ...         return ["1;"] * len(prompts)
    >>> one = One(lambda memory, order: {}, ("his", "her"), memory_length=2)
    >>> found = comprehension(one, ("his", "her"), memory_length=2, n=50)
    >>> found["accuracy"].sel(question=["payoff", "#actions"]).values.round(1)
    array([0. , 0.5])
    """
    words = checked_game(words, memory_length, template, payoffs)
    instance("backend", backend, Backend)
    whole_number("n", n, 2, MOST_AGENTS)
    whole_number("seed", seed, 0, LARGEST_SEED)
    if per_kind is not None:
        whole_number("per_kind", per_kind, 1, MANY)
    real_number("temperature", temperature, least=0)
    rng = np.random.default_rng(seed)
    memories = []
    for _ in range(n):
        length = rng.integers(1, memory_length, endpoint=True)  # an empty memory has no history to ask about
        memories.append([(words[a], words[b]) for a, b in rng.integers(len(words), size=(length, 2)).tolist()])
    presented = [[words[i] for i in rng.permutation(len(words))] for _ in memories]
    asked = [_sampled(rng, list(questions_about(memory, words, payoffs)), per_kind) for memory in memories]
    # A value need not be a word, so the prefix ends before the opening quotation mark, and before the space, which most
    # vocabularies make part of the next token.
    prefix = template.answer_prefix.rstrip("'\" ")
    prompts = [
        Prompt(template.prompt(order, memory, payoffs).system, question.text, prefix)
        for memory, order, questions in zip(memories, presented, asked, strict=True)
        for question in questions
    ]
    backend.check([longest(prompts)], words)
    answers = iter(_answers(backend, prompts, [question for some in asked for question in some], temperature, seed))
    kinds = [kind.name for kind in KINDS]
    correct, malformed, number = np.zeros((3, len(KINDS), n))
    for agent, questions in enumerate(asked):
        for question in questions:
            place = kinds.index(question.kind), agent
            value = parse(next(answers), question.answer)
            correct[place] += value == question.answer
            malformed[place] += value is None
            number[place] += 1
    correct, malformed = correct / number, malformed / number
    table = ("question", "agent")
    columns = {
        "correct": (table, correct, "fraction of questions answered correctly"),
        "malformed": (table, malformed, "fraction of answers not in the format"),
        "accuracy": ("question", correct.mean(1), "mean fraction of questions answered correctly"),
        "standard_error": ("question", correct.std(1, ddof=1) / np.sqrt(n), "standard error"),
    }
    coords = {
        "question": kinds,
        "category": ("question", [kind.category for kind in KINDS]),
        "agent": np.arange(n),
        "memory": ("agent", [", ".join(f"{own}-{partner}" for own, partner in memory) for memory in memories]),
        **word_coords(words),
        "pair": "/".join(words),
        "model": backend.name,
    }
    options = {"n": n, "seed": seed, "per_kind": per_kind, "temperature": float(temperature)}
    result = stamp(labelled(columns, coords), "comprehension", **options, **prompt_options(template, payoffs))
    return result.assign_attrs(memory_length=memory_length)


def _sampled(rng: np.random.Generator, questions: list[Asked], per_kind: int | None) -> list[Asked]:
    if per_kind is None:
        return questions
    kept = []
    for kind in KINDS:
        of_kind = [question for question in questions if question.kind == kind.name]
        chosen = rng.choice(len(of_kind), size=min(per_kind, len(of_kind)), replace=False)
        kept += [of_kind[i] for i in chosen]
    return kept


def _answers(
    backend: Backend, prompts: Sequence[Prompt], questions: Sequence[Asked], temperature: float, seed: int
) -> list[str]:
    """The texts of the model, each with as many tokens as the form of the right answer may take."""
    texts = [""] * len(prompts)
    items = [len(question.answer) if isinstance(question.answer, frozenset) else 1 for question in questions]
    most = [TOKENS_OF_A_VALUE + TOKENS_IN_A_LIST * (n - 1) for n in items]
    for length in sorted(set(most)):
        numbers = [i for i, its in enumerate(most) if its == length]
        written = backend.generate(
            [prompts[i] for i in numbers], max_tokens=length, temperature=temperature, seed=derived_seed(seed, length)
        )
        for i, text in zip(numbers, written, strict=True):
            texts[i] = text
    return texts
