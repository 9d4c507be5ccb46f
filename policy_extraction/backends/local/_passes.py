"""Forward passes over a tree of tokens, branch by branch.

One pass runs branches that follow a common prefix and fit the memory, each token once. Of a branch that is too large
only the first edge runs; its keys and values lengthen the prefix of the branches behind it.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from policy_extraction.backends.local._attention import Branches, Prefix, branching, current
from policy_extraction.backends.local._prefix_tree import Edge, Wanted, cut, tree
from policy_extraction.backends.local._tokens import Question, Tokens, shared_length

BLOCK = 32  # tokens


@dataclass(frozen=True)
class Room:
    """The size of a pass: `tokens`, where a token whose prediction is wanted counts `wanted` more."""

    tokens: int
    wanted: int

    def cost(self, edge: Edge) -> int:
        """The cost of an edge and all edges behind it."""
        return edge.n_tokens + self.wanted * edge.n_wanted


@dataclass
class _Pass:
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)
    wanted: list[tuple[int, list[Wanted]]] = field(default_factory=list)
    opened: list[tuple[Edge, int]] = field(default_factory=list)

    def add(self, edge: Edge, before: list[int], whole: bool) -> None:
        """Add an edge behind the tokens `before`, with all edges behind it if `whole`."""
        first = len(self.tokens)
        row = [*before, *range(first, first + len(edge.tokens))]
        self.tokens += edge.tokens
        self.positions += range(edge.start, edge.end)
        self.wanted += [(first + place, asked) for place, asked in sorted(edge.wanted.items())]
        if not whole:
            self.opened.append((edge, first))
        if not whole or not edge.children:
            self.rows.append(row)
        for child in edge.children if whole else ():
            self.add(child, row, True)


class Beginning:
    """Keys and values of the tokens that all questions begin with, kept between portions of questions.

    They run in blocks, each alone: its numbers depend on the tokens before it and not on earlier portions. `longest` is
    the length of the longest sequence to come.
    """

    def __init__(self, longest: int) -> None:
        self._prefix, self._tokens = Prefix(longest), ()

    def of(self, model: Any, tokens: Tokens) -> Prefix:
        """The prefix of these tokens, which are whole blocks."""
        same = min(shared_length([self._tokens, tokens]), len(tokens)) // BLOCK * BLOCK
        for start in range(same, len(tokens), BLOCK):
            block = _Pass()
            block.add(Edge(start, tokens[start : start + BLOCK]), [], whole=False)
            self._prefix.length = start
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
    root = tree(questions, n_shared)
    scores = np.zeros((len(questions), len(questions[0].answers)))
    with torch.inference_mode(), branching(model):
        prefix = beginning.of(model, contexts[0][:n_shared]) if beginning else Prefix(root.depth)
        _visit(model, root, prefix, room, root.depth, scores)
    return scores


def _visit(model: Any, edge: Edge, prefix: Prefix, room: Room, longest: int, scores: np.ndarray) -> None:
    """Run all edges behind an edge with which `prefix` ends."""
    for one in _passes(edge.children, room):
        prefix.length = edge.end
        new = _run(model, one, prefix, longest, scores)
        begin = 0
        for opened, _ in one.opened:
            place = slice(begin, begin + len(opened.tokens))
            prefix.write(new, place, edge.end)
            _visit(model, opened, prefix, room, longest, scores)
            begin = place.stop


def _passes(edges: Sequence[Edge], room: Room) -> Iterator[_Pass]:
    """Passes of whole branches as far as they fit, and of the first edges of larger branches."""
    one, used = _Pass(), 0
    for edge in edges:
        whole = room.cost(edge) <= room.tokens
        taken = edge if whole else cut(edge, room.tokens)
        cost = room.cost(edge) if whole else len(taken.tokens) + room.wanted * len(taken.wanted)
        if one.tokens and used + cost > room.tokens:
            yield one
            one, used = _Pass(), 0
        one.add(taken, [], whole)
        used += cost
    if one.tokens:
        yield one


def _run(model: Any, one: _Pass, prefix: Prefix, longest: int, scores: np.ndarray) -> dict[int, tuple[Any, Any]]:
    """One forward pass: add to `scores`, and return keys and values of the opened edges by layer."""
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
    kept = [first + i for edge, first in one.opened for i in range(len(edge.tokens))]
    branches = Branches(prefix, [numbers(group) for group in rows], numbers(home), numbers(kept), longest)
    places = [place for place, _ in one.wanted]
    keep = {"logits_to_keep": numbers(places or [0])} if keeps_logits(model) else {}
    with current(branches):
        output = model(input_ids=numbers([one.tokens]), position_ids=numbers([one.positions]), use_cache=False, **keep)
    if places:
        logits = output.logits[0] if keep else output.logits[0, numbers(places)]
        add_scores(scores, logits, [asked for _, asked in one.wanted])
    return branches.new


def keeps_logits(model: Any) -> bool:
    """Whether the model can predict at chosen positions only."""
    return takes(model, "logits_to_keep")


def takes(model: Any, name: str) -> bool:
    """Whether a forward pass has an argument of this name."""
    return name in inspect.signature(model.forward).parameters


def add_scores(scores: np.ndarray, logits: Any, wanted: Sequence[Sequence[Wanted]]) -> None:
    """Add log-probabilities to `scores` (questions, words) from logits (positions, vocabulary)."""
    logits = logits.double() if logits.device.type == "cpu" else logits.float().cpu().double()
    totals = logits.logsumexp(-1).numpy()
    for row, total, asked in zip(logits.numpy(), totals, wanted, strict=True):
        for one in asked:
            scores[one.number, one.word] += row[one.token] - total
