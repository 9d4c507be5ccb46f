"""Words measured by exactly their tokens, on servers that give log-probabilities of chosen tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import shown
from policy_extraction.backends.api._dialects import Dialect, Tokens, recognised, tokenised
from policy_extraction.backends.api._request import CONTINUES, Prefill, request_for
from policy_extraction.backends.api._retries import Server
from policy_extraction.backends.local._source import find, load_tokenizer
from policy_extraction.backends.local._tokens import (
    Question,
    check_answers,
    disjoint,
    plain,
    question_of,
    questions,
    render,
)
from policy_extraction.prompts._template import Prompt

# Tokens at the end of a prompt that may change the tokens of the next word. Tokenizers merge within words and signs.
END = 16


class ChosenTokens:
    """The words' tokens, asked of a server whose dialect is known; other servers have none.

    Tokens come from a tokenizer of transformers, or without one from the server.
    """

    def __init__(self, server: Server, prefill: Prefill, listed: int, tokenizer: Any) -> None:
        if prefill not in CONTINUES:
            raise InputError(f"prefill = {prefill!r}: expected {' or '.join(CONTINUES)} for exact=True")
        self._server, self._prefill, self._listed = server, prefill, listed
        named = isinstance(tokenizer, (str, os.PathLike))
        if not (tokenizer is None or named or callable(tokenizer)):
            raise InputError(f"tokenizer = {shown(tokenizer)}: expected one of transformers, a name, a path or None")
        self._tokenizer = load_tokenizer(find(tokenizer)) if named else tokenizer
        self.tokenizer_name = "" if tokenizer is None else f" {getattr(self._tokenizer, 'name_or_path', '')}"
        self.dialect: Dialect | None = None
        self._endings: dict[tuple[tuple[str, ...], Tokens], Question] = {}
        self._answers: dict[tuple[str, ...], tuple[Tokens, ...]] = {}
        self.asked = ""
        """The fields asked for, and why not more; '' before `decide`."""

    async def decide(self, client: Any, prompt: Prompt, words: Sequence[str]) -> None:
        """Recognise the server, and try this prompt; `asked` tells if listed tokens have to do."""
        self.dialect = None
        try:
            dialect = await recognised(self._server, client, self._listed)
            await dialect.check(client, (await self._question(client, dialect, prompt, words)).context)
        except InputError as error:
            self.asked = f"listed tokens ({error})"
            self._answers.clear()
        else:
            self.dialect, self.asked = dialect, f"tokens of the words, {dialect.name}"

    async def measure(self, client: Any, prompt: Prompt, words: Sequence[str]) -> np.ndarray:
        """The log-probability of each word, shape (W,)."""
        dialect = self.dialect
        assert dialect is not None
        question = await self._question(client, dialect, prompt, words)
        after = {
            begun: await dialect.after(client, (*question.context, *begun), wanted)
            for begun, wanted in steps(question.answers).items()
        }
        begins = [sum(after[answer[:i]][token] for i, token in enumerate(answer)) for answer in question.answers]
        return disjoint(np.array(begins), question.answers)

    def tokens(self, words: Sequence[str]) -> list[str]:
        """The token numbers of each word behind the last prompt; '' before one."""
        return [" ".join(map(str, answer)) for answer in self._answers.get(tuple(words), [()] * len(words))]

    async def _question(self, client: Any, dialect: Dialect, prompt: Prompt, words: Sequence[str]) -> Question:
        if self._tokenizer is not None:
            text = (render if self._prefill == "assistant" else plain)(self._tokenizer, prompt)
            (question,) = questions(self._tokenizer, [text], words)
        else:
            question = await self._told(client, dialect, prompt, words)
            check_answers(question.answers, words)
        self._answers[tuple(words)] = question.answers
        return question

    async def _told(self, client: Any, dialect: Dialect, prompt: Prompt, words: Sequence[str]) -> Question:
        """The question by the server's own tokens."""

        async def tokens(ending: str) -> Tokens:
            return await tokenised(client, dialect, request_for(prompt, ending, self._prefill, 1))

        read = await tokens("")
        key = tuple(words), read[-END:]
        if key not in self._endings:
            known = question_of([read, *[await tokens(word) for word in words]])
            self._endings[key] = Question(read[len(known.context) :], known.answers)
        end = self._endings[key]
        return Question(read[: len(read) - len(end.context)], end.answers)


def steps(answers: Sequence[Tokens]) -> dict[Tokens, list[int]]:
    """The tokens that are wanted after each beginning of an answer."""
    wanted: dict[Tokens, dict[int, None]] = {}
    for answer in answers:
        for i, token in enumerate(answer):
            wanted.setdefault(answer[:i], {})[token] = None
    return {begun: list(tokens) for begun, tokens in wanted.items()}
