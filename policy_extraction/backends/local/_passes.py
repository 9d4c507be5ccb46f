"""Forward passes over the tree of all token sequences, in which a beginning that several share stands once.

One pass runs branches that follow a common prefix and fit the memory, each token once. Of a branch that is too large
only the beginning of all its sequences runs; its keys and values lengthen the prefix of what follows.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from policy_extraction.backends.local._attention import CURRENT, Branches, Prefix, branching
from policy_extraction.backends.local._tokens import Question, Tokens, shared_length

BLOCK = 32  # tokens


class Wanted(NamedTuple):
    """A wanted probability: of `token`, as one step of spelling `word` in answer to question `number`."""

    number: int
    word: int
    token: int


class Branch(NamedTuple):
    """A sequence of the tree, the tokens wanted at each position, and the number shared with the one sorted before."""

    tokens: Tokens
    wanted: dict[int, list[Wanted]]
    same: int


def sequences_of(questions: Sequence[Question]) -> dict[Tokens, dict[int, list[Wanted]]]:
    """The sequences to read for the probabilities of all answers' tokens, with the tokens wanted at each position.

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


def tree(questions: Sequence[Question]) -> list[Branch]:
    """All sequences to read, sorted."""
    wanted = sequences_of(questions)
    in_order = pairwise([(), *sorted(wanted)])
    return [Branch(tokens, wanted[tokens], shared_length([before, tokens])) for before, tokens in in_order]


@dataclass(frozen=True)
class Room:
    """The size of a pass: `tokens`, where a token whose prediction is wanted counts `wanted` more."""

    tokens: int
    wanted: int


