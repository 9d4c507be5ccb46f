"""Questions of a norm society to its operations; answers go into a log and are recalled from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from meanfield import InputError
from meanfield.toolbox import ResumableLog, UnparsedError
from theory.norms import NormAgent
from theory.toolbox import STANDARDS


class Questions:
    """Asks the operations, or recalls their answers from before an interruption.

    A line of the log is an event, since random numbers belong to events: [operation, name of the agent, answer] of each
    question, without an answer if none could be used, and the operations' own record of the exchange with a model.

    Attributes
    ----------
    unparsed
        Number of calls without a usable answer, by operation.
    """

    def __init__(self, operations: Callable[..., Any], on_unparsed: str, log: ResumableLog) -> None:
        self.unparsed: Counter[str] = Counter()
        self._operations, self._on_unparsed, self._log = operations, on_unparsed, log
        self._rng = np.random.default_rng()
        self._given: list[Any] = []
        self._known: list[Any] | None = None  # of an event that the log holds, what has not been asked for yet

    @contextmanager
    def of_event(self, number: int, rng: np.random.Generator) -> Iterator[None]:
        """All questions within belong to event `number`, the start being 0."""
        self._rng, self._given, self._known = rng, [], None
        if number < len(self._log.lines):
            with self._log.answers(number) as line:
                self._known = list(line["answers"])
                yield
                if self._known:
                    raise ValueError(f"it holds {self._known[0]}, expected no more")
            return
        yield
        exchanges = getattr(self._operations, "exchanges", [])
        self._log.append({"answers": self._given, "exchanges": plain(exchanges)})
        exchanges.clear()

    def __call__(self, operation: str, no: Any, agent: NormAgent, **given: Any) -> Any:
        """The answer, or `no` if there is no usable one."""
        if self._known is None:
            answered = self._ask(operation, agent, given)
            self._given.append([operation, agent.name, *answered])
        else:
            answered = self._recall(operation, agent.name, self._known)
        for answer in answered:
            right, expected = ANSWERS.get(operation, YES_OR_NO)
            if not right(answer):
                raise InputError(f"{operation} of {agent.name} answered {answer!r}: expected {expected}")
            return answer
        self.unparsed[operation] += 1
        return no

    def _ask(self, operation: str, agent: NormAgent, given: Mapping[str, Any]) -> list[Any]:
        try:
            return [plain(self._operations(operation, agent, given, self._rng))]
        except UnparsedError:
            if self._on_unparsed == "raise":
                raise
            return []

    def _recall(self, operation: str, agent: str, known: list[Any]) -> list[Any]:
        held = known.pop(0) if known else None
        if held is None or held[:2] != [operation, agent]:
            raise ValueError(f"it holds {held}, expected {operation} of {agent}")
        return held[2:]


def plain(value: Any) -> Any:
    """The value in types that JSON has; sets are sorted."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Real) and not isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(part) for part in value]
    return value


def _has(answer: Any, **parts: type) -> bool:
    return isinstance(answer, dict) and all(isinstance(answer.get(name), kind) for name, kind in parts.items())


def _is_norm(answer: Any) -> bool:
    return isinstance(answer, dict) and {"content", "kind", "utility"} <= set(answer)


def _are(answer: Any, *kinds: type) -> bool:
    return isinstance(answer, list) and len(answer) == len(kinds) and all(map(isinstance, answer, kinds))


YES_OR_NO: tuple[Callable[[Any], bool], str] = (lambda answer: isinstance(answer, bool), "True or False")
ANSWERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "create": (
        lambda answer: isinstance(answer, list) and all(map(_is_norm, answer)),
        "a list of norms, each with content, kind and utility",
    ),
    "talk": (lambda answer: isinstance(answer, str), "text"),
    "think": (lambda answer: answer is None or isinstance(answer, str), "text or None"),
    "identify": (lambda answer: answer is None or _is_norm(answer), "content, kind and utility of a norm, or None"),
    "plan": (lambda answer: _has(answer, text=str, follows=list), "a text, and the contents that it follows"),
    "act": (
        lambda answer: _has(answer, text=str, shows=str, normative=bool) and answer["shows"] in STANDARDS,
        f"a text, what it shows, one of {', '.join(STANDARDS)}, and whether it is normative",
    ),
    "classify": (
        lambda answer: isinstance(answer, list) and all(_are(one, str, list) for one in answer),
        "a list of themes, each with a list of contents",
    ),
    "abstract": (lambda answer: _are(answer, str, str, list), "content, kind and a list of weights"),
}
