"""Moves of one agent at rates that are functions of the composition, for a reaction model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from meanfield.core._rate_functions import rates_at, rates_of, values_at
from meanfield.toolbox._arguments import shown
from meanfield.toolbox._errors import InputError, reason

TRIALS = 32  # random compositions at which rates are tried, beside the corners and the centre of the simplex
ROUNDING = 1e-12  # by which a rate may fall below 0, in units of the largest

Rate = Callable[[Mapping[str, Any]], Any]


class Changes:
    """R moves of one agent, from `source` to `target` (R,), with a rate each that is a function of the composition.

    Rates that are 0 wherever they were tried are left out. `peak` (R,) is the largest value that was found of a rate,
    and of its slope times the source. `rates` is one function for all, None where there are none.
    """

    def __init__(self, changes: Any, states: tuple[Any, ...], names: tuple[str, ...]) -> None:
        try:
            given = [(source, target, rate) for source, target, rate in changes]
        except (TypeError, ValueError):
            raise InputError(f"changes = {shown(changes)}: expected triples (source, target, rate)") from None
        complaints = [one for k, change in enumerate(given) if (one := _complaint(k, *change, states))]
        if complaints:
            raise InputError("; ".join(complaints))
        places = np.array([(states.index(source), states.index(target)) for source, target, _ in given], np.int64)
        self.names, (self.source, self.target) = names, places.reshape(-1, 2).T
        rates = [_watched(rate, self._rule(r), complaints) for r, (*_, rate) in enumerate(given)]
        self.rates = rates_of(rates, names) if given else None
        if complaints:
            raise InputError("; ".join(complaints))
        self._trials = _trials(len(names)) if given else np.empty((0, len(names)))
        self._acting: dict[bytes, Bool[np.ndarray, " rates"]] = {}
        self.peak = self._peak() if given else np.empty(0)
        moving = self.peak > 0
        if not moving.all():
            kept = [rates[r] for r in np.flatnonzero(moving)]
            self.rates = rates_of(kept, names) if kept else None
            self.source, self.target, self.peak = self.source[moving], self.target[moving], self.peak[moving]

    def __len__(self) -> int:
        return len(self.source)

    def values(self, x: Float[np.ndarray, "batch states"]) -> Float[np.ndarray, "batch rates"]:
        """The rates at compositions."""
        return values_at(self.rates, x) if len(self) else np.empty((len(x), 0))

    def slopes(self, x: Float[np.ndarray, " states"]) -> Float[np.ndarray, "rates states"]:
        """The derivatives of the rates with respect to the fractions; InputError where one is not finite."""
        slopes = rates_at(self.rates, x[None])[1][0] if len(self) else np.empty((0, len(x)))
        wrong = np.flatnonzero(~np.isfinite(slopes).all(1))
        if wrong.size:
            steep = " and ".join(self._rule(r) for r in wrong)
            raise InputError(f"{steep} at {self._shown(x)}: expected a finite derivative")
        return slopes

    def checked(self, x: Float[np.ndarray, "batch states"]) -> Float[np.ndarray, "batch rates"]:
        """The rates at compositions; InputError where one is not a finite number of at least 0."""
        return self._checked(x, self.values(x))

    def _checked(self, x: np.ndarray, values: np.ndarray) -> np.ndarray:
        least = -ROUNDING * np.abs(values).max(where=np.isfinite(values), initial=0.0)
        wrong = ~(np.isfinite(values) & (values >= least))
        if wrong.any():
            raise InputError("; ".join(self._wrong(r, x, values, wrong) for r in np.flatnonzero(wrong.any(0))))
        return np.maximum(values, 0.0)

    def _wrong(self, r: int, x: np.ndarray, values: np.ndarray, wrong: np.ndarray) -> str:
        first = int(wrong[:, r].argmax())
        there = self._shown(x[first])
        return f"{self._rule(r)} at {there} is {values[first, r]:.6g}: expected a finite number of at least 0"

    def _shown(self, x: np.ndarray) -> str:
        return shown({name: float(f"{one:.6g}") for name, one in zip(self.names, x, strict=True)})

    def _rule(self, r: int) -> str:
        return f"the rate of '{self.names[self.source[r]]} → {self.names[self.target[r]]}'"

    def acting(self, face: Bool[np.ndarray, " states"]) -> Bool[np.ndarray, " rates"]:
        """Whether each rate is positive somewhere on a face."""
        if not len(self) or not face.any():
            return np.zeros(len(self), bool)
        key = face.tobytes()
        if key not in self._acting:
            on = self._trials * face
            on = np.where(on.any(1, keepdims=True), on, face)  # for corners that are not on the face, its centre
            values, _ = rates_at(self.rates, on / on.sum(1, keepdims=True))  # the program of `_peak`
            self._acting[key] = np.any(values > 0, axis=0)
        return self._acting[key]

    def _peak(self) -> Float[np.ndarray, " rates"]:
        values, slopes = rates_at(self.rates, self._trials)
        values, inside = self._checked(self._trials, values), self._trials[-TRIALS:]
        slopes = np.abs(slopes[-TRIALS:]).max(2) * inside[:, self.source]  # a slope may be infinite on the border
        return np.maximum(values.max(0), slopes.max(0, where=np.isfinite(slopes), initial=0.0))


def _trials(size: int) -> Float[np.ndarray, "trials states"]:
    inside = np.random.default_rng(0).dirichlet(np.ones(size), TRIALS)
    return np.vstack([np.eye(size), np.full(size, 1 / size), inside])


def _complaint(k: int, source: Any, target: Any, rate: Any, states: tuple[Any, ...]) -> str:
    """The fault of a move in words, or ''."""
    if source == target or source not in states or target not in states:
        return (
            f"changes[{k}] goes from {source!r} to {target!r}: expected two different states of {shown(list(states))}"
        )
    return "" if callable(rate) else f"changes[{k}] has the rate {shown(rate)}: expected a function of the composition"


def _watched(rate: Rate, rule: str, complaints: list[str]) -> Rate:
    """The same function, which tells why its value is not a number."""

    def watched(at: Mapping[str, Any]) -> Any:
        expected = "expected a function of {state: fraction}, in jax.numpy, that returns a number"
        try:
            value = rate(at)
        except Exception as error:
            complaints.append(f"{rule} fails with {type(error).__name__} ({reason(error)}): {expected}")
            return 0.0
        number = isinstance(value, float | int | np.number | np.ndarray | jax.Array)
        if number and np.shape(value) == () and np.result_type(value).kind in "fiu":
            return value
        complaints.append(f"{rule} returns {shown(value)}: {expected}")
        return 0.0

    return watched