class Pass:
    """The input of one forward pass behind a prefix of `start` tokens."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.tokens: list[int] = []
        self.positions: list[int] = []
        self.rows: list[list[int]] = []  # numbers of the tokens of each path
        self.wanted: dict[int, list[Wanted]] = {}  # after the token of this number
        self.opened: list[tuple[Sequence[Branch], range]] = []  # what goes on behind which tokens

    def add(self, branches: Sequence[Branch], end: int | None = None) -> Pass:
        """Add the tokens of branches that begin alike; with `end` only those before it, which they share."""
        row: list[int] = []
        for sequence, wanted, same in branches:
            stop = len(sequence) if end is None else end
            begun = max(same, self.start) if row else self.start
            if begun < stop:
                longer = [*row[: begun - self.start], *range(len(self.tokens), len(self.tokens) + stop - begun)]
                if row and len(row) == begun - self.start:  # it goes on from the sequence before it
                    self.rows.pop()
                self.rows.append(longer)
                self.tokens += sequence[begun:stop]
                self.positions += range(begun, stop)
                row = longer
            for position, asked in wanted.items():
                if self.start <= position < stop:
                    self.wanted.setdefault(row[position - self.start], []).extend(asked)
        if end is not None:
            self.opened.append((branches, range(row[0], row[-1] + 1)))
        return self

    def cost(self, room: Room) -> int:
        return len(self.tokens) + room.wanted * len(self.wanted)


def passes(branches: Sequence[Branch], start: int, room: Room) -> Iterator[Pass]:
    """Passes of whole branches as far as they fit, and of the beginnings of larger branches."""
    one, used = Pass(start), 0
    longer = (branch for branch in branches if len(branch.tokens) > start)
    for _, group in groupby(longer, key=lambda branch: branch.tokens[start]):
        alike, end = list(group), None
        if (cost := Pass(start).add(alike).cost(room)) > room.tokens:
            shared = min([len(alike[0].tokens), *(branch.same for branch in alike[1:])])
            end = min(shared, start + room.tokens)
            cost = Pass(start).add(alike, end).cost(room)
        if one.tokens and used + cost > room.tokens:
            yield one
            one, used = Pass(start), 0
        one.add(alike, end)
        used += cost
    if one.tokens:
        yield one


class Beginning:
    """Keys and values of the tokens that all questions begin with, kept between portions of questions.

    They run in blocks, each alone, so that the numbers do not depend on earlier portions.
    """

    def __init__(self, longest: int) -> None:
        self._prefix, self._tokens = Prefix(longest), ()

    def of(self, model: Any, tokens: Tokens) -> Prefix:
        """The prefix of these tokens, which are whole blocks."""
        same = min(shared_length([self._tokens, tokens]), len(tokens)) // BLOCK * BLOCK
        for start in range(same, len(tokens), BLOCK):
            self._prefix.length = start
            block = Pass(start).add([Branch(tokens, {}, 0)], start + BLOCK)
            new = _run(model, block, self._prefix, self._prefix.capacity, np.empty((0, 0)))
            self._prefix.write(new, slice(0, BLOCK), start)
        self._tokens, self._prefix.length = tokens, len(tokens)
        return self._prefix


def tree_scores(
    model: Any, questions: Sequence[Question], room: Room, beginning: Beginning | None = None
) -> np.ndarray:
    """Log-probability that the model's answer begins with each word, shape (questions, words).

    `beginning` keeps the tokens that all contexts share for the next call; None runs them with the others. Raises
    UnsupportedError if the model's attention is not the plain causal one.
    """
    import torch

    contexts = [question.context for question in questions]
    n_shared = min(shared_length(contexts), min(map(len, contexts)) - 1) // BLOCK * BLOCK if beginning else 0
    branches = tree(questions)
    longest = max(len(branch.tokens) for branch in branches)
    scores = np.zeros((len(questions), len(questions[0].answers)))
    with torch.inference_mode(), branching(model):
        prefix = beginning.of(model, contexts[0][:n_shared]) if beginning else Prefix(longest)
        _visit(model, branches, n_shared, prefix, room, longest, scores)
    return scores


def _visit(
    model: Any, branches: Sequence[Branch], start: int, prefix: Prefix, room: Room, longest: int, scores: np.ndarray
) -> None:
    """Run all tokens behind a prefix of `start` tokens, which the branches share."""
    for one in passes(branches, start, room):
        prefix.length = start
        new = _run(model, one, prefix, longest, scores)
        begin = 0
        for opened, tokens in one.opened:
            place = slice(begin, begin + len(tokens))
            prefix.write(new, place, start)
            _visit(model, opened, start + len(tokens), prefix, room, longest, scores)
            begin = place.stop


def _run(model: Any, one: Pass, prefix: Prefix, longest: int, scores: np.ndarray) -> dict[int, tuple[Any, Any]]:
    """One forward pass: add to `scores`, and return keys and values of the opened tokens by layer."""
    import torch

    def numbers(values: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.long, device=model.device)

    groups: dict[int, list[list[int]]] = defaultdict(list)
    for row in one.rows:
        groups[len(row)].append(row)
    rows = list(groups.values())
    home = [0] * len(one.tokens)
    for place, token in enumerate(token for group in rows for row in group for token in row):
        home[token] = place
    kept = [token for _, tokens in one.opened for token in tokens]
    branches = Branches(prefix, [numbers(group) for group in rows], numbers(home), numbers(kept), longest)
    places, positions = sorted(one.wanted), numbers([one.positions])
    this = CURRENT.set(branches)
    try:
        output = forward(model, [one.tokens], places or [0], position_ids=positions, use_cache=False)
    finally:
        CURRENT.reset(this)
    if places:
        add_scores(scores, output.logits[0], [one.wanted[place] for place in places])
    return branches.new


def forward(model: Any, sequences: Sequence[Sequence[int]], places: Sequence[int], **options: Any) -> Any:
    """A forward pass; its logits are those at `places` of the sequences, which have equal lengths."""
    import torch

    at = torch.tensor(places, device=model.device)
    keep = {"logits_to_keep": at} if takes(model, "logits_to_keep") else {}
    output = model(input_ids=torch.tensor(sequences, device=model.device), **keep, **options)
    if not keep:
        output.logits = output.logits[:, at]
    return output


def takes(model: Any, name: str) -> bool:
    """Whether a forward pass has an argument of this name."""
    return name in inspect.signature(model.forward).parameters


def add_scores(scores: np.ndarray, logits: Any, wanted: Sequence[Sequence[Wanted]]) -> None:
    """Add log-probabilities to `scores` (questions, words) from logits (positions, vocabulary)."""
    logits = logits.double() if logits.device.type == "cpu" else logits.float().cpu().double()
    totals = logits.logsumexp(-1).numpy()
    for row, total, asked in zip(logits.numpy(), totals, wanted, strict=True):
        for number, word, token in asked:
            scores[number, word] += row[token] - total
