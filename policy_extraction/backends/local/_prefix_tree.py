"""The prefix tree of token sequences: a beginning that several sequences share stands in it once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from policy_extraction.backends.local._tokens import Question, Tokens


@dataclass(frozen=True)
class Wanted:
    """A wanted probability: of `token`, as one step of spelling `word` in answer to question `number`."""

    number: int
    word: int
    token: int


@dataclass
class Edge:
    """The tokens between two branchings, and the edges behind them."""

    start: int  # position of the first token in the sequences
    tokens: Tokens  # empty in the root only
    wanted: dict[int, list[Wanted]] = field(default_factory=dict)  # after each token, by its place in `tokens`
    children: list[Edge] = field(default_factory=list)
    n_tokens: int = 0
    n_wanted: int = 0

    def __post_init__(self) -> None:
        self.n_tokens = len(self.tokens) + sum(child.n_tokens for child in self.children)
        self.n_wanted = len(self.wanted) + sum(child.n_wanted for child in self.children)

    @property
    def end(self) -> int:
        """Position after the last token."""
        return self.start + len(self.tokens)

    @property
    def depth(self) -> int:
        """Length of the longest sequence through this edge."""
        return max((child.depth for child in self.children), default=self.end)


def sequences_of(questions: Sequence[Question]) -> dict[Tokens, dict[int, list[Wanted]]]:
    """The sequences to read for the probabilities of all tokens of all answers, with what is wanted at which position.

    The last token of an answer is never read, and no sequence is the beginning of another one of its question.
    """
    wanted: dict[Tokens, dict[int, list[Wanted]]] = {}
    for number, question in enumerate(questions):
        heads = {answer[:-1] for answer in question.answers}
        for word, answer in enumerate(question.answers):
            head = max(head for head in heads if head[: len(answer) - 1] == answer[:-1])
            at = wanted.setdefault(question.context + head, {})
            for i, token in enumerate(answer):
                at.setdefault(len(question.context) - 1 + i, []).append(Wanted(number, word, token))
    return wanted


def tree(questions: Sequence[Question], start: int = 0) -> Edge:
    """The root of the tree of all sequences to read; contexts have at least one token.

    The first `start` tokens, which all contexts share and exceed, were read before.
    """
    wanted = sequences_of(questions)
    sequences = sorted(wanted)
    return Edge(start, (), {}, list(_branches(sequences, wanted, start)))


def _branches(sequences: Sequence[Tokens], wanted: dict[Tokens, dict[int, list[Wanted]]], start: int) -> Iterator[Edge]:
    """The edges from `start` on of sorted sequences that agree before it; a sequence that ends there has none."""
    first = 0
    while first < len(sequences):
        if len(sequences[first]) == start:
            first += 1
            continue
        last = first
        while last + 1 < len(sequences) and sequences[last + 1][start] == sequences[first][start]:
            last += 1
        yield _edge(sequences[first : last + 1], wanted, start)
        first = last + 1


def _edge(sequences: Sequence[Tokens], wanted: dict[Tokens, dict[int, list[Wanted]]], start: int) -> Edge:
    """The edge of sorted sequences that agree before `start` and in the token there."""
    a, b = sequences[0], sequences[-1]
    end = next((i for i in range(start + 1, len(a)) if a[i] != b[i]), len(a))  # sorted: b is no beginning of a
    found: dict[int, list[Wanted]] = {}
    for sequence in sequences:
        for position, asked in wanted[sequence].items():
            if start <= position < end:
                found.setdefault(position - start, []).extend(asked)
    return Edge(start, a[start:end], found, list(_branches(sequences, wanted, end)))


def cut(edge: Edge, length: int) -> Edge:
    """The edge cut behind its first `length` tokens; the edge itself if it is no longer."""
    if len(edge.tokens) <= length:
        return edge
    wanted = {place - length: asked for place, asked in edge.wanted.items() if place >= length}
    rest = Edge(edge.start + length, edge.tokens[length:], wanted, edge.children)
    here = {place: asked for place, asked in edge.wanted.items() if place < length}
    return Edge(edge.start, edge.tokens[:length], here, [rest])
