"""The loop of a measurement from a part of the prompts: predict, ask, and stop when enough is known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
from tqdm.auto import tqdm

from policy_extraction._toolbox.bars import hidden
from policy_extraction.measuring._doubt import Doubt
from policy_extraction.measuring._gaussian_process import CENTRE, Posterior, fitted

LEAST = 1e-6  # probability of a word: smaller ones say nothing more about a population
REFIT = 1.25  # growth of the number of memories between fits

Known = TypeVar("Known")
Batch = tuple[np.ndarray, int]  # memories, and how many of the first test the model


@dataclass
class Exploration(ABC, Generic[Known]):
    """A measurement of one policy in batches of memories, which a posterior of all memories chooses."""

    ask: Callable[[np.ndarray], np.ndarray]  # measures memories (n, …), shape (n, W)
    tolerance: float
    seed: int  # of everything random

    first_batch: ClassVar[int]
    most_batch: ClassVar[int]
    growth: ClassVar[int]  # a batch has one of so many memories asked

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.whole = False  # whether there is nothing left to ask
        self.n_measured = 0  # of memories, each as often as it was asked
        self.parameters, self._fitted_at = CENTRE, 0.0
        self.doubt = Doubt()
        self.posterior: Posterior

    def run(self, most: int) -> Iterator[Known]:
        """Ask up to `most` times; yields the knowledge after each batch, and ends when that is enough."""
        memories, n_tests = self._first()[:most], 0
        while True:
            self._measure(memories, n_tests)
            self.n_measured += len(memories)
            self._fit()
            number = min(max(self.first_batch, self.n_measured // self.growth), self.most_batch)
            number = min(number, most - self.n_measured)
            known, batch = self._look(number)
            yield known
            if number <= 0 or batch is None or self.enough(known):
                return
            memories, n_tests = batch()

    def to_end(self, most: int, each: int, name: str, progress: bool | None, shown: Callable[[Known], str]) -> Known:
        """The `Known` at the end of `run`, with a progress bar; memories have so many prompts each."""
        known = None
        with tqdm(total=most * each, desc=name, unit="prompt", disable=hidden(progress)) as bar:
            for known in self.run(most):
                bar.set_postfix_str(shown(known))
                bar.update(self.n_measured * each - bar.n)
        assert known is not None  # a run yields at least once
        return known

    def outcome(self, known: Known, each: int, whole: str, enough: str) -> dict[str, int | str]:
        """Attrs of a result: its tests, and why the measurement ended; memories have so many prompts each."""
        doubt, reached = self.doubt, self.whole or self.enough(known)
        reason = whole if self.whole else enough if reached else "the budget is spent"
        if not doubt.holds and not self.whole:
            reason += ", and the model of the policy does not hold: answers were not as predicted"
        return {
            "reached": int(reached),
            "reason": reason,
            "prompts_used": self.n_measured * each,
            "held_out": len(doubt.recent),
            "held_out_outside": doubt.outside,
            "model_holds": int(doubt.holds),
        }

    @abstractmethod
    def enough(self, known: Known) -> bool:
        """Whether as much is known as asked for, by a model that agrees with the tests."""

    @abstractmethod
    def _first(self) -> np.ndarray:
        """The memories before the first fit."""

    @abstractmethod
    def _measure(self, memories: np.ndarray, n_tests: int) -> None:
        """Ask memories, and compare the first ones with predictions."""

    @abstractmethod
    def _fit(self) -> None:
        """Call `_condition` with all answers."""

    @abstractmethod
    def _look(self, number: int) -> tuple[Known, Callable[[], Batch] | None]:
        """The `Known` of now, and a choice of so many next memories, if there are any."""

    def _condition(self, codes: np.ndarray, y: np.ndarray, errors: np.ndarray) -> None:
        """Take the posterior given contrasts (n, W-1) with errors of covariances (n, W-1, W-1)."""
        if self.n_measured >= max(1, REFIT * self._fitted_at):
            self.parameters, self._fitted_at = fitted(codes, y, errors, self.parameters), self.n_measured
        self.posterior = Posterior(self.parameters, codes, y, errors)
