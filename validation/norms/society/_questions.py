"""Questions of a norm society to its operations; answers go into a log and are recalled from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from meanfield.toolbox import ResumableLog, UnparsedError
from theory.norms import NormAgent, SocietyOperations
from validation.norms.society._answers import answer_from_json, answer_to_json, check_answer
from validation.norms.society._json import plain


class Questions:
    """Asks the operations, or recalls their answers from before an interruption.

    A line of the log is an event, since random numbers belong to events: [operation, name of the agent, answer] of each
    question, without an answer if none could be used, and the operations' own record of the exchange with a model.

    Attributes
    ----------
    unparsed
        How often each operation had no usable answer.
    """

    def __init__(
        self, operations: SocietyOperations, on_unparsed: str = "raise", log: ResumableLog | None = None
    ) -> None:
        self.unparsed: Counter[str] = Counter()
        self._operations, self._on_unparsed = operations, on_unparsed
        self._log = log or ResumableLog(None, {}, "norm society")
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
        else:
            yield
            self._write()

    def __call__(self, operation: str, no: Any, agent: NormAgent, *asked: Any) -> Any:
        """The answer, or `no` if there is no usable one."""
        if self._known is None:
            answered = self._ask(operation, agent, *asked)
            self._given.append([operation, agent.name, *answered])
        else:
            answered = self._recall(operation, agent.name, self._known)
        if answered:
            return answered[0]
        self.unparsed[operation] += 1
        return no

    def _ask(self, operation: str, agent: NormAgent, *asked: Any) -> list[Any]:
        try:
            answer = getattr(self._operations, operation)(agent, *asked, self._rng)
            check_answer(operation, agent.name, answer)
        except UnparsedError:
            if self._on_unparsed == "raise":
                raise
            return []
        return [answer]

    def _recall(self, operation: str, agent: str, known: list[Any]) -> list[Any]:
        held = known.pop(0) if known else None
        if held is None or held[:2] != [operation, agent]:
            raise ValueError(f"it holds {held}, expected {operation} of {agent}")
        answered = [answer_from_json(operation, answer) for answer in held[2:]]
        for answer in answered:
            check_answer(operation, agent, answer)
        return answered

    def _write(self) -> None:
        exchanges = getattr(self._operations, "exchanges", [])
        if self._log.path is not None:
            given = [[name, who, *(answer_to_json(name, one) for one in answer)] for name, who, *answer in self._given]
            self._log.append({"answers": given, "exchanges": plain(exchanges)})
        exchanges.clear()
