"""A prompt and its possible answers as token sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from meanfield import InputError
from policy_extraction.backends.local._chat import Tokenizer

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """The tokens that a model reads (`context`), and for each word the tokens that would answer."""

    context: Tokens
    answers: tuple[Tokens, ...]


def questions(tokenizer: Tokenizer, texts: Sequence[str], words: Sequence[str]) -> list[Question]:
    """For each text, what the model reads and how each of the words would go on.

    Text and word are encoded together, since a word after an opening quotation mark and a word after a space are
    different tokens. Where a tokenizer merges the end of the text into a word, the answers start at the last token that
    all the encodings share.

    Raises
    ------
    InputError
        If the tokenizer cannot tell a word from another one or does not know it.
    """
    result = _encoded(tokenizer, texts, words)
    # The answers depend on the end of the text alone, which is the same in every memory state.
    for answers in {question.answers for question in result}:
        _check_answers(tokenizer, answers, words)
    return result


def spelled(tokenizer: Tokenizer, text: str, words: Sequence[str]) -> Question:
    """The same for one text, whatever the tokenizer makes of the words."""
    return _encoded(tokenizer, [text], words)[0]


def _encoded(tokenizer: Tokenizer, texts: Sequence[str], words: Sequence[str]) -> list[Question]:
    endings = ("", *words)
    encoded = tokenizer([text + end for text in texts for end in endings], add_special_tokens=False)["input_ids"]
    result = []
    for i in range(0, len(encoded), len(endings)):
        sequences = [tuple(tokens) for tokens in encoded[i : i + len(endings)]]
        shared = shared_length(sequences)
        result.append(Question(sequences[0][:shared], tuple(tokens[shared:] for tokens in sequences[1:])))
    return result


def shared_length(sequences: Iterable[Tokens]) -> int:
    """How many tokens all sequences have in common from the start."""
    sequences = list(sequences)
    first, last = min(sequences), max(sequences)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _check_answers(tokenizer: Tokenizer, answers: Sequence[Tokens], words: Sequence[str]) -> None:
    for i, (word, tokens) in enumerate(zip(words, answers, strict=True)):
        if not tokens or tokenizer.unk_token_id in tokens:
            raise InputError(f"words: the tokenizer of this model does not know {word!r}")
        if tokens in answers[:i]:
            other = words[answers.index(tokens)]
            raise InputError(f"words: the tokenizer of this model can't tell {word!r} from {other!r}")
