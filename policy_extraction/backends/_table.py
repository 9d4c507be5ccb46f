"""A back end whose answers have given probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from meanfield import InputError
from meanfield.toolbox import instance
from policy_extraction.backends._backend import Scores
from policy_extraction.prompts._games import Game, check_tabulable, checked_game
from policy_extraction.prompts._orders import Order, orders
from policy_extraction.prompts._template import NAMING_GAME, Payoffs, Prompt, Template, checked_prompts

SpokenMemory: TypeAlias = tuple[tuple[str, str], ...]
Law: TypeAlias = Callable[[SpokenMemory, Order], Mapping[str, float]]
ROUNDING = 1e-9


class TableBackend:
    """A back end whose answers have given probabilities, for trials without a language model.

    Parameters
    ----------
    law
        Function of a memory, pairs (own word, partner's word) from the oldest on, and of the presented order of the
        words. It returns the probability of each answer at temperature 1; the rest to 1 is the empty answer.
    words
        The W words.
    memory_length
        H, in interactions.
    template
        The prompt; memories and orders are recognised by it.
    payoffs
        Points of a round.
    name
        Name for people.
    identity
        Key of kept answers; empty to keep none.

    Raises
    ------
    InputError
        If words or memory length are wrong, or two memories have the same prompt. The methods raise it if a prompt is
        unknown, or `law` returns no probabilities.

    Examples
    --------
    >>> from policy_extraction import extract
    >>> from policy_extraction.backends import TableBackend
    >>> def law(memory, order):
    ...     return {"his": 0.1, "her": 0.3} if ("her", "her") in memory else {"his": 0.4, "her": 0.4}
    >>> table = TableBackend(law, ("his", "her"), memory_length=1)
    >>> extract(table, words=("his", "her"), memory_length=1, temperature=1.0)["q"].sel(word="her").values.round(2)
    array([0.5 , 0.5 , 0.5 , 0.5 , 0.75])
    """

    def __init__(
        self,
        law: Law,
        words: Sequence[str],
        memory_length: int,
        *,
        template: Template = NAMING_GAME,
        payoffs: Payoffs = Payoffs(),  # noqa: B008  (frozen)
        name: str = "table",
        identity: str = "",
    ) -> None:
        words = checked_game(words, memory_length, template, payoffs)
        check_tabulable([words], memory_length)
        self.name, self.identity = name, identity
        self.provenance: dict[str, str | int | float] = {}
        self._law = law
        game = Game(words, orders(words), memory_length, template, payoffs)
        states = [
            (tuple((words[own], words[partner]) for own, partner in memory), game.presented[place])
            for memory, place in game.every()
        ]
        self._states = dict(zip(game.prompts(), states, strict=True))
        if len(self._states) < len(states):
            raise InputError(f"template {template.name}: two memories have the same prompt")

    def check(self, prompts: Sequence[Prompt], words: Sequence[str]) -> None:
        """See `Backend`."""
        for prompt in checked_prompts(prompts):
            self._answers(prompt)

    def score(self, prompts: Sequence[Prompt], words: Sequence[str]) -> Iterator[Scores]:
        """See `Backend`, prompt by prompt; an impossible answer has -inf."""
        for number, prompt in enumerate(prompts):
            answers = self._answers(prompt)
            with np.errstate(divide="ignore"):
                log_p = np.log([[answers.get(word, 0.0) for word in words]])
            yield Scores(np.array([number]), log_p, np.zeros(log_p.shape, dtype=bool))

    def generate(
        self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float = 1.0, seed: int = 0
    ) -> list[str]:
        """See `Backend`; answers are whole, whatever `max_tokens` is."""
        cumulated: dict[Prompt, tuple[list[str], np.ndarray]] = {}
        texts = []
        for prompt, draw in zip(prompts, np.random.default_rng(seed).random(len(prompts)), strict=True):
            if prompt not in cumulated:
                answers = self._answers(prompt)
                p = np.array([*answers.values(), max(0.0, 1.0 - sum(answers.values()))])
                p = (p == p.max()) / (p == p.max()).sum() if temperature == 0 else (p / p.max()) ** (1 / temperature)
                cumulated[prompt] = [*answers, ""], np.cumsum(p)
            answers, totals = cumulated[prompt]
            texts.append(answers[np.searchsorted(totals, draw * totals[-1], side="right")])
        return texts

    def tokens(self, words: Sequence[str]) -> list[str]:
        """'' for each word: a table has no tokens."""
        return [""] * len(instance("words", words, Sequence))

    def _answers(self, prompt: Prompt) -> Mapping[str, float]:
        if prompt not in self._states:
            raise InputError(f"{self.name}: a prompt is of another game; expected the same words, template and payoffs")
        memory, order = self._states[prompt]
        answers = self._law(memory, order)
        p = np.array(list(answers.values()), dtype=float)
        if not (p >= 0).all() or p.sum() > 1 + ROUNDING:
            raise InputError(f"law({memory}, {order}) = {dict(answers)}: expected probabilities")
        return answers
